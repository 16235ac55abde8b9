"""Columns of Arrow whose values an engine would stop at: those are missing instead."""

from __future__ import annotations

from typing import Any

from undertow.release._extras import load

__all__ = ["bearable"]

# Of a second, in a microsecond: what DuckDB computes in.
_TICKS = {"s": 10**6, "ms": 10**3}
_MOST = 2**63 - 1


def bearable(column: Any) -> Any:
    """Return a column without text that is no UTF-8 and without times that are too far.

    Parameters
    ----------
    column : Arrow chunked array
        Of any type; Arrow does not look at what is in it.

    Returns
    -------
    Arrow chunked array
        Of the same values and their type; `column` itself where all are as they should
        be.

    Examples
    --------
    >>> import pyarrow as pa
    >>> raw = pa.array([b"a", bytes([255])])
    >>> text = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    >>> bearable(pa.chunked_array([text])).to_pylist()
    ['a', None]
    """
    arrow = load("pyarrow")
    types, kind = arrow.types, column.type
    if types.is_timestamp(kind) and kind.unit in _TICKS:
        return _near(arrow, column)
    inner = kind.value_type if _is_nested(types, kind) else kind
    if not (
        types.is_string(inner)
        or types.is_large_string(inner)
        or types.is_string_view(inner)
    ):
        return column
    if all(map(_is_valid, column.chunks)):
        return column
    # The values of a dictionary or of runs would still be there for other rows.
    plain = [_plain(arrow, chunk) for chunk in column.chunks]
    chunks = [chunk if _is_valid(chunk) else _decoded(arrow, chunk) for chunk in plain]
    return arrow.chunked_array(chunks, inner)


def _is_nested(types: Any, kind: Any) -> bool:
    return bool(types.is_dictionary(kind) or types.is_run_end_encoded(kind))


def _is_valid(chunk: Any) -> bool:
    arrow = load("pyarrow")
    try:
        chunk.validate(full=True)
    except arrow.ArrowInvalid:  # its words hold data, and are not kept
        return False
    return True


def _plain(arrow: Any, chunk: Any) -> Any:
    if arrow.types.is_dictionary(chunk.type):
        return chunk.dictionary_decode()
    if arrow.types.is_run_end_encoded(chunk.type):
        return load("pyarrow.compute").run_end_decode(chunk)
    return chunk


def _decoded(arrow: Any, chunk: Any) -> Any:
    kind = chunk.type
    cells = map(_text, chunk.cast(arrow.binary()).to_pylist())
    return arrow.array(list(cells), kind)


def _text(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _near(arrow: Any, column: Any) -> Any:
    """Return times that 64 bits hold in microseconds, and those that are infinite."""
    compute, kind = load("pyarrow.compute"), column.type
    most = _MOST // _TICKS[kind.unit]
    chunks = []
    for chunk in column.chunks:
        ticks = chunk.view(arrow.int64())
        inside = compute.and_(
            compute.greater_equal(ticks, -most), compute.less_equal(ticks, most)
        )
        for infinite in (_MOST, -_MOST):
            inside = compute.or_(inside, compute.equal(ticks, infinite))
        if compute.all(inside, min_count=0).as_py():
            chunks.append(chunk)
        else:
            near = compute.if_else(inside, ticks, arrow.scalar(None, arrow.int64()))
            chunks.append(near.view(kind))
    return arrow.chunked_array(chunks, kind)

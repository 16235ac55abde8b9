"""Tables in memory: pandas, Polars and Arrow objects, read in place by DuckDB."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.source import Source, guarded
from undertow.release.source_files import Limits, connect_duckdb, lock_duckdb
from undertow.release.source_names import require_apart

__all__ = ["open_memory"]

_NAME = "undertow_source"
_LEAST, _MOST = -(2**63), 2**63 - 1
_KINDS = "a pandas, Polars or Arrow table, an Ibis table, a file or a connection URL"


def open_memory(table: Any, *, limits: Limits) -> Source:
    """Open a table in memory.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame or LazyFrame, or Arrow table
        The rows; only what queries need is read from it.
    limits : Limits
        What DuckDB may use.

    Raises
    ------
    PlanError
        If it is no such table.
    """
    arrow = _local_times(_arrow(table))
    if not arrow.column_names:
        raise PlanError(
            "table must have columns, got none; those of an index become columns with "
            "reset_index."
        )
    _check_types(arrow)
    require_apart(arrow.column_names, where="the table in memory")
    connection, closing = connect_duckdb(limits)
    try:
        with guarded("duckdb"):
            connection.con.register(_NAME, arrow)
            lock_duckdb(connection)
            # Arrow shares the memory of NumPy and pandas, which others may write to.
            return Source(connection.table(_NAME), "duckdb", closing, stored=False)
    except BaseException:
        closing()
        raise


def _local_times(table: Any) -> Any:
    """Take the zone off times in seconds and milliseconds; they are in UTC anyway.

    DuckDB would make them microseconds when it reads them, and fail on far ones.
    """
    arrow = load("pyarrow")
    for place, field in enumerate(table.schema):
        kind = field.type
        if not arrow.types.is_timestamp(kind) or kind.tz is None:
            continue
        if kind.unit in ("s", "ms"):
            naive = arrow.timestamp(kind.unit)
            chunks = [chunk.view(naive) for chunk in table.column(place).chunks]
            column = arrow.chunked_array(chunks, naive)
            table = table.set_column(place, field.name, column)
    return table


def _arrow(table: Any) -> Any:
    arrow = load("pyarrow")
    if isinstance(table, arrow.RecordBatch):
        return arrow.Table.from_batches([table])
    if isinstance(table, arrow.Table):
        return table
    home = type(table).__module__.partition(".")[0]
    kind = f"{home}.{type(table).__name__}"
    if kind == "polars.LazyFrame":
        table, kind = table.collect(), "polars.DataFrame"
    if kind == "polars.DataFrame":
        return _from_polars(arrow, table)
    if kind == "pandas.DataFrame":
        return _from_pandas(arrow, table)
    if isinstance(table, arrow.RecordBatchReader):
        raise PlanError(
            "table must be one that can be read again, got a RecordBatchReader, which "
            "is empty then; read it with read_all."
        )
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return arrow.table(table)
        except (TypeError, arrow.ArrowException):  # a single column has a stream too
            pass
    kind = type(table).__name__
    way = "; make it a table with to_frame" if kind == "Series" else ""
    raise PlanError(f"table must be {_KINDS}, got {kind}{way}.")


def _from_pandas(arrow: Any, table: Any) -> Any:
    names = list(table.columns)
    if not all(isinstance(name, str) for name in names):
        raise PlanError("the columns of a pandas table must be named by text.")
    require_apart(names, where="the table in memory")  # Arrow refuses them in its words
    try:
        return arrow.Table.from_pandas(table, preserve_index=False)
    except _faults(arrow):
        pass  # its words may hold data, and must not be the context of a refusal
    columns = [_column(arrow, table[name], name) for name in names]
    return arrow.table(columns, names=names)


def _faults(arrow: Any) -> tuple[type[Exception], ...]:
    """Return what Arrow raises on values it cannot hold, and on mixed ones."""
    return arrow.ArrowException, OverflowError, TypeError, ValueError


def _column(arrow: Any, series: Any, name: str) -> Any:
    """Return a column of pandas; text or whole numbers that do not fit are missing."""
    try:
        return arrow.Array.from_pandas(series)
    except _faults(arrow):
        cells = [
            None if missing else cell
            for cell, missing in zip(series, series.isna(), strict=True)
        ]
    kinds = {_cell_kind(cell) for cell in cells if cell is not None}
    if kinds == {"text"}:
        fitting = [cell if _is_unicode(cell) else None for cell in cells]
        return arrow.array(fitting, arrow.string())
    if kinds == {"whole"}:
        inside = (None if x is None or not _LEAST <= x <= _MOST else x for x in cells)
        return arrow.array(list(inside), arrow.int64())
    raise PlanError(
        f"column {name!r} of the pandas table must hold values of one type, got a "
        "mixed one or one that Arrow does not know; convert it with astype."
    )


def _cell_kind(cell: Any) -> str:
    if isinstance(cell, str):
        return "text"
    whole = isinstance(cell, Integral) and not isinstance(cell, bool)
    return "whole" if whole else "other"


def _is_unicode(text: str | None) -> bool:
    try:
        return text is not None and bool(text.encode() or True)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _from_polars(arrow: Any, table: Any) -> Any:
    try:
        return table.to_arrow()
    except arrow.ArrowException:
        raise PlanError(
            "the columns of a Polars table must be of types that Arrow has, got "
            "another; cast it, or leave it out."
        ) from None


def _check_types(table: Any) -> None:
    """Refuse types of Arrow that DuckDB does not read."""
    types = load("pyarrow").types
    for field in table.schema:
        kind = field.type
        wide = types.is_decimal256(kind) or types.is_float16(kind)
        if wide or (types.is_decimal(kind) and kind.scale < 0):
            family = str(kind).partition("(")[0]  # the digits are those of a value
            raise PlanError(
                f"column {field.name!r} must be of a type that DuckDB reads, got "
                f"{family}; cast it, or leave it out."
            )

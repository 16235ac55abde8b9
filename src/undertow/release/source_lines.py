"""Rows of CSV text, each read by itself: none decides how another one is read.

A row ends at a line feed, a carriage return or both, outside of quotes. A cell may be
in quotes from its first character to its last, quotes inside of it doubled; elsewhere a
quote is a character like others. What an engine would stop at is missing instead:

* all cells of a row that has more or fewer than the first line, or over 2^20 bytes;
* a cell that is not UTF-8;
* all cells of a line with a cell that begins with a quote and is not closed as above.
  The row ends with that line.

A line without a character is no row, unless there is only one column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from undertow.errors import PlanError
from undertow.release._extras import load

__all__ = ["LONGEST_ROW", "first_row", "readable"]

LONGEST_ROW = 2**20
"""The most bytes of a row whose cells are read."""

_CHUNK = 2**22
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_MARK = b"\xef\xbb\xbf"
_LINE, _RETURN, _QUOTE, _COMMA = b'\n\r",'
_CELL = rb'(?:"[^"]*+(?:""[^"]*+)*+"(?=[,\r\n]|\Z)|(?!")[^,\r\n]*+)'
_ROW = re.compile(rb"%b(?:,%b)*+(?=[\r\n]|\Z)" % (_CELL, _CELL))
_CELLS = re.compile(rb",(%b)" % _CELL)
_OPEN = re.compile(rb'(?:%b,)*+"[^"]*+(?:""[^"]*+)*+\Z' % _CELL)
_LINE_END = re.compile(rb"[\r\n]")
_CELL_END = re.compile(rb"[,\r\n]")


def first_row(path: Path) -> list[str]:
    """Return the cells of the first line of a file, which name its columns.

    Raises
    ------
    PlanError
        If it is empty or no row; it may be data and is not repeated.
    """
    data = b""
    for chunk in _chunks(path, 0):
        data += chunk
        if len(data) > LONGEST_ROW:
            break
    data = data.removeprefix(_MARK)
    if _LINE_END.match(data):
        # It would be taken for the names, and the names below it for a row.
        raise PlanError(
            f"the first line of {path.name} must name its columns, got an empty one; "
            "remove the lines above the names."
        )
    match = _ROW.match(data)
    if not data or match is None or match.end() > LONGEST_ROW:
        raise _no_names(path)
    try:
        return [_unquoted(cell) for cell in _CELLS.findall(b"," + match[0])]
    except UnicodeDecodeError:
        raise _no_names(path) from None


def _no_names(path: Path) -> PlanError:
    return PlanError(
        f"the first line of {path.name} must name its columns, in UTF-8 and with commas "
        "between them, got one that does not; check that it is a CSV file."
    )


def _unquoted(cell: bytes) -> str:
    text = cell.decode()
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def readable(path: Path, copy: Path, *, columns: int) -> Path:
    """Return a file of the same rows at which no engine stops.

    Parameters
    ----------
    path : Path
        A CSV file, perhaps compressed.
    copy : Path
        Where a copy goes if it needs one: of rows alone, one kind of line ending.
    columns : int
        How many cells a row has.

    Returns
    -------
    Path
        `path` itself where the copy would have the same rows.
    """
    endings = set()
    for ending, _ in _pieces(path, columns):
        endings.add(ending)
        if ending is None or len(endings) > 1:
            break
    else:
        return path
    with copy.open("xb") as file:
        for _, rows in _pieces(path, columns):
            file.write(rows)
    return copy


def _chunks(path: Path, offset: int) -> Iterator[bytes]:
    """Yield the bytes of a file from an offset on, unpacked."""
    packing = _PACKED.get(path.suffix.lower())
    if packing is None:
        with path.open("rb") as file:
            file.seek(offset)
            while chunk := file.read(_CHUNK):
                yield chunk
        return
    arrow = load("pyarrow")
    try:
        with arrow.input_stream(str(path), compression=packing) as stream:
            while chunk := stream.read(_CHUNK):
                if offset < len(chunk):
                    yield chunk[offset:]
                offset = max(offset - len(chunk), 0)
    except (OSError, arrow.ArrowException):
        raise PlanError(
            f"{path.name} must be a {packing} file, got one that cannot be unpacked."
        ) from None


def _pieces(path: Path, columns: int) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield whole rows as they are to be read, and how each of them ended.

    None stands for rows that were not written so.
    """
    offset, data = 0, b""
    stream = _chunks(path, 0)
    while True:
        chunk = next(stream, b"")
        if not offset and not data:
            offset = len(_MARK) if chunk.startswith(_MARK) else 0
            chunk = chunk[offset:]
        data, ended = data + chunk, not chunk
        if ended and not data:
            return
        end, ending = _plain_rows(data, columns, ended=ended)
        if ending is not None:
            yield ending, data[:end]
        else:
            rows, end = _rows(data, columns, ended=ended)
            if rows:
                yield None, b"".join(rows)
            # All but a last character, which may be of what follows, is of one row.
            if not end and not ended and len(data) > LONGEST_ROW + 1:
                end = _skipped(path, offset)
                yield None, b"," * (columns - 1) + b"\n"
                offset, data = offset + end, b""
                stream = _chunks(path, offset)
                continue
        offset, data = offset + end, data[end:]
        if ended:
            return


def _plain_rows(
    data: bytes, columns: int, *, ended: bool
) -> tuple[int, bytes | None]:
    """Return where the last whole row ends, and the line ending of all rows.

    None if any of them is not to be read as it is written.
    """
    bytes_ = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(bytes_ == _QUOTE)
    lines = np.flatnonzero(bytes_ == _LINE)
    ends = _outside(lines, quotes)
    stop = int(ends[-1]) + 1 if ends.size else 0
    if ended and stop < len(data):
        stop = len(data)
        ends = np.append(ends, stop)
    if not stop:
        return 0, None
    text = data[:stop]
    returns, feeds = text.count(b"\r"), text.count(b"\n")
    ending = b"\r\n" if returns else b"\n"
    if returns and not (
        returns == feeds == text.count(b"\r\n") == int((ends < stop).sum())
    ):
        return 0, None
    starts = np.concatenate(([0], ends[:-1] + 1))
    sizes = ends - starts
    if sizes.max() > LONGEST_ROW or (returns and sizes.min() <= 1):
        return 0, None
    commas = np.flatnonzero(bytes_[:stop] == _COMMA)
    commas = _outside(commas, quotes)
    if commas.size != ends.size * (columns - 1):
        return 0, None
    if columns > 1:
        by_row = commas.reshape(ends.size, columns - 1)
        if (by_row[:, 0] < starts).any() or (by_row[:, -1] > ends).any():
            return 0, None
    if not _closed(text, quotes[quotes < stop]):
        return 0, None
    try:
        text.decode()
    except UnicodeDecodeError:
        return 0, None
    return stop, ending


def _outside(places: Any, quotes: Any) -> Any:
    """Return the places before which there is an even number of quotes."""
    if not quotes.size:
        return places
    return places[np.searchsorted(quotes, places) % 2 == 0]


def _closed(text: bytes, quotes: Any) -> bool:
    """Tell whether all quotes are around whole cells, or doubled inside of them."""
    if quotes.size % 2:
        return False
    lines = np.frombuffer(b"\n%b\n" % text, np.uint8)
    before, after = lines[quotes[::2]], lines[quotes[1::2] + 2]
    opens = (before == _COMMA) | (before == _LINE) | (before == _QUOTE)
    closes = (after == _COMMA) | (after == _LINE) | (after == _QUOTE)
    return bool(opens.all() and (closes | (after == _RETURN)).all())


def _rows(data: bytes, columns: int, *, ended: bool) -> tuple[list[bytes], int]:
    """Return rows one by one as they are to be read, and where they end."""
    rows, at = list[bytes](), 0
    while at < len(data):
        match = _ROW.match(data, at)
        if match is not None:
            end, row = match.end(), match[0]
        elif not ended and _OPEN.match(data, at):
            break
        else:
            line = _LINE_END.search(data, at)
            end, row = len(data) if line is None else line.start(), None
        if not ended and data[end:] in (b"", b"\r"):
            break  # what follows may belong to it
        rows.append(_as_read(row, columns))
        at = end + (2 if data.startswith(b"\r\n", end) else 1)
    return rows, min(at, len(data))


def _as_read(row: bytes | None, columns: int) -> bytes:
    """Return a row as it is to be read; None stands for a line that is none."""
    if row == b"":
        return b"\n" if columns == 1 else b""
    short = row is not None and len(row) <= LONGEST_ROW
    cells = _CELLS.findall(b"," + row) if short and row is not None else []
    if len(cells) != columns:
        cells = [b""] * columns
    return b",".join(map(_cell_as_read, cells)) + b"\n"


def _cell_as_read(cell: bytes) -> bytes:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return b""
    if b'"' in cell and not cell.startswith(b'"'):
        return b'"' + cell.replace(b'"', b'""') + b'"'
    return cell


def _skipped(path: Path, offset: int) -> int:
    """Return how many bytes a row takes that is too long to be read.

    Those of its first line, if one of its cells is not closed.
    """
    size = _row_size(_chunks(path, offset))
    if size is None:
        size = _row_size(_chunks(path, offset), quoted=False)
    return size or 0


def _row_size(chunks: Iterator[bytes], *, quoted: bool = True) -> int | None:
    """Return the bytes of a row and its ending; None if a cell of it is not closed."""
    state, size = "start", 0
    for chunk in chunks:
        at = 0
        while at < len(chunk):
            byte = chunk[at]
            if state == "returned":
                return size + at + (byte == _LINE)
            if state == "inside":
                found = chunk.find(b'"', at)
                at = len(chunk) if found < 0 else found + 1
                state = "inside" if found < 0 else "closed"
            elif state == "start" and quoted and byte == _QUOTE:
                at, state = at + 1, "inside"
            elif state == "closed" and byte == _QUOTE:
                at, state = at + 1, "inside"
            elif byte == _LINE:
                return size + at + 1
            elif byte in (_COMMA, _RETURN):
                at, state = at + 1, "start" if byte == _COMMA else "returned"
            elif state == "closed":
                return None
            else:
                stop = _CELL_END.search(chunk, at)
                at, state = len(chunk) if stop is None else stop.start(), "plain"
        size += len(chunk)
    return None if state == "inside" else size

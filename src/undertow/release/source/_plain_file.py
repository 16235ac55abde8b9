"""CSV and Parquet files as one table, without what an engine would stop at.

Nothing is guessed from the rows. The columns of CSV files are text by stated types,
under the names of the first lines, which must agree; those of Parquet files have the
types that the files state. What an engine would stop at is missing: a row that is not
like the first line, a cell that is no UTF-8, a time beyond those of the engine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from undertow.errors import EngineError, PlanError
from undertow.release._extras import load
from undertow.release.document._error import absent, require_apart
from undertow.release.source._place import engine_paths, folders_of, plain_name

_NAME = "undertow_source"
_CSV_TYPES = {
    "bool": "boolean",
    "date": "date",
    "float": "float64",
    "int": "int64",
}
_ZONED = (datetime(1, 1, 2), datetime(9999, 12, 30))  # far enough from the ends
_CSV_SETTINGS: dict[str, Any] = {
    "auto_detect": False,
    "header": True,
    "delim": ",",
    "quote": '"',
    "escape": '"',
    "comment": "",
    "skip": 0,
    "union_by_name": False,
    "hive_partitioning": False,
    # In pieces, a line break inside of quotes may be taken for the end of a row.
    "parallel": False,
}


def open_csv(
    connection: Any, files: Sequence[Path], *, types: Mapping[str, str], folder: Path
) -> tuple[Any, list[Path]]:
    """Read text, and cast what has a stated type.

    Parameters
    ----------
    connection : Ibis backend
        DuckDB.
    files : sequence of Path
        Each of them once.
    types : mapping of str to str
        Types of columns; others are text, and a value that is not of its type is
        missing.
    folder : Path
        A private folder for copies of files that DuckDB would stop at.

    Returns
    -------
    Ibis table
        The rows of all files.
    list of Path
        The files that DuckDB reads.

    Raises
    ------
    PlanError
        If two columns have one name, the files have different columns, or a type is
        stated for none of them.
    EngineError
        If there is no room for a copy.
    """
    names = _column_names(files)
    unknown = sorted(set(types) - set(names))
    if unknown:
        why = absent(unknown[0], names, wanted=types, lines=True)
        raise PlanError(
            "source.types must name columns of the table, got "
            f"{unknown[0][:60]!r}{why}."
        )
    read, ending = _read_alike(files, folder)
    table = connection.read_csv(
        engine_paths(connection, read),
        table_name=_NAME,
        columns=dict.fromkeys(names, "VARCHAR"),
        new_line=ending,
        **_CSV_SETTINGS,
    )
    cast = {
        name: _typed(table[name], kind)
        for name, kind in types.items()
        if kind != "text"
    }
    return (table.mutate(**cast) if cast else table), read


def _read_alike(files: Sequence[Path], folder: Path) -> tuple[list[Path], str]:
    """Return files of the same rows that all end alike, and how, as DuckDB writes it.

    It would take the ending of the first line of the first file for that of all.
    """
    read, file = list[Path](), files[0]
    try:
        endings = []
        for file in files:
            endings.append(line_ending(file))
        common = b"\r\n" if set(endings) == {b"\r\n"} else b"\n"
        for place, file in enumerate(files):
            plain = file
            if endings[place] != common:
                plain = folder / f"rows-{place}.csv"
                copy_rows(file, plain)
            read.append(plain_name(plain, folder, place))
    except OSError as fault:
        raise EngineError(
            f"{file.name} must be readable, and the temporary folder have room for a "
            f"copy of it, got {type(fault).__name__}; free some space, or set TMPDIR."
        ) from None
    return read, "\\r\\n" if common == b"\r\n" else "\\n"


def _typed(text: Any, kind: str) -> Any:
    """Return a column as what it is stated to be, times in UTC.

    As a time without a zone, DuckDB 2.0 leaves out the offset of a text that has one.
    As a time with a zone, it fails on offsets of times that are farther than it counts.
    """
    if kind != "timestamp":
        # A bare cast that nothing else reads beside, DuckDB 2.0 leaves to its reader of
        # files, which does not try but fails. An empty text is of no type anyway.
        return text.nullif("").try_cast(_CSV_TYPES[kind])
    local = text.try_cast("timestamp")
    zoned = text.try_cast("timestamp('UTC', 6)").cast("timestamp")
    return local.between(*_ZONED).ifelse(zoned, local)


def _column_names(files: Sequence[Path]) -> list[str]:
    """Return the names in the first line, which must be that of all files.

    DuckDB would change names that are written twice, and take the columns of other
    files for those at the same places of the first file. A first line may be data: it
    is not repeated.
    """
    first, *others = files
    line = first_row(first)
    for file in others:
        if not file.stat().st_size or first_row(file) != line:
            raise PlanError(
                "the CSV files of a table must have the same columns in the same "
                f"order, got {file.name}, whose first line is not that of "
                f"{first.name}; write them alike."
            )
    names = [name.strip() or f"column{place}" for place, name in enumerate(line)]
    require_apart(names, where=first.name)
    return names


# Rows of CSV text, each read by itself: none decides how another one is read.
#
# A row ends at a line feed outside of quotes, with or without a carriage return before
# it; in a file whose first line ends with a carriage return alone, at each of those. A
# cell may be in quotes from its first character to its last, quotes inside of it
# doubled; elsewhere a quote is a character like others. What an engine would stop at is
# missing:
#
# * all cells of a row that has more or fewer than the first line, or over 2^20 bytes;
# * a cell that is not UTF-8;
# * all cells of a line with a cell that begins with a quote and is not closed as above.
#   The row ends with that line.
#
# A line without a character is no row, unless there is only one column.

LONGEST_ROW = 2**20
"""The most bytes of a row whose cells are read."""

_CHUNK = 2**22
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_MARK = b"\xef\xbb\xbf"
_LINE, _RETURN, _QUOTE, _COMMA = b'\n\r",'


@dataclass(frozen=True, slots=True)
class Misfits:
    """Rows of CSV files whose cells are all missing.

    Parameters
    ----------
    columns : int
        Cells of the first line.
    cells : dict of int to int
        Rows with more or fewer cells, by how many they have.
    trailing : int
        Rows among them with one cell more, which is empty: a comma at their end.
    unclosed : int
        Lines with a cell that begins with a quote and is not closed.
    long : int
        Rows that are too long.
    """

    columns: int
    cells: dict[int, int]
    trailing: int
    unclosed: int
    long: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(self.cells.values()) + self.unclosed + self.long


_TRAILING, _UNCLOSED, _LONG = "trailing", "unclosed", "long"
_Tally = Counter[int | str]


@dataclass(frozen=True, slots=True)
class _Form:
    """How rows are written: how many cells, and what a row ends with."""

    columns: int
    end: bytes

    @property
    def missing(self) -> bytes:
        """A row whose cells are all missing."""
        return b"," * (self.columns - 1) + b"\n"


@dataclass(frozen=True, slots=True)
class _Grammar:
    """Patterns of rows that end with a character, or with one after another."""

    row: re.Pattern[bytes]
    cells: re.Pattern[bytes]
    open: re.Pattern[bytes]

    @classmethod
    def of(cls, stop: bytes, end: bytes) -> Self:
        """Return the patterns: a bare cell goes up to `stop`, a row ends with `end`."""
        closed = rb'"[^"]*+(?:""[^"]*+)*+"(?=,|%b)' % end
        cell = rb'(?:%b|(?!")[^,%b]*+)' % (closed, stop)
        return cls(
            re.compile(rb"%b(?:,%b)*+(?=%b)" % (cell, cell, end)),
            re.compile(rb",(%b)" % cell),
            re.compile(rb'(?:%b,)*+"[^"]*+(?:""[^"]*+)*+\Z' % cell),
        )


_FIRST = _Grammar.of(rb"\r\n", rb"[\r\n]|\Z")
_GRAMMARS = {
    b"\n": _Grammar.of(rb"\n", rb"\r?(?:\n|\Z)"),
    b"\r": _Grammar.of(rb"\r", rb"\r|\Z"),
}


def first_row(path: Path) -> list[str]:
    """Return the cells of the first line of a file, which name its columns.

    Raises
    ------
    PlanError
        If it is empty or no row; it may be data and is not repeated.
    """
    return _first(path)[0]


def _first(path: Path) -> tuple[list[str], bytes]:
    """Return the cells of the first line, and what rows end with."""
    data = b""
    for chunk in _chunks(path, 0):
        data += chunk
        if len(data) > LONGEST_ROW + len(_MARK) + 2:
            break
    data = data.removeprefix(_MARK)
    if data[:1] in (b"\r", b"\n"):
        # It would be taken for the names, and the names below it for a row.
        raise PlanError(
            f"the first line of {path.name} must name its columns, got an empty one; "
            "remove the lines above the names."
        )
    match = _FIRST.row.match(data)
    if not data or match is None or match.end() > LONGEST_ROW:
        raise _no_names(path)
    try:
        cells = [_unquoted(cell) for cell in _FIRST.cells.findall(b"," + match[0])]
    except UnicodeDecodeError:
        raise _no_names(path) from None
    ending = data[match.end() : match.end() + 2]
    return cells, b"\r" if ending[:1] == b"\r" and ending != b"\r\n" else b"\n"


def _no_names(path: Path) -> PlanError:
    return PlanError(
        f"the first line of {path.name} must name its columns, in UTF-8 and with "
        "commas between them, got one that does not; check the file."
    )


def _unquoted(cell: bytes) -> str:
    text = cell.decode()
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def line_ending(path: Path) -> bytes | None:
    """Return how all rows of a file end; None if some are not to be read as written.

    Parameters
    ----------
    path : Path
        A CSV file, perhaps compressed.

    Raises
    ------
    PlanError
        If the first line names no columns, or the file cannot be unpacked.
    """
    names, end = _first(path)
    endings = set()
    for ending, _ in _pieces(path, _Form(len(names), end)):
        endings.add(ending)
        if len(endings) > 1:
            return None
    return endings.pop() if endings else b"\n"


def copy_rows(path: Path, copy: Path) -> None:
    """Write the rows of a file as they are to be read, each ended by a line feed.

    Parameters
    ----------
    path : Path
        A CSV file, perhaps compressed.
    copy : Path
        A file that is not there yet.
    """
    names, end = _first(path)
    with copy.open("xb") as file:
        for ending, rows in _pieces(path, _Form(len(names), end)):
            # A return before a line feed may also be within the quotes of other rows.
            bare = rows.replace(b"\r\n", b"\n") if ending == b"\r\n" else rows
            file.write(bare)


def misfits(paths: Sequence[Path]) -> Misfits:
    """Count the rows of some files that are not like their first lines.

    Parameters
    ----------
    paths : sequence of Path
        CSV files of the same first line, perhaps compressed.
    """
    tally, columns = _Tally(), 0
    for path in paths:
        names, end = _first(path)
        columns = len(names)
        for _ in _pieces(path, _Form(columns, end), tally):
            pass
    cells = {size: rows for size, rows in tally.items() if isinstance(size, int)}
    some = (tally[name] for name in (_TRAILING, _UNCLOSED, _LONG))
    return Misfits(columns, dict(sorted(cells.items())), *some)


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


def _pieces(
    path: Path, form: _Form, tally: _Tally | None = None
) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield whole rows as they are to be read, and how each of them ended.

    None stands for rows that were not written so; those that are missing are counted.
    """
    tally = _Tally() if tally is None else tally
    offset, data = _start(path), b""
    stream = _chunks(path, offset)
    while True:
        chunk = next(stream, b"")
        data, ended = data + chunk, not chunk
        end, ending = _plain_rows(data, form, ended=ended)
        if ending is not None:
            yield ending, data[:end]
        elif data:
            rows, end = _rows(data, form, tally, ended=ended)
            if rows:
                yield None, b"".join(rows)
            # All but a last character, which may be of what follows, is of one row.
            if not end and not ended and len(data) > LONGEST_ROW + 1:
                tally[_LONG] += 1
                yield None, form.missing
                offset, data = offset + _skipped(path, offset, form), b""
                stream = _chunks(path, offset)
                continue
        offset, data = offset + end, data[end:]
        if ended:
            return


def _start(path: Path) -> int:
    """Return the place of the first row: after the mark of the encoding, if any."""
    head = b""
    for chunk in _chunks(path, 0):
        head += chunk
        if len(head) >= len(_MARK):
            break
    return len(_MARK) if head.startswith(_MARK) else 0


def _plain_rows(data: bytes, form: _Form, *, ended: bool) -> tuple[int, bytes | None]:
    """Return where the last whole row ends, and the line ending of all rows.

    None if any of them is not to be read as it is written.
    """
    if form.end != b"\n":
        return 0, None
    columns, bytes_ = form.columns, np.frombuffer(data, np.uint8)
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


def _rows(
    data: bytes, form: _Form, tally: _Tally, *, ended: bool
) -> tuple[list[bytes], int]:
    """Return rows one by one as they are to be read, and where they end."""
    rows, at, grammar = list[bytes](), 0, _GRAMMARS[form.end]
    while at < len(data):
        match = grammar.row.match(data, at)
        if match is not None:
            end, row = match.end(), match[0]
        elif not ended and grammar.open.match(data, at):
            break
        else:
            line = data.find(form.end, at)
            end, row = len(data) if line < 0 else line, None
        if not ended and end >= len(data) - 1 and data[end:] in (b"", b"\r"):
            break  # what follows may belong to it
        rows.append(_as_read(row, form, tally))
        at = end + (2 if data.startswith(b"\r\n", end) and form.end == b"\n" else 1)
    return rows, min(at, len(data))


def _as_read(row: bytes | None, form: _Form, tally: _Tally) -> bytes:
    """Return a row as it is to be read; None stands for a line that is none."""
    if row is not None and form.end == b"\n":
        row = row.removesuffix(b"\r")
    if row == b"":
        return b"\n" if form.columns == 1 else b""
    if row is None or len(row) > LONGEST_ROW:
        tally[_UNCLOSED if row is None else _LONG] += 1
        return form.missing
    cells = _GRAMMARS[form.end].cells.findall(b"," + row)
    if len(cells) != form.columns:
        tally[len(cells)] += 1
        tally[_TRAILING] += len(cells) == form.columns + 1 and cells[-1] == b""
        return form.missing
    return b",".join(map(_cell_as_read, cells)) + b"\n"


def _cell_as_read(cell: bytes) -> bytes:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return b""
    bare = not cell.startswith(b'"')
    if bare and any(mark in cell for mark in (b'"', b"\r", b"\n")):
        return b'"' + cell.replace(b'"', b'""') + b'"'
    return cell


def _skipped(path: Path, offset: int, form: _Form) -> int:
    """Return how many bytes a row takes that is too long to be read.

    Those of its first line, if one of its cells is not closed.
    """
    size = _row_size(_chunks(path, offset), form.end[0])
    if size is None:
        size = _row_size(_chunks(path, offset), form.end[0], quoted=False)
    return size or 0


def _row_size(chunks: Iterator[bytes], end: int, *, quoted: bool = True) -> int | None:
    """Return the bytes of a row and its ending; None if a cell of it is not closed."""
    state, size = "start", 0
    cell_end = re.compile(b"[,%c]" % end if quoted else b"%c" % end)
    for chunk in chunks:
        at = 0
        while at < len(chunk):
            byte = chunk[at]
            if state == "inside":
                found = chunk.find(b'"', at)
                at = len(chunk) if found < 0 else found + 1
                state = "inside" if found < 0 else "closed"
            elif byte == end:
                return size + at + 1
            elif state == "returned":
                return None
            elif state in ("start", "closed") and byte == _QUOTE and quoted:
                at, state = at + 1, "inside"
            elif byte == _COMMA and quoted:
                at, state = at + 1, "start"
            elif state == "closed":
                if byte != _RETURN:
                    return None
                at, state = at + 1, "returned"
            else:
                stop = cell_end.search(chunk, at)
                at, state = len(chunk) if stop is None else stop.start(), "bare"
        size += len(chunk)
    return None if state == "inside" else size


# Parquet files as one table: the same columns, by the types that the files state.
#
# DuckDB stops at text that is not UTF-8 and at times beyond its own, and would do so
# for the row of one person. Such values are missing: where it stops, the files are read
# once more from copies without them.

_ARROW = b"ARROW:schema"


def open_parquet(
    connection: Any, files: Sequence[Path], *, stated: tuple[str, ...]
) -> Any:
    """Read Parquet files.

    Parameters
    ----------
    connection : Ibis backend
        DuckDB.
    files : sequence of Path
        Each of them once.
    stated : tuple of str
        The columns that their folders state.

    Returns
    -------
    Ibis table
        The rows of all files.

    Raises
    ------
    PlanError
        If the files have different columns, or one that cannot be read as it is.
    """
    parquet = load("pyarrow.parquet")
    first: dict[str, str] = {}
    for file in files:
        schema = parquet.read_schema(str(file))
        require_apart(schema.names, where=file.name)
        _check_digits(schema)
        found = {field.name: _stored_type(field.type) for field in schema}
        first = first or found
        if found != first:
            # DuckDB would cast to the types of the first file, and fail on some rows.
            raise PlanError(
                "the Parquet files of a table must have the same columns of the same "
                f"types, got {file.name}, whose columns are not those of "
                f"{files[0].name}; write them alike."
            )
    if stated:
        # DuckDB would put the name of the folder in the place of what the file holds.
        require_apart([*first, *stated], where="the files and their folders")
    # The types of what folders state would be guessed from which folders there are.
    return connection.read_parquet(
        engine_paths(connection, files),
        table_name=_NAME,
        hive_partitioning=bool(stated),
        hive_types_autocast=False,
    )


def copied_parquet(files: Sequence[Path], folder: Path) -> list[Path]:
    """Copy Parquet files without the values that DuckDB stops at, folder by folder.

    Parameters
    ----------
    files : sequence of Path
        The files.
    folder : Path
        A private folder for the copies.

    Returns
    -------
    list of Path
        The copies, below folders that state what those of the files do.
    """
    arrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    copies = []
    for place, file in enumerate(files):
        copy = folder.joinpath(f"rows-{place}", *folders_of(file), "rows.parquet")
        copy.parent.mkdir(parents=True)
        with parquet.ParquetFile(str(file), metadata=_as_stored(file)) as original:
            schema = original.schema_arrow
            with parquet.ParquetWriter(str(copy), schema) as target:
                for batch in original.iter_batches():
                    columns = [
                        bearable(arrow.chunked_array([column])).cast(field.type)
                        for column, field in zip(batch.columns, schema, strict=True)
                    ]
                    target.write_table(arrow.table(columns, schema=schema))
        copies.append(copy)
    return copies


def _as_stored(file: Path) -> Any:
    """Return what a file says of its columns, without the types of Arrow.

    DuckDB does not know those either, and Arrow looks at text to make a dictionary.
    """
    arrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    footer = arrow.BufferOutputStream()
    parquet.read_metadata(str(file)).write_metadata_file(footer)
    # A name of the same length: lengths stand before names.
    head, found, tail = footer.getvalue().to_pybytes().rpartition(_ARROW)
    written = head + (b"-" * len(_ARROW) if found else b"") + tail
    return parquet.read_metadata(arrow.BufferReader(written))


def _check_digits(schema: Any) -> None:
    """Refuse decimals that DuckDB reads as floating point, which merges units."""
    types = load("pyarrow").types
    for field in schema:
        if types.is_decimal256(field.type):
            raise PlanError(
                f"column {field.name!r} must have at most 38 digits, got "
                f"{field.type.precision}; write it as text or with fewer."
            )


def _stored_type(kind: Any) -> str:
    """Return what DuckDB reads of an Arrow type: Parquet stores no more than that."""
    types = load("pyarrow").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_timestamp(kind):
        return f"timestamp[{kind.unit}{'' if kind.tz is None else ', UTC'}]"
    return str(kind).removeprefix("large_").removesuffix("_view")


# Columns of Arrow whose values an engine would stop at: those are missing instead.

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
        return _near_times(arrow, column)
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
    plain = [_plain_chunk(arrow, chunk) for chunk in column.chunks]
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


def _plain_chunk(arrow: Any, chunk: Any) -> Any:
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


def _near_times(arrow: Any, column: Any) -> Any:
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

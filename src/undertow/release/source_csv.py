"""CSV files as one table: text by stated types, under the names of the first lines.

Nothing is guessed from the rows. Several files are read by the places of their columns,
so that their first lines must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.source_names import require_apart

__all__ = ["check_unpacked", "open_csv"]

_PACKED = {".gz": "gzip", ".zst": "zstd"}
_NAME, _HEADS = "undertow_source", "undertow_heads"
_TYPES = {
    "bool": "boolean",
    "date": "date",
    "float": "float64",
    "int": "int64",
}
_ZONED = (datetime(1, 1, 2), datetime(9999, 12, 30))  # far enough from the ends
_CHUNK = 2**20
_FIXED: dict[str, Any] = {
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
_FIRST_LINE = (
    "SELECT * FROM read_csv(?, auto_detect = false, header = false, delim = ',',"
    " quote = '\"', escape = '\"', comment = '', skip = 0, hive_partitioning = false,"
    " columns = {columns}) LIMIT 1"
)
_TOP_LINE = (
    "SELECT * FROM read_csv(?, auto_detect = false, header = false, delim = '\x1f',"
    " quote = '', escape = '', comment = '', skip = 0, hive_partitioning = false,"
    " columns = {'line': 'VARCHAR'}) LIMIT 1"
)


def check_unpacked(path: Path, *, most_mb: int) -> None:
    """Refuse a compressed file that would become too large, without unpacking it.

    Parameters
    ----------
    path : Path
        The file; one that is not compressed is not looked at.
    most_mb : int
        How large it may become.

    Raises
    ------
    PlanError
        If it would become larger, or is not compressed as its name says.
    """
    packing = _PACKED.get(path.suffix.lower())
    if packing is None:
        return
    arrow = load("pyarrow")
    most, size = most_mb * 10**6, 0
    try:
        with arrow.input_stream(str(path), compression=packing) as stream:
            while size <= most and (chunk := stream.read(_CHUNK)):
                size += len(chunk)
    except (OSError, arrow.ArrowException):
        raise PlanError(
            f"{path.name} must be a {packing} file, got one that cannot be unpacked."
        ) from None
    if size > most:
        raise PlanError(
            f"{path.name} must unpack to at most {most_mb} MB, got more; "
            "convert it to Parquet."
        )


def open_csv(connection: Any, files: list[str], *, types: Mapping[str, str]) -> Any:
    """Read text, and cast what has a stated type.

    Parameters
    ----------
    connection : Ibis backend
        DuckDB.
    files : list of str
        Their paths.
    types : mapping of str to str
        Types of columns; others are text, and a value that is not of its type is
        missing.

    Returns
    -------
    Ibis table
        The rows of all files.

    Raises
    ------
    PlanError
        If two columns have one name, the files have different columns, or a type is
        stated for none of them.
    """
    # The names come from the first line; then nothing is left to be guessed.
    heads = connection.read_csv(
        files[0], table_name=_HEADS, all_varchar=True, **_FIXED
    ).columns
    _check_heads(connection, files, count=len(heads))
    columns = dict.fromkeys(heads, "VARCHAR")
    table = connection.read_csv(
        files, table_name=_NAME, auto_detect=False, columns=columns, **_FIXED
    )
    unknown = sorted(set(types) - set(table.columns))
    if unknown:
        raise PlanError(
            f"source.types must name columns of the table, got {unknown[0][:60]!r}."
        )
    cast = {
        name: _typed(table[name], kind)
        for name, kind in types.items()
        if kind != "text"
    }
    return table.mutate(**cast) if cast else table


def _typed(text: Any, kind: str) -> Any:
    """Return a column as what it is stated to be, times in UTC.

    As a time without a zone, DuckDB 2.0 leaves out the offset of a text that has one.
    As a time with a zone, it fails on offsets of times that are farther than it counts.
    """
    if kind != "timestamp":
        # A bare cast that nothing else reads beside, DuckDB 2.0 leaves to its reader of
        # files, which does not try but fails. An empty text is of no type anyway.
        return text.nullif("").try_cast(_TYPES[kind])
    local = text.try_cast("timestamp")
    zoned = text.try_cast("timestamp('UTC', 6)").cast("timestamp")
    return local.between(*_ZONED).ifelse(zoned, local)


def _check_heads(connection: Any, files: list[str], *, count: int) -> None:
    """Refuse names that are written twice, and files whose names are not the first's.

    DuckDB would change the ones, and take the columns of the others for those at the
    same places of the first file. A first line may be data: it is not repeated.
    """
    first, *others = files
    [line] = _first_lines(connection, first, count)
    for file in files:
        if connection.con.execute(_TOP_LINE, [file]).fetchall() == [(None,)]:
            # It would be taken for the names, and the names below it for a row.
            raise PlanError(
                f"the first line of {Path(file).name} must name its columns, got an "
                "empty one; remove the lines above the names."
            )
    written = [name or f"column{place}" for place, name in enumerate(line)]
    require_apart(written, where=Path(first).name)
    for file in others:
        try:
            found = _first_lines(connection, file, count)
        except Exception:  # another number of columns, or no CSV file at all
            found = []
        if found != [line]:
            raise PlanError(
                "the CSV files of a table must have the same columns in the same "
                f"order, got {Path(file).name}, whose first line is not that of "
                f"{Path(first).name}; write them alike."
            )


def _first_lines(
    connection: Any, file: str, count: int
) -> list[tuple[str | None, ...]]:
    """Return the first line of a file, without taking it for names; none if empty."""
    columns = ", ".join(f"'column{place}': 'VARCHAR'" for place in range(count))
    query = _FIRST_LINE.format(columns="{" + columns + "}")
    return list(connection.con.execute(query, [file]).fetchall())

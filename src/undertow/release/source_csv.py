"""CSV files as one table: text by stated types, under the names of the first lines.

Nothing is guessed from the rows. Several files are read by the places of their columns,
so that their first lines must agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from undertow.errors import EngineError, PlanError
from undertow.release.source_lines import copy_rows, first_row, line_ending
from undertow.release.source_names import absent, require_apart
from undertow.release.source_paths import engine_paths, plain_name

__all__ = ["open_csv"]

_NAME = "undertow_source"
_TYPES = {
    "bool": "boolean",
    "date": "date",
    "float": "float64",
    "int": "int64",
}
_ZONED = (datetime(1, 1, 2), datetime(9999, 12, 30))  # far enough from the ends
_FIXED: dict[str, Any] = {
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
        **_FIXED,
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
        return text.nullif("").try_cast(_TYPES[kind])
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

"""SQLite files: copied into DuckDB in pieces, by the declared types of the columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.limits import ended_by
from undertow.release.source import Source, guarded
from undertow.release.source_files import (
    Limits,
    connect_duckdb,
    lock_duckdb,
    only_table,
)

__all__ = ["open_sqlite"]

_NAME = "undertow_source"
_PIECE = 50_000
_LARGEST, _LARGEST_EXACT = 2.0**63, 2**53
# SQLite's own rules of affinity, dates and truth values first; (marks, read as, cast).
_TYPES = (
    (("BOOL",), "int64", "BOOLEAN"),
    (("DATETIME", "TIMESTAMP"), "string", "TIMESTAMP"),
    (("DATE",), "string", "DATE"),
    (("INT",), "int64", "BIGINT"),
    (("CHAR", "CLOB", "TEXT"), "string", "VARCHAR"),
    (("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"), "float64", "DOUBLE"),
)
_ZONED = "TIMESTAMP '0001-01-02' AND TIMESTAMP '9999-12-30'"  # far enough from the ends


def open_sqlite(path: Path, relation: str | None, *, limits: Limits) -> Source:
    """Open a table of an SQLite file.

    Parameters
    ----------
    path : Path
        The file.
    relation : str or None
        The table or view; may be left out where there is only one.
    limits : Limits
        What DuckDB may use.

    Raises
    ------
    PlanError
        If there is no such table, or a column has no declared type.

    Notes
    -----
    SQLite lets any cell hold anything. A value that is not of the declared type of its
    column is missing, so that no row can end the run.
    """
    try:
        file = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        raise PlanError(f"{path.name} must be a readable SQLite file.") from None
    ended_by(lambda since: file.interrupt())
    try:
        return _copied(file, path, relation, limits)
    except (sqlite3.Error, UnicodeDecodeError) as fault:
        busy = getattr(fault, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        got = "written to by others, try again" if busy else "damaged"
        raise PlanError(
            f"{path.name} must be a readable SQLite file, got one that is {got}."
        ) from None
    finally:
        file.close()


def _copied(
    file: sqlite3.Connection, path: Path, relation: str | None, limits: Limits
) -> Source:
    listed = file.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        " AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
    )
    chosen = only_table([row[0] for row in listed], relation, path.name)
    types = _declared(file, chosen)
    connection, close = connect_duckdb(limits)
    try:
        with guarded("duckdb"):
            _copy(file, chosen, types, connection.con)
            lock_duckdb(connection)
            read = connection.table(_NAME)
            return Source(read, "duckdb", close, counted=partial(_filled, path, chosen))
    except BaseException:
        close()
        raise


def _filled(path: Path, table: str, names: Sequence[str]) -> dict[str, int]:
    """Count the cells of some columns that hold anything, whatever it is."""
    if not names:
        return {}
    counts = ", ".join(f"count({_quoted(name)})" for name in names)
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as file:
        found = file.execute(f"SELECT {counts} FROM {_quoted(table)}").fetchone()
    return dict(zip(names, found, strict=True))


def _declared(file: sqlite3.Connection, table: str) -> dict[str, tuple[str, str]]:
    found = {}
    for row in file.execute("SELECT name, type FROM pragma_table_info(?)", (table,)):
        declared = str(row[1]).upper()
        for marks, read, cast in _TYPES:
            if any(mark in declared for mark in marks):
                found[row[0]] = read, cast
                break
        else:
            raise PlanError(
                f"column {row[0]!r} must have a declared type, got "
                f"{declared or 'none'}; declare one, or write the table to Parquet."
            )
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _copy(
    file: sqlite3.Connection,
    table: str,
    types: dict[str, tuple[str, str]],
    target: Any,
) -> None:
    arrow = load("pyarrow")
    schema = arrow.schema([(name, read) for name, (read, _) in types.items()])
    columns = ", ".join(f"{_quoted(n)} {cast}" for n, (_, cast) in types.items())
    casts = (_cast(_quoted(name), cast) for name, (_, cast) in types.items())
    copy = f"INSERT INTO {_NAME} SELECT {', '.join(casts)} FROM undertow_piece"
    target.execute(f"CREATE TEMP TABLE {_NAME} ({columns})")
    file.text_factory = bytes  # which need not be UTF-8
    rows = file.execute(
        f"SELECT {', '.join(map(_quoted, types))} FROM {_quoted(table)}"
    )
    while piece := rows.fetchmany(_PIECE):
        values = zip(*piece, strict=True)
        arrays = [
            _array(arrow, column, field.type)
            for column, field in zip(values, schema, strict=True)
        ]
        target.register("undertow_piece", arrow.table(arrays, schema=schema))
        target.execute(copy)
        target.unregister("undertow_piece")


def _cast(column: str, kind: str) -> str:
    """Return SQL that reads a column as its declared type, times in UTC.

    As a time without a zone, DuckDB 2.0 leaves out the offset of a text that has one.
    As a time with a zone, it fails on offsets of times that are farther than it counts.
    """
    plain = f"TRY_CAST({column} AS {kind})"
    if kind != "TIMESTAMP":
        return plain
    zoned = f"CAST(TRY_CAST({column} AS TIMESTAMPTZ) AS TIMESTAMP)"
    return f"CASE WHEN {plain} BETWEEN {_ZONED} THEN {zoned} ELSE {plain} END"


def _array(arrow: Any, column: Sequence[Any], kind: Any) -> Any:
    """Return a column of cells, missing where one is not of the declared type."""
    alike, cell_of = _CELLS[str(kind)]
    try:
        found = arrow.array(column)
        if str(found.type) in alike:
            return found.cast(kind)
    except (arrow.ArrowException, OverflowError, TypeError):
        pass  # they are not alike, or one is no text
    return arrow.array([cell_of(cell) for cell in column], kind)


def _whole(cell: Any) -> int | None:
    whole = isinstance(cell, int) or (
        isinstance(cell, float) and cell.is_integer() and abs(cell) < _LARGEST
    )
    return int(cell) if whole else None


def _real(cell: Any) -> float | None:
    exact = isinstance(cell, float) or (
        isinstance(cell, int) and abs(cell) <= _LARGEST_EXACT
    )
    return float(cell) if exact else None


def _text(cell: Any) -> str | None:
    try:
        return cell.decode() if isinstance(cell, bytes) else None
    except UnicodeDecodeError:
        return None


_CELLS: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "int64": (("int64", "null"), _whole),
    "double": (("double", "int64", "null"), _real),
    "string": (("binary", "null"), _text),
}
"""For each type what Arrow finds in cells that are all of it, and how to read one."""

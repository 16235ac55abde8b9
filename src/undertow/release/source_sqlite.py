"""SQLite files: copied into DuckDB in pieces, by the declared types of the columns."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
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
# SQLite's own rules of affinity, dates and truth values first; (marks, read as, cast).
_TYPES = (
    (("BOOL",), "int64", "BOOLEAN"),
    (("DATETIME", "TIMESTAMP"), "string", "TIMESTAMP"),
    (("DATE",), "string", "DATE"),
    (("INT",), "int64", "BIGINT"),
    (("CHAR", "CLOB", "TEXT"), "string", "VARCHAR"),
    (("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"), "float64", "DOUBLE"),
)


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
        If there is no such table, a column has no declared type, or a value is not of
        its declared type.
    """
    try:
        file = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        raise PlanError(f"{path.name} must be a readable SQLite file.") from None
    try:
        return _copied(file, path.name, relation, limits)
    except (sqlite3.Error, UnicodeDecodeError):
        raise PlanError(
            f"{path.name} must be a readable SQLite file, got one that is damaged."
        ) from None
    finally:
        file.close()


def _copied(
    file: sqlite3.Connection, name: str, relation: str | None, limits: Limits
) -> Source:
    listed = file.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        " AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
    )
    chosen = only_table([row[0] for row in listed], relation, name)
    types = _declared(file, chosen)
    connection, closing = connect_duckdb(limits)
    try:
        with guarded("duckdb"):
            _copy(file, chosen, types, connection.con)
            lock_duckdb(connection)
            return Source(connection.table(_NAME), "duckdb", closing)
    except BaseException:
        closing()
        raise


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
    target.execute(f"CREATE TEMP TABLE {_NAME} ({columns})")
    rows = file.execute(
        f"SELECT {', '.join(map(_quoted, types))} FROM {_quoted(table)}"
    )
    while piece := rows.fetchmany(_PIECE):
        values = zip(*piece, strict=True)
        arrays = [
            _array(arrow, column, field)
            for column, field in zip(values, schema, strict=True)
        ]
        target.register("undertow_piece", arrow.table(arrays, schema=schema))
        target.execute(f"INSERT INTO {_NAME} SELECT * FROM undertow_piece")
        target.unregister("undertow_piece")


def _array(arrow: Any, column: Any, field: Any) -> Any:
    try:
        return arrow.array(column, type=field.type)
    except (arrow.ArrowException, OverflowError, TypeError):
        raise PlanError(
            f"column {field.name!r} must hold values of its declared type, got another."
        ) from None

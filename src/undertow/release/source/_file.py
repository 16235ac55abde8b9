"""Files as tables: CSV, Parquet, DuckDB and SQLite, read by an embedded DuckDB.

DuckDB is opened without extensions from elsewhere, in UTC, with a memory limit and a
private folder for what does not fit; once the files are known it can touch nothing else
and its settings are locked. SQLite files are copied into it in pieces, by the declared
types of their columns.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from undertow._validate import check_count
from undertow.errors import PlanError, UndertowError
from undertow.release._extras import load
from undertow.release.run._limit import ended_by, private_folder
from undertow.release.source._place import (
    engine_paths,
    folder_columns,
    listed_files,
    plain_name,
    stamp_of,
)
from undertow.release.source._plain_file import (
    copied_parquet,
    misfits,
    open_csv,
    open_parquet,
)
from undertow.release.source.table import (
    Source,
    guarded,
    has_collations,
    is_stored,
    require_own_functions,
)

_ENDINGS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.zst": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
}
_NAME = "undertow_source"
_MOST_MB = 3000
_TABLES = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_catalog = current_database() AND table_schema = current_schema()"
    " ORDER BY table_name"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What DuckDB may use.

    Parameters
    ----------
    memory_mb : int
        Memory.
    threads : int or None
        Threads; None for all.
    """

    memory_mb: int
    threads: int | None = None

    @classmethod
    def of(cls, memory_mb: int | None, threads: int | None) -> Self:
        """Return limits, the memory by default two thirds of the machine's.

        Raises
        ------
        ValueError
            If a limit is not positive.
        """
        if memory_mb is None:
            total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            memory_mb = max(64, min(_MOST_MB, total * 2 // 3 // 10**6))
        memory_mb = check_count(memory_mb, "memory_mb")
        return cls(
            memory_mb, None if threads is None else check_count(threads, "threads")
        )


def connect_duckdb(
    limits: Limits, database: str | None = None
) -> tuple[Any, Callable[[], None]]:
    """Open DuckDB, in memory or on a database file that is only read.

    Returns
    -------
    Ibis backend
        The connection.
    callable
        Closes it and removes the folder for spilled data.
    """
    ibis = load("ibis")
    load("duckdb")
    spill, remove = private_folder()
    settings: dict[str, Any] = {
        "memory_limit": f"{limits.memory_mb}MB",
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "preserve_insertion_order": False,
    }
    if limits.threads is not None:
        settings["threads"] = limits.threads
    try:
        connection = ibis.duckdb.connect(
            database or ":memory:", read_only=database is not None, **settings
        )
        ended_by(lambda since: connection.con.interrupt())
        connection.raw_sql("SET TimeZone = 'UTC'")
    except BaseException:
        remove()
        raise

    def closing() -> None:
        try:
            connection.disconnect()
        finally:
            remove()

    return connection, closing


def lock_duckdb(connection: Any, files: Sequence[Path] = ()) -> None:
    """Shut DuckDB off from all files but these, and lock its settings."""
    # By its name it opens a file, and by its pattern it looks for it.
    names = [*map(str, files), *engine_paths(connection, files)] if files else []
    allowed = ", ".join(map(_quoted_text, dict.fromkeys(names)))
    connection.raw_sql(f"SET allowed_paths = [{allowed}]")
    connection.raw_sql("SET enable_external_access = false")
    connection.raw_sql("SET lock_configuration = true")


def _quoted_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def open_file(
    text: str,
    relation: str | None,
    *,
    root: Path,
    form: str | None,
    types: Mapping[str, str] | None = None,
    limits: Limits,
) -> Source:
    """Open a file, several files of one kind, or a table in a database file.

    Parameters
    ----------
    text : str
        A path, a pattern such as ``visits/*.parquet``, a folder of Parquet files, or
        ``file.duckdb#table``.
    relation : str or None
        The table of a database file.
    root : Path
        Where relative paths start.
    form : str or None
        The format, where the name does not end with it.
    types : mapping of str to str, optional
        Types of the columns of a CSV file.
    limits : Limits
        What DuckDB may use.

    Raises
    ------
    PlanError
        If there is no such file or it is not of its format.
    """
    path, name = text, relation
    if relation is None and "#" in text and not (root / text).exists():
        path, _, name = text.rpartition("#")
    files = listed_files(path, root, form)
    kind = form or _format(files[0])
    if kind in ("csv", "parquet") and name is not None:
        raise PlanError(f"relation must be left out for a {kind} file, got {name!r}.")
    if kind != "csv" and types:
        raise PlanError(
            f"source.types must be left out for a {kind} file, which has its own, got "
            "some."
        )
    if kind in ("csv", "parquet"):
        stated = folder_columns(files, path, root) if kind == "parquet" else ()
        return _open_plain(files, kind, types=types or {}, stated=stated, limits=limits)
    if len(files) > 1:
        raise PlanError(f"table must be one {kind} file, got several.")
    if kind == "sqlite" or _is_sqlite(files[0]):
        return open_sqlite(files[0], name, limits=limits)
    return _open_database(files[0], name, limits)


def _format(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(".db"):
        return "sqlite" if _is_sqlite(path) else "duckdb"
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending):
            return kind
    raise PlanError(
        f"table must end with .csv, .parquet, .duckdb or .sqlite, got {path.name!r}; "
        "say its format."
    )


def _is_sqlite(path: Path) -> bool:
    """Ask SQLite: to read and close the file would give up this process's locks."""
    if not os.access(path, os.R_OK):
        raise PlanError(f"{path.name} must be readable, got no permission.")
    if path.stat().st_size == 0:
        return False
    try:
        address = f"{path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=0)) as file:
            file.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as fault:
        return fault.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    return True


def _open_plain(
    files: list[Path],
    kind: str,
    *,
    types: Mapping[str, str],
    stated: tuple[str, ...],
    limits: Limits,
) -> Source:
    before = stamp_of(files)
    connection, closing = connect_duckdb(limits)
    folder = _folder_of(connection)
    try:
        if kind == "csv":
            table, read = open_csv(connection, files, types=types, folder=folder)
        else:
            read = [plain_name(f, folder, at) for at, f in enumerate(files)]
            table = open_parquet(connection, read, stated=stated)
        lock_duckdb(connection, read)
        text = connection.table(_NAME) if kind == "csv" else None
    except UndertowError:
        closing()
        raise
    except Exception:
        closing()
        raise PlanError(
            f"{files[0].name} must be a readable {kind} file, got one that is not: "
            "check its format, encoding (UTF-8) and columns."
        ) from None
    except BaseException:
        closing()
        raise
    source = Source(
        table,
        "duckdb",
        closing,
        partial(stamp_of, files),
        opened=before,
        written=text,
        lines=kind == "csv",
    )
    if kind == "csv":
        source.misfits = partial(misfits, files)
    if kind == "parquet":
        source.opening_copy = partial(
            _open_copied, files, stated, table.schema(), folder, limits
        )
    return source


def _open_copied(
    files: list[Path],
    stated: tuple[str, ...],
    schema: Any,
    folder: Path,
    limits: Limits,
) -> Source | None:
    """Open copies of Parquet files; None if they would have columns of other types."""
    connection, closing = connect_duckdb(limits)
    try:
        with guarded("duckdb"):
            copies = copied_parquet(files, folder)
            table = open_parquet(connection, copies, stated=stated)
            lock_duckdb(connection, copies)
    except BaseException:
        closing()
        raise
    if table.schema() != schema:
        closing()
        return None
    return Source(table, "duckdb", closing)


def _folder_of(connection: Any) -> Path:
    """Return the private folder of a connection, which is removed with it."""
    [[folder]] = connection.con.execute(
        "SELECT current_setting('temp_directory')"
    ).fetchall()
    return Path(folder)


def _open_database(path: Path, relation: str | None, limits: Limits) -> Source:
    try:
        connection, closing = connect_duckdb(limits, str(path))
    except Exception:
        raise PlanError(
            f"{path.name} must be a DuckDB file that is not open elsewhere, got one "
            "that cannot be read."
        ) from None
    try:
        with guarded("duckdb"):
            listed = connection.raw_sql(_TABLES).fetchall()
            chosen = only_table([row[0] for row in listed], relation, path.name)
            table = connection.table(chosen)
            require_own_functions(table, "duckdb")
            lock_duckdb(connection, [path])
            stored = is_stored(table, "duckdb")
            collated = has_collations(table, "duckdb")
        return Source(table, "duckdb", closing, stored=stored, collated=collated)
    except BaseException:
        closing()
        raise


def only_table(names: Sequence[str], relation: str | None, where: str) -> str:
    """Return the table asked for, or the only one."""
    if relation is None and len(names) == 1:
        return names[0]
    if relation is None:
        raise PlanError(
            f"relation must name a table of {where}, got nothing and {len(names)} "
            "tables; write file#table or set relation."
        )
    if relation not in names:
        raise PlanError(f"relation must name a table of {where}, got {relation!r}.")
    return relation


# SQLite files: copied into DuckDB in pieces, by the declared types of the columns.

_PIECE = 50_000
_LARGEST, _LARGEST_EXACT = 2.0**63, 2**53
# SQLite's own rules of affinity, dates and truth values first; (marks, read as, cast).
_SQLITE_TYPES = (
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
        return _copied_sqlite(file, path, relation, limits)
    except (sqlite3.Error, UnicodeDecodeError) as fault:
        busy = getattr(fault, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        got = "written to by others, try again" if busy else "damaged"
        raise PlanError(
            f"{path.name} must be a readable SQLite file, got one that is {got}."
        ) from None
    finally:
        file.close()


def _copied_sqlite(
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
            _copy_sqlite(file, chosen, types, connection.con)
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
    counts = ", ".join(f"count({_quoted_name(name)})" for name in names)
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as file:
        found = file.execute(f"SELECT {counts} FROM {_quoted_name(table)}").fetchone()
    return dict(zip(names, found, strict=True))


def _declared(file: sqlite3.Connection, table: str) -> dict[str, tuple[str, str]]:
    found = {}
    for row in file.execute("SELECT name, type FROM pragma_table_info(?)", (table,)):
        declared = str(row[1]).upper()
        for marks, read, cast in _SQLITE_TYPES:
            if any(mark in declared for mark in marks):
                found[row[0]] = read, cast
                break
        else:
            raise PlanError(
                f"column {row[0]!r} must have a declared type, got "
                f"{declared or 'none'}; declare one, or write the table to Parquet."
            )
    return found


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _copy_sqlite(
    file: sqlite3.Connection,
    table: str,
    types: dict[str, tuple[str, str]],
    target: Any,
) -> None:
    arrow = load("pyarrow")
    schema = arrow.schema([(name, read) for name, (read, _) in types.items()])
    columns = ", ".join(f"{_quoted_name(n)} {cast}" for n, (_, cast) in types.items())
    casts = (_cast(_quoted_name(name), cast) for name, (_, cast) in types.items())
    copy = f"INSERT INTO {_NAME} SELECT {', '.join(casts)} FROM undertow_piece"
    target.execute(f"CREATE TEMP TABLE {_NAME} ({columns})")
    file.text_factory = bytes  # which need not be UTF-8
    rows = file.execute(
        f"SELECT {', '.join(map(_quoted_name, types))} FROM {_quoted_name(table)}"
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

"""Files as tables: CSV, Parquet, DuckDB and SQLite, read by an embedded DuckDB.

DuckDB is opened without extensions from elsewhere, in UTC, with a memory limit and a
private folder for what does not fit; once the files are known it can touch nothing else
and its settings are locked.
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
from undertow.release.leftovers import private_folder
from undertow.release.limits import ended_by
from undertow.release.source import Source, guarded
from undertow.release.source_collated import has_collations
from undertow.release.source_csv import open_csv
from undertow.release.source_lines import misfits
from undertow.release.source_own import require_own_functions
from undertow.release.source_parquet import copied_parquet, open_parquet
from undertow.release.source_paths import (
    engine_paths,
    folder_columns,
    listed_files,
    plain_name,
    stamp_of,
)
from undertow.release.source_stored import is_stored

__all__ = ["Limits", "connect_duckdb", "lock_duckdb", "only_table", "open_file"]

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
    allowed = ", ".join(map(_quoted, dict.fromkeys(names)))
    connection.raw_sql(f"SET allowed_paths = [{allowed}]")
    connection.raw_sql("SET enable_external_access = false")
    connection.raw_sql("SET lock_configuration = true")


def _quoted(text: str) -> str:
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
        from undertow.release.source_sqlite import open_sqlite

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

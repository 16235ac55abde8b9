"""Connections to the database of a ledger, and how they are set up.

A charge that is committed must stay committed: on the disk when the commit returns, in
the file that others see, and after everything that was committed before.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from undertow.ledger.still import files_of, names_of, sqlite_uri

__all__ = ["FILES", "reading_engine", "writing_engine"]

FILES = "undertow_files"
"""Where a connection keeps the names of the files it has opened, and which they are."""

_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)


def writing_engine(url: URL, path: Path | None, *, patience_s: float) -> Engine:
    """Return an engine that reads and writes.

    Parameters
    ----------
    url : URL
        Of a server, or of a SQLite file.
    path : Path or None
        The whole path of the file: SQLite would take a name that starts with ``file:``
        for an address.
    patience_s : float
        How long a writer to a file waits for another, in seconds.
    """
    if path is None:
        # A writer must see what was committed while it waited for the one before it.
        level = "READ COMMITTED"
        server = create_engine(url, pool_pre_ping=True, isolation_level=level)
        event.listen(server, "connect", _prepare_server)
        return server
    file = url.set(database=str(path), query={})
    engine = create_engine(file, connect_args={"timeout": patience_s})

    def note(_: Any, record: Any) -> None:
        names = names_of(path)
        record.info[FILES] = names, files_of(*names)

    event.listen(engine, "connect", _prepare)  # which opens the journal
    event.listen(engine, "connect", note)
    event.listen(engine, "begin", _begin)
    return engine


def reading_engine(path: Path, *, still: bool = False, patience_s: float) -> Engine:
    """Return an engine that cannot write, and connects anew for each transaction.

    Parameters
    ----------
    path : Path
        The file.
    still : bool
        Whether nobody writes to it meanwhile.
    patience_s : float
        How long it waits for a writer, in seconds.
    """

    def connect() -> sqlite3.Connection:
        where = sqlite_uri(path, still=still)
        return sqlite3.connect(
            where, uri=True, timeout=patience_s, check_same_thread=False
        )

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _: Any) -> None:
    """Take transactions in our own hands; a commit is on the disk when it returns."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA trusted_schema = OFF")
    cursor.close()


def _prepare_server(connection: Any, _: Any) -> None:
    """Have a commit on the disk when it returns, where the server does not ask for it.

    A charge that a crash of the server takes back would have been released for nothing.
    """
    cursor = connection.cursor()
    cursor.execute(_DURABLE)
    cursor.close()
    connection.commit()


def _begin(link: Connection) -> None:
    writes = link.get_execution_options().get("undertow_writes", False)
    link.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

"""The tables of a ledger: rows in and out, and older schemas brought up to date.

A migration takes a copy of the file first, and runs in one transaction.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    func,
    insert,
    inspect,
    select,
    type_coerce,
    update,
)
from sqlalchemy.types import NullType

from undertow.errors import LedgerError, MissingLedger
from undertow.ledger._place import Place
from undertow.ledger.record import Entry, Head, Kind, instant, read_entry, write_entry

# The tables of a ledger, as the latest migration leaves them.

LATEST = 3
"""The schema this version of the package writes; older ones are migrated."""

METADATA = MetaData()

terms = Table(
    "ledger_terms",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)

head = Table(
    "ledger_head",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("time", String(40), nullable=False),
)

entries = Table(
    "ledger_entries",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("key", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)

outputs = Table(
    "ledger_outputs",
    METADATA,
    Column("charge", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

version = Table("ledger_version", METADATA, Column("version_num", String(32)))


_CHUNK = 2000
_KINDS = ("charge", "output", "failure")
# Made once: putting a statement together costs more than running it.
_HEAD = select(head.c.count, head.c.hash, head.c.time)
_LOCK = _HEAD.with_for_update()
_ROW = (entries.c.number, entries.c.kind, entries.c.key, entries.c.body, entries.c.hash)
_BY_KEY = select(*_ROW).where(
    entries.c.kind.in_(_KINDS), entries.c.key == bindparam("of")
)
CONTENT = type_coerce(outputs.c.content, NullType())
"""A stored output as the driver gives it: an edited one may be of another type."""
_APPEND = insert(entries).values(
    {name: bindparam(name) for name in ("number", "kind", "key", "body", "hash")}
)
_MOVE = update(head).values(
    count=bindparam("new_count"), hash=bindparam("new_hash"), time=bindparam("now")
)


def read_terms(link: Connection) -> tuple[str, str]:
    """Return the text of the terms and the hash kept with it, compared by nobody."""
    text, kept = _only(link.execute(select(terms.c.body, terms.c.hash)).all(), "terms")
    if not isinstance(text, str):
        raise LedgerError(
            "the terms of a ledger must be a text, got none; it was edited: restore a "
            "copy."
        )
    return text, kept


def read_head(link: Connection) -> Head:
    """Return where the chain ends."""
    count, digest = _only(link.execute(_HEAD).all(), "head")[:2]
    if not (isinstance(count, int) and isinstance(digest, str)):
        raise LedgerError(
            "the head of a ledger must be a number and a hash, got others; it was "
            "edited: restore a copy."
        )
    return Head(count, digest)


def read_entries(
    link: Connection, *, after: int = 0, limit: int | None = None
) -> Iterator[tuple[Entry, str]]:
    """Return entries in order, each with the hash kept beside it.

    Parameters
    ----------
    link : Connection
        In a transaction.
    after : int
        The number before the first entry wanted.
    limit : int, optional
        The most entries to return.

    Raises
    ------
    LedgerError
        If a row is no entry, or not the one that was written there.
    """
    query = (
        select(*_ROW)
        .where(entries.c.number > after)
        .order_by(entries.c.number)
        .limit(limit)
    )
    for row in rows_of(link, query):
        yield _entry_of(row), row[4]


def rows_of(link: Connection, query: Any, *, at_once: int = _CHUNK) -> Iterator[Any]:
    """Return the rows of a query, some at a time."""
    options = {"yield_per": at_once}
    with link.execute(query, execution_options=options) as rows:
        yield from rows


def read_key(link: Connection, key: str) -> dict[str, Entry]:
    """Return the entries about one charge, by their kind."""
    rows = link.execute(_BY_KEY, {"of": key})
    found: dict[str, Entry] = {entry.kind: entry for entry in map(_entry_of, rows)}
    if found and "charge" not in found:
        raise LedgerError(
            f"key {key[:80]!r} must have a charge, got other entries alone; it was "
            "edited: run undertow ledger verify."
        )
    return found


def _entry_of(row: Sequence[Any]) -> Entry:
    """Return the entry of a row, if every column is as it was written."""
    number, kind, key, body, kept = row
    entry = read_entry(body)
    if (entry.number, entry.kind, entry.key, entry.hash) != (number, kind, key, kept):
        raise LedgerError(
            f"entry {str(number)[:20]} must be as it was written, got an edited one; "
            "run undertow ledger verify and restore a copy."
        )
    return entry


def count_kinds(link: Connection) -> dict[str, int]:
    """Return how many entries there are of each kind."""
    query = select(entries.c.kind, func.count()).group_by(entries.c.kind)
    return {kind: number for kind, number in link.execute(query)}


def read_output(link: Connection, charge: int) -> bytes | None:
    """Return the stored bytes of a charge, or None."""
    query = select(CONTENT).where(outputs.c.charge == charge)
    return stored_bytes(link.execute(query).scalar_one_or_none())


def stored_bytes(content: object) -> bytes | None:
    """Return what a row of outputs holds; None if that is no bytes."""
    return bytes(content) if isinstance(content, bytes | memoryview) else None


class Writer:
    """One writing transaction; making it waits for every other writer.

    Parameters
    ----------
    link : Connection
        In a writing transaction.
    """

    def __init__(self, link: Connection) -> None:
        self._link = link
        # SQLite has locked the file already; elsewhere the head row is the lock.
        count, kept, last = _only(link.execute(_LOCK).all(), "head")
        self.head, self._last = Head(count, kept), str(last)

    def append(self, kind: Kind, key: str, content: Mapping[str, Any]) -> Entry:
        """Add one entry and move the head."""
        now = instant(datetime.now(UTC))
        text, entry = write_entry(
            kind, key, content, after=self.head, time=now, last=self._last
        )
        self._link.execute(
            _APPEND,
            {
                "number": entry.number,
                "kind": kind,
                "key": key,
                "body": text,
                "hash": entry.hash,
            },
        )
        self.head, self._last = Head(entry.number, entry.hash), now
        self._link.execute(
            _MOVE, {"new_count": entry.number, "new_hash": entry.hash, "now": now}
        )
        return entry

    def store(self, charge: int, content: bytes) -> None:
        """Keep the bytes of an output."""
        self._link.execute(insert(outputs), {"charge": charge, "content": content})


def _only(rows: Sequence[Any], what: str) -> tuple[Any, ...]:
    """Return the one row there is of terms or of the head."""
    if len(rows) != 1:
        got = "more than one" if rows else "none"
        raise LedgerError(
            f"a ledger must have its {what}, got {got}; it was edited: restore a copy."
        )
    return tuple(rows[0])


# From an older schema to the present one: a copy first, then one transaction.


def schema_of(link: Connection) -> int | None:
    """Return the schema of the database; None where it holds no ledger."""
    if not inspect(link).has_table(version.name):
        return None
    match link.execute(select(version.c.version_num)).scalars().all():
        case [str(found)] if found.isdecimal() and str(int(found)) == found != "0":
            return int(found)
    return None


def upgrade_schema(link: Connection, *, to: int = LATEST) -> None:
    """Run the migrations that are missing, in the caller's transaction."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(Path(__file__).parent / "migrations"))
    context = MigrationContext.configure(link, opts={"version_table": version.name})
    missing = list(script.iterate_revisions(str(to), context.get_current_revision()))
    with Operations.context(context):
        for revision in reversed(missing):
            revision.module.upgrade()
    context.stamp(script, str(to))


def migrate(place: Place) -> None:
    """Bring a ledger to the present schema, a copy of the file kept beside it.

    A ledger of the present schema is not written to. One of an older schema is, even
    where it is only looked at.

    Raises
    ------
    LedgerError
        If the database holds no ledger, or one of a newer version of the package.

    Notes
    -----
    The copy is taken and the migrations run while the writer's lock is held, so no
    charge falls between them; if one fails, the ledger is as it was.
    """
    with place.reading() as link:
        found = _require_known(schema_of(link), place)
    if found == LATEST:
        return
    writer = Place(place.url) if place.read_only else place
    try:
        with writer.writing() as link:
            found = _require_known(schema_of(link), writer)
            if found < LATEST:
                with _copied(writer, schema=found):
                    upgrade_schema(link)
    finally:
        if writer is not place:
            writer.close()


def _require_known(found: int | None, place: Place) -> int:
    if found is None:
        raise MissingLedger(
            f"{place.name} must hold a ledger, got none; make one with undertow "
            "ledger init."
        )
    if found > LATEST:
        raise LedgerError(
            f"{place.name} must be a ledger of schema {LATEST} or older, got schema "
            f"{found}; update undertow."
        )
    return found


@contextmanager
def _copied(place: Place, *, schema: int) -> Iterator[None]:
    """Keep a copy beside the ledger, unless what is done meanwhile fails."""
    copy = None if place.path is None else _copy(place, schema=schema)
    try:
        yield
    except BaseException:
        if copy is not None:  # the ledger is as it was
            copy.unlink(missing_ok=True)
        raise


def _copy(place: Place, *, schema: int) -> Path:
    """Return where a copy was made; a server has its own backups."""
    assert place.path is not None
    target = Path(f"{place.path}.schema{schema}.bak")
    number = 1
    while target.exists():
        number += 1
        target = Path(f"{place.path}.schema{schema}.{number}.bak")
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with (
            closing(sqlite3.connect(place.path)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
    except (OSError, sqlite3.Error):
        target.unlink(missing_ok=True)
        raise LedgerError(
            f"{place.name} must be copied before it is brought to a newer schema, got "
            f"no copy at {target}; make the folder writable."
        ) from None
    return target

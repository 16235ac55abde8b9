"""Rows in and out of the database: the head, the entries, the stored outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Connection,
    bindparam,
    func,
    insert,
    select,
    update,
)

from undertow.errors import LedgerError
from undertow.ledger.record import Entry, Head, Kind, instant, read_entry, write_entry
from undertow.ledger.tables import entries, head, outputs, terms

__all__ = [
    "Writer",
    "count_kinds",
    "read_entries",
    "read_head",
    "read_key",
    "read_output",
    "read_terms",
    "rows_of",
]

_CHUNK = 2000
_KINDS = ("charge", "output", "failure")
# Made once: putting a statement together costs more than running it.
_HEAD = select(head.c.count, head.c.hash, head.c.time)
_LOCK = _HEAD.with_for_update()
_BY_KEY = select(entries.c.body, entries.c.hash).where(
    entries.c.kind.in_(_KINDS), entries.c.key == bindparam("of")
)
_APPEND = insert(entries).values(
    {name: bindparam(name) for name in ("number", "kind", "key", "body", "hash")}
)
_MOVE = update(head).values(
    count=bindparam("new_count"), hash=bindparam("new_hash"), time=bindparam("now")
)


def read_terms(link: Connection) -> tuple[str, str]:
    """Return the text of the terms and the hash kept with it."""
    row = link.execute(select(terms.c.body, terms.c.hash)).one_or_none()
    if row is None:
        raise LedgerError(
            "a ledger must have its terms, got none; it was edited: restore a copy."
        )
    return row[0], row[1]


def read_head(link: Connection) -> Head:
    """Return where the chain ends."""
    return Head(*_required(link.execute(_HEAD).one_or_none())[:2])


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
        If a row is no entry.
    """
    query = (
        select(entries.c.body, entries.c.hash)
        .where(entries.c.number > after)
        .order_by(entries.c.number)
        .limit(limit)
    )
    for body, kept in rows_of(link, query):
        yield read_entry(body), kept


def rows_of(link: Connection, query: Any, *, at_once: int = _CHUNK) -> Iterator[Any]:
    """Return the rows of a query, some at a time."""
    options = {"yield_per": at_once}
    with link.execute(query, execution_options=options) as rows:
        yield from rows


def read_key(link: Connection, key: str) -> dict[str, Entry]:
    """Return the entries about one charge, by their kind."""
    found: dict[str, Entry] = {}
    for body, kept in link.execute(_BY_KEY, {"of": key}):
        entry = read_entry(body)
        if entry.hash != kept:
            raise LedgerError(
                f"entry {entry.number} must be as it was written, got another text; "
                "run undertow ledger verify."
            )
        found[entry.kind] = entry
    return found


def count_kinds(link: Connection) -> dict[str, int]:
    """Return how many entries there are of each kind."""
    query = select(entries.c.kind, func.count()).group_by(entries.c.kind)
    return {kind: number for kind, number in link.execute(query)}


def read_output(link: Connection, charge: int) -> bytes | None:
    """Return the stored bytes of a charge, or None."""
    query = select(outputs.c.content).where(outputs.c.charge == charge)
    content = link.execute(query).scalar_one_or_none()
    return None if content is None else bytes(content)


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
        count, kept, self._last = _required(link.execute(_LOCK).one_or_none())
        self.head = Head(count, kept)

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


def _required(row: Any) -> tuple[Any, ...]:
    if row is None:
        raise LedgerError(
            "a ledger must have its head, got none; it was edited: restore a copy."
        )
    return tuple(row)

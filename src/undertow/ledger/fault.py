"""Whether a ledger is as it was written: every row, their order, and the head.

Rows are checked by their hashes. What is not a row can still be changed: without its
triggers a table can be edited by accident, with others a charge may be undone by the
database itself, and a view in the place of a table can leave rows out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, text

from undertow.errors import LedgerError, UndertowError
from undertow.ledger._book import Book
from undertow.ledger._database import (
    CONTENT,
    METADATA,
    entries,
    head,
    migrate,
    outputs,
    read_head,
    read_terms,
    rows_of,
    stored_bytes,
    terms,
)
from undertow.ledger._database import (
    head as head_table,
)
from undertow.ledger._place import place_of
from undertow.ledger.migrations.append_only import trigger_texts
from undertow.ledger.record import (
    Entry,
    Head,
    Terms,
    digest,
    loss_to_document,
    read_entry,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a ledger that is not as it was written.

    Parameters
    ----------
    number : int or None
        The entry it was found at; None for the terms and the head.
    what : str
        One sentence.
    """

    number: int | None
    what: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fault as a record."""
        return {"number": self.number, "what": self.what}


def verify_ledger(
    address: str | os.PathLike[str], *, head: str | None = None
) -> list[Fault]:
    """Check a ledger that may be too damaged to open; it need not be writable.

    Parameters
    ----------
    address : str or path
        Where it is.
    head : str, optional
        A hash kept elsewhere, that must still be in the chain.

    Raises
    ------
    LedgerError
        If there is no ledger, or it cannot be read at all.
    """
    place = place_of(address, read_only=True)
    place.require_file()
    try:
        migrate(place)
        with place.reading() as link:
            return faults_of(link, head=head)
    finally:
        place.close()


def faults_of(link: Connection, *, head: str | None = None) -> list[Fault]:
    """Return every fault of a ledger, in the order of the chain.

    Parameters
    ----------
    link : Connection
        In a reading transaction.
    head : str, optional
        A hash kept elsewhere, that must still be in the chain.

    Notes
    -----
    Who can rewrite the whole database can write a consistent one; only a hash kept
    elsewhere shows that. Anything less -- an edited, deleted, inserted or reordered
    row, edited terms, another head or time of it, another output, a table, trigger or
    index that is not as it was made -- is found.
    """
    witness = None if head is None else _checked_hash(head)
    missing = [Fault(None, what) for what in missing_tables(link)]
    if missing:
        return missing
    try:
        text, kept = read_terms(link)
        anchor = read_head(link)
    except LedgerError as fault:
        return [Fault(None, str(fault))]
    walk = _Walk(text, kept)
    for row in _rows(link):
        walk.step(*row)
    faults = walk.finish(anchor, witness)
    faults += _output_faults(link, walk.stored)
    faults = faults or _time_faults(link, walk, text) + _loss_faults(walk, text)
    # Who edits rows takes the guards away first: the rows say more.
    return faults or [Fault(None, what) for what in guard_faults(link)]


def _checked_hash(head: str) -> str:
    """Return a hash as the ledger writes it; another text is a mistake, no fault."""
    found = head.strip().lower()
    if len(found) != 64 or set(found) - set("0123456789abcdef"):
        raise LedgerError(
            "head must be a hash of 64 hexadecimal digits, as undertow ledger show "
            f"prints it, got {head[:80]!r}."
        )
    return found


def _rows(link: Connection) -> Iterator[tuple[int, str, str, str, str]]:
    query = select(
        entries.c.number, entries.c.kind, entries.c.key, entries.c.body, entries.c.hash
    ).order_by(entries.c.number)
    for row in rows_of(link, query):
        yield row[0], row[1], row[2], row[3], row[4]


class _Walk:
    """One pass over the chain."""

    def __init__(self, text: str, kept: str) -> None:
        self.faults: list[Fault] = []
        self.head = Head(0, digest(text))
        self.seen = {self.head.hash}
        self.charges: list[Entry] = []
        self.stored: dict[int, Entry] = {}
        self._keys: dict[str, int] = {}
        self._closed: set[int] = set()
        self.time: str | None = None
        if kept != self.head.hash:
            self._say(None, "the terms must be as they were agreed, got edited ones.")

    def step(self, number: int, kind: str, key: str, body: str, kept: str) -> None:
        """Look at one row."""
        if not isinstance(number, int):  # the table was made anew, without its rules
            self._say(None, "an entry must have a number, got none.")
            number = self.head.count + 1
        if number != self.head.count + 1:
            missing = self.head.count + 1
            self._say(number, f"entry {missing} must be in its place, got none.")
        try:
            entry = read_entry(body)
        except LedgerError:
            self._say(number, f"entry {number} must be readable, got another text.")
            self.head = Head(number, kept)
            return
        self.time = entry.time
        self._compare(entry, number=number, kind=kind, key=key, kept=kept)
        if entry.hash != kept:
            self._say(number, f"entry {number} must be as written, got an edited one.")
        elif entry.body.get("previous") != self.head.hash:
            self._say(
                number, f"entry {number} must follow the one before it, got a gap."
            )
        self._place(entry)
        self.head = Head(number, entry.hash)
        self.seen.add(entry.hash)

    def finish(self, anchor: Head, witness: str | None) -> list[Fault]:
        """Compare the end with the head, and with a hash kept elsewhere."""
        if anchor != self.head:
            self._say(
                None,
                f"the head must be entry {self.head.count}, got entry {anchor.count} "
                "or another hash: entries were removed or added.",
            )
        if witness is not None and witness not in self.seen:
            self._say(
                None,
                "the head kept elsewhere must be in the chain, got a ledger without "
                "it: it was replaced or rewritten.",
            )
        return self.faults

    def _compare(
        self, entry: Entry, *, number: int, kind: str, key: str, kept: str
    ) -> None:
        if (entry.number, entry.kind, entry.key) != (number, kind, key):
            self._say(number, f"entry {number} must agree with its row, got another.")

    def _place(self, entry: Entry) -> None:
        """Check what an entry says of a charge."""
        at = entry.number
        if entry.kind == "charge":
            if entry.key in self._keys:
                self._say(at, f"entry {at} must have a key of its own, got one twice.")
            self._keys[entry.key] = at
            self.charges.append(entry)
            return
        charge = entry.body.get("charge")
        if charge is None or self._keys.get(entry.key) != charge:
            self._say(at, f"entry {at} must be about an earlier charge, got none.")
        elif charge in self._closed:
            self._say(at, f"entry {at} must be about an open charge, got a closed one.")
        else:
            self._closed.add(charge)
            if entry.kind == "output":
                self.stored[charge] = entry

    def _say(self, number: int | None, what: str) -> None:
        self.faults.append(Fault(number, what))


def _time_faults(link: Connection, walk: _Walk, text: str) -> list[Fault]:
    """Compare the time of the head, by which clocks that went back are told."""
    known = {walk.time} if walk.time is not None else {_created(text), ""}
    # A ledger without entries that was migrated from schema 1 has no time.
    if link.execute(select(head_table.c.time)).scalar_one() in known:
        return []
    return [
        Fault(None, "the time of the head must be that of the last entry, got another.")
    ]


def _created(text: str) -> str | None:
    try:
        return Terms.from_text(text).created
    except LedgerError:
        return None


def _output_faults(link: Connection, stored: dict[int, Entry]) -> list[Fault]:
    faults, present = [], set()
    query = select(outputs.c.charge, CONTENT).order_by(outputs.c.charge)
    for charge, raw in rows_of(link, query, at_once=1):
        present.add(charge)
        entry, content = stored.get(charge), stored_bytes(raw)
        written = None if entry is None else entry.body.get("sha256")
        if content is None or digest(content) != written:
            faults.append(
                Fault(
                    charge,
                    f"the output of entry {charge} must be as stored, got another.",
                )
            )
    missing = sorted(set(stored) - present)
    faults += [
        Fault(charge, f"the output of entry {charge} must be there, got none.")
        for charge in missing
    ]
    return faults


def _loss_faults(walk: _Walk, text: str) -> list[Fault]:
    """Add up all charges again and compare with the losses the last one states."""
    if not walk.charges:
        return []
    try:
        terms = Terms.from_text(text)
        book = Book(terms, digest(text))
        for entry in walk.charges:
            book.enter(entry)
        after = book.after()
        last = walk.charges[-1]
        stated = dict(last.body["losses"])
    except (UndertowError, ArithmeticError, KeyError, TypeError, ValueError):
        return [Fault(None, "the charges must be readable, got one that is not.")]
    faults = []
    for limit in terms.limits:
        if stated.get(limit.name) != loss_to_document(after[limit.name]):
            what = (
                f"the loss at {limit.name} must be the sum of the charges, got another."
            )
            faults.append(Fault(last.number, what))
        if not after[limit.name].within(limit.budget):
            faults.append(Fault(last.number, f"the {limit.name} budget is overspent."))
    return faults


# Whether the tables of a ledger are guarded as its migrations left them.
#
# Rows are checked by their hashes. What is not a row can still be changed: without its
# triggers a table can be edited by accident, with others a charge may be undone by the
# database itself, and a view in the place of a table can leave rows out.

_State = tuple[set[str], Mapping[str, str], Mapping[str, str]]
"""The tables, the guards that are there, and those that should be."""
_GUARDED = ("ledger_entries", "ledger_outputs", "ledger_terms")
_INDEX = "ledger_entries_kind_key"
_INDEX_TEXT = f"CREATE UNIQUE INDEX {_INDEX} ON ledger_entries (kind, key)"
_SQLITE = text("SELECT type, name, tbl_name, sql FROM sqlite_master")
_RELATIONS = text(
    "SELECT relname, relkind::text FROM pg_class WHERE relname LIKE 'ledger%'"
    " AND relnamespace = CAST(current_schema() AS regnamespace)"
)
_TRIGGERS = text(
    "SELECT t.tgname, t.tgenabled::text FROM pg_trigger t JOIN pg_class c"
    " ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND c.relname LIKE 'ledger%'"
    " AND c.relnamespace = CAST(current_schema() AS regnamespace)"
)


def missing_tables(link: Connection) -> list[str]:
    """Return a sentence for each table that is not there, or is a view.

    Parameters
    ----------
    link : Connection
        In a reading transaction.
    """
    tables, _, _ = _state(link)
    missing = sorted(set(METADATA.tables) - tables)
    return [f"the table {name} must be there, got none." for name in missing]


def guard_faults(link: Connection) -> list[str]:
    """Return a sentence for each guard that is not as it was made.

    Guards are the triggers that refuse changes, the index that makes keys unique, and
    the numbers of the rows there is one of.

    Parameters
    ----------
    link : Connection
        In a reading transaction, where no table is missing.
    """
    _, found, expected = _state(link)
    faults = _page_faults(link)
    faults += [
        f"the guard {name} must be as it was made, got "
        f"{'another' if name in found else 'none'}."
        for name in sorted(expected)
        if found.get(name) != expected[name]
    ]
    faults += [
        f"a ledger must have its own guards alone, got {name[:60]!r}."
        for name in sorted(set(found) - set(expected))
    ]
    return faults + [
        f"the row of {table.name} must be number 1, got another."
        for table in (head, terms)
        if link.execute(select(table.c.id)).scalars().all() != [1]
    ]


def _page_faults(link: Connection) -> list[str]:
    """Say whether an index leaves out rows: charges are looked up in one."""
    if link.dialect.name != "sqlite":
        return []
    found = link.exec_driver_sql("PRAGMA integrity_check(1)").scalars().all()
    return [] if found == ["ok"] else ["the file must be whole, got a damaged one."]


def _state(link: Connection) -> _State:
    return (_of_sqlite if link.dialect.name == "sqlite" else _of_postgresql)(link)


def _of_sqlite(link: Connection) -> _State:
    rows = link.execute(_SQLITE).all()
    tables = {name for kind, name, _, _ in rows if kind == "table"}
    found = {
        str(name): _plain(str(made))
        for kind, name, table, made in rows
        if name == _INDEX or (kind == "trigger" and table in METADATA.tables)
    }
    made = {name: t for table in _GUARDED for name, t in trigger_texts(table).items()}
    expected = {name: _plain(t) for name, t in made.items()}
    return tables, found, {**expected, _INDEX: _INDEX_TEXT}


def _plain(made: str) -> str:
    """Return a statement without quotes and line breaks, which mean nothing here."""
    return " ".join(made.replace('"', "").split())


def _of_postgresql(link: Connection) -> _State:
    relations = {str(name): str(kind) for name, kind in link.execute(_RELATIONS)}
    tables = {name for name, kind in relations.items() if kind == "r"}
    found = {str(name): str(state) for name, state in link.execute(_TRIGGERS)}
    verbs = ("update", "delete", "truncate")
    expected = {f"{table}_{verb}": "O" for table in _GUARDED for verb in verbs}
    if _INDEX in relations:
        found[_INDEX] = relations[_INDEX]
    return tables, found, {**expected, _INDEX: "i"}

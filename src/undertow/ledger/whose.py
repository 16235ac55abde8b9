"""Whose rows the ledgers of a folder are for, found without changing anything."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from undertow.ledger.still import is_still, names_of, sqlite_uri

__all__ = ["LedgerNearby", "is_same", "ledgers_in"]

_PATIENCE_S = 5.0
_BESIDE = ("-wal", "-shm", "-journal", ".bak")
_SMALLEST = 512  # of the pages of which SQLite makes a file
_FRAMES = (
    "SELECT DISTINCT json_extract(body, '$.frame.unit'),"
    " json_extract(body, '$.frame.people')"
    " FROM ledger_entries WHERE json_extract(body, '$.frame') IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class LedgerNearby:
    """A ledger in some folder.

    Parameters
    ----------
    path : Path
        Its file.
    whose : frozenset of (str or None, str or None)
        For the charges in it, the column of the unit and the people they state; empty
        where nothing was charged.
    streams : bool
        Whether it is for units, and not for rows that belong to nobody.
    """

    path: Path
    whose: frozenset[tuple[str | None, str | None]]
    streams: bool

    def covers(self, unit: str | None, people: str | None) -> bool:
        """Tell whether rows of these people may have been charged to it.

        A ledger without a charge was made on purpose for somebody: it may be them.
        """
        if not self.whose:
            return self.streams and unit is not None
        return any(is_same(unit, people, *theirs) for theirs in self.whose)


def is_same(
    unit: str | None, people: str | None, their_unit: str | None, theirs: str | None
) -> bool:
    """Tell whether two tables may have rows of the same people.

    Parameters
    ----------
    unit, their_unit : str or None
        The columns of their units; engines take upper and lower case alike.
    people, theirs : str or None
        Whose rows they are said to be; where both say it, columns tell nothing.

    Examples
    --------
    >>> is_same("card", "card holders", "card", "staff")
    False
    >>> is_same("Card", "card holders", "card", None)
    True
    """
    if people is not None and theirs is not None:
        return people.strip().lower() == theirs.strip().lower()
    if unit is None or their_unit is None:
        return False
    return unit.strip().lower() == their_unit.strip().lower()


def ledgers_in(folder: Path) -> Iterator[LedgerNearby]:
    """Return the SQLite ledgers of a folder, whatever they are called.

    One that cannot be read, such as one of a newer schema, may be anybody's and counts
    as one without a charge.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.path for entry in entries if _may_be(entry))
    except OSError:
        return
    for name in names:
        found = _looked_at(Path(name))
        if found is not None:
            yield found


def _may_be(entry: os.DirEntry[str]) -> bool:
    try:
        if entry.name.endswith(_BESIDE) or not entry.is_file():
            return False
        size = entry.stat().st_size
    except OSError:
        return False
    return size > 0 and size % _SMALLEST == 0


def _looked_at(path: Path) -> LedgerNearby | None:
    # Without the index of a journal, SQLite would make one. What the journal alone has
    # is not seen then: a ledger without a charge, which counts as well.
    alone = is_still(path) or not os.path.exists(names_of(path)[2])
    where = sqlite_uri(path, still=alone)
    try:
        with closing(sqlite3.connect(where, uri=True, timeout=_PATIENCE_S)) as link:
            return _read(path, link)
    except sqlite3.Error:
        return None  # no database, or none that can be read by anybody


def _read(path: Path, link: sqlite3.Connection) -> LedgerNearby | None:
    tables = {name for (name,) in link.execute("SELECT name FROM sqlite_master")}
    if "ledger_version" not in tables:
        return None
    try:
        [(terms,)] = link.execute("SELECT body FROM ledger_terms").fetchall()
        streams = json.loads(terms)["domain"]["kind"] == "stream"
        whose = frozenset((unit, people) for unit, people in link.execute(_FRAMES))
    except (sqlite3.Error, KeyError, TypeError, ValueError):
        return LedgerNearby(path, frozenset(), streams=True)
    return LedgerNearby(path, whose, streams)

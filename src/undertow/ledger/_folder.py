"""Whose rows the ledgers of a folder are for, found without changing anything.

People who come in a file a week often have a folder a week. So the folder above is
looked at too, and the folders beside, within the bounds that stand here: no link is
followed, and what cannot be read is passed over.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from undertow.ledger._place import is_still, names_of, sqlite_uri

MOST_BESIDE = 300
"""Folders beside one that are looked at: those that were changed last."""

MOST_NAMES = 10_000
"""Names that are read in the folder above, and in each folder beside."""

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


def folders_beside(folder: Path) -> list[Path]:
    """Return the folder above a folder, and then those beside it.

    Nothing is returned where the folder above is the root of all files, or where
    anybody may write, as in that of temporary files: what lies there is no trace of
    the same person's work. Folders whose name begins with a dot are passed over.

    Notes
    -----
    At most `MOST_NAMES` names are read, and at most `MOST_BESIDE` folders returned.
    """
    above = folder.resolve().parent
    found: list[tuple[int, str]] = []
    try:
        if above == above.parent or above.stat().st_mode & stat.S_IWOTH:
            return []
        with os.scandir(above) as entries:
            for entry in islice(entries, MOST_NAMES):
                changed = _changed(entry)
                if changed is not None and entry.path != str(folder.resolve()):
                    found.append((changed, entry.path))
    except OSError:
        pass  # what was read until then counts
    last = sorted(found, reverse=True)[:MOST_BESIDE]
    return [above, *sorted(Path(name) for _, name in last)]


def _changed(entry: os.DirEntry[str]) -> int | None:
    """Return when a folder was changed; None for what is not looked at."""
    try:
        if entry.name[0] == "." or not entry.is_dir(follow_symlinks=False):
            return None
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return None


def ledgers_in(folder: Path, *, bounded: bool = False) -> Iterator[LedgerNearby]:
    """Return the SQLite ledgers of a folder, whatever they are called.

    One that cannot be read, such as one of a newer schema, may be anybody's and counts
    as one without a charge.

    Parameters
    ----------
    folder : Path
        Nothing is found in one that cannot be read.
    bounded : bool
        Whether at most `MOST_NAMES` names are read, and no link is followed.
    """
    try:
        with os.scandir(folder) as entries:
            read = islice(entries, MOST_NAMES) if bounded else entries
            names = sorted(e.path for e in read if _may_be(e, links=not bounded))
    except OSError:
        return
    for name in names:
        found = _looked_at(Path(name))
        if found is not None:
            yield found


def _may_be(entry: os.DirEntry[str], *, links: bool) -> bool:
    try:
        if entry.name.endswith(_BESIDE) or not entry.is_file(follow_symlinks=links):
            return False
        size = entry.stat(follow_symlinks=links).st_size
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

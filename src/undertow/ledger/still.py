"""Reading a SQLite file of which nothing may be written, not even beside it.

A ledger keeps its journal beside it (``-wal``) while somebody has it open, with an
index of it in shared memory (``-shm``). SQLite makes both for a reader too, and leaves
them behind where that reader may not write; in a folder closed to writing it gives up.
There are two cases.

* The journal holds something: somebody has the ledger open, or was killed. What is in
  it counts, so the file is opened in the mode ``ro``, which sees it and takes part in
  SQLite's locks. The index is there already, or has to be made.
* The journal is not there or empty: all that was ever committed is in the file itself,
  and it is opened as ``immutable``, which makes, locks and writes nothing. That would
  not be safe if the file were written to meanwhile. A writer who comes now writes to a
  journal first, and to the file when the journal is put into it; so the file is
  compared before and after, and what was read from one that changed is thrown away.

Nothing here opens the file itself. A process that closes a file gives up all its locks
on it, those of its other connections too; the next to leave would then take itself for
the last one and remove a journal that is still written to.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["files_of", "is_still", "names_of", "sqlite_uri", "stamp_of"]


def is_still(path: Path) -> bool:
    """Tell whether all of a ledger is in its file, with no journal to be seen.

    Neither that which a ledger has nor that of other databases (``-journal``).
    """
    journals = (names_of(path)[1], f"{os.path.realpath(path)}-journal")
    try:
        return path.is_file() and not any(map(_holds, journals))
    except OSError:
        return False  # the driver will say what is wrong


def _holds(journal: str) -> bool:
    try:
        return os.stat(journal).st_size > 0
    except FileNotFoundError:
        return False


def names_of(path: Path) -> tuple[str, str, str]:
    """Return a file, its journal and the index of that, where SQLite has them.

    An alias of the file has no journal of its own.
    """
    real = os.path.realpath(path)
    return str(path), f"{real}-wal", f"{real}-shm"


def files_of(*names: str | Path) -> tuple[int | None, ...]:
    """Return which files some names stand for, and under how many names they are.

    Where a ledger and its journal are not the ones that a connection has opened, what
    it writes is lost.
    """
    found: list[int | None] = []
    for name in names:
        try:
            state = os.stat(name)
        except OSError:
            found += [None, None, None]
        else:
            found += [state.st_dev, state.st_ino, state.st_nlink]
    return tuple(found)


def stamp_of(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is written to; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def sqlite_uri(path: Path, *, still: bool) -> str:
    """Return the address under which SQLite only reads a file.

    Examples
    --------
    >>> sqlite_uri(Path("/data/a b.ledger"), still=True)
    'file:///data/a%20b.ledger?mode=ro&immutable=1'
    """
    options = "?mode=ro&immutable=1" if still else "?mode=ro"
    return f"{path.absolute().as_uri()}{options}"

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
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_still", "sqlite_uri", "stamp_of"]

# Bytes of the header that say that the file has a journal of that kind.
_KIND = slice(18, 20)
_WAL = b"\x02\x02"


def is_still(path: Path) -> bool:
    """Tell whether all of a ledger is in its file, with no journal to be seen.

    A file with the other kind of journal is none: its readers write nothing anyway.
    """
    try:
        with path.open("rb") as file:
            if file.read(_KIND.stop)[_KIND] != _WAL:
                return False
    except OSError:
        return False  # the driver will say what is wrong
    journal = Path(f"{path}-wal")
    try:
        return journal.stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError:
        return False


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

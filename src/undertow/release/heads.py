"""Heads of ledgers, kept beside the tables that were charged to them.

A ledger that is put back from a copy, or forgotten for another one, cannot tell so
itself. So after every output one line is added to a file beside the table, or beside
the release file where the table is on a server: which ledger, how long it was, its last
hash, and whose rows were charged. A line is added by one write, so that a kill leaves
at most part of it, which is passed over. A file that has grown is replaced as a whole
by the lines that are still needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow.errors import OutdatedLedger
from undertow.release.ledger_place import file_of
from undertow.release.leftovers import locked_part, sweep_parts
from undertow.release.table_place import TablePlace, table_of

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger, Charge
    from undertow.release.document import ReleaseDocument

__all__ = [
    "HEADS",
    "KeptHead",
    "keep_head",
    "kept_heads",
    "mark_of",
    "needed_heads",
    "reach_of",
    "require_heads",
]

HEADS = "undertow.heads"
"""The file of a folder that keeps the heads of ledgers."""

_RUN = re.compile(r"run-\d{6,}")
_LARGEST = 64 * 2**20
_FEW = 200  # lines that are never worth replacing
_FIELDS = ("ledger", "name", "count", "hash", "table", "entry", "unit", "people")


@dataclass(frozen=True, slots=True)
class KeptHead:
    """One line: a table was charged, and where its ledger ended then.

    Parameters
    ----------
    ledger : str
        The hash that the ledger starts from.
    name : str
        Where it is, from the folder of the line; the address of a server.
    count, hash : int, str
        The head.
    table : str
        A digest of where the table is.
    entry : int
        The charge.
    unit, people : str or None
        Whose rows they are.
    """

    ledger: str
    name: str
    count: int
    hash: str
    table: str
    entry: int
    unit: str | None
    people: str | None


def keep_head(
    document: ReleaseDocument, ledger: BudgetLedger, charge: Charge
) -> str | None:
    """Write down where a ledger ends after the output of a charge.

    Returns
    -------
    str or None
        What a person should know: that the table is charged to other ledgers as well,
        or that there is no place where the head could be kept.
    """
    table, head = table_of(document), ledger.output_head(charge)
    if table is None or head is None:
        return None
    for folder in _own_folders(document, table):
        kept = KeptHead(
            ledger.start,
            _name_from(folder, ledger.name),
            head.count,
            head.hash,
            mark_of(table, folder),
            charge.number,
            document.source.unit if document.source.kind != "event" else None,
            document.source.people,
        )
        known = kept_heads(folder)
        try:
            if kept not in needed_heads([*known, kept]):
                return _said_of_others(kept, known)  # a later one says more
            if kept not in known:
                _append(folder / HEADS, kept)
        except OSError:
            continue
        return _said_of_others(kept, known)
    return (
        "The head of the ledger could not be kept beside the table: that folder is "
        "closed to writing, so keep the manifest, which shows an older copy of the "
        "ledger."
    )


def kept_heads(folder: Path) -> list[KeptHead]:
    """Return the lines of a folder; what is no line is passed over."""
    path = folder / HEADS
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return []
        return _lines(path.read_bytes())
    except OSError:
        return []


def needed_heads(heads: Sequence[KeptHead]) -> list[KeptHead]:
    """Return the lines without which something would be told otherwise, in order.

    These are, for each ledger, place, table and people, the line with the most entries,
    and of several with as many the first one.

    Notes
    -----
    What is asked of the lines, and why these answer it as all of them do:

    * *Is a copy of a ledger older?* A ledger that passes through a head of n entries
      passes through all earlier heads of its chain, because the hash of an entry fixes
      all entries before it (Theorem 3 of the page *The ledger*). So the line with the
      most entries decides for its ledger, and it is the one with the most of its kind.
      Where a file has lines of two chains of one ledger, the same line decides.
    * *Which other ledgers was this table charged to, and where?* Every place of every
      ledger of a table has a line.
    * *Is there a ledger of these people, and where?* Likewise for people.
    * *Where was this table charged last?* A line stays where it is among the others,
      and in a ledger what comes later has more entries, so that the last line of a
      table stays.
    """
    best: dict[Any, int] = {}
    for at, head in enumerate(heads):
        kind = (head.ledger, head.name, head.table, head.unit, head.people)
        if kind not in best or heads[best[kind]].count < head.count:
            best[kind] = at
    return [heads[at] for at in sorted(best.values())]


def reach_of(document: ReleaseDocument, folder: Path | None) -> list[Path]:
    """Return the folders in which a run looks for what earlier runs left.

    Parameters
    ----------
    document : ReleaseDocument
        Of the release: the folders of its table and of its file.
    folder : Path or None
        Where the run is about to write; the working directory comes last.
    """
    table = table_of(document)
    if table is None:
        return []
    places = [*_own_folders(document, table)]
    if folder is not None:
        places.append(folder)
        if _RUN.fullmatch(folder.name):  # that of all runs
            places.append(folder.parent)
    return list(dict.fromkeys(place.resolve() for place in (*places, Path.cwd())))


def require_heads(ledger: BudgetLedger, folders: Iterable[Path]) -> None:
    """Refuse an older copy of a ledger: it would draw again what was released.

    Raises
    ------
    OutdatedLedger
        If a folder keeps a head of this ledger that its chain does not reach.
    """
    for folder in folders:
        ours = [h for h in kept_heads(folder) if h.ledger == ledger.start]
        last = max(ours, key=lambda kept: kept.count, default=None)
        if last is not None and not ledger.holds(last.count, last.hash):
            raise OutdatedLedger(
                f"{ledger.name} must hold all that was charged to it, got an older "
                f"copy without entry {last.count}, of which {folder / HEADS} tells; "
                "put the newest one back, or state a new budget on purpose with "
                "undertow ledger init."
            )


def mark_of(table: TablePlace, folder: Path) -> str:
    """Return a digest of where a table is, from the folder that keeps its head.

    All tables of one database file are one data set: they share a ledger by default.
    """
    if table.file is None:
        name = table.identities(None)[0]
    else:
        name = Path(os.path.relpath(table.file, folder.resolve())).as_posix()
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


def _said_of_others(kept: KeptHead, known: Iterable[KeptHead]) -> str | None:
    """Say that a table was charged to other ledgers, which nobody adds up."""
    others = {
        other.name
        for other in known
        if other.table == kept.table and other.ledger != kept.ledger
    }
    if not others:
        return None
    return (
        f"Releases of this table were charged to another ledger before "
        f"({', '.join(sorted(others))}); what they and {kept.name} allow adds up."
    )


def _own_folders(document: ReleaseDocument, table: TablePlace) -> Iterator[Path]:
    """Return the folder of a table, and that of the release file."""
    if table.ledger is not None:
        yield table.ledger.parent
    if document.file is not None:
        yield document.file.parent


def _name_from(folder: Path, name: str) -> str:
    file = file_of(name)
    if file is None:
        return name
    return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()


def _append(path: Path, kept: KeptHead) -> None:
    """Add a line; nobody replaces the file meanwhile."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        handle = os.open(path, flags, 0o600)
        try:
            locked = _locks(handle)
            if locked and not _is_at(path, handle):
                continue  # another run has just replaced it
            # A line of its own, whatever a killed run has left at the end.
            written = b"\n" + _written(kept)
            if os.write(handle, written) != len(written):
                raise OSError("the line was cut")
            os.fsync(handle)
            if locked:
                _compact(path, handle)
            return
        finally:
            os.close(handle)


def _locks(handle: int) -> bool:
    """Lock a file; False where there are no locks, so that it is only added to."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _compact(path: Path, handle: int) -> None:
    """Replace a file that is locked by what is needed of it, if that is far less."""
    size = os.fstat(handle).st_size
    if size > _LARGEST:
        return
    heads = _lines(os.pread(handle, size, 0))
    needed = needed_heads(heads)
    if len(heads) <= max(_FEW, 2 * len(needed)):
        return
    sweep_parts(path.parent)
    part, own = locked_part(path.parent, path.name)
    try:
        os.fchmod(own, stat.S_IMODE(os.fstat(handle).st_mode))
        with open(own, "wb", closefd=False) as file:
            file.write(b"".join(map(_written, needed)))
            file.flush()
            os.fsync(own)
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
    finally:
        os.close(own)


def _written(kept: KeptHead) -> bytes:
    line = json.dumps({name: getattr(kept, name) for name in _FIELDS})
    return f"{line}\n".encode()


def _lines(content: bytes) -> list[KeptHead]:
    lines = content.splitlines()
    return [found for line in lines if (found := _read(line)) is not None]


def _read(line: bytes) -> KeptHead | None:
    try:
        found: Any = json.loads(line)
        kept = KeptHead(*(found[name] for name in _FIELDS))
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    texts = (kept.ledger, kept.name, kept.hash, kept.table)
    fits = all(isinstance(text, str) for text in texts)
    return kept if fits and type(kept.count) is int else None

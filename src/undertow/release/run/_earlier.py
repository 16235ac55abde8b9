"""What earlier runs left: manifests in their folders, and heads beside their tables.

A manifest says which release a folder belongs to and that its table was charged. A
ledger that is put back from a copy, or forgotten for another one, cannot tell so
itself: after every output one line about it is kept beside the table. So a second
release does not write among the tables of the first, an older copy of a ledger is
refused, and a ledger that was there is not made anew without a word.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow._address import is_address
from undertow._files import write_whole
from undertow.errors import BudgetError, OutdatedLedger, PlanError
from undertow.release.run._folder import MANIFEST, read_manifest
from undertow.release.run._ledger_place import file_of, has_ledger, people_words
from undertow.release.run._limit import locked_part, sweep_parts
from undertow.release.run.record import asked_of
from undertow.release.source._place import (
    TablePlace,
    is_pattern,
    table_of,
    whole_path,
)

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger, Charge
    from undertow.release.document.release_document import ReleaseDocument


HEADS = "undertow.heads"
"""The file of a folder that keeps the heads of ledgers."""

_RUN = re.compile(r"run-\d{6,}")
_RELEASE_FORMAT = "undertow release "
_MOST_NAMED = 3
_OTHER_FOLDER = "name another one with --output or output.folder"
_LARGEST_HEADS = 64 * 2**20
_FEW = 200  # lines that are never worth replacing
_FIELDS = ("ledger", "name", "count", "hash", "table", "entry", "unit", "people")


def require_own_folder(folder: Path, title: str, document: ReleaseDocument) -> None:
    """Refuse a folder that holds another release, before anything is charged.

    Parameters
    ----------
    folder : Path
        Where a run is about to write.
    title : str
        What the release is called: the name of its file without the ending.
    document : ReleaseDocument
        What it asks.

    Raises
    ------
    PlanError
        If a manifest in it, or in the folder of one of its runs, is of another release;
        or there is a manifest of something else, which would be overwritten.
    BudgetError
        If a manifest is of the same release as it was before its file was changed.
    """
    asked = asked_of(document.to_dict())
    for place in _run_folders(folder):
        found = read_manifest(place)
        if found is None:
            continue
        if not _is_release(found):
            if place == folder:
                raise PlanError(
                    f"output must be a folder for releases, got {folder}, whose "
                    f"{MANIFEST} is of something else; {_OTHER_FOLDER}."
                )
        elif found.get("title") != title:
            raise PlanError(
                f"output must be a folder of its own for every release, got {place}, "
                f"which holds {found.get('title')!r}, for {title!r}; {_OTHER_FOLDER}."
            )
        elif asked_of(_part(found, "document")) != asked:
            raise BudgetError(
                f"output must be a folder of its own for every release, got {place}, "
                f"which holds {title!r} as its file was before it was changed; "
                f"{_OTHER_FOLDER} and pay for other answers, or change the file back."
            )


def require_kept_ledger(
    document: ReleaseDocument,
    *,
    ledger: str,
    folder: Path | None,
    named: bool = False,
    made_by: str = "undertow ledger init",
) -> None:
    """Refuse to make a ledger anew where something says that there was one.

    Looked at are the manifests of `folder` and of the folders beside the release file,
    and what a ledger leaves beside it: its journal, and copies of older schemas. Where
    somebody names a ledger for this run, other folders than `folder` tell nothing.
    Where nobody names one, a file may have been read with the others of its folder, and
    been charged to the ledger of that folder, or the other way round.

    Parameters
    ----------
    document : ReleaseDocument
        Of the release.
    ledger : str
        Where the ledger would be made.
    folder : Path or None
        Where the run is about to write.
    named : bool
        Whether the ledger was named for this run.
    made_by : str
        The command that makes it on purpose.

    Raises
    ------
    BudgetError
        If the table was charged before, so that a new ledger would forget it, or may
        be charged to another one.
    """
    path = file_of(ledger)
    if path is None:
        return
    if not named and document.ledger is None:
        _require_alone(document, path)
    told = (
        left.charge_of(document) for left in _left_by_runs(document, folder, own=named)
    )
    trace = _remains(path) or next((words for words in told if words), None)
    # A ledger is made before anything that tells of it, so it is looked for last.
    if trace is None or has_ledger(ledger, looking=True):
        return
    raise BudgetError(
        f"the ledger {path} must be there, got none although {trace}; "
        f"{'correct its name, ' if named else ''}put it back, or state a new budget on "
        f"purpose with {made_by}."
    )


def require_one_budget(
    document: ReleaseDocument, *, ledger: str, folder: Path | None, made_by: str
) -> None:
    """Refuse to open a second budget for people who have one, unless somebody says so.

    A ledger belongs to the people whose rows are charged to it, whatever the file is
    called in which they come. Looked at are the ledgers in the folders of the table,
    of the release file and of the output and in the working directory, and the heads
    that are kept there; and, within the bounds of
    :func:`undertow.ledger._folder.folders_beside`, those in the folders above the first
    two and beside them.

    Parameters
    ----------
    document : ReleaseDocument
        Of the release.
    ledger : str
        Where a ledger would be made.
    folder : Path or None
        Where the run is about to write.
    made_by : str
        The command that makes it on purpose.

    Raises
    ------
    BudgetError
        If there is a ledger with charges of the same people, or with none yet.
    """
    own = file_of(ledger)
    for found in _budgets(document, folder, ledger):
        # Another run may have made it meanwhile.
        if has_ledger(ledger, looking=True):
            return
        raise BudgetError(
            f"{people_words(document)} must have one budget, got a new one at {own} "
            f"beside {found}, to which rows of the same people may be charged; charge "
            "that one with --ledger or ledger.url, or, if nobody is in both tables, "
            f"state a new budget on purpose with {made_by}."
        )


def told_of_others(
    document: ReleaseDocument, ledger: BudgetLedger, folder: Path | None
) -> str | None:
    """Say that people were charged to other ledgers too, which nobody adds up.

    Looked at is what :func:`require_one_budget` looks at; ledgers without a charge
    have taken nothing yet.
    """
    found = [*_budgets(document, folder, ledger.name, start=ledger.start)]
    if not found:
        return None
    names = found[:_MOST_NAMED]
    rest = len(found) - len(names)
    more = f" and {rest} more" if rest else ""
    return (
        f"Rows of the same people may have been charged to other ledgers "
        f"({'; '.join(names)}{more}); what they and {ledger.name} allow adds up."
    )


def require_newest(
    document: ReleaseDocument, ledger: BudgetLedger, folder: Path | None
) -> None:
    """Refuse an older copy of a ledger: it would draw again what was released.

    A manifest is written after its output is stored, and so is the head that is kept
    beside the table. So the ledger that they name must have what they tell of.

    Parameters
    ----------
    document : ReleaseDocument
        Of the release; what lies beside its table and its file tells.
    ledger : BudgetLedger
        That the run is charged to.
    folder : Path or None
        Where a run is about to write; its manifest and those of two other runs tell.

    Raises
    ------
    OutdatedLedger
        If it lacks what one of them tells of.
    """
    for left in _left_by_runs(document, folder):
        missing = left.missing_in(ledger)
        if missing is not None:
            raise OutdatedLedger(
                f"{ledger.name} must hold all that was charged to it, got an older "
                f"copy without {missing}; put the newest one back, or state a new "
                "budget on purpose with undertow ledger init."
            )


def _left_by_runs(
    document: ReleaseDocument, folder: Path | None, *, own: bool = False
) -> Iterator[Manifest | KeptHeads]:
    """Return what tells of earlier charges; of `own`, in the folder of a run alone."""
    ours = [] if folder is None else [*_run_folders(folder)]
    beside = [] if own else _beside(document)
    for place in dict.fromkeys((*ours, *beside)):
        found = read_manifest(place)
        if found:
            yield Manifest(place / MANIFEST, found, place in ours)
    for place in () if own else reach_of(document, folder):
        yield KeptHeads(place)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a folder.

    Parameters
    ----------
    file : Path
        Where it is.
    content : mapping
        What it says.
    own : bool
        Whether it is in a folder of the runs that are asked about.
    """

    file: Path
    content: Mapping[str, Any]
    own: bool

    def missing_in(self, ledger: BudgetLedger) -> str | None:
        """Say what a ledger lacks of what this tells of, if anything."""
        charge = _part(self.content, "charge")
        if not isinstance(charge.get("key"), str):
            return None
        ours = charge.get("ledger") == ledger.start
        if not (ours or self.own) or _knows(ledger, charge, ours=ours):
            return None
        return f"the output that {self.file} tells of"

    def charge_of(self, document: ReleaseDocument) -> str | None:
        """Say which charge of the table of a release this tells of, if any."""
        number = _part(self.content, "charge").get("number")
        if not (
            _is_release(self.content)
            and _of_table(self.content, document)
            and isinstance(number, int)
        ):
            return None
        return (
            f"{self.file} says that releases of this table were charged "
            f"(entry {number})"
        )


@dataclass(frozen=True, slots=True)
class KeptHeads:
    """The heads that are kept in a folder."""

    folder: Path

    def missing_in(self, ledger: BudgetLedger) -> str | None:
        """Say what a ledger lacks of what this tells of, if anything."""
        ours = [h for h in kept_heads(self.folder) if h.ledger == ledger.start]
        last = max(ours, key=lambda kept: kept.count, default=None)
        if last is None or ledger.holds(last.count, last.hash):
            return None
        return f"entry {last.count}, of which {self.folder / HEADS} tells"

    def charge_of(self, document: ReleaseDocument) -> str | None:
        """Say which charge of the table of a release this tells of, if any."""
        table = table_of(document)
        ours = None if table is None else mark_of(table, self.folder)
        for kept in reversed(kept_heads(self.folder)):
            if kept.table == ours:
                return (
                    f"{self.folder / HEADS} says that releases of this table were "
                    f"charged to {_place_of(kept, self.folder)} (entry {kept.entry}), "
                    "which is to be named with --ledger"
                )
        return None


def _knows(ledger: BudgetLedger, charge: Mapping[str, Any], *, ours: bool) -> bool:
    """Tell whether a ledger has the output of a charge that a manifest tells of."""
    head = charge.get("head")
    if ours and isinstance(head, dict) and isinstance(head.get("count"), int):
        return ledger.holds(head["count"], str(head.get("hash")))
    known = ledger.find(charge["key"])
    if known is not None and known.hash != charge.get("hash"):
        known = None
    if known is None:
        return not ours
    return known.state == "done"


def _place_of(kept: KeptHead, folder: Path) -> str:
    return kept.name if is_address(kept.name) else os.path.normpath(folder / kept.name)


def _of_table(manifest: Mapping[str, Any], document: ReleaseDocument) -> bool:
    """Tell whether a manifest is about the table of a release.

    All tables of one database file are one data set, as they share a default ledger.
    """
    theirs = _part(_part(manifest, "document"), "source")
    if not theirs:
        return False
    ours = document.to_dict()["source"]
    if any(
        isinstance(s.get("table"), str) and "://" in s["table"] for s in (theirs, ours)
    ):
        names = ("table", "relation")
        return all(theirs.get(name) == ours.get(name) for name in names)
    return _file(theirs, document) == _file(ours, document)


def _file(source: Mapping[str, Any], document: ReleaseDocument) -> Path | None:
    table = source.get("table")
    if not isinstance(table, str):
        return None
    return whole_path(document.path(table.partition("#")[0]))


def _part(manifest: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a part of a manifest; empty if it has none."""
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}


def _is_release(manifest: Mapping[str, Any]) -> bool:
    return str(manifest.get("format")).startswith(_RELEASE_FORMAT)


def _remains(path: Path) -> str | None:
    """Say what a ledger has left beside its place."""
    journal = Path(f"{path}-wal")
    gone = not path.exists() or path.stat().st_size == 0
    if gone and journal.is_file() and journal.stat().st_size:
        return f"its journal {journal} is"
    copies = path.parent.glob(f"{glob.escape(path.name)}.schema*.bak")
    found = min(copies, default=None)
    return None if found is None else f"{found} is a copy of it"


def _require_alone(document: ReleaseDocument, path: Path) -> None:
    """Refuse a second ledger for rows that are in a file and in a folder of files."""
    table = table_of(document)
    file = None if table is None else table.file
    if file is None:
        return
    if file.is_dir():
        others = [*file.rglob("*.ledger")]
    elif is_pattern(file):
        found = (whole_path(Path(name)) for name in glob.iglob(str(file)))
        others = [name.with_suffix(".ledger") for name in found]
    else:
        folders = [folder for folder in file.parents if folder.name]
        others = [folder.with_suffix(".ledger") for folder in folders]
        others += [folder / f"{folder.name}.ledger" for folder in folders]
    other = next((other for other in sorted(others) if other.is_file()), None)
    if other is not None:
        raise BudgetError(
            f"a table must have one ledger, got a new one at {path} beside {other}, to "
            "which the same rows may have been charged; name the one to charge with "
            "--ledger or ledger.url, or state a new budget on purpose with undertow "
            "ledger init."
        )


# Where earlier runs and their ledgers are looked for.


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
        places += _with_all_runs(folder)
    return list(dict.fromkeys(place.resolve() for place in (*places, Path.cwd())))


def _own_folders(document: ReleaseDocument, table: TablePlace) -> Iterator[Path]:
    """Return the folder of a table, and that of the release file."""
    if table.ledger is not None:
        yield table.ledger.parent
    if document.file is not None:
        yield document.file.parent


def _run_folders(folder: Path) -> Iterator[Path]:
    """Return a folder, that of all runs if it is for one run, and two of these runs."""
    places = _with_all_runs(folder)
    yield from places
    base = places[-1]
    try:
        names = [name for name in os.listdir(base) if _RUN.fullmatch(name)]
    except OSError:
        return
    for name in sorted({min(names), max(names)} if names else ()):
        yield base / name


def _with_all_runs(folder: Path) -> tuple[Path, ...]:
    """Return a folder, and that of all runs if it is for one run."""
    return (folder, folder.parent) if _RUN.fullmatch(folder.name) else (folder,)


def _beside(document: ReleaseDocument) -> list[Path]:
    """Return the folders beside a release file or a table in which runs may write."""
    table = table_of(document)
    if table is None:
        return []
    roots = [document.path("")]
    roots += [] if table.ledger is None else [table.ledger.parent]
    found: list[Path] = []
    for root in dict.fromkeys(root.resolve() for root in roots):
        try:
            beside = sorted(p for p in root.iterdir() if p.is_dir())
        except OSError:
            continue
        found += [place for folder in beside for place in _run_folders(folder)]
    return found


def _budgets(
    document: ReleaseDocument,
    folder: Path | None,
    own: str,
    *,
    start: str | None = None,
) -> Iterator[str]:
    """Say which other ledgers within reach may be of the people of a release.

    Where `own` is there, its chain begins with `start`, by which its heads are told
    from those of others; ledgers without a charge do not count then.
    """
    source = document.source
    unit = None if source.kind == "event" else source.unit
    if unit is None and source.people is None:
        return
    near = reach_of(document, folder)
    above, beside = _around(document)
    file = file_of(own)
    seen = {own if file is None else os.path.realpath(file)}
    for place in dict.fromkeys((*near, *above, *beside)):
        far, empty = place not in near, place not in beside and start is None
        found = _in_folder(place, unit, source.people, far=far, empty=empty)
        for path, name, chain in found:
            if path not in seen and (chain is None or chain != start):
                seen.add(path)
                yield name


def _around(document: ReleaseDocument) -> tuple[list[Path], list[Path]]:
    """Return the folders above table and release file, and those beside them.

    Where the table is in a folder below that of its release file, such as `data`, it is
    looked for at the same place below the folders beside as well.
    """
    from undertow.ledger._folder import folders_beside

    table = table_of(document)
    if table is None or table.ledger is None:
        return [], []
    start, data = document.path("").resolve(), table.ledger.parent.resolve()
    above, beside = [], []
    for place in dict.fromkeys((data, start)):
        found = folders_beside(place)
        above += found[:1]
        beside += found[1:]
    if start in data.parents:
        inner = data.relative_to(start)
        beside += [other / inner for other in folders_beside(start)[1:]]
    return above, beside


def _in_folder(
    folder: Path, unit: str | None, people: str | None, *, far: bool, empty: bool
) -> Iterator[tuple[str, str, str | None]]:
    """Return the ledgers of these people in a folder, and those told of there.

    Of each its place, what is said of it, and where its chain begins, if that is told.
    `empty` are ledgers without a charge, which may be for anybody; they come last.
    """
    from undertow.ledger._folder import is_same, ledgers_in

    found = ledgers_in(folder, bounded=far)
    for nearby in sorted(found, key=lambda nearby: not nearby.whose):
        if (nearby.whose or empty) and nearby.covers(unit, people):
            yield os.path.realpath(nearby.path), str(nearby.path), None
    for kept in kept_heads(folder):
        if is_same(unit, people, kept.unit, kept.people):
            place = _place_of(kept, folder)
            path = place if is_address(place) else os.path.realpath(place)
            yield path, f"{place}, of which {folder / HEADS} tells", kept.ledger


# Heads of ledgers, kept beside the tables that were charged to them.
#
# After every output one line is added to a file beside the table, or beside the release
# file where the table is on a server: which ledger, how long it was, its last hash, and
# whose rows were charged. A line is added by one write, so that a kill leaves at most
# part of it, which is passed over. A file that has grown is replaced as a whole by the
# lines that are still needed.


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
        if not path.is_file() or path.stat().st_size > _LARGEST_HEADS:
            return []
        return _head_lines(path.read_bytes())
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
            written = b"\n" + _written_head(kept)
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
    if size > _LARGEST_HEADS:
        return
    heads = _head_lines(os.pread(handle, size, 0))
    needed = needed_heads(heads)
    if len(heads) <= max(_FEW, 2 * len(needed)):
        return
    sweep_parts(path.parent)
    part, own = locked_part(path.parent, path.name)
    try:
        os.fchmod(own, stat.S_IMODE(os.fstat(handle).st_mode))
        write_whole(path, b"".join(map(_written_head, needed)), part=(part, own))
    except OSError:
        part.unlink(missing_ok=True)
    finally:
        os.close(own)


def _written_head(kept: KeptHead) -> bytes:
    line = json.dumps({name: getattr(kept, name) for name in _FIELDS})
    return f"{line}\n".encode()


def _head_lines(content: bytes) -> list[KeptHead]:
    lines = content.splitlines()
    return [found for line in lines if (found := _read_head(line)) is not None]


def _read_head(line: bytes) -> KeptHead | None:
    try:
        found: Any = json.loads(line)
        kept = KeptHead(*(found[name] for name in _FIELDS))
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    texts = (kept.ledger, kept.name, kept.hash, kept.table)
    fits = all(isinstance(text, str) for text in texts)
    return kept if fits and type(kept.count) is int else None

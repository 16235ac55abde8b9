"""What earlier runs left: where their table is, and the folders that are theirs.

A manifest says which release a folder belongs to and that its table was charged. So a
second release does not write among the tables of the first, and a ledger that was
there is not made anew without a word.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from undertow.errors import BudgetError, LedgerError, PlanError
from undertow.release.ledger_place import file_of, has_ledger, is_pattern
from undertow.release.outputs import MANIFEST, read_manifest

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger
    from undertow.release.document import ReleaseDocument

__all__ = [
    "asked_of",
    "require_kept_ledger",
    "require_newest",
    "require_own_folder",
    "table_place",
]

_RUN = re.compile(r"run-\d{6,}")
_FORMAT = "undertow release "
_OTHER_FOLDER = "name another one with --output or output.folder"


def table_place(document: ReleaseDocument, *, ledger: str) -> str | None:
    """Return what tells a file from others that are named alike; None if its name does.

    Parameters
    ----------
    document : ReleaseDocument
        Of the release.
    ledger : str
        Where the ledger is: its path, or the address of a server.

    Notes
    -----
    A relative name means another file in another folder. Its place is the path from the
    folder of the ledger, so that both can be moved together, or the whole path where
    the ledger is on a server. Absolute names and addresses of servers say it all, and
    of a table in memory nothing is known.
    """
    name = _relative_name(document)
    if name is None:
        return None
    table = _real(document.path(name))
    kept = file_of(ledger)
    return str(table if kept is None else _from(_real(kept).parent, table))


def asked_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a document asks of which data, not where the answers are written."""
    return {k: v for k, v in document.items() if k not in ("output", "ledger")}


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
    places = [] if folder is None else [*_run_folders(folder)]
    places += [] if named else _beside(document)
    trace = _remains(path) or _charged(document, places)
    # A ledger is made before anything that tells of it, so it is looked for last.
    if trace is None or has_ledger(ledger):
        return
    raise BudgetError(
        f"the ledger {path} must be there, got none although {trace}; put it back, or "
        "state a new budget on purpose with undertow ledger init."
    )


def require_newest(folder: Path, ledger: BudgetLedger) -> None:
    """Refuse an older copy of a ledger: it would draw again what was released.

    A manifest is written after its output is stored. So the ledger that it names, or
    that has its charge, must have that charge with an output.

    Parameters
    ----------
    folder : Path
        Where a run is about to write; its manifest and those of two other runs tell.
    ledger : BudgetLedger
        That the run is charged to.

    Raises
    ------
    LedgerError
        If it lacks what a manifest tells of.
    """
    for place in _run_folders(folder):
        charge = _part(read_manifest(place) or {}, "charge")
        if not isinstance(charge.get("key"), str):
            continue
        known = ledger.find(charge["key"])
        if known is not None and known.hash != charge.get("hash"):
            known = None
        ours = known is not None or charge.get("ledger") == ledger.start
        if ours and (known is None or known.state != "done"):
            raise LedgerError(
                f"{ledger.name} must hold all that was charged to it, got an older "
                f"copy without the output that {place / MANIFEST} tells of; put the "
                "newest one back, or state a new budget on purpose with undertow "
                "ledger init."
            )


def _require_alone(document: ReleaseDocument, path: Path) -> None:
    """Refuse a second ledger for rows that are in a file and in a folder of files."""
    file = document.path((document.source.table or "").partition("#")[0])
    if file.is_dir():
        others = [*file.rglob("*.ledger")]
    elif is_pattern(file):
        found = (_real(Path(name)) for name in glob.iglob(str(file)))
        others = [name.with_suffix(".ledger") for name in found]
    else:
        folders = (folder for folder in _real(file).parents if folder.name)
        others = [folder.with_suffix(".ledger") for folder in folders]
    other = next((other for other in sorted(others) if other.is_file()), None)
    if other is not None:
        raise BudgetError(
            f"a table must have one ledger, got none at {path} and {other}, to which "
            "the same rows may have been charged; name the one to charge with --ledger "
            "or ledger.url, or state a new budget on purpose with undertow ledger init."
        )


def _relative_name(document: ReleaseDocument) -> str | None:
    """Return the name of a file or pattern that depends on where it is said."""
    source = document.source
    if source.table is None:
        return None
    scheme, sign, name = source.table.partition("://")
    if not sign:
        name = source.table
    elif scheme.lower() == "spark":
        name = source.relation or unquote(urlsplit(source.table).fragment)
        if not name.lower().endswith(".parquet") and not document.path(name).is_dir():
            return None
    elif scheme.lower() != "duckdb":
        return None
    return None if Path(name).is_absolute() else name


def _real(path: Path) -> Path:
    """Return a path without links; those that go in a circle stay."""
    return Path(os.path.realpath(path))


def _from(folder: Path, table: Path) -> str:
    return Path(os.path.relpath(table, folder)).as_posix()


def _run_folders(folder: Path) -> Iterator[Path]:
    """Return a folder, that of all runs if it is for one run, and two of these runs."""
    base = folder.parent if _RUN.fullmatch(folder.name) else folder
    yield folder
    if base != folder:
        yield base
    try:
        names = [name for name in os.listdir(base) if _RUN.fullmatch(name)]
    except OSError:
        return
    for name in sorted({min(names), max(names)} if names else ()):
        yield base / name


def _part(manifest: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a part of a manifest; empty if it has none."""
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}


def _is_release(manifest: Mapping[str, Any]) -> bool:
    return str(manifest.get("format")).startswith(_FORMAT)


def _remains(path: Path) -> str | None:
    """Say what a ledger has left beside its place."""
    journal = Path(f"{path}-wal")
    gone = not path.exists() or path.stat().st_size == 0
    if gone and journal.is_file() and journal.stat().st_size:
        return f"its journal {journal} is"
    copies = path.parent.glob(f"{glob.escape(path.name)}.schema*.bak")
    found = min(copies, default=None)
    return None if found is None else f"{found} is a copy of it"


def _charged(document: ReleaseDocument, places: Iterable[Path]) -> str | None:
    """Say which manifest tells of a charge for the same table."""
    for place in places:
        found = read_manifest(place)
        if not found or not _is_release(found) or not _of_table(found, document):
            continue
        number = _part(found, "charge").get("number")
        if isinstance(number, int):
            return (
                f"{place / MANIFEST} says that releases of this table were charged "
                f"(entry {number})"
            )
    return None


def _beside(document: ReleaseDocument) -> list[Path]:
    """Return the folders beside a release file in which runs may have written."""
    if document.source.table is None:
        return []
    try:
        beside = sorted(p for p in document.path("").iterdir() if p.is_dir())
    except OSError:
        return []
    return [place for folder in beside for place in _run_folders(folder)]


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
    return _real(document.path(table.partition("#")[0]))

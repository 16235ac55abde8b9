"""The folders of runs: whole files or nothing, and what those of earlier runs tell.

Files are readable by their owner alone. Everything is first written beside its place
and flushed to the disk; then the files take their names one by one, the manifest last.
It names the digest of every file, so that a folder is whole exactly if its manifest is
there and its digests agree.
"""

from __future__ import annotations

import csv
import glob
import hashlib
import io
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow._address import is_address
from undertow._files import fill
from undertow.errors import BudgetError, OutdatedLedger, PlanError
from undertow.release.plan.answer import arrow_column, column_types
from undertow.release.run._ledger_place import (
    HEADS,
    KeptHead,
    file_of,
    has_ledger,
    kept_heads,
    mark_of,
    people_words,
    reach_of,
    require_heads,
)
from undertow.release.run._limit import locked_part, sweep_parts
from undertow.release.source._place import is_pattern, table_of, whole_path

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger
    from undertow.release.document.release_document import ReleaseDocument


MANIFEST = "manifest.json"
"""The file that is written last."""

_FORMULA = ("=", "+", "-", "@", "\N{MINUS SIGN}")
_BREAKS = ("\t", "\r", "\n")
_LARGEST_MANIFEST = 64 * 2**20
_LONGEST_NAME = 60
_TABLE = re.compile(r"\d{2,}-[a-z0-9-]+\.(csv|parquet)")


def table_bytes(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    kind: str,
    types: Sequence[str] | None = None,
) -> bytes:
    r"""Return a table as CSV or Parquet.

    Parameters
    ----------
    columns : sequence of str
        The header.
    rows : sequence of sequences
        Text, whole numbers, floats, truth values, dates or None.
    kind : {"csv", "parquet"}
        In CSV, text that a spreadsheet would take for a formula gets an apostrophe in
        front, in the header as well: its first sign that can be seen is ``=``, ``+``,
        ``-`` or ``@`` in any width, or it starts with a tab or a line break.
    types : sequence of str, optional
        Types of the columns in the words of JSON Schema, which Parquet keeps; by
        default those of the rows.

    Examples
    --------
    >>> table_bytes(["zone", "n"], [["=1+1", 3]], kind="csv")
    b"zone,n\r\n'=1+1,3\r\n"
    """
    if kind == "parquet":
        stated = {"columns": columns, "rows": rows, "types": types}
        return _parquet_bytes(columns, rows, column_types(stated))
    if kind != "csv":
        raise ValueError(f"kind must be csv or parquet, got {kind!r}.")
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow([_disarmed(name) for name in columns])
    table.writerows([[_shown_cell(cell) for cell in row] for row in rows])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _shown_cell(cell: Any) -> Any:
    if isinstance(cell, str):
        return _disarmed(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, date | datetime):
        return cell.isoformat()
    return cell if cell is None or isinstance(cell, int) else repr(cell)


def _disarmed(text: str) -> str:
    """Return text that no spreadsheet runs.

    Some of them skip what cannot be seen, and read signs of another width as the plain
    ones.
    """
    seen = (sign for sign in text if unicodedata.category(sign)[0] not in "CZ")
    first = unicodedata.normalize("NFKC", next(seen, ""))
    dangerous = text.startswith(_BREAKS) or first.startswith(_FORMULA)
    return f"'{text}" if dangerous else text


def _parquet_bytes(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], types: Sequence[str]
) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    arrays = [
        arrow_column(pa, [row[i] for row in rows], kind) for i, kind in enumerate(types)
    ]
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_arrays(arrays, names=list(columns)), sink)
    return sink.getvalue()


def file_names(queries: Sequence[str], *, kind: str) -> list[str]:
    """Return a plain file name for each query, numbered so that none meet.

    Examples
    --------
    >>> file_names(["Active by hour", "../x"], kind="csv")
    ['01-active-by-hour.csv', '02-x.csv']
    """
    names = []
    for number, query in enumerate(queries, start=1):
        plain = unicodedata.normalize("NFKD", query).encode("ascii", "ignore").decode()
        words = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:_LONGEST_NAME]
        names.append(f"{number:02d}-{words or 'query'}.{kind}")
    return names


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, before anything is charged.

    Raises
    ------
    PlanError
        If there is a file of that name or on the way to it, or the nearest folder is
        not writable.
    """
    if folder.exists() and not folder.is_dir():
        raise PlanError(f"output must be a folder, got the file {folder}.")
    nearest = folder
    while not os.path.lexists(nearest):
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise PlanError(f"output must be a folder that can be written, got {folder}.")


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder; None if it has none, empty if it is unknown."""
    path = folder / MANIFEST
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > _LARGEST_MANIFEST:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_files(folder: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Write all files or none of them; return their SHA-256 digests.

    Tables that the manifest names which was there before, and the new one does not, are
    removed if they are as they were written: a folder holds what its manifest names.

    Parameters
    ----------
    folder : Path
        Made if it is not there, for its owner alone.
    files : mapping of str to bytes
        By name; `MANIFEST` takes its name last.

    Raises
    ------
    PlanError
        If they cannot be written; what was there before stays.
    """
    last = sorted(files, key=lambda name: (name == MANIFEST, name))
    parts: dict[str, Path] = {}
    held: list[int] = []
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        sweep_parts(folder)
        for name in last:
            parts[name], handle = locked_part(folder, name)
            held.append(handle)
            fill(handle, files[name])
        _take_names(folder, parts)
    except OSError as fault:
        raise PlanError(
            f"output must be a folder that can be written, got {folder}: "
            f"{fault.strerror}; what was released is kept in the ledger, and the next "
            "run writes it."
        ) from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
        for handle in held:
            os.close(handle)
    return {name: hashlib.sha256(files[name]).hexdigest() for name in last}


def _take_names(folder: Path, parts: Mapping[str, Path]) -> None:
    """Rename the parts, the manifest last; until then there is none.

    A kill in between leaves files without a manifest, and the next run writes all of
    them again.
    """
    for name in _named_before(folder) - set(parts):
        (folder / name).unlink(missing_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    for name, part in parts.items():
        os.replace(part, folder / name)
    _flush_folder(folder)


def _named_before(folder: Path) -> set[str]:
    """Return the tables of the manifest that are as it says; none of anybody else."""
    tables = (read_manifest(folder) or {}).get("tables")
    found = set()
    for table in tables if isinstance(tables, list) else ():
        name, digest = (
            (table.get("file"), table.get("sha256"))
            if isinstance(table, dict)
            else (None, None)
        )
        if not (isinstance(name, str) and _TABLE.fullmatch(name)):
            continue
        path = folder / name
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == digest:
                    found.add(name)
    return found


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# What earlier runs left: where their table is, and the folders that are theirs.
#
# A manifest says which release a folder belongs to and that its table was charged. So a
# second release does not write among the tables of the first, and a ledger that was
# there is not made anew without a word.

_RUN = re.compile(r"run-\d{6,}")
_RELEASE_FORMAT = "undertow release "
_MOST_NAMED = 3
_OTHER_FOLDER = "name another one with --output or output.folder"


def asked_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a document asks of which data, not where the answers are written."""
    asked = {k: v for k, v in document.items() if k not in ("output", "ledger")}
    source = asked.get("source")
    if isinstance(source, Mapping):  # whose rows they are is not asked of them
        asked["source"] = {k: v for k, v in source.items() if k != "people"}
    return asked


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
    places = [] if folder is None else [*_run_folders(folder)]
    places += [] if named else _beside(document)
    trace = _remains(path) or _charged(document, places)
    trace = trace or (None if named else _kept(document, folder))
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
    own = [] if folder is None else [*_run_folders(folder)]
    for place in dict.fromkeys((*own, *_beside(document))):
        charge = _part(read_manifest(place) or {}, "charge")
        if not isinstance(charge.get("key"), str):
            continue
        ours = charge.get("ledger") == ledger.start
        if (ours or place in own) and not _knows(ledger, charge, ours=ours):
            raise OutdatedLedger(
                f"{ledger.name} must hold all that was charged to it, got an older "
                f"copy without the output that {place / MANIFEST} tells of; put the "
                "newest one back, or state a new budget on purpose with undertow "
                "ledger init."
            )
    require_heads(ledger, reach_of(document, folder))


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


def _kept(document: ReleaseDocument, folder: Path | None) -> str | None:
    """Say which kept head tells of a charge for the same table."""
    table = table_of(document)
    for place in () if table is None else reach_of(document, folder):
        assert table is not None
        ours = mark_of(table, place)
        for kept in reversed(kept_heads(place)):
            if kept.table == ours:
                return (
                    f"{place / HEADS} says that releases of this table were charged "
                    f"to {_place_of(kept, place)} (entry {kept.entry}), which is to be "
                    "named with --ledger"
                )
    return None


def _place_of(kept: KeptHead, folder: Path) -> str:
    return kept.name if is_address(kept.name) else os.path.normpath(folder / kept.name)


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

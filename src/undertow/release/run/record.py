"""What is kept of a run: one plain record, in the ledger before anyone sees it.

Files, manifest and report are made from the record alone, so that they can be written
again after a crash without any new noise. A run is charged under a key made from what
it asks for, so that the same run is charged once; the nodes of running totals that
earlier runs have drawn are found under the keys of those runs.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow._version import __version__
from undertow.errors import LedgerError, PlanError
from undertow.release.plan.answer import column_types
from undertow.release.plan.noise import stored_noise
from undertow.release.plan.planned_release import ReleasePlan
from undertow.release.plan.timeline import run_words, running_nodes
from undertow.release.run._folder import MANIFEST, file_names, table_bytes
from undertow.release.run._ledger_place import file_of
from undertow.release.source._place import files_of, former_place, table_of

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger, Charge, Head
    from undertow.release.document.release_document import ReleaseDocument
    from undertow.release.plan.answer import QueryAnswer
    from undertow.release.run._ledger_place import NewBudget


FORMAT = "undertow release 1"
"""Stands first in every record."""

_COUNT_FORMAT = "undertow count 1"

# Part of the keys of charges that ledgers hold; never to be changed.
_FORMER_USER = re.compile(r"(\w[\w+.-]*://[^\s/?#:@]*):\S*@")
_FORMER_SECRET = re.compile(
    r"(?i)(?<!\w)(\w*(?:passw|pwd|secret|token)\w*)=[^&;\s'\"]+"
)
_PACKAGES = ("duckdb", "ibis-framework", "numpy", "psycopg", "pyspark", "sqlalchemy")


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseRun:
    """What a run gave.

    Parameters
    ----------
    record : dict
        Everything that may be shown, as stored in the ledger.
    charge : Charge
        The entry of the ledger.
    folder : Path or None
        Where the files are; None if none were asked for.
    files : dict of str to str
        SHA-256 of each file by name.
    repeated : bool
        Whether this is the stored output of an earlier run, and nothing was charged.
    resumed : bool
        Whether another run had been charged and had no output yet.
    by_name : bool
        Whether the charge is of an earlier version, which may have taken it for another
        table of a like name.
    ledger : str or None
        Where it is charged: a file, or an address without its password.
    warning : str or None
        What a person should know about how the run is kept.
    notes : tuple of str
        What a person should know before anything is charged, and about an answer that
        was stored before; for whoever runs the release, and in no file.
    new_budget : NewBudget or None
        The ledger that the run has made.
    """

    record: dict[str, Any]
    charge: Charge
    folder: Path | None
    files: dict[str, str]
    repeated: bool
    resumed: bool
    by_name: bool = False
    ledger: str | None = None
    warning: str | None = None
    notes: tuple[str, ...] = ()
    new_budget: NewBudget | None = None

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The tables: name, columns, rows, confidence, notes."""
        return list(self.record["answers"])

    @property
    def story(self) -> str:
        """What happened; of a run of several, which one it is; and what was counted."""
        parts = [self._event]
        if self.record["plan"]["run"] is not None:
            parts.append(run_words(self.record["plan"]))
        if self.record.get("check"):
            parts.append(check_words(self.record["check"]))
        return " ".join(parts)

    @property
    def _event(self) -> str:
        entry = f"entry {self.charge.number}"
        if not self.repeated and not self.resumed:
            return f"Charged as {entry} of the ledger."
        rest = ""
        if self.by_name:
            rest = (
                "; an earlier version charged it, which did not tell it from tables of "
                "a like name, so ask for another repeat if it was another table"
            )
        if self.repeated:
            return (
                f"This was released before ({entry} of the ledger); the stored output "
                f"is returned and nothing was charged{rest}."
            )
        return (
            f"An earlier run was charged ({entry}) and had no output yet; it was "
            f"finished without a new charge{rest}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain values."""
        return {
            "title": self.record["title"],
            "story": self.story,
            "ledger": self.ledger,
            "warning": self.warning,
            "notes": list(self.notes),
            "new_budget": (
                None if self.new_budget is None else self.new_budget.to_dict()
            ),
            "charge": self.charge.to_dict(),
            "repeated": self.repeated,
            "resumed": self.resumed,
            "folder": None if self.folder is None else str(self.folder),
            "files": self.files,
            "plan": self.record["plan"],
            "check": self.record.get("check"),
            "answers": [
                {name: value for name, value in answer.items() if name != "nodes"}
                for answer in self.answers
            ],
        }


def check_words(check: Mapping[str, Any]) -> str:
    """Say what the count before a run gave."""
    return (
        f"A count with noise found {check['count']:,} {check['measure']}, at least "
        f"{check['at_least']:,} were asked for (entry {check['entry']})."
    )


def release_key(
    plan: ReleasePlan,
    *,
    run: int | None = None,
    repeat: int = 1,
    table: str | None = None,
) -> str:
    """Return the name under which a run is charged once.

    It depends on what is asked of which data for which promise, and not on where the
    answers are written. It is a digest, from which nothing of this can be read; no
    password is part of it.

    Parameters
    ----------
    plan : ReleasePlan
        The run.
    run : int, optional
        Another run of the same file, by its number; by default the planned one.
    repeat : int, optional
        Larger numbers name further, separately paid runs of the same thing.
    table : str, optional
        What tells the table from every other, from
        ``undertow.release.source._place.TablePlace.identities``; a table in memory has
        no name.
    """
    said = _asked(plan, run, repeat)
    source = said["release"]["source"]
    correlation, stated = (
        said["release"]["promise"].get("correlation"),
        plan.document.promise.correlation,
    )
    if correlation is not None and stated is not None:
        correlation["fit"] = stated.fit
    if table is not None:
        source["table"], source["relation"] = ["at", table], None
    return _digest(said)


def former_key(
    plan: ReleasePlan,
    *,
    run: int | None = None,
    repeat: int = 1,
    place: str | None = None,
) -> str:
    """Return the name under which earlier versions charged a run.

    They hid in the name of the table what looks like a secret, and took tables for one
    that differ in nothing else.

    Parameters
    ----------
    plan, run, repeat
        As in :func:`release_key`.
    place : str, optional
        The path of the table from the ledger, which the first versions did not know.
    """
    said = _asked(plan, run, repeat)
    source, promise = said["release"]["source"], said["release"]["promise"]
    source["table"] = formerly_shown(plan.document.source.table)
    if plan.document.promise.correlation is not None:
        promise["correlation"]["fit"] = formerly_shown(
            plan.document.promise.correlation.fit
        )
    if place is not None:
        said["place"] = place
    return _digest(said)


def formerly_shown(text: str | None) -> str | None:
    """Return a name as earlier versions wrote it into the key of a charge."""
    if text is None:
        return None
    return _FORMER_SECRET.sub(r"\1=***", _FORMER_USER.sub(r"\1:***@", text))


def question_digest(plan: ReleasePlan, *, repeat: int, table: str | None = None) -> str:
    """Return what tells a question from every other, whatever its queries are called.

    It differs from :func:`release_key`, whose parameters it has, in that the names of
    queries and their order are left out. It is kept with the charge.
    """
    said = _asked(plan, None, repeat)
    asked = [
        json.dumps({k: v for k, v in query.items() if k != "name"}, sort_keys=True)
        for query in said["release"]["queries"]
    ]
    said["release"] = {**said["release"], "queries": sorted(asked)}
    if table is not None:
        source = {**said["release"]["source"], "table": ["at", table], "relation": None}
        said["release"]["source"] = source
    return _digest(said)


def asked_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a document asks of which data, not where the answers are written."""
    asked = {k: v for k, v in document.items() if k not in ("output", "ledger")}
    source = asked.get("source")
    if isinstance(source, Mapping):  # whose rows they are is not asked of them
        asked["source"] = {k: v for k, v in source.items() if k != "people"}
    return asked


def _asked(plan: ReleasePlan, run: int | None, repeat: int) -> dict[str, Any]:
    asked = asked_of(plan.document.to_dict())
    number = plan.timeline.run if run is None else run
    part = None
    if number is None and plan.slice is not None:
        part = [plan.slice.start, plan.slice.stop]
    return {"release": asked, "run": number, "slice": part, "repeat": repeat}


def _digest(said: Mapping[str, Any]) -> str:
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def check_key(key: str, recount: int) -> str:
    """Return the name under which a count before a run is charged once.

    Parameters
    ----------
    key : str
        Of the run, from :func:`release_key`.
    recount : int
        Larger numbers name further, separately paid counts before the same run.
    """
    return hashlib.sha256(f"count {recount} before {key}".encode("ascii")).hexdigest()


def check_bytes(measure: str, least: int, count: int) -> bytes:
    """Return a noisy count as it is kept in the ledger."""
    found = {"measure": measure, "at_least": least, "count": count}
    return record_bytes({"format": _COUNT_FORMAT, **found})


def read_check(stored: bytes) -> dict[str, Any]:
    """Read a noisy count back.

    Raises
    ------
    LedgerError
        If the bytes are no such count.
    """
    found = _read(stored, _COUNT_FORMAT)
    return {name: value for name, value in found.items() if name != "format"}


def run_record(
    plan: ReleasePlan,
    answers: Sequence[QueryAnswer],
    *,
    engine: str,
    title: str,
    command: str | None = None,
    check: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return everything that may be shown of a run, as plain values.

    `check` is what the count before it gave, and the entry of its charge.
    """
    files = files_of(plan.document)
    return {
        "format": FORMAT,
        "title": title,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "engine": engine,
        "files": None if files is None else len(files),
        "versions": _versions(),
        "document": plan.document.to_dict(),
        "plan": plan.to_dict(),
        "check": None if check is None else dict(check),
        "answers": [{**a.to_dict(), "nodes": a.nodes} for a in answers],
    }


def _versions() -> dict[str, str]:
    found = {"undertow": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def record_bytes(record: Mapping[str, Any]) -> bytes:
    """Return a record as UTF-8 JSON."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def read_record(stored: bytes) -> dict[str, Any]:
    """Read a record back.

    Raises
    ------
    LedgerError
        If the bytes are no record of a release.
    """
    return _read(stored, FORMAT)


def _read(stored: bytes, form: str) -> dict[str, Any]:
    try:
        record = json.loads(stored)
    except ValueError:
        record = None
    if not isinstance(record, dict) or record.get("format") != form:
        raise LedgerError(
            f"the stored output must be a record of {form!r}, got something else; "
            "it was stored by another program or a newer version."
        )
    return record


def require_margins(
    record: Mapping[str, Any], document: ReleaseDocument, *, repeat: int
) -> None:
    """Refuse to hand out answers whose margins are not as the file says.

    Raises
    ------
    PlanError
        If the stored run settled them in another way.
    """
    found = bool(record["document"]["output"]["consistency"])
    asked = document.output.consistency
    if found != asked:
        raise PlanError(
            f"output.consistency must be {str(found).lower()} as in the stored run, "
            f"got {str(asked).lower()}; its answers are fixed, so set it back, or pay "
            f"for other ones with repeat={repeat + 1}."
        )


def record_files(
    record: Mapping[str, Any],
    charge: Charge,
    *,
    kind: str,
    ledger: str,
    head: Head | None = None,
) -> dict[str, bytes]:
    """Return the files of a run by name, the manifest among them.

    The manifest holds the promise, the parameters, theorems, versions, the ledger entry
    and the columns, types and digest of every table; no seed, and nothing of the data
    but the answers' own files.

    Parameters
    ----------
    record : mapping
        What is stored.
    charge : Charge
        Its entry of the ledger.
    kind : {"csv", "parquet"}
        How the tables are written; a stored run may be written in another way.
    ledger : str
        The hash that the ledger starts from, by which an older copy of it is told.
    head : Head, optional
        Where the ledger ended when the output was stored, for the same.
    """
    document = record["document"]
    answers = record["answers"]
    names = file_names([answer["name"] for answer in answers], kind=kind)
    files = {
        name: table_bytes(
            answer["columns"], answer["rows"], kind=kind, types=column_types(answer)
        )
        for name, answer in zip(names, answers, strict=True)
    }
    manifest = {
        **{name: value for name, value in record.items() if name != "answers"},
        "document": {**document, "output": {**document["output"], "format": kind}},
        "tables": [
            _table_entry(answer, name, files[name])
            for name, answer in zip(names, answers, strict=True)
        ],
        "charge": {
            "number": charge.number,
            "key": charge.key,
            "hash": charge.hash,
            "ledger": ledger,
            "head": None if head is None else {"count": head.count, "hash": head.hash},
        },
    }
    text = json.dumps(manifest, ensure_ascii=False, allow_nan=False, indent=2)
    files[MANIFEST] = f"{text}\n".encode("utf-8", "backslashreplace")
    return files


def _table_entry(
    answer: Mapping[str, Any], name: str, content: bytes
) -> dict[str, Any]:
    return {
        "name": answer["name"],
        "file": name,
        "columns": answer["columns"],
        "types": column_types(answer),
        "rows": len(answer["rows"]),
        "confidence": answer["confidence"],
        "notes": answer["notes"],
        "sha256": hashlib.sha256(content).hexdigest(),
    }


# Where a run stands in its ledger, and what the runs before it stored there.
#
# A run is charged under a key made from what it asks for, so that the same run is
# charged once. A running total adds up nodes of its binary tree that earlier runs have
# drawn: they are found under the keys of those runs. What a person should know of
# earlier runs, before this one is charged or its stored answer returned, is said here
# too.

Nodes = dict[str, dict[str, Sequence[Any]]]
"""For each running total, the noisy cells of each node of its tree, by its name."""


@dataclass(frozen=True, slots=True)
class RunKeys:
    """The keys under which a run may have been charged.

    Parameters
    ----------
    exact : tuple of str
        Of this table and no other; a new charge is made under the first.
    alike : tuple of str
        Of earlier versions, which took tables of like names for one.
    """

    exact: tuple[str, ...]
    alike: tuple[str, ...] = ()


def run_keys(
    plan: ReleasePlan, ledger: BudgetLedger, *, repeat: int, run: int | None = None
) -> RunKeys:
    """Return the keys of a run, those included under which earlier versions charged it.

    Parameters
    ----------
    plan : ReleasePlan
        Of this run.
    ledger : BudgetLedger
        Where it is charged.
    repeat : int
        Which of the outputs of the same run.
    run : int, optional
        The number of another run of the same release; by default that of the plan.
    """
    named, start = plan.document.source.table, _folder_of(ledger)
    tables = _tables(plan, start)
    if not tables:
        return RunKeys((release_key(plan, run=run, repeat=repeat),))
    exact = [release_key(plan, run=run, repeat=repeat, table=name) for name in tables]
    place = former_place(plan.document, start)
    former = [former_key(plan, run=run, repeat=repeat)]
    if place is not None:
        former.insert(0, former_key(plan, run=run, repeat=repeat, place=place))
    # With its place, or a whole name in which nothing was hidden, it was told apart.
    sure = int(place is not None or formerly_shown(named) == named)
    return RunKeys((*exact, *former[:sure]), tuple(former[sure:]))


def _folder_of(ledger: BudgetLedger) -> Path | None:
    kept = file_of(ledger.name)
    return None if kept is None else kept.resolve().parent


def _tables(plan: ReleasePlan, start: Path | None) -> tuple[str, ...]:
    """Return the names of a table, from the folder of a ledger; none in memory."""
    table = table_of(plan.document)
    return () if table is None else table.identities(start)


def question_of(
    plan: ReleasePlan, ledger: BudgetLedger, *, repeat: int
) -> tuple[str, ...]:
    """Return what tells the question of a run from others, by each name of its table.

    A charge keeps the first of them, for :func:`told_of_equal`.
    """
    tables = _tables(plan, _folder_of(ledger)) or (None,)
    return tuple(question_digest(plan, repeat=repeat, table=name) for name in tables)


def find_charge(ledger: BudgetLedger, keys: RunKeys) -> Charge | None:
    """Return the charge under the first of some keys that has one, if any."""
    found = (ledger.find(key) for key in (*keys.exact, *keys.alike))
    return next((charge for charge in found if charge is not None), None)


def told_of_equal(
    plan: ReleasePlan, ledger: BudgetLedger, *, repeat: int
) -> str | None:
    """Say that a question was answered under other names of its queries.

    Under new names it is another question to the ledger, and is paid for again. Charges
    that versions before made do not tell their questions, and are not found.
    """
    asked = question_of(plan, ledger, repeat=repeat)
    for entry in ledger.history():
        if entry.kind != "charge":
            continue
        if (entry.body.get("details") or {}).get("question") not in asked:
            continue
        charge = ledger.find(entry.key)
        stored = None if charge is None else ledger.output(charge)
        if stored is None:
            continue
        record = read_record(stored)
        names = ", ".join(repr(q["name"]) for q in record["document"]["queries"])
        return (
            f"The same question of the same table was answered on "
            f"{_day(record['made'])} (entry {entry.number} of the ledger): with its "
            f"queries named as then, in this order, {names}, a run returns that answer "
            "and charges nothing; with other names it draws another one and charges "
            "again."
        )
    return None


def told_of_changes(
    plan: ReleasePlan, ledger: BudgetLedger, charge: Charge, record: Mapping[str, Any]
) -> str | None:
    """Say that the files of a table are not what they were when it was answered.

    Only how many files there are, and when they were written, decides about it, and
    only for whoever runs the release: no row is read, and nothing of it is kept.

    Parameters
    ----------
    plan : ReleasePlan
        The run.
    ledger : BudgetLedger
        Where it was charged.
    charge : Charge
        Its charge.
    record : mapping
        What was stored.
    """
    files, read = files_of(plan.document), record.get("files")
    if files is None:
        if read is None:
            return None
        return (
            f"This is the answer of {_day(record['made'])}; the table is not there any "
            "more."
        )
    then = max(datetime.fromisoformat(t) for t in (charge.time, record["made"]))
    changed = [file for file in files if _written(file) > then.timestamp()]
    added = len(files) - read if isinstance(read, int) else 0
    if added > 0:
        what = f"from before {_counted(added)} added to the table"
    elif added < 0:
        what = f"from before {_counted(-added)} removed from the table"
    elif changed and len(files) == 1:
        what = "from before the file of the table was written, moved or copied there"
    elif changed:
        what = f"from before {_counted(len(changed))} written, moved or copied there"
    else:
        return None
    repeat = 2
    while find_charge(ledger, run_keys(plan, ledger, repeat=repeat)) is not None:
        repeat += 1
    return (
        f"This is the answer of {_day(record['made'])}, {what}: the same question of "
        f"the same table is answered once; --repeat {repeat} asks anew and charges "
        "again."
    )


def _counted(number: int) -> str:
    return "1 file was" if number == 1 else f"{number:,} files were"


def _day(made: str) -> str:
    """Return a moment to the minute, in UTC."""
    moment = datetime.fromisoformat(made).astimezone(UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _written(file: Path) -> float:
    """Return when a file was written or put in its place, whichever was later."""
    try:
        state = file.stat()
    except OSError:
        return 0.0
    return max(state.st_mtime, state.st_ctime)


def earlier_nodes(plan: ReleasePlan, ledger: BudgetLedger | None, repeat: int) -> Nodes:
    """Return the stored nodes that the running totals of a run add up.

    Parameters
    ----------
    plan : ReleasePlan
        The run.
    ledger : BudgetLedger or None
        Where earlier runs stored theirs; none before the first run.
    repeat : int
        Which of the outputs of the same runs.

    Raises
    ------
    PlanError
        If an earlier run has not stored its nodes, counts in other steps, or drew
        other noise.
    """
    running = [query.name for query in plan.queries if query.run is not None]
    run = plan.timeline.run
    if not running or run is None:
        return {}
    found: Nodes = {name: {} for name in running}
    for node in running_nodes(run):
        if node.last == run:
            continue
        stored = None
        if ledger is not None:
            keys = run_keys(plan, ledger, repeat=repeat, run=node.last)
            known = find_charge(ledger, keys)
            stored = None if known is None else ledger.output(known)
        if stored is None:
            raise PlanError(
                f"a running total must follow its earlier runs, got none of run "
                f"{node.last}; run the release for the earlier times first."
            )
        record = read_record(stored)
        _require_alike(plan, record)
        _add_nodes(found, record)
    return found


def _require_alike(plan: ReleasePlan, record: Mapping[str, Any]) -> None:
    """Refuse stored nodes of other steps or noise than the intervals assume."""
    stored = {query["name"]: query for query in record["plan"]["queries"]}
    for query in plan.queries:
        if query.run is None:
            continue
        found = stored.get(query.name, {})
        noise = stored_noise(found) if found else None
        if found.get("step") != float(query.step):
            asked = f"count in steps of {float(query.step):.6g}"
        elif noise is None or not noise.is_alike(query.noise):
            asked = f"carry {query.mechanism} in every node"
        else:
            continue
        raise PlanError(
            f"the earlier runs of {query.name!r} must {asked}, got those of another "
            "version; start a new release of the running total."
        )


def _add_nodes(found: Nodes, record: Mapping[str, Any]) -> None:
    for answer in record["answers"]:
        if answer["name"] in found:
            found[answer["name"]].update(answer["nodes"])

"""A run: plan, ask the engine, charge, draw noise, store, and only then write.

The order is the guarantee. The charge is committed before noise is drawn; the output
is committed to the ledger before anybody sees it; files are copies of what is stored.
So a kill at any point leaves a budget that was not passed and at most one output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from undertow._validate import check_count
from undertow.errors import AssumptionError, BudgetExceeded, PlanError
from undertow.release.engine import run_jobs
from undertow.release.ledger_place import frame_of, require_ledger
from undertow.release.outputs import check_folder, write_files
from undertow.release.plan import ReleasePlan
from undertow.release.record import (
    read_record,
    record_bytes,
    record_files,
    release_key,
    run_record,
)
from undertow.release.running import running_nodes
from undertow.release.source import Source, open_source

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger, Charge
    from undertow.mechanisms import NoiseSource
    from undertow.release.job import Aggregates

__all__ = ["ReleaseRun", "run_release"]

Progress = Callable[[str], None]
"""Called with what is being done, in a few words."""


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
        Whether an earlier run had been charged and died before it had an output.
    """

    record: dict[str, Any]
    charge: Charge
    folder: Path | None
    files: dict[str, str]
    repeated: bool
    resumed: bool

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The tables: name, columns, rows, confidence, notes."""
        return list(self.record["answers"])

    @property
    def story(self) -> str:
        """What happened, in one sentence."""
        if self.repeated:
            return (
                f"This was released before (entry {self.charge.number} of the ledger); "
                "the stored output is returned and nothing was charged."
            )
        if self.resumed:
            return (
                f"An earlier run was charged (entry {self.charge.number}) and ended "
                "before it had an output; it was finished without a new charge."
            )
        return f"Charged as entry {self.charge.number} of the ledger."

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain values."""
        return {
            "title": self.record["title"],
            "story": self.story,
            "charge": self.charge.to_dict(),
            "repeated": self.repeated,
            "resumed": self.resumed,
            "folder": None if self.folder is None else str(self.folder),
            "files": self.files,
            "plan": self.record["plan"],
            "answers": [
                {name: value for name, value in answer.items() if name != "nodes"}
                for answer in self.answers
            ],
        }


def run_release(
    plan: ReleasePlan,
    ledger: BudgetLedger,
    *,
    table: Any = None,
    folder: Path | None = None,
    title: str = "release",
    repeat: int = 1,
    command: str | None = None,
    progress: Progress | None = None,
    source: NoiseSource | None = None,
) -> ReleaseRun:
    """Run a planned release and charge it to a ledger.

    Parameters
    ----------
    plan : ReleasePlan
        The run, from :func:`~undertow.release.plan.plan_release`.
    ledger : BudgetLedger
        Of the data set; its domain must be that of the release, or have more windows
        where the release counts whole units.
    table : object, optional
        A table in memory, where the file names none.
    folder : Path, optional
        Where files go; none are written without it.
    title : str, optional
        What the release is called.
    repeat : int, optional
        The same run is charged once and gives one output, however often it is asked
        for; a larger number asks for another one, and pays for it.
    command : str, optional
        How the run was started, for the report.
    progress : callable, optional
        Told what is being done.
    source : NoiseSource, optional
        Secure noise by default. Seeded noise is refused.

    Raises
    ------
    BudgetExceeded
        Before any data is read, if the budget does not allow the run.
    EngineError
        If the table cannot be read; nothing is charged then.
    """
    tell = progress or _nobody
    _check(plan, ledger, folder, source)
    key = release_key(plan, repeat=check_count(repeat, "repeat"))
    known = ledger.find(key)
    if known is not None and known.state == "spoiled":
        raise PlanError(
            "this run must be open, got one that was closed without an output: "
            f"{known.reason or 'no reason given'}; ask for repeat={repeat + 1}."
        )
    stored = None if known is None else ledger.output(known)
    if known is None:
        _require_budget(plan, ledger)
    charge = known
    if stored is None:
        charge, stored = _release(
            plan, ledger, key, (table, title, command, repeat), tell, source
        )
    assert charge is not None
    record = read_record(stored)
    tell("writing the files")
    files = {} if folder is None else write_files(folder, record_files(record, charge))
    done = known is not None and known.state == "done"
    return ReleaseRun(
        record, charge, folder, files, done, known is not None and not done
    )


def _release(
    plan: ReleasePlan,
    ledger: BudgetLedger,
    key: str,
    about: tuple[Any, str, str | None, int],
    tell: Progress,
    source: NoiseSource | None,
) -> tuple[Charge, bytes]:
    """Ask, charge, draw and store; return what is committed, whoever committed it."""
    table, title, command, repeat = about
    earlier = _earlier_nodes(plan, ledger, repeat)
    tell("reading the table")
    with _open(plan, table) as opened:
        aggregates = _ask(plan, opened)
        engine = opened.backend
    tell("charging the ledger")
    details = {"fingerprint": plan.document.fingerprint(), "run": plan.timeline.run}
    charge = ledger.charge(
        plan.releases, key=key, label=title, details=details, frame=frame_of(plan)
    )
    tell("drawing the noise")
    answers = plan.answer(aggregates, source=source, earlier=earlier)
    record = run_record(plan, answers, engine=engine, title=title, command=command)
    return charge, ledger.store(charge, record_bytes(record))


def _open(plan: ReleasePlan, table: Any) -> Source:
    document = plan.document
    if (table is None) == (document.source.table is None):
        got = "neither" if table is None else "both"
        raise PlanError(f"one of source.table and table must be given, got {got}.")
    if table is not None:
        return open_source(table)
    return open_source(document.source, folder=document.path(""))


def _ask(plan: ReleasePlan, source: Source) -> list[Aggregates]:
    """Run the tasks, those of one slice over the same bounded rows."""
    derived = plan.document.derived(source.columns)
    key, found = token_bytes(32), dict[int, Any]()
    for part in dict.fromkeys(task.slice for task in plan.tasks):
        places = [at for at, task in enumerate(plan.tasks) if task.slice == part]
        answers = run_jobs(
            source,
            [plan.tasks[at].job for at in places],
            columns=derived,
            bounding=plan.bounding,
            slice=part,
            key=key,
        )
        found.update(zip(places, answers, strict=True))
    return [found[at] for at in range(len(plan.tasks))]


def _earlier_nodes(
    plan: ReleasePlan, ledger: BudgetLedger, repeat: int
) -> dict[str, dict[str, Sequence[Any]]]:
    """Return the stored nodes that the running totals of this run add up."""
    running = [query.name for query in plan.queries if query.run is not None]
    run = plan.timeline.run
    if not running or run is None:
        return {}
    found: dict[str, dict[str, Sequence[Any]]] = {name: {} for name in running}
    for node in running_nodes(run):
        if node.last == run:
            continue
        known = ledger.find(release_key(plan, run=node.last, repeat=repeat))
        stored = None if known is None else ledger.output(known)
        if stored is None:
            raise PlanError(
                f"a running total must follow its earlier runs, got none of run "
                f"{node.last}; run the release for the earlier times first."
            )
        _add_nodes(found, read_record(stored))
    return found


def _add_nodes(
    found: dict[str, dict[str, Sequence[Any]]], record: Mapping[str, Any]
) -> None:
    for answer in record["answers"]:
        if answer["name"] in found:
            found[answer["name"]].update(answer["nodes"])


def _check(
    plan: ReleasePlan,
    ledger: BudgetLedger,
    folder: Path | None,
    source: NoiseSource | None,
) -> None:
    """Refuse what can be refused before the data is touched."""
    if source is not None and source.simulated:
        raise AssumptionError(
            f"source must be secure for a release, got the {source.name} source; "
            "whoever knows a seed can remove the noise."
        )
    require_ledger(plan, ledger)
    if folder is not None:
        check_folder(folder)


def _require_budget(plan: ReleasePlan, ledger: BudgetLedger) -> None:
    after = ledger.quote(plan.releases)
    for granularity, budget in ledger.budgets.items():
        loss = after[granularity.name]
        if not loss.within(budget):
            raise BudgetExceeded(
                f"the run must fit the {granularity.name} budget of {budget}, got "
                f"{loss} after it; ask for less, or wait for a new budget."
            )


def _nobody(what: str) -> None:
    del what

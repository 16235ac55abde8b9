"""A run: plan, ask the engine, charge, draw noise, store, and only then write.

Where the file asks for a count before the release, that is a charge of its own, drawn
and stored first; a run that finds too little ends there. The order is the guarantee.
The charge is committed before noise is drawn; the output is committed to the ledger
before anybody sees it; files are copies of what is stored. So a kill at any point
leaves a budget that was not passed and at most one output. Where there is no ledger
yet, the table is read before one is made: a run that fails until then leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from undertow._validate import check_count
from undertow.errors import (
    AssumptionError,
    BudgetExceeded,
    LimitReached,
    PlanError,
    UndertowError,
)
from undertow.release.engine.pipeline import run_jobs
from undertow.release.plan.planned_release import ReleasePlan
from undertow.release.run._earlier import (
    keep_head,
    require_newest,
    require_own_folder,
    told_of_others,
)
from undertow.release.run._folder import check_folder, write_files
from undertow.release.run._ledger_place import (
    enlarged,
    frame_of,
    require_ledger,
)
from undertow.release.run._limit import RunWatch, engine_memory_mb
from undertow.release.run.record import (
    ReleaseRun,
    RunKeys,
    check_bytes,
    check_key,
    earlier_nodes,
    find_charge,
    question_of,
    read_check,
    read_record,
    record_bytes,
    record_files,
    require_margins,
    run_keys,
    run_record,
    told_of_changes,
    told_of_equal,
)
from undertow.release.source._place import absent_table
from undertow.release.source.opening import open_source
from undertow.release.source.table import Source

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger, Charge
    from undertow.mechanisms import NoiseSource
    from undertow.privacy.loss import Loss
    from undertow.release.engine.job import Aggregates


_MOST_RECOUNTS = 1000  # that are looked for where a killed run is finished


class Step(StrEnum):
    """What a run does next, in a few words."""

    READ = "reading the table"
    COUNT = "counting"
    CHARGE = "charging the ledger"
    DRAW = "drawing the noise"
    WRITE = "writing the files"


Progress = Callable[[str], None]
"""Called with what is being done, a :class:`Step`."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What the engine returned for a plan: without noise, never shown or kept.

    Parameters
    ----------
    aggregates : list of Aggregates
        For each task of the plan.
    engine : str
        What was asked.
    counted : list of Aggregates
        For each job of the count before the release.
    """

    aggregates: list[Aggregates]
    engine: str
    counted: list[Aggregates] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Reading({len(self.aggregates)} tasks, {self.engine})"


def read_table(
    plan: ReleasePlan,
    *,
    table: Any = None,
    folder: Path | None = None,
    title: str = "release",
    repeat: int = 1,
    recount: int = 1,
    progress: Progress | None = None,
    watch: RunWatch | None = None,
) -> Reading:
    """Read what a run needs where there is no ledger yet; nothing is made or charged.

    Parameters
    ----------
    plan, table, folder, title, repeat, recount, progress, watch
        As in :func:`run_release`.

    Raises
    ------
    PlanError
        If the run would be refused, whatever is in the table.
    EngineError
        If the table cannot be read.
    LimitReached
        If the reading meets a limit; that is to be charged, see :func:`with_charge`.
    """
    _check(folder, None)
    if folder is not None:
        require_own_folder(folder, title, plan.document)
    plan.timeline.require_over(_now())
    earlier_nodes(plan, None, _checked(repeat, "repeat"))
    _checked(recount, "recount")
    return _read(plan, table, progress or _nobody, watch or RunWatch())


def run_release(
    plan: ReleasePlan,
    ledger: BudgetLedger,
    *,
    table: Any = None,
    folder: Path | None = None,
    title: str = "release",
    repeat: int = 1,
    recount: int = 1,
    command: str | None = None,
    progress: Progress | None = None,
    source: NoiseSource | None = None,
    reading: Reading | None = None,
    watch: RunWatch | None = None,
    note: Progress | None = None,
) -> ReleaseRun:
    """Run a planned release and charge it to a ledger.

    Parameters
    ----------
    plan : ReleasePlan
        The run, from :func:`~undertow.release.plan.planned_release.plan_release`.
    ledger : BudgetLedger
        Of the data set; its domain must be that of the release, or have more windows
        where the release counts whole units.
    table : object, optional
        A table in memory, where the file names none.
    folder : Path, optional
        Where files go; none are written without it.
    title : str, optional
        What the release is called; a folder holds one release.
    repeat : int, optional
        The same run is charged once and gives one output, however often it is asked
        for; a larger number asks for another one, and pays for it.
    recount : int, optional
        The same for the count before the release, of a run that it stopped.
    command : str, optional
        How the run was started, for the report.
    progress : callable, optional
        Told what is being done.
    source : NoiseSource, optional
        Secure noise by default. Seeded noise is refused.
    reading : Reading, optional
        Of the same plan and table, from
        ``undertow.release.run.protocol.read_table``; the table is read now by
        default.
    watch : RunWatch, optional
        Its limits, as of ``undertow.release.run._limit``; none by default.
    note : callable, optional
        Told what a person should know, and what is to be known of a charge before it.

    Raises
    ------
    PlanError
        If the run is for a time still to come, closed, or stored with margins settled
        in another way, or the folder holds another release.
    OutdatedLedger
        If a manifest, or the head that is kept beside the table, tells of an output
        that the ledger does not know any more.
    BudgetExceeded
        Before any data is read, if the budget does not allow the run.
    AssumptionError
        If the count before the release finds too little; it alone is charged then.
    EngineError
        If the table cannot be read; nothing is charged then.
    LimitReached
        If it meets a limit of `watch`; it is charged then, without an output.
    """
    tell, watch = progress or _nobody, watch or RunWatch()
    _check(folder, source)
    keys = run_keys(plan, ledger, repeat=_checked(repeat, "repeat"))
    count = check_key(keys.exact[0], _checked(recount, "recount"))
    asked, notes = find_charge(ledger, keys), list[str]()
    absent = absent_table(plan.document)
    if asked is None and absent is not None:
        if plan.check is None or ledger.find(count) is None:  # which may have ended it
            raise absent
    require_ledger(plan, ledger)
    say = note or _nobody
    try:
        known = _known(plan, ledger, keys, repeat, count)
    except BudgetExceeded:
        # The answer that is there may be all that is wanted.
        equal = told_of_equal(plan, ledger, repeat=repeat)
        if equal is not None:
            say(equal)
        raise
    if known is None and plan.check is not None:
        _require_enough(_stored_count(ledger, count, recount), recount)
    if folder is not None:
        require_own_folder(folder, title, plan.document)
    require_newest(plan.document, ledger, folder)
    if known is None:
        notes = _notes(plan, ledger, folder, repeat)
        for sentence in notes:
            say(sentence)
    charge, stored = known, None if known is None else ledger.output(known)
    ours = False
    if charge is None or stored is None:
        key = keys.exact[0] if charge is None else charge.key
        charge, stored, ours = _release(
            plan,
            ledger,
            key,
            (table, title, command, repeat, recount),
            tell,
            source,
            reading,
            watch,
        )
    record = read_record(stored)
    require_margins(record, plan.document, repeat=repeat)
    warning = keep_head(plan.document, ledger, charge)
    tell(Step.WRITE)
    kind = plan.document.output.format
    files: dict[str, str] = {}
    if folder is not None:
        made = record_files(
            record,
            charge,
            kind=kind,
            ledger=ledger.start,
            head=ledger.output_head(charge),
        )
        files = write_files(folder, made)
    # Another run may have charged or stored meanwhile; what is said is what happened.
    done, waiting = charge.repeated and not ours, charge.repeated and ours
    if done and known is not None:
        changes = told_of_changes(plan, ledger, charge, record)
        if changes is not None:
            notes.append(changes)
            say(changes)
    by_name = charge.key in keys.alike
    return ReleaseRun(
        record,
        charge,
        folder,
        files,
        done,
        waiting,
        by_name,
        ledger.name,
        warning,
        tuple(notes),
    )


def foreseen(plan: ReleasePlan, ledger: BudgetLedger, folder: Path | None) -> list[str]:
    """Return what a person should know before a run; nothing is written or charged.

    Parameters
    ----------
    plan : ReleasePlan
        Of the run.
    ledger : BudgetLedger
        That it would be charged to, which may be open for reading only.
    folder : Path or None
        Where it would write.
    """
    charge = find_charge(ledger, run_keys(plan, ledger, repeat=1))
    if charge is None:
        return _notes(plan, ledger, folder, 1)
    stored = ledger.output(charge)
    if stored is None:
        return []
    found = told_of_changes(plan, ledger, charge, read_record(stored))
    return [] if found is None else [found]


def _notes(
    plan: ReleasePlan, ledger: BudgetLedger, folder: Path | None, repeat: int
) -> list[str]:
    """Return what a person should know before a run is charged."""
    found = (
        told_of_equal(plan, ledger, repeat=repeat),
        told_of_others(plan.document, ledger, folder),
    )
    return [sentence for sentence in found if sentence is not None]


def _known(
    plan: ReleasePlan,
    ledger: BudgetLedger,
    keys: RunKeys,
    repeat: int,
    count: str,
) -> Charge | None:
    """Return the charge of this run, if any; a new one is refused if it must be."""
    known = find_charge(ledger, keys)
    if known is None:
        plan.timeline.require_over(_now())
        try:
            _require_budget(plan, ledger, count)
        except BudgetExceeded:
            # The same run may have been charged by another process since.
            known = find_charge(ledger, keys)
            if known is None:
                raise
    if known is not None:
        _require_open(known, f"repeat={repeat + 1}")
    return known


def _require_open(charge: Charge, other: str) -> None:
    if charge.state == "spoiled":
        raise PlanError(
            "this run must be open, got one that was closed without an output: "
            f"{charge.reason or 'no reason given'}; ask for {other}."
        )


def _release(
    plan: ReleasePlan,
    ledger: BudgetLedger,
    key: str,
    about: tuple[Any, str, str | None, int, int],
    tell: Progress,
    source: NoiseSource | None,
    reading: Reading | None,
    watch: RunWatch,
) -> tuple[Charge, bytes, bool]:
    """Ask, charge, draw and store; return what is committed, and if it is our draw."""
    table, title, command, repeat, recount = about
    earlier = earlier_nodes(plan, ledger, repeat)
    if reading is None:
        try:
            reading = _read(plan, table, tell, watch)
        except LimitReached as fault:
            raise with_charge(
                fault, plan, ledger, title=title, repeat=repeat, key=key
            ) from None
    read = reading
    check = None
    paid = ledger.find(key)
    if plan.check is not None and paid is not None:  # a count would protect nothing
        check = _passed_count(ledger, paid, recount)
    elif plan.check is not None:
        tell(Step.COUNT)
        count = check_key(key, recount)
        check = _count(plan, ledger, count, (title, recount), source, read)
    tell(Step.CHARGE)
    charge = _charge(plan, ledger, key, title=title, repeat=repeat)
    tell(Step.DRAW)

    def draw() -> bytes:
        answers = plan.answer(read.aggregates, source=source, earlier=earlier)
        record = run_record(
            plan, answers, engine=read.engine, title=title, command=command, check=check
        )
        return record_bytes(record)

    try:
        drawn = watch.bounded(draw, timed=False)
    except LimitReached as fault:
        raise _said(fault, charge) from None
    stored = ledger.store(charge, drawn)
    return charge, stored, stored == drawn


def _charge(
    plan: ReleasePlan, ledger: BudgetLedger, key: str, *, title: str, repeat: int
) -> Charge:
    details = {
        "fingerprint": plan.document.fingerprint(),
        "run": plan.timeline.run,
        "question": question_of(plan, ledger, repeat=repeat)[0],
    }
    return ledger.charge(
        plan.releases, key=key, label=title, details=details, frame=frame_of(plan)
    )


def with_charge(
    fault: LimitReached,
    plan: ReleasePlan,
    ledger: BudgetLedger,
    *,
    title: str,
    repeat: int = 1,
    key: str | None = None,
) -> LimitReached:
    """Charge a run that met a limit while it read, without an output, and say so.

    Whether a run meets a limit depends on the rows. No epsilon bounds what that tells;
    but nobody learns it of one question after another without paying for each.

    Parameters
    ----------
    fault : LimitReached
        What was met.
    plan, ledger, title, repeat
        As in :func:`run_release`.
    key : str, optional
        Of the charge; by default that of the run.
    """
    try:
        if key is None:
            keys = run_keys(plan, ledger, repeat=repeat)
            known = find_charge(ledger, keys)
            key = keys.exact[0] if known is None else known.key
        charge = _charge(plan, ledger, key, title=title, repeat=repeat)
        return _said(fault, charge)
    except UndertowError as refusal:
        return LimitReached(f"{fault}, and it could not be charged: {refusal}")


def _said(fault: LimitReached, charge: Charge) -> LimitReached:
    return LimitReached(
        f"{fault}; it is charged as entry {charge.number} without an output, because "
        "whether it meets a limit depends on the rows: run it again with a larger "
        "limit, which is not charged again."
    )


def _count(
    plan: ReleasePlan,
    ledger: BudgetLedger,
    key: str,
    about: tuple[str, int],
    source: NoiseSource | None,
    read: Reading,
) -> dict[str, Any]:
    """Charge, draw and store the count before a run, once; refuse if it is too small.

    The stored count decides, whoever drew it: that of another run at the same time, or
    of one that was killed before its release.
    """
    assert plan.check is not None
    title, recount = about
    stored = _stored_count(ledger, key, recount)
    if stored is None:
        details = {"fingerprint": plan.document.fingerprint(), "run": plan.timeline.run}
        charge = ledger.charge(
            plan.check.releases,
            key=key,
            label=f"{title} (count)",
            details=details,
            frame=plan.check.frame(frame_of(plan)),
        )
        drawn = plan.check.noisy(read.counted, source=source)
        found = check_bytes(str(plan.check.measure), plan.check.least, drawn)
        found = ledger.store(charge, found)
        # A run that ends here hands out its count: an older copy must not draw again.
        keep_head(plan.document, ledger, charge)
        stored = {**read_check(found), "entry": charge.number}
    _require_enough(stored, recount)
    return stored


def _stored_count(
    ledger: BudgetLedger, key: str, recount: int
) -> dict[str, Any] | None:
    """Return the stored count before a run, if any."""
    charge = ledger.find(key)
    if charge is None:
        return None
    _require_open(charge, f"recount={recount + 1}")
    stored = ledger.output(charge)
    return None if stored is None else {**read_check(stored), "entry": charge.number}


def _passed_count(
    ledger: BudgetLedger, paid: Charge, recount: int
) -> dict[str, Any] | None:
    """Return the count that let a run pass which is charged; None if a limit met it."""
    numbers = {*range(1, _MOST_RECOUNTS + 1), recount}
    keys = {check_key(paid.key, number) for number in numbers}
    for entry in reversed(ledger.history(limit=paid.number - 1)):
        if entry.kind != "charge" or entry.key not in keys:
            continue
        charge = ledger.find(entry.key)
        stored = None if charge is None else ledger.output(charge)
        found = None if stored is None else read_check(stored)
        if found is not None and found["count"] >= found["at_least"]:
            return {**found, "entry": entry.number}
    return None


def _require_enough(check: dict[str, Any] | None, recount: int) -> None:
    """Refuse a run whose count found too little."""
    if check is None or check["count"] >= check["at_least"]:
        return
    raise AssumptionError(
        f"the release must find at least {check['at_least']:,} {check['measure']}, got "
        f"{check['count']:,} in a count with noise, which is charged as entry "
        f"{check['entry']}; the release itself is not: run undertow release check to "
        "see why, and repair the release file; or the table, and count anew with "
        f"--recount {recount + 1}."
    )


def _read(plan: ReleasePlan, table: Any, tell: Progress, watch: RunWatch) -> Reading:
    def read() -> Reading:
        with open_table(plan, table) as opened:
            found = _ask(plan, opened)
            tasks = len(plan.tasks)
            return Reading(found[:tasks], opened.backend, found[tasks:])

    tell(Step.READ)
    return watch.bounded(read)


def open_table(plan: ReleasePlan, table: Any) -> Source:
    """Open the table of a plan, named by its file or given in memory."""
    document = plan.document
    if (table is None) == (document.source.table is None):
        got = "neither" if table is None else "both"
        raise PlanError(f"one of source.table and table must be given, got {got}.")
    most = engine_memory_mb()
    if table is not None:
        return open_source(table, types=document.source.types, memory_mb=most)
    return open_source(document.source, folder=document.path(""), memory_mb=most)


def _ask(plan: ReleasePlan, source: Source) -> list[Aggregates]:
    """Run the tasks and the count, those of one slice over the same bounded rows."""
    asked = [(task.job, task.slice) for task in plan.tasks]
    if plan.check is not None:
        asked += [(job, plan.check.slice) for job in plan.check.jobs]
    derived = plan.document.derived(source.columns)
    key, found = token_bytes(32), dict[int, Any]()
    for part in dict.fromkeys(part for _, part in asked):
        places = [at for at, (_, read) in enumerate(asked) if read == part]
        answers = run_jobs(
            source,
            [asked[at][0] for at in places],
            columns=derived,
            bounding=plan.bounding,
            slice=part,
            key=key,
        )
        found.update(zip(places, answers, strict=True))
    return [found[at] for at in range(len(asked))]


def _check(folder: Path | None, source: NoiseSource | None) -> None:
    """Refuse what can be refused before the data is touched."""
    if source is not None and source.simulated:
        raise AssumptionError(
            f"source must be secure for a release, got the {source.name} source; "
            "whoever knows a seed can remove the noise."
        )
    if folder is not None:
        check_folder(folder)


def _checked(number: int, name: str) -> int:
    try:
        return check_count(number, name)
    except ValueError as fault:
        raise PlanError(str(fault)) from None


def _require_budget(plan: ReleasePlan, ledger: BudgetLedger, count: str) -> None:
    """Refuse a run, with its count unless it was charged, that does not fit."""
    asked = list(plan.releases)
    if plan.check is not None and ledger.find(count) is None:
        asked += plan.check.releases
    after = ledger.quote(asked)
    for state in ledger.budget_states():  # those of correlation models too
        loss = after[state.name]
        if not loss.within(state.budget):
            raise BudgetExceeded(
                f"the run must fit the {state.name} budget of {state.budget}, got "
                f"{loss} after it in the ledger {ledger.name}; "
                f"{_way_out(plan, ledger, state.left)}."
            )


def _way_out(plan: ReleasePlan, ledger: BudgetLedger, left: Loss) -> str:
    """Say what can be done where a budget is spent: it is never raised by itself."""
    made_by = "undertow ledger init"
    if not ledger.models:  # no command of one line states them again
        name = ledger.dataset
        command = enlarged(plan, ledger.name, dataset=name, after=True)
        made_by = made_by if command is None else f"{command} (ten such releases)"
    return (
        f"{left} of it is left and a stated budget is not raised, so ask for no more "
        "than that, or decide that these people may lose more, and state a second one "
        f"on purpose, which adds to this one, with {made_by}, and name it with --ledger"
    )


def _now() -> datetime:
    """Return the time; the clock that runs are held against."""
    return datetime.now(UTC)


def _nobody(what: str) -> None:
    del what

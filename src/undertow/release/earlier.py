"""Where a run stands in its ledger, and what the runs before it stored there.

A run is charged under a key made from what it asks for, so that the same run is charged
once. A running total adds up nodes of its binary tree that earlier runs have drawn:
they are found under the keys of those runs. What a person should know of earlier runs,
before this one is charged or its stored answer returned, is said here too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undertow.errors import PlanError
from undertow.release.ledger_place import file_of
from undertow.release.record import (
    former_key,
    formerly_shown,
    question_digest,
    read_record,
    release_key,
)
from undertow.release.release_plan import ReleasePlan
from undertow.release.running import running_nodes
from undertow.release.table_place import files_of, former_place, table_of

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger, Charge

__all__ = [
    "RunKeys",
    "earlier_nodes",
    "find_charge",
    "question_of",
    "run_keys",
    "told_of_changes",
    "told_of_equal",
]

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
        if found.get("step") != float(query.step):
            asked = f"count in steps of {float(query.step):.6g}"
        elif not _is_same_noise(query.expected_error, found):
            asked = f"carry {query.mechanism} in every node"
        else:
            continue
        raise PlanError(
            f"the earlier runs of {query.name!r} must {asked}, got those of another "
            "version; start a new release of the running total."
        )


def _is_same_noise(asked: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Tell whether two nodes have noise of the same law and size."""
    # The words name the law and six digits of the scale; the deviation tells the rest,
    # up to the last digits, in which machines differ.
    size = found.get("node_deviation") or 0.0
    same = math.isclose(asked["node_deviation"], size, rel_tol=1e-9)
    return same and asked["mechanism"] == found.get("mechanism")


def _add_nodes(found: Nodes, record: Mapping[str, Any]) -> None:
    for answer in record["answers"]:
        if answer["name"] in found:
            found[answer["name"]].update(answer["nodes"])

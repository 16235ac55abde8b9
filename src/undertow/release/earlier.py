"""Where a run stands in its ledger, and what the runs before it stored there.

A run is charged under a key made from what it asks for, so that the same run is charged
once. A running total adds up nodes of its binary tree that earlier runs have drawn:
they are found under the keys of those runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from undertow.errors import PlanError
from undertow.release.ledger_place import file_of
from undertow.release.plan import ReleasePlan
from undertow.release.record import (
    former_key,
    formerly_shown,
    read_record,
    release_key,
)
from undertow.release.running import running_nodes
from undertow.release.table_place import former_place, table_of

if TYPE_CHECKING:
    from undertow.ledger import BudgetLedger, Charge

__all__ = ["RunKeys", "earlier_nodes", "find_charge", "run_keys"]

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
    table, named = table_of(plan.document), plan.document.source.table
    if table is None:
        return RunKeys((release_key(plan, run=run, repeat=repeat),))
    kept = file_of(ledger.name)
    start = None if kept is None else kept.resolve().parent
    exact = [
        release_key(plan, run=run, repeat=repeat, table=name)
        for name in table.identities(start)
    ]
    place = former_place(plan.document, start)
    former = [former_key(plan, run=run, repeat=repeat)]
    if place is not None:
        former.insert(0, former_key(plan, run=run, repeat=repeat, place=place))
    # With its place, or a whole name in which nothing was hidden, it was told apart.
    sure = int(place is not None or formerly_shown(named) == named)
    return RunKeys((*exact, *former[:sure]), tuple(former[sure:]))


def find_charge(ledger: BudgetLedger, keys: RunKeys) -> Charge | None:
    """Return the charge under the first of some keys that has one, if any."""
    found = (ledger.find(key) for key in (*keys.exact, *keys.alike))
    return next((charge for charge in found if charge is not None), None)


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

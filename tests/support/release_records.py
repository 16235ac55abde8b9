"""Records of releases for tests of what is made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from support.release_plans import COUNT, WINDOWED, count_aggregates, release_plan
from undertow.mechanisms import SimulatedSource
from undertow.release.run.record import run_record

EVIL = "<script>alert(1)</script> \"quoted\" 'x' & \u202edlrow `|`"
CHARGE = {"number": 7, "key": "ab" * 32, "hash": "cd" * 32}
ZONES = ["centre", "west & east", EVIL, "a", "b"]
HOSTILE = {
    "name": EVIL,
    "select": "count",
    "by": ["day", EVIL],
    "keys": {"day": "2026-01-01..2026-01-04", EVIL: ZONES},
}
MARKOV = {"model": "markov", "transition": [["0.7", "0.3"], ["0.4", "0.6"]]}


def planned_record(
    promise: Mapping[str, Any], queries: Sequence[Mapping[str, Any]] = (COUNT,), **parts
) -> dict[str, Any]:
    """Return the record of a plan: there are no answers."""
    plan = release_plan(promise, queries, **parts)
    return run_record(plan, (), engine="none", title="plan", command="undertow plan")


def finished_record(
    promise: Mapping[str, Any], queries: Sequence[Mapping[str, Any]] = (COUNT,), **parts
) -> dict[str, Any]:
    """Return the record of a charged run on 40 rows in every cell."""
    plan = release_plan(promise, queries, **parts)
    given = [count_aggregates(task.job, 40) for task in plan.tasks]
    answers = plan.answer(given, source=SimulatedSource(5))
    record = run_record(
        plan, answers, engine="duckdb", title=EVIL, command="undertow release run x"
    )
    for answer in record["answers"]:
        answer["simulated"] = False
    return {**record, "charge": CHARGE}


def hostile_record() -> dict[str, Any]:
    """Return the record of a run whose every name tries to break out of the page."""
    return finished_record(
        {"epsilon": 1, "granularity": "event", "correlation": MARKOV},
        [HOSTILE, {**COUNT, "name": "by hour"}, {"name": "all", "select": "count"}],
        source=WINDOWED,
        threat={"categories": [EVIL, "other"]},
    )

"""Answers beside each other: margins of one run, and the totals of several."""

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from undertow import release
from undertow.mechanisms import SimulatedSource
from undertow.release.document.release_document import release_from_mapping
from undertow.release.engine.pipeline import run_jobs
from undertow.release.plan.planned_release import plan_release
from undertow.release.source.opening import open_source

START = datetime(2026, 1, 1)
HOURS = 8


def planned(*, cells: int, wishes=(), **bounds):
    """A table of cells and its total, both with the same noise."""
    keys = {"by": ["zone"], "keys": {"zone": f"0..{cells - 1}"}}
    common = {"select": "count", "consistent": list(wishes), "share": 1}
    document = {
        "source": {"unit": "person"},
        "promise": {"granularity": "user:add-remove", "epsilon": "1"},
        "bounds": {"rows_per_unit": 4, **bounds},
        "queries": [{"name": "cells", **common, **keys}, {"name": "total", **common}],
        "output": {"consistency": True},
    }
    return plan_release(release_from_mapping(document, in_memory=True))


def aggregates(plan, people, zones):
    rows = [(person, zone) for person in range(people) for zone in range(zones)]
    table = pa.table({"person": [r[0] for r in rows], "zone": [r[1] for r in rows]})
    jobs = [task.job for task in plan.tasks]
    with open_source(table) as source:
        return run_jobs(source, jobs, bounding=plan.bounding, key=bytes(16))


def total_of(answers):
    [(estimate, low, high)] = answers[1].rows
    assert sum(row[-3] for row in answers[0].rows) == pytest.approx(estimate)
    return estimate, low, high


@pytest.mark.parametrize("wishes", [(), ("non-negative",), ("non-negative", "integer")])
def test_totals_beside_many_empty_cells_stay_in_their_intervals(wishes):
    plan = planned(cells=200, wishes=wishes)
    found = aggregates(plan, people=30, zones=1)
    noise = SimulatedSource(1)
    drawn = [total_of(plan.answer(found, source=noise)) for _ in range(20)]
    inside = sum(low - 1 <= estimate <= high + 1 for estimate, low, high in drawn)
    assert inside >= 13
    if "non-negative" in wishes:
        answers = plan.answer(found, source=noise)
        assert all(row[-3] >= 0 and row[-2] >= 0 for a in answers for row in a.rows)
    if "integer" in wishes:
        assert all(isinstance(estimate, int) for estimate, _, _ in drawn)


@pytest.mark.parametrize("bound", ["groups_per_unit", "rows_per_group"])
def test_tables_that_count_other_rows_are_not_made_to_add_up(bound):
    plan = planned(cells=4, **{bound: 1})
    answers = plan.answer(aggregates(plan, people=300, zones=4))
    assert not any("add up" in note for answer in answers for note in answer.notes)
    assert all(isinstance(row[-3], int) for answer in answers for row in answer.rows)


PROMISES = {
    "rho": {"rho": "1/2"},
    "delta": {"epsilon": "1", "delta": "1/1000000"},
}


LEVELS = [
    ("event", "delta"),
    ("w-event:2", "delta"),
    ("w-event:4", "delta"),
    ("user", "delta"),
    ("event", "rho"),
]


@pytest.mark.parametrize(("level", "currency"), LEVELS)
def test_running_totals_go_on_to_the_end_of_the_horizon(level, currency, tmp_path):
    times = [START + timedelta(hours=hour, minutes=5) for hour in range(HOURS)]
    table = pa.table({"person": [1] * HOURS, "ts": times})
    document = {
        "source": {
            "unit": "person",
            "time": "ts",
            "per": {"window": "1h"},
            "start": "2026-01-01",
            "horizon": f"{HOURS}h",
        },
        "promise": {"granularity": level, **PROMISES[currency]},
        "bounds": {"rows_per_unit": 1},
        "queries": [{"name": "total", "select": "count", "running": True}],
    }
    city = release.from_table(table, document)
    place = str(tmp_path / "city.ledger")
    city.create_ledger(place, as_of=START + timedelta(hours=1)).close()
    for hour in range(1, HOURS + 1):
        done = city.run(ledger=place, as_of=START + timedelta(hours=hour))
        assert not done.repeated

"""From a table to its intervals: they are about the column's own numbers."""

import numpy as np
import pyarrow as pa
import pytest

from undertow.errors import PlanError
from undertow.mechanisms import SimulatedSource
from undertow.release.document.release_document import release_from_mapping
from undertow.release.engine.pipeline import run_jobs
from undertow.release.plan.planned_release import plan_release
from undertow.release.source.opening import open_source

ROWS = 200_000
ROW_EACH = {"per": "event"}


def planned(query, *, source=ROW_EACH, promise=None, **parts):
    promise = {"granularity": "event", "epsilon": "50"} if promise is None else promise
    query = {"name": "q", **query}
    whole = {"source": source, "promise": promise, "queries": [query], **parts}
    return plan_release(release_from_mapping(whole, in_memory=True))


def read(plan, column):
    with open_source(pa.table({"v": column}), threads=1) as source:
        return run_jobs(source, [task.job for task in plan.tasks])


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        pytest.param(1, 0, 2_000_000, id="whole numbers far below the bound"),
        pytest.param(39_999, 0, 10_000_000, id="whole numbers of a wide range"),
        pytest.param(-1.15, -3, 2, id="floating point"),
        pytest.param(0.7, "0.1", "0.9", id="a bound that is no multiple of the step"),
    ],
)
def test_the_rounding_of_rows_is_small_beside_the_interval_of_a_sum(number, low, high):
    query = {"select": "sum", "column": "v", "low": low, "high": high}
    plan = planned(query)
    (found,) = read(plan, np.full(ROWS, number))
    (query,) = plan.queries
    (steps,) = query.encoding.vector(found).ravel()
    off = abs(float(steps * query.step) - ROWS * number)
    assert off < query.expected_error["half_width"] / 50


def test_the_interval_of_a_variance_is_about_numbers_that_were_not_rounded():
    values, times = np.array([0.37, 0.871]), [3 * 10**8, 10**8]
    plan = planned({"select": "variance", "column": "v", "low": 0, "high": 1})
    (found,) = read(plan, values)
    (one,) = read(plan, values[:1])
    for name, both in found.measures.items():  # the same two rows, many times
        first = int(one.measures[name][0])
        total = first * times[0] + (int(both[0]) - first) * times[1]
        found.measures[name] = np.array([total], dtype=object)
    (answer,) = plan.answer([found], source=SimulatedSource(3))
    _, low, high = answer.rows[0]
    assert low <= 3 / 16 * (values[1] - values[0]) ** 2 <= high
    assert high - low < 1e-5


def test_the_estimate_of_a_variance_lies_in_its_interval():
    grid = {"by": ["k"], "keys": {"k": "1..2000"}}
    query = {"select": "variance", "column": "v", "low": 0, "high": 1, **grid}
    promise = {"granularity": "event", "rho": "0.1"}
    plan = planned(query, promise=promise)
    ends = planned({"select": "variance", "column": "v", "low": 0, "high": 1})
    (cell,) = read(ends, np.repeat([0.0, 1.0], [70, 30]))
    cells = tuple((key,) for key in range(1, 2001))
    measures = {
        name: np.repeat(numbers, 2000) for name, numbers in cell.measures.items()
    }
    (answer,) = plan.answer([type(cell)(cells, measures)], source=SimulatedSource(5))
    assert all(low <= estimate <= high for *_, estimate, low, high in answer.rows)


def test_running_totals_need_listed_keys():
    query = {"select": "count", "by": ["z"], "keys": "discover", "running": True}
    source = {
        "unit": "p",
        "time": "ts",
        "per": {"window": "1h"},
        "start": "2026-01-01",
        "horizon": "8h",
    }
    promise = {"granularity": "event", "epsilon": "1", "delta": "1e-6"}
    with pytest.raises(PlanError, match="must list its keys, got keys to discover"):
        planned(query, source=source, promise=promise, bounds={"rows_per_unit": 1})

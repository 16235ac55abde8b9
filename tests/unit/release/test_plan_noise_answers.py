"""The error that a plan states is the half-width of the intervals in the answer."""

from fractions import Fraction

import numpy as np
import pytest

from support.release_plans import (
    COUNT,
    HOURS,
    WINDOWED,
    count_aggregates,
    release_plan,
    value_aggregates,
)
from undertow.mechanisms import SimulatedSource
from undertow.release.engine.job import Aggregates
from undertow.release.plan.timeline import running_nodes

VALUE = {"column": "v", "low": -2, "high": 6}
ROWS = 5000
PROMISES = [{"epsilon": 2}, {"rho": "0.7"}, {"epsilon": 2, "delta": "1e-6"}]
EXACT = [
    COUNT,
    {"name": "u", "select": "count_distinct", **HOURS},
    {"name": "s", "select": "sum", **VALUE, **HOURS},
    {"name": "h", "select": "histogram", **VALUE, "bins": 4},
]


def planned(promise, query, **parts):
    plan = release_plan({**promise, "confidence": "0.9"}, [query], **parts)
    (error,) = plan.expected_errors()
    return plan, error["half_width"]


def answered(plan, aggregates, **more):
    (answer,) = plan.answer(aggregates, source=SimulatedSource(4), **more)
    return np.array([row[-3:] for row in answer.rows], dtype=float).T


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("query", EXACT, ids=lambda query: query["select"])
def test_the_half_width_of_counts_and_sums_is_the_planned_one(promise, query):
    plan, half = planned(promise, query)
    given = [count_aggregates(task.job, 40) for task in plan.tasks]
    estimate, low, high = answered(plan, given)
    assert half > 0
    assert estimate - low == pytest.approx(half)
    assert high - estimate == pytest.approx(half)


@pytest.mark.parametrize("promise", PROMISES[:2], ids=str)
@pytest.mark.parametrize("run", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("select", ["count", "sum"])
def test_the_half_width_of_a_running_total_is_the_planned_one(promise, run, select):
    query = {"name": "r", "select": select, "running": True, **HOURS}
    query |= VALUE if select == "sum" else {}
    plan, half = planned(
        {**promise, "granularity": "event"},
        query,
        source=WINDOWED,
        as_of=f"2026-01-01T{run:02d}:00",
    )
    earlier = {str(node): [[5]] * 4 for node in running_nodes(run) if node.last < run}
    given = [count_aggregates(task.job, 5) for task in plan.tasks]
    estimate, low, high = answered(plan, given, earlier={"r": earlier})
    assert estimate - low == pytest.approx(half)
    assert high - estimate == pytest.approx(half)


def test_the_half_width_of_discovered_units_is_the_planned_one():
    query = {"name": "d", "select": "count_distinct", "by": ["z"], "keys": "discover"}
    plan, half = planned(PROMISES[2], query)
    cells = tuple((f"k{at}",) for at in range(40))
    units = np.array([plan.queries[0].threshold + 5 * at for at in range(40)])
    estimate, low, high = answered(plan, [Aggregates(cells, {"units": units})])
    assert high - estimate == pytest.approx(half)
    clear = estimate >= plan.queries[0].threshold + 2 * half
    assert estimate[clear] - low[clear] == pytest.approx(half)
    assert clear.any()
    assert set(low[~clear]) == {1}


def test_the_half_width_of_discovered_rows_is_the_planned_one():
    query = {"name": "d", "select": "count", "by": ["z"], "keys": "discover"}
    plan, half = planned(PROMISES[2], query)
    numbers = {"units": np.array([10**4]), "rows": np.array([10**5])}
    estimate, low, high = answered(plan, [Aggregates((("k",),), numbers)])
    assert [estimate - low, high - estimate] == [half, half]


@pytest.mark.parametrize("promise", PROMISES[:2], ids=str)
@pytest.mark.parametrize("part", ["0.01", "0.3", "0.5", "0.8", "0.99"])
def test_the_half_width_of_a_mean_is_at_most_the_planned_one_over_the_rows(
    promise, part
):
    plan, half = planned(promise, {"name": "m", "select": "mean", **VALUE})
    job = plan.tasks[0].job
    code = int(Fraction(part) * job.value.most)
    _, low, high = answered(plan, [value_aggregates(job, [code] * ROWS)])
    step = float(job.value.step)
    most = half / ROWS * 1.01 + step
    assert (high - low)[0] / 2 <= most
    if part in ("0.3", "0.5", "0.8"):  # not cut off at the bounds
        assert (high - low)[0] / 2 >= half / ROWS * 0.65


@pytest.mark.parametrize("promise", PROMISES[:2], ids=str)
@pytest.mark.parametrize("parts", [(0, 0), (0.5, 0.5), (1, 1), (0, 1), (0.2, 0.9)])
def test_the_half_width_of_a_variance_is_at_most_the_planned_one_over_the_rows(
    promise, parts
):
    plan, half = planned(promise, {"name": "m", "select": "variance", **VALUE})
    job = plan.tasks[0].job
    codes = [int(part * job.value.most) for part in parts] * (ROWS // 2)
    _, low, high = answered(plan, [value_aggregates(job, codes)])
    assert (high - low)[0] / 2 <= half / ROWS * 1.05


@pytest.mark.parametrize("promise", PROMISES[:2], ids=str)
@pytest.mark.parametrize("q", ["0.1", "0.5", "0.9"])
def test_the_ends_of_a_quantile_are_within_the_planned_error_in_rank(promise, q):
    query = {"name": "q", "select": "quantile", "quantiles": [q], "candidates": 65}
    plan, half = planned(promise, query | VALUE)
    given = [count_aggregates(plan.tasks[0].job, 100)]
    _, low, high = answered(plan, given)
    ranks = (np.array([low[0], high[0]]) + 2) / 8 * 6400 - float(Fraction(q)) * 6400
    # A refused bin differs in its noisy rank; the true one has that much noise again.
    assert np.abs(ranks).max() <= 2 * half + 200

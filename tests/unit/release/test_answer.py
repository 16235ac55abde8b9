"""Answers: which cells are published, what noise they get, what is never shown."""

import datetime

import numpy as np
import pytest

from support.release_plans import COUNT, count_aggregates, release_plan
from undertow.mechanisms import SimulatedSource
from undertow.release.engine.job import Aggregates
from undertow.release.plan.answer import QueryAnswer

PROMISE = {"epsilon": 2, "delta": "1e-4"}
DISCOVER = {"name": "zones", "select": "count", "by": ["zone"], "keys": "discover"}


class Silent:
    """A source whose noise is always the same number."""

    name = "silent"
    simulated = True

    def __init__(self, noise):
        self.noise = noise

    def laplace(self, scale, size):
        return self._draw(size)

    def gaussian(self, variance, size):
        return self._draw(size)

    def _draw(self, size):
        from undertow.mechanisms import Draw

        return Draw(np.full(size, self.noise), True, "silent")


def zones(*units, rows=None):
    cells = tuple((f"z{at}",) for at in range(len(units)))
    counts = [10 * u for u in units] if rows is None else rows
    return Aggregates(cells, {"rows": np.array(counts), "units": np.array(units)})


def test_only_keys_at_the_threshold_are_published_and_their_rows_noised_apart():
    plan = release_plan(PROMISE, [DISCOVER])
    limit = plan.queries[0].threshold
    (answer,) = plan.answer([zones(limit - 1, limit, 0, 5 * limit)], source=Silent(0))
    assert [row[:2] for row in answer.rows] == [("z1", 10 * limit), ("z3", 50 * limit)]
    assert f"below {limit} are left out" in answer.notes[-1]


def test_numbers_of_units_that_chose_the_keys_are_the_answer():
    plan = release_plan(PROMISE, [{**DISCOVER, "select": "count_distinct"}])
    limit = plan.queries[0].threshold
    (answer,) = plan.answer([zones(limit - 3, limit, 2)], source=Silent(3))
    assert [row[:2] for row in answer.rows] == [("z0", limit), ("z1", limit + 3)]


def test_no_key_at_all_is_an_empty_table():
    plan = release_plan(PROMISE, [DISCOVER])
    for given in (zones(), zones(1, 1)):
        (answer,) = plan.answer([given], source=Silent(0))
        assert answer.rows == []
        assert answer.simulated
        assert answer.columns == ("zone", "estimate", "low", "high")


def test_every_cell_of_every_query_gets_a_draw_of_its_own():
    queries = [
        COUNT,
        {
            "name": "mean",
            "select": "mean",
            "column": "v",
            "low": 0,
            "high": 1,
            **{"by": ["hour"], "keys": {"hour": "0..3"}},
        },
    ]
    plan = release_plan({"epsilon": 1}, queries)
    asked = []

    class Counting(SimulatedSource):
        def laplace(self, scale, size):
            asked.append((scale, size))
            return super().laplace(scale, size)

    given = [count_aggregates(task.job, 3) for task in plan.tasks]
    plan.answer(given, source=Counting(1))
    noises = [query.share.noise.parameter for query in plan.queries]
    assert asked == [(noises[0], 4), (noises[1], 8)]


def test_noise_is_added_to_the_counts_and_to_nothing_else():
    plan = release_plan({"rho": 1}, [COUNT])
    given = [count_aggregates(plan.tasks[0].job, 100)]
    (answer,) = plan.answer(given, source=Silent(-7))
    assert [row[1] for row in answer.rows] == [93] * 4
    t = plan.queries[0].share.noise.radius(0.05)
    assert [row[2:] for row in answer.rows] == [(93 - t, 93 + t)] * 4


def test_private_numbers_do_not_show():
    given = zones(123_456, 7)
    assert "123456" not in repr(given)
    assert "z0" not in repr(given)


@pytest.mark.parametrize("key", [datetime.date(2026, 1, 31), "a", 4, True])
def test_an_answer_is_plain_values(key):
    answer = QueryAnswer("n", ("k", "estimate", "low", "high"), [(key, 1, 0, 2)], 0.95)
    shown = answer.to_dict()["rows"][0][0]
    assert shown == ("2026-01-31" if isinstance(key, datetime.date) else key)
    assert answer.to_dict()["confidence"] == 0.95

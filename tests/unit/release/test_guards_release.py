"""What a run is charged, how often it draws, and what its intervals enclose."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from support.release_plans import COUNT, WINDOWED, count_aggregates, release_plan
from undertow.errors import AssumptionError
from undertow.mechanisms import SimulatedSource
from undertow.release.engine.job import Aggregates
from undertow.release.plan.answer import settle_rows
from undertow.release.plan.encoding import Variance, value_lattice
from undertow.release.plan.noise import Contribution, IntegerNoise
from undertow.spaces.view import Identity

APPROX = {"epsilon": 1, "delta": "1e-6", "granularity": "event:add-remove"}
RUNNING = {"name": "so far", "select": "count", "running": True}
UNITS = {
    "name": "zones",
    "select": "count_distinct",
    "by": ["zone"],
    "keys": "discover",
}
BOUNDS = {"rows_per_unit": 5, "groups_per_unit": 2}


@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("groups", [None, 1, 2])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_reach_of_numbers_of_units_is_the_largest_over_all_units(
    rows, groups, cells
):
    reach = Contribution(rows, groups, None, cells).unit_reach()
    most = min(rows, cells if groups is None else groups)
    units = [u for u in product((0, 1), repeat=cells) if sum(u) <= most]
    moves = [
        sum(x != y for x, y in zip(old, new, strict=True))
        for old in units
        for new in units
    ]
    assert reach.total == reach.square == max(sum(unit) for unit in units)
    assert reach.touched >= reach.total
    # Numbers move by one, so that the sum of squares is the sum.
    assert reach.swap_total >= max(moves)
    assert reach.swap_square >= max(moves)


class Counting(SimulatedSource):
    """A simulated source that writes down what it is asked for."""

    __slots__ = ("asked",)

    def __init__(self, seed):
        super().__init__(seed)
        self.asked = []

    def laplace(self, scale, size):
        self.asked.append(("laplace", scale, size))
        return super().laplace(scale, size)

    def gaussian(self, variance, size):
        self.asked.append(("gaussian", variance, size))
        return super().gaussian(variance, size)


@pytest.mark.parametrize("hour", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("queries", [[RUNNING], [RUNNING, COUNT]])
def test_a_run_is_charged_for_every_window_that_it_reads(hour, queries):
    plan = release_plan(
        APPROX,
        queries,
        source=WINDOWED,
        bounds=BOUNDS,
        as_of=f"2026-01-01T0{hour}:00",
    )
    read = set().union(*(task.view.times for task in plan.tasks))
    charged = set().union(*(release.view.times for release in plan.releases))
    assert charged == read


def test_a_run_of_a_whole_table_is_charged_for_all_of_it():
    plan = release_plan(APPROX | {"granularity": "user"}, [UNITS, COUNT], bounds=BOUNDS)
    assert [release.view for release in plan.releases] == [Identity()]


def test_keys_are_not_discovered_beside_a_running_total():
    with pytest.raises(AssumptionError, match="put them into two release files"):
        release_plan(APPROX, [RUNNING, UNITS], source=WINDOWED, bounds=BOUNDS)


@pytest.mark.parametrize("others", [[], [COUNT]])
def test_a_run_that_chooses_keys_is_charged_as_a_whole_and_for_its_delta(others):
    plan = release_plan(
        APPROX,
        [UNITS, *others],
        source=WINDOWED,
        bounds=BOUNDS,
        as_of="2026-01-01T04:00",
    )
    (release,) = plan.releases
    (claim,) = release.claims
    cost = plan.promise.cost(plan.composition()).loss
    assert claim.loss == cost
    keys = next(query.share for query in plan.queries if query.keys)
    assert claim.loss.exact_parameters()[1] >= keys.delta > 0


def zones(*units):
    cells = tuple((f"z{at}",) for at in range(len(units)))
    numbers = np.array(units)
    return Aggregates(cells, {"rows": numbers, "units": numbers})


def test_numbers_of_units_that_choose_keys_are_drawn_once_and_published_as_drawn():
    plan = release_plan(APPROX | {"granularity": "user"}, [UNITS], bounds=BOUNDS)
    (query,) = plan.queries
    source = Counting(1)
    (answer,) = plan.answer([zones(*[query.threshold] * 400)], source=source)
    noise = query.share.noise
    assert source.asked == [("laplace", noise.parameter, 400)]
    assert 100 < len(answer.rows) < 300
    assert min(row[1] for row in answer.rows) == query.threshold


@pytest.mark.parametrize(
    "promise", [{"epsilon": 9}, {"rho": 9}, {"mu": 9}, {"epsilon": 9, "delta": "1e-6"}]
)
@pytest.mark.parametrize(
    ("select", "parts"),
    [("count", 1), ("count_distinct", 1), ("sum", 1), ("mean", 2), ("variance", 3)],
)
def test_every_number_of_every_cell_gets_the_noise_that_was_charged(
    promise, select, parts
):
    value = {} if "count" in select else {"column": "x", "low": 0, "high": 8}
    plan = release_plan(promise, [COUNT | {"select": select} | value])
    (query,) = plan.queries
    given = count_aggregates(query.job, 7)
    source = Counting(1)
    plan.answer([given], source=source)
    noise = query.share.noise
    assert source.asked == [(noise.law, noise.parameter, 4 * parts)]
    assert noise.loss(query.share.need.reach).within(query.share.loss)


@pytest.mark.parametrize("confidence", ["0.95", "0.9", "0.99", "0.683", "2/3"])
def test_the_level_of_intervals_is_never_above_one_minus_the_confidence(confidence):
    plan = release_plan({"epsilon": 1, "confidence": confidence})
    level = Fraction(plan.promise.beta)
    truth = 1 - Fraction(confidence)
    assert level <= truth
    assert level > truth * (1 - Fraction(1, 10**15))


@pytest.mark.parametrize("row", [(-9, -12, -5), (-1, -4, 2), (3, -4, 9), (3, 1, 5)])
def test_answers_raised_to_zero_keep_their_order_and_what_they_cover(row):
    ((estimate, low, high),), _ = settle_rows([row], ["non-negative"])
    assert 0 <= low <= estimate <= high
    for truth in range(13):
        assert (low <= truth <= high) >= (row[1] <= truth <= row[2])


def test_ends_stay_below_zero_where_the_truth_may_be_negative():
    wishes = ["non-negative"]
    rows, _ = settle_rows([(-9, -12, -5), (-1, -4, 3)], wishes, non_negative=False)
    assert rows == [(0, -12, 0), (0, -4, 3)]


def test_intervals_of_variances_enclose_all_that_three_noises_leave_open():
    value = value_lattice("x", low=Fraction(0), high=Fraction(1))
    one = value.most**2
    scale, beta, rows = Fraction(one, 4), 0.05, 400
    # Three independent sizes stay below t together with probability 1 - beta.
    each = 1 - (1 - beta) ** (1 / 3)
    t = float(scale) * math.log(1 / each)
    noisy = np.array([[rows * one, 0, rows * one]], dtype=np.object_)
    noise = IntegerNoise("laplace", scale)
    ((_, low, high),) = Variance(value).read(noisy, noise=noise, beta=beta)
    for signs in product((-1, 0, 1), repeat=3):
        sums = [k + s * t for k, s in zip(noisy[0].tolist(), signs, strict=True)]
        if min(sums) < 0:
            continue
        last, mean = sums[2] / sum(sums), (sums[2] + sums[1] / 2) / sum(sums)
        assert low <= last - mean**2 <= high

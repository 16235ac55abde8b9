"""Errors that no mechanism avoids."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from undertow.correlation.finite.joint import JointTable
from undertow.correlation.floor import (
    accuracy_floor,
    accuracy_gap,
    impossibility_beta,
    model_floor,
    native_mechanism,
    packing_beta,
    packing_floor,
)
from undertow.correlation.group import Blocks, Independent
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.pedigree import Pedigree
from undertow.correlation.query import (
    AnyQuery,
    CountQuery,
    LinearQuery,
    LipschitzQuery,
)
from undertow.errors import NotApplicable


def least_failure(values, target, alpha):
    """Least worst failure probability of mechanisms on indistinguishable databases.

    A linear program over all mechanisms whose outputs matter only by which of the open
    balls around the `values` they hit.
    """
    points = sorted({(v + w) / 2 for v in values for w in values})
    inside = [[abs(y - v) < alpha for y in points] for v in values]
    count, outputs = len(values), len(points)
    cost = [0.0] * (count * outputs) + [1.0]
    upper, limits = [], []
    for a, row in enumerate(inside):
        line = [0.0] * len(cost)
        for y in range(outputs):
            line[a * outputs + y] = -float(row[y])
        line[-1] = -1.0
        upper.append(line)  # 1 - Pr[inside] <= failure
        limits.append(-1.0)
    for a, b in itertools.permutations(range(count), 2):
        for y in range(outputs):
            line = [0.0] * len(cost)
            line[a * outputs + y] = 1.0
            line[b * outputs + y] = -math.exp(target)
            upper.append(line)
            limits.append(0.0)
    equal = [[0.0] * len(cost) for _ in range(count)]
    for a in range(count):
        for y in range(outputs):
            equal[a][a * outputs + y] = 1.0
    found = linprog(cost, A_ub=upper, b_ub=limits, A_eq=equal, b_eq=[1.0] * count)
    return found.fun


@pytest.mark.parametrize("target", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("others", [1, 2, 4])
def test_the_packing_bound_is_the_optimum_over_all_mechanisms(target, others):
    values = [2.0 * j for j in range(others + 1)]
    found = least_failure(values, target, 1.0)
    assert found == pytest.approx(packing_beta(target, others), abs=1e-7)


def test_closer_answers_can_be_given_better():
    assert least_failure([0.0, 1.9], 1.0, 1.0) < impossibility_beta(1.0) - 0.2


@pytest.mark.parametrize("target", [0.0, 1e-9, 0.5, 3.0, 50.0, 700.0])
@pytest.mark.parametrize("others", [1, 10, 10**6])
def test_the_forced_failure_is_rounded_down(target, others):
    with mpmath.workdps(60):
        true = others / (others + mpmath.e ** mpmath.mpf(target))
        assert packing_beta(target, others) <= true
        assert packing_beta(target, others) == pytest.approx(float(true), rel=1e-12)


def test_two_databases_are_the_impossibility():
    assert impossibility_beta(0.0) == pytest.approx(0.5, rel=1e-12)
    assert impossibility_beta(1.0) == packing_beta(1.0, 1)
    assert impossibility_beta(2000.0) == 0.0


def test_the_floor_is_half_the_change():
    assert accuracy_floor(1.0, 0.05, max_change=7) == 3.5
    assert accuracy_floor(1.0, 0.05, max_change=0) == 0.0


def test_no_claim_at_or_above_the_threshold():
    threshold = 1 / (math.e + 1)
    assert accuracy_floor(1.0, threshold, max_change=1) is None
    assert accuracy_floor(1.0, threshold * (1 - 1e-9), max_change=1) == 0.5
    assert accuracy_floor(1.0, threshold * (1 + 1e-9), max_change=1) is None


def test_an_answer_that_never_fails_has_the_floor_at_every_target():
    assert accuracy_floor(5000.0, 0.0, max_change=2) == 1.0
    assert accuracy_floor(5000.0, 1e-300, max_change=2) is None


def test_the_middle_of_the_range_attains_the_floor():
    # A constant answer keeps every promise and errs by exactly the floor.
    values = [0.0, 10.0]
    assert max(abs(5.0 - v) for v in values) == accuracy_floor(
        1.0, 0.05, max_change=10.0
    )


@pytest.mark.parametrize("beta", [-0.1, 1.0, 1.5, math.nan])
def test_a_failure_probability_is_below_one(beta):
    with pytest.raises(ValueError, match=r"beta must be"):
        accuracy_floor(1.0, beta, max_change=1)


def test_arguments_of_the_floor_are_in_range():
    with pytest.raises(ValueError, match=r"epsilon must be"):
        accuracy_floor(-1.0, 0.05, max_change=1)
    with pytest.raises(ValueError, match=r"max_change must be non-negative"):
        accuracy_floor(1.0, 0.05, max_change=-1)
    with pytest.raises(ValueError, match=r"others must be a whole number"):
        packing_beta(1.0, 0)


def test_packing_speaks_where_two_databases_are_silent():
    assert accuracy_floor(3.0, 0.05, max_change=100) is None
    assert packing_floor(3.0, 0.05, max_change=100) == 25.0  # three databases
    assert packing_floor(3.0, 0.05, max_change=101, step=1) == 25.0
    assert packing_floor(3.0, 0.05, max_change=1, step=1) is None
    assert packing_floor(5000.0, 0.05, max_change=1) is None


@pytest.mark.parametrize("target", [0.5, 3.0, 4.0])
def test_the_packing_floor_is_what_the_optimum_says(target):
    """Just below the floor the optimal mechanism fails too often; k is the least."""
    beta, change = 0.05, 1.0
    floor = packing_floor(target, beta, max_change=change)
    count = round(change / (2 * floor))
    values = [change * j / count for j in range(count + 1)]
    assert least_failure(values, target, floor) > beta
    if count > 1:
        assert packing_beta(target, count - 1) <= beta


def test_packing_equals_the_floor_where_both_speak():
    for change in (0.3, 1.0, 17.0):
        assert packing_floor(1.0, 0.05, max_change=change) == accuracy_floor(
            1.0, 0.05, max_change=change
        )


def test_the_gap_of_a_count():
    gap = accuracy_gap(2.0, 10, beta=0.05)
    assert gap.dp_alpha == pytest.approx(1.4978661367769955, rel=1e-12)
    assert gap.bdp_alpha == pytest.approx(14.978661367769955, rel=1e-12)
    assert gap.floor == 5.0
    assert gap.ratio == pytest.approx(2 * math.log(20) / 2.0, rel=1e-12)
    assert gap.to_dict()["ratio"] == gap.ratio


def test_the_gap_without_a_floor_has_no_ratio():
    gap = accuracy_gap(5.0, 10, beta=0.05)
    assert gap.floor is None
    assert gap.ratio is None


def test_the_gap_takes_the_change_of_the_query():
    assert accuracy_gap(1.0, 10, max_change=9, beta=0.05).floor == 4.5
    assert accuracy_gap(1.0, 10, sensitivity=2.0).floor == 10.0
    with pytest.raises(ValueError, match=r"beta must be in \(0, 1\)"):
        accuracy_gap(1.0, 10, beta=0.0)


def test_a_model_floor_is_that_of_its_largest_group():
    model = Blocks([2, 7, 3])
    assert model_floor(model, 1.0, query=CountQuery(), beta=0.05) == 3.5
    assert model_floor(model, 1.0, query=AnyQuery(2.0), beta=0.05) == 7.0
    assert model_floor(model, 1.0, query=LinearQuery(clip=(0, 10)), beta=0.05) == 35.0


def test_a_weighted_sum_moves_by_the_weights_of_its_group():
    query = LinearQuery([1, 1, -5, 1, 2], clip=(0, 2))
    model = Blocks.from_partition([[0, 2], [1, 3, 4]])
    assert model_floor(model, 1.0, query=query, beta=0.05) == 6.0


def test_a_group_that_is_not_known_has_at_least_its_lightest_records():
    class Hidden(Independent):
        largest_group = 3

    heavy = LinearQuery([1, 1, 9, 1, 2], clip=(0, 2))
    even = LinearQuery([1, 1, 2, 1, 2], clip=(0, 2))
    assert model_floor(Hidden(5), 1.0, query=heavy, beta=0.05) == 9.0
    assert model_floor(Hidden(5), 1.0, query=even, beta=0.05) == 3.0


def test_a_model_floor_is_silent_where_nothing_is_known():
    class Unlimited(Independent):
        largest_group = None

    model, count = Blocks([2]), CountQuery()
    assert model_floor(Unlimited(), 1.0, query=count, beta=0.05) is None
    assert model_floor(model, 1.0, query=count, beta=0.5) is None
    assert model_floor(model, 1.0, query=count, beta=1.0) is None
    median = LipschitzQuery(clip=(0, 1))
    assert model_floor(model, 1.0, query=median, beta=0.05) is None


@pytest.mark.parametrize("states", [(0, 1), (5,)])
def test_a_count_that_no_record_moves_has_no_floor_on_a_chain(states):
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], length=50)
    found = model_floor(chain, 1.0, query=CountQuery(states), beta=0.05)
    assert not found
    assert model_floor(chain, 1.0, query=CountQuery(), beta=0.05) > 0


FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])


POINT = JointTable([[1.0, 0.0], [0.0, 0.0]])


@pytest.mark.slow
def test_the_best_mechanism_keeps_its_promise_where_the_solver_does_not():
    law = np.random.default_rng(3).dirichlet(np.ones(64)).reshape((2,) * 6)
    found = native_mechanism(JointTable(law), 1.0)
    assert found.leakage.value <= 1.0


@pytest.mark.parametrize("target", [1e-8, 800.0])
def test_the_best_mechanism_takes_any_promise(target):
    found = native_mechanism(FLATMATES, target)
    assert found.leakage.value <= target
    assert found.error == pytest.approx(0.9 if target < 1 else 0.0, abs=1e-4)


def test_the_best_mechanism_without_secrets_tells_the_truth():
    assert native_mechanism(POINT, 1.0).error == pytest.approx(0, abs=1e-12)
    assert native_mechanism(JointTable([[1.0]]), 1.0).error == 0.0


def test_programs_that_take_hours_are_refused():
    law = JointTable(np.full((2,) * 8, 2.0**-8))
    with pytest.raises(NotApplicable, match=r"at most 1000000 entries"):
        native_mechanism(law, 1.0)


def test_a_floor_does_not_pass_what_the_records_can_do():
    uneven = JointTable([[0.4, 0.1], [0.1, 0.4]], values=[[0, 1], [0, 100]])
    assert model_floor(uneven, 1.0, query=LinearQuery(), beta=0.05) == 50.5
    assert model_floor(uneven, 1.0, query=CountQuery({0, 1}), beta=0.05) == 0.0
    steps = JointTable(np.full((3, 3), 1 / 9), values=[0, 2, 4])
    near = model_floor(steps, 1.0, query=LinearQuery(gap=3.0), beta=0.05)
    assert near == pytest.approx(1.0)  # independent records, two apart
    trio = Pedigree.nuclear(1, frequency=0.5)
    assert model_floor(trio, 1.0, query=LinearQuery(clip=(1, 9)), beta=0.05) == 1.5


def test_floors_are_rounded_down():
    found = model_floor(Blocks([3]), 1.0, query=LinearQuery(0.1, clip=(0, 1)), beta=0)
    assert Fraction(found) <= 3 * Fraction(0.1) / 2
    assert packing_beta(700.1, 3) <= 3 / (3 + mpmath.e ** mpmath.mpf(700.1))

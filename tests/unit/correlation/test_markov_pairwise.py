"""The pairwise recursion and its transport bound."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from undertow.correlation.level import smooth_level
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.pairwise import (
    COARSE,
    FINE,
    BoxTheorem,
    PairwiseTheorem,
    cross_ratio_step,
    influences,
    pair_diameters,
    pair_windows,
    pairwise_leakage,
    transport_bound,
)
from undertow.correlation.markov.projective import (
    closed_value,
    projective_diameter,
    projective_leakage,
)
from undertow.correlation.markov.two_state import two_state_leakage
from undertow.correlation.query import AnyQuery
from undertow.errors import NotApplicable

THREE = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
ACTIVITY = np.array([[0.882, 0.118], [0.305, 0.695]])


def pair_program(p, q, cost):
    """Solve the pair program as a linear program."""
    states = range(len(p))
    rows = []
    for y in states:
        for z in states:
            if y != z:
                row = np.zeros(len(p))
                row[y], row[z] = 1.0, -math.exp(cost[y, z])
                rows.append(row)
    solved = linprog(
        -p, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=[q], b_eq=[1.0], bounds=(0, None)
    )
    return math.log(-solved.fun)


def random_costs(rng, states, epsilon):
    cost = epsilon * (1 + 2 * rng.random((states, states)))
    np.fill_diagonal(cost, 0.0)
    for k in range(states):
        cost = np.minimum(cost, cost[:, k : k + 1] + cost[k : k + 1])
    return cost


@pytest.mark.parametrize("states", [2, 3, 5, 9])
@pytest.mark.parametrize("stages", [FINE, COARSE])
def test_a_transport_is_never_below_the_program_it_bounds(states, stages):
    rng = np.random.default_rng(states)
    for _ in range(12):
        p, q = rng.dirichlet(np.ones(states), 2)
        cost = random_costs(rng, states, float(np.exp(rng.uniform(-3, 1))))
        found = transport_bound(
            p[None, None], q[None, None], cost[None], stages=stages
        )[0, 0]
        exact = pair_program(p, q, cost)
        assert found >= exact - 1e-9
        assert found <= 1.35 * exact + 1e-9


def test_a_transport_is_exact_where_every_move_costs_the_same():
    rng = np.random.default_rng(1)
    for _ in range(10):
        p, q = rng.dirichlet(np.ones(6), 2)
        cost = 0.7 * (1 - np.eye(6))
        found = transport_bound(p[None, None], q[None, None], cost[None])[0, 0]
        assert found == pytest.approx(pair_program(p, q, cost), rel=1e-7)


def test_equal_laws_are_moved_for_nothing():
    p = np.full((1, 1, 4), 0.25)
    assert transport_bound(p, p, np.ones((1, 4, 4)))[0, 0] <= 1e-13


def test_the_cross_ratio_formula_is_the_largest_over_all_weights():
    rng = np.random.default_rng(3)
    kernel = rng.dirichlet(np.ones(3), 3)
    cost = random_costs(rng, 3, 0.6)
    bound = cross_ratio_step(kernel, cost)
    reached = 0.0
    for _ in range(120):
        weights = np.exp(rng.normal(scale=4.0, size=3))
        p, q = kernel[0] * weights, kernel[1] * weights
        value = pair_program(p / p.sum(), q / q.sum(), cost)
        assert value <= bound[0, 1] + 1e-9
        reached = max(reached, value)
    assert reached > 0.85 * bound[0, 1]


def test_the_influence_of_large_numbers_does_not_saturate():
    assert influences(300.0, 310.0) == pytest.approx(
        300 - 2 * math.log1p(math.exp(-5.0)), rel=1e-9
    )
    assert influences(math.inf, 3.0) == pytest.approx(3.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 4.0])
def test_two_states_give_the_exact_value(epsilon):
    found = pairwise_leakage(ACTIVITY, epsilon)
    exact = two_state_leakage(ACTIVITY, epsilon).value
    assert found.value == pytest.approx(exact, rel=2e-6)
    assert found.value >= exact * (1 - 1e-11)
    assert found.tight is None


@pytest.mark.parametrize("length", [2, 3, 7, 40, None])
def test_two_states_of_a_given_length_are_covered(length):
    found = pairwise_leakage(ACTIVITY, 0.7, length=length).value
    exact = two_state_leakage(ACTIVITY, 0.7, length=length).value
    assert found >= exact * (1 - 1e-11)


def test_long_windows_are_below_their_common_bound():
    followed = pair_windows(THREE, np.ones(3), 0.8, longest=30, exactly=True)
    bounded = pair_windows(THREE, np.ones(3), 0.8, longest=30, exactly=False)
    assert bounded.longest < 30
    beyond = followed.known[bounded.longest + 1 :].max(axis=0)
    assert (beyond <= bounded.rest + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_the_bound_lies_between_the_level_and_the_closed_form(epsilon):
    found = pairwise_leakage(THREE, epsilon).value
    assert epsilon < found <= closed_value(epsilon, projective_diameter(THREE))


def test_longer_chains_leak_more_up_to_the_limit():
    values = [pairwise_leakage(THREE, 1.0, length=n).value for n in (1, 2, 4, 8, 32)]
    limit = pairwise_leakage(THREE, 1.0).value
    assert values[0] == 1.0
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(values))
    assert values[-1] <= limit * (1 + 1e-9)


def test_a_start_with_an_impossible_state_is_covered():
    sure = pairwise_leakage(THREE, 0.5, initial=[1.0, 0.0, 0.0]).value
    usual = pairwise_leakage(THREE, 0.5).value
    assert sure == pytest.approx(usual, rel=1e-3)


def test_independent_records_leak_their_level():
    P = np.tile([0.2, 0.3, 0.5], (3, 1))
    assert pairwise_leakage(P, 0.4).value == pytest.approx(0.4, rel=1e-9)


def test_a_level_of_zero_leaks_nothing():
    assert pairwise_leakage(THREE, 0.0).value == 0.0


def test_a_time_varying_chain_is_bounded_for_every_start():
    kernels = [THREE, THREE.T / THREE.T.sum(axis=1, keepdims=True), THREE]
    found = pairwise_leakage(kernels, 0.8).value
    closed = closed_value(0.8, MarkovChain(kernels).diameter)
    assert 0.8 < found < closed


def test_a_very_long_time_varying_chain_is_refused():
    with pytest.raises(NotApplicable, match="4096"):
        pairwise_leakage(np.broadcast_to(THREE, (5000, 3, 3)), 1.0)


def test_a_zero_transition_is_refused_with_the_method_that_fits():
    with pytest.raises(NotApplicable, match="'steps'"):
        pairwise_leakage([[0.5, 0.5, 0.0], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], 1.0)


@pytest.mark.parametrize("target", [0.01, 6.0])
def test_the_inverse_returns_a_level_within_the_target(target):
    level = PairwiseTheorem().invert(MarkovChain(THREE, length=9), target)
    value = pairwise_leakage(THREE, level, length=9).value
    assert value <= target
    assert value == pytest.approx(target, rel=1e-8)


def test_the_search_returns_the_target_where_nothing_is_lost():
    assert smooth_level(lambda level: level, 2.0, low=1.0) == 2.0


def test_the_method_is_left_to_its_name_for_many_states_and_for_two():
    method, query = PairwiseTheorem(), AnyQuery()
    assert method.too_costly(MarkovChain(THREE), query=query) is None
    assert "two-state" in method.too_costly(MarkovChain(ACTIVITY), query=query)
    many = MarkovChain(np.full((13, 13), 1 / 13))
    assert "13" in method.too_costly(many, query=query)
    assert method.invert(MarkovChain(THREE, length=3), 1.0, query=query) > 0.3
    assert method.bound(MarkovChain(THREE), 1.0, query=query).method == "pairwise"
    assert BoxTheorem().name == "box"


def test_row_pairs_have_the_diameter_of_the_matrix_as_their_largest():
    assert pair_diameters(THREE).max() == pytest.approx(
        projective_diameter(THREE), rel=1e-12
    )


def test_twenty_states_are_bounded_well_below_the_closed_form():
    P = np.random.default_rng(0).dirichlet(np.ones(20), 20) + 1e-5
    P /= P.sum(axis=1, keepdims=True)
    found = pairwise_leakage(P, 0.5).value
    assert found < 2.0
    assert closed_value(0.5, projective_diameter(P)) > 15


@pytest.mark.parametrize("epsilon", [599.0, 800.0, 1e5])
def test_the_pairwise_bound_at_large_levels_is_the_projective_one(epsilon):
    limit = projective_leakage(epsilon, projective_diameter(THREE)).value
    assert pairwise_leakage(THREE, epsilon).value == limit

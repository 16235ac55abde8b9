"""The box recursion for chains of many states."""

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.pairwise import (
    BoxSide,
    BoxTheorem,
    RowDivergence,
    box_leakage,
    pairwise_leakage,
)
from undertow.correlation.markov.projective import (
    closed_value,
    finite_leakage,
    projective_diameter,
)
from undertow.correlation.markov.two_state import two_state_leakage
from undertow.correlation.query import AnyQuery
from undertow.errors import NotApplicable

ACTIVITY = np.array([[0.882, 0.118], [0.305, 0.695]])


def random_chain(states, seed, concentration=1.0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(states, concentration), states) + 1e-5
    return P / P.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_box_bound_is_above_the_pairwise_and_below_the_closed_form(epsilon, seed):
    P = random_chain(4, seed)
    found = box_leakage(P, epsilon).value
    assert found >= pairwise_leakage(P, epsilon).value * (1 - 1e-6)
    assert found <= closed_value(epsilon, projective_diameter(P))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_two_states_are_covered(epsilon):
    found = box_leakage(ACTIVITY, epsilon).value
    assert found >= two_state_leakage(ACTIVITY, epsilon).value * (1 - 1e-11)


def test_large_chains_gain_most():
    P = random_chain(60, 0)
    assert box_leakage(P, 0.1).value < 1.2
    assert closed_value(0.1, projective_diameter(P)) > 10


def test_the_largest_divergence_is_that_of_every_pair():
    P = random_chain(7, 2)
    divergence = RowDivergence(P)
    for factor in (1.0, 1.3, 4.0):
        direct = max(
            np.maximum(p - factor * q, 0.0).sum() for p in P for q in P if p is not q
        )
        assert divergence.largest(factor) == pytest.approx(direct, abs=1e-12)
        assert divergence.leading(factor) <= divergence.largest(factor) + 1e-15
    assert divergence.variation.max() == pytest.approx(
        np.abs(P[:, None] - P[None]).sum(axis=2).max() / 2
    )


def test_one_step_does_not_raise_the_bound_of_a_side():
    P = random_chain(6, 3)
    epsilon = 0.4
    ceiling = (closed_value(epsilon, projective_diameter(P)) + epsilon) / 2
    V = BoxSide(P, np.ones(6)).bound(epsilon, ceiling)
    gain = math.expm1(epsilon + V.max())
    # Long windows weigh the next state evenly: the best threshold of two rows.
    for x in range(6):
        for y in range(6):
            order = np.argsort(-P[x] / P[y])
            top, low = np.cumsum(P[x][order]), np.cumsum(P[y][order])
            through = np.log((1 + gain * top) / (1 + gain * low)).max()
            assert through <= V.max() + 1e-12


def test_the_bound_does_not_read_the_start():
    P = random_chain(4, 5)
    assert (
        box_leakage(P, 0.5, initial=[1.0, 0, 0, 0]).value == box_leakage(P, 0.5).value
    )


def test_the_length_caps_the_bound():
    P = random_chain(4, 5)
    assert box_leakage(P, 0.5, length=1).value == 0.5
    assert box_leakage(P, 0.5, length=2).value <= 1.0
    assert box_leakage(P, 0.0).value == 0.0


def test_a_time_varying_chain_follows_its_diameters():
    P = random_chain(3, 8)
    found = box_leakage([P, P, P], 0.6).value
    same = finite_leakage(0.6, projective_diameter(P), size=4).value
    assert found == pytest.approx(same, rel=1e-9)


def test_a_zero_transition_is_refused_with_the_method_that_fits():
    with pytest.raises(NotApplicable, match="'steps'"):
        box_leakage([[0.5, 0.5], [1.0, 0.0]], 1.0)


@pytest.mark.parametrize("target", [1e-4, 1.0, 20.0])
def test_the_inverse_returns_a_level_within_the_target(target):
    P = random_chain(8, 1)
    level = BoxTheorem().invert(MarkovChain(P), target)
    value = box_leakage(P, level).value
    assert value <= target
    assert value == pytest.approx(target, rel=1e-7)


def test_the_method_is_left_to_its_name_for_many_states_and_for_two():
    method, query = BoxTheorem(), AnyQuery()
    assert method.too_costly(MarkovChain(random_chain(3, 0)), query=query) is None
    assert "two-state" in method.too_costly(MarkovChain(ACTIVITY), query=query)
    many = MarkovChain(np.full((201, 201), 1 / 201))
    assert "201" in method.too_costly(many, query=query)
    chain = MarkovChain(random_chain(3, 0))
    assert method.bound(chain, 0.2, query=query).method == "box"
    assert method.invert(chain, 0.2, query=query) > 0.0


@pytest.mark.slow
def test_a_thousand_states_are_bounded():
    P = random_chain(1000, 0)
    found = box_leakage(P, 0.5).value
    assert 0.5 < found < 4.0


THREE = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])


def test_long_windows_of_the_box_recursion_start_from_the_short_ones():
    side = BoxSide(THREE, np.ones(3))
    low = side._beyond(0.5, 2, reached=0.0, most=10.0)
    high = side._beyond(0.5, 2, reached=5.0, most=10.0)
    assert (high >= low).all()
    # One step from functions that oscillate by epsilon + 5 reaches this on every pair.
    wide = math.expm1(5.5)
    for x, other in itertools.permutations(range(3), 2):
        lifted = 0.0
        for chosen in itertools.product((0, 1), repeat=3):
            p, q = THREE[x] @ chosen, THREE[other] @ chosen
            lifted = max(lifted, math.log((1 + wide * p) / (1 + wide * q)))
        assert high[x, other] >= lifted

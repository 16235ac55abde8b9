"""Properties of the exact and near-exact engines for Markov chains."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.count import count_leakage
from undertow.correlation.markov.pairwise import box_leakage, pairwise_leakage
from undertow.correlation.markov.projective import closed_value, projective_diameter
from undertow.correlation.markov.two_state import (
    two_state_budget,
    two_state_leakage,
)

inner = st.floats(1e-4, 1 - 1e-4)
level = st.floats(math.log(1e-3), math.log(8)).map(math.exp)


def two_state(stay, enter):
    return np.array([[stay, 1 - stay], [enter, 1 - enter]])


def stationary(P):
    law = np.array([P[1, 0], P[0, 1]])
    return law / law.sum()


def joint_law(kernels, initial):
    size, states = len(kernels) + 1, len(initial)
    table = np.zeros((states,) * size)
    for path in itertools.product(range(states), repeat=size):
        weight = initial[path[0]]
        for step, kernel in enumerate(kernels):
            weight *= kernel[path[step], path[step + 1]]
        table[path] = weight
    return table


def worst_mechanism(joint, epsilon):
    """Solve the linear program over all DP mechanisms for every attacker and pair."""
    size, states = joint.ndim, joint.shape[0]
    best = 0.0
    for target in range(size):
        rest = [j for j in range(size) if j != target]
        for number in range(size):
            for known in itertools.combinations(rest, number):
                hidden = [j for j in rest if j not in known]
                table = np.transpose(joint, [target, *hidden, *known])
                cells = states ** len(hidden)
                table = table.reshape(states, cells, -1)
                best = max(best, _worst_pair(table, len(hidden), epsilon))
    return best


def _worst_pair(table, hidden, epsilon):
    states, cells, values = table.shape
    moves = _moves(states, hidden + 1, epsilon)
    best = 0.0
    for known in range(values):
        law = table[:, :, known]
        for x, y in itertools.permutations(range(states), 2):
            if law[x].sum() == 0 or law[y].sum() == 0:
                continue
            top, low = np.zeros((2, states, cells))
            top[x], low[y] = law[x] / law[x].sum(), law[y] / law[y].sum()
            solved = linprog(
                -top.ravel(),
                A_ub=moves,
                b_ub=np.zeros(len(moves)),
                A_eq=[low.ravel()],
                b_eq=[1.0],
                bounds=(0, None),
            )
            best = max(best, math.log(-solved.fun))
    return best


def _moves(states, records, epsilon):
    index = np.arange(states**records).reshape((states,) * records)
    rows = []
    for axis in range(records):
        for a, b in itertools.permutations(range(states), 2):
            first = np.take(index, a, axis=axis).ravel()
            second = np.take(index, b, axis=axis).ravel()
            block = np.zeros((len(first), index.size))
            block[np.arange(len(first)), first] = 1.0
            block[np.arange(len(first)), second] = -math.exp(epsilon)
            rows.append(block)
    return np.concatenate(rows)


@pytest.mark.parametrize("seed", range(10))
def test_the_two_state_value_is_that_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    size = 2 + seed % 3
    kernels = [two_state(*rng.beta(0.6, 0.6, 2)) for _ in range(size - 1)]
    if seed % 4 == 0:
        kernels = [kernels[0]] * (size - 1)
    if seed == 9:
        kernels[0] = two_state(0.4, 1.0)
    initial = np.array([1.0, 0.0]) if seed == 5 else rng.dirichlet([0.7, 0.7])
    epsilon = float(np.exp(rng.uniform(-3, 1)))
    found = two_state_leakage(kernels, epsilon, initial=initial).value
    exact = worst_mechanism(joint_law(kernels, initial), epsilon)
    assert found == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("seed", range(9))
def test_the_bounds_for_three_states_are_never_below_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    size = 4 if seed == 8 else 2 + seed % 2
    P = rng.dirichlet(np.full(3, rng.choice([0.4, 1.0, 3.0])), 3) + 1e-5
    P /= P.sum(axis=1, keepdims=True)
    initial = rng.dirichlet(np.ones(3))
    epsilon = float(np.exp(rng.uniform(-2.5, 1.3)))
    joint = joint_law([P] * (size - 1), initial)
    if size == 4:  # the attacker who knows nothing, the largest of the programs
        exact = _worst_pair(joint.transpose(1, 0, 2, 3).reshape(3, 27, 1), 3, epsilon)
    else:
        exact = worst_mechanism(joint, epsilon)
    near = pairwise_leakage(P, epsilon, initial=initial, length=size).value
    assert near >= exact * (1 - 1e-7)
    if size < 4:
        assert near <= 1.1 * exact
    assert box_leakage(P, epsilon, initial=initial, length=size).value >= near * (
        1 - 1e-9
    )
    varying = pairwise_leakage([P] * (size - 1), epsilon, initial=initial).value
    assert varying >= exact * (1 - 1e-7)


@settings(max_examples=30)
@given(inner, inner, level)
def test_two_state_leakage_never_beats_independence_nor_the_closed_form(a, b, epsilon):
    P = two_state(a, b)
    value = two_state_leakage(P, epsilon).value
    assert epsilon <= value * (1 + 1e-12)
    assert value <= closed_value(epsilon, projective_diameter(P))


@settings(max_examples=30)
@given(inner, inner, level, st.floats(1.0, 3.0))
def test_two_state_leakage_grows_with_the_level(a, b, epsilon, factor):
    P = two_state(a, b)
    low = two_state_leakage(P, epsilon).value
    assert low <= two_state_leakage(P, epsilon * factor).value * (1 + 1e-9)


@settings(max_examples=20)
@given(inner, inner, inner, level)
def test_two_state_leakage_does_not_fall_with_the_length(a, b, w, epsilon):
    P, initial = two_state(a, b), [w, 1 - w]
    values = [
        two_state_leakage(P, epsilon, initial=initial, length=n).value
        for n in (1, 2, 3, 6, 40, 500, None)
    ]
    for shorter, longer in itertools.pairwise(values):
        assert shorter <= longer * (1 + 1e-9)


@settings(max_examples=30)
@given(inner, inner, level, st.integers(2, 12))
def test_reversing_a_stationary_chain_changes_nothing(a, b, epsilon, length):
    P = two_state(a, b)
    law = stationary(P)
    backwards = (P * law[:, None]).T / law[:, None]
    backwards /= backwards.sum(axis=1, keepdims=True)
    assert two_state_leakage(
        backwards, epsilon, initial=law, length=length
    ).value == pytest.approx(
        two_state_leakage(P, epsilon, initial=law, length=length).value, rel=1e-8
    )


@settings(max_examples=30)
@given(inner, inner, inner, level, st.integers(1, 9))
def test_renaming_the_states_changes_nothing(a, b, w, epsilon, length):
    P = two_state(a, b)
    renamed = P[::-1, ::-1]
    first = two_state_leakage(P, epsilon, initial=[w, 1 - w], length=length).value
    second = two_state_leakage(
        renamed, epsilon, initial=[1 - w, w], length=length
    ).value
    assert first == pytest.approx(second, rel=1e-9)


@settings(max_examples=8)
@given(inner, inner, st.floats(math.log(1e-6), math.log(50)).map(math.exp))
def test_the_two_state_inverse_is_within_the_target_and_close_to_it(a, b, target):
    P = two_state(a, b)
    found = two_state_leakage(P, two_state_budget(P, target)).value
    assert found <= target
    assert found == pytest.approx(target, rel=1e-9)


@settings(max_examples=20)
@given(inner, inner, level, st.integers(1, 8))
def test_a_count_never_leaks_more_than_the_worst_mechanism(a, b, epsilon, length):
    chain = MarkovChain(two_state(a, b), length=length)
    count = count_leakage(chain, epsilon).value
    worst = two_state_leakage(two_state(a, b), epsilon, length=length).value
    assert count <= worst * (1 + 1e-9)
    assert count >= epsilon * (1 - 1e-12)


@settings(max_examples=5)
@given(st.integers(0, 10**6), level)
def test_renaming_three_states_hardly_moves_the_pairwise_bound(seed, epsilon):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), 3) + 1e-3
    P /= P.sum(axis=1, keepdims=True)
    order = rng.permutation(3)
    first = pairwise_leakage(P, epsilon, length=6).value
    second = pairwise_leakage(P[np.ix_(order, order)], epsilon, length=6).value
    assert first == pytest.approx(second, rel=1e-6)

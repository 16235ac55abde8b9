"""Exact leakage of a noisy count on a Markov chain."""

import itertools

import numpy as np
import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.leak import leakage
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.count import (
    CountTheorem,
    CountWindows,
    count_budget,
    count_leakage,
)
from undertow.correlation.markov.two_state import two_state_leakage
from undertow.correlation.query import AnyQuery, CountQuery
from undertow.errors import ModelError, NotApplicable

ACTIVITY = np.array([[0.882, 0.118], [0.305, 0.695]])
OPPOSITE = np.array([[0.2, 0.8], [0.7, 0.3]])
THREE = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])


def brute_force(kernels, initial, epsilon, counted):
    """Try every attacker, pair of secrets and integer output."""
    size, states = len(kernels) + 1, len(initial)
    counts, weights = [], []
    for path in itertools.product(range(states), repeat=size):
        weight = initial[path[0]]
        for step, kernel in enumerate(kernels):
            weight *= kernel[path[step], path[step + 1]]
        weights.append(weight)
        counts.append(sum(z in counted for z in path))
    shape = (states,) * size
    prior = np.reshape(weights, shape)
    count = np.reshape(counts, shape)
    best = 0.0
    for output in range(-1, size + 2):
        seen = prior * np.exp(-epsilon * np.abs(output - count))
        for target in range(size):
            rest = [j for j in range(size) if j != target]
            for number in range(size):
                for known in itertools.combinations(rest, number):
                    hidden = tuple(j for j in rest if j not in known)
                    top = np.moveaxis(seen.sum(axis=hidden, keepdims=True), target, 0)
                    low = np.moveaxis(prior.sum(axis=hidden, keepdims=True), target, 0)
                    law = np.where(low > 0, top / np.where(low > 0, low, 1), np.nan)
                    with np.errstate(all="ignore"):
                        ratio = np.log(law[:, None] / law[None])
                    if not np.isnan(ratio).all():
                        best = max(best, float(np.nanmax(ratio)))
    return best


def chains():
    rng = np.random.default_rng(5)
    yield [ACTIVITY] * 4, np.array([0.5, 0.5]), {1}
    yield [OPPOSITE] * 4, np.array([0.9, 0.1]), {0}
    yield [ACTIVITY, OPPOSITE, ACTIVITY], np.array([0.3, 0.7]), {1}
    yield [THREE] * 3, np.array([0.2, 0.5, 0.3]), {0, 2}
    yield list(rng.dirichlet([0.4] * 3, (3, 3))), rng.dirichlet([1.0] * 3), {1}
    yield (
        [np.array([[0.5, 0.5, 0], [0, 0.4, 0.6], [0.3, 0, 0.7]])] * 3,
        np.array([0.0, 0.5, 0.5]),
        {2},
    )


@pytest.mark.parametrize("case", range(6))
@pytest.mark.parametrize("epsilon", [0.01, 0.9, 5.0])
def test_the_count_engine_equals_a_search_over_all_attackers(case, epsilon):
    kernels, initial, counted = list(chains())[case]
    same = all(np.array_equal(kernel, kernels[0]) for kernel in kernels)
    chain = MarkovChain(kernels[0] if same else kernels, initial, len(kernels) + 1)
    found = count_leakage(chain, epsilon, states=sorted(counted))
    exact = brute_force(kernels, initial, epsilon, counted)
    assert found.tight is True
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert found.value >= exact * (1 - 1e-13)


@pytest.mark.parametrize("length", [1, 2, 9, 25])
def test_positive_dependence_makes_the_count_as_bad_as_any_mechanism(length):
    chain = MarkovChain(ACTIVITY, length=length)
    windows = CountWindows(ACTIVITY, chain.initial_law(), length, np.array([0, 1]))
    exact = two_state_leakage(ACTIVITY, 1.3, length=length).value
    assert windows.largest(1.3).value == pytest.approx(exact, rel=1e-10)
    assert count_leakage(chain, 1.3).value == exact


def test_negative_dependence_hides_the_others_behind_the_count():
    found = count_leakage(MarkovChain(OPPOSITE, length=9), 1.0)
    assert found.value == pytest.approx(1.0, rel=1e-9)
    assert found.value < two_state_leakage(OPPOSITE, 1.0, length=9).value


def test_a_long_negatively_dependent_chain_gets_the_bound_of_every_mechanism():
    chain = MarkovChain(OPPOSITE, length=100_000)
    found = count_leakage(chain, 1.0)
    assert found.value == two_state_leakage(OPPOSITE, 1.0, length=100_000).value
    assert found.tight is None
    level = count_budget(chain, 1.0)
    assert count_leakage(chain, level).value <= 1.0


def test_a_long_chain_of_three_states_is_refused_with_the_methods_that_fit():
    for length in (None, 5000):
        chain = MarkovChain(THREE, length=length)
        with pytest.raises(NotApplicable, match="'pairwise' or 'projective'"):
            count_leakage(chain, 1.0)
        with pytest.raises(NotApplicable, match="'pairwise' or 'projective'"):
            count_budget(chain, 1.0)


def test_counting_every_state_leaks_nothing():
    chain = MarkovChain(THREE, length=4)
    assert count_leakage(chain, 1.0, states=[0, 1, 2]).value == 0.0
    assert count_budget(chain, 1.0, states=[0, 1, 2]) == 1.0


def test_a_state_outside_the_chain_is_a_model_error():
    with pytest.raises(ModelError, match="got 3"):
        count_leakage(MarkovChain(THREE, length=4), 1.0, states=[3])


def test_other_queries_are_refused():
    with pytest.raises(NotApplicable, match="counting query"):
        CountTheorem().bound(MarkovChain(THREE, length=4), 1.0, query=AnyQuery())


def test_noise_too_steep_to_evaluate_is_refused():
    with pytest.raises(NotApplicable, match="500"):
        count_leakage(MarkovChain(THREE, length=30), 40.0)


def test_the_witness_names_ends_pair_and_output():
    found = count_leakage(MarkovChain(THREE, length=6), 1.0)
    details = found.witness.details
    assert set(details) >= {"target", "known", "values", "pair", "output"}
    assert found.mechanisms == "the count with Laplace or discrete Laplace noise"


def test_the_witness_of_a_two_state_count_names_its_outputs():
    found = count_leakage(MarkovChain(ACTIVITY, length=50), 1.0)
    assert "below or above every possible one" in found.witness.summary
    assert count_leakage(MarkovChain(ACTIVITY, [1.0, 0], 1), 1.0).witness is None


@pytest.mark.parametrize("target", [1e-6, 0.5, 4.0])
def test_the_inverse_returns_a_level_within_the_target(target):
    chain = MarkovChain(THREE, length=8)
    level = count_budget(chain, target)
    value = count_leakage(chain, level).value
    assert value <= target
    assert value == pytest.approx(target, rel=1e-8)


def test_only_long_evaluations_are_left_to_their_name():
    method, query = CountTheorem(), CountQuery()
    assert method.too_costly(MarkovChain(ACTIVITY, length=10**6), query=query) is None
    assert method.too_costly(MarkovChain(THREE, length=20), query=query) is None
    assert "100" in method.too_costly(MarkovChain(THREE, length=100), query=query)


ZEROS_AND_ONES = [
    [[0, 1], [1, 0]],
    [[1, 0], [0, 1]],
    [[1, 0], [1, 0]],
    [[0, 1], [0.5, 0.5]],
    [[0.5, 0.5], [0.5, 0.5]],
    [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
    [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]],
]


@pytest.mark.parametrize("transition", ZEROS_AND_ONES)
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("target", [1e-300, 0.5, 30.0])
def test_chains_that_never_or_always_move_are_calibrated(transition, length, target):
    start = [0.7, 0.3, 0.0][: len(transition)]
    chain = MarkovChain(transition, start, length)
    for counted in ([0], [1], range(len(transition))):
        found = calibrate(chain, target, query=CountQuery(counted))
        assert 0 < found.epsilon <= target
        assert found.achieves.value <= target


def test_a_count_that_cannot_change_leaks_nothing_at_any_level():
    alternating = MarkovChain([[0, 1], [1, 0]], [0.7, 0.3], 2)
    found = calibrate(alternating, 0.5, query=CountQuery([0]))
    assert found.achieves.value == 0
    assert found.epsilon == 0.5


@pytest.mark.parametrize("target", [1e-6, 0.1, 1 / 3, 0.7, 7.0, 200.0])
def test_a_count_on_frozen_records_keeps_the_target(target):
    chain = MarkovChain(np.eye(3), [0.2, 0.3, 0.5], 7)
    found = calibrate(chain, target, query=CountQuery([0]))
    assert found.achieves.value <= target
    if target <= 7:
        level = CountTheorem().invert(chain, target, query=CountQuery([0]))
        assert leakage(chain, level, query=CountQuery([0])).value <= target

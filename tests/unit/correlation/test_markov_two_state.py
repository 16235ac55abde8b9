"""The exact conversion for two-state chains."""

import itertools
import math
import time

import numpy as np
import pytest

from undertow.correlation.markov import two_state
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import (
    closed_value,
    projective_diameter,
    projective_leakage,
)
from undertow.correlation.markov.two_state import (
    LONGEST,
    TwoStateTheorem,
    evaluate,
    repeated_windows,
    two_state_budget,
    two_state_leakage,
)
from undertow.correlation.query import AnyQuery
from undertow.errors import InfeasibleTarget, ModelError, NotApplicable

ACTIVITY = np.array([[0.882, 0.118], [0.305, 0.695]])
OPPOSITE = np.array([[0.2, 0.8], [0.7, 0.3]])


def joint_law(kernels, initial):
    """Return the law of all records of a chain, as a table."""
    size, states = len(kernels) + 1, len(initial)
    table = np.zeros((states,) * size)
    for path in itertools.product(range(states), repeat=size):
        weight = initial[path[0]]
        for step, kernel in enumerate(kernels):
            weight *= kernel[path[step], path[step + 1]]
        table[path] = weight
    return table


def randomized_response_leakage(joint, epsilon):
    """Try every attacker on randomized response of each bit, output by output."""
    size = joint.ndim
    keep = 1 / (1 + math.exp(-epsilon))
    best, where = 0.0, None
    for output in itertools.product(range(2), repeat=size):
        weighted = joint.copy()
        for axis, bit in enumerate(output):
            shape = [1] * size
            shape[axis] = 2
            law = [keep if bit == z else 1 - keep for z in range(2)]
            weighted = weighted * np.reshape(law, shape)
        for target in range(size):
            rest = [j for j in range(size) if j != target]
            for count in range(size):
                for known in itertools.combinations(rest, count):
                    hidden = tuple(j for j in rest if j not in known)
                    seen = np.moveaxis(
                        weighted.sum(axis=hidden, keepdims=True), target, 0
                    )
                    prior = np.moveaxis(
                        joint.sum(axis=hidden, keepdims=True), target, 0
                    )
                    with np.errstate(divide="ignore", invalid="ignore"):
                        ratio = np.log(seen[0] / prior[0]) - np.log(seen[1] / prior[1])
                    gap = float(np.nanmax(np.abs(ratio)))
                    if gap > best:
                        best, where = gap, (target, set(known))
    return best, where


def stationary(P):
    law = np.array([P[1, 0], P[0, 1]])
    return law / law.sum()


@pytest.mark.parametrize("P", [ACTIVITY, OPPOSITE])
def test_randomized_response_on_five_records_attains_the_two_state_value(P):
    joint = joint_law([P] * 4, stationary(P))
    found = two_state_leakage(P, 1.0, length=5)
    attained, _ = randomized_response_leakage(joint, 1.0)
    assert found.value == pytest.approx(attained, rel=1e-10)
    assert found.value >= attained
    assert found.tight is True


def test_the_witness_attacker_attains_the_value():
    found = two_state_leakage(ACTIVITY, 1.0, length=5)
    _, (target, known) = randomized_response_leakage(
        joint_law([ACTIVITY] * 4, stationary(ACTIVITY)), 1.0
    )
    details = found.witness.details
    assert (details["target"], set(details["known"])) == (target, known)
    assert "randomized response" in found.witness.summary


def test_one_record_leaks_its_level():
    assert two_state_leakage(ACTIVITY, 0.7, length=1).value == 0.7


def test_a_level_of_zero_leaks_nothing():
    assert two_state_leakage(ACTIVITY, 0.0, length=9).value == 0.0
    assert two_state_leakage(ACTIVITY, 0.0).value == 0.0


def test_independent_records_leak_their_level():
    found = two_state_leakage([[0.3, 0.7], [0.3, 0.7]], 0.9)
    assert found.value == pytest.approx(0.9, rel=1e-11)


@pytest.mark.parametrize("P", [[[0, 1], [1, 0]], [[1, 0], [0, 1]]])
@pytest.mark.parametrize("length", [1, 4, 9, 10**6])
def test_records_that_determine_each_other_leak_once_for_each(P, length):
    found = two_state_leakage(P, 0.25, initial=[0.4, 0.6], length=length)
    assert found.value == pytest.approx(length * 0.25, rel=1e-10)
    assert found.tight is True


def test_a_chain_with_a_zero_has_a_finite_long_chain_value():
    P = [[0.5, 0.5], [1.0, 0.0]]
    limit = two_state_leakage(P, 0.1)
    assert limit.tight is True
    assert limit.value == pytest.approx(
        two_state_leakage(P, 0.1, length=1000).value, rel=1e-9
    )
    assert limit.value < 0.4461224  # the bound by two-step kernels


def test_an_absorbing_chain_needs_a_length():
    with pytest.raises(NotApplicable, match="never mixes"):
        two_state_leakage([[1.0, 0.0], [0.2, 0.8]], 0.5, initial=[0.5, 0.5])
    finite = two_state_leakage(
        [[1.0, 0.0], [0.2, 0.8]], 0.5, initial=[0.5, 0.5], length=6
    )
    assert 0.5 < finite.value <= 3.0


def test_a_known_first_record_holds_no_secret():
    found = two_state_leakage(ACTIVITY, 0.5, initial=[1.0, 0.0], length=1)
    assert found.value == 0.0
    assert found.witness is None


def test_three_states_are_refused_with_the_method_that_fits():
    with pytest.raises(NotApplicable, match="got 3; use method 'pairwise'"):
        two_state_leakage(np.full((3, 3), 1 / 3), 1.0)


def test_rows_that_do_not_sum_to_one_are_a_model_error():
    with pytest.raises(ModelError):
        two_state_leakage([[0.882, 0.117], [0.305, 0.695]], 1.0)


def test_a_time_varying_chain_without_a_start_is_a_model_error():
    with pytest.raises(ModelError, match="initial"):
        two_state_leakage([ACTIVITY, OPPOSITE], 1.0)


def test_a_very_long_time_varying_chain_is_refused():
    kernels = np.broadcast_to(ACTIVITY, (5000, 2, 2))
    with pytest.raises(NotApplicable, match="4096"):
        two_state_leakage(kernels, 1.0, initial=[0.5, 0.5])


def test_a_repeated_kernel_given_as_a_list_gives_the_same_value():
    listed = two_state_leakage(
        [ACTIVITY] * 11, 0.8, initial=stationary(ACTIVITY), length=12
    )
    assert listed.value == pytest.approx(
        two_state_leakage(ACTIVITY, 0.8, length=12).value, rel=1e-11
    )


def test_windows_are_followed_further_than_the_mixing_time():
    P = np.array([[1 - 1.4354e-12, 1.4354e-12], [0.671346, 1 - 0.671346]])
    epsilon = np.array([1.596151])
    short = repeated_windows(P, stationary(P), epsilon, longest=25, exactly=True)
    followed = 1.596151 + sum(
        max(side.known[1].max(), side.edge[1].max()) for side in short
    )
    assert followed == pytest.approx(51.752, abs=5e-4)
    assert two_state_leakage(P, 1.596151).value == pytest.approx(51.992, abs=5e-4)


def test_the_remainder_of_longer_windows_is_within_the_contraction_bound():
    delta = projective_diameter(ACTIVITY)
    kappa = math.tanh(delta / 4)
    for longest in (1, 3, 6, 12):
        _, right = repeated_windows(
            ACTIVITY,
            stationary(ACTIVITY),
            np.array([1.0]),
            longest=longest,
            exactly=True,
        )
        found = np.maximum(right.known.max(axis=1), right.edge.max(axis=1))
        assert (right.rest - found <= 2 * delta * kappa**longest + 1e-12).all()
        _, longer = repeated_windows(
            ACTIVITY, stationary(ACTIVITY), np.array([1.0]), longest=60, exactly=True
        )
        assert (longer.known[:, longest + 1 :].max(axis=1) <= right.rest + 1e-13).all()


def test_a_slowly_mixing_chain_stays_within_its_certified_bounds():
    P = np.array([[1 - 1e-7, 1e-7], [1e-7, 1 - 1e-7]])
    found = two_state_leakage(P, 1e-3)
    assert found.value <= closed_value(1e-3, projective_diameter(P))
    assert found.value >= two_state_leakage(P, 1e-3, length=500).value


@pytest.mark.parametrize("target", [1e-8, 1e-3, 1.0, 30.0, 500.0])
def test_the_inverse_returns_a_level_within_the_target(target):
    level = two_state_budget(ACTIVITY, target)
    value = two_state_leakage(ACTIVITY, level).value
    assert value <= target
    assert value == pytest.approx(target, rel=1e-9)


@pytest.mark.parametrize("target", [0.3, 1.0, 30.0, 100.0])
@pytest.mark.parametrize("faint", [1e-2, 1e-3, 1e-6, 1e-9, 1e-15])
def test_the_inverse_follows_few_records_however_slowly_a_chain_mixes(
    faint, target, monkeypatch
):
    followed = []

    def counting(chain, epsilon):
        bracket = evaluate(chain, epsilon)
        followed.append(bracket.steps)
        return bracket

    monkeypatch.setattr(two_state, "evaluate", counting)
    chain = MarkovChain([[faint, 1 - faint], [1 - faint, faint]])
    level = two_state_budget(chain.transition, target)
    assert sum(followed) <= 9 * LONGEST
    if faint == 1e-15 and target == 1.0:  # nothing but the closed form reaches it
        assert sum(followed) <= LONGEST
    monkeypatch.undo()
    assert two_state_leakage(chain.transition, level).value <= target
    more = level * (1 + 1e-11)
    assert two_state_leakage(chain.transition, more).value > target


def test_the_inverse_of_a_chain_that_determines_itself_is_a_share():
    level = two_state_budget([[0, 1], [1, 0]], 1.0, initial=[0.5, 0.5], length=50)
    assert level == pytest.approx(0.02, rel=1e-11)


def test_the_inverse_refuses_a_chain_that_never_mixes():
    with pytest.raises((NotApplicable, InfeasibleTarget)):
        two_state_budget([[1.0, 0.0], [0.2, 0.8]], 0.5, initial=[0.5, 0.5])


def test_calibrating_a_million_records_takes_no_longer_than_a_thousand():
    def seconds(length):
        best = math.inf
        for _ in range(3):
            start = time.process_time()
            two_state_budget(ACTIVITY, 1.0, length=length)
            best = min(best, time.process_time() - start)
        return best

    two_state_budget(ACTIVITY, 1.0, length=1000)
    assert seconds(10**6) <= 2 * seconds(10**3) + 0.01


def test_the_method_names_itself_and_covers_any_mechanism():
    found = TwoStateTheorem().bound(
        MarkovChain(ACTIVITY, length=30), 0.5, query=AnyQuery()
    )
    assert (found.method, found.mechanisms) == (
        "two-state",
        "every epsilon-DP mechanism",
    )
    assert found.value <= projective_leakage(0.5, projective_diameter(ACTIVITY)).value

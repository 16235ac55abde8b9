"""The exact leakage of small tables, against every attacker, written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.correlation.finite import JointTable, exact_leakage
from undertow.errors import MismatchError, ModelError


def law_given(joint, channel, known):
    """Return P[output | known records]; None if the condition never occurs."""
    index = tuple(known.get(record, slice(None)) for record in range(joint.ndim))
    weights, outputs = joint[index], channel[index].reshape(-1, channel.shape[-1])
    if not weights.sum() > 0:
        return None
    return weights.ravel() @ outputs / weights.sum()


def log_ratio(ours, theirs):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ours > 0, np.log(ours) - np.log(theirs), -math.inf).max()


def listed_leakage(joint, channel):
    """Return Definition 2.27 of the thesis, attacker by attacker."""
    worst = 0.0
    for target in range(joint.ndim):
        others = [record for record in range(joint.ndim) if record != target]
        for size in range(joint.ndim):
            for known in itertools.combinations(others, size):
                for seen in itertools.product(range(joint.shape[0]), repeat=size):
                    facts = dict(zip(known, seen, strict=True))
                    laws = [
                        law_given(joint, channel, {**facts, target: value})
                        for value in range(joint.shape[target])
                    ]
                    possible = [law for law in laws if law is not None]
                    for ours, theirs in itertools.permutations(possible, 2):
                        worst = max(worst, log_ratio(ours, theirs))
    return worst


def leakage(joint, channel):
    return exact_leakage(JointTable(joint), channel)


def noisy_bits(keep, records):
    """Return the channel that publishes each record through randomised response."""
    bit = np.array([[keep, 1 - keep], [1 - keep, keep]])
    channel = np.ones((1, 1))
    for _ in range(records):
        channel = np.kron(channel, bit)
    return channel.reshape((2,) * records + (2**records,))


@pytest.mark.parametrize("seed", range(40))
def test_the_leakage_is_that_of_the_worst_listed_attacker(seed):
    rng = np.random.default_rng(seed)
    records, values, outputs = (int(rng.integers(1, top)) for top in (5, 4, 5))
    joint = rng.dirichlet(np.ones(values**records))
    joint *= rng.random(len(joint)) < 0.7
    joint[0] += 1e-3
    channel = rng.dirichlet(np.ones(outputs), size=len(joint))
    channel *= rng.random(channel.shape) < 0.9
    channel[channel.sum(axis=1) == 0, 0] = 1
    channel /= channel.sum(axis=1, keepdims=True)
    shape = (values,) * records
    joint, channel = (joint / joint.sum()).reshape(shape), channel.reshape(*shape, -1)
    expected = listed_leakage(joint, channel)
    assert leakage(joint, channel).value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_independent_records_leak_their_own_loss(first, second):
    joint = np.outer([first, 1 - first], [second, 1 - second])
    found = leakage(joint, noisy_bits(0.75, 2))
    assert found.value == pytest.approx(math.log(3), abs=1e-9)


@given(st.floats(0.5, 1.0))
def test_correlation_leaks_between_one_and_two_losses(agreement):
    p, q = agreement / 2, (1 - agreement) / 2
    found = leakage([[p, q], [q, p]], noisy_bits(0.75, 2))
    assert math.log(3) - 1e-9 <= found.value <= 2 * math.log(3) + 1e-9


def test_equal_records_leak_twice_and_the_adversary_is_named():
    found = leakage([[0.5, 0], [0, 0.5]], noisy_bits(0.75, 2))
    assert found.value == pytest.approx(2 * math.log(3))
    assert "knows no other record; tells" in found.witness.summary


def test_what_the_adversary_knows_can_matter():
    """Opposite records hide each other in a sum, until one of them is known."""
    p, q = 0.05, 0.45
    law = {0: [0.8, 0.15, 0.05], 1: [0.15, 0.7, 0.15], 2: [0.05, 0.15, 0.8]}
    joint = np.array([[p, q], [q, p]])
    channel = np.array([[law[0], law[1]], [law[1], law[2]]])
    found = leakage(joint, channel)
    assert found.value == pytest.approx(math.log(0.8 / 0.15))
    assert "knows no other record" not in found.witness.summary
    blind = [law_given(joint, channel, {0: value}) for value in (0, 1)]
    assert np.abs(np.log(blind[0] / blind[1])).max() < found.value - 0.5


def test_an_output_possible_under_one_value_only_leaks_without_limit():
    assert leakage([0.5, 0.5], np.eye(2)).value == math.inf


def test_a_single_possible_world_leaks_nothing():
    assert leakage([1.0, 0.0], np.eye(2)).value == 0


def test_an_output_impossible_under_both_values_is_skipped():
    found = leakage([0.5, 0.5], [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]])
    assert found.value == pytest.approx(math.log(3), rel=1e-15)


def test_a_known_record_changes_the_law():
    joint, channel = JointTable([[0.4, 0.1], [0.1, 0.4]]), noisy_bits(0.75, 2)
    alone = joint.given({0: 1}).pmf @ channel[1]
    assert alone.sum() == pytest.approx(1)
    assert np.abs(alone - channel[1, 0]).max() > 0.1
    with pytest.raises(ModelError, match="positive probability"):
        JointTable([[1, 0], [0, 0]]).given({0: 1})


@pytest.mark.parametrize(
    ("joint", "channel", "error", "message"),
    [
        ([[0.5, 0.5]], np.ones((1, 3, 1)), MismatchError, "shape"),
        ([0.5, 0.5], np.ones((3, 1)), MismatchError, "shape"),
        ([0.5, 0.6], np.ones((2, 1)), ModelError, "pmf must sum"),
        ([0.5, 0.5], np.full((2, 2), 0.4), ValueError, "kernel must have rows"),
        ([-0.5, 1.5], np.ones((2, 1)), ModelError, "pmf must be non-negative"),
    ],
)
def test_tables_that_are_no_laws_are_refused(joint, channel, error, message):
    with pytest.raises(error, match=message):
        leakage(joint, channel)

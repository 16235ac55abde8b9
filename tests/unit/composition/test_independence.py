"""Correlation on tiny joint tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.composition.independence import (
    bayesian_leakage,
    conditional_law,
    disintegrate,
)
from undertow.errors import AssumptionError, MismatchError


def noisy_bits(keep, records):
    """Return the channel that publishes each record through randomised response."""
    bit = np.array([[keep, 1 - keep], [1 - keep, keep]])
    channel = np.ones((1, 1))
    for _ in range(records):
        channel = np.kron(channel, bit)
    return channel.reshape((2,) * records + (2**records,))


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_independent_records_leak_their_own_loss(first, second):
    joint = np.outer([first, 1 - first], [second, 1 - second])
    leakage = bayesian_leakage(joint, noisy_bits(0.75, 2))
    assert leakage.value == pytest.approx(math.log(3), abs=1e-9)


@given(st.floats(0.5, 1.0))
def test_correlation_leaks_between_one_and_two_losses(agreement):
    p, q = agreement / 2, (1 - agreement) / 2
    leakage = bayesian_leakage([[p, q], [q, p]], noisy_bits(0.75, 2))
    assert math.log(3) - 1e-9 <= leakage.value <= 2 * math.log(3) + 1e-9


def test_equal_records_leak_twice_and_the_adversary_is_named():
    leakage = bayesian_leakage([[0.5, 0], [0, 0.5]], noisy_bits(0.75, 2))
    assert leakage.value == pytest.approx(2 * math.log(3))
    assert leakage.known == ()
    assert set(leakage.values) == {0, 1}


def test_what_the_adversary_knows_can_matter():
    """Opposite records hide each other in a sum, until one of them is known."""
    p, q = 0.05, 0.45
    law = {0: [0.8, 0.15, 0.05], 1: [0.15, 0.7, 0.15], 2: [0.05, 0.15, 0.8]}
    channel = np.array([[law[0], law[1]], [law[1], law[2]]])
    leakage = bayesian_leakage([[p, q], [q, p]], channel)
    assert leakage.value == pytest.approx(math.log(0.8 / 0.15))
    assert len(leakage.known) == 1
    blind = [
        conditional_law([[p, q], [q, p]], channel, target=0, value=v) for v in (0, 1)
    ]
    assert np.abs(np.log(blind[0] / blind[1])).max() < leakage.value - 0.5


def test_an_output_possible_under_one_value_only_leaks_without_limit():
    publishes = np.eye(2).reshape(2, 2)
    assert bayesian_leakage([0.5, 0.5], publishes).value == math.inf


def test_a_single_possible_world_leaks_nothing():
    assert bayesian_leakage([1.0, 0.0], np.eye(2)).value == 0


def test_a_condition_that_never_occurs_is_refused():
    with pytest.raises(AssumptionError, match="positive probability"):
        conditional_law([[1, 0], [0, 0]], noisy_bits(0.75, 2), target=0, value=1)
    with pytest.raises(ValueError, match="target must be in"):
        conditional_law([1, 0], np.eye(2), target=1, value=0)


def test_a_known_record_changes_the_law():
    joint, channel = [[0.4, 0.1], [0.1, 0.4]], noisy_bits(0.75, 2)
    alone = conditional_law(joint, channel, target=0, value=1)
    told = conditional_law(joint, channel, target=0, value=1, known={1: 0})
    assert alone.sum() == pytest.approx(1)
    assert told == pytest.approx(channel[1, 0])
    assert np.abs(alone - told).max() > 0.1


@pytest.mark.parametrize(
    ("joint", "channel", "error", "message"),
    [
        ([[0.5, 0.5]], np.ones((1, 2, 1)), MismatchError, "shape"),
        ([0.5, 0.5], np.ones((3, 1)), MismatchError, "shape"),
        ([0.5, 0.6], np.ones((2, 1)), ValueError, "joint must hold"),
        ([0.5, 0.5], np.full((2, 2), 0.4), ValueError, "channel must hold"),
        ([-0.5, 1.5], np.ones((2, 1)), ValueError, "joint must hold"),
    ],
)
def test_tables_that_are_no_laws_are_refused(joint, channel, error, message):
    with pytest.raises(error, match=message):
        bayesian_leakage(joint, channel)


def test_a_search_too_large_is_refused():
    records = 12
    joint = np.full((2,) * records, 2.0**-records)
    channel = np.full((2,) * records + (4,), 0.25)
    with pytest.raises(AssumptionError, match="small enough to search"):
        bayesian_leakage(joint, channel)


def test_disintegration_puts_the_prior_back_together():
    prior, labels = [0.1, 0.4, 0.3, 0.2, 0.0], ["a", "b", "a", "b", "c"]
    split = disintegrate(prior, labels)
    assert set(split.weights) == {"a", "b"}  # c never occurs
    mixed = sum(
        split.weights[z] * np.array(split.conditionals[z]) for z in split.weights
    )
    assert mixed == pytest.approx(prior)
    with pytest.raises(MismatchError, match="got 1 for 2"):
        disintegrate([0.5, 0.5], ["a"])
    with pytest.raises(ValueError, match="prior must hold"):
        disintegrate([0.5, 0.6], ["a", "b"])


def test_an_output_impossible_under_both_values_is_skipped():
    leakage = bayesian_leakage([0.5, 0.5], [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]])
    assert leakage.value == pytest.approx(math.log(3), rel=1e-15)


@pytest.mark.parametrize("known", [{0: 1}, {2: 0}, {-1: 0}, {1: 2}, {1: -1}])
def test_what_is_known_must_be_another_record_and_a_value_of_it(known):
    joint, channel = np.full((2, 2), 0.25), np.full((2, 2, 2), 0.5)
    with pytest.raises(ValueError, match="known"):
        conditional_law(joint, channel, target=0, value=0, known=known)

"""Randomised response: rational probabilities, loss at most epsilon, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import MismatchError
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.privacy.loss import Pure
from undertow.spaces.metric import AbsoluteDifference, DiscreteMetric, Scaled


@pytest.mark.parametrize("epsilon", [0, "0.01", 1, "2.5", 20, 300])
@pytest.mark.parametrize("k", [2, 3, 50])
def test_the_law_is_rational_sums_to_one_and_is_close_to_the_classical(epsilon, k):
    mechanism = RandomizedResponse(k, epsilon)
    law = mechanism.exact_pmf(1)
    assert sum(law) == 1
    keep = 1 / (1 + (k - 1) * math.exp(-float(epsilon)))
    assert float(law[1]) == pytest.approx(keep, rel=1e-12)
    assert mechanism.keep_probability == law[1]
    assert mechanism.pmf(1) == pytest.approx([float(p) for p in law])
    assert np.exp(mechanism.log_probabilities(1)) == pytest.approx(mechanism.pmf(1))


@pytest.mark.parametrize("epsilon", [0, "0.01", 1, "2.5", 20, 300])
def test_the_loss_is_that_of_the_rational_law_and_within_epsilon(epsilon):
    mechanism = RandomizedResponse(4, epsilon)
    loss = mechanism.loss(DiscreteMetric())
    assert loss.within(Pure(epsilon))
    paid = Fraction(loss.exact_parameters()[0])
    assert paid >= Fraction(epsilon) - Fraction(1, 2**54)
    logs = np.array([mechanism.log_probabilities(x) for x in range(4)])
    worst = max(np.abs(logs[0] - logs[j]).max() for j in range(1, 4))
    assert worst == pytest.approx(float(epsilon), rel=1e-12, abs=1e-12)


def test_the_ratio_of_weights_is_on_the_private_side_to_eighty_digits():
    from decimal import Context, Decimal

    precise = Context(prec=80)
    for epsilon in ("0.3", "1", "7"):
        mechanism = RandomizedResponse(2, epsilon)
        odds = precise.divide(
            Decimal(mechanism.truth_weight), Decimal(mechanism.other_weight)
        )
        assert odds <= precise.exp(Decimal(epsilon))
        assert Fraction(precise.ln(odds)) <= mechanism.loss().exact_parameters()[0]


def test_equal_categories_cost_nothing_and_others_the_full_loss():
    mechanism = RandomizedResponse(["a", "b", "c"], 2)
    assert mechanism.pair_loss("a", "a") == Pure(0)
    assert mechanism.pair_loss("a", "c") == mechanism.loss()
    assert RandomizedResponse(3, 0).pair_loss(0, 1) == Pure(0)


def test_a_scaled_discrete_metric_rescales_the_loss():
    mechanism = RandomizedResponse(2, 1)
    half = mechanism.loss(Scaled(DiscreteMetric(), 2)).epsilon
    assert half == pytest.approx(0.5)


def test_the_cdf_runs_through_the_categories_in_order():
    mechanism = RandomizedResponse("abc", 1)
    law = mechanism.pmf("b")
    running = [mechanism.cdf(label, "b") for label in "abc"]
    assert running == pytest.approx(np.cumsum(law))
    assert mechanism.support("b") == ("a", "b", "c")
    assert mechanism.log_pmf("a", "b") == pytest.approx(math.log(law[0]))


def test_labels_of_any_kind_come_back():
    labels = [(1, 2), None, "x"]
    draw = RandomizedResponse(labels, "0.1").sample(
        [labels[0]] * 200, source=SimulatedSource(1)
    )
    assert set(draw.values.tolist()) == set(labels)
    assert draw.simulated


def test_large_budgets_use_integers_past_the_machine_word():
    mechanism = RandomizedResponse(2, 60)
    assert mechanism.truth_weight.bit_length() > 64
    draw = mechanism.sample([0, 1, 1])
    assert draw.values.tolist() == [0, 1, 1]
    assert not draw.simulated


@pytest.mark.parametrize("candidates", [1, 0, ["a"], ["a", "a"], []])
def test_fewer_than_two_distinct_categories_are_refused(candidates):
    with pytest.raises(ValueError, match="at least two distinct labels"):
        RandomizedResponse(candidates, 1)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="epsilon must be finite"):
        RandomizedResponse(2, "inf")
    with pytest.raises(ValueError, match="epsilon must be non-negative"):
        RandomizedResponse(2, -1)
    with pytest.raises(ValueError, match="among the 2 candidates"):
        RandomizedResponse(2, 1).pair_loss(0, 5)
    with pytest.raises(MismatchError, match="discrete metric on categories"):
        RandomizedResponse(2, 1).loss(AbsoluteDifference())

"""Corners in which a release could cost more, or tell more, than it says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import log_ndtr

from undertow.errors import MismatchError, UnboundedSensitivityError
from undertow.mechanisms.accuracy import gaussian_accuracy, laplace_accuracy
from undertow.mechanisms.bounded_noise import ClampedMechanism, TruncatedMechanism
from undertow.mechanisms.continuous import LaplaceMechanism
from undertow.mechanisms.discrete import (
    DiscreteLaplaceMechanism,
    far_ratios,
    log_normaliser,
    log_tail_smooth,
)
from undertow.mechanisms.noise._inversion import compile_table
from undertow.mechanisms.noise.secure import SecureSource
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.mechanisms.selection import ExponentialMechanism, NoisyMax
from undertow.numeric.rounding import exp_bracket


@pytest.mark.parametrize("exponent", [20, 30, 300])
def test_the_enclosure_of_an_exponential_never_passes_one(exponent):
    lower, upper = exp_bracket(Fraction(1, 10**exponent), 40)
    assert lower <= 2**40
    assert upper == 2**40


def test_a_lie_is_never_likelier_than_the_truth_however_small_epsilon():
    mechanism = RandomizedResponse(2, "1e-30")
    assert mechanism.other_weight <= mechanism.truth_weight
    assert mechanism.loss().epsilon <= 1e-30


def test_randomised_response_refuses_an_epsilon_its_odds_cannot_hold():
    with pytest.raises(ValueError, match="epsilon must be at most 10000"):
        RandomizedResponse(2, 10**7)


@pytest.mark.parametrize("epsilon", [1, 5, 40])
def test_randomised_response_can_be_simulated_at_any_epsilon(epsilon):
    draw = RandomizedResponse(3, epsilon).sample([0, 1, 2], source=SimulatedSource(1))
    assert draw.simulated
    assert set(draw.values.tolist()) <= {0, 1, 2}


def test_simulated_integers_past_the_machine_word_are_uniform():
    values = SimulatedSource(3).uniform(3 * 2**64, 6000).values
    thirds = np.bincount([int(value) >> 64 for value in values], minlength=3)
    # Six standard deviations of a binomial count.
    assert np.abs(thirds - 2000).max() < 6 * math.sqrt(6000 * 2 / 9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: RandomizedResponse(["a", "b"], 1).sample(["secret"]),
        lambda: RandomizedResponse(["a", "b"], 1).pair_loss("secret", "a"),
        lambda: ExponentialMechanism(2, epsilon=1).sample(["secret", 1]),
        lambda: NoisyMax(2, epsilon=1).sample(["1e5secret", 1]),
        lambda: LaplaceMechanism(1).pair_loss("secret", 0),
        lambda: TruncatedMechanism(LaplaceMechanism(1), 0, 9).sample([4711.0]),
        lambda: DiscreteLaplaceMechanism(1).sample([4711.5]),
    ],
)
def test_no_message_shows_a_private_value(call):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the message is the test
        call()
    assert "secret" not in str(refusal.value)
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize("text", ["5-", "--5", "-", "- -5"])
def test_a_value_with_a_stray_sign_is_refused(text):
    with pytest.raises(ValueError, match="must be finite numbers"):
        LaplaceMechanism(1).pair_loss(text, 0)


@pytest.mark.parametrize("low", [-(2**63), -128])
def test_the_smallest_machine_integer_is_read_as_it_is(low):
    kind = np.int64 if low < -128 else np.int8
    loss = LaplaceMechanism(1).pair_loss([kind(low)], [0])
    assert loss.exact_parameters() == (-low,)


@pytest.mark.parametrize("value", [2**62 + 1, -(2**62) - 3, 2**53 + 1])
def test_every_machine_integer_is_on_the_integer_lattice(value):
    draw = DiscreteLaplaceMechanism(1).sample(np.array([value]))
    assert abs(int(draw.values[0]) - value) < 100


@pytest.mark.parametrize(
    ("values", "exponent"),
    [([5e-324], 10), ([1025], 10), ([1], 64), ([0.75], -1), ([2.0**60 + 512], 10)],
)
def test_what_is_off_the_lattice_is_refused_exactly(values, exponent):
    with pytest.raises(MismatchError, match="multiples of the step"):
        DiscreteLaplaceMechanism(2000, exponent=exponent).sample(np.array(values))


def test_small_choices_leave_no_private_coin_in_the_cache():
    before = compile_table.cache_info().currsize, compile_table.cache_info().misses
    ExponentialMechanism(3, epsilon=1).sample([0.123, 4.56, 7.89])
    SecureSource().bernoulli_exp("0.987654", 5)
    after = compile_table.cache_info().currsize, compile_table.cache_info().misses
    assert after == before


@pytest.mark.parametrize("beta", ["1e-320", "1e-399"])
def test_lattice_accuracy_holds_below_the_smallest_float(beta):
    error = DiscreteLaplaceMechanism(1).accuracy(beta)
    truth = math.log(2 / (1 + math.exp(-1))) + math.log(10) * int(beta[3:])
    assert error == math.ceil(truth)


def test_a_possible_error_never_has_confidence_zero():
    assert DiscreteLaplaceMechanism(1).confidence(2000) > 0
    assert ExponentialMechanism(2, epsilon=2).confidence(1, given=[0, 5000]) > 0
    clamped = ClampedMechanism(LaplaceMechanism("0.001"), 0, 10)
    assert clamped.confidence(5, given=5) > 0
    assert clamped.accuracy(0, given=5) > 5


@pytest.mark.parametrize("alpha", [1, 20, 30, 38, 49])
def test_truncated_confidence_keeps_its_digits_in_the_tail(alpha):
    truth = (math.exp(-alpha) - math.exp(-50)) / -math.expm1(-50)
    bound = TruncatedMechanism(LaplaceMechanism(1), 0, 100).confidence(alpha, given=50)
    assert truth <= bound <= truth * (1 + 1e-9)


def test_truncated_noise_survives_ends_past_the_machine_word():
    wide = TruncatedMechanism(LaplaceMechanism(1), 0, 10**30)
    assert 0 <= wide.sample([5.0]).values[0] < 200


def test_clamped_lattice_noise_refuses_an_unbounded_sensitivity():
    with pytest.raises(UnboundedSensitivityError):
        ClampedMechanism(DiscreteLaplaceMechanism(1), 0, 10).released_loss("inf")


@pytest.mark.parametrize("sigmas", [1.0, 40.0, 500.0, 2000.0, 20000.0])
def test_the_smooth_tail_holds_far_out(sigmas):
    sigma = 5000.0
    m = np.array([round(sigmas * sigma)], dtype=float)
    smooth = float(log_tail_smooth(m, sigma**2)[0])
    if sigmas < 40:
        x = (m[0] - 0.5) / sigma
        truth = float(log_ndtr(-x))
    else:
        mass = -(m[0] ** 2) / (2 * sigma**2) - log_normaliser(Fraction(5000) ** 2)
        truth = mass + math.log(far_ratios(m, sigma**2)[0])
    assert abs(smooth - truth) <= 1e-12 * (1 + abs(truth)) + 1e-8 * (sigmas < 40)


def test_exponential_pair_loss_keeps_its_digits_beside_a_huge_common_score():
    mechanism = ExponentialMechanism(2, epsilon=2)
    small = mechanism.pair_loss([0, 1], [1, 1]).exact_parameters()[0]
    huge = 10**60
    large = mechanism.pair_loss([huge, huge + 1], [huge + 1, huge + 1])
    assert large.exact_parameters()[0] == small


@pytest.mark.parametrize("share", ["0.9999999999", "0.999999999999999"])
def test_gaussian_accuracy_keeps_its_digits_near_probability_one(share):
    gap = float(1 - Fraction(share))
    truth = gap * math.sqrt(math.pi / 2)  # the quantile is linear at 0
    assert truth <= gaussian_accuracy(1, share) <= truth * (1 + 1e-12)


def test_laplace_accuracy_is_rounded_up_for_long_fractions():
    n = 10**290
    for numerator in range(2 * n + 1, 2 * n + 20):
        beta = Fraction(n, numerator)
        assert laplace_accuracy(1, beta) >= math.log(2)
        assert laplace_accuracy(1, beta) <= math.log(2) * (1 + 1e-13)


def test_permute_and_flip_of_many_candidates_needs_little_memory():
    import tracemalloc

    mechanism, scores = NoisyMax(40_000, epsilon=1), [0] * 40_000
    tracemalloc.start()
    law = mechanism.pmf(scores)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert law == pytest.approx(np.full(40_000, 1 / 40_000), rel=1e-9)
    assert peak < 150e6

"""Accuracy and confidence: inverse of one another, scalar and vector, rounded up."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from undertow.mechanisms.accuracy import (
    accuracy_interval,
    gaussian_accuracy,
    gaussian_confidence,
    laplace_accuracy,
    laplace_confidence,
    laplace_scale,
)
from undertow.mechanisms.bounded_noise import ClampedMechanism, TruncatedMechanism
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
)
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.mechanisms.selection import ExponentialMechanism, NoisyMax

BETAS = [1e-12, 1e-5, 0.05, 0.3, 0.9]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_confidence_undoes_accuracy(beta, k, scale):
    pairs = [
        (laplace_accuracy, laplace_confidence, {}),
        (gaussian_accuracy, gaussian_confidence, {}),
        (gaussian_accuracy, gaussian_confidence, {"method": "tail"}),
    ]
    for accuracy, confidence, options in pairs:
        alpha = accuracy(scale, beta, k=k, **options)
        assert confidence(scale, alpha, k=k, **options) == pytest.approx(beta, rel=1e-9)


@pytest.mark.parametrize("beta", BETAS)
def test_scalar_accuracy_is_the_quantile_of_the_error(beta):
    assert laplace_accuracy(2, beta) == pytest.approx(stats.expon(scale=2).isf(beta))
    assert gaussian_accuracy(2, beta) == pytest.approx(
        stats.halfnorm(scale=2).isf(beta)
    )


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("k", [1, 3, 100])
def test_the_tail_bound_is_never_below_the_quantile(beta, k):
    tail = gaussian_accuracy(1, beta, k=k, method="tail")
    assert tail >= gaussian_accuracy(1, beta, k=k)


@pytest.mark.parametrize("k", [2, 5, 50])
def test_trap_25_a_vector_needs_more_than_the_scalar_formula(k):
    # Exact for independent coordinates: 1 - (1 - tail)^k.
    for accuracy, law in (
        (laplace_accuracy, stats.expon()),
        (gaussian_accuracy, stats.halfnorm()),
    ):
        scalar, vector = accuracy(1, 0.05), accuracy(1, 0.05, k=k)
        assert 1 - (1 - law.sf(scalar)) ** k > 0.05
        assert 0.048 < 1 - (1 - law.sf(vector)) ** k <= 0.05


def test_mechanisms_use_their_dimension():
    assert LaplaceMechanism(3, dimension=4).accuracy(0.1) == laplace_accuracy(
        3, 0.1, k=4
    )
    assert LaplaceMechanism(3, dimension=4).confidence(9) == laplace_confidence(
        3, 9, k=4
    )
    wide = GaussianMechanism(3, dimension=4)
    assert wide.accuracy(0.1) == gaussian_accuracy(3, 0.1, k=4)
    assert wide.accuracy(0.1, method="tail") == gaussian_accuracy(
        3, 0.1, k=4, method="tail"
    )
    assert wide.confidence(9) == gaussian_confidence(3, 9, k=4)


@pytest.mark.parametrize("beta", [1e-6, 0.05, 0.5, 1])
@pytest.mark.parametrize(
    "mechanism",
    [
        DiscreteLaplaceMechanism(3),
        DiscreteLaplaceMechanism("0.2", exponent=-3),
        DiscreteGaussianMechanism(3),
        DiscreteGaussianMechanism("0.2", exponent=-3),
        DiscreteLaplaceMechanism(3, dimension=5),
        LaplaceMechanism(3).released,
    ],
)
def test_lattice_accuracy_is_the_least_lattice_error_within_beta(mechanism, beta):
    alpha, step = mechanism.accuracy(beta), float(mechanism.step)
    assert mechanism.confidence(alpha) <= beta
    if alpha > 0:
        assert mechanism.confidence(alpha - step) > beta


@pytest.mark.parametrize(
    "mechanism", [DiscreteLaplaceMechanism(3), DiscreteGaussianMechanism(3)]
)
def test_lattice_confidence_is_the_sum_of_the_law_outside(mechanism):
    outputs = np.arange(-200, 201)
    law = np.exp(mechanism.log_pmf(outputs, 0))
    for alpha in (0, 0.5, 1, 4, 4.5):
        outside = law[np.abs(outputs) >= alpha].sum()
        assert mechanism.confidence(alpha) == pytest.approx(outside, abs=1e-10)
    assert mechanism.confidence("inf") == 0


@pytest.mark.parametrize("kind", [ClampedMechanism, TruncatedMechanism])
@pytest.mark.parametrize(
    "base", [DiscreteLaplaceMechanism(3), DiscreteGaussianMechanism(3)]
)
@pytest.mark.parametrize("given", [0, 2, 5, 9])
def test_bounded_lattice_confidence_is_the_sum_of_the_law_outside(kind, base, given):
    mechanism, outputs = kind(base, 0, 9), np.arange(10)
    law = np.exp(mechanism.log_pmf(outputs, given))
    for alpha in (0, 1, 2.5, 4, 7, 9, 10):
        outside = law[np.abs(outputs - given) >= alpha].sum()
        assert mechanism.confidence(alpha, given=given) == pytest.approx(
            outside, abs=1e-9
        )
    for beta in (0.01, 0.2, 0.6):
        alpha = mechanism.accuracy(beta, given=given)
        assert mechanism.confidence(alpha, given=given) <= beta
        assert mechanism.confidence(alpha - 1, given=given) > beta


@pytest.mark.parametrize("kind", [ClampedMechanism, TruncatedMechanism])
@pytest.mark.parametrize("base", [LaplaceMechanism(3), GaussianMechanism(3)])
@pytest.mark.parametrize("given", [0, 2, 5, 9])
def test_bounded_continuous_confidence_follows_the_cdf(kind, base, given):
    mechanism = kind(base, 0, 9)
    for alpha in (0.5, 2.5, 4.5, 7.5):
        above = 1 - mechanism.cdf(np.nextafter(given + alpha, -9), given)
        below = mechanism.cdf(given - alpha, given)
        expected = above + below
        assert mechanism.confidence(alpha, given=given) == pytest.approx(
            expected, abs=1e-9
        )
    for beta in (0.01, 0.2, 0.6, 1):
        alpha = mechanism.accuracy(beta, given=given)
        assert mechanism.confidence(alpha, given=given) <= beta
        if alpha > 1e-300:  # else half the law sits on the truth
            assert (
                mechanism.confidence(alpha * (1 - 1e-9), given=given) > beta * 0.999999
            )


def test_clamping_never_makes_an_answer_worse():
    base = LaplaceMechanism(3)
    clamped = ClampedMechanism(base, 0, 9)
    for alpha in (0.5, 3, 8):
        assert clamped.confidence(alpha, given=2) <= base.confidence(alpha) * (
            1 + 1e-11
        )


@pytest.mark.parametrize("scores", [[0, 0, 0, 0], [3, 0, 1, 1], [9, 8.5, 0, 2]])
@pytest.mark.parametrize(
    "mechanism",
    [
        ExponentialMechanism(4, epsilon=2),
        NoisyMax(4, epsilon=2),
        NoisyMax(4, epsilon=2, noise="laplace"),
    ],
)
def test_the_regret_bound_of_a_choice_holds_for_every_score_vector(mechanism, scores):
    for beta in (0.01, 0.1, 0.5):
        alpha = mechanism.accuracy(beta)
        assert mechanism.confidence(alpha, given=scores) <= beta
    law = mechanism.pmf(scores)
    regret = max(scores) - np.array(scores)
    for alpha in (0, 0.5, 2, 20):
        assert mechanism.confidence(alpha, given=scores) == pytest.approx(
            law[regret >= alpha].sum(), abs=1e-9
        )


def test_the_accuracy_of_randomized_response_is_a_wrong_category():
    mechanism = RandomizedResponse(3, 2)
    wrong = float(1 - mechanism.keep_probability)
    assert mechanism.confidence(1) == pytest.approx(wrong)
    assert (mechanism.confidence(0), mechanism.confidence(2)) == (1, 0)
    assert mechanism.accuracy(wrong + 1e-9) == 1
    assert mechanism.accuracy(wrong - 1e-9) == math.inf
    assert mechanism.accuracy(1) == 0


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"), [(1, "0.1"), ("1/3", "0.7"), (3, 11), (1e-9, 1e-3)]
)
def test_the_laplace_scale_never_buys_more_than_epsilon(sensitivity, epsilon):
    scale = Fraction(laplace_scale(sensitivity, epsilon))
    exact = Fraction(str(sensitivity)) / Fraction(epsilon)
    assert exact <= scale <= exact * (1 + Fraction(1, 2**51))


def test_an_interval_is_rounded_outwards():
    low, high = accuracy_interval(Fraction(1, 3), Fraction(1, 7))
    assert Fraction(low) <= Fraction(1, 3) - Fraction(1, 7)
    assert Fraction(high) >= Fraction(1, 3) + Fraction(1, 7)
    assert high - low == pytest.approx(2 / 7)


@pytest.mark.parametrize("beta", [0, -0.1, 1.5])
def test_a_bad_beta_is_refused(beta):
    for accuracy in (laplace_accuracy, gaussian_accuracy):
        with pytest.raises(ValueError, match="beta must be"):
            accuracy(1, beta)
    with pytest.raises(ValueError, match="beta must be"):
        DiscreteLaplaceMechanism(1).accuracy(beta)
    with pytest.raises(ValueError, match="beta must be"):
        ExponentialMechanism(2, epsilon=1).accuracy(beta)


def test_a_bad_number_of_coordinates_or_method_is_refused():
    with pytest.raises(ValueError, match="dimension must be at least 1"):
        laplace_accuracy(1, 0.1, k=0)
    with pytest.raises(ValueError, match="method must be one of"):
        gaussian_accuracy(1, 0.1, method="chernoff")
    with pytest.raises(ValueError, match="epsilon must be positive"):
        laplace_scale(1, 0)


def test_tiny_and_unit_beta_stay_finite_and_exact():
    assert laplace_accuracy(1, 1) == 0
    assert gaussian_accuracy(1, 1) == 0
    assert laplace_accuracy(1, "1e-390") == pytest.approx(390 * math.log(10))

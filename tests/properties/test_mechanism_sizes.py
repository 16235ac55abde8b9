"""Noise of any size: the right value, or one sentence, over all decades of floats."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.errors import UndertowError
from undertow.mechanisms import (
    ClampedMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TruncatedMechanism,
)
from undertow.spaces.metric import AbsoluteDifference

KINDS = (
    LaplaceMechanism,
    GaussianMechanism,
    DiscreteLaplaceMechanism,
    DiscreteGaussianMechanism,
)
UNIT = AbsoluteDifference()


def numbers(least: int = -400, most: int = 399):
    """Positive numbers of all decades: floats, texts, decimals and fractions."""
    decimals = st.builds(
        lambda digits, power: Decimal(f"{digits}e{power}"),
        st.integers(1, 99),
        st.integers(least, most - 1),
    )
    return st.one_of(
        decimals,
        decimals.map(str),
        decimals.map(lambda d: Fraction(d)),
        decimals.map(float).filter(lambda x: 0 < x < math.inf),
    )


def exactly(value) -> mpmath.mpf:
    number = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    return mpmath.mpf(number.numerator) / number.denominator


def asked(call):
    """Return the value, or None for a refusal that a user can read."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            value = call()
        except (ValueError, UndertowError) as refusal:
            words = str(refusal)
            assert " must be " in words, words
            assert "math domain" not in words
            return None
    assert not (isinstance(value, float) and math.isnan(value))
    return value


@settings(deadline=None)
@given(st.sampled_from(KINDS), numbers(), numbers(), st.floats(allow_nan=False))
def test_every_question_about_noise_is_answered_or_refused_in_words(
    kind, size, other, output
):
    mechanism = asked(lambda: kind(size))
    if mechanism is None:
        return
    asked(lambda: mechanism.loss(UNIT))
    asked(lambda: mechanism.pair_loss(0, other))
    asked(lambda: mechanism.confidence(other))
    asked(lambda: mechanism.accuracy(other))
    if math.isfinite(output):
        asked(lambda: mechanism.log_density(output, 0.0))
        asked(lambda: mechanism.cdf(output, 0.0))
        asked(lambda: mechanism.sample([output]))
    if hasattr(mechanism, "released_loss"):
        asked(lambda: mechanism.released_loss(other))
    if hasattr(mechanism, "approx_loss"):
        asked(lambda: mechanism.approx_loss(other))
        asked(lambda: mechanism.approx_loss(1, distance=other))


@settings(deadline=None)
@given(st.sampled_from(KINDS), st.booleans(), numbers(-320, 310), numbers(-310, 320))
def test_every_question_about_bounded_noise_is_answered_or_refused(
    kind, clamped, size, width
):
    bounded = ClampedMechanism if clamped else TruncatedMechanism
    base = asked(lambda: kind(size))
    whole = base is not None and hasattr(base, "step")
    high = max(1, round(Fraction(width))) if whole else width
    mechanism = base and asked(lambda: bounded(base, 0, high))
    if mechanism is None:
        return
    asked(lambda: mechanism.loss(UNIT))
    asked(lambda: mechanism.pair_loss(0, high))
    asked(lambda: mechanism.released_loss(1))
    asked(lambda: mechanism.log_density(0.0, 0))
    asked(lambda: mechanism.cdf(0.0, 0))
    asked(lambda: mechanism.confidence(1, given=0))
    if clamped:
        asked(lambda: mechanism.pure_loss(UNIT))


@settings(deadline=None, max_examples=60)
@given(numbers(-299, 299), numbers(-200, 0))
def test_the_error_of_continuous_noise_is_right_in_every_decade(size, beta):
    with mpmath.workdps(60):
        share = min(exactly(beta), mpmath.mpf(1))
        asked_for = "1" if share == 1 else beta
        laplace = LaplaceMechanism(size).accuracy(asked_for)
        truth = exactly(size) * mpmath.log(1 / share)
        assert truth <= laplace
        assert laplace <= truth * (1 + mpmath.mpf("1e-12"))
        found = GaussianMechanism(size).accuracy(asked_for) / exactly(size)
        tail = mpmath.erfc(found / mpmath.sqrt(2))
        assert tail <= share * (1 + mpmath.mpf("1e-10"))
        if share < 1:
            less = found * (1 - mpmath.mpf("1e-9"))
            assert mpmath.erfc(less / mpmath.sqrt(2)) >= share * (1 - 1e-10)


@settings(deadline=None, max_examples=60)
@given(numbers(-140, 140), st.integers(1, 400))
def test_the_tails_of_noise_on_a_lattice_are_right_in_every_decade(size, steps):
    with mpmath.workdps(40):
        b = exactly(size)
        q = mpmath.exp(-1 / b)
        truth = 2 * q**steps / (1 + q)
        found = DiscreteLaplaceMechanism(size).confidence(steps)
        assert found >= truth * (1 - mpmath.mpf("1e-13"))
        assert found <= truth * (1 + mpmath.mpf("1e-9")) + 1e-322
        if b < 40:
            weights = [mpmath.exp(-(k**2) / (2 * b**2)) for k in range(1, 2400)]
            total = 1 + 2 * mpmath.fsum(weights)
            truth = 2 * mpmath.fsum(weights[steps - 1 :]) / total
            found = DiscreteGaussianMechanism(size).confidence(steps)
            assert found >= truth * (1 - mpmath.mpf("1e-11"))
            assert found <= truth * (1 + mpmath.mpf("1e-8")) + 1e-322


@pytest.mark.parametrize("width", [1, 7, 40, 800, 10**5, 10**30])
@pytest.mark.parametrize("sigma", ["0.3", 1, 25])
def test_the_loss_of_clamped_gaussian_noise_is_right_at_any_width(sigma, width):
    whole = ClampedMechanism(DiscreteGaussianMechanism(sigma), 0, width)
    real = ClampedMechanism(GaussianMechanism(sigma), 0, width)
    with mpmath.workdps(40):
        s, w = exactly(sigma), mpmath.mpf(width)
        terms = [
            mpmath.exp(-j * (2 * w + j) / (2 * s**2)) for j in range(int(40 * s) + 40)
        ]
        # P[Z >= w] over P[Z = w - 1]
        tail = mpmath.fsum(terms) * mpmath.exp(-(2 * w - 1) / (2 * s**2))
        truth = mpmath.log1p(1 / tail)
        found = whole.pure_loss(UNIT).epsilon
        assert truth <= found <= truth * (1 + mpmath.mpf("1e-7"))
        x = w / s
        hazard = 1 / mpmath.quad(
            lambda u: mpmath.exp(-u - (u / x) ** 2 / 2), [0, 1, 9, 90]
        )
        truth = hazard * x / s
        found = real.pure_loss(UNIT).epsilon
        assert truth * (1 - mpmath.mpf("1e-12")) <= found
        assert found <= truth * (1 + mpmath.mpf("1e-7"))


def test_a_value_far_beyond_the_noise_is_released_as_it_is():
    drawn = LaplaceMechanism("1e-3").sample([-1e300, 1e300]).values
    assert drawn.tolist() == [-1e300, 1e300]


@pytest.mark.parametrize("power", [-300, -160, -3, 160, 299])
def test_gaussian_noise_of_any_size_is_drawn_in_its_size(power):
    sigma = float(f"1e{power}")
    drawn = np.abs(GaussianMechanism(sigma).sample(np.zeros(400)).values) / sigma
    # The mean of |Z| is 0.798 with a standard deviation of 0.03 here: 10 of them.
    assert 0.5 < drawn.mean() < 1.1

"""Intervals of integer noise: exact quantiles, and bounds that are never too narrow."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.mechanisms import SimulatedSource
from undertow.privacy import ZCDP, Pure
from undertow.release.plan.noise import (
    IntegerNoise,
    Reach,
    ratio_interval,
    variance_interval,
)

NOISES = [
    IntegerNoise("laplace", Fraction(1, 3)),
    IntegerNoise("laplace", Fraction(7, 2)),
    IntegerNoise("gaussian", Fraction(1, 4)),
    IntegerNoise("gaussian", Fraction(30)),
]


def law(noise, reach=400):
    """Return the values and probabilities of a law, from its definition."""
    k = np.arange(-reach, reach + 1)
    scale = float(noise.parameter)
    weight = np.exp(
        -np.abs(k) / scale if noise.law == "laplace" else -(k**2) / 2 / scale
    )
    return k, weight / weight.sum()


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("beta", [0.5, 0.1, 0.05, 1e-4])
def test_the_radius_is_the_least_that_covers(noise, beta):
    k, pmf = law(noise)
    t = noise.radius(beta)
    assert pmf[np.abs(k) > t].sum() <= beta * (1 + 1e-9)
    assert t == 0 or pmf[np.abs(k) > t - 1].sum() > beta * (1 - 1e-9)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_deviation_is_that_of_the_law(noise):
    k, pmf = law(noise)
    spread = math.sqrt(float((pmf * k**2).sum()))
    if noise.law == "laplace":
        assert noise.deviation == pytest.approx(spread, rel=1e-9)
    else:
        assert noise.deviation >= spread * (1 - 1e-9)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_tail_is_that_of_the_law_and_never_below(noise):
    k, pmf = law(noise)
    for count in (1, 2, 5):
        tail = float(pmf[k >= count].sum())
        assert tail * (1 - 1e-9) <= math.exp(noise.log_tail(count))
        assert math.exp(noise.log_tail(count)) <= tail * (1 + 1e-6) + 1e-300


def test_a_tail_below_the_floats_is_bounded_by_chernoff():
    noise = IntegerNoise("laplace", Fraction(1))
    assert -2000 < noise.log_tail(2000) < -1980
    assert IntegerNoise("gaussian", Fraction(1)).log_tail(50) < -1200


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("counts", [(1, 0), (3, 0), (2, 3), (8, 8)])
def test_the_radius_of_a_sum_covers_by_convolution(noise, counts):
    _, pmf = law(noise, 60)
    total = np.array([1.0])
    for weight, count in zip((1, 2), counts, strict=True):
        spread = np.zeros(120 * weight + 1)
        spread[::weight] = pmf
        for _ in range(count):
            total = np.convolve(total, spread)
    values = np.arange(len(total)) - (len(total) - 1) // 2
    for beta in (0.2, 0.025):
        t = noise.sum_radius([1.0, -2.0], beta, counts=counts)
        assert total[values > t].sum() <= beta
        # Chernoff is loose by a constant factor only.
        assert total[values > t / 3].sum() > beta / 20 or t < 3


def test_a_sum_of_nothing_needs_no_radius():
    assert NOISES[0].sum_radius([0.0], 0.1) == 0.0


@pytest.mark.parametrize("scale", ["1/1000", "1e6", "1e13"])
def test_sums_of_extreme_noise_stay_finite(scale):
    for name in ("laplace", "gaussian"):
        noise = IntegerNoise(name, Fraction(scale))
        assert 0 < noise.sum_radius([1.0, 0.5], 1e-6) < 1e16


def test_losses_are_exact():
    reach = Reach(6, 20, 2, 9, 30)
    laplace, gaussian = (IntegerNoise(n, Fraction(7)) for n in ("laplace", "gaussian"))
    assert laplace.loss(reach) == Pure("6/7")
    assert laplace.swap_loss(reach) == Pure("9/7")
    assert gaussian.loss(reach) == ZCDP("20/14")
    assert gaussian.swap_loss(reach) == ZCDP("30/14")


def test_noise_is_added_to_integers_beyond_64_bits():
    noise = IntegerNoise("laplace", Fraction(2))
    values = np.array([[10**30], [-(10**25)]], dtype=np.object_)
    draw = noise.add_to(values, source=SimulatedSource(3))
    assert draw.simulated
    assert all(abs(x) < 100 for x in (draw.values - values).ravel().tolist())


ends = st.tuples(st.integers(-20, 100), st.integers(0, 60)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@given(ends, ends, st.floats(0, 1), st.floats(0, 1))
def test_a_ratio_lies_in_its_interval(first, second, s, t):
    a = max(0.0, first[0] + s * (first[1] - first[0]))
    b = max(0.0, second[0] + t * (second[1] - second[0]))
    low, high = ratio_interval(first, second)
    assert 0 <= low <= high <= 1
    if a + b > 0:
        assert low - 1e-12 <= a / (a + b) <= high + 1e-12


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 2))
def test_a_variance_lies_in_its_interval(numbers, slack):
    x = np.array(numbers)
    sums = [((1 - x) ** 2).sum(), (2 * x * (1 - x)).sum(), (x**2).sum()]
    low, high = variance_interval([(s - slack, s + slack / 2) for s in sums])
    assert low - 1e-12 <= x.var() <= high + 1e-12
    assert 0 <= low <= high <= 0.25


def test_intervals_without_noise_are_points():
    x = np.array([0.25, 0.5, 0.5])
    sums = [((1 - x) ** 2).sum(), (2 * x * (1 - x)).sum(), (x**2).sum()]
    low, high = variance_interval([(s, s) for s in sums])
    assert low == pytest.approx(x.var())
    assert high == pytest.approx(x.var())
    assert ratio_interval((1, 1), (3, 3)) == (0.25, 0.25)

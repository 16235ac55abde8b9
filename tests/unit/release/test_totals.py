"""The law of a sum of integer noises: exact, and never too small."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.release.plan.noise import IntegerNoise, total_log_tail, total_radius

NOISES = [
    IntegerNoise("laplace", Fraction(1, 3)),
    IntegerNoise("laplace", Fraction(7, 2)),
    IntegerNoise("laplace", Fraction(9)),
    IntegerNoise("gaussian", Fraction(1, 4)),
    IntegerNoise("gaussian", Fraction(3)),
    IntegerNoise("gaussian", Fraction(4)),
    IntegerNoise("gaussian", Fraction(30)),
]


def tails(noise, terms, reach=300):
    """Return Pr[S >= k] for k from 0 on, by convolving the law by its definition."""
    k = np.arange(-reach, reach + 1)
    scale = float(noise.parameter)
    size = np.abs(k) / scale if noise.law == "laplace" else k**2 / 2 / scale
    one = np.exp(-size) / np.exp(-size).sum()
    law = one
    for _ in range(terms - 1):
        law = np.convolve(law, one)
    return np.cumsum(law[::-1])[::-1][len(law) // 2 :]


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("terms", [1, 2, 3, 7])
def test_the_tail_of_a_sum_is_that_of_the_convolved_law_and_never_below(noise, terms):
    expected = tails(noise, terms)
    for k in (1, 2, 3, 5, 12, 40):
        if expected[k] > 1e-280:
            found = math.exp(total_log_tail(noise, k, terms=terms))
            assert expected[k] * (1 - 1e-12) <= found <= expected[k] * (1 + 1e-8)


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("terms", [1, 2, 3, 17])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-6])
def test_the_radius_of_a_sum_is_the_least_that_covers(noise, terms, beta):
    expected, t = tails(noise, terms), total_radius(noise, terms, beta=beta)
    assert 2 * expected[t + 1] <= beta * (1 + 1e-9)
    assert t == 0 or 2 * expected[t] > beta * (1 - 1e-8)


@given(
    st.sampled_from(["laplace", "gaussian"]),
    st.fractions(Fraction(1, 20), 400),
    st.integers(2, 17),
    st.floats(1e-9, 0.9),
)
@settings(max_examples=60, deadline=None)
def test_more_terms_and_more_confidence_never_narrow_and_chernoff_is_never_narrower(
    law, parameter, terms, beta
):
    noise = IntegerNoise(law, parameter)
    t = total_radius(noise, terms, beta=beta)
    assert total_radius(noise, terms - 1, beta=beta) <= t
    assert t <= total_radius(noise, terms, beta=beta / 2)
    assert t <= noise.sum_radius([1.0], beta / 2, counts=[terms])


@pytest.mark.parametrize("parameter", ["1/3000", "1e-3", "1e13", "1e100"])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_sums_of_extreme_noise_have_radii_in_their_deviations(law, parameter):
    noise = IntegerNoise(law, Fraction(parameter))
    t = total_radius(noise, 17, beta=0.05)
    if Fraction(parameter) < 1:
        assert t == 0
    else:
        assert t / (noise.deviation * math.sqrt(17)) == pytest.approx(1.96, rel=0.01)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_probabilities_below_the_floats_have_a_radius(noise):
    beta = 1e-300
    t = total_radius(noise, 3, beta=beta)
    assert total_radius(noise, 3, beta=1e-200) < t < 10_000
    assert total_log_tail(noise, t + 1, terms=3) <= math.log(beta / 2)
    assert total_log_tail(noise, 20_000, terms=3) < -1000


def test_the_tail_from_zero_on_is_certain_at_most():
    for noise in NOISES:
        assert total_log_tail(noise, 0, terms=4) == 0
        assert total_log_tail(noise, 1, terms=4) < math.log(0.5)

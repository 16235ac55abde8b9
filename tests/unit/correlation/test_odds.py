"""How far an attacker's odds can move."""

from __future__ import annotations

import math

import mpmath
import pytest

from undertow.correlation.group import general_leakage
from undertow.correlation.result import (
    posterior_odds_interval,
    posterior_probability_interval,
)


def test_even_odds_move_by_the_exponential():
    low, high = posterior_odds_interval(1.0, 2.0)
    assert low == pytest.approx(math.exp(-2), rel=1e-12)
    assert high == pytest.approx(math.exp(2), rel=1e-12)


def test_no_leakage_moves_nothing():
    assert posterior_odds_interval(3.0, 0.0) == pytest.approx((3.0, 3.0), rel=1e-12)
    assert posterior_probability_interval(0.3, 0.0) == pytest.approx((0.3, 0.3))


def test_a_leakage_object_is_its_value():
    bound = general_leakage(0.5, 2)
    assert posterior_odds_interval(1.0, bound) == posterior_odds_interval(1.0, 1.0)
    assert posterior_probability_interval(0.2, bound) == posterior_probability_interval(
        0.2, 1.0
    )


def test_probability_one_half_and_leakage_one():
    low, high = posterior_probability_interval(0.5, 1.0)
    assert low == pytest.approx(0.2689414213699951, rel=1e-12)
    assert high == pytest.approx(0.7310585786300049, rel=1e-12)
    upper = posterior_probability_interval(0.5, 5.0)[1]
    assert upper == pytest.approx(0.9933071490757153, rel=1e-12)


@pytest.mark.parametrize("prior", [1e-300, 1e-9, 0.2, 0.5, 0.999999])
@pytest.mark.parametrize("bound", [1e-12, 0.3, 8.0, 700.0, 5000.0])
def test_intervals_are_rounded_outwards(prior, bound):
    with mpmath.workdps(60):
        p, grow = mpmath.mpf(prior), mpmath.e ** mpmath.mpf(bound)
        low, high = posterior_probability_interval(prior, bound)
        assert low <= p / (p + (1 - p) * grow)
        assert high >= p / (p + (1 - p) / grow)
        below, above = posterior_odds_interval(prior, bound)
        assert below <= p / grow
        assert above >= p * grow


def test_certainty_stays():
    assert posterior_probability_interval(0.0, 3.0) == (0.0, 0.0)
    assert posterior_probability_interval(1.0, 3.0) == (1.0, 1.0)
    assert posterior_odds_interval(0.0, math.inf) == (0.0, 0.0)
    assert posterior_odds_interval(math.inf, 1.0) == (math.inf, math.inf)


def test_infinite_leakage_tells_everything():
    assert posterior_probability_interval(0.4, math.inf) == (0.0, 1.0)
    assert posterior_odds_interval(0.4, math.inf) == (0.0, math.inf)


def test_odds_and_probability_agree():
    low, high = posterior_probability_interval(0.2, 1.5)
    below, above = posterior_odds_interval(0.25, 1.5)
    assert low / (1 - low) == pytest.approx(below, rel=1e-12)
    assert high / (1 - high) == pytest.approx(above, rel=1e-12)


@pytest.mark.parametrize("bound", [-1.0, math.nan])
def test_a_leakage_is_not_negative(bound):
    with pytest.raises(ValueError, match=r"leakage must be non-negative"):
        posterior_odds_interval(1.0, bound)
    with pytest.raises(ValueError, match=r"leakage must be non-negative"):
        posterior_probability_interval(0.5, bound)


def test_priors_are_in_range():
    with pytest.raises(ValueError, match=r"prior_odds must be non-negative"):
        posterior_odds_interval(-1.0, 1.0)
    with pytest.raises(ValueError, match=r"prior must be in \[0, 1\]"):
        posterior_probability_interval(1.5, 1.0)


def test_probabilities_too_small_to_invert_still_move():
    low, high = posterior_probability_interval(5e-324, 10.0)
    assert low == 0.0
    assert high >= 1e-319

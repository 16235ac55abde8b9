from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from undertow.errors import NotApplicable
from undertow.risk.intervals import (
    clopper_pearson,
    empirical_bernstein,
    hoeffding_halfwidth,
    hoeffding_trials,
    weighted_hoeffding_halfwidth,
)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.999])
def test_clopper_pearson_agrees_with_scipy(n, confidence):
    for k in range(n + 1):
        low, high = clopper_pearson(k, n, confidence=confidence)
        exact = stats.binomtest(k, n).proportion_ci(confidence, method="exact")
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)
        assert low <= k / n <= high


@pytest.mark.parametrize(("k", "n"), [(1, 20), (3, 20), (20, 20), (7, 900)])
def test_clopper_pearson_limits_are_rounded_outwards(k, n):
    low, high = clopper_pearson(k, n, confidence=0.9)
    tail = (1 - 0.9) / 2
    with mpmath.workdps(60):
        above = mpmath.betainc(k, n - k + 1, 0, mpmath.mpf(low), regularized=True)
        assert tail * (1 - 1e-9) <= above <= tail
        if k < n:
            left = mpmath.betainc(k + 1, n - k, mpmath.mpf(high), 1, regularized=True)
            assert tail * (1 - 1e-9) <= left <= tail


def test_one_sided_limits_use_the_whole_error():
    two = clopper_pearson(5, 50, confidence=0.9)
    lower = clopper_pearson(5, 50, confidence=0.95, side="lower")
    upper = clopper_pearson(5, 50, confidence=0.95, side="upper")
    assert lower == pytest.approx((two[0], 1.0), rel=1e-12)
    assert upper == pytest.approx((0.0, two[1]), rel=1e-12)


def test_limits_of_a_huge_sample_are_finite_and_narrow():
    low, high = clopper_pearson(1, 10**12)
    assert 0 < low < 1e-12 < high < 1e-11


def _poisson_binomial(chances):
    law = np.ones(1)
    for p in chances:
        law = np.convolve(law, [1 - p, p])
    return law


def test_limits_of_unequal_trials_cover_the_mean_for_every_choice_of_probabilities():
    levels = [0.0, 0.004, 0.1, 0.5, 0.9, 0.996, 1.0]
    n, tail = 5, 0.25
    limits = [clopper_pearson(k, n, confidence=0.5, equal=False) for k in range(n + 1)]
    for chances in itertools.combinations_with_replacement(levels, n):
        law, mean = _poisson_binomial(chances), sum(chances) / n
        above = sum(law[k] for k in range(n + 1) if limits[k][0] > mean + 1e-12)
        below = sum(law[k] for k in range(n + 1) if limits[k][1] < mean - 1e-12)
        assert max(above, below) <= tail + 1e-12


def test_equal_limits_can_fail_for_one_success_of_unequal_trials():
    # One sure-ish trial among many impossible ones: P[S >= 1] exceeds the binomial's.
    n, tail = 5, 0.25
    equal, _ = clopper_pearson(1, n, confidence=1 - tail, side="lower")
    chance = n * equal * (1 - 1e-9)  # mean just below the limit
    assert chance > tail
    unequal, _ = clopper_pearson(1, n, confidence=1 - tail, side="lower", equal=False)
    assert n * unequal <= tail


@pytest.mark.parametrize("n", [3, 10, 57])
def test_a_binomial_reaches_its_mean_with_probability_above_a_quarter(n):
    for p in np.linspace(1.0001 / n, 1 - 1e-9, 801):
        assert stats.binom.sf(math.ceil(n * p) - 1, n, p) > 0.25


def test_unequal_trials_need_small_tails():
    with pytest.raises(NotApplicable, match="tail of at most 1/4"):
        clopper_pearson(1, 5, confidence=0.4, equal=False)


def test_hoeffding_trials_is_the_least_number_that_reaches_the_width():
    for width in (0.5, 0.03, 0.01):
        n = hoeffding_trials(width, span=2.0)
        assert hoeffding_halfwidth(n, span=2.0) <= width * (1 + 1e-11)
        assert n == 1 or hoeffding_halfwidth(n - 1, span=2.0) > width


def test_weights_that_are_equal_give_the_plain_width():
    plain = hoeffding_halfwidth(200)
    assert weighted_hoeffding_halfwidth(1 / 10, 20) == pytest.approx(plain, rel=1e-12)
    assert weighted_hoeffding_halfwidth(0.5, 20) > plain


def test_hoeffding_one_sided_is_narrower():
    assert hoeffding_halfwidth(50, side="lower") < hoeffding_halfwidth(50)


def test_empirical_bernstein_is_the_formula():
    values = np.random.default_rng(3).uniform(-1, 1, 500)
    low, high = empirical_bernstein(values, lowest=-1.0, highest=1.0)
    logs = math.log(4 / 0.05)
    width = math.sqrt(2 * values.var(ddof=1) * logs / 500) + 14 * logs / (3 * 499)
    assert high - values.mean() == pytest.approx(width, rel=1e-9)
    assert values.mean() - low == pytest.approx(width, rel=1e-9)


def test_empirical_bernstein_stays_in_range_and_gains_from_a_small_spread():
    assert empirical_bernstein([0.5, 0.5]) == (0.0, 1.0)
    low, high = empirical_bernstein(np.full(10_000, 0.25))
    assert high - low < 2 * hoeffding_halfwidth(10_000)
    assert empirical_bernstein([0.5] * 99, side="lower")[1] == 1.0
    assert empirical_bernstein([0.5] * 99, side="upper")[0] == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clopper_pearson(3, 2), "successes must be at most the 2 trials"),
        (lambda: clopper_pearson(-1, 2), "successes must be"),
        (lambda: clopper_pearson(1, 2, confidence=1.0), "confidence must be in"),
        (lambda: clopper_pearson(1, 2, side="left"), "side must be one of"),
        (lambda: empirical_bernstein([0.5]), "at least two numbers"),
        (lambda: empirical_bernstein([0.5, 2.0]), "at least two numbers"),
        (lambda: empirical_bernstein([0.5, math.nan]), "at least two numbers"),
        (lambda: hoeffding_halfwidth(0), "trials must be"),
        (lambda: hoeffding_trials(0.0), "halfwidth must be positive"),
        (lambda: weighted_hoeffding_halfwidth(1.5, 3), "collision must be in"),
    ],
    ids=["k>n", "k<0", "level", "side", "one", "range", "nan", "n", "width", "kappa"],
)
def test_bad_arguments_get_one_clear_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("count", [1, 7, 1000, 73_778])
def test_the_trials_asked_for_reach_the_half_width(count):
    bare = math.sqrt(math.log(40) / (2 * count))
    for shift in np.linspace(-2e-12, 4e-12, 25):
        wanted = bare * (1 + shift)
        assert hoeffding_halfwidth(hoeffding_trials(wanted)) <= wanted


def test_numbers_of_trials_beyond_floats_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="halfwidth must need at most"):
        hoeffding_trials(1e-200)
    with pytest.raises(ValueError, match="trials must be at most"):
        clopper_pearson(5, 10**400)


def test_unequal_trials_are_covered_at_every_extreme_mean():
    for n in range(1, 8):
        limits = [clopper_pearson(k, n, confidence=0.5, equal=False) for k in range(n)]
        lows = np.array([low for low, _ in limits] + [1.0 - limits[0][1]])
        lows[-1] = clopper_pearson(n, n, confidence=0.5, equal=False)[0]
        for zeros in range(n):
            for ones in range(n - zeros):
                rest = n - zeros - ones
                for low in lows[1:]:
                    p = (low * (1 - 1e-12) * n - ones) / rest
                    if 0 <= p <= 1:
                        law = np.array([1.0])
                        for q in [1.0] * ones + [p] * rest:
                            law = np.convolve(law, [1 - q, q])
                        law = np.append(law, np.zeros(zeros))
                        mean = (ones + rest * p) / n
                        assert law[lows > mean].sum() <= 0.25 + 1e-12

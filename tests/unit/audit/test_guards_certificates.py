"""Certificates and intervals of audits against enumeration and exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from undertow.audit._method import Pairs, Tally
from undertow.audit.certificate import epsilon_from_success
from undertow.audit.claim import Claim
from undertow.audit.leakage import audit_leakage
from undertow.audit.pair.fixed import _advantage
from undertow.audit.subject import code_words
from undertow.audit.threat import Moments, score_counts
from undertow.correlation import JointTable
from undertow.errors import AuditError


@pytest.mark.parametrize("way", ["certify", "certify_anytime"])
@pytest.mark.parametrize("trials", [1000, 10**6])
def test_a_mass_within_delta_certifies_nothing(way, trials):
    # The event has probability 1/10 on one input and none on the other: (0, 0.1)-DP.
    method = Pairs(Claim.approx(0.5, 0.2), 0.9)
    value, epsilon = getattr(method, way)(Tally(trials // 10, trials, 0, trials))
    assert (value, epsilon) == (0.0, 0.0)


@pytest.mark.parametrize("way", ["certify", "certify_anytime"])
@pytest.mark.parametrize("delta", [0.02, 0.05, 0.1])
def test_a_certificate_with_delta_is_below_the_ratio_of_what_delta_leaves(way, delta):
    method, n = Pairs(Claim.approx(0.5, delta), 0.9), 10**6
    value, _ = getattr(method, way)(Tally(2 * n // 10, n, n // 20, n))
    truth = math.log((0.2 - method.claim.for_replacement().delta) / 0.05)
    assert truth - 0.1 < value < truth


@pytest.mark.parametrize("way", ["certify", "certify_anytime"])
@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_rates_on_a_gaussian_curve_certify_no_more_than_its_mu(way, mu):
    method, n = Pairs(Claim.gaussian(3.0), 0.9), 10**6
    hits, against = (round(n * stats.norm.cdf(x - 1)) for x in (0.0, -mu))
    value, epsilon = getattr(method, way)(Tally(hits, n, against, n))
    assert mu - 0.05 < value < mu
    assert epsilon < math.log(hits / against)


def exact_limits(scores, span, tail):
    """Return the limits of Maurer and Pontil from scores rounded down, in 40 digits."""
    whole = [Fraction(math.floor(Fraction(x) * 2**24), 2**24) for x in scores]
    n, mean = len(whole), sum(whole) / len(whole)
    variance = sum((x - mean) ** 2 for x in whole) / (n - 1)
    with mpmath.workdps(40):
        unit = mpmath.mpf(2) ** -24
        logs = mpmath.log(2 / mpmath.mpf(tail))
        spread = mpmath.mpf(variance.numerator) / variance.denominator
        width = mpmath.sqrt(2 * spread * logs / n)
        width += 7 * (span + unit) * logs / (3 * (n - 1))
        middle = mpmath.mpf(mean.numerator) / mean.denominator
        return middle - width, middle + unit + width


@pytest.mark.parametrize("tail", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0])
def test_limits_of_mean_scores_are_the_published_ones_rounded_outward(scale, tail):
    rng = np.random.default_rng(7)
    for n in (2, 3, 10, 400):
        scores = np.clip(0.25 + scale * rng.uniform(-1, 1, n), -1, 1)
        seen = Moments.read(score_counts(scores), trials=n)
        low, high = exact_limits(scores.tolist(), 2, tail)
        assert low - 1e-9 < seen.lower(2.0, tail) < low
        assert high < seen.upper(2.0, tail) < high + 1e-9


def test_the_interval_of_an_advantage_covers_it_whatever_the_rates():
    n, confidence = 10, 0.9
    found = {
        (p, q): _advantage((p, q), (n, n), confidence, None)
        for p in range(n + 1)
        for q in range(n + 1)
    }
    assert all(x.low <= x.value <= x.high for x in found.values())
    rates = [0.0, 0.1, 0.35, 0.5, 0.8, 1.0]
    laws = {rate: stats.binom.pmf(np.arange(n + 1), n, rate) for rate in rates}
    for first in rates:
        for second in rates:
            truth = (first - second) / 2
            missed = sum(
                laws[first][p] * laws[second][q]
                for (p, q), x in found.items()
                if not x.low - 1e-12 <= truth <= x.high + 1e-12
            )
            assert missed <= 1 - confidence


def test_a_success_within_delta_says_nothing_of_epsilon():
    assert epsilon_from_success(0.25, 4, delta=0.25) == -math.inf
    assert epsilon_from_success(0.25, 4, delta=0.5) == -math.inf
    assert epsilon_from_success(1.0, 4, delta=1.0) == -math.inf
    assert epsilon_from_success(1.0, 4, delta=0.5) == math.inf
    found = [epsilon_from_success(0.6, 4, delta=d) for d in (0, 0.1, 0.5, 0.59)]
    assert found == sorted(found, reverse=True)


def test_functions_that_differ_in_a_number_alone_are_told_apart():
    def one(x):
        return x + 1.5

    def two(x):
        return x + 2.5

    two.__code__ = two.__code__.replace(co_name="one", co_qualname=one.__qualname__)
    assert code_words(one) != code_words(two)


def test_one_output_that_is_no_number_refuses_a_leakage_audit():
    def mostly(rows, rng):
        outputs = rows.sum(axis=1) + rng.laplace(size=len(rows))
        outputs[-1] = np.nan
        return outputs

    model = JointTable([[0.45, 0.05], [0.05, 0.45]])
    with pytest.raises(AuditError, match="must return numbers, got nan"):
        audit_leakage(model, mostly, Claim.pure(1), samples=1000)

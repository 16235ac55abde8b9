"""Certificates: exact limits put into inequalities that every mechanism satisfies."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from undertow.audit.certificate import (
    claim_p_value,
    epsilon_from_advantage,
    epsilon_from_success,
    event_epsilon,
    event_mu,
    odds_epsilon,
    success_ceiling,
    success_epsilon,
    success_mu,
    trials_needed,
)
from undertow.audit.claim import Claim
from undertow.privacy.loss import Approx, Pure
from undertow.risk.bounds.variation import (
    uniform_guess_bound,
    uniform_guess_epsilon_bound,
)

levels = st.floats(0.01, 12)
sizes = st.integers(2, 5000)


@given(levels, sizes, st.sampled_from([0.0, 1e-5, 1e-2]))
def test_the_inverses_undo_corollary_5_16(epsilon, m, delta):
    loss = Approx(epsilon, delta) if delta else Pure(epsilon)
    gain = uniform_guess_bound(loss, m).value
    if gain >= (m - 1) / m * (1 - 1e-9):
        return
    error = 1e-9 + 1e-11 * math.exp(epsilon) / m + 1e-11 * m
    back = epsilon_from_advantage(gain, m, delta=delta)
    assert back == pytest.approx(epsilon, abs=error)
    success = epsilon_from_success(gain + 1 / m, m, delta=delta)
    assert success == pytest.approx(epsilon, abs=error)


def test_the_two_inverses_agree_with_the_bound_of_the_risk_package():
    for gain, m in ((0.1, 2), (0.5, 10), (0.72614, 3052)):
        other = uniform_guess_epsilon_bound(gain, m).value
        assert epsilon_from_advantage(gain, m) == pytest.approx(other, abs=1e-9)


def test_the_ends_of_the_inverses():
    assert epsilon_from_success(1.0, 5) == math.inf
    assert epsilon_from_success(0.0, 5) == -math.inf
    assert epsilon_from_success(0.2, 5) == pytest.approx(0.0, abs=1e-12)
    assert epsilon_from_success(0.1, 5, delta=0.1) == -math.inf
    assert epsilon_from_success(1.0, 5, delta=1.0) == -math.inf
    assert epsilon_from_advantage(0.8, 5) == math.inf
    assert epsilon_from_advantage(-0.2, 5) == -math.inf
    with pytest.raises(ValueError, match="advantage must be in"):
        epsilon_from_advantage(0.9, 5)
    with pytest.raises(ValueError, match="advantage must be in"):
        epsilon_from_advantage(math.nan, 5)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(2, 50))
def test_the_certificate_is_where_the_binomial_tail_is_the_error(hits, more, m):
    n = max(1, hits + more)
    hits = min(hits, n)
    epsilon = success_epsilon(hits, n, m, confidence=0.95).value
    if 0 < epsilon < math.inf:
        limit = math.exp(epsilon) / (math.exp(epsilon) + m - 1)
        assert binom.sf(hits - 1, n, limit) == pytest.approx(0.05, rel=1e-6)
        assert binom.sf(hits - 1, n, limit) <= 0.05 * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_a_true_claim_is_refuted_with_at_most_the_error_probability_exactly(epsilon):
    # All counts of 60 trials, randomised response at its own limit.
    m, n = 8, 60
    success = math.exp(epsilon) / (math.exp(epsilon) + m - 1)
    wrong = sum(
        binom.pmf(k, n, success)
        for k in range(n + 1)
        if success_epsilon(k, n, m, confidence=0.9).value > epsilon
    )
    assert 0 < wrong <= 0.1


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_an_event_certificate_errs_with_at_most_the_error_probability(delta):
    epsilon, n = 0.8, 25
    q = 0.2
    p = math.exp(epsilon) * q + delta
    table = np.outer(
        binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(n + 1), n, q)
    )
    wrong = sum(
        table[i, j]
        for i in range(n + 1)
        for j in range(n + 1)
        if table[i, j] > 1e-7
        and event_epsilon(i, n, j, n, delta=delta, confidence=0.8).value > epsilon
    )
    assert 0 < wrong <= 0.2


def test_the_odds_certificate_errs_with_at_most_the_error_probability_exactly():
    # Multinomial trials at the limit: 0.5, 0.5/e, rest; summed over both counts.
    n, a = 30, 0.5
    b = a / math.e
    wrong = 0.0
    for i in range(n + 1):
        for j in range(n + 1 - i):
            rest = n - i - j
            chance = math.factorial(n) / (
                math.factorial(i) * math.factorial(j) * math.factorial(rest)
            )
            chance *= a**i * b**j * (1 - a - b) ** rest
            if odds_epsilon(i, j, confidence=0.9).value > 1.0:
                wrong += chance
    assert 0 < wrong <= 0.1


def test_odds_are_sharper_than_two_limits():
    counts = (365_500, 134_500)
    two = event_epsilon(counts[0], 10**6, counts[1], 10**6).value
    assert odds_epsilon(*counts).value > two + 0.002
    assert odds_epsilon(0, 0).value == 0.0
    assert odds_epsilon(3, 40).value == 0.0


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_certificates_never_pass_the_estimate(hits, misses):
    n = hits + misses
    estimate = epsilon_from_success(hits / n, 10)
    assert success_epsilon(hits, n, 10).value <= max(0.0, estimate)


def test_more_confidence_more_tries_and_more_delta_all_certify_less():
    counts = (900, 1000, 100, 1000)
    base = event_epsilon(*counts).value
    assert event_epsilon(*counts, confidence=0.999).value < base
    assert event_epsilon(*counts, tried=10).value < base
    assert event_epsilon(*counts, delta=0.05).value < base
    assert event_mu(*counts, tried=10).value < event_mu(*counts).value
    assert odds_epsilon(900, 100, tried=5).value < odds_epsilon(900, 100).value
    assert success_epsilon(900, 1000, 5, delta=0.1).value < (
        success_epsilon(900, 1000, 5).value
    )


def test_the_error_level_is_split_over_what_was_tried():
    one = event_epsilon(900, 1000, 100, 1000, confidence=0.999).value
    ten = event_epsilon(900, 1000, 100, 1000, confidence=0.99, tried=10).value
    assert ten == pytest.approx(one, abs=1e-9)


def test_the_complement_of_an_event_is_used_where_it_is_sharper():
    value = event_epsilon(999_000, 10**6, 900_000, 10**6).value
    assert value > 4.4  # ln(0.1 / 0.001) less its limits; ln(0.999 / 0.9) is 0.1


def test_mu_certificates_are_the_gaussian_tradeoff_at_the_limits():
    value = success_mu(450, 1000, 10, confidence=0.99).value
    low = 0.4127  # one-sided 99 % limit of 450 of 1000
    assert value == pytest.approx(norm.ppf(low) - norm.ppf((1 - low) / 9), abs=2e-3)
    assert event_mu(10, 100, 90, 100).value == 0.0
    assert success_mu(10, 10, 10).quantity == "mu"


def test_the_p_value_and_the_certificate_say_the_same():
    claim, n, m = Claim.pure(1), 500, 10
    for hits in range(100, 170):
        refuted = success_epsilon(hits, n, m).value > 1.0
        assert refuted == (claim_p_value(claim, hits, n, m) < 0.01)
    assert claim_p_value(claim, 0, n, m) == 1.0
    exact = binom.sf(149, n, claim.success_limit(m))
    assert claim_p_value(claim, 150, n, m) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(
    "claim",
    [Claim.pure(1), Claim.pure(9), Claim.approx(2, 0.01), Claim.gaussian(1.5)],
    ids=["pure-1", "pure-9", "approx", "gaussian"],
)
@pytest.mark.parametrize("m", [2, 10, 300])
def test_fewer_trials_than_needed_refute_nothing_and_so_many_can(claim, m):
    n = trials_needed(claim, m)

    def best(trials):
        if claim.parameter == "mu":
            return success_mu(trials, trials, m).value
        return success_epsilon(trials, trials, m, delta=claim.delta).value

    assert best(n) > claim.level
    assert n == 1 or best(n - 1) <= claim.level


def test_the_ceiling_is_that_of_all_successes():
    assert success_ceiling(1000, 5) == success_epsilon(1000, 1000, 5).value
    approx = math.log(4 * 1000 / math.log(100))
    assert success_ceiling(1000, 5) == pytest.approx(approx, abs=0.01)


def test_an_exhaustive_design_is_allowed_and_only_changes_the_smallest_counts():
    assert success_epsilon(50, 100, 10, equal=False).value == pytest.approx(
        success_epsilon(50, 100, 10).value
    )


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_a_confidence_is_strictly_between_zero_and_one(confidence):
    with pytest.raises(ValueError, match="confidence must be in"):
        success_epsilon(5, 10, 3, confidence=confidence)
    with pytest.raises(ValueError, match="confidence must be in"):
        event_epsilon(5, 10, 1, 10, confidence=confidence)
    with pytest.raises(ValueError, match="confidence must be in"):
        trials_needed(Claim.pure(1), 3, confidence=confidence)


def test_bad_counts_are_refused():
    with pytest.raises(ValueError, match="trials must be a whole number of at least 1"):
        success_epsilon(0, 0, 3)
    with pytest.raises(ValueError, match="at most the 10 trials"):
        success_epsilon(11, 10, 3)
    with pytest.raises(ValueError, match="categories"):
        success_epsilon(1, 10, 1)
    with pytest.raises(ValueError, match="tried"):
        event_epsilon(1, 10, 1, 10, tried=0)
    with pytest.raises(ValueError, match="at most the 10 trials"):
        claim_p_value(Claim.pure(1), 11, 10, 3)
    with pytest.raises(ValueError, match="success"):
        epsilon_from_success(math.nan, 3)
    with pytest.raises(ValueError, match="no audit can refute it"):
        trials_needed(Claim.pure(40), 2)


def test_certificates_are_rounded_down():
    low = Fraction(success_ceiling(7, 2))
    limit = 0.01 ** (1 / 7)
    assert float(low) <= math.log(limit / (1 - limit)) + 1e-12

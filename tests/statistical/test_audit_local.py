"""Audits of correct mechanisms refute nothing, but for the stated error level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from undertow.audit.certificate import (
    SequentialTest,
    odds_epsilon,
    proportion_sequence,
    success_epsilon,
)
from undertow.audit.claim import Claim
from undertow.audit.local import audit_local, audit_until_refuted
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
)

pytestmark = pytest.mark.statistical

PROTOCOLS = [
    GeneralizedResponse(8, 1),
    OptimizedUnary(8, 1),
    SubsetSelection(8, 1),
    OptimizedHashing(8, 1),
]


def violations(seeds, trials, *, confidence=0.99, claim=None):
    claim = Claim.pure(1) if claim is None else claim
    return sum(
        audit_local(
            PROTOCOLS[seed % len(PROTOCOLS)],
            claim,
            trials=trials,
            seed=seed,
            confidence=confidence,
        ).violated
        for seed in seeds
    )


@pytest.mark.slow
def test_correct_mechanisms_are_refuted_no_more_often_than_stated():
    """False-alarm rate 1e-4: 320 audits at the edge of the claim, 99 % confidence."""
    runs = 320
    assert violations(range(runs), 600) <= binom.isf(1e-4, runs, 0.01)


def test_the_level_is_nearly_used_up():
    """False-alarm rate 1e-6: at 70 % confidence about 30 % of the audits err.

    An audit that could not err would have no power; this one errs as it says.
    """
    runs = 200
    wrong = violations(range(runs), 600, confidence=0.7)
    assert binom.ppf(1e-6, runs, 0.2) <= wrong <= binom.isf(1e-6, runs, 0.3)


def test_delta_and_gaussian_claims_are_not_refuted_wrongly():
    """False-alarm rate below 1e-4: pure protocols also keep weaker promises."""
    runs = 40
    for claim in (Claim.approx(1, "1e-3"), Claim.gaussian(1)):
        wrong = violations(range(runs), 600, claim=claim)
        assert wrong <= binom.isf(1e-4, runs, 0.01)


def test_sequential_audits_of_correct_mechanisms_err_no_more_often_than_stated():
    """False-alarm rate 1e-4: 80 audits with twenty looks each, 90 % confidence."""
    runs = 80
    wrong = sum(
        audit_until_refuted(
            PROTOCOLS[seed % len(PROTOCOLS)],
            Claim.pure(1),
            trials=2000,
            seed=seed,
            confidence=0.9,
            chunk=100,
        ).violated
        for seed in range(runs)
    )
    assert wrong <= binom.isf(1e-4, runs, 0.1)


def test_audits_in_stages_err_no_more_often_than_stated():
    """False-alarm rate 1e-4: 80 audits in three stages, 90 % confidence."""
    runs = 80
    wrong = sum(
        audit_until_refuted(
            PROTOCOLS[seed % len(PROTOCOLS)],
            Claim.pure(1),
            trials=20_000,
            seed=seed,
            confidence=0.9,
        ).violated
        for seed in range(runs)
    )
    assert wrong <= binom.isf(1e-4, runs, 0.1)


@pytest.mark.slow
def test_a_thousand_audits_refute_at_most_two_percent():
    """False-alarm rate 0.2 %: 1000 audits at 99 % confidence, at most 20 err."""
    assert violations(range(10_000, 11_000), 2000) <= 20


def test_a_thousand_replicas_of_a_correct_attack_raise_at_most_25():
    """False-alarm rate 3e-5 for 25 of 1000 at 1 %."""
    protocol, n = GeneralizedResponse(50, 2), 20_000
    hits = np.random.default_rng(3).binomial(n, protocol.attack_success(), size=1000)
    raised = sum(success_epsilon(int(k), n, 50).value > 2 for k in hits)
    assert raised <= 25


def test_the_odds_certificate_covers_at_its_level():
    """False-alarm rate 1e-4 of 2000 multinomial replicas at the limit, 95 %."""
    rng = np.random.default_rng(4)
    a, b = 0.4, 0.4 / np.e
    counts = rng.multinomial(3000, [a, b, 1 - a - b], size=2000)
    wrong = sum(
        odds_epsilon(int(i), int(j), confidence=0.95).value > 1 for i, j, _ in counts
    )
    assert binom.ppf(1e-6, 2000, 0.03) <= wrong <= binom.isf(1e-4, 2000, 0.05)


def test_peeking_two_hundred_times_errs_no_more_often_than_stated():
    """False-alarm rate 1e-4: 150 runs at the edge of the claim, a look each 25."""
    test = SequentialTest(Claim.pure(1), 8, confidence=0.9)
    limit = test.claim.success_limit(8)
    rng = np.random.default_rng(5)
    runs, looks = 150, 200
    batches = rng.binomial(25, limit, size=(runs, looks))
    wrong = sum(test.run((int(k), 25) for k in row).refuted for row in batches)
    assert wrong <= binom.isf(1e-4, runs, 0.1)


def test_peeking_at_a_fixed_limit_errs_far_more_often():
    """The reason for sequences; false-alarm rate below 1e-9."""
    rng = np.random.default_rng(6)
    limit = Claim.pure(1).success_limit(8)
    batches = rng.binomial(25, limit, size=(60, 200)).cumsum(axis=1)
    wrong = sum(
        any(
            success_epsilon(int(k), 25 * (i + 1), 8, confidence=0.9).value > 1
            for i, k in enumerate(row)
        )
        for row in batches
    )
    assert wrong > 60 * 0.2


def test_a_sequence_covers_both_sides_at_all_looks():
    """False-alarm rate 1e-4 of 100 runs at 90 %."""
    rng = np.random.default_rng(7)
    totals = rng.binomial(20, 0.3, size=(100, 100)).cumsum(axis=1)
    wrong = 0
    for row in totals:
        limits = [
            proportion_sequence(int(k), 20 * (i + 1), confidence=0.9)
            for i, k in enumerate(row)
        ]
        wrong += any(not low <= 0.3 <= high for low, high in limits)
    assert wrong <= binom.isf(1e-4, 100, 0.1)


def test_a_violation_is_found_early():
    """False-alarm rate below 1e-9: the success is far beyond the claim."""
    test = SequentialTest(Claim.pure(1), 8)
    success = Claim.pure(2).success_limit(8)
    rng = np.random.default_rng(8)
    verdict = test.run((int(rng.binomial(100, success)), 100) for _ in range(1000))
    assert verdict.refuted
    assert verdict.trials < 2000

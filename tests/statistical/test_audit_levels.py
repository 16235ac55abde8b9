"""Audits of exactly tight mechanisms on every path: no more alarms than stated.

Each count of alarms is compared with the binomial law of the stated level; a correct
audit fails a test with probability below 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from undertow.audit.claim import Claim
from undertow.audit.leakage import audit_leakage
from undertow.audit.local import audit_local, audit_until_refuted
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.record import RecordedSubject
from undertow.audit.subject import CallableSubject, MechanismSubject, ProtocolSubject
from undertow.correlation import JointTable
from undertow.mechanisms import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
)

pytestmark = pytest.mark.statistical

BETA = 0.1


def leaky(values, rng):
    """Randomised response on 3 values that tells the truth with probability 0.1."""
    share = math.exp(0.5) / (math.exp(0.5) + 2)
    kept = rng.random(len(values)) < 0.1 + 0.9 * share
    return np.where(kept, values, (values + rng.integers(1, 3, size=len(values))) % 3)


def sign(values, rng):
    """The sign of a Gaussian report: mu is exactly 1."""
    return (values - 0.5 + rng.normal(size=len(values)) > 0).astype(int)


LEAKY = CallableSubject(leaky, [0, 1, 2], vectorised=True)
SIGN = CallableSubject(sign, [0, 1], vectorised=True)
HALF = Claim.pure("0.5", adjacency="add-remove")

LOCAL = [
    (GeneralizedResponse(2, 1), Claim.pure(1)),
    (GeneralizedResponse(5, 1), HALF),
    (OptimizedUnary(5, 1), Claim.pure(1)),
    (SymmetricUnary(5, 1), Claim.pure(1)),
    (SubsetSelection(6, 1), Claim.pure(1)),
    (OptimizedHashing(6, 1), Claim.pure(1)),
    (SummationHistogram(3, 1), Claim.pure(1)),
    (LEAKY, Claim.approx("0.5", "0.1")),
    (SIGN, Claim.gaussian(1)),
]

PAIRS = [
    (MechanismSubject(LaplaceMechanism(1), [0.0, 1.0]), Claim.pure(1), None),
    (MechanismSubject(LaplaceMechanism(1), [0.0, 1.0]), Claim.pure(1), "bits"),
    (MechanismSubject(GaussianMechanism(1), [0.0, 1.0]), Claim.gaussian(1), None),
    (ProtocolSubject(GeneralizedResponse(5, 1)), Claim.pure(1), None),
    (LEAKY, Claim.approx("0.5", "0.1"), None),
    (SIGN, Claim.gaussian(1), None),
]


def within_level(alarms, audits):
    return binom.sf(alarms - 1, audits, BETA) > 1e-6


def local_alarms(audit, audits):
    return sum(
        audit(
            *LOCAL[seed % len(LOCAL)], trials=300, confidence=1 - BETA, seed=seed
        ).violated
        for seed in range(audits)
    )


def pair_alarms(audits):
    found = 0
    for seed in range(audits):
        subject, claim, score = PAIRS[seed % len(PAIRS)]
        options = {"trials": 600, "confidence": 1 - BETA, "seed": seed, "score": score}
        found += audit_pair(subject, claim, **options).violated
    return found


@pytest.mark.slow
def test_local_audits_of_tight_protocols_alarm_at_most_at_the_level():
    alarms = local_alarms(audit_local, 450)
    assert alarms > 5  # they are tight
    assert within_level(alarms, 450)


@pytest.mark.slow
def test_stopped_audits_of_tight_protocols_alarm_at_most_at_the_level():
    assert within_level(local_alarms(audit_until_refuted, 45), 45)


@pytest.mark.slow
def test_pair_audits_of_tight_mechanisms_alarm_at_most_at_the_level():
    assert within_level(pair_alarms(90), 90)


def test_audits_of_recorded_runs_alarm_at_most_at_the_level():
    rng, alarms = np.random.default_rng(1), 0
    for seed in range(60):
        inputs = np.repeat([0, 1], 300)
        runs = RecordedSubject(inputs, sign(inputs, rng))
        claim = Claim.gaussian(1)
        alarms += audit_pair(runs, claim, confidence=1 - BETA, seed=seed).violated
    assert within_level(alarms, 60)


@pytest.mark.slow
def test_many_audits_of_tight_mechanisms_alarm_at_most_at_the_level():
    assert within_level(local_alarms(audit_local, 9000), 9000)
    assert within_level(local_alarms(audit_until_refuted, 900), 900)
    assert within_level(pair_alarms(1800), 1800)


@pytest.mark.slow
def test_audits_of_an_exact_leakage_alarm_at_most_at_the_level():
    apart = JointTable([[0.25, 0.25], [0.25, 0.25]])

    def response(rows, rng):
        kept = rng.random(len(rows)) < math.e / (1 + math.e)
        return np.where(kept, rows[:, 0], 1 - rows[:, 0])

    alarms = sum(
        audit_leakage(
            apart, response, Claim.pure(1), samples=400, confidence=1 - BETA, seed=seed
        ).violated
        for seed in range(300)
    )
    assert within_level(alarms, 300)

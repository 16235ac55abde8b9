"""Pair audits that may stop at any time raise no more false alarms than stated.

All mechanisms here keep their claim exactly and no better one, so every refutation is a
false alarm; at confidence 0.99 at most one audit in a hundred may raise one, over all
its looks. The limit on their number is exceeded by chance with probability at most
1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from undertow.audit.certificate import event_epsilon
from undertow.audit.claim import Claim
from undertow.audit.pair.sequential import audit_pair_until_refuted, certify_anytime
from undertow.audit.subject import CallableSubject


def respond(values, rng):
    return np.asarray(values) ^ (rng.random(len(values)) < 1 / (1 + math.e))


def on_grid(outputs):
    """Return outputs without their last digits, which would tell of the values."""
    return np.round(outputs * 2.0**24) / 2.0**24


def laplace(values, rng):
    return on_grid(np.asarray(values) + rng.laplace(size=len(values)))


def gaussian(values, rng):
    return on_grid(np.asarray(values) + rng.normal(size=len(values)))


def release(values, rng):
    """Tell the value with probability 0.05, else something independent of it."""
    told = rng.random(len(values)) < 0.05
    return np.where(told, np.asarray(values), 2 + rng.integers(3, size=len(values)))


CASES = [
    pytest.param(respond, Claim.pure(1), id="respond"),
    pytest.param(laplace, Claim.pure(1), id="laplace"),
    pytest.param(gaussian, Claim.gaussian(1), id="gaussian"),
    pytest.param(release, Claim.approx(0.01, 0.05), id="release"),
]


def audits(function, claim, *, trials, count):
    subject = CallableSubject(function, [0, 1], vectorised=True)
    return [
        audit_pair_until_refuted(subject, claim, trials=trials, seed=seed)
        for seed in range(count)
    ]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("function", "claim"), CASES)
def test_true_claims_are_never_refuted_more_often_than_stated(function, claim):
    found = audits(function, claim, trials=3000, count=60)
    limit = int(stats.binom.isf(1e-6, 60, 0.01))
    assert sum(result.violated for result in found) <= limit


@pytest.mark.statistical
@pytest.mark.parametrize(("function", "claim"), CASES[:2])
def test_false_claims_are_refuted_nearly_always_and_early(function, claim):
    del claim
    found = audits(function, Claim.pure(0.5), trials=40_000, count=20)
    assert sum(result.violated for result in found) >= 19
    assert np.mean([result.trials for result in found]) < 10_000


def alarms(certify, *, runs, looks, count):
    """How often fair answers at epsilon 1 are refuted, looking after every part."""
    rng, step = np.random.default_rng(1), runs // looks
    rates = (math.e / (1 + math.e), 1 / (1 + math.e))
    wrong = 0
    for _ in range(count):
        hits = [rng.binomial(step, rate, size=looks).cumsum() for rate in rates]
        wrong += any(
            certify(int(p), int(q), step * (at + 1)) > 1
            for at, (p, q) in enumerate(zip(*hits, strict=True))
        )
    return wrong


@pytest.mark.statistical
@pytest.mark.slow
def test_many_looks_are_paid_for_and_fixed_limits_do_not_hold_over_them():
    """Looked at a hundred times, limits for one look are wrong twice too often."""
    options = {"runs": 20_000, "looks": 100, "count": 150}
    fixed = alarms(
        lambda p, q, n: event_epsilon(p, n, q, n, confidence=0.8).value, **options
    )
    anytime = alarms(
        lambda p, q, n: certify_anytime(Claim.pure(1), (p, q), (n, n), 0.8)[0],
        **options,
    )
    limit = int(stats.binom.isf(1e-6, 150, 0.2))
    assert anytime <= limit < fixed

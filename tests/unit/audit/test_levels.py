"""No certificate refutes an exactly tight mechanism above its level, by enumeration."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import binom

from undertow.audit.certificate import (
    _level,
    event_epsilon,
    odds_epsilon,
    proportion_sequence,
    success_epsilon,
    success_mu,
    trials_needed,
)
from undertow.audit.claim import Claim

CLAIMS = (
    Claim.pure(1),
    Claim.approx("0.2", "0.3"),
    Claim.approx("0.3", "0.01", adjacency="add-remove"),
    Claim.gaussian(1),
    Claim.gaussian("0.5", adjacency="add-remove"),
)


def certified(claim, hits, trials, m, confidence):
    tested = claim.for_replacement()
    if tested.parameter == "mu":
        return success_mu(hits, trials, m, confidence=confidence).value
    options = {"delta": tested.delta, "confidence": confidence}
    return success_epsilon(hits, trials, m, **options).value


@pytest.mark.parametrize("tail", [0.1, 0.01])
@pytest.mark.parametrize("m", [2, 7])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_naming_a_value_refutes_a_tight_mechanism_at_most_at_the_level(claim, m, tail):
    rate, level = claim.success_limit(m), claim.for_replacement().level
    for n in (7, 60):
        alarms = [
            k for k in range(n + 1) if certified(claim, k, n, m, 1 - tail) > level
        ]
        assert binom.pmf(alarms, n, rate).sum() <= tail
    # And the least number of trials that can refute is just that.
    need = trials_needed(claim, m, confidence=1 - tail)
    assert certified(claim, need, need, m, 1 - tail) > level
    if need > 1:
        assert certified(claim, need - 1, need - 1, m, 1 - tail) <= level


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_odds_refute_a_tight_pair_at_most_at_the_level(epsilon):
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    for both in (1, 17, 150):
        alarms = [
            k
            for k in range(both + 1)
            if odds_epsilon(k, both - k, confidence=0.9).value > epsilon
        ]
        assert binom.pmf(alarms, both, share).sum() <= 0.1


def test_an_event_refutes_a_tight_pair_at_most_at_the_level():
    n, epsilon, delta = 20, 0.5, 0.1
    for q in (0.05, 0.4, 0.9):
        p = min(math.exp(epsilon) * q + delta, 1 - math.exp(-epsilon) * (1 - delta - q))
        law = np.outer(*(binom.pmf(range(n + 1), n, rate) for rate in (p, q)))
        alarm = sum(
            law[i, j]
            for i in range(n + 1)
            for j in range(n + 1)
            if event_epsilon(i, n, j, n, delta=delta, confidence=0.9).value
            > epsilon + 1e-12
        )
        assert alarm <= 0.1


@pytest.mark.parametrize("rate", [0.05, 0.73])
def test_a_sequence_is_ever_wrong_at_most_at_the_level(rate):
    alive, wrong = {0: 1.0}, 0.0
    for n in range(1, 151):
        moved = {}
        for k, mass in alive.items():
            moved[k] = moved.get(k, 0.0) + mass * (1 - rate)
            moved[k + 1] = moved.get(k + 1, 0.0) + mass * rate
        out = {k for k in moved if proportion_sequence(k, n, confidence=0.9)[0] > rate}
        wrong += sum(moved[k] for k in out)
        alive = {k: mass for k, mass in moved.items() if k not in out}
    assert 0 < wrong <= 0.1


def test_the_rounding_of_a_sequence_covers_the_cancelling_log_gammas():
    n, k = 10**8, 1000
    with mpmath.workdps(40):
        half = mpmath.mpf(0.5)
        exact = mpmath.log(mpmath.beta(half + k, half + n - k) / mpmath.beta(0.5, 0.5))
        threshold = float(exact + mpmath.log(mpmath.mpf(1) - mpmath.mpf(0.99)))
        error = abs(float(mpmath.mpf(float(betaln(0.5 + k, 0.5 + n - k))) - exact))
    used = _level(k, n, 0.99, (0.5, 0.5))[2]
    assert error > 1e-8  # what had to be covered
    assert threshold - used > 1e-6

"""Confidence sequences: limits that may be looked at at all times."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from undertow.audit.certificate import (
    SequentialTest,
    proportion_sequence,
    ratio_sequence,
    success_epsilon,
    trials_needed,
)
from undertow.audit.claim import Claim
from undertow.risk.intervals import clopper_pearson


def mixture(k, n, p):
    """The martingale, with fifty digits."""
    with mpmath.workdps(50):
        half = mpmath.mpf("0.5")
        top = mpmath.beta(half + k, half + n - k) / mpmath.beta(half, half)
        return top / (mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k))


@pytest.mark.parametrize(("k", "n"), [(1, 10), (5, 10), (10, 10), (300, 1000)])
def test_the_limits_are_where_the_mixture_reaches_one_over_the_error(k, n):
    low, high = proportion_sequence(k, n, confidence=0.95)
    assert mixture(k, n, low) == pytest.approx(20, rel=1e-5)
    assert mixture(k, n, low) >= 20
    if high < 1:
        assert mixture(k, n, high) == pytest.approx(20, rel=1e-5)
        assert mixture(k, n, high) >= 20


def test_the_mixture_is_a_martingale():
    # Its mean over the next trial is its value, for every p.
    for k, n, p in ((0, 0, 0.3), (3, 7, 0.3), (7, 9, 0.8)):
        following = p * mixture(k + 1, n + 1, p) + (1 - p) * mixture(k, n + 1, p)
        assert following == pytest.approx(mixture(k, n, p), rel=1e-12)


def test_all_paths_of_a_short_run_are_wrong_with_at_most_the_error():
    # Exact: every path of 14 trials, a look after each.
    p, error, steps = 0.4, 0.2, 14
    alive = {0: 1.0}
    wrong = 0.0
    for n in range(1, steps + 1):
        after: dict[int, float] = {}
        for k, mass in alive.items():
            for hit, chance in ((1, p), (0, 1 - p)):
                after[k + hit] = after.get(k + hit, 0.0) + mass * chance
        alive = {}
        for k, mass in after.items():
            low, high = proportion_sequence(k, n, confidence=1 - error)
            if low <= p <= high:
                alive[k] = mass
            else:
                wrong += mass
    assert 0 < wrong <= error


def test_no_trials_say_nothing_and_a_sequence_is_wider_than_one_look():
    assert proportion_sequence(0, 0) == (0.0, 1.0)
    for k, n in ((10, 100), (5000, 10_000)):
        low, high = proportion_sequence(k, n)
        fixed = clopper_pearson(k, n, confidence=0.99)
        assert low < fixed[0] < fixed[1] < high
    width = np.subtract(*proportion_sequence(500_000, 10**6)[::-1])
    assert width < 0.006


def test_the_ratio_uses_both_limits_with_half_the_error():
    value = ratio_sequence((900, 1000), (100, 1000), confidence=0.9).value
    low = proportion_sequence(900, 1000, confidence=0.95)[0]
    high = proportion_sequence(100, 1000, confidence=0.95)[1]
    assert value == pytest.approx(
        max(math.log(low / high), math.log((1 - high) / (1 - low)))
    )
    less = ratio_sequence((900, 1000), (100, 1000), delta=0.1, confidence=0.9)
    assert less.value < value


def test_a_test_stops_as_soon_as_the_claim_is_refuted():
    seen = []

    def batches():
        for size in range(100):
            seen.append(size)
            yield (90, 100)

    verdict = SequentialTest(Claim.pure(1), 10).run(batches())
    assert verdict.refuted
    assert len(seen) < 3
    assert verdict.certified > 1


def test_a_test_that_does_not_refute_reads_everything():
    verdict = SequentialTest(Claim.pure(1), 10).run([(23, 100)] * 20)
    assert not verdict.refuted
    assert (verdict.successes, verdict.trials) == (460, 2000)
    assert verdict.certified < 1


@pytest.mark.parametrize(
    "claim",
    [Claim.pure(1), Claim.pure(8), Claim.approx(1, 0.01), Claim.gaussian(1)],
    ids=["one", "eight", "approx", "gaussian"],
)
def test_trials_needed_is_the_least_number_that_can_refute(claim):
    test = SequentialTest(claim, 20)
    n = test.trials_needed()
    assert test.look(n, n) > claim.level
    assert test.look(n - 1, n - 1) <= claim.level
    assert n >= trials_needed(claim, 20)


def test_a_sequential_certificate_is_below_the_fixed_one():
    test = SequentialTest(Claim.pure(1), 10)
    for k in (200, 500, 900, 1000):
        fixed = success_epsilon(k, 1000, 10).value
        assert test.look(k, 1000) < fixed
    assert test.look(50, 1000) == 0.0


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="at most the 3 trials"):
        proportion_sequence(4, 3)
    with pytest.raises(ValueError, match="confidence must be in"):
        proportion_sequence(1, 3, confidence=math.nan)
    with pytest.raises(ValueError, match="prior"):
        proportion_sequence(1, 3, prior=(0.0, 1.0))
    with pytest.raises(ValueError, match="categories"):
        SequentialTest(Claim.pure(1), 1)
    with pytest.raises(ValueError, match="confidence"):
        SequentialTest(Claim.pure(1), 2, confidence=0.0)
    with pytest.raises(ValueError, match="no audit can refute it"):
        SequentialTest(Claim.pure(50), 2).trials_needed()

r"""Limits that may be looked at after every trial: confidence sequences.

A fixed-sample limit is wrong too often if one stops when it looks good. Here the
probability that any limit of the whole run is wrong is at most the error level, so an
audit may stop as soon as the claim is refuted. Proofs: the page *Audit certificates*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from scipy.special import betaln

from undertow._validate import check_count, check_positive, check_probability
from undertow.audit.certify import wrong_name
from undertow.audit.claim import Claim
from undertow.numeric.rounding import nudge_down, nudge_up
from undertow.privacy.loss import GDP
from undertow.privacy.result import Bound
from undertow.privacy.tradeoff import attack_epsilon_bound, attack_mu_bound

__all__ = [
    "SequentialTest",
    "SequentialVerdict",
    "proportion_sequence",
    "ratio_mu_sequence",
    "ratio_sequence",
]

# Covers the rounding of the log-beta functions: relative, and absolute.
_MARGIN = 1e-12
_SLACK = 1e-9
_CANCELLED = 2.0**-48
_STEPS = 200
# The mixture of Jeffreys.
_PRIOR = (0.5, 0.5)
_UNCHECKED = ("each input has one law throughout", "the event was fixed before")


def proportion_sequence(
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    confidence: float = 0.99,
    prior: tuple[float, float] = _PRIOR,
) -> tuple[float, float]:
    r"""Return limits of a success probability that hold at all times together.

    .. math:: \Bigl\{p : \frac{B(a + k, b + n - k)}{B(a, b)\, p^k (1-p)^{n-k}}
       < \frac{1}{\beta}\Bigr\}

    Parameters
    ----------
    successes, trials : int
        The counts so far; no trials yet give (0, 1).
    confidence : float, optional
        Probability :math:`1 - \beta` that no limit of the run is wrong.
    prior : tuple of float, optional
        The a and b of the mixture; fixed before the data. They change the width, never
        the validity.

    Returns
    -------
    tuple of float
        Lower and upper limit, rounded outwards.

    Notes
    -----
    Robbins' beta-binomial mixture and Ville's inequality [1]_. Trials may depend on the
    past as long as each has the same success probability given it.

    References
    ----------
    .. [1] S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, *Time-Uniform,
       Nonparametric, Nonasymptotic Confidence Sequences*, Annals of Statistics 49,
       2021.

    Examples
    --------
    >>> low, high = proportion_sequence(500, 1000)
    >>> round(low, 4), round(high, 4)
    (0.4359, 0.5641)
    """
    k, rest, level = _level(successes, trials, confidence, prior)
    high = 1.0 - _crossing(rest, k, level)
    return _crossing(k, rest, level), min(1.0, nudge_up(high, 2))


def ratio_sequence(
    first: tuple[SupportsIndex, SupportsIndex],
    second: tuple[SupportsIndex, SupportsIndex],
    *,
    delta: float = 0.0,
    confidence: float = 0.99,
) -> Bound:
    r"""Certify epsilon at all times from an event on two inputs.

    Parameters
    ----------
    first, second : tuple of int
        Hits and trials on the input under which the event is frequent, and on the
        other.
    delta : float, optional
        At which epsilon is asked for.
    confidence : float, optional
        Probability that no limit of the run is wrong.

    Returns
    -------
    Bound
        On epsilon, from below.

    Notes
    -----
    Two sequences of :func:`proportion_sequence` with half the error each.

    Examples
    --------
    >>> round(ratio_sequence((9000, 10_000), (1000, 10_000)).value, 3)
    2.05
    """
    low, high = _both(first, second, confidence)
    value = attack_epsilon_bound(tpr=low, fpr=high, delta=delta)
    return Bound(value, "Audit certificates, Theorem 4", _UNCHECKED)


def ratio_mu_sequence(
    first: tuple[SupportsIndex, SupportsIndex],
    second: tuple[SupportsIndex, SupportsIndex],
    *,
    confidence: float = 0.99,
) -> Bound:
    """Certify mu of Gaussian DP at all times from an event on two inputs.

    Parameters as in :func:`ratio_sequence`.

    Examples
    --------
    >>> round(ratio_mu_sequence((9000, 10_000), (1000, 10_000)).value, 3)
    2.411
    """
    low, high = _both(first, second, confidence)
    value = attack_mu_bound(tpr=low, fpr=high)
    return Bound(value, "Audit certificates, Theorem 4", _UNCHECKED, quantity="mu")


@dataclass(frozen=True, slots=True)
class SequentialVerdict:
    """Where a sequential test stands.

    Parameters
    ----------
    refuted : bool
        Whether the claim is refuted; it stays so whatever comes later.
    successes, trials : int
        The counts when the test ended.
    certified : float
        Lower limit of epsilon or mu, valid at all times.
    """

    refuted: bool
    successes: int
    trials: int
    certified: float


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """A test of one claim that may be looked at as often as one likes.

    Parameters
    ----------
    claim : Claim
        What is to be refuted.
    categories : int
        Number of equally likely values that the attack chooses from; 2 for pooled
        pairs (:func:`~undertow.audit.certify.odds_epsilon`), with pure claims.
    confidence : float, optional
        Probability that a true claim is never refuted, over the whole run.

    Examples
    --------
    >>> test = SequentialTest(Claim.pure(1), 10)
    >>> verdict = test.run([(45, 100)] * 10)
    >>> verdict.refuted, verdict.trials
    (True, 100)
    """

    claim: Claim
    categories: int
    confidence: float = 0.99

    def __post_init__(self) -> None:
        check_count(self.categories, "categories", minimum=2)
        check_probability(self.confidence, "confidence", open_interval=True)

    def look(self, successes: SupportsIndex, trials: SupportsIndex) -> float:
        """Return the certified epsilon, or mu for a Gaussian claim, at these counts."""
        low = _crossing(*_level(successes, trials, self.confidence, _PRIOR))
        m = self.categories
        if isinstance(self.claim.loss, GDP):
            return attack_mu_bound(tpr=low, fpr=wrong_name(low, m))
        kept = (low - self.claim.for_replacement().delta) * (m - 1)
        if kept <= 1.0 - low:
            return 0.0
        return max(0.0, nudge_down(math.log(kept / (1.0 - low)) - 2.0**-47))

    def run(self, batches: Iterable[tuple[int, int]]) -> SequentialVerdict:
        """Read successes and trials of one batch after another until refuted."""
        level, k, n, certified = self.claim.for_replacement().level, 0, 0, 0.0
        for successes, trials in batches:
            k, n = k + successes, n + trials
            certified = self.look(k, n)
            if certified > level:
                return SequentialVerdict(True, k, n, certified)
        return SequentialVerdict(False, k, n, certified)

    def trials_needed(self) -> int:
        """Return the least number of trials, all successes, that refutes the claim."""
        limit = self.claim.success_limit(self.categories)
        if limit >= 1.0:
            raise ValueError(
                f"claim must leave room for a refutation, got {self.claim}; no audit "
                "can refute it."
            )
        high = 1
        while proportion_sequence(high, high, confidence=self.confidence)[0] <= limit:
            high *= 2
        low = high // 2
        while high - low > 1:
            mid = (low + high) // 2
            reached = proportion_sequence(mid, mid, confidence=self.confidence)[0]
            low, high = (low, mid) if reached > limit else (mid, high)
        return high


def _both(
    first: tuple[SupportsIndex, SupportsIndex],
    second: tuple[SupportsIndex, SupportsIndex],
    confidence: float,
) -> tuple[float, float]:
    """Return the lower limit of the first and the upper of the second, together."""
    each = nudge_up(1.0 - (1.0 - confidence) / 2)
    low = proportion_sequence(*first, confidence=each)[0]
    return low, proportion_sequence(*second, confidence=each)[1]


def _level(
    successes: SupportsIndex,
    trials: SupportsIndex,
    confidence: float,
    prior: tuple[float, float],
) -> tuple[int, int, float]:
    """Return the counts and the log-likelihood below which p is excluded."""
    n = check_count(trials, "trials", minimum=0)
    k = check_count(successes, "successes", minimum=0)
    tail = 1.0 - check_probability(confidence, "confidence", open_interval=True)
    a, b = (check_positive(value, "prior") for value in prior)
    if k > n:
        raise ValueError(f"successes must be at most the {n} trials, got {k}.")
    mass = float(betaln(a + k, b + n - k)) - float(betaln(a, b)) + math.log(tail)
    # Rounded so that the set grows; log-gamma functions near n ln n cancel.
    slack = _SLACK + _CANCELLED * (n + 2) * math.log(n + 2)
    return k, n - k, mass - slack - _MARGIN * abs(mass)


def _crossing(k: int, rest: int, level: float) -> float:
    """Return a p at most k/n where k ln p + rest ln(1 - p) reaches `level`."""
    if k == 0:
        return 0.0
    low, high = 0.0, k / (k + rest)
    for _ in range(_STEPS):
        mid = (low + high) / 2
        if mid in (low, high):
            break
        likelihood = k * math.log(mid) + (rest * math.log1p(-mid) if rest else 0.0)
        low, high = (mid, high) if likelihood <= level else (low, mid)
    return max(0.0, nudge_down(low * (1.0 - _MARGIN)))

"""From counts to lower limits of the privacy parameter that hold with confidence.

Limits for a number of trials that is fixed beforehand, confidence sequences that may
be looked at after every trial, and what a claim allows in the population.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsIndex

from scipy.special import bdtrc, betaln

from undertow._validate import check_count, check_positive, check_probability
from undertow.audit._size import least_trials
from undertow.audit.claim import Claim
from undertow.numeric.rounding import log_down, nudge_down, nudge_up
from undertow.privacy.loss import GDP
from undertow.privacy.tradeoff import attack_epsilon_bound, attack_mu_bound
from undertow.results import Bound
from undertow.risk.intervals import clopper_pearson

_TRIALS = ("the trials are independent", "the attack was fixed before the data")
_UNIFORM = (*_TRIALS, "targets are uniform, or each value has equally many trials")
_REPLACE = "epsilon is for replacing a record"


def success_epsilon(
    successes: SupportsIndex,
    trials: SupportsIndex,
    categories: SupportsIndex,
    *,
    delta: float = 0.0,
    confidence: float = 0.99,
    equal: bool = True,
) -> Bound:
    r"""Certify epsilon from how often an attack named the value.

    Parameters
    ----------
    successes, trials : int
        Right guesses, of how many.
    categories : int
        Number m of values, each equally often the truth.
    delta : float, optional
        At which epsilon is asked for.
    confidence : float, optional
        Probability that the limit is right.
    equal : bool, optional
        False if each value has a fixed number of trials rather than a random one.

    Returns
    -------
    Bound
        With the stated confidence epsilon is at least this; rounded down.

    Notes
    -----
    Corollary 5.16 at the one-sided Clopper-Pearson limit of the success. Holds for
    every attack and mechanism; not checkable: independent trials, an attack that was
    fixed before the data and knows nothing of the target.

    Examples
    --------
    >>> round(success_epsilon(878_337, 10**6, 3052).value, 4)
    9.9929
    """
    m, lost = _read_categories(categories), check_probability(delta, "delta")
    low = _lower(successes, trials, confidence, equal=equal)
    value = _success_inverse(low, m, lost)
    return Bound(value, "Audit certificates, Theorem 1", (*_UNIFORM, _REPLACE))


def success_mu(
    successes: SupportsIndex,
    trials: SupportsIndex,
    categories: SupportsIndex,
    *,
    confidence: float = 0.99,
    equal: bool = True,
) -> Bound:
    r"""Certify mu of Gaussian DP from how often an attack named the value.

    .. math:: \mu \ge \Phi^{-1}(s) - \Phi^{-1}\Bigl(\frac{1 - s}{m - 1}\Bigr)

    Parameters as in :func:`success_epsilon`.

    Notes
    -----
    Naming x has probability at most :math:`\Phi(\mu + \Phi^{-1}(\alpha))` if it has
    :math:`\alpha` on another value. That is concave in :math:`\alpha`, whose average
    over all ordered pairs of different values is at most :math:`(1-s)/(m-1)`, as wrong
    names have the average probability :math:`1-s` together: Jensen's inequality.

    Examples
    --------
    >>> round(success_mu(450, 1000, 10).value, 4)
    1.2931
    """
    m = _read_categories(categories)
    low = _lower(successes, trials, confidence, equal=equal)
    value = attack_mu_bound(tpr=low, fpr=wrong_name(low, m))
    theorem = "Audit certificates, Theorem 2"
    return Bound(value, theorem, (*_UNIFORM, _REPLACE), quantity="mu")


def event_epsilon(
    hits_p: SupportsIndex,
    trials_p: SupportsIndex,
    hits_q: SupportsIndex,
    trials_q: SupportsIndex,
    *,
    delta: float = 0.0,
    confidence: float = 0.99,
    tried: SupportsIndex = 1,
) -> Bound:
    r"""Certify epsilon from how often an event happened on two inputs.

    .. math:: \varepsilon \ge \max\Bigl(\ln\frac{L_P - \delta}{U_Q},
       \ln\frac{1 - U_Q - \delta}{1 - L_P}\Bigr)

    Parameters
    ----------
    hits_p, trials_p : int
        On the input under which the event is frequent.
    hits_q, trials_q : int
        On the other; the counts need not be independent of the first.
    delta : float, optional
        At which epsilon is asked for.
    confidence : float, optional
        Probability that the limit is right.
    tried : int, optional
        Number of events whose counts were looked at before one was chosen.

    Returns
    -------
    Bound
        With the stated confidence epsilon is at least this; rounded down.

    Notes
    -----
    Two Clopper-Pearson limits, each with tail :math:`\beta/(2\,\mathrm{tried})`.

    Examples
    --------
    >>> round(event_epsilon(1_000_000, 10**6, 0, 10**6).value, 4)
    12.1481
    """
    low, high = _limits((hits_p, trials_p), (hits_q, trials_q), confidence, tried)
    value = attack_epsilon_bound(tpr=low, fpr=high, delta=delta)
    return Bound(value, "Audit certificates, Theorem 3", (*_TRIALS, _REPLACE))


def event_mu(
    hits_p: SupportsIndex,
    trials_p: SupportsIndex,
    hits_q: SupportsIndex,
    trials_q: SupportsIndex,
    *,
    confidence: float = 0.99,
    tried: SupportsIndex = 1,
) -> Bound:
    r"""Certify mu of Gaussian DP from how often an event happened on two inputs.

    .. math:: \mu \ge \Phi^{-1}(L_P) - \Phi^{-1}(U_Q)

    Parameters as in :func:`event_epsilon`.

    Examples
    --------
    >>> round(event_mu(841, 1000, 500, 1000).value, 3)
    0.771
    """
    low, high = _limits((hits_p, trials_p), (hits_q, trials_q), confidence, tried)
    value = attack_mu_bound(tpr=low, fpr=high)
    theorem = "Audit certificates, Theorem 3"
    return Bound(value, theorem, (*_TRIALS, _REPLACE), quantity="mu")


def odds_epsilon(
    first: SupportsIndex,
    second: SupportsIndex,
    *,
    confidence: float = 0.99,
    tried: SupportsIndex = 1,
) -> Bound:
    r"""Certify epsilon from which of two exclusive outcomes of a trial is commoner.

    .. math:: \varepsilon \ge \ln\frac{L}{1 - L}

    with L the lower limit of the share of the first outcome among both.

    Parameters
    ----------
    first, second : int
        How many trials ended in each.
    confidence : float, optional
        Probability that the limit is right.
    tried : int, optional
        Number of pairs of outcomes looked at before one was chosen.

    Returns
    -------
    Bound
        With the stated confidence epsilon is at least this; rounded down.

    Notes
    -----
    For trials of one law in which pure DP makes the first outcome at most
    :math:`e^\varepsilon` times as likely as the second: the pooled pairs of the page
    *Local audits*. One limit in place of two, hence sharper than
    :func:`event_epsilon`; it has no form for a positive delta.

    Examples
    --------
    >>> round(odds_epsilon(365_500, 134_500).value, 4)
    0.9923
    """
    k = check_count(first, "first", minimum=0)
    rest = check_count(second, "second", minimum=0)
    value = 0.0
    if k + rest:
        low = _lower(k, k + rest, _shared(confidence, tried), equal=True)
        value = _success_inverse(low, 2, 0.0)
    return Bound(value, "Local audits, Theorem 2", (*_TRIALS, _REPLACE))


def wrong_name(success: float, categories: int) -> float:
    """Return how often a value is named on another one, on average; rounded up.

    Examples
    --------
    >>> wrong_name(0.5, 6) >= 0.1
    True
    """
    return min(1.0, nudge_up(nudge_up(1.0 - success) / (categories - 1)))


def success_ceiling(
    trials: SupportsIndex, categories: SupportsIndex, *, confidence: float = 0.99
) -> float:
    r"""Return the largest epsilon that so many trials can certify.

    About :math:`\ln((m-1) n / \ln(1/\beta))`: all trials succeed.

    Examples
    --------
    >>> round(success_ceiling(10**6, 3052), 4)
    20.3116
    """
    n = check_count(trials, "trials")
    return success_epsilon(n, n, categories, confidence=confidence).value


def _read_categories(categories: SupportsIndex) -> int:
    return check_count(categories, "categories", minimum=2)


def _shared(confidence: float, parts: SupportsIndex) -> float:
    """Return the confidence of each of several limits that hold together."""
    level = check_probability(confidence, "confidence", open_interval=True)
    share = check_count(parts, "tried")
    # Rounded to the larger confidence, hence to the wider limits.
    return level if share == 1 else nudge_up(1.0 - (1.0 - level) / share)


def _lower(
    hits: SupportsIndex, trials: SupportsIndex, confidence: float, *, equal: bool
) -> float:
    return clopper_pearson(
        hits, trials, confidence=confidence, side="lower", equal=equal
    )[0]


def _limits(
    p: tuple[SupportsIndex, SupportsIndex],
    q: tuple[SupportsIndex, SupportsIndex],
    confidence: float,
    tried: SupportsIndex,
) -> tuple[float, float]:
    """Return the lower limit of the first rate and the upper limit of the second."""
    each = _shared(_shared(confidence, tried), 2)
    low = _lower(p[0], p[1], each, equal=True)
    return low, clopper_pearson(q[0], q[1], confidence=each, side="upper")[1]


def _success_inverse(success: float, m: int, delta: float) -> float:
    """Return the inverse of Corollary 5.16, rounded down, at least 0."""
    kept, left = Fraction(success) - Fraction(delta), 1 - Fraction(success)
    if kept * (m - 1) <= left or kept <= 0:
        return 0.0
    return max(0.0, log_down(kept * (m - 1) / left)) if left else math.inf


# Limits that may be looked at after every trial: confidence sequences.
#
# A fixed-sample limit is wrong too often if one stops when it looks good. Here the
# probability that any limit of the whole run is wrong is at most the error level, so an
# audit may stop as soon as the claim is refuted. Proofs: the page *Audit certificates*.

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
        pairs (:func:`~undertow.audit.certificate.odds_epsilon`), with pure claims.
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

        def reaches(n: int) -> bool:
            return proportion_sequence(n, n, confidence=self.confidence)[0] > limit

        return least_trials(reaches)


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


# What a claim allows, and which epsilon a rate would mean: populations, not samples.
#
# No confidence limit enters the inverses, so that they estimate and never certify.

# Covers the rounding of the incomplete beta function in a p-value.
_TAIL_MARGIN = 1e-9


def epsilon_from_success(
    success: float, categories: SupportsIndex, *, delta: float = 0.0
) -> float:
    r"""Return the epsilon at which a success rate is the largest possible.

    .. math:: \ln\frac{(s - \delta)(m - 1)}{1 - s}

    Parameters
    ----------
    success : float
        How often one of m equally likely values is named; a population value.
    categories : int
        The m; at least two.
    delta : float, optional
        At which epsilon is asked for.

    Returns
    -------
    float
        Signed: negative below the success of blind guessing, infinite at 1. An
        estimate, never a certificate.

    Notes
    -----
    Inverse of Corollary 5.16 (thesis, Equation 5.60) in terms of the success.

    Examples
    --------
    >>> round(epsilon_from_success(0.45, 10), 6)
    1.996554
    """
    s, m = check_probability(success, "success"), _read_categories(categories)
    kept = s - check_probability(delta, "delta")
    if s == 1.0:
        return math.inf if kept > 0 else -math.inf
    if kept <= 0:
        return -math.inf
    return math.log(kept) + math.log(m - 1) - math.log1p(-s)


def epsilon_from_advantage(
    advantage: float, categories: SupportsIndex, *, delta: float = 0.0
) -> float:
    r"""Return the epsilon at which an advantage is the largest possible.

    .. math:: \ln\frac{1 + (\gamma - \delta) m}{1 - \gamma m/(m-1)}

    Parameters
    ----------
    advantage : float
        The :math:`\gamma`, from -1/m to 1 - 1/m; a population value.
    categories : int
        The m; at least two.
    delta : float, optional
        At which epsilon is asked for.

    Returns
    -------
    float
        Signed; infinite where the formula is undefined, at total disclosure.

    Examples
    --------
    >>> round(epsilon_from_advantage(0.5, 10), 6)
    2.60269
    """
    m = _read_categories(categories)
    if not -1 / m <= advantage <= nudge_up(1 - 1 / m, 2):
        raise ValueError(
            f"advantage must be in [-1/m, 1 - 1/m] for m = {m}, got {advantage}."
        )
    lost = check_probability(delta, "delta")
    top, left = 1.0 + (advantage - lost) * m, 1.0 - advantage * m / (m - 1)
    if top <= 0:
        return -math.inf
    return math.log(top) - math.log(left) if left > 1e-15 else math.inf


def claim_p_value(
    claim: Claim,
    successes: SupportsIndex,
    trials: SupportsIndex,
    categories: SupportsIndex,
) -> float:
    """Return the largest probability, under a claim, of at least so many successes.

    Rounded up by a relative 1e-9; independent trials with uniform targets.

    Examples
    --------
    >>> f"{claim_p_value(Claim.pure(1), 450, 1000, 10):.1e}"
    '7.2e-52'
    """
    n = check_count(trials, "trials")
    k = check_count(successes, "successes", minimum=0)
    if k > n:
        raise ValueError(f"successes must be at most the {n} trials, got {k}.")
    limit = claim.success_limit(categories)
    tail = 1.0 if k == 0 else float(bdtrc(k - 1, n, limit))
    return min(1.0, tail * (1.0 + _TAIL_MARGIN))


def trials_needed(
    claim: Claim, categories: SupportsIndex, *, confidence: float = 0.99
) -> int:
    r"""Return the least number of trials that can refute a claim at all.

    .. math:: \lfloor \ln\beta / \ln s \rfloor + 1

    with s the largest success under the claim: fewer successes in a row, even without
    a failure, have a p-value above :math:`\beta`.

    Examples
    --------
    >>> trials_needed(Claim.pure(1), 10), trials_needed(Claim.pure(10), 2)
    (4, 101438)
    """
    tail = 1.0 - check_probability(confidence, "confidence", open_interval=True)
    limit = claim.success_limit(categories)
    if limit >= 1.0:
        raise ValueError(
            f"claim must leave room for a refutation by fewer than 10^12 trials, got "
            f"{claim}; no audit can refute it."
        )
    return math.floor(math.log(tail) / math.log(limit)) + 1

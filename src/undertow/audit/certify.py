r"""From counts to lower limits of the privacy parameter that hold with confidence.

Each function puts exact confidence limits of probabilities into an inequality that
every mechanism with the promise satisfies; what comes back is a number that the true
parameter exceeds, except with probability one minus the confidence. Proofs: the page
*Audit certificates*.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import SupportsIndex

from undertow._validate import check_count, check_probability
from undertow.audit._population import (
    claim_p_value,
    epsilon_from_advantage,
    epsilon_from_success,
    trials_needed,
)
from undertow.numeric.rounding import log_down, nudge_up
from undertow.privacy.result import Bound
from undertow.privacy.tradeoff import attack_epsilon_bound, attack_mu_bound
from undertow.risk.intervals import clopper_pearson

__all__ = [
    "claim_p_value",
    "epsilon_from_advantage",
    "epsilon_from_success",
    "event_epsilon",
    "event_mu",
    "odds_epsilon",
    "success_ceiling",
    "success_epsilon",
    "success_mu",
    "trials_needed",
    "wrong_name",
]

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

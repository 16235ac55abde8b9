r"""Confidence limits that hold for every sample size, rounded outwards.

Which one is valid depends on how the trials were drawn, not on how they look: counts of
independent trials (Clopper-Pearson), averages of independent bounded values (Hoeffding,
empirical Bernstein), or averages with unequal weights (weighted Hoeffding).
"""

from __future__ import annotations

import math
from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv

from undertow._validate import (
    check_choice,
    check_count,
    check_finite,
    check_positive,
    check_probability,
)
from undertow.errors import NotApplicable
from undertow.numeric.rounding import CLOSED_FORM, inflate, nudge_down, nudge_up

Side = Literal["two", "lower", "upper"]
"""Which limits share the error probability: both, or one of them."""

_SIDES = ("two", "lower", "upper")
# Largest tail for which unequal trials are no more spread than equal ones.
_TAIL = 0.25
# More trials than this lose the digits of the limits.
_MOST = 10**15


def clopper_pearson(
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    confidence: float = 0.95,
    side: Side = "two",
    equal: bool = True,
) -> tuple[float, float]:
    r"""Return exact limits of a success probability from a count.

    .. math:: L = B^{-1}(t;\, k,\, n - k + 1), \qquad
       U = B^{-1}(1 - t;\, k + 1,\, n - k)

    Parameters
    ----------
    successes, trials : int
        The count k, and the number n of independent trials.
    confidence : float, optional
        One minus the error probability :math:`\beta`.
    side : {"two", "lower", "upper"}, optional
        Two limits with :math:`t = \beta/2`, or one with :math:`t = \beta`; the other
        is then 0 or 1.
    equal : bool, optional
        Whether all trials have the same success probability. If not, the limits are for
        the mean of the probabilities.

    Returns
    -------
    tuple of float
        Lower and upper limit, rounded outwards.

    Raises
    ------
    NotApplicable
        If trials are unequal and the tail t exceeds 1/4.

    Notes
    -----
    Unequal trials: by [1]_ a sum of independent Bernoulli variables has lighter tails
    than the binomial of the same mean, at counts beyond the mean. By [2]_ a binomial
    tail of at most 1/4 lies beyond the mean if the mean is at least 1. Below, only a
    count of 1 can fail, and there the union bound :math:`P[S \ge 1] \le n \bar p` gives
    :math:`L = t/n`. Both ends are treated so, hence no condition on the mean is left;
    see the page on estimation. Not checkable: independence. Several runs of the same
    randomly drawn target are *not* independent trials of the average.

    References
    ----------
    .. [1] W. Hoeffding, *On the Distribution of the Number of Successes in Independent
       Trials*, Annals of Mathematical Statistics 27, 1956.
    .. [2] S. Greenberg, M. Mohri, *Tight Lower Bound on the Probability of a Binomial
       Exceeding its Expectation*, Statistics and Probability Letters 86, 2014.

    Examples
    --------
    >>> low, high = clopper_pearson(6945, 100_000)
    >>> round(low, 7), round(high, 7)
    (0.0678819, 0.0710432)
    """
    n = check_count(trials, "trials")
    k = check_count(successes, "successes", minimum=0)
    tail = _tail(confidence, side)
    if n > _MOST:
        raise ValueError(f"trials must be at most {_MOST:.0e}.")
    if k > n:
        raise ValueError(f"successes must be at most the {n} trials, got {k}.")
    if not equal and tail > _TAIL:
        raise NotApplicable(
            f"confidence must leave a tail of at most 1/4 for unequal trials, got "
            f"{tail}; raise it."
        )
    low = 0.0 if side == "upper" else _lower_limit(k, n, tail, equal)
    high = (
        1.0 if side == "lower" else nudge_up(1.0 - _lower_limit(n - k, n, tail, equal))
    )
    return low, min(1.0, high)


def hoeffding_halfwidth(
    trials: SupportsIndex,
    *,
    confidence: float = 0.95,
    span: float = 1.0,
    side: Side = "two",
) -> float:
    r"""Return how far an average of independent bounded values is from its mean.

    .. math:: s \sqrt{\ln(2/\beta) / (2n)}

    Parameters
    ----------
    trials : int
        Number n of independent values.
    confidence : float, optional
        One minus the error probability :math:`\beta`.
    span : float, optional
        Length s of an interval that holds every value: 1 for hits, 2 for differences.
    side : {"two", "lower", "upper"}, optional
        One limit alone has :math:`\ln(1/\beta)`.

    Returns
    -------
    float
        The half-width, rounded up.

    Examples
    --------
    >>> hoeffding_halfwidth(73_778, span=2.0) <= 0.01
    True
    """
    n, tail = check_count(trials, "trials"), _tail(confidence, side)
    return _up(check_positive(span, "span") * math.sqrt(-math.log(tail) / (2 * n)))


def hoeffding_trials(
    halfwidth: float,
    *,
    confidence: float = 0.95,
    span: float = 1.0,
    side: Side = "two",
) -> int:
    """Return the least number of trials with at most the given half-width.

    Parameters
    ----------
    halfwidth : float
        What :func:`hoeffding_halfwidth` may be at most; positive.
    confidence, span, side
        As in :func:`hoeffding_halfwidth`.

    Examples
    --------
    >>> hoeffding_trials(0.01, span=2.0)
    73778
    """
    width, tail = check_positive(halfwidth, "halfwidth"), _tail(confidence, side)
    ratio = check_positive(span, "span") / width
    # The half-width is rounded up, which the square of it must make up for.
    needed = inflate(-math.log(tail) * ratio * ratio / 2, 4 * CLOSED_FORM)
    if needed > _MOST:
        raise ValueError(
            f"halfwidth must need at most {_MOST:.0e} trials, got {needed:.1e}."
        )
    return max(1, math.ceil(needed))


def weighted_hoeffding_halfwidth(
    collision: float,
    runs: SupportsIndex,
    *,
    confidence: float = 0.95,
    span: float = 1.0,
    side: Side = "two",
) -> float:
    r"""Return the half-width for a weighted average of averages of J values each.

    .. math:: s \sqrt{\ln(2/\beta)\, \kappa / (2J)}, \qquad \kappa = \sum_x \pi_x^2

    Parameters
    ----------
    collision : float
        The sum of the squared weights, in (0, 1].
    runs : int
        Number J of independent values behind each weight.
    confidence, span, side
        As in :func:`hoeffding_halfwidth`.

    Returns
    -------
    float
        The half-width, rounded up. The sample is worth :math:`J/\kappa` equal trials,
        not one for every value drawn.

    Examples
    --------
    >>> skewed = 0.9**2 + 99 * (0.1 / 99) ** 2
    >>> round(weighted_hoeffding_halfwidth(skewed, 20, span=2.0), 4)
    0.5467
    """
    kappa, J = check_probability(collision, "collision"), check_count(runs, "runs")
    width = check_positive(span, "span") * math.sqrt(
        -math.log(_tail(confidence, side))
        * check_positive(kappa, "collision")
        / (2 * J)
    )
    return _up(width)


def empirical_bernstein(
    values: ArrayLike,
    *,
    confidence: float = 0.95,
    lowest: float = 0.0,
    highest: float = 1.0,
    side: Side = "two",
) -> tuple[float, float]:
    r"""Return limits of a mean from independent bounded values and their variance.

    .. math:: \bar v \pm \Big( \sqrt{\frac{2 \hat V \ln(4/\beta)}{n}} +
       \frac{7 s \ln(4/\beta)}{3 (n - 1)} \Big)

    Parameters
    ----------
    values : array_like of float
        At least two independent values of the same law.
    confidence : float, optional
        One minus the error probability :math:`\beta`.
    lowest, highest : float, optional
        An interval, of length s, that holds every possible value.
    side : {"two", "lower", "upper"}, optional
        One limit alone has :math:`\ln(2/\beta)`.

    Returns
    -------
    tuple of float
        Limits within ``[lowest, highest]``, rounded outwards.

    Raises
    ------
    ValueError
        If there are fewer than two values or one lies outside the interval.

    Notes
    -----
    Theorem 4 of [1]_, applied to the values and to their negatives. Not checkable:
    independence and a common law; weights and strata are not covered.

    References
    ----------
    .. [1] A. Maurer, M. Pontil, *Empirical Bernstein Bounds and Sample Variance
       Penalization*, COLT, 2009.

    Examples
    --------
    >>> low, high = empirical_bernstein([0.25, 0.75] * 500)
    >>> round(low, 4), round(high, 4)
    (0.4663, 0.5337)
    """
    drawn = np.asarray(values, dtype=np.float64)
    least, most = check_finite(lowest, "lowest"), check_finite(highest, "highest")
    span, tail = (
        check_positive(most - least, "highest - lowest"),
        _tail(confidence, side),
    )
    n = drawn.size
    if n < 2 or drawn.ndim != 1 or not (drawn.min() >= least and drawn.max() <= most):
        raise ValueError(
            f"values must be at least two numbers in [{least}, {most}], got {n} of "
            "them; widen the interval to all that is possible."
        )
    mean, spread, logs = (
        float(drawn.mean()),
        float(drawn.var(ddof=1)),
        math.log(2 / tail),
    )
    width = _up(math.sqrt(2 * spread * logs / n) + 7 * span * logs / (3 * (n - 1)))
    # The mean itself is rounded by less than the margin times the largest value.
    slack = width + CLOSED_FORM * max(abs(least), abs(most))
    low = least if side == "upper" else max(least, nudge_down(mean - slack))
    high = most if side == "lower" else min(most, nudge_up(mean + slack))
    return low, high


def _lower_limit(successes: int, trials: int, tail: float, equal: bool) -> float:
    """Return p with P[at least `successes`] at most `tail` under p, rounded down."""
    if successes == 0:
        return 0.0
    if successes == 1 and not equal:
        return nudge_down(tail / trials * (1.0 - CLOSED_FORM))
    first, second, margin = successes, trials - successes + 1, CLOSED_FORM
    start = float(betaincinv(first, second, tail))
    # The inverse is only approximate; step down until the law itself confirms it.
    low = start * (1.0 - margin)
    while float(betainc(first, second, low)) > tail * (1.0 - CLOSED_FORM):
        margin *= 2.0
        low = max(0.0, start * (1.0 - margin))
    return low


def _tail(confidence: float, side: str) -> float:
    beta = 1.0 - check_probability(confidence, "confidence", open_interval=True)
    check_choice(side, "side", choices=_SIDES)
    return beta / 2.0 if side == "two" else beta


def _up(value: float) -> float:
    return inflate(value, CLOSED_FORM)

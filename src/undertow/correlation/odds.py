"""What a leakage means: how far an attacker's odds can move."""

from __future__ import annotations

import math

from undertow._numeric import inflate, nudge_down
from undertow._validate import check_non_negative, check_probability
from undertow.correlation.result import Leakage

__all__ = ["posterior_odds_interval", "posterior_probability_interval"]

# Covers the rounding of the exponential and of the few operations around it.
_MARGIN = 1e-14


def posterior_odds_interval(
    prior_odds: float, leakage: float | Leakage
) -> tuple[float, float]:
    r"""Return how far the odds of one secret against another can move.

    .. math:: o\,e^{-B} \le o' \le o\,e^{B}

    Parameters
    ----------
    prior_odds : float
        The odds o before the release, given what the attacker knows; non-negative.
    leakage : float or Leakage
        The B; may be infinite.

    Returns
    -------
    tuple of float
        Least and greatest odds after the release, rounded outwards.

    Notes
    -----
    Equation 19 of [1]_: the leakage is the supremum of posterior minus prior log-odds.
    Odds of 0 and infinity stay: no release makes the impossible possible.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> low, high = posterior_odds_interval(1.0, 1.0)
    >>> round(low, 6), round(high, 6)
    (0.367879, 2.718282)
    """
    odds, bound = check_non_negative(prior_odds, "prior_odds"), _read(leakage)
    if odds in (0.0, math.inf):
        return odds, odds
    # The product is split, so that tiny odds and large leakages do not overflow.
    low, high = math.log(odds) - bound, math.log(odds) + bound
    slack = _MARGIN * (1 + abs(math.log(odds)) + (bound if bound < math.inf else 0))
    return _exp(low - slack), _exp(high + slack)


def posterior_probability_interval(
    prior: float, leakage: float | Leakage
) -> tuple[float, float]:
    r"""Return how far the probability of one of two secrets can move.

    .. math:: \frac{p}{p + (1-p)e^{B}} \le p' \le \frac{p}{p + (1-p)e^{-B}}

    Parameters
    ----------
    prior : float
        Probability p of the secret before the release, against one other; in [0, 1].
    leakage : float or Leakage
        The B; may be infinite.

    Returns
    -------
    tuple of float
        Least and greatest probability after the release, rounded outwards.

    Notes
    -----
    :func:`posterior_odds_interval` at odds :math:`p/(1-p)`. With more than two possible
    secrets it holds for the conditional probability given that it is one of the two. A
    leakage of 8, common in plots of the literature, moves even odds to 0.9997: it says
    next to nothing.

    Examples
    --------
    >>> low, high = posterior_probability_interval(0.5, 1.0)
    >>> round(low, 6), round(high, 6)
    (0.268941, 0.731059)
    """
    p, bound = check_probability(prior, "prior"), _read(leakage)
    if p in (0.0, 1.0):
        return p, p
    low = p / (p + (1 - p) * _exp(bound))
    high = p / (p + (1 - p) * _exp(-bound))
    slack = 4 * _MARGIN
    return max(0.0, nudge_down(low * (1 - slack))), min(1.0, inflate(high, slack))


def _read(leakage: float | Leakage) -> float:
    if isinstance(leakage, Leakage):
        return leakage.value
    return check_non_negative(leakage, "leakage")


def _exp(exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf

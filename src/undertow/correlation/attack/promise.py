"""What a promised leakage means to an attacker: advantage and error trade-off."""

from __future__ import annotations

import math

from undertow._numeric import nudge_down, nudge_up
from undertow._validate import check_non_negative, check_probability
from undertow.privacy import PureTradeOff

__all__ = [
    "leakage_advantage",
    "leakage_for_advantage",
    "leakage_tradeoff",
]

_ULPS = 4


def leakage_advantage(leakage: float) -> float:
    r"""Bound the advantage of any inference attack under a leakage.

    .. math:: \mathrm{TPR} - \mathrm{FPR} \le \tanh(B/2)

    Notes
    -----
    The trade-off region of B-indistinguishable laws; attained by randomized response.
    Rounded up.

    Examples
    --------
    >>> round(leakage_advantage(1.7761366), 6)
    0.710438
    """
    leakage = check_non_negative(leakage, "leakage")
    value = math.tanh(leakage / 2)
    return min(1.0, nudge_up(value, _ULPS)) if value > 0 else 0.0


def leakage_for_advantage(advantage: float) -> float:
    r"""Return the leakage :math:`\ln\frac{1+A}{1-A}` that keeps attacks within `A`.

    Examples
    --------
    >>> round(leakage_for_advantage(0.5), 7)
    1.0986123
    """
    advantage = check_probability(advantage, "advantage")
    if advantage == 1:
        return math.inf
    value = 2 * math.atanh(advantage)
    return nudge_down(value, _ULPS) if value > 0 else 0.0


def leakage_tradeoff(leakage: float) -> PureTradeOff:
    r"""Return the least error trade-off of any attack under a leakage.

    .. math:: \beta(\alpha) \ge \max\{0,\ 1 - e^{B}\alpha,\ e^{-B}(1-\alpha)\}

    Notes
    -----
    The talk behind chapter 6 of the thesis prints :math:`e^{B}(1-\alpha)` for the last
    term; the sign of the exponent is corrected here. Under mere DP with correlated
    unknown records the two errors average over different laws, and the DP level in
    place of B would be wrong.

    Examples
    --------
    >>> round(float(leakage_tradeoff(1.0)(0.1)), 6)
    0.728172
    """
    return PureTradeOff(check_non_negative(leakage, "leakage"))

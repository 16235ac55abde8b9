"""What an attack with known error rates says about a trade-off function."""

from __future__ import annotations

import math

from scipy.special import ndtri

from undertow._numeric import nudge_down
from undertow._validate import check_probability
from undertow.privacy.tradeoff_base import TradeOff

__all__ = ["attack_epsilon_bound", "attack_mu_bound", "refutes"]

_TOLERANCE = 1e-12
# Lowers bounds read from an attack, by several times their rounding errors.
_SLACK = 2.0**-47


def refutes(f: TradeOff, *, tpr: float, fpr: float) -> bool:
    """Return whether an attack with these exact rates disproves `f`-DP.

    Parameters
    ----------
    f : TradeOff
        The claim.
    tpr, fpr : float
        True and false positive rate of the attack; population values, so that sampled
        ones must first be replaced by confidence limits.

    Notes
    -----
    Any test has TPR at most 1 - f(FPR); an excess below 1e-12 is not counted.

    Examples
    --------
    >>> from undertow.privacy.tradeoff import GaussianTradeOff
    >>> refutes(GaussianTradeOff(1.0), tpr=0.5, fpr=0.1)
    True
    """
    tpr, fpr = check_probability(tpr, "tpr"), check_probability(fpr, "fpr")
    return tpr > 1.0 - float(f(fpr)) + _TOLERANCE


def attack_epsilon_bound(*, tpr: float, fpr: float, delta: float = 0.0) -> float:
    r"""Return the least epsilon compatible with an attack, rounded down.

    Notes
    -----
    :math:`\varepsilon \ge \ln((\mathrm{TPR}-\delta)/\mathrm{FPR})`, and the same for
    the complementary test, :math:`\ln((1-\mathrm{FPR}-\delta)/(1-\mathrm{TPR}))`.

    Examples
    --------
    >>> round(attack_epsilon_bound(tpr=0.5, fpr=0.1), 12)
    1.609437912434
    """
    tpr, fpr = check_probability(tpr, "tpr"), check_probability(fpr, "fpr")
    delta = check_probability(delta, "delta")
    kept = math.fsum((1.0, -fpr, -delta))  # rounded once, however small
    return max(_log_ratio(tpr - delta, fpr), _log_ratio(kept, 1.0 - tpr))


def attack_mu_bound(*, tpr: float, fpr: float) -> float:
    r"""Return the least mu compatible with an attack, rounded down.

    Notes
    -----
    :math:`\mu \ge \Phi^{-1}(\mathrm{TPR}) - \Phi^{-1}(\mathrm{FPR})`.

    Examples
    --------
    >>> round(attack_mu_bound(tpr=0.5, fpr=0.1), 12)
    1.281551565545
    """
    tpr, fpr = check_probability(tpr, "tpr"), check_probability(fpr, "fpr")
    if tpr <= fpr:
        return 0.0
    upper, lower = float(ndtri(tpr)), float(ndtri(fpr))
    slack = _SLACK * (1.0 + abs(upper) + abs(lower))
    if math.isinf(slack):
        return math.inf
    return max(0.0, upper - lower - slack)


def _log_ratio(numerator: float, denominator: float) -> float:
    if numerator <= denominator:
        return 0.0
    if denominator == 0:
        return math.inf
    return max(0.0, nudge_down(math.log(numerator / denominator) - _SLACK))

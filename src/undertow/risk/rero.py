r"""Reconstruction robustness: the success of the best attacker who knows nothing.

Robustness (ReRo) is a probability of success, not a risk: it counts lucky guesses and
public knowledge as leakage. It is defined without auxiliary knowledge, and the bounds
on it fail with any.
"""

from __future__ import annotations

from typing import Any

from undertow._validate import check_probability
from undertow.errors import AssumptionError
from undertow.risk._finite import Risk
from undertow.risk.exact import success_rate
from undertow.risk.threat import Threat

__all__ = [
    "advantage_range",
    "is_reconstruction_robust",
    "reconstruction_robustness",
    "require_no_knowledge",
]

# Covers the rounding of the two baselines.
_MARGIN = 1e-12


def require_no_knowledge(threat: Threat, statement: str) -> None:
    """Refuse a threat with auxiliary knowledge, for statements that fail with any.

    Parameters
    ----------
    threat : Threat
        The threat.
    statement : str
        What is asked for, as it should read in the message.

    Raises
    ------
    AssumptionError
        If what is known varies over the possible targets.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> require_no_knowledge(Threat(Prior.uniform(2)), "Theorem 5.11")
    """
    if threat.has_knowledge:
        raise AssumptionError(
            f"{statement} must have an attacker without auxiliary knowledge, got one "
            f"who knows {threat.knowledge.summary}; use the exact advantage or the "
            "bound by total variation, which hold with any."
        )


def reconstruction_robustness(source: Any, threat: Threat) -> Risk:
    r"""Compute the least level at which a finite channel is reconstruction robust.

    .. math:: \gamma^* = \sum_\theta \max_{g} \sum_{x :\, \ell(g, x) \le \eta}
       \pi_x \, p(\theta \mid x)

    Parameters
    ----------
    source : Channel, ChannelStream or mechanism with finitely many outputs
        The law of the output for each record.
    threat : Threat
        Prior and success rule, without knowledge.

    Returns
    -------
    Risk
        The exact level, raised by a bound on its rounding; its `baseline` is
        :math:`\kappa^+`, the level of a mechanism that says nothing.

    Raises
    ------
    AssumptionError
        If the threat has auxiliary knowledge; :func:`~undertow.risk.exact.success_rate`
        is the extension to it, to which no bound on robustness applies.

    Notes
    -----
    Definition 2.18 of [1]_; that the value is the Bayes vulnerability of the channel is
    proved on the theory page. Not checkable: independent records, a public prior.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.channel import Channel
    >>> from undertow.risk.prior import Prior
    >>> P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> level = reconstruction_robustness(P, Threat(Prior(3, [0.5, 0.3, 0.2])))
    >>> round(level.value, 9), round(level.baseline, 9)
    (0.59, 0.5)
    """
    require_no_knowledge(threat, "reconstruction robustness (Definition 2.18)")
    return success_rate(source, threat)


def is_reconstruction_robust(source: Any, threat: Threat, *, gamma: float) -> bool:
    """Say whether no attack without knowledge succeeds more often than `gamma`.

    True is proved: the level compared is rounded up.
    """
    level = check_probability(gamma, "gamma")
    return reconstruction_robustness(source, threat).value <= level


def advantage_range(success: float, threat: Threat) -> tuple[float, float]:
    r"""Return what the success of an attack says of its advantage, without knowledge.

    .. math:: \mathrm{Succ}(A) - \kappa^+ \le \mathrm{RAD}(A) \le
       \mathrm{Succ}(A) - \kappa^-

    Parameters
    ----------
    success : float
        Probability that the attack succeeds on a target that took part.
    threat : Threat
        Prior and success rule, without knowledge.

    Returns
    -------
    low, high : float
        Rounded outwards, and within :math:`\pm(1 - \kappa_\pi)`.

    Notes
    -----
    Proved on the theory page: without knowledge, the correction is the mean prior mass
    of the sets that the attack hits. Under a uniform prior with exact success both ends
    agree, and the advantage is the success less 1/m.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> low, high = advantage_range(0.35, Threat(Prior.uniform(10)))
    >>> round(low, 9), round(high, 9)
    (0.25, 0.25)
    """
    rate = check_probability(success, "success")
    require_no_knowledge(threat, "the range of the advantage")
    low, high = rate - threat.best_guess - _MARGIN, rate - threat.worst_guess + _MARGIN
    return max(low, -threat.ceiling), min(high, threat.ceiling)

r"""Published statements without a proof: for plots and comparison, never a guarantee.

A `Conjecture` is not a `Bound`: no function that takes or returns guarantees accepts
it, and it carries what is known of its truth.

References
----------
.. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
   thesis, KIT, 2025.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.privacy import Loss, TradeOff, to_plain
from undertow.risk.bounds._curve import gain
from undertow.risk.bounds._parts import PriorLike, law, parameters
from undertow.risk.bounds.approximate import region_capacity
from undertow.risk.bounds.knapsack import pair_knapsack
from undertow.risk.bounds.published import mechanism_curve, uniform_interval

__all__ = ["Conjecture", "black_box_conjecture", "curve_conjecture"]

_BLACK_BOX = (
    "numerically validated, not proved: no violation by the worst mechanism, a linear "
    "program, on 21,000 random and adversarial instances"
)
_CURVE = (
    "numerically validated, not proved: no violation by the best attack on 38,000 "
    "random channels"
)
_FALSE = (
    "false: with the denominator as printed the worst mechanism exceeds it on about "
    "half of 400 random instances"
)


@dataclass(frozen=True, slots=True)
class Conjecture:
    """A published number that nobody has proved; not a guarantee.

    Parameters
    ----------
    value : float
        What the statement claims.
    statement : str
        Where it is stated, and in which form.
    evidence : str
        What is known of its truth.
    refuted : bool
        Whether a counterexample is known.
    """

    value: float
    statement: str
    evidence: str
    refuted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        names = ("value", "statement", "evidence", "refuted")
        return {name: to_plain(getattr(self, name)) for name in names}


def black_box_conjecture(
    loss: Loss, prior: PriorLike, *, printed: bool = False
) -> Conjecture:
    r"""Evaluate Sauer's Theorem 7 for naming the exact record, a conjecture.

    .. math:: A = \frac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}, \qquad
       \Gamma = m(m-1)\,\frac{e^\varepsilon - 1 + m\delta}{e^\varepsilon + m - 1}

    in the knapsack over pairs, :func:`~undertow.risk.bounds.knapsack.pair_knapsack`.

    Parameters
    ----------
    loss : Pure or Approx
        The guarantee for replacing a record.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records, in any order.
    printed : bool, optional
        True for the capacity with the denominator :math:`e^\varepsilon + 2` of the
        print, which is refuted.

    Returns
    -------
    Conjecture
        Not a guarantee; at most :math:`1 - \kappa`.

    Raises
    ------
    AssumptionError
        For a loss that is neither pure nor approximate.

    Notes
    -----
    Theorem 7 of [1]_ with the denominator corrected. Its argument drops pairs on which
    the attack gains less than nothing, which occur for optimal attacks. Use
    :func:`~undertow.risk.bounds.exact_guess_bound` (thesis, Theorem 5.15), which is
    proved and usually smaller.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.privacy import Pure
    >>> claim = black_box_conjecture(Pure(math.log(4)), [0.5, 0.3, 0.2])
    >>> round(claim.value, 9), claim.refuted
    (0.336, False)
    """
    epsilon, delta = parameters(loss)
    masses = law(prior)
    m, decay = len(masses), math.exp(-epsilon)
    last = 2.0 if printed else 1.0
    top = -math.expm1(-epsilon) + 2.0 * delta * decay
    capacity = min(1.0, top / (1.0 + last * decay))
    total = m * region_capacity(loss, m)
    value = _within(pair_knapsack(masses, capacity=capacity, total=total), masses)
    if printed:
        return Conjecture(value, "Sauer, Theorem 7 as printed", _FALSE, refuted=True)
    return Conjecture(value, "Sauer, Theorem 7, corrected", _BLACK_BOX)


def curve_conjecture(
    guarantee: Loss | TradeOff, prior: PriorLike, *, loss: Loss | None = None
) -> Conjecture:
    r"""Evaluate Sauer's Theorem 8 for naming the exact record, a conjecture.

    .. math:: A = \mathrm{TV}, \qquad \Gamma = m(m-1) \max_{\alpha \in [a, b]}
       1 - f(\alpha) - \alpha

    in the knapsack over pairs, with the interval of
    :func:`~undertow.risk.bounds.published.uniform_interval`.

    Parameters
    ----------
    guarantee : GDP or TradeOff
        The trade-off function of the mechanism itself, in both orders.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records, in any order.
    loss : Pure or Approx, optional
        A guarantee the mechanism has besides, which narrows the interval.

    Returns
    -------
    Conjecture
        Not a guarantee; at most :math:`1 - \kappa`.

    Raises
    ------
    AssumptionError
        For the generic function of :math:`(\varepsilon, \delta)`-DP, where
        :func:`black_box_conjecture` is smaller.

    Notes
    -----
    Theorem 8 of [1]_, whose upper end prints a minus sign where Lemma 3 has a plus.
    Proved instead: :func:`~undertow.risk.bounds.exact_guess_bound` and
    :func:`~undertow.risk.bounds.tradeoff_bound`.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> claim = curve_conjecture(GDP(1), [0.5, 0.3, 0.2])
    >>> round(claim.value, 6)
    0.237413
    """
    f = mechanism_curve(guarantee)
    masses = law(prior)
    m = len(masses)
    low, high = uniform_interval(m, loss=loss)
    total = m * (m - 1) * gain(f, low=low, high=high)
    value = pair_knapsack(masses, capacity=f.total_variation(), total=total)
    statement = "Sauer, Theorem 8, corrected"
    return Conjecture(_within(value, masses), statement, _CURVE)


def _within(value: float, masses: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Cut a value at the chance that two draws differ."""
    return min(value, math.fsum((masses * (1.0 - masses)).tolist()))

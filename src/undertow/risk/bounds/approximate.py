r"""Bounds from :math:`(\varepsilon, \delta)`-DP for an attacker who knows nothing.

Any success rule: Proposition 5.13. The exact record among finitely many: Lemma 5.14,
Theorem 5.15 and, for a uniform prior, Corollary 5.16.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math

import numpy as np

from undertow._arrays import complements
from undertow._arrays import disagreement as spread_of
from undertow._numeric import expm1_up, inflate
from undertow._validate import check_probability
from undertow.privacy import Bound, Loss, TradeOff, total_variation
from undertow.privacy.variation import loss_tradeoff
from undertow.risk.bounds._curve import capacity
from undertow.risk.bounds._parts import (
    BLIND,
    MARGIN,
    PriorLike,
    advantage,
    capped,
    disagreement,
    law,
    parameters,
    read_size,
    uniform_disagreement,
)

__all__ = [
    "baseline_bound",
    "exact_guess_bound",
    "region_capacity",
    "uniform_guess_bound",
]

_EXACT = (*BLIND, "only the exact record counts")


def baseline_bound(
    loss: Loss,
    *,
    best_guess: float,
    worst_guess: float = 0.0,
    collision: float = 0.0,
    sharpen: bool = True,
) -> Bound:
    r"""Bound the advantage of an attacker without knowledge, for any success rule.

    .. math:: \mathrm{RAD} \le \min\Bigl\{
       \kappa^+ (e^\varepsilon - 1) + (1-\kappa)\delta, \;
       (1-\kappa^-)(1 - e^{-\varepsilon}) + \delta e^{-\varepsilon}, \;
       \tfrac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}(1-\kappa)\Bigr\}

    Parameters
    ----------
    loss : Pure or Approx
        The guarantee for replacing a record.
    best_guess : float
        Success :math:`\kappa^+` of the best guess without looking, over all guesses.
    worst_guess : float, optional
        Success :math:`\kappa^-` of the worst; 0 if the attacker may decline to answer.
    collision : float, optional
        The collision probability of the prior; 0 for a continuous one.
    sharpen : bool, optional
        False for the first term as printed, with :math:`\delta` whole.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Raises
    ------
    AssumptionError
        For a loss that is neither pure nor approximate.

    Notes
    -----
    Proposition 5.13 of [1]_; :math:`\delta` in the first term is sharpened to
    :math:`(1-\kappa)\delta`, which Theorem 5.11(b) gives. Not checkable: that nothing
    is known of the target.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.privacy import Approx
    >>> loss, baselines = Approx(2, "1e-5"), dict(best_guess=0.1, worst_guess=0.1)
    >>> round(baseline_bound(loss, **baselines, collision=0.1).value, 6)
    0.638915
    """
    epsilon, delta = parameters(loss)
    high = check_probability(best_guess, "best_guess")
    low = check_probability(worst_guess, "worst_guess")
    if low > high:
        raise ValueError(
            f"worst_guess must be at most best_guess = {best_guess}, got {worst_guess}."
        )
    spread = disagreement(collision)
    lost = spread * delta if sharpen else delta
    rising = (expm1_up(epsilon) * high if high > 0 else 0.0) + lost
    falling = -math.expm1(-epsilon) * (1.0 - low) + delta * math.exp(-epsilon)
    value = min(rising, falling, total_variation(loss) * spread)
    return advantage(capped(value, spread), "Proposition 5.13", unchecked=BLIND)


def region_capacity(guarantee: Loss | TradeOff, size: int) -> float:
    r"""Bound the total gain over the regions of an attack that names one of m records.

    .. math:: \sum_x \Pr[\Theta_x \mid x] - \Pr[\Theta_x] \le
       \Gamma = \frac{(m-1)(e^\varepsilon - 1 + \delta m)}{e^\varepsilon + m - 1}

    Parameters
    ----------
    guarantee : Pure, Approx, GDP or TradeOff
        For another guarantee than :math:`(\varepsilon, \delta)` the least value along
        its privacy curve.
    size : int
        Number m of records; at least 1.

    Returns
    -------
    float
        Rounded up, at most :math:`m - 1`.

    Notes
    -----
    Lemma 5.14 of Guerra-Balboa (2026).

    Examples
    --------
    >>> from undertow.privacy import Pure
    >>> round(region_capacity(Pure(1), 4), 6)
    0.901468
    """
    m = read_size(size)
    f = guarantee if isinstance(guarantee, TradeOff) else loss_tradeoff(guarantee)
    return min(float(m - 1), inflate(capacity(f, m), MARGIN))


def exact_guess_bound(guarantee: Loss | TradeOff, prior: PriorLike) -> Bound:
    r"""Bound the chance to name the record, beyond luck, for any finite prior.

    .. math:: \mathrm{RAD} \le \max\Bigl\{\textstyle\sum_x \pi_x \gamma_x :
       0 \le \gamma_x \le \mathrm{TV}\,(1-\pi_x), \; \sum_x \gamma_x \le \Gamma\Bigr\}

    Parameters
    ----------
    guarantee : Pure, Approx, GDP or TradeOff
        What the mechanism promises for neighbours in both orders.
    prior : Prior or array_like of shape (m,)
        Probabilities of the records, in any order.

    Returns
    -------
    Bound
        On the advantage, rounded up. Time of order :math:`m \log m`.

    Notes
    -----
    Theorem 5.15 of Guerra-Balboa (2026): the maximum is a fractional knapsack, filled
    in the order of falling :math:`\pi_x`. It is evaluated in the dual form
    :math:`\lambda\Gamma + \mathrm{TV}\sum_x (1-\pi_x)(\pi_x - \lambda)_+`, valid for
    every :math:`\lambda \ge 0`. Records of probability 0 are dropped first, which makes
    :math:`\Gamma` smaller. Never above Theorem 5.2; where :math:`\delta m` is large and
    the prior skew, Proposition 5.13 can be smaller. Not checkable: exact success, no
    knowledge.

    Examples
    --------
    >>> from undertow.privacy import Pure
    >>> round(exact_guess_bound(Pure(1), [0.4, 0.3, 0.2, 0.1]).value, 9)
    0.268095769
    """
    masses = law(prior)
    pi = np.sort(masses[masses > 0])[::-1]
    room = region_capacity(guarantee, len(pi))
    if isinstance(guarantee, TradeOff):
        total = guarantee.total_variation()
    else:
        total = total_variation(guarantee)
    sizes = total * complements(pi)
    full = int(np.searchsorted(np.cumsum(sizes), room, side="right"))
    price = float(pi[full]) if full < len(pi) else 0.0
    paid = sizes * np.maximum(0.0, pi - price)
    value = price * room + math.fsum(paid.tolist())
    ceiling = inflate(spread_of(pi), MARGIN)
    return advantage(capped(value, ceiling), "Theorem 5.15", unchecked=_EXACT)


def uniform_guess_bound(loss: Loss, size: int) -> Bound:
    r"""Bound the chance to name one of m equally likely records, beyond luck.

    .. math:: \mathrm{RAD} \le \frac{m-1}{m} \cdot
       \frac{e^\varepsilon - 1 + \delta m}{e^\varepsilon + m - 1}

    Parameters
    ----------
    loss : Pure or Approx
        The guarantee for replacing a record.
    size : int
        Number m of records; at least 1.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Raises
    ------
    AssumptionError
        For a loss that is neither pure nor approximate.

    Notes
    -----
    Corollary 5.16 of Guerra-Balboa (2026); attained by randomized response for pure DP.
    Not checkable: exact success, a uniform prior, no knowledge.

    Examples
    --------
    >>> from undertow.privacy import Approx
    >>> round(uniform_guess_bound(Approx(1, "1e-5"), 10).value, 9)
    0.131976997
    """
    epsilon, delta = parameters(loss)
    m = read_size(size)
    decay = math.exp(-epsilon)
    top = -math.expm1(-epsilon) + delta * m * decay
    value = (m - 1) / m * (top / (1.0 + (m - 1) * decay))
    value = capped(value, uniform_disagreement(m))
    unchecked = (*_EXACT, "the prior is uniform")
    tight = True if delta == 0 else None
    return advantage(value, "Corollary 5.16", unchecked=unchecked, tight=tight)

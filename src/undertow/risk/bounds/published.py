r"""Earlier published bounds in corrected form: superseded ones, and the uniform curve.

Sauer's Theorems 4 and 5 are kept for comparison: as printed they lack a delta and are
false, as corrected they hold and are never smaller than Theorem 5.2 and Proposition
5.13 of the thesis. Corollary 2 is the uniform bound from a mechanism's own trade-off
function, on the interval of Lemma 3.

References
----------
.. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
   thesis, KIT, 2025.
.. [2] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import expm1_up, inflate, nudge_down, nudge_up
from undertow._validate import check_choice, check_count, check_probability
from undertow.errors import AssumptionError
from undertow.privacy import ApproxTradeOff, Bound, Loss, TradeOff
from undertow.privacy.variation import loss_tradeoff, total_variation
from undertow.risk.bounds._curve import gain
from undertow.risk.bounds._parts import (
    BLIND,
    MARGIN,
    advantage,
    capped,
    disagreement,
    parameters,
    uniform_disagreement,
)
from undertow.risk.bounds.approximate import uniform_guess_bound

__all__ = [
    "mechanism_curve",
    "superseded_bound",
    "symmetrised_channel",
    "uniform_interval",
    "uniform_interval_bound",
]

Statement = Literal["theorem-4", "theorem-5"]

_SUPERSEDED = (
    "superseded: Theorem 5.2 and Proposition 5.13 of the thesis are never larger"
)
_TOLERANCE = 1e-9


def superseded_bound(
    loss: Loss,
    *,
    size: int,
    best_guess: float,
    worst_guess: float = 0.0,
    collision: float = 0.0,
    statement: Statement = "theorem-5",
    clip: bool = True,
) -> Bound:
    r"""Evaluate an earlier bound on the advantage, corrected; for comparison.

    .. math:: \min\Bigl\{\kappa^+(e^\varepsilon - 1) + \delta m, \;
       \tfrac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}\Bigr\}, \qquad
       \min\Bigl\{\kappa^+(e^\varepsilon - 1) + \delta m, \;
       \kappa^+(m-1)\tfrac{e^\varepsilon - 1 + 2\delta}{e^\varepsilon + 1}
       + \kappa^+ - \kappa^-\Bigr\}

    Parameters
    ----------
    loss : Pure or Approx
        The guarantee for replacing a record.
    size : int
        Number m of records; at least 1.
    best_guess, worst_guess : float
        Success :math:`\kappa^+`, :math:`\kappa^-` of the best and the worst guess
        without looking.
    collision : float, optional
        The collision probability of the prior; the bound is cut at 1 minus it.
    statement : {"theorem-4", "theorem-5"}
        The first formula, or the second, which is about the exact record only.
    clip : bool, optional
        False for the formula as it stands, which may exceed 1.

    Returns
    -------
    Bound
        On the advantage of an attacker without knowledge, rounded up.

    Raises
    ------
    AssumptionError
        For a loss that is neither pure nor approximate.

    Notes
    -----
    Theorems 4 and 5 of [1]_ with :math:`2\delta` added, without which both are false;
    proved on the page "Published risk bounds". Not checkable: no knowledge; exact
    success for Theorem 5.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.privacy import Approx
    >>> flat = dict(size=100, best_guess=0.01, worst_guess=0.01)
    >>> round(superseded_bound(Approx(1, "1e-5"), **flat).value, 10)
    0.0181828183
    """
    check_choice(statement, "statement", choices=("theorem-4", "theorem-5"))
    epsilon, delta = parameters(loss)
    m = check_count(size, "size")
    high = check_probability(best_guess, "best_guess")
    low = check_probability(worst_guess, "worst_guess")
    if low > high:
        raise ValueError(
            f"worst_guess must be at most best_guess = {best_guess}, got {worst_guess}."
        )
    second = total_variation(loss)
    unchecked: tuple[str, ...] = (*BLIND, _SUPERSEDED)
    if statement == "theorem-5":
        second = high * (m - 1) * second + (high - low)
        unchecked = (*unchecked, "only the exact record counts")
    first = (expm1_up(epsilon) * high if high > 0 else 0.0) + delta * m
    value = inflate(min(first, second), MARGIN)
    value = min(value, disagreement(collision)) if clip else value
    name = f"Sauer, Theorem {statement[-1]}, corrected"
    return advantage(value, name, unchecked=unchecked)


def uniform_interval(size: int, *, loss: Loss | None = None) -> tuple[float, float]:
    r"""Return where the false-positive rate of a symmetric attack can lie.

    .. math:: a = \frac{1-\delta}{m - 1 + e^\varepsilon}, \qquad
       b = \min\Bigl\{\frac{1 + \delta e^{-\varepsilon}}{m - 1 + e^{-\varepsilon}},
       \frac{1}{m-1}\Bigr\}

    Parameters
    ----------
    size : int
        Number m of equally likely records; at least 2.
    loss : Pure or Approx, optional
        What is known of the mechanism; without it the interval is
        :math:`[0, 1/(m-1)]`.

    Returns
    -------
    tuple of float
        The ends, rounded outwards and cut at 1.

    Notes
    -----
    Lemma 3 of Sauer (2025); Theorem 8 there prints :math:`1 - \delta e^{-\varepsilon}`
    for the numerator of b, and its proof moves a 1 out of the denominator. Proved on
    the page "Published risk bounds".

    Examples
    --------
    >>> from undertow.privacy import Pure
    >>> low, high = uniform_interval(4, loss=Pure(math.log(3)))
    >>> round(low, 12), round(high, 12)
    (0.166666666667, 0.3)
    """
    m = check_count(size, "size", minimum=2)
    widest = 1.0 if m == 2 else nudge_up(1.0 / (m - 1))
    if loss is None:
        return 0.0, widest
    epsilon, delta = parameters(loss)
    decay = math.exp(-epsilon)
    low = (1.0 - delta) * decay / (1.0 + (m - 1) * decay)
    high = (1.0 + delta * decay) / (m - 1 + decay)
    return max(0.0, nudge_down(low, 8)), min(widest, nudge_up(high, 8))


def uniform_interval_bound(
    guarantee: Loss | TradeOff, size: int, *, loss: Loss | None = None
) -> Bound:
    r"""Bound the chance to name one of m equally likely records by the mechanism's f.

    .. math:: \mathrm{RAD} \le \frac{m-1}{m} \max_{\alpha \in [a, b]}
       1 - f(\alpha) - \alpha

    Parameters
    ----------
    guarantee : GDP or TradeOff
        The trade-off function of the mechanism itself, in both orders.
    size : int
        Number m of equally likely records; at least 2.
    loss : Pure or Approx, optional
        A guarantee the mechanism has besides. It narrows the interval of
        :func:`uniform_interval`, and Corollary 5.16 is taken where it is smaller.

    Returns
    -------
    Bound
        On the advantage of an attacker without knowledge, rounded up.

    Raises
    ------
    AssumptionError
        For the generic function of :math:`(\varepsilon, \delta)`-DP, for which the
        interval may hold the peak and Corollary 5.16 is smaller.

    Notes
    -----
    Corollary 2 of [1]_, proved on the page "Published risk bounds".
    :func:`~undertow.risk.bounds.uniform_tradeoff_bound` is never larger without
    `loss`.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> round(uniform_interval_bound(GDP(1), 8).value, 10)
    0.2889307901
    """
    f, m = mechanism_curve(guarantee), check_count(size, "size", minimum=2)
    low, high = uniform_interval(m, loss=loss)
    spread = uniform_disagreement(m)
    value = capped(spread * gain(f, low=low, high=high), spread)
    unchecked = (*BLIND, "the prior is uniform", "only the exact record counts")
    plain = advantage(value, "Sauer, Corollary 2", unchecked=unchecked)
    if loss is None:
        return plain
    generic = uniform_guess_bound(loss, m)
    return plain if plain.value <= generic.value else generic


def symmetrised_channel(channel: ArrayLike) -> NDArray[np.float64]:
    r"""Return a channel averaged over all simultaneous relabellings of its records.

    Parameters
    ----------
    channel : array_like of shape (m, m)
        Row-stochastic: the chance of each guess for each record.

    Returns
    -------
    ndarray of shape (m, m)
        :math:`p = \operatorname{tr} C / m` on the diagonal, :math:`(1-p)/(m-1)`
        elsewhere.

    Raises
    ------
    ValueError
        If the channel is not square and row-stochastic.

    Notes
    -----
    Lemma 2 of Sauer (2025): the average keeps the trace, hence the success under a
    uniform prior, and every :math:`(\varepsilon, \delta)` or f guarantee.

    Examples
    --------
    >>> symmetrised_channel([[0.8, 0.2], [0.4, 0.6]]).round(12).tolist()
    [[0.7, 0.3], [0.3, 0.7]]
    """
    C = np.asarray(channel, dtype=np.float64)
    if C.ndim != 2 or C.shape[0] != C.shape[1] or len(C) < 2:
        raise ValueError(
            f"channel must be square with at least 2 records, got shape {C.shape}."
        )
    if not (np.all(C >= 0) and np.all(np.abs(C.sum(axis=1) - 1.0) <= _TOLERANCE)):
        raise ValueError(
            "channel must be row-stochastic: rows of chances that sum to 1."
        )
    m = len(C)
    kept = float(np.trace(C)) / m
    average = np.full((m, m), (1.0 - kept) / (m - 1))
    np.fill_diagonal(average, kept)
    return average


def mechanism_curve(guarantee: Loss | TradeOff) -> TradeOff:
    r"""Return a mechanism's own trade-off function; refuse the generic one.

    Parameters
    ----------
    guarantee : GDP or TradeOff
        What the mechanism promises.

    Raises
    ------
    AssumptionError
        For a pure or approximate guarantee, whose function is the generic one.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> mechanism_curve(GDP(1))
    GaussianTradeOff(mu=1.0)
    """
    f = guarantee if isinstance(guarantee, TradeOff) else loss_tradeoff(guarantee)
    if isinstance(f, ApproxTradeOff):
        raise AssumptionError(
            "guarantee must be the trade-off function of the mechanism itself "
            f"(Corollary 2), got the generic {f}; use uniform_guess_bound or "
            "exact_guess_bound, which are smaller."
        )
    return f

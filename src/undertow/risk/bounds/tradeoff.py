r"""Bounds from a trade-off function, for an attacker who knows nothing of the target.

With :math:`g(\alpha) = 1 - f(\alpha) - \alpha`, the advantage is at most

* (a) :math:`\max g` on :math:`[\kappa^-, \kappa^+]`;
* (b) :math:`(1-\kappa) \max g` on :math:`[0, \kappa^+/(1-\kappa)]`;
* (c) :math:`\frac{m-1}{m}(1 - mq)` with :math:`f(q) = (m-1)q`, for the exact record
  under a uniform prior.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

from undertow._validate import check_count, check_non_negative, check_probability
from undertow.privacy import (
    Bound,
    Calibration,
    GaussianTradeOff,
    Loss,
    TradeOff,
)
from undertow.privacy.variation import loss_tradeoff
from undertow.risk.bounds._curve import capacity, gain, rising_gain
from undertow.risk.bounds._parts import (
    BLIND,
    advantage,
    calibrated_epsilon,
    capped,
    disagreement,
    read_size,
    uniform_disagreement,
)

__all__ = [
    "calibrate_gaussian",
    "calibrate_uniform_gaussian",
    "gaussian_bound",
    "tradeoff_bound",
    "uniform_gaussian_bound",
    "uniform_tradeoff_bound",
]


def tradeoff_bound(
    guarantee: Loss | TradeOff,
    *,
    best_guess: float,
    worst_guess: float = 0.0,
    collision: float = 0.0,
) -> Bound:
    r"""Bound the advantage of an attacker who knows nothing of the target.

    .. math:: \mathrm{RAD} \le \min\Bigl\{
       \max_{[\kappa^-, \kappa^+]} g, \;
       (1-\kappa) \max_{[0, \min(1, \kappa^+/(1-\kappa))]} g \Bigr\}

    Parameters
    ----------
    guarantee : Pure, Approx, GDP or TradeOff
        What the mechanism promises for neighbours in both orders.
    best_guess : float
        Success :math:`\kappa^+` of the best guess without looking, over all guesses.
    worst_guess : float, optional
        Success :math:`\kappa^-` of the worst; 0 if the attacker may decline to answer.
    collision : float, optional
        The collision probability of the prior; 0 for a continuous one.

    Returns
    -------
    Bound
        On the advantage, rounded up; the theorem names the form that gave it.

    Raises
    ------
    AssumptionError
        For a zCDP loss, which has no trade-off function of its own.
    ValueError
        If `worst_guess` exceeds `best_guess`.

    Notes
    -----
    Theorem 5.11 of [1]_, with its interval cut at 1. Each maximum is bounded by a
    tangent of the concave g, so that a parameter of any size is safe: no quantile of an
    underflowed level is formed. Not checkable: that nothing is known of the target;
    with knowledge the bound is false.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> baselines = dict(best_guess=0.1, worst_guess=0.1, collision=0.1)
    >>> round(tradeoff_bound(GDP(1), **baselines).value, 6)
    0.271418
    """
    f = _tradeoff(guarantee)
    high, low = _baselines(best_guess, worst_guess)
    spread = disagreement(collision)
    first = capped(gain(f, low=low, high=high), 1.0)
    if spread == 0:
        return advantage(0.0, "Theorem 5.11(b)", unchecked=BLIND)
    level = min(1.0, high / spread)
    second = spread * min(f.total_variation(), rising_gain(f, level))
    second = capped(second, spread)
    if first < second:
        return advantage(first, "Theorem 5.11(a)", unchecked=BLIND)
    return advantage(second, "Theorem 5.11(b)", unchecked=BLIND)


def uniform_tradeoff_bound(guarantee: Loss | TradeOff, size: int) -> Bound:
    r"""Bound the chance to name one of m equally likely records, beyond luck.

    .. math:: \mathrm{RAD} \le \frac{m-1}{m}(1 - m q), \quad f(q) = (m-1)\,q

    Parameters
    ----------
    guarantee : Pure, Approx, GDP or TradeOff
        What the mechanism promises for neighbours in both orders.
    size : int
        Number m of equally likely records; at least 1.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Notes
    -----
    Proved on the page "Bounds on the advantage". Never above Theorem 5.11; for
    :math:`(\varepsilon, \delta)` it is Corollary 5.16. Attained by randomized response
    where that is :math:`f`-DP. Not checkable: exact success, a uniform prior, no
    knowledge.

    Examples
    --------
    >>> from undertow.privacy import GDP
    >>> round(uniform_tradeoff_bound(GDP(1), 10).value, 6)
    0.228999
    """
    f, m = _tradeoff(guarantee), read_size(size)
    value = capped(capacity(f, m) / m, uniform_disagreement(m))
    unchecked = (*BLIND, "the prior is uniform", "only the exact record counts")
    return advantage(value, "Theorem 5.11(c), uniform prior", unchecked=unchecked)


def gaussian_bound(
    mu: float, *, best_guess: float, worst_guess: float = 0.0, collision: float = 0.0
) -> Bound:
    r"""Bound the advantage under :math:`\mu`-GDP without knowledge of the target.

    The maximiser of g is :math:`1 - \Phi(\mu/2)`, moved into the interval.

    Parameters
    ----------
    mu : float
        GDP parameter for replacing a record, in :math:`[0, \infty]`.
    best_guess, worst_guess, collision : float
        As for :func:`tradeoff_bound`.

    Notes
    -----
    Theorem 5.11 and Example 5.12 of Guerra-Balboa (2026).

    Examples
    --------
    >>> round(gaussian_bound(1.0, best_guess=0.1, worst_guess=0.1).value, 6)
    0.289144
    """
    return tradeoff_bound(
        GaussianTradeOff(mu),
        best_guess=best_guess,
        worst_guess=worst_guess,
        collision=collision,
    )


def uniform_gaussian_bound(mu: float, size: int, *, sharpen: bool = True) -> Bound:
    r"""Bound the advantage on m equally likely records under :math:`\mu`-GDP.

    Parameters
    ----------
    mu : float
        GDP parameter for replacing a record, in :math:`[0, \infty]`.
    size : int
        Number m of records; at least 1.
    sharpen : bool, optional
        True for form (c); False for the closed form of Example 5.12,
        :math:`\frac{m-1}{m}(1 - \Phi(\Phi^{-1}(1-\alpha) - \mu) - \alpha)` with
        :math:`\alpha = \min\{1/(m-1), 1 - \Phi(\mu/2)\}`.

    Returns
    -------
    Bound
        On the advantage, rounded up.

    Notes
    -----
    Example 5.12 of Guerra-Balboa (2026), whose first display lacks the factor
    :math:`(m-1)/m`.

    Examples
    --------
    >>> round(uniform_gaussian_bound(1.0, 10, sharpen=False).value, 6)
    0.271418
    """
    mu, m = check_non_negative(mu, "mu"), read_size(size)
    if sharpen:
        return uniform_tradeoff_bound(GaussianTradeOff(mu), m)
    spread = uniform_disagreement(m)
    level = 1.0 if m <= 2 else 1.0 / (m - 1)
    f = GaussianTradeOff(mu)
    value = spread * min(f.total_variation(), rising_gain(f, level))
    unchecked = (*BLIND, "the prior is uniform", "only the exact record counts")
    return advantage(capped(value, spread), "Example 5.12", unchecked=unchecked)


def calibrate_gaussian(
    target: float,
    *,
    best_guess: float,
    worst_guess: float = 0.0,
    collision: float = 0.0,
) -> Calibration:
    """Return the largest mu whose advantage without knowledge is within a target.

    Parameters
    ----------
    target : float
        The advantage allowed, in (0, 1].
    best_guess, worst_guess, collision : float
        As for :func:`tradeoff_bound`.

    Returns
    -------
    Calibration
        Of mu, rounded down; infinite if no attack passes the target.

    Notes
    -----
    Inverse of Theorem 5.11; the bound is evaluated at the value returned.

    Examples
    --------
    >>> answer = calibrate_gaussian(0.1, best_guess=0.1, worst_guess=0.1, collision=0.1)
    >>> round(10 / answer.value, 6)
    21.933159
    """

    def bound(mu: float) -> Bound:
        return gaussian_bound(
            mu, best_guess=best_guess, worst_guess=worst_guess, collision=collision
        )

    ceiling = disagreement(collision)
    return calibrated_epsilon(target, bound, ceiling=ceiling, parameter="mu")


def calibrate_uniform_gaussian(target: float, size: int) -> Calibration:
    r"""Return the largest mu that keeps m equally likely records within a target.

    .. math:: \mu = \Phi^{-1}(1-q) - \Phi^{-1}(1-p), \quad
       p = \gamma + \tfrac1m, \; q = \tfrac{1-p}{m-1}

    Parameters
    ----------
    target : float
        The advantage :math:`\gamma` allowed, in (0, 1].
    size : int
        Number m of equally likely records; at least 1.

    Returns
    -------
    Calibration
        Of mu, rounded down; infinite if the target is not below :math:`1 - 1/m`.

    Notes
    -----
    Inverse of form (c), proved on the page "Bounds on the advantage". The bound is
    evaluated at the value returned.

    Examples
    --------
    >>> round(20 / calibrate_uniform_gaussian(0.1, 10).value, 6)
    39.525095
    """
    m = check_count(size, "size")
    return calibrated_epsilon(
        target,
        lambda mu: uniform_gaussian_bound(mu, m),
        ceiling=uniform_disagreement(m),
        parameter="mu",
    )


def _tradeoff(guarantee: Loss | TradeOff) -> TradeOff:
    return guarantee if isinstance(guarantee, TradeOff) else loss_tradeoff(guarantee)


def _baselines(best_guess: float, worst_guess: float) -> tuple[float, float]:
    high = check_probability(best_guess, "best_guess")
    low = check_probability(worst_guess, "worst_guess")
    if low > high:
        raise ValueError(
            f"worst_guess must be at most best_guess = {best_guess}, got {worst_guess}."
        )
    return high, low

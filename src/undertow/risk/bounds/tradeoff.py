r"""Bounds from a trade-off function, and trade-off functions from what is at hand.

With :math:`g(\alpha) = 1 - f(\alpha) - \alpha`, the advantage of an attacker who knows
nothing of the target is at most

* (a) :math:`\max g` on :math:`[\kappa^-, \kappa^+]`;
* (b) :math:`(1-\kappa) \max g` on :math:`[0, \kappa^+/(1-\kappa)]`;
* (c) :math:`\frac{m-1}{m}(1 - mq)` with :math:`f(q) = (m-1)q`, for the exact record
  under a uniform prior.

The function comes from an accountant's privacy curve, loss distribution or callable,
from a Rényi or zero-concentrated guarantee, or from the table of a finite channel.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
.. [2] C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for Differential
   Privacy*, NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import (
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from undertow.errors import AssumptionError, NotApplicable
from undertow.numeric.array import Floats
from undertow.numeric.rounding import UNIT
from undertow.privacy import (
    ZCDP,
    Bound,
    Calibration,
    GaussianTradeOff,
    Loss,
    PiecewiseLinearTradeOff,
    PrivacyLossDistribution,
    TradeOff,
)
from undertow.privacy._finite_pair import atoms_of, convex_floor
from undertow.privacy.variation import loss_tradeoff, total_variation
from undertow.risk.bounds._parts import (
    BLIND,
    LARGEST,
    LOWERED,
    advantage,
    calibrated_epsilon,
    capacity,
    capped,
    disagreement,
    envelope,
    even_levels,
    gain,
    points_below,
    reach_of,
    read_size,
    rising_gain,
    uniform_disagreement,
)


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


# Trade-off functions from accountants: privacy curves, loss distributions, callables.
#
# A mechanism that is :math:`(\varepsilon, \delta)`-DP has, in both orders, a trade-off
# function above the lines :math:`1 - \delta - e^\varepsilon\alpha` and
# :math:`e^{-\varepsilon}(1 - \delta - \alpha)`. The greatest of finitely many such
# lines is therefore below the true function whatever points of the curve were taken,
# and every bound computed from it holds.
#
# References
# ----------
# .. [1] B. Kulynych, J. F. Gomez, G. Kaissis, F. du Pin Calmon and C. Troncoso,
#    *Attack-Aware Noise Calibration for Differential Privacy*, NeurIPS 2024.


_CONVEXITY = 1e-12
_REPLACE = "the curve is for replacing one record by another"
_KNOTS = 512
_PLD_KNOTS = 256


class AccountedTradeOff(PiecewiseLinearTradeOff):
    """A trade-off function from an accountant, with what must be taken on trust.

    Built by the ``tradeoff_from_...`` functions; usable wherever a trade-off function
    is.

    Attributes
    ----------
    source : str
        Where the curve came from.
    unchecked : tuple of str
        Hypotheses under which it lies below the true function.
    """

    source: str
    unchecked: tuple[str, ...]

    @classmethod
    def through(
        cls,
        alphas: ArrayLike,
        betas: ArrayLike,
        *,
        source: str,
        unchecked: tuple[str, ...],
    ) -> AccountedTradeOff:
        """Return the greatest convex function below points from alpha 0 to 1."""
        x, y = convex_floor(np.asarray(alphas, float), np.asarray(betas, float))
        drops = np.maximum(-np.diff(y), 0.0)
        function = cls.__new__(cls)
        function._set(
            atoms_of(np.append(0.0, np.diff(x)), np.append(1.0 - y[0], drops))
        )
        function.source, function.unchecked = source, unchecked
        return function

    def explain(self, bound: Bound) -> Bound:
        """Return a bound with the hypotheses of this curve among its own."""
        missing = tuple(text for text in self.unchecked if text not in bound.unchecked)
        return replace(bound, unchecked=(*bound.unchecked, *missing))

    def __repr__(self) -> str:
        return f"AccountedTradeOff({len(self.alphas)} corners, {self.source})"


def tradeoff_from_curve(
    deltas: Callable[[Floats], ArrayLike],
    *,
    reach: float,
    knots: int = _KNOTS,
    source: str = "privacy curve",
    unchecked: Sequence[str] = (_REPLACE,),
) -> AccountedTradeOff:
    r"""Return the trade-off function of finitely many points of a privacy curve.

    Parameters
    ----------
    deltas : callable
        Maps a vector of :math:`\varepsilon \ge 0` to upper bounds of
        :math:`\delta(\varepsilon)`, holding in both orders.
    reach : float
        The largest :math:`\varepsilon` asked for; positive, at most 700.
    knots : int, optional
        Number of points; at least 2.
    source : str, optional
        Where the curve comes from.
    unchecked : sequence of str, optional
        Hypotheses of the curve.

    Returns
    -------
    AccountedTradeOff
        Symmetric, nowhere above the true function. :math:`O(k \log k)` for k knots,
        besides the calls.

    Raises
    ------
    ValueError
        If `deltas` returns another shape, or values outside [0, 1].

    Notes
    -----
    Every line is lowered by 1e-12 to cover the rounding of the corners. Proved on the
    page "Published risk bounds". Not checkable: that the deltas are upper bounds.

    Examples
    --------
    >>> from undertow.privacy import gdp_delta
    >>> gauss = lambda levels: [gdp_delta(1.0, float(e)) for e in levels]
    >>> f = tradeoff_from_curve(gauss, reach=9.0)
    >>> round(f.total_variation(), 9), bool(f(0.1) <= 0.6108563083)
    (0.382924923, True)
    """
    count, top = check_count(knots, "knots", minimum=2), check_positive(reach, "reach")
    if top > LARGEST:
        raise ValueError(f"reach must be at most {LARGEST:g}, got {reach}.")
    # Closer together near 0, where most of a curve bends.
    levels = top * np.linspace(0.0, 1.0, count) ** 2
    values = np.asarray(deltas(levels), dtype=np.float64)
    if values.shape != levels.shape or not np.all((values >= 0) & (values <= 1)):
        raise ValueError(
            "deltas must return one value in [0, 1] for each epsilon, got shape "
            f"{values.shape}."
        )
    kept = 1.0 - values - LOWERED
    heights = np.concatenate([kept, np.exp(-levels) * kept, [0.0]])
    slopes = np.concatenate([np.exp(levels), np.exp(-levels), [0.0]])
    alphas, betas = envelope(heights, slopes)
    return AccountedTradeOff.through(
        alphas, betas, source=source, unchecked=tuple(unchecked)
    )


def tradeoff_from_pld(
    distribution: Any, *, knots: int = _PLD_KNOTS
) -> AccountedTradeOff:
    r"""Return a trade-off function that a privacy-loss distribution promises.

    Parameters
    ----------
    distribution : PrivacyLossDistribution
        One of ours, or of the library dp-accounting (the extra ``accounting``) with
        pessimistic estimates.
    knots : int, optional
        Number of points of the privacy curve.

    Returns
    -------
    AccountedTradeOff
        Symmetric: it holds in both orders. Usable in
        :func:`~undertow.risk.selector.best_bound`.

    Raises
    ------
    AssumptionError
        For an optimistic estimate, which bounds nothing.
    TypeError
        For another kind of object.

    Notes
    -----
    Our distributions bound delta from above, rounding included. Those of dp-accounting
    do so up to the rounding of their convolutions, which is not certified and is listed
    among the hypotheses, as is the adjacency: the library's default is adding or
    removing a record, and the advantage needs replacing one. Take
    ``.group(2)`` of a curve for adding or removing.

    Examples
    --------
    >>> from undertow.privacy import PrivacyLossDistribution
    >>> pld = PrivacyLossDistribution.from_gaussian(0.25).self_compose(16)
    >>> round(tradeoff_from_pld(pld).total_variation(), 6)
    0.382925
    """
    if isinstance(distribution, PrivacyLossDistribution):
        source = "privacy-loss distribution"
        unchecked: tuple[str, ...] = (_REPLACE,)

        def deltas(levels: Floats) -> Floats:
            return np.array([distribution.delta(float(e)) for e in levels])

    else:
        _check_pessimistic(distribution)
        source = "dp-accounting"
        unchecked = (_REPLACE, "the rounding of dp-accounting is negligible")

        def deltas(levels: Floats) -> Floats:
            values = distribution.get_delta_for_epsilon(levels.tolist())
            # Rounding may leave a delta below 0; raising it is on the safe side.
            return np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)

    return tradeoff_from_curve(
        deltas,
        reach=reach_of(lambda e: float(deltas(np.array([e]))[0])),
        knots=knots,
        source=source,
        unchecked=unchecked,
    )


def tradeoff_from_callable(
    beta: Callable[[Floats], ArrayLike],
    *,
    slack: float = 0.0,
    knots: int = _KNOTS,
    source: str = "callable",
) -> AccountedTradeOff:
    r"""Return a trade-off function below a given function of the type I error.

    Parameters
    ----------
    beta : callable
        Maps a vector of type I errors to type II errors, as riskcal's
        ``get_beta_from_...`` do.
    slack : float, optional
        How far its values may be, either way, from a convex function below the truth:
        their numerical error. About ten times it is taken off, which covers what
        prolonged chords make of it.
    knots : int, optional
        Number of values asked for; at least 8.
    source : str, optional
        Where the function comes from.

    Returns
    -------
    AccountedTradeOff
        Below `beta` between the values asked for too, where a chord would lie above a
        convex function: there its neighbours' chords are prolonged.

    Raises
    ------
    AssumptionError
        If the values are no decreasing convex function below :math:`1 - \alpha`, up to
        1e-12 and about ten times `slack`.

    Notes
    -----
    Checked at the values asked for: range, monotonicity, convexity. Not checkable:
    convexity between them, that `beta` lies nowhere above the mechanism's function, and
    that it holds in both orders; all are listed in ``unchecked``.

    Examples
    --------
    >>> from undertow.privacy import GaussianTradeOff
    >>> f = tradeoff_from_callable(GaussianTradeOff(1.0))
    >>> bool(0 < GaussianTradeOff(1.0)(0.1) - f(0.1) < 1e-4)
    True
    """
    count = check_count(knots, "knots", minimum=8)
    error = check_non_negative(slack, "slack")
    alphas = even_levels(count)
    values = np.asarray(beta(alphas), dtype=np.float64)
    widths = np.diff(alphas)
    ratio = float(np.maximum(widths[1:] / widths[:-1], widths[:-1] / widths[1:]).max())
    _check_values(alphas, values, tolerance=_CONVEXITY + 2.0 * (1.0 + ratio) * error)
    # A prolonged chord errs by the error of its end and twice that over its width.
    kept = np.maximum(0.0, values - (1.0 + 2.0 * ratio) * error - LOWERED)
    corners = points_below(alphas, kept)
    return AccountedTradeOff.through(
        *corners,
        source=source,
        unchecked=(
            _REPLACE,
            "the function given is convex, up to the slack stated",
            "the function given lies nowhere above that of the mechanism, in either "
            "order",
        ),
    )


def _check_values(alphas: Floats, values: Floats, *, tolerance: float) -> None:
    if values.shape != alphas.shape:
        raise ValueError(
            "beta must return one value for each type I error, got shape "
            f"{values.shape}."
        )
    bends = np.diff(np.diff(values) / np.diff(alphas)) * np.diff(alphas)[1:]
    faults = (
        (bool(np.all((values >= -tolerance) & (values <= 1))), "values in [0, 1]"),
        (bool(np.all(values <= 1.0 - alphas + tolerance)), "at most 1 - alpha"),
        (bool(np.all(np.diff(values) <= tolerance)), "non-increasing"),
        (bool(np.all(bends >= -tolerance)), "convex"),
    )
    missing = [wanted for holds, wanted in faults if not holds]
    if missing:
        raise AssumptionError(
            f"beta must be a trade-off function, got one that is not: "
            f"{', '.join(missing)}; state its numerical error as slack, or give a "
            "privacy curve to tradeoff_from_curve."
        )


def _check_pessimistic(distribution: Any) -> None:
    if not hasattr(distribution, "get_delta_for_epsilon"):
        raise TypeError(
            "distribution must be a PrivacyLossDistribution of undertow or of "
            f"dp-accounting, got {type(distribution).__name__}."
        )
    laws = [getattr(distribution, name, None) for name in ("_pmf_remove", "_pmf_add")]
    flags = [getattr(law, "_pessimistic_estimate", None) for law in laws]
    if flags != [True, True]:
        raise AssumptionError(
            "distribution must be a pessimistic estimate, got one that is not or does "
            "not say; build it with pessimistic_estimate=True."
        )


# Rényi and zero-concentrated guarantees as inputs of the bounds on the advantage.
#
# A bound on a divergence gives a bound on the total variation, and a whole privacy
# curve, which is sharper for an attacker who knows nothing.
#
# References
# ----------
# .. [1] C. Canonne, G. Kamath and T. Steinke, *The Discrete Gaussian for Differential
#    Privacy*, NeurIPS 2020.


def tradeoff_from_rdp(
    divergence: float, *, order: float, knots: int = _KNOTS
) -> AccountedTradeOff:
    r"""Return a trade-off function that a Rényi guarantee of one order promises.

    .. math:: \delta(\varepsilon) = \min\Bigl\{\mathrm{TV}, \;
       \frac{e^{(\alpha-1)(\rho - \varepsilon)}}{\alpha}
       \Bigl(1 - \frac1\alpha\Bigr)^{\alpha - 1}\Bigr\}

    Parameters
    ----------
    divergence : float
        The bound :math:`\rho` on the Rényi divergence in both orders; non-negative and
        finite.
    order : float
        The order :math:`\alpha`, above 1 and finite. A :math:`\rho`-zCDP mechanism
        has :math:`\alpha\rho` at every order.
    knots : int, optional
        Number of points of the curve.

    Returns
    -------
    AccountedTradeOff
        With TV from :func:`divergence_variation`.

    Notes
    -----
    The conversion of Canonne, Kamath and Steinke, *The Discrete Gaussian for
    Differential Privacy* (2020), Proposition 12: with
    :math:`\alpha > 1`, :math:`(1 - 1/t)_+ \le t^{\alpha-1}(1-1/\alpha)^{\alpha-1}/
    \alpha`, applied to the likelihood ratio.

    Examples
    --------
    >>> f = tradeoff_from_rdp(0.5, order=5.0)
    >>> round(f.delta(2.0), 6)
    0.000203
    """
    rho = check_positive(divergence, "divergence") if divergence else 0.0
    alpha = check_positive(order, "order")
    if alpha <= 1:
        raise ValueError(f"order must be above 1, got {order}.")
    total = divergence_variation(rho)
    shape = (alpha - 1.0) * math.log1p(-1.0 / alpha) - math.log(alpha)

    def deltas(levels: Floats) -> Floats:
        exponent = (alpha - 1.0) * (rho - levels) + shape
        return np.minimum(total, np.exp(np.minimum(0.0, exponent)) * (1.0 + 1e-12))

    reach = min(LARGEST, rho + max(1.0, 40.0 + shape) / (alpha - 1.0))
    return tradeoff_from_curve(
        deltas, reach=reach, knots=knots, source=f"Rényi order {alpha:g}"
    )


def divergence_variation(divergence: float) -> float:
    r"""Bound the total variation by a Kullback-Leibler divergence, rounded up.

    .. math:: \mathrm{TV} \le \min\bigl\{\sqrt{D/2}, \; \sqrt{1 - e^{-D}}\bigr\}

    Parameters
    ----------
    divergence : float
        D, or a Rényi divergence of any order above 1, which is no smaller: the
        parameter of zCDP, or that of Rényi DP.

    Notes
    -----
    The inequalities of Pinsker and of Bretagnolle and Huber. Give the number to
    :func:`~undertow.risk.bounds.variation_bound`.

    Examples
    --------
    >>> round(divergence_variation(0.02), 9), round(divergence_variation(5.0), 9)
    (0.1, 0.996625332)
    """
    return total_variation(ZCDP(check_non_negative(divergence, "divergence")))


# The trade-off function of a finite channel, over all pairs of inputs.
#
# Of one pair it is piecewise linear, with a corner for each output in the order of the
# likelihood ratios. What holds for all pairs is the greatest convex function below all
# corners.

_ROW_SUM = 1e-9
# Outputs of ordered pairs in all, and of those held at a time.
_LARGEST = 10**8
_ENTRIES = 1 << 19


def tradeoff_from_channel(channel: ArrayLike) -> AccountedTradeOff:
    r"""Return the trade-off function of a finite channel, over all pairs of inputs.

    Parameters
    ----------
    channel : array_like of shape (m, k)
        Row-stochastic: the chance of each output for each input; at least 2 inputs.

    Returns
    -------
    AccountedTradeOff
        The convex hull of the least function over all ordered pairs, lowered by
        :math:`10^{-14} + 8k\,2^{-53}` for rounding.

    Raises
    ------
    ValueError
        If the channel has fewer than 2 rows, or a row is no distribution.
    NotApplicable
        If :math:`m^2 k` exceeds 100 million.

    Notes
    -----
    Time :math:`O(m^2 k \log k)`, memory :math:`O(mk)`.

    Examples
    --------
    >>> f = tradeoff_from_channel([[0.75, 0.25], [0.25, 0.75]])
    >>> round(float(f(0.125)), 12), round(f.total_variation(), 12)
    (0.625, 0.5)
    """
    laws = _read_laws(channel)
    lowered = 1e-14 + 8 * laws.shape[1] * UNIT
    x, y = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    for null in laws:
        for alphas, betas in _corners(null, laws):
            betas[:, 1:] = np.maximum(0.0, betas[:, 1:] - lowered)
            # Most corners lie above those of other pairs.
            below = betas < np.interp(alphas, x, y)
            x, y = convex_floor(
                np.concatenate([x, alphas[below]]), np.concatenate([y, betas[below]])
            )
    return AccountedTradeOff.through(x, y, source="channel", unchecked=())


def _read_laws(channel: ArrayLike) -> Floats:
    laws = np.array(channel, dtype=np.float64)
    if laws.ndim != 2 or len(laws) < 2 or laws.shape[1] == 0:
        raise ValueError(
            f"channel must have at least 2 rows of chances, got shape {laws.shape}."
        )
    total = laws.sum(axis=1, keepdims=True)
    if not ((laws >= 0).all() and (np.abs(total - 1.0) <= _ROW_SUM).all()):
        raise ValueError(
            "channel must be row-stochastic: rows of chances that sum to 1."
        )
    if len(laws) * laws.size > _LARGEST:
        raise NotApplicable(
            f"channel must have at most {_LARGEST:.0e} outputs of ordered pairs, got "
            f"{len(laws) * laws.size:.1e}; merge outputs, or give a privacy curve to "
            "tradeoff_from_curve."
        )
    return np.asarray(laws / total)


def _corners(null: Floats, laws: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Hand out the corners against a null, a row for each alternative."""
    step = max(1, _ENTRIES // len(null))
    for start in range(0, len(laws), step):
        others = laws[start : start + step]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratios = np.where(others > 0, others / null, 0.0)
        order = np.argsort(-ratios, axis=1, kind="stable")
        alphas = np.zeros((len(others), len(null) + 1))
        betas = np.zeros_like(alphas)
        # Both are summed from their small end, so that tails keep their digits.
        np.cumsum(null[order], axis=1, out=alphas[:, 1:])
        chances = np.take_along_axis(others, order, axis=1)[:, ::-1]
        betas[:, :-1] = np.cumsum(chances, axis=1)[:, ::-1]
        betas[:, 0] = 1.0
        yield np.minimum(alphas, 1.0), betas

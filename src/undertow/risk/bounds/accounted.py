r"""Trade-off functions from accountants: privacy curves, loss distributions, callables.

A mechanism that is :math:`(\varepsilon, \delta)`-DP has, in both orders, a trade-off
function above the lines :math:`1 - \delta - e^\varepsilon\alpha` and
:math:`e^{-\varepsilon}(1 - \delta - \alpha)`. The greatest of finitely many such lines
is therefore below the true function whatever points of the curve were taken, and every
bound computed from it holds.

References
----------
.. [1] B. Kulynych, J. F. Gomez, G. Kaissis, F. du Pin Calmon and C. Troncoso,
   *Attack-Aware Noise Calibration for Differential Privacy*, NeurIPS 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_non_negative, check_positive
from undertow.errors import AssumptionError
from undertow.privacy import (
    Bound,
    PiecewiseLinearTradeOff,
    PrivacyLossDistribution,
)
from undertow.privacy.tradeoff_numeric import atoms_of, convex_floor
from undertow.risk.bounds._lines import (
    LOWERED,
    envelope,
    even_levels,
    points_below,
    reach_of,
)
from undertow.risk.bounds._parts import LARGEST

__all__ = [
    "AccountedTradeOff",
    "tradeoff_from_callable",
    "tradeoff_from_curve",
    "tradeoff_from_pld",
]

Floats = NDArray[np.float64]

_TOLERANCE = 1e-12
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
    _check_values(alphas, values, tolerance=_TOLERANCE + 2.0 * (1.0 + ratio) * error)
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

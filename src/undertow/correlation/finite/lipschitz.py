r"""The largest ratio of two means of a function that one record changes little.

For laws p, q of the unknown records, every epsilon-DP mechanism turns into a positive
function h with :math:`h(c)\le e^\varepsilon h(c')` for neighbours, and what it leaks
about the target is :math:`\varepsilon+\ln(E_ph/E_qh)` at most. This module maximises
the ratio: by a closed form for one unknown record, by a linear program for more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import nudge_up

__all__ = ["RatioBound", "lipschitz_envelope", "lipschitz_ratio", "threshold_ratio"]

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# Beyond this exponent the program is not scaled well enough to be worth solving.
_LARGEST_EXPONENT = 300.0
_SMALL_EXPONENT = 30.0
_FEASIBILITY = 1e-10
# Tried in turn; whatever is found is certified, so a loose one costs tightness only.
_ATTEMPTS: tuple[tuple[Any, float], ...] = (
    ("highs", _FEASIBILITY),
    ("highs-ds", _FEASIBILITY),
    ("highs-ds", 1e-8),
    ("highs-ipm", 1e-8),
)
# Functions do not go below: a smaller value could make a mean zero.
_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class RatioBound:
    """An enclosure of the largest log ratio of means.

    Parameters
    ----------
    upper : float
        Certified: from a dual point whose infeasibility is priced in, or closed form.
    lower : float
        Attained by `function`, which satisfies its constraints.
    function : array
        A positive function of the unknown records.
    """

    upper: float
    lower: float
    function: Floats


def threshold_ratio(p: Floats, q: Floats, exponent: float) -> Floats:
    r"""Return the largest log ratio of means of functions of range :math:`e^D`.

    .. math:: \max_A \ln\frac{e^{D}p(A)+p(A^c)}{e^{D}q(A)+q(A^c)}

    The maximum is over the sets of large p/q, row by row. With D the exponent times
    the number of records it bounds every log-Lipschitz function; for one record it is
    attained.

    Parameters
    ----------
    p, q : array of shape (R, N)
        Probabilities.
    exponent : float
        The D; non-negative.

    Examples
    --------
    >>> threshold_ratio(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), 2.0)
    array([2.])
    """
    order = np.argsort(-_likelihood(p, q), axis=-1, kind="stable")
    over, under = (
        _log_means(np.take_along_axis(law, order, axis=-1), exponent) for law in (p, q)
    )
    found = (over - under).max(axis=-1)
    return np.asarray(np.clip(found, 0.0, exponent), dtype=np.float64)


def lipschitz_ratio(p: Floats, q: Floats, epsilon: float) -> RatioBound:
    r"""Enclose the largest :math:`\ln(E_ph/E_qh)` over epsilon-log-Lipschitz h.

    Parameters
    ----------
    p, q : array of shape (s_1, ..., s_u)
        Laws of the unknown records under two secrets.
    epsilon : float
        Non-negative.

    Returns
    -------
    RatioBound

    Notes
    -----
    Charnes–Cooper: normalise :math:`E_qh=1` and maximise :math:`E_ph`. Every feasible h
    is at most :math:`U(c)=1/\sum_{c'}q(c')e^{-\varepsilon d(c,c')}`, so h = U k with
    :math:`0\le k\le1`, which scales the program. For any multipliers :math:`y\ge0` and
    any :math:`\lambda`, with residual :math:`r=Up-A^Ty-\lambda Uq`, weak duality gives
    :math:`E_ph\le\lambda+\sum_c\max(r_c,0)`: a certificate that needs no feasible dual
    point. Proved on the page exact-leakage.

    Examples
    --------
    >>> found = lipschitz_ratio(np.diag([0.5, 0.5]), np.full((2, 2), 0.25), 1.0)
    >>> abs(found.upper - found.lower) < 1e-9
    True
    """
    box = float(threshold_ratio(p.ravel()[None], q.ravel()[None], p.ndim * epsilon)[0])
    if p.ndim <= 1:
        return RatioBound(box, box, _threshold_function(p, q, epsilon))
    if p.ndim * epsilon > _LARGEST_EXPONENT:
        step = _threshold_function(p, q, epsilon)
        return RatioBound(box, _log_ratio(p, q, step), step)
    return _solve(p, q, epsilon, box)


def lipschitz_envelope(function: Floats, epsilon: float) -> Floats:
    """Return the least epsilon-log-Lipschitz function above one, axis by axis."""
    for axis in range(function.ndim):
        highest = function.max(axis=axis, keepdims=True)
        function = np.maximum(function, math.exp(-epsilon) * highest)
    return function


def _solve(p: Floats, q: Floats, epsilon: float, box: float) -> RatioBound:
    roof = _roof(q, epsilon)
    limits = _limits(roof, epsilon)
    gain, cost = (p * roof).ravel(), (q * roof).ravel()
    solved = _solution(gain, cost, limits)
    if solved is None:
        step = _threshold_function(p, q, epsilon)
        return RatioBound(box, _log_ratio(p, q, step), step)
    multipliers = np.maximum(-solved.ineqlin.marginals, 0.0)
    price = -float(solved.eqlin.marginals[0])
    upper = _certify(gain, cost, limits, multipliers, price)
    shape = np.maximum(solved.x, 0.0).reshape(p.shape) * roof
    best = lipschitz_envelope(shape, epsilon)
    return RatioBound(min(box, upper), _log_ratio(p, q, best), best)


def _solution(gain: Floats, cost: Floats, limits: Any) -> Any:
    """Return what a solver finds; older ones give up at tolerances newer ones reach."""
    from scipy.optimize import linprog

    for method, tolerance in _ATTEMPTS:
        solved = linprog(
            -gain,
            A_ub=limits,
            b_ub=np.zeros(limits.shape[0]),
            A_eq=cost[None, :],
            b_eq=np.ones(1),
            bounds=(0, None),
            method=method,
            options={
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
            },
        )
        if solved.status == 0 and solved.x is not None:
            return solved
    return None


def _limits(roof: Floats, epsilon: float) -> Any:
    """Return the sparse A of the constraints A k <= 0, one row per ordered pair."""
    from scipy.sparse import coo_array

    high, low = _neighbours(roof.shape)
    slopes = roof.ravel()[high] * math.exp(-epsilon) / roof.ravel()[low]
    entries = np.concatenate([slopes, -np.ones(high.size)])
    rows = np.arange(high.size)
    places = np.concatenate([rows, rows]), np.concatenate([high, low])
    return coo_array((entries, places), shape=(high.size, roof.size)).tocsr()


def _certify(
    gain: Floats, cost: Floats, limits: Any, multipliers: Floats, price: float
) -> float:
    """Return the log of the dual value, infeasibility and rounding priced in."""
    residual = gain - limits.T @ multipliers - price * cost
    sizes = gain + abs(limits).T @ multipliers + abs(price) * cost
    bound = price + np.maximum(residual, 0.0).sum() + 2.0**-48 * sizes.sum()
    return nudge_up(math.log(bound), 8)


def _roof(q: Floats, epsilon: float) -> Floats:
    """Return U: the greatest value each cell can have when the mean under q is one."""
    decay, total = math.exp(-epsilon), q
    for axis in range(q.ndim):
        total = decay * total.sum(axis=axis, keepdims=True) + (1 - decay) * total
    return np.asarray(1 / total, dtype=np.float64)


def _neighbours(shape: tuple[int, ...]) -> tuple[Integers, Integers]:
    """Return the flat indices of all ordered pairs that differ in one record."""
    cells = np.arange(math.prod(shape)).reshape(shape)
    first, second = [], []
    for axis, s in enumerate(shape):
        lines = np.moveaxis(cells, axis, -1).reshape(-1, s)
        for shift in range(1, s):
            first.append(lines.ravel())
            second.append(np.roll(lines, shift, axis=-1).ravel())
    return np.concatenate(first), np.concatenate(second)


def _log_means(ranked: Floats, exponent: float) -> Floats:
    """Return the log means of functions that are exp(exponent) on the first cells."""
    above = ranked.cumsum(axis=-1)
    if exponent <= _SMALL_EXPONENT:  # keeps relative accuracy for small exponents
        return np.asarray(np.log1p(math.expm1(exponent) * above))
    below = ranked[..., ::-1].cumsum(axis=-1)[..., ::-1] - ranked
    with np.errstate(divide="ignore"):
        logs = np.log(above) + exponent, np.log(np.maximum(below, 0.0))
    return np.asarray(np.logaddexp(*logs))


def _likelihood(p: Floats, q: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = p / q
    return np.where(np.isnan(ratio), -np.inf, ratio)


def _threshold_function(p: Floats, q: Floats, epsilon: float) -> Floats:
    """Return the best function of the values 1 and exp(-epsilon) by rank of p/q."""
    ratio = _likelihood(p, q)
    best = np.ones(p.shape)
    low = max(math.exp(-epsilon), _SMALLEST)
    for cut in np.unique(ratio):
        step = np.where(ratio >= cut, 1.0, low)
        if _log_ratio(p, q, step) > _log_ratio(p, q, best):
            best = step
    return best


def _log_ratio(p: Floats, q: Floats, function: Floats) -> float:
    return math.log(float((p * function).sum()) / float((q * function).sum()))

r"""Two Laplace mixtures told apart, in closed form.

Between two neighbouring centres the difference of the densities is
:math:`a e^{-y/b} + c e^{y/b}`, which changes its sign at most once; masses are
differences of distribution functions. Nothing is integrated numerically.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["laplace_masses", "laplace_variation", "positive_intervals"]

Floats = NDArray[np.float64]
Intervals = list[tuple[float, float]]


def laplace_variation(support: Floats, difference: Floats, *, scale: float) -> Floats:
    """Return the total variation between rows of pairs of Laplace mixtures.

    Parameters
    ----------
    support : ndarray of shape (N,)
        Centres, increasing.
    difference : ndarray of shape (rows, N)
        Weights of the first mixture minus those of the second; rows sum to zero.
    scale : float
        Laplace scale; positive.

    Returns
    -------
    ndarray of shape (rows,)
        Exact up to rounding, which is relative to the spread of the centres in noise
        scales where that is small. Time and memory are rows times N.
    """
    widths = np.diff(support) / scale
    left, right = _sums(difference, np.exp(-widths))
    inside = _positive_inside(left[:, :-1], right[:, 1:], widths)
    # Rows sum to zero, so one may be taken off each exponential: nothing cancels.
    ends = (support[0] - support) / scale, (support - support[-1]) / scale
    outside = sum(np.maximum(difference @ np.expm1(end), 0) for end in ends)
    return np.asarray(np.minimum((inside.sum(axis=1) + outside) / 2, 1.0))


def positive_intervals(
    support: Floats, difference: Floats, *, scale: float
) -> Intervals:
    """Return where a difference of two mixtures (of any mass) is positive."""
    decay = np.exp(-np.diff(support) / scale)
    left, right = _sums(difference[None, :], decay)
    found: Intervals = [(-math.inf, float(support[0]))] if right[0, 0] > 0 else []
    for k, width in enumerate(np.diff(support)):
        ends = _positive_part(left[0, k], right[0, k + 1], width=width, scale=scale)
        if ends is not None:
            found.append((float(support[k]) + ends[0], float(support[k]) + ends[1]))
    if left[0, -1] > 0:
        found.append((float(support[-1]), math.inf))
    return _joined(found)


def laplace_masses(
    support: Floats, weights: Floats, *, scale: float, intervals: Intervals
) -> float:
    """Return the mass that a Laplace mixture puts on disjoint intervals."""
    total = 0.0
    for low, high in intervals:
        # The upper tail is used on the right of a centre, where it does not cancel.
        below, above = (low - support) / scale, (high - support) / scale
        rising = _cdf(above) - _cdf(below)
        falling = _cdf(-below) - _cdf(-above)
        total += float((weights * np.where(below > 0, falling, rising)).sum())
    return min(total, 1.0)


def _cdf(z: Floats) -> Floats:
    tail = np.exp(-np.abs(z)) / 2
    return np.asarray(np.where(z < 0, tail, 1 - tail))


def _sums(difference: Floats, decay: Floats) -> tuple[Floats, Floats]:
    """Return, at each centre, the sums from the left and from the right."""
    left, right = difference.copy(), difference.copy()
    for k in range(1, difference.shape[1]):
        left[:, k] += left[:, k - 1] * decay[k - 1]
        right[:, -1 - k] += right[:, -k] * decay[-k]
    return left, right


def _positive_inside(left: Floats, right: Floats, widths: Floats) -> Floats:
    """Return twice the positive mass between neighbouring centres."""
    whole = (left + right) * -np.expm1(-widths)
    mixed = np.sign(left) * np.sign(right) < 0
    sizes = (np.abs(np.where(mixed, side, 1.0)) for side in (left, right))
    # The densities meet where left e^{-u} = -right e^{-(w-u)}.
    meet = np.subtract(*(np.log(size) for size in sizes))
    u = np.clip((widths + meet) / 2, 0, widths)
    first = (left + right * np.exp(u - widths)) * -np.expm1(-u)
    second = (left * np.exp(-u) + right) * -np.expm1(u - widths)
    split = np.maximum(first, 0) + np.maximum(second, 0)
    return np.where(mixed, split, np.maximum(whole, 0))


def _positive_part(
    left: float, right: float, *, width: float, scale: float
) -> tuple[float, float] | None:
    """Return where left e^{-u/b} + right e^{-(w-u)/b} is positive, u in [0, w]."""
    if not min(left, right) < 0 < max(left, right):
        return (0.0, width) if left + right > 0 else None
    meet = scale * (math.log(abs(left)) - math.log(abs(right)))
    u = min(max((width + meet) / 2, 0.0), width)
    if left > 0:
        return (0.0, u) if u > 0 else None
    return (u, width) if u < width else None


def _joined(intervals: Intervals) -> Intervals:
    joined: Intervals = []
    for low, high in intervals:
        if joined and joined[-1][1] == low:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined

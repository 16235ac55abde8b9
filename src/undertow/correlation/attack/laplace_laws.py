r"""Two Laplace mixtures told apart, in closed form.

Between two neighbouring centres the difference of the densities is
:math:`a e^{-y/b} + c e^{y/b}`, which changes its sign at most once; masses are
differences of distribution functions. Nothing is integrated numerically. On a lattice
that holds all centres the probabilities are proportional to the densities, so the same
attack is best, and its masses are geometric sums.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["laplace_masses", "laplace_variation", "positive_intervals"]

Floats = NDArray[np.float64]
Intervals = list[tuple[float, float]]


def laplace_variation(
    support: Floats, difference: Floats, *, scale: float, step: float = 0.0
) -> Floats:
    """Return the total variation between rows of pairs of Laplace mixtures.

    Parameters
    ----------
    support : ndarray of shape (N,)
        Centres, increasing.
    difference : ndarray of shape (rows, N)
        Weights of the first mixture minus those of the second; rows sum to zero.
    scale : float
        Laplace scale; positive.
    step : float
        Step of the lattice that the noise is drawn on, of which every centre is a
        multiple; 0 for continuous noise.

    Returns
    -------
    ndarray of shape (rows,)
        Exact up to rounding, which is relative to the spread of the centres in noise
        scales where that is small. Time and memory are rows times N.
    """
    widths, rate = np.diff(support) / scale, step / scale
    left, right = _sums(difference, np.exp(-widths))
    # Twice the mass that continuous noise puts where a lattice has a geometric sum.
    unit = 2 * math.exp(-rate) / (1 + math.exp(-rate))
    inside = unit * _positive_inside(left[:, :-1], right[:, 1:], widths, rate)
    # Rows sum to zero, so one may be taken off each exponential: nothing cancels.
    ends = (support[0] - support) / scale, (support - support[-1]) / scale
    outside = sum(np.maximum(difference @ np.expm1(end), 0) for end in ends)
    total = inside.sum(axis=1) + (2 - unit) * outside
    if rate:  # the outer centres are in the tails
        centres = (left + right - difference)[:, 1:-1]
        total += 2 * math.tanh(rate / 2) * np.maximum(centres, 0).sum(axis=1)
    return np.asarray(np.minimum(total / 2, 1.0))


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
    support: Floats,
    weights: Floats,
    *,
    scale: float,
    intervals: Intervals,
    step: float = 0.0,
) -> float:
    """Return the mass that a Laplace mixture puts on disjoint intervals.

    An interval holds its upper end and not its lower one, which only matters on a
    lattice of a positive `step`.
    """
    total, rate = 0.0, step / scale
    for low, high in intervals:
        below, above = (low - support) / scale, (high - support) / scale
        if rate:
            steps = support / step
            below, above = (np.floor(end / step) - steps for end in (low, high))
            rising = _steps_cdf(above, rate) - _steps_cdf(below, rate)
            falling = _steps_cdf(-below - 1, rate) - _steps_cdf(-above - 1, rate)
        else:
            rising = _cdf(above) - _cdf(below)
            falling = _cdf(-below) - _cdf(-above)
        # The upper tail is used on the right of a centre, where it does not cancel.
        total += float((weights * np.where(below > 0, falling, rising)).sum())
    return min(total, 1.0)


def _cdf(z: Floats) -> Floats:
    tail = np.exp(-np.abs(z)) / 2
    return np.asarray(np.where(z < 0, tail, 1 - tail))


def _steps_cdf(steps: Floats, rate: float) -> Floats:
    """Return the probability of at most so many steps of discrete Laplace noise."""
    below = steps < 0
    tail = np.exp(-rate * np.where(below, -steps, steps + 1)) / (1 + math.exp(-rate))
    return np.asarray(np.where(below, tail, 1 - tail))


def _sums(difference: Floats, decay: Floats) -> tuple[Floats, Floats]:
    """Return, at each centre, the sums from the left and from the right."""
    left, right = difference.copy(), difference.copy()
    for k in range(1, difference.shape[1]):
        left[:, k] += left[:, k - 1] * decay[k - 1]
        right[:, -1 - k] += right[:, -k] * decay[-k]
    return left, right


def _positive_inside(
    left: Floats, right: Floats, widths: Floats, rate: float
) -> Floats:
    """Return twice the positive mass strictly between neighbouring centres.

    On a lattice the sum over the points between, but for a factor.
    """
    # The number of steps between two centres is whole, and so is what is left of it.
    room = (np.rint(widths / rate) - 1) * rate if rate else widths
    whole = (left + right) * -np.expm1(-room)
    mixed = np.sign(left) * np.sign(right) < 0
    sizes = (np.abs(np.where(mixed, side, 1.0)) for side in (left, right))
    # The densities meet where left e^{-u} = -right e^{-(w-u)}.
    meet = np.subtract(*(np.log(size) for size in sizes))
    u = (widths + meet) / 2
    u = np.clip(np.floor(u / rate) * rate if rate else u, 0, room)
    first = (left + right * np.exp(u - room)) * -np.expm1(-u)
    second = (left * np.exp(-u) + right) * -np.expm1(u - room)
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

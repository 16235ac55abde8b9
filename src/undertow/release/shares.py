r"""Intervals of a share A / (A + B) of two numbers that got noise of one scale.

The share :math:`\theta` makes :math:`(1-\theta)A - \theta B` zero, so that the noisy
one is noise alone: :math:`(1-\theta)\eta_1 - \theta\eta_2`. The shares at which it is
not too large are the interval.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from undertow.numeric.rounding import inflate
from undertow.release.intervals import IntegerNoise, ratio_interval

__all__ = ["share_interval", "share_radius"]

Array = NDArray[np.float64]
# Covers the rounding of a few dozen floating-point operations.
_MARGIN = 1e-9
# Parts of [0, 1] in which one radius holds.
_PARTS = 128
# Answers at once, so that memory stays small.
_BLOCK = 8192
# From this deviation on, one whole number more or less hardly matters.
_FINE = 16
# Below this probability, Chernoff's bound serves: floats and couplings are too coarse.
_SMALLEST = 1e-20


def share_interval(
    first: Array, second: Array, *, noise: IntegerNoise, beta: float
) -> tuple[Array, Array]:
    r"""Return intervals of A / (A + B) that miss it with probability at most `beta`.

    Parameters
    ----------
    first, second : ndarray
        The noisy A and B, one of each per answer; neither truth is negative.
    noise : IntegerNoise
        The independent noise of both.
    beta : float
        The probability.

    Notes
    -----
    The hull of the :math:`\theta \in [0, 1]` with
    :math:`|\tilde A - \theta(\tilde A + \tilde B)| \le t_i` in the i-th part of [0, 1],
    where the noise at any :math:`\theta` of that part passes :math:`t_i` in size with
    probability at most beta. The true share is left out with at most that probability,
    and no union over two numbers or over parts is needed. Noise of a deviation below 16
    has the range of the ratio over a box of two intervals of beta / 2 instead.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = IntegerNoise("laplace", Fraction(100))
    >>> low, high = share_interval(
    ...     np.array([4e3]), np.array([6e3]), noise=noise, beta=0.05
    ... )
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.379], [0.421])
    """
    if noise.deviation < _FINE:
        t = noise.radius(beta / 2)
        return ratio_interval((first - t, first + t), (second - t, second + t))
    radii = _radii(noise, beta)
    starts = range(0, max(1, len(first)), _BLOCK)
    blocks = [slice(start, start + _BLOCK) for start in starts]
    found = [_hull(first[part], second[part], radii=radii) for part in blocks]
    low, high = (np.concatenate(ends) for ends in zip(*found, strict=True))
    return low, high


def share_radius(noise: IntegerNoise, *, beta: float) -> float:
    """Return the largest half-width of an interval, times A + B.

    It is reached at shares near 0 and 1, and smaller between them.
    """
    if noise.deviation < _FINE:
        return float(noise.radius(beta / 2))
    return float(_radii(noise, beta).max())


def _hull(first: Array, second: Array, *, radii: Array) -> tuple[Array, Array]:
    """Return the ends of the union of what each part of [0, 1] leaves.

    Numbers that leave nothing, or add up to none, say nothing.
    """
    edges = np.linspace(0.0, 1.0, _PARTS + 1)
    total = first + second
    # The second term covers the rounding of the sums.
    reach = radii + 1e-12 * (np.abs(first) + np.abs(second))[:, None]
    above = np.where(total > 0, total, 1.0)[:, None]
    low = np.maximum(edges[:-1], (first[:, None] - reach) / above)
    high = np.minimum(edges[1:], (first[:, None] + reach) / above)
    kept = low <= high
    none = (total <= 0) | ~kept.any(axis=1)
    return (
        np.where(none, 0.0, np.where(kept, low, 1.0).min(axis=1)),
        np.where(none, 1.0, np.where(kept, high, 0.0).max(axis=1)),
    )


def _radii(noise: IntegerNoise, beta: float) -> Array:
    r"""Return the radius of each part of [0, 1].

    Notes
    -----
    The noise is coupled with noise of the continuous law so that they differ by at most
    one, and :math:`|w_1X_1 - w_2X_2|` grows in law with either weight (Birnbaum 1948):
    the largest weights of a part serve for all of it. Proved on the page *Release
    accounting*.
    """
    edges = np.linspace(0.0, 1.0, _PARTS + 1)
    more, less = 1.0 - edges[:-1], edges[1:]
    large, small = np.maximum(more, less), np.minimum(more, less)
    if noise.law == "gaussian":
        sigma = math.sqrt(noise.parameter)
        return _outward(sigma * np.hypot(large, small) * _normal_radius(beta))
    scale = float(noise.parameter)
    return _outward(scale * _laplace_radius(large, small, beta=beta))


def _outward(radii: Array) -> Array:
    return np.asarray(radii * (1.0 + _MARGIN) + 1.0)


def _normal_radius(beta: float) -> float:
    """Return the quantile of a standard normal number's size."""
    if beta < _SMALLEST:
        return math.sqrt(2.0 * math.log(2.0 / beta))
    return inflate(float(-ndtri(beta * (1.0 - _MARGIN) / 2.0)), _MARGIN)


def _laplace_radius(large: Array, small: Array, *, beta: float) -> Array:
    """Return t with Pr[|large X - small Y| > t] = beta for Laplace X and Y of scale 1.

    The search keeps a valid upper end; weights that are almost equal are made equal.
    """
    above = (large + small) * math.log(2.0 / beta)
    if beta < _SMALLEST:
        return above
    below = np.zeros_like(above)
    close = small > 0.99 * large
    square = np.where(close, 0.5, small / large) ** 2
    for _ in range(100):
        t = (below + above) / 2.0
        x = t / large
        apart = (np.exp(-x) - square * np.exp(-t / small)) / (1.0 - square)
        tail = np.where(close, (1.0 + x / 2.0) * np.exp(-x), apart)
        fits = tail <= beta * (1.0 - _MARGIN)
        above, below = np.where(fits, t, above), np.where(fits, below, t)
    return above

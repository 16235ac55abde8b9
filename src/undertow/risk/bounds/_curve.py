r"""Trade-off functions through their tangents: every slope gives a valid bound.

If a mechanism is :math:`f`-DP, it is :math:`(\varepsilon, \delta(\varepsilon))`-DP for
every :math:`\varepsilon \ge 0`, with :math:`\delta(\varepsilon) = \sup_\alpha 1 -
f(\alpha) - e^\varepsilon \alpha`. The gain :math:`g(\alpha) = 1 - f(\alpha) - \alpha`
is the lower envelope of its tangents

.. math:: \delta(\varepsilon) + (e^\varepsilon - 1)\alpha, \qquad
          e^{-\varepsilon}\delta'(\varepsilon) + (1 - e^{-\varepsilon})(1 - \alpha)

with :math:`\delta'` the curve of the inverse function. Each is an upper bound whatever
slope is chosen, so that a search which stops early costs sharpness, never safety, and
no difference of nearly equal numbers is formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import ndtri

from undertow._numeric import inflate
from undertow.privacy import (
    ApproxTradeOff,
    GaussianTradeOff,
    LaplaceTradeOff,
    TradeOff,
)
from undertow.risk.bounds._parts import LARGEST, MARGIN

__all__ = ["capacity", "falling_gain", "gain", "least_along", "rising_gain"]

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_STEPS = 90


def gain(f: TradeOff, *, low: float, high: float) -> float:
    """Bound the largest gain ``1 - f(alpha) - alpha`` on an interval, rounded up."""
    return min(f.total_variation(), rising_gain(f, high), falling_gain(f, low))


def rising_gain(f: TradeOff, level: float) -> float:
    """Bound the gain on ``[0, level]`` by tangents that do not fall."""

    def tangent(epsilon: float) -> float:
        return f.delta(epsilon) + math.expm1(epsilon) * level

    reach = min(LARGEST, math.log1p(1.0 / level)) if level > 1e-300 else LARGEST
    return _least(tangent, _slopes(f, level, sign=1.0), reach=reach)


def falling_gain(f: TradeOff, level: float) -> float:
    """Bound the gain on ``[level, 1]`` by tangents that do not rise."""
    other = f.inverse()

    def tangent(epsilon: float) -> float:
        decay = math.exp(-epsilon)
        return other.delta(epsilon) * decay - math.expm1(-epsilon) * (1.0 - level)

    return _least(tangent, _slopes(f, level, sign=-1.0), reach=LARGEST)


def capacity(f: TradeOff, size: int) -> float:
    r"""Bound :math:`\sum_x \Pr[\Theta_x \mid x] - \Pr[\Theta_x]` over attack regions.

    Lemma 5.14 of the thesis at every point of the curve, the least value taken; with
    :math:`f(q) = (m-1)q` it is :math:`(m-1)(1 - mq)`.
    """

    def lemma(epsilon: float) -> float:
        decay = math.exp(-epsilon)
        top = -math.expm1(-epsilon) + f.delta(epsilon) * size * decay
        return top / (1.0 + (size - 1) * decay)

    slopes = _corners(f) if isinstance(f, ApproxTradeOff) else None
    return (size - 1) * min(1.0, _least(lemma, slopes, reach=LARGEST))


def least_along(value: Callable[[float], float], *, reach: float) -> float:
    """Return the least value seen by a golden-section search on ``[0, reach]``."""
    low, high = 0.0, reach
    best = min(value(low), value(high))
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(_STEPS):
        best = min(best, at_left, at_right)
        # Ties go left: the far end may be flat where everything is disclosed.
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(right)
    return min(best, at_left, at_right)


def _least(
    value: Callable[[float], float], slopes: tuple[float, ...] | None, *, reach: float
) -> float:
    if slopes is None:
        best = least_along(value, reach=reach)
    else:
        best = min(value(slope) for slope in slopes)
    return min(1.0, inflate(best, MARGIN))


def _slopes(f: TradeOff, level: float, *, sign: float) -> tuple[float, ...] | None:
    """Return the logarithm of the slope at a level where it is known, else None."""
    if isinstance(f, ApproxTradeOff):
        return _corners(f)
    if isinstance(f, GaussianTradeOff):
        mu = f._parameters()["mu"]
        slope = _gaussian_slope(mu, level)
    elif isinstance(f, LaplaceTradeOff):
        mu = f._parameters()["mu"]
        slope = -mu - 2.0 * math.log(2.0 * level) if level > 0 else mu
        slope = max(-mu, min(mu, slope))
    else:
        return None
    return (min(LARGEST, max(0.0, sign * slope)),)


def _gaussian_slope(mu: float, level: float) -> float:
    if mu == 0:
        return 0.0
    if mu == math.inf or level == 1:
        return -math.inf
    return mu * -float(ndtri(level)) - mu * mu / 2.0


def _corners(f: ApproxTradeOff) -> tuple[float, ...]:
    # The last is the level piece, where the function has reached 0.
    return (0.0, min(LARGEST, f._parameters()["epsilon"]), LARGEST)

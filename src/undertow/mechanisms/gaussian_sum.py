r"""Sums of :math:`e^{-k^2/2\sigma^2}` over integers: mass, tails and delta.

Everything is in steps of the lattice, so the law is that of the integer Gaussian.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from undertow._numeric import exp_up, inflate, nudge_up
from undertow.privacy.exact import round_down, sqrt_up
from undertow.privacy.gaussian import gdp_delta

__all__ = [
    "delta_smooth",
    "delta_up",
    "far_ratios",
    "log_normaliser",
    "log_tail_smooth",
    "tail_ratios",
]

_MARGIN = 1e-12
# Most terms that an exact sum for delta may have.
_LARGEST_SUM = 1 << 22
# Steps over sigma beyond which logarithms of tails leave the floats, and the square at
# which tails themselves do, exp(-800).
_FARTHEST, _NOTHING = 1e150, 1600


@lru_cache(maxsize=64)
def log_normaliser(variance: Fraction) -> float:
    """Return the log of the sum of exp(-k^2 / 2 variance) over the integers."""
    v = float(variance)
    if v >= 9:  # by Poisson summation the rest is below exp(-18 pi^2)
        return math.log(2 * math.pi * v) / 2
    return math.log(math.fsum(math.exp(-k * k / (2 * v)) for k in range(-120, 121)))


@lru_cache(maxsize=16)
def tail_ratios(variance: Fraction) -> NDArray[np.float64]:
    """Return P[Z >= m] / P[Z = m] for m = 0, 1, ..., backwards from the far end."""
    v = float(variance)
    last = math.ceil(40 * math.sqrt(v)) + 2
    ratio = float(far_ratios(np.array([float(last)]), v)[0])
    ratios = [ratio]
    for m in range(last - 1, -1, -1):
        ratio = 1 + math.exp(-(2 * m + 1) / (2 * v)) * ratio
        ratios.append(ratio)
    return np.array(ratios[::-1])


def far_ratios(steps: NDArray[np.float64], v: float) -> NDArray[np.float64]:
    """Return P[Z >= m] / P[Z = m] past 40 sigma, where it has few terms."""
    j = np.arange(math.ceil(math.sqrt(v)) + 40, dtype=np.float64)
    with np.errstate(over="ignore"):
        terms = np.exp(-np.multiply.outer(steps, j) / v - j**2 / (2 * v))
    return np.asarray(terms.sum(axis=-1))


def log_tail_smooth(steps: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Return log P[Z >= m] by the midpoint rule and its correction.

    The correction is exact for an exponential tail, to which the law tends.
    """
    sigma = math.sqrt(variance)
    x = np.minimum((steps - 0.5) / sigma, _FARTHEST)
    hazard = math.sqrt(2 / math.pi) / erfcx(x / math.sqrt(2))
    b = np.sqrt(x * hazard / variance)  # log of (b / 2) / sinh(b / 2)
    # Below, the two last terms cancel to less than a float can add.
    safe = np.maximum(b, 1e-12)
    return np.asarray(log_ndtr(-x) + np.log(safe / -np.expm1(-safe)) - safe / 2)


def delta_up(variance: Fraction, t: int, epsilon: Fraction) -> float:
    """Return delta at integer distance t, rounded up."""
    c = math.ceil(epsilon * variance / t + Fraction(t, 2))
    v, first = float(variance), c - t
    if first**2 > _NOTHING * variance:  # both tails are nothing, or nearly everything
        return 1.0 if first < 0 else math.nextafter(0.0, 1.0)
    last = max(first, 0) + math.ceil(min(40 * math.sqrt(v), 800 * v / max(first, 1)))
    if last - first > _LARGEST_SUM:
        return delta_smooth(variance, t, epsilon=epsilon, c=c)
    # The terms are p(j) (1 - exp(epsilon - (2 j t + t^2) / 2v)) for j = k - t, and p(j)
    # is taken relative to its largest value, so that no term underflows.
    top = max(first, 0)
    j = np.arange(first, last + 1, dtype=np.float64)
    lead = float(epsilon - Fraction(2 * first * t + t * t) / (2 * variance))
    gap = -np.expm1(np.minimum(lead - (j - first) * (t / v), 0.0))
    terms = np.exp(-(j - top) * (j + top) / (2 * v)) * gap
    height = -float(Fraction(top * top) / (2 * variance)) - log_normaliser(variance)
    total = math.fsum(terms.tolist())
    nearest = math.exp(height + math.log(total)) if total else 0.0
    return nudge_up(inflate(nearest, 2e-12))


def delta_smooth(variance: Fraction, t: int, *, epsilon: Fraction, c: int) -> float:
    """Bound delta by the continuous curve and the error of the midpoint rule."""
    sigma = math.sqrt(variance)
    delta = gdp_delta(sqrt_up(Fraction(t * t) / variance), round_down(epsilon))
    near, far = (c - t - 0.5) / sigma, (c - 0.5) / sigma
    variation = _variation(near, Fraction(0)) + _variation(far, epsilon)
    return inflate(delta + variation / (8 * float(variance)), _MARGIN)


def _variation(start: float, log_weight: Fraction) -> float:
    """Bound the variation of the weighted normal density's slope from `start` on."""
    # It is start * density from 1 on, and 4 times the density at 1 over all reals.
    if start < 1:
        return 4 * exp_up(log_weight - Fraction(1, 2)) / math.sqrt(2 * math.pi)
    height = exp_up(log_weight - Fraction(start) ** 2 / 2)
    return start * height / math.sqrt(2 * math.pi)

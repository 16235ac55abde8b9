r"""Closed forms of histogram encodings: Laplace noise of scale 2/epsilon on one-hot.

SHE sends the noisy vector, THE which of its coordinates pass a threshold.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import check_probability
from undertow.mechanisms.local.base import (
    Knowledge,
    advantage_up,
    read_categories,
    read_level,
)
from undertow.mechanisms.local.unary_formula import inverse_mean, unary_from_gap
from undertow.privacy.exact import round_up

__all__ = [
    "read_threshold",
    "she_advantage",
    "she_success",
    "she_variation",
    "the_advantage",
    "the_threshold",
    "the_variation",
]


def she_variation(epsilon: float) -> float:
    r"""Return the total variation of summation with histogram encoding, rounded up.

    .. math:: 1 - e^{-\varepsilon/2}(1 + \varepsilon/4)

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 5. The same for every number of
    categories.

    Examples
    --------
    >>> round(she_variation(1.0), 10)
    0.2418366754
    """
    level = read_level(epsilon)
    if level == math.inf:
        return 1.0
    tail = level / 4.0 * math.exp(-level / 2.0)
    return advantage_up(-math.expm1(-level / 2.0) - tail)


def she_success(categories: SupportsIndex, epsilon: float) -> float:
    r"""Return the success of the most likely guess, uniform prior, rounded up.

    With :math:`a = \tfrac12 e^{-\varepsilon/2}`,

    .. math:: \tfrac12 h(m, a) + \tfrac{a}{2}\int_a^{1/2} \frac{(1-u)^{m-1}}{u^2}\,du
              + \frac{a\,2^{-(m-1)}}{m}

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        Non-negative.

    Returns
    -------
    float
        Raised by its rounding margin.

    Notes
    -----
    The likelihood of x depends on the report only through its coordinate cut to
    [0, 1]; ties at either end are broken uniformly. Optimal under the uniform prior.
    The integral is a finite sum by parts, of O(m) terms; its rounding error is below
    :math:`10^{-15} m`, by which the value is raised.

    Examples
    --------
    >>> round(she_success(10, 1.0), 8), she_success(10, 1e4)
    (0.16366626, 1.0)
    """
    m, level = read_categories(categories), read_level(epsilon)
    a = 0.5 * math.exp(-level / 2.0)
    if a == 0.0:
        return 1.0
    ends = 0.5 * inverse_mean(m, a) + a * math.ldexp(1.0, -(m - 1)) / m
    middle = _middle(m, a, level)
    return min(1.0, advantage_up(ends + middle) + 1e-15 * m * a)


def _middle(m: int, a: float, level: float) -> float:
    """Return a/2 times the integral of (1-u)^(m-1)/u^2 over [a, 1/2]."""
    power = math.exp((m - 1) * math.log1p(-a))
    half = math.ldexp(1.0, -(m - 1))
    j = np.arange(1, m - 1)
    # Integral of (1-u)^(m-2)/u: the log of the ends less a geometric sum, term by term.
    parts = (np.exp2(-j) - np.exp(j * math.log1p(-a))) / j
    rest = math.fsum([level / 2.0, *parts.tolist()])
    return 0.5 * (power - 2.0 * a * half - a * (m - 1) * rest)


def she_advantage(categories: SupportsIndex, epsilon: float) -> float:
    r"""Return the largest advantage, uniform prior and no knowledge, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        Raised by its rounding margin.

    Notes
    -----
    The success of the most likely guess less 1/m. Proved on the page *Local
    protocols*, Proposition 5.

    Examples
    --------
    >>> round(she_advantage(100, 3.0), 8)
    0.03481685
    """
    m = read_categories(categories)
    return max(0.0, round_up(Fraction(she_success(m, epsilon)) - Fraction(1, m)))


def the_threshold(epsilon: float) -> float:
    r"""Return the threshold in [1/2, 1] of the least variance for rare categories.

    Parameters
    ----------
    epsilon : float
        Positive and finite.

    Returns
    -------
    float
        Rounded to nearest.

    Notes
    -----
    The minimum of :math:`q(1-q)/(p-q)^2` is the only zero of
    :math:`(1-2q)(p-q) - 2(1-q)(1-p-q)`, found by bisection.

    Examples
    --------
    >>> round(the_threshold(1.0), 9), round(the_threshold(4.0), 9)
    (0.618553443, 0.815675788)
    """
    level = read_level(epsilon)
    if level in (0.0, math.inf):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}.")
    low, high = 0.5, 1.0
    while low < (middle := (low + high) / 2.0) < high:
        miss, q = 0.5 * math.exp(level * (middle - 1) / 2), _noise(level, middle)
        slope = (1 - 2 * q) * (1 - miss - q) - 2 * (1 - q) * (miss - q)
        low, high = (middle, high) if slope > 0 else (low, middle)
    return low


def the_variation(epsilon: float, *, threshold: float | None = None) -> float:
    r"""Return :math:`p - q` of the thresholded bits, rounded up.

    .. math:: p = 1 - \tfrac12 e^{\varepsilon(t-1)/2}, \quad
              q = \tfrac12 e^{-\varepsilon t/2}

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`.
    threshold : float, optional
        The t, in (0, 1); by default :func:`the_threshold`.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 2.

    Examples
    --------
    >>> round(the_variation(1.0), 6)
    0.219831
    """
    level = read_level(epsilon)
    return advantage_up(_gap(level, read_threshold(level, threshold)))


def the_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    threshold: float | None = None,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against the thresholded bits, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    threshold : float, optional
        The t, in (0, 1); by default :func:`the_threshold`.
    prior : array_like of shape (m,), optional
        In any order; uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    That of a unary encoding with the bits of :func:`the_variation`; exact relative to
    the bits, below that of the noisy vector.

    Examples
    --------
    >>> round(the_advantage(10, 1.0) + 0.1, 8)
    0.15892362
    """
    m, level = read_categories(categories), read_level(epsilon)
    cut = read_threshold(level, threshold)
    gap, q = _gap(level, cut), _noise(level, cut)
    return unary_from_gap(m, gap, noise=q, prior=prior, knowledge=knowledge)


def read_threshold(level: float, threshold: float | None) -> float:
    """Read a threshold in (0, 1); None is the one of the least variance."""
    if threshold is None:
        return the_threshold(level)
    return check_probability(threshold, "threshold", open_interval=True)


def _noise(level: float, threshold: float) -> float:
    return 0.5 * math.exp(-level * threshold / 2.0)


def _gap(level: float, threshold: float) -> float:
    hit = math.expm1(-level * (1.0 - threshold) / 2.0)
    return -0.5 * (hit + math.expm1(-level * threshold / 2.0))

r"""Closed forms of unary encodings: the advantage from the two bit probabilities.

Bit x of the report of x is 1 with probability p, every other bit with probability q.
"""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_probability
from undertow.mechanisms.local.base import (
    Knowledge,
    advantage_up,
    disagreement,
    read_categories,
    read_knowledge,
    read_level,
    read_prior,
)

__all__ = [
    "inverse_mean",
    "oue_advantage",
    "oue_variation",
    "sue_advantage",
    "sue_variation",
    "unary_advantage",
    "unary_from_gap",
    "unary_success",
]


def inverse_mean(categories: int, rate: float) -> float:
    r"""Return :math:`E[1/(1+B)]` for B binomial over m - 1 tosses.

    .. math:: h(m, q) = \frac{1 - (1-q)^m}{mq}

    Examples
    --------
    >>> inverse_mean(5, 0.0), round(inverse_mean(2, 0.5), 12)
    (1.0, 0.75)
    """
    if rate == 0.0:
        return 1.0
    if rate == 1.0:
        return 1.0 / categories
    return -math.expm1(categories * math.log1p(-rate)) / (categories * rate)


def unary_success(categories: SupportsIndex, *, keep: float, noise: float) -> float:
    r"""Return how often a uniform one-bit is the truth, uniform prior, rounded up.

    .. math:: p\,h(m, q) + (1-p)(1-q)^{m-1}/m

    Parameters
    ----------
    categories : int
        The m; at least two.
    keep, noise : float
        The p and q, in [0, 1].

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Where no bit is 1 the attack guesses uniformly. It is optimal under the uniform
    prior if p is at least q.

    Examples
    --------
    >>> round(unary_success(10, keep=0.5, noise=0.2689414213699951), 8)
    0.1807898
    """
    m, p, q = _read_bits(categories, keep, noise)
    blank = 0.0 if q == 1.0 else math.exp((m - 1) * math.log1p(-q))
    return advantage_up(p * inverse_mean(m, q) + (1.0 - p) * blank / m)


def unary_advantage(
    categories: SupportsIndex,
    *,
    keep: float,
    noise: float,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against a unary encoding, rounded up.

    .. math:: \frac{p-q}{1-q} \sum_i (1-q)^{m-i} \pi_i
              \Bigl[(1-\pi_i) - q \sum_{z<i} \pi_z\Bigr],
              \quad \pi_1 \le \dots \le \pi_m

    without knowledge, and :math:`(p-q)(1-\kappa_\pi)` with full knowledge.

    Parameters
    ----------
    categories : int
        The m; at least two.
    keep, noise : float
        The p and q, with :math:`0 \le q \le p \le 1` and q below 1.
    prior : array_like of shape (m,), optional
        In any order; uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Exact up to a relative 1e-12, by which it is raised.

    Notes
    -----
    Thesis, Examples 5.5 and A.17 (there for one choice of p and q), whose order of the
    prior is ascending. Proved on the page *Local protocols*. O(m log m).

    Examples
    --------
    >>> q = 0.2689414213699951
    >>> round(unary_advantage(10, keep=0.5, noise=q), 9)
    0.080789798
    >>> round(unary_advantage(10, keep=0.5, noise=q, knowledge="full"), 9)
    0.207952721
    """
    m, p, q = _read_bits(categories, keep, noise)
    if not q <= p or q == 1.0:
        raise ValueError(
            f"keep must be at least noise and noise below 1, got {p} and {q}."
        )
    return unary_from_gap(m, p - q, noise=q, prior=prior, knowledge=knowledge)


def unary_from_gap(
    categories: int,
    gap: float,
    *,
    noise: float,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    """Return the advantage from :math:`p - q`, for callers who have it accurately."""
    read_knowledge(knowledge)
    m, q = categories, noise
    if knowledge == "full":
        return advantage_up(gap * disagreement(prior, m))
    if prior is None:
        # (1 - (1 - q)^(m-1)) / (m q), with its limit at q = 0
        return advantage_up(gap * (m - 1) / m * inverse_mean(m - 1, q))
    return advantage_up(gap * _ordered_sum(read_prior(prior, m), q), terms=m)


def _ordered_sum(prior: NDArray[np.float64], q: float) -> float:
    pi = np.sort(prior)
    below = np.concatenate([[0.0], np.cumsum(pi)[:-1]])
    later = np.arange(len(pi) - 1, -1, -1)  # m - i
    weights = np.exp((later - 1.0) * math.log1p(-q))
    # 1 - pi is the mass below and above; adding it up keeps small terms exact.
    above = np.concatenate([np.cumsum(pi[::-1])[::-1][1:], [0.0]])
    return math.fsum((weights * pi * (above + (1.0 - q) * below)).tolist())


def _read_bits(
    categories: SupportsIndex, keep: float, noise: float
) -> tuple[int, float, float]:
    m = read_categories(categories)
    return m, check_probability(keep, "keep"), check_probability(noise, "noise")


def sue_variation(epsilon: float) -> float:
    r"""Return :math:`\tanh(\varepsilon/4)`, the total variation of SUE, rounded up.

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
    Proved on the page *Local protocols*, Proposition 2.

    Examples
    --------
    >>> round(sue_variation(1.0), 10)
    0.2449186624
    """
    return advantage_up(math.tanh(read_level(epsilon) / 4.0))


def oue_variation(epsilon: float) -> float:
    r"""Return :math:`\tfrac12\tanh(\varepsilon/2)`, the total variation of OUE.

    Rounded up.

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
    Proved on the page *Local protocols*, Proposition 2.

    Examples
    --------
    >>> round(oue_variation(1.0), 10)
    0.2310585786
    """
    return min(0.5, advantage_up(math.tanh(read_level(epsilon) / 2.0) / 2.0))


def sue_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against symmetric unary encoding, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
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
    Proved on the page *Local protocols*, Proposition 2.

    Examples
    --------
    >>> round(sue_advantage(10, 1.0), 6)
    0.063962
    """
    m, level = read_categories(categories), read_level(epsilon)
    q = 1.0 / (1.0 + _exp(level / 2.0))
    gap = math.tanh(level / 4.0)
    return unary_from_gap(m, gap, noise=q, prior=prior, knowledge=knowledge)


def oue_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against optimised unary encoding, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
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
    Thesis, Example 5.5. Uniform prior, no knowledge:
    :math:`\frac{e^\varepsilon-1}{2m}(1-(e^\varepsilon/(1+e^\varepsilon))^{m-1})`, at
    most :math:`(m-1)/2m` whatever epsilon is. That prior is not the worst.

    Examples
    --------
    >>> round(oue_advantage(11, 3.0), 6), round(oue_advantage(11, 1e4), 6)
    (0.333858, 0.454545)
    """
    m, level = read_categories(categories), read_level(epsilon)
    q = 1.0 / (1.0 + _exp(level))
    gap = math.tanh(level / 2.0) / 2.0
    return unary_from_gap(m, gap, noise=q, prior=prior, knowledge=knowledge)


def _exp(level: float) -> float:
    return math.exp(level) if level < 709.0 else math.inf

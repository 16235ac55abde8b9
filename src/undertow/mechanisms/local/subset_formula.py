r"""Closed forms of subset selection.

A report is a set of :math:`\omega` of the m categories; it holds the true one with
probability :math:`p = \omega e^\varepsilon/(\omega e^\varepsilon + m - \omega)` and is
otherwise uniform. The size steps down as epsilon grows, so nothing here is continuous.
"""

from __future__ import annotations

import math
from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_count
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
    "read_subset",
    "subset_advantage",
    "subset_breakpoints",
    "subset_size",
    "subset_success",
    "subset_variation",
]

# Keeps a ratio that is a whole number but for its rounding from losing a unit.
_GUARD = 1e-9


def subset_size(
    categories: SupportsIndex,
    epsilon: float,
    *,
    rule: Literal["floor", "nearest"] = "floor",
) -> int:
    r"""Return the size of the reported set.

    .. math:: \omega = \max(1, \lfloor m/(e^\varepsilon + 1) \rfloor)

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    rule : {"floor", "nearest"}
        Rounding; published curves differ in it.

    Returns
    -------
    int
        At least one, at most m/2 but for two categories.

    Notes
    -----
    The floor is taken after adding 1e-9, so that exact ratios survive their rounding.

    Examples
    --------
    >>> subset_size(10, 1.0), subset_size(1000, math.log(199)), subset_size(10, 1e4)
    (2, 5, 1)
    """
    m, level = read_categories(categories), read_level(epsilon)
    check_choice(rule, "rule", choices=("floor", "nearest"))
    ratio = m * math.exp(-level) / (1.0 + math.exp(-level))
    whole = math.floor(ratio + _GUARD) if rule == "floor" else round(ratio)
    return max(1, whole)


def subset_breakpoints(categories: SupportsIndex) -> NDArray[np.float64]:
    r"""Return the levels :math:`\ln(m/\omega - 1)` after which the size drops, rising.

    The i-th entry, from 0, ends the range of the size ``m // 2 - i``; sizes that are
    reached at no positive level are left out, and so is size 1, which never ends.

    Parameters
    ----------
    categories : int
        The m; at least two.

    Returns
    -------
    ndarray of float
        Rising; empty below four categories.

    Notes
    -----
    Between two of them the advantage grows with epsilon; a search goes from one to the
    next.

    Examples
    --------
    >>> subset_breakpoints(10).round(6).tolist()
    [0.0, 0.405465, 0.847298, 1.386294]
    """
    m = read_categories(categories)
    sizes = np.arange(m // 2, 1, -1)
    return np.asarray(np.log((m - sizes) / sizes))


def read_subset(categories: int, epsilon: float, subset: int | None) -> int:
    """Read a subset size below m; None is the floor rule."""
    size = subset_size(categories, epsilon) if subset is None else subset
    size = check_count(size, "subset")
    if size >= categories:
        raise ValueError(f"subset must be below {categories} categories, got {size}.")
    return size


def subset_variation(
    categories: SupportsIndex, epsilon: float, *, subset: int | None = None
) -> float:
    r"""Return the total variation :math:`(pm-\omega)/(m-1)`, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    subset : int, optional
        The size; by default that of the floor rule.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 3.

    Examples
    --------
    >>> round(subset_variation(10, 1.0), 10)
    0.2273440835
    """
    m, level = read_categories(categories), read_level(epsilon)
    size = read_subset(m, level, subset)
    return advantage_up(_excess(m, level, size) / (m - 1))


def subset_success(
    categories: SupportsIndex, epsilon: float, *, subset: int | None = None
) -> float:
    r"""Return how often a uniform element of the report is the truth, rounded up.

    .. math:: p/\omega = 1/(\omega + (m-\omega)e^{-\varepsilon})

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    subset : int, optional
        The size; by default that of the floor rule.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Thesis, Example 5.6; uniform prior, under which the attack is optimal.

    Examples
    --------
    >>> round(subset_success(10, 1.0), 8)
    0.20230484
    """
    m, level = read_categories(categories), read_level(epsilon)
    size = read_subset(m, level, subset)
    return advantage_up(1.0 / (size + (m - size) * math.exp(-level)))


def subset_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    subset: int | None = None,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against subset selection, rounded up.

    Uniform prior, no knowledge: :math:`p/\omega - 1/m`. Full knowledge:
    :math:`\frac{pm-\omega}{m-1}(1-\kappa_\pi)`. Any prior, no knowledge, with
    :math:`\pi_1 \le \dots \le \pi_m`,

    .. math:: \frac{pm-\omega}{m-\omega}
              \sum_{i \ge \omega} \frac{\binom{i-1}{\omega-1}}{\binom{m-1}{\omega-1}}
              \pi_i \Bigl[(1-\pi_i) - \tfrac{\omega-1}{i-1} \sum_{z<i} \pi_z\Bigr].

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    subset : int, optional
        The size; by default that of the floor rule.
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
    Thesis, Examples 5.6 and A.18, for the uniform prior; the rest is proved on the page
    *Local protocols*. Not monotone in epsilon with full knowledge: where the size
    drops, the value without knowledge jumps up and the other jumps down. O(m log m).

    Examples
    --------
    >>> round(subset_advantage(10, 1.0), 9)
    0.102304838
    >>> round(subset_advantage(10, 1.0, knowledge="full"), 9)
    0.204609675
    """
    m, level = read_categories(categories), read_level(epsilon)
    size = read_subset(m, level, subset)
    excess = _excess(m, level, size)
    if read_knowledge(knowledge) == "full":
        return advantage_up(excess / (m - 1) * disagreement(prior, m))
    if prior is None:
        return advantage_up(excess / (m * size))
    weight = _ordered_sum(read_prior(prior, m), size)
    return advantage_up(excess / (m - size) * weight, terms=m)


def _excess(m: int, level: float, size: int) -> float:
    """Return p m - omega."""
    odds = math.exp(-level)
    return size * (m - size) * -math.expm1(-level) / (size + (m - size) * odds)


def _ordered_sum(prior: NDArray[np.float64], size: int) -> float:
    pi, m = np.sort(prior), len(prior)
    below = np.concatenate([[0.0], np.cumsum(pi)[:-1]])
    above = np.concatenate([np.cumsum(pi[::-1])[::-1][1:], [0.0]])
    rank = np.arange(size, m)  # i - 1 = size, ..., m - 1
    # Ratios of binomials from the top down: C(i-2, w-1)/C(i-1, w-1) = (i-w)/(i-1).
    steps = np.log1p(-(size - 1) / rank)[::-1]
    logs = np.concatenate([[0.0], np.cumsum(steps)])[::-1]  # i = size, ..., m
    i = np.arange(size, m + 1)
    share = (size - 1) / np.maximum(i - 1, 1)
    start = size - 1
    terms = pi[start:] * (above[start:] + (1.0 - share) * below[start:])
    return math.fsum((np.exp(logs) * terms).tolist())

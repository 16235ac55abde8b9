r"""Closed forms of local hashing.

Each report carries the seed of its hash, so the attacker knows the function. With a
fully random hash the protocol is a unary encoding in disguise: the bits
:math:`[H(x) = \theta]` have :math:`p = p_g` and :math:`q = 1/g`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Literal, SupportsIndex

from numpy.typing import ArrayLike

from undertow._validate import check_choice, check_count
from undertow.mechanisms.local.base import (
    Knowledge,
    advantage_up,
    read_categories,
    read_level,
)
from undertow.mechanisms.local.unary_formula import unary_from_gap, unary_success
from undertow.mechanisms.values import PRECISE

__all__ = [
    "hash_buckets",
    "hashing_advantage",
    "hashing_success",
    "hashing_variation",
]

_GUARD = Decimal("1e-9")


def hash_buckets(epsilon: float, *, rule: Literal["floor", "nearest"] = "floor") -> int:
    r"""Return the number of buckets of optimised local hashing.

    .. math:: g = \lfloor e^\varepsilon + 1 \rfloor

    Parameters
    ----------
    epsilon : float
        Non-negative and finite.
    rule : {"floor", "nearest"}
        Rounding; published curves differ in it.

    Returns
    -------
    int
        At least two.

    Notes
    -----
    The floor is taken after adding 1e-9, so that exact powers survive their rounding.

    Examples
    --------
    >>> hash_buckets(1.0), hash_buckets(1.0, rule="nearest"), hash_buckets(math.log(3))
    (3, 4, 4)
    """
    level = read_level(epsilon)
    check_choice(rule, "rule", choices=("floor", "nearest"))
    if level == math.inf:
        raise ValueError("epsilon must be finite, got inf; there are no more buckets.")
    shift = _GUARD if rule == "floor" else Decimal("0.5")
    return int(PRECISE.add(PRECISE.exp(Decimal(level)), 1 + shift))


def hashing_variation(epsilon: float, *, buckets: int, ideal: bool = True) -> float:
    r"""Return the total variation of local hashing, rounded up.

    .. math:: (p_g - q_g)(1 - 1/g) = p_g - 1/g

    Parameters
    ----------
    epsilon : float
        Non-negative.
    buckets : int
        The g; at least two.
    ideal : bool
        Whether any two categories collide with probability exactly 1/g. Otherwise
        :math:`p_g - q_g`, which holds for every hash.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 4.

    Examples
    --------
    >>> round(hashing_variation(1.0, buckets=3), 7)
    0.2427836
    """
    level, g = read_level(epsilon), check_count(buckets, "buckets", minimum=2)
    return advantage_up(_gap(level, g) * (1.0 - _inverse(g) if ideal else 1.0))


def hashing_success(
    categories: SupportsIndex, epsilon: float, *, buckets: int
) -> float:
    r"""Return the success of a uniform guess in the reported bucket, rounded up.

    .. math:: p_g\,h(m, 1/g) + (1-p_g)(1-1/g)^{m-1}/m

    Uniform prior, ideal hash; the attack guesses uniformly where the bucket is empty.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    buckets : int
        The g; at least two.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 4. Optimal under the
    uniform prior; assumed and not checkable: an ideal hash.

    Examples
    --------
    >>> round(hashing_success(10, 1.0, buckets=2), 8)
    0.14612146
    """
    m, level = read_categories(categories), read_level(epsilon)
    g = check_count(buckets, "buckets", minimum=2)
    return unary_success(m, keep=1.0 / (1.0 + _scaled(level, g)), noise=_inverse(g))


def hashing_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    buckets: int,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against local hashing with an ideal hash.

    Uniform prior, no knowledge: :math:`\frac{p_g-q_g}{m}(g(1-(1-1/g)^m) - 1)`; full
    knowledge: :math:`(p_g-q_g)(1-1/g)(1-\kappa_\pi)`. For any prior it is that of the
    unary encoding with :math:`p = p_g` and :math:`q = 1/g`.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        Non-negative.
    buckets : int
        The g; at least two.
    prior : array_like of shape (m,), optional
        Uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*. Assumed and not checkable: fully independent
    uniform hash values (pairwise is enough with full knowledge); a guarantee that
    needs no such assumption is that of
    :class:`~undertow.mechanisms.local.LocalHashing`. With g growing
    with epsilon the value is not monotone: it drops where g jumps. O(m log m).

    Examples
    --------
    >>> round(hashing_advantage(3, 1.0, buckets=2), 6)
    0.115529
    """
    m, level = read_categories(categories), read_level(epsilon)
    g = check_count(buckets, "buckets", minimum=2)
    gap, rate = _gap(level, g) * (1.0 - _inverse(g)), _inverse(g)
    return unary_from_gap(m, gap, noise=rate, prior=prior, knowledge=knowledge)


def _scaled(level: float, g: int) -> float:
    """Return (g - 1) e^-epsilon, for g beyond the range of floats too."""
    return math.exp(math.log(g - 1) - level)


def _gap(level: float, g: int) -> float:
    """Return p_g - q_g."""
    return -math.expm1(-level) / (1.0 + _scaled(level, g))


def _inverse(g: int) -> float:
    return 1.0 / g if g.bit_length() < 1000 else 0.0

"""Arithmetic on the extended non-negative reals, where every loss lives.

A distance of infinity means "no promise for this pair". The rules differ from IEEE
arithmetic in one place that matters: zero times an infinite distance is infinite,
because a guarantee of zero per step says nothing about pairs that no chain of steps
connects.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from undertow.privacy.exact import Exact

__all__ = ["ext_l2", "ext_max", "ext_scale", "ext_sum"]


def ext_scale(factor: Exact, distance: Exact) -> Exact:
    """Return `factor` times `distance`; infinite whenever the distance is.

    Exact inputs give an exact product.

    Examples
    --------
    >>> ext_scale(0.0, math.inf), ext_scale(math.inf, 0), ext_scale(0, 3)
    (inf, 0, 0)
    """
    _refuse_nan_and_negative(factor, distance)
    if distance == 0:
        return 0
    if distance == math.inf or factor == math.inf:
        return math.inf
    if isinstance(factor, float) or isinstance(distance, float):
        return float(factor) * float(distance)
    return factor * distance


def ext_sum(values: Iterable[Exact]) -> Exact:
    """Return the sum; exact for fractions, correctly rounded for floats.

    Examples
    --------
    >>> ext_sum([1, math.inf]), ext_sum([Fraction(1, 10)] * 3)
    (inf, Fraction(3, 10))
    """
    terms = list(values)
    _refuse_nan_and_negative(*terms)
    if any(term == math.inf for term in terms):
        return math.inf
    if any(isinstance(term, float) for term in terms):
        return math.fsum(terms)
    return sum(terms, start=Fraction(0))


def ext_l2(values: Iterable[Exact]) -> float:
    """Return the Euclidean norm without overflow in the squares.

    Examples
    --------
    >>> ext_l2([3, 4])
    5.0
    """
    terms = [float(term) for term in values]
    _refuse_nan_and_negative(*terms)
    return math.hypot(*terms)


def ext_max(values: Iterable[Exact]) -> Exact:
    """Return the maximum over releases; an empty set costs nothing."""
    terms = list(values)
    _refuse_nan_and_negative(*terms)
    return max(terms, default=0)


def _refuse_nan_and_negative(*values: Exact) -> None:
    for value in values:
        if not value >= 0:
            raise ValueError(
                f"an extended non-negative real must be in [0, inf], got {value}."
            )

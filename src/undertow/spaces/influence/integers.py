"""Exact sums at the speed of machine integers.

Costs are fractions. Over their common denominator they are integers, whose sums and
comparisons are exact; they fit into 64 bits for ordinary budgets and fall back to
Python integers otherwise. An infinite cost is counted beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from undertow.privacy.exact import Exact

__all__ = ["Scaled", "add_runs", "is_short", "run_totals", "scale", "settle"]

_WORD = 2**62
# Budgets with thousands of unrelated denominators are rounded up to this grid.
_LARGEST_DENOMINATOR_BITS = 4096


@dataclass(frozen=True, slots=True)
class Scaled:
    """Costs as integers over one denominator.

    Parameters
    ----------
    numerators : list of int
        Zero where the cost is infinite.
    infinite : list of bool
        Which costs are infinite.
    denominator : int
        Common to all.
    rounded : bool
        Whether costs had to be rounded up.
    """

    numerators: list[int]
    infinite: list[bool]
    denominator: int
    rounded: bool

    def value(self, numerator: int) -> Fraction:
        """Return an integer total as the fraction it stands for."""
        return Fraction(numerator, self.denominator)

    @property
    def small(self) -> bool:
        """Whether every sum of distinct entries fits into a machine word."""
        return sum(self.numerators) < _WORD

    def array(self) -> NDArray[np.int64] | NDArray[np.object_]:
        """Return the numerators as an array that cannot overflow in sums."""
        if 4 * sum(self.numerators) < _WORD:
            return np.array(self.numerators, dtype=np.int64)
        return np.array(self.numerators, dtype=object)


def scale(costs: Sequence[Exact]) -> Scaled:
    """Bring costs over their common denominator.

    Examples
    --------
    >>> scaled = scale([Fraction(1, 2), Fraction(1, 3), math.inf])
    >>> scaled.numerators, scaled.denominator, scaled.infinite
    ([3, 2, 0], 6, [False, False, True])
    """
    # Only the float infinity is not a rational number here.
    infinite = [isinstance(cost, float) for cost in costs]
    finite: list[int | Fraction] = [
        0 if isinstance(cost, float) else cost for cost in costs
    ]
    denominator = 1
    for other in {cost.denominator for cost in finite}:
        denominator = math.lcm(denominator, other)
        if not is_short(denominator):
            grid = 1 << _LARGEST_DENOMINATOR_BITS
            return Scaled([math.ceil(c * grid) for c in finite], infinite, grid, True)
    numerators = [c.numerator * (denominator // c.denominator) for c in finite]
    return Scaled(numerators, infinite, denominator, False)


def is_short(denominator: int) -> bool:
    """Return whether costs over this denominator are kept exactly."""
    return denominator.bit_length() <= _LARGEST_DENOMINATOR_BITS


def settle(numerators: list[int], denominator: int) -> Scaled:
    """Return integers over a common denominator as :func:`scale` returns their costs.

    Examples
    --------
    >>> settle([2, 4], 6).numerators, settle([1, 1], 3**4000).rounded
    ([2, 4], True)
    """
    infinite = [False] * len(numerators)
    if not is_short(denominator):
        common = math.gcd(denominator, *numerators)
        numerators = [number // common for number in numerators]
        denominator //= common
    if is_short(denominator):
        return Scaled(numerators, infinite, denominator, False)
    grid = 1 << _LARGEST_DENOMINATOR_BITS
    rounded = [-(-number * grid // denominator) for number in numerators]
    return Scaled(rounded, infinite, grid, True)


def run_totals(
    rows: int,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    values: Sequence[int],
) -> Sequence[int] | NDArray[np.int64]:
    """Add constant runs over ``0..rows-1``: one cumulative sum of differences.

    Examples
    --------
    >>> run_totals(3, np.array([0, 1]), np.array([2, 3]), [5, 7]).tolist()
    [5, 12, 7]
    """
    if sum(values) < _WORD:
        return add_runs(rows, starts, stops, np.array(values, dtype=np.int64))
    steps = [0] * (rows + 1)
    for start, stop, value in zip(starts.tolist(), stops.tolist(), values, strict=True):
        steps[start] += value
        steps[stop] -= value
    return list(accumulate(steps[:-1]))


def add_runs(
    rows: int,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    amounts: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Add constant runs whose sum is known to fit into a machine word."""
    jumps = np.zeros(rows + 1, dtype=np.int64)
    np.add.at(jumps, starts, amounts)
    np.subtract.at(jumps, stops, amounts)
    return np.cumsum(jumps[:-1])

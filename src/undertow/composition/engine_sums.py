"""Exact sums of rates over very many claims, column by column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.composition.engine_claims import ClaimTable
from undertow.privacy.exact import Exact

__all__ = ["WORD", "ColumnSums", "column_sums"]

Integers = NDArray[np.int64]

WORD = 2**62
"""Integers below it may be added and subtracted in machine words."""

# Claims looked at in one go: few enough for their rates to stay in the cache.
_BLOCK = 2**15


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """The sum of the rates of each column, over one denominator.

    Parameters
    ----------
    numerators : ndarray of int, or list of int
        An array where the sum over all columns is below 2**62.
    infinite : ndarray of bool
        Columns with an infinite rate.
    denominator : int
        Common to all columns.
    """

    numerators: Integers | list[int]
    infinite: NDArray[np.bool_]
    denominator: int

    def merged(self, groups: Integers) -> ColumnSums:
        """Add the columns of each group, numbered without gaps."""
        width = int(groups.max()) + 1
        infinite = np.bincount(groups[self.infinite], minlength=width) > 0
        if isinstance(self.numerators, np.ndarray):
            added = np.zeros(width, dtype=np.int64)
            np.add.at(added, groups, self.numerators)
            return ColumnSums(added, infinite, self.denominator)
        whole = [0] * width
        for group, number in zip(groups.tolist(), self.numerators, strict=True):
            whole[group] += number
        return ColumnSums(whole, infinite, self.denominator)

    def values(self) -> list[Exact]:
        """Return the sums as numbers."""
        return [
            math.inf if lost else Fraction(int(number), self.denominator)
            for number, lost in zip(
                self.numerators, self.infinite.tolist(), strict=True
            )
        ]


def column_sums(
    table: ClaimTable, rates: Sequence[Sequence[Exact]]
) -> list[ColumnSums]:
    """Add up, for each of several lists of rates, the rates of all claims.

    Parameters
    ----------
    table : ClaimTable
        The claims.
    rates : sequence of sequence of Exact
        In each list one rate per loss of the table.

    Returns
    -------
    list of ColumnSums
        One per list, all over the same denominator.
    """
    finite = [[0 if isinstance(r, float) else r for r in each] for each in rates]
    denominator = math.lcm(*{r.denominator for each in finite for r in each})
    found = []
    for each, given in zip(finite, rates, strict=True):
        numbers = [r.numerator * (denominator // r.denominator) for r in each]
        lost = np.array([isinstance(r, float) for r in given], dtype=bool)
        infinite = np.zeros(len(table.columns), dtype=bool)
        if lost.any():
            infinite[table.column_of[lost[table.loss_of]]] = True
        found.append(ColumnSums(_totals(table, numbers), infinite, denominator))
    return found


def _totals(table: ClaimTable, numbers: Sequence[int]) -> Integers | list[int]:
    """Add long numbers limb by limb, each limb in machine words."""
    limb = 62 - len(table.loss_of).bit_length()
    parts = max(1, -(-max(numbers, default=0).bit_length() // limb))
    if parts == 1:
        return _added(table, np.array(numbers, dtype=np.int64), by_kind=False)
    whole = [0] * len(table.columns)
    for part in reversed(range(parts)):
        cut = [(number >> part * limb) & ((1 << limb) - 1) for number in numbers]
        # Several passes: alike releases are worth counting first.
        sums = _added(table, np.array(cut, dtype=np.int64), by_kind=True).tolist()
        whole = [(high << limb) + low for high, low in zip(whole, sums, strict=True)]
    return whole


def _added(table: ClaimTable, rates: Integers, *, by_kind: bool) -> Integers:
    totals = np.zeros(len(table.columns), dtype=np.int64)
    if by_kind:
        kinds = table.kinds
        np.add.at(totals, kinds.columns, rates[kinds.losses] * table.counts)
        return totals
    for start in range(0, len(table.loss_of), _BLOCK):
        column_of = table.column_of[start : start + _BLOCK].astype(np.intp)
        loss_of = table.loss_of[start : start + _BLOCK].astype(np.intp)
        np.add.at(totals, column_of, rates[loss_of])
    return totals

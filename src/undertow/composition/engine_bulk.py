"""The charges of very many columns, priced for all runs of a family at once.

Where every release has one claim, what the releases on a column cost at an influence is
a sum over losses. It is taken for all columns in one pass over the claims: once where
the cost is a rate in front of the influence or of its square, and once per influence
otherwise. A family that does not keep its runs in arrays finds the same charges one by
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from undertow.composition.engine_charge import Bundle, Prices, charges_of
from undertow.composition.engine_claims import ClaimTable
from undertow.composition.engine_cost import square
from undertow.composition.engine_sums import WORD, ColumnSums, column_sums
from undertow.privacy.exact import Exact
from undertow.spaces.change import Charge
from undertow.spaces.influence.integers import scale
from undertow.spaces.influence.run_table import ChargeTable, RunCosts, RunTable

__all__ = ["ColumnCharges"]

Integers = NDArray[np.int64]


class ColumnCharges(ChargeTable):
    """One charge per column, for releases with one claim each.

    Parameters
    ----------
    table : ClaimTable
        The releases; every column has one at least.
    prices : Prices
        What the losses cost.
    sums : ColumnSums, optional
        The rates of each column added up, where they are known.
    """

    def __init__(
        self, table: ClaimTable, prices: Prices, sums: ColumnSums | None = None
    ) -> None:
        assert table.release_of is None, "several claims per release"
        self.table, self.prices = table, prices
        if sums is not None:
            self._sums = sums

    def run_costs(self, runs: RunTable, *, coordinate: int) -> RunCosts | None:
        """Return one cost coordinate of every run.

        None where that is no short sum: fractional distances, which (epsilon, delta)
        losses refuse one by one; more pairs of an influence and a loss than claims;
        rates without a common denominator of reasonable size.
        """
        if self._rates is not None:
            return self._proportional(runs, self._rates[1])
        values = list(dict.fromkeys(runs.values))
        fractional = any(isinstance(v, Fraction) and v.denominator != 1 for v in values)
        long = len(values) * len(self.table.losses) > len(self.table.loss_of)
        if (fractional and self.prices.notion == "approx") or long or not values:
            return None
        return self._by_value(runs, values, coordinate)

    @cached_property
    def _rates(self) -> tuple[Sequence[Exact], int] | None:
        """The rates, and the power of the influence they stand in front of."""
        linear, squared, apart = self.prices.rates()
        if self.prices.notion == "approx" or any(apart):
            return None
        return (linear, 1) if self.prices.notion == "pure" else (squared, 2)

    @cached_property
    def _sums(self) -> ColumnSums | None:
        """The rates of each column added up; None where they have no short form."""
        if self._rates is None or scale(self._rates[0]).rounded:
            return None
        return column_sums(self.table, [self._rates[0]])[0]

    def _proportional(self, runs: RunTable, power: int) -> RunCosts | None:
        values = runs.values if power == 1 else [square(v) for v in runs.values]
        factors, sums = scale(values), self._sums
        if sums is None or factors.rounded:
            return None
        lost = np.array(factors.infinite, dtype=bool)[runs.which]
        infinite = sums.infinite[runs.columns] | lost
        numerators = _products(sums.numerators, factors.numerators, runs)
        return RunCosts(numerators, infinite, sums.denominator * factors.denominator)

    def _by_value(
        self, runs: RunTable, values: Sequence[Exact], coordinate: int
    ) -> RunCosts:
        losses = range(len(self.table.losses))
        sums = column_sums(
            self.table,
            [[self.prices.claim(at, v)[coordinate] for at in losses] for v in values],
        )
        place = {value: at for at, value in enumerate(values)}
        which = np.array([place[v] for v in runs.values], np.int64)[runs.which]
        infinite = np.array([one.infinite for one in sums])[which, runs.columns]
        return RunCosts(_picked(sums, which, runs), infinite, sums[0].denominator)

    def merged(self, groups: Integers) -> ColumnCharges:
        """Return one charge for each group of columns, numbered without gaps."""
        firsts = np.unique(groups, return_index=True)[1].tolist()
        table = replace(
            self.table,
            columns=tuple(self.table.columns[at] for at in firsts),
            column_of=groups.astype(np.int32).take(self.table.column_of),
        )
        sums = None if self._sums is None else self._sums.merged(groups)
        return ColumnCharges(table, self.prices, sums)

    def __len__(self) -> int:
        return len(self.table.columns)

    @overload
    def __getitem__(self, at: int) -> Charge: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Charge]: ...

    def __getitem__(self, at: int | slice) -> Charge | Sequence[Charge]:
        return self._listed[at]

    def __iter__(self) -> Iterator[Charge]:
        return iter(self._listed)

    @cached_property
    def _listed(self) -> tuple[Charge, ...]:
        if self._sums is None or self._rates is None:
            return charges_of(self.table.kinds, self.table.counts, self.prices)
        linear = self._rates[1] == 1
        bundles = (
            Bundle(rate if linear else 0, 0 if linear else rate, (), self.prices)
            for rate in self._sums.values()
        )
        return tuple(Charge((at,), bundle) for at, bundle in enumerate(bundles))


def _products(
    sums: Integers | list[int], factors: Sequence[int], runs: RunTable
) -> Integers | list[int]:
    """Return the sum of each run's column times the factor of the run."""
    if isinstance(sums, np.ndarray):
        largest = max(1, int(sums.max(initial=0))) * max(factors, default=0)
        if largest * len(runs) < WORD:
            product: Integers = np.array(factors, np.int64)[runs.which]
            product *= sums[runs.columns]
            return product
        sums = sums.tolist()
    places = zip(runs.columns.tolist(), runs.which.tolist(), strict=True)
    return [sums[column] * factors[at] for column, at in places]


def _picked(
    sums: Sequence[ColumnSums], which: Integers, runs: RunTable
) -> Integers | list[int]:
    """Return for each run the sum of its column at its own influence."""
    arrays = [s.numerators for s in sums if isinstance(s.numerators, np.ndarray)]
    if len(arrays) == len(sums):
        if max(int(a.max(initial=0)) for a in arrays) * len(runs) < WORD:
            picked: Integers = np.array(arrays)[which, runs.columns]
            return picked
    lists = [list(one.numerators) for one in sums]
    places = zip(which.tolist(), runs.columns.tolist(), strict=True)
    return [int(lists[at][column]) for at, column in places]

r"""Listed change classes, with influences stored as runs.

The classes are numbered so that a column has the same influence over long stretches of
them: a single hour lies in :math:`w` successive windows, the whole data in all. Each
stretch is one run, so windows of length :math:`w` over :math:`k` columns take memory
:math:`O(k)`, not :math:`O(wk)`, and a total over all classes is one cumulative sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from undertow.privacy.exact import Exact
from undertow.spaces.change import (
    Change,
    ChangeFamily,
    Charge,
    FrontPoint,
    Maximum,
    Row,
)
from undertow.spaces.influence.integers import (
    add_runs,
    is_short,
    run_totals,
    scale,
    settle,
)
from undertow.spaces.influence.run_table import ChargeTable, Run, RunTable

__all__ = ["ExplicitFamily", "Run", "front_of", "listed"]

Point = TypeVar("Point", bound=tuple[Exact, ...])

Totals = Sequence[int] | NDArray[np.int64]

Sums = tuple[Totals, Totals, int, bool]
"""Totals of all classes, how many costs in each are infinite, denominator, rounded."""


class ExplicitFamily(ChangeFamily):
    """Change classes ``0..rows-1``, each column a list of runs over them.

    Parameters
    ----------
    rows : int
        The number of classes; positive.
    runs : RunTable or mapping of int to sequence of Run
        For each column its runs, in order and without overlap; missing classes have
        influence zero.
    describe : callable
        Class number -> the change in words.
    tight : bool
        Whether each class is attained by a neighbour pair in all columns together.
    notes : tuple of str
        Assumptions used.
    """

    def __init__(
        self,
        rows: int,
        runs: RunTable | Mapping[int, Sequence[Run]],
        *,
        describe: Callable[[int], Change],
        tight: bool = True,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.rows, self._given, self.describe = rows, runs, describe
        self.tight, self.notes = tight, notes

    @cached_property
    def runs(self) -> dict[int, Sequence[Run]]:
        """The runs column by column."""
        given = self._given
        return dict(given.lists() if isinstance(given, RunTable) else given)

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the largest total of one cost coordinate over all classes."""
        totals, infinite, denominator, rounded = self._totals(charges, coordinate)
        if np.any(infinite):
            return Maximum(math.inf, self.row(int(np.argmax(infinite))), self.tight)
        best = _argmax(totals)
        value = Fraction(int(totals[best]), denominator)
        return Maximum(value, self.row(best), self.tight and not rounded)

    def pareto(
        self, charges: Sequence[Charge], *, coordinates: int
    ) -> tuple[FrontPoint, ...]:
        """Return the classes whose totals no other class beats in all coordinates."""
        if coordinates == 1:
            top = self.maximise(charges)
            return (FrontPoint((top.value,), top.row, top.tight),)
        sums = [self._totals(charges, k) for k in range(coordinates)]
        ranks = [_ranks(totals, infinite) for totals, infinite, _, _ in sums]
        first: dict[tuple[int, ...], int] = {}
        for at, key in enumerate(zip(*ranks, strict=True)):
            first.setdefault(key, at)
        tight = self.tight and not any(rounded for _, _, _, rounded in sums)
        return tuple(
            FrontPoint(_values(sums, first[key]), self.row(first[key]), tight)
            for key in front_of(first)
        )

    def row(self, at: int) -> Row:
        """Return class number `at` with the influences of all columns."""
        if isinstance(self._given, RunTable):
            return Row(self.describe(at), self._given.influences(at))
        influences = {
            column: value
            for column, runs in self.runs.items()
            for start, stop, value in runs
            if start <= at < stop and value
        }
        return Row(self.describe(at), influences)

    def _totals(self, charges: Sequence[Charge], coordinate: int) -> Sums:
        if isinstance(self._given, RunTable) and isinstance(charges, ChargeTable):
            found = _table_totals(self.rows, self._given, charges, coordinate)
            if found is not None:
                return found
        starts: list[int] = []
        stops: list[int] = []
        costs: list[Exact] = []
        for charge in charges:
            for start, stop, influences in self._charge_runs(charge):
                starts.append(start)
                stops.append(stop)
                costs.append(charge.price(influences)[coordinate])
        scaled = scale(costs)
        begin, end = np.array(starts, dtype=np.int64), np.array(stops, dtype=np.int64)
        totals = run_totals(self.rows, begin, end, scaled.numerators)
        lost = run_totals(self.rows, begin, end, [int(i) for i in scaled.infinite])
        return totals, lost, scaled.denominator, scaled.rounded

    def _charge_runs(
        self, charge: Charge
    ) -> Iterator[tuple[int, int, tuple[Exact, ...]]]:
        if len(charge.columns) == 1:
            for start, stop, value in self.runs.get(charge.columns[0], ()):
                yield start, stop, (value,)
            return
        yield from _merged([self.runs.get(j, ()) for j in charge.columns])


def _table_totals(
    rows: int, runs: RunTable, charges: ChargeTable, coordinate: int
) -> Sums | None:
    costs = charges.run_costs(runs, coordinate=coordinate)
    if costs is None:
        return None
    lost = add_runs(rows, runs.starts, runs.stops, costs.infinite.astype(np.int64))
    numbers, denominator = costs.numerators, costs.denominator
    if isinstance(numbers, np.ndarray) and is_short(denominator):
        totals = add_runs(rows, runs.starts, runs.stops, numbers)
        return totals, lost, denominator, False
    gone = costs.infinite.tolist()
    finite = [0 if g else int(n) for n, g in zip(numbers, gone, strict=True)]
    settled = settle(finite, denominator)
    added = run_totals(rows, runs.starts, runs.stops, settled.numerators)
    return added, lost, settled.denominator, settled.rounded


def _ranks(totals: Totals, infinite: Totals) -> list[int]:
    """Return integers in the order of the totals, infinite ones above all others."""
    numbers = [int(total) for total in totals]
    top = max(numbers) + 1
    return [top if lost else n for n, lost in zip(numbers, infinite, strict=True)]


def _values(sums: Sequence[Sums], at: int) -> tuple[Exact, ...]:
    return tuple(
        math.inf if infinite[at] else Fraction(int(totals[at]), denominator)
        for totals, infinite, denominator, _ in sums
    )


def _argmax(totals: Totals) -> int:
    if isinstance(totals, np.ndarray):
        return int(np.argmax(totals))
    return max(range(len(totals)), key=totals.__getitem__)


def _merged(
    several: Sequence[Sequence[Run]],
) -> Iterator[tuple[int, int, tuple[Exact, ...]]]:
    """Cut several run lists at all their ends and give the influences side by side."""
    ends = sorted({end for runs in several for run in runs for end in run[:2]})
    positions = [0] * len(several)
    for start, stop in pairwise(ends):
        influences: list[Exact] = []
        for which, runs in enumerate(several):
            while positions[which] < len(runs) and runs[positions[which]][1] <= start:
                positions[which] += 1
            here = positions[which]
            inside = here < len(runs) and runs[here][0] <= start
            influences.append(runs[here][2] if inside else 0)
        if any(influences):
            yield start, stop, tuple(influences)


def front_of(points: Iterable[Point]) -> list[Point]:
    """Return the points that no other point reaches in every coordinate.

    Examples
    --------
    >>> front_of([(1, 2), (2, 1), (1, 1), (2, 1)])
    [(2, 1), (1, 2)]
    """
    kept: list[Point] = []
    for point in sorted(set(points), reverse=True):
        # Of two coordinates the first falls, so that the last one kept is highest.
        rivals = kept[-1:] if len(point) == 2 else kept
        if not any(_reaches(other, point) for other in rivals):
            kept.append(point)
    return kept


def _reaches(one: tuple[Exact, ...], other: tuple[Exact, ...]) -> bool:
    return all(a >= b for a, b in zip(one, other, strict=True))


def listed(
    rows: Sequence[Row], *, tight: bool = True, notes: tuple[str, ...] = ()
) -> ExplicitFamily:
    """Return a family given row by row."""
    runs: dict[int, list[Run]] = {}
    for at, row in enumerate(rows):
        for column, value in row.influences.items():
            held = runs.setdefault(column, [])
            if held and held[-1][1] == at and held[-1][2] == value:
                held[-1] = (held[-1][0], at + 1, value)
            elif value:
                held.append((at, at + 1, value))
    return ExplicitFamily(
        len(rows),
        runs,
        describe=lambda at: rows[at].change,
        tight=tight,
        notes=notes,
    )

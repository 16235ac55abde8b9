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
from itertools import pairwise

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
from undertow.spaces.influence.integers import run_totals, scale

__all__ = ["ExplicitFamily", "Run", "front_of", "listed"]

Run = tuple[int, int, Exact]
"""First class, end of the stretch (exclusive), influence."""

Totals = Sequence[int] | NDArray[np.int64]


class ExplicitFamily(ChangeFamily):
    """Change classes ``0..rows-1``, each column a list of runs over them.

    Parameters
    ----------
    rows : int
        The number of classes; positive.
    runs : mapping of int to sequence of Run
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
        runs: Mapping[int, Sequence[Run]],
        *,
        describe: Callable[[int], Change],
        tight: bool = True,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.rows, self.runs, self.describe = rows, dict(runs), describe
        self.tight, self.notes = tight, notes

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the largest total of one cost coordinate over all classes."""
        totals, infinite, denominator, rounded = self._totals(charges, coordinate)
        if any(infinite):
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
        columns, exactly = [], True
        for k in range(coordinates):
            totals, infinite, denominator, rounded = self._totals(charges, k)
            exactly = exactly and not rounded
            columns.append(_values(totals, infinite, denominator))
        first: dict[tuple[Exact, ...], int] = {}
        for at, values in enumerate(zip(*columns, strict=True)):
            first.setdefault(values, at)
        tight = self.tight and exactly
        return tuple(
            FrontPoint(values, self.row(first[values]), tight)
            for values in front_of(first)
        )

    def row(self, at: int) -> Row:
        """Return class number `at` with the influences of all columns."""
        influences = {
            column: value
            for column, runs in self.runs.items()
            for start, stop, value in runs
            if start <= at < stop and value
        }
        return Row(self.describe(at), influences)

    def _totals(
        self, charges: Sequence[Charge], coordinate: int
    ) -> tuple[Totals, Totals, int, bool]:
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


def _values(totals: Totals, infinite: Totals, denominator: int) -> list[Exact]:
    return [
        math.inf if lost else Fraction(int(total), denominator)
        for total, lost in zip(totals, infinite, strict=True)
    ]


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


def front_of(points: Iterable[tuple[Exact, ...]]) -> list[tuple[Exact, ...]]:
    """Return the points that no other point reaches in every coordinate.

    Examples
    --------
    >>> front_of([(1, 2), (2, 1), (1, 1), (2, 1)])
    [(2, 1), (1, 2)]
    """
    kept: list[tuple[Exact, ...]] = []
    for point in sorted(set(points), reverse=True):
        if not any(_reaches(other, point) for other in kept):
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

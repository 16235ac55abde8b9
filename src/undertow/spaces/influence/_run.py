"""Listed change classes, with influences stored as runs and added up exactly.

The classes are numbered so that a column has the same influence over long stretches of
them: a single hour lies in :math:`w` successive windows, the whole data in all. Each
stretch is one run, so windows of length :math:`w` over :math:`k` columns take memory
:math:`O(k)`, not :math:`O(wk)`, and a total over all classes is one cumulative sum of
integers over a common denominator. Where no formula is known, every neighbour pair of
an enumerated domain is listed as a class of its own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from undertow.errors import AssumptionError, VacuousGranularityError
from undertow.numeric.exact import Exact
from undertow.spaces.base import Database, Domain, Granularity, Metric
from undertow.spaces.canonical import shortest_paths
from undertow.spaces.change import (
    Change,
    ChangeFamily,
    Charge,
    Column,
    FrontPoint,
    Maximum,
    Row,
)
from undertow.spaces.domain import in_words
from undertow.spaces.influence._column import Layout
from undertow.spaces.view.range import range_of

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
            FrontPoint(_point_values(sums, first[key]), self.row(first[key]), tight)
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


def _point_values(sums: Sequence[Sums], at: int) -> tuple[Exact, ...]:
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


# Runs of very many columns as arrays, and charges priced on all of them at once.

Integers = NDArray[np.int64]

Run = tuple[int, int, Exact]
"""First class, end of the stretch (exclusive), influence."""

Piece = tuple[int, int, int, Exact]
"""A run of a shape: where its block of classes begins, and the run inside the block."""


@dataclass(frozen=True, slots=True)
class RunTable:
    """Runs of columns over change classes, sorted by column.

    Parameters
    ----------
    columns, starts, stops : ndarray of int
        One entry per run.
    which : ndarray of int
        The influence of each run, as a position in `values`.
    values : tuple of Exact
        Influences that occur; none is zero.
    """

    columns: Integers
    starts: Integers
    stops: Integers
    which: Integers
    values: tuple[Exact, ...]

    def __len__(self) -> int:
        return len(self.columns)

    def lists(self) -> dict[int, list[Run]]:
        """Return the runs column by column."""
        found: dict[int, list[Run]] = {}
        for column, start, stop, at in zip(
            self.columns.tolist(),
            self.starts.tolist(),
            self.stops.tolist(),
            self.which.tolist(),
            strict=True,
        ):
            found.setdefault(column, []).append((start, stop, self.values[at]))
        return found

    def influences(self, at: int) -> dict[int, Exact]:
        """Return the influence of every column that moves in class number `at`."""
        here = (self.starts <= at) & (at < self.stops)
        columns, which = self.columns[here].tolist(), self.which[here].tolist()
        return {j: self.values[k] for j, k in zip(columns, which, strict=True)}


def placed(
    pieces: Sequence[Sequence[Piece]], layout: Layout, *, width: int, moves: bool = True
) -> RunTable:
    """Give every column the runs of its shape, moved to where the column starts.

    Parameters
    ----------
    pieces : sequence of sequence of Piece
        For each shape its runs, in order; they may stick out of their block.
    layout : Layout
        The shapes of the columns.
    width : int
        The length of a block; what sticks out after the move is cut off.
    moves : bool
        Whether the classes count times, so that the runs move with the columns.

    Examples
    --------
    >>> layout = Layout((0,), np.array([0, 0]), np.array([0, 1]))
    >>> placed([[(0, -1, 2, 5)]], layout, width=2).lists()
    {0: [(0, 2, 5)], 1: [(0, 2, 5)]}
    """
    sizes = np.array([len(own) for own in pieces], dtype=np.int64)
    flat = [piece for own in pieces for piece in own]
    counts = sizes[layout.shape_of]
    columns = np.repeat(np.arange(len(counts)), counts)
    skipped = np.cumsum(sizes)[layout.shape_of] - np.cumsum(counts)
    which = np.arange(len(columns)) + np.repeat(skipped, counts)
    block, first, last = np.array([p[:3] for p in flat], np.int64).reshape(-1, 3).T
    shift = layout.shift[columns] if moves else 0
    starts = np.clip(first[which] + shift, 0, width)
    stops = np.clip(last[which] + shift, 0, width)
    values = tuple(piece[3] for piece in flat)
    kept = starts < stops
    if not kept.all():
        columns, starts, stops, which = (
            array[kept] for array in (columns, starts, stops, which)
        )
    begin = block[which]
    return RunTable(columns, begin + starts, begin + stops, which, values)


@dataclass(frozen=True, slots=True)
class RunCosts:
    """The exact costs of runs over one denominator.

    Parameters
    ----------
    numerators : ndarray of int, or list of int
        An array where the sum of all is below 2**62.
    infinite : ndarray of bool
        Which costs are infinite.
    denominator : int
        Common to all.
    """

    numerators: Integers | list[int]
    infinite: NDArray[np.bool_]
    denominator: int


class ChargeTable(Sequence[Charge]):
    """Charges on one column each, which price whole tables of runs."""

    @abstractmethod
    def run_costs(self, runs: RunTable, *, coordinate: int) -> RunCosts | None:
        """Return one cost coordinate of every run; None where it has no short form."""


# Exact sums at the speed of machine integers.
#
# Costs are fractions. Over their common denominator they are integers, whose sums and
# comparisons are exact; they fit into 64 bits for ordinary budgets and fall back to
# Python integers otherwise. An infinite cost is counted beside them.

_WORD = 2**62
# Budgets with thousands of unrelated denominators are rounded up to this grid.
_LARGEST_DENOMINATOR_BITS = 4096


@dataclass(frozen=True, slots=True)
class ScaledCosts:
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


def scale(costs: Sequence[Exact]) -> ScaledCosts:
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
            return ScaledCosts(
                [math.ceil(c * grid) for c in finite], infinite, grid, True
            )
    numerators = [c.numerator * (denominator // c.denominator) for c in finite]
    return ScaledCosts(numerators, infinite, denominator, False)


def is_short(denominator: int) -> bool:
    """Return whether costs over this denominator are kept exactly."""
    return denominator.bit_length() <= _LARGEST_DENOMINATOR_BITS


def settle(numerators: list[int], denominator: int) -> ScaledCosts:
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
        return ScaledCosts(numerators, infinite, denominator, False)
    grid = 1 << _LARGEST_DENOMINATOR_BITS
    rounded = [-(-number * grid // denominator) for number in numerators]
    return ScaledCosts(rounded, infinite, grid, True)


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


# Change classes of listed domains: every neighbour pair is its own class.

LARGEST_LISTED = 3_000
"""Databases up to which a domain without closed forms is enumerated."""


def finite_family(
    domain: Domain, target: Granularity, *, columns: Sequence[Column]
) -> ChangeFamily:
    """Return one class per neighbour pair, with exact influences.

    Raises
    ------
    AssumptionError
        If the domain is too large to list.
    VacuousGranularityError
        If no two databases are neighbours.

    Notes
    -----
    View setting: the unit's distance inside the range of the view. Common setting: the
    quotient of the unit by the fibres of the view, a shortest path on which moving
    inside a fibre is free. Pairs with the same influences are one class.
    """
    if domain.count() > LARGEST_LISTED:
        raise AssumptionError(
            f"domain must have at most {LARGEST_LISTED} databases for {target.name} "
            "with these views, for which no closed form is known, got "
            f"{in_words(domain.count())}; use a smaller instance, or views by cell, "
            "time, user, id or vertex."
        )
    databases = list(domain.databases())
    measures = [_column_measure(column, domain, databases) for column in columns]
    rows: dict[tuple[Exact, ...], Row] = {}
    for first in databases:
        for second in target.neighbours(first, domain):
            values = tuple(measure(first, second) for measure in measures)
            if values not in rows:
                influences = {j: value for j, value in enumerate(values) if value}
                rows[values] = Row(_pair_change(first, second), influences)
    if not rows:
        if len(databases) == 1:
            return listed([Row(Change("none", "no change: there is one database"), {})])
        raise VacuousGranularityError(
            f"target must have neighbours in the domain, got {target.name}, which has "
            "none here; choose a granularity that allows a change.",
            source="paper, Example III.4",
        )
    return listed(list(rows.values()))


def _pair_change(first: Database, second: Database) -> Change:
    return Change("pair", "one neighbour pair", (("first", first), ("second", second)))


Measure = Callable[[Database, Database], Exact]


def _column_measure(
    column: Column, domain: Domain, databases: Sequence[Database]
) -> Measure:
    column.view.require_domain(domain)
    if column.setting == "view":
        shown = range_of(column.view, domain)
        shown.require_unit(column.unit)
        seen = {database: column.view.apply(database, domain) for database in databases}

        def between(first: Database, second: Database) -> Exact:
            return shown.distance(column.unit, seen[first], seen[second])

        return between
    return _quotient_measure(column, domain, databases)


def _quotient_measure(
    column: Column, domain: Domain, databases: Sequence[Database]
) -> Measure:
    """Return the distance modulo the fibres of the view, by shortest paths."""
    fibre = {d: column.view.apply(d, domain) for d in databases}
    edges = _fibre_edges(column.unit, domain, databases, fibre.__getitem__)
    known: dict[Hashable, dict[Hashable, Exact]] = {}

    def between(first: Database, second: Database) -> Exact:
        start, end = fibre[first], fibre[second]
        if start == end:
            return 0
        if start not in known:
            known[start] = shortest_paths(
                lambda here: edges.get(here, {}).items(), start
            )
        return known[start].get(end, math.inf)

    return between


FibreEdges = dict[Hashable, dict[Hashable, Exact]]


def _fibre_edges(
    unit: Metric,
    domain: Domain,
    databases: Sequence[Database],
    fibre: Callable[[Database], Hashable],
) -> FibreEdges:
    edges: FibreEdges = defaultdict(dict)
    for first in databases:
        for second, length in _unit_steps(unit, domain, databases, first):
            start, end = fibre(first), fibre(second)
            if start != end and length < edges[start].get(end, math.inf):
                edges[start][end] = length
    return edges


def _unit_steps(
    unit: Metric, domain: Domain, databases: Sequence[Database], first: Database
) -> Iterable[tuple[Database, Exact]]:
    if isinstance(unit, Granularity):
        return ((second, 1) for second in unit.neighbours(first, domain))
    return (
        (second, _exact_length(unit.distance(first, second, domain)))
        for second in databases
    )


def _exact_length(distance: float) -> Exact:
    if distance == math.inf:
        return math.inf
    value = Fraction(distance)
    return int(value) if value.denominator == 1 else value

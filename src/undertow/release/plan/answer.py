"""Noisy whole numbers become tables of estimates, typed, with margins that add up.

All that is done after the noise is a function of noisy answers, so that it costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import combinations
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize

from undertow.mechanisms import NoiseSource
from undertow.numeric.array import Array
from undertow.release.engine.job import Aggregates, Grid, Job
from undertow.release.plan._budget import Share
from undertow.release.plan.encoding import Encoding, Integers
from undertow.release.plan.noise import IntegerNoise, kept_cells

_ENDS = ("estimate", "low", "high")


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The table of one query, safe to publish if the noise was secure.

    Parameters
    ----------
    name : str
        The query's name.
    columns : tuple of str
        Keys, what tells answers of one cell apart, then estimate, low and high.
    rows : list of tuple
        One row per answer.
    confidence : float
        Of each interval by itself.
    notes : tuple of str
        What a reader must know.
    simulated : bool
        Whether the noise was seeded; such answers may not be published.
    deviation : float
        Standard deviation of the noise of one whole number.
    nodes : dict of str to list of list of int
        Noisy nodes released in this run of a running total, to be stored with the
        output: later runs add them up.
    types : tuple of str
        Types of the columns in the words of JSON Schema; they do not depend on the
        rows.
    """

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    confidence: float
    notes: tuple[str, ...] = ()
    simulated: bool = False
    deviation: float = 0.0
    nodes: dict[str, list[list[int]]] = field(default_factory=dict)
    types: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, dates as text."""
        return {
            "name": self.name,
            "columns": list(self.columns),
            "types": list(self.types),
            "rows": [[_plain(value) for value in row] for row in self.rows],
            "confidence": self.confidence,
            "notes": list(self.notes),
            "simulated": self.simulated,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Noised:
    """Noisy whole numbers of the cells that are published.

    Parameters
    ----------
    cells : tuple of tuple
        The keys of the cells.
    numbers : ndarray
        One row per cell, one column per number of the encoding.
    simulated : bool
        Whether the noise was seeded.
    """

    cells: tuple[tuple[Any, ...], ...]
    numbers: Integers
    simulated: bool


def add_noise(
    aggregates: Aggregates,
    *,
    encoding: Encoding,
    share: Share,
    keys: Share | None,
    threshold: int | None,
    source: NoiseSource | None,
) -> Noised:
    """Draw the noise of one query, once.

    Parameters
    ----------
    aggregates : Aggregates
        What the engine returned.
    encoding : Encoding
        The whole numbers of a cell.
    share : Share
        Their noise.
    keys, threshold : Share and int, optional
        How keys are chosen where they are discovered; the same share as `share` where
        the numbers of units are the answer.
    source : NoiseSource, optional
        Operating-system entropy by default.
    """
    if threshold is None:
        values = encoding.vector(aggregates)
        cells = tuple(cell[: _width(cell, encoding)] for cell in aggregates.cells)
        noisy, seeded = _noisy(values, share.noise, source)
        return Noised(cells[:: encoding.bins], noisy, seeded)
    assert keys is not None
    units = np.array(
        [int(k) for k in aggregates.measures["units"]], dtype=np.object_
    ).reshape(-1, 1)
    counted, seeded = _noisy(units, keys.noise, source)
    kept = kept_cells(counted[:, 0], threshold)
    cells = tuple(aggregates.cells[at] for at in kept)
    if keys is share:
        return Noised(cells, counted[kept], seeded)
    noisy, seeded = _noisy(encoding.vector(aggregates)[kept], share.noise, source)
    return Noised(cells, noisy, seeded)


def answer_table(
    noised: Noised, *, encoding: Encoding, noise: IntegerNoise, beta: float
) -> list[tuple[Any, ...]]:
    """Return keys, estimate and interval of every published answer."""
    estimates = (
        encoding.read(noised.numbers, noise=noise, beta=beta) if noised.cells else []
    )
    keys = [cell + label for cell in noised.cells for label in encoding.labels]
    return [(*key, *found) for key, found in zip(keys, estimates, strict=True)]


def answer_columns(by: Sequence[str], encoding: Encoding) -> tuple[str, ...]:
    """Return the names of the columns of an answer."""
    return (*by, *encoding.label_columns, *_ENDS)


def stored_nodes(earlier: Mapping[str, Sequence[Any]]) -> dict[str, Integers]:
    """Read nodes stored with earlier outputs."""
    return {
        name: np.array([[int(k) for k in row] for row in rows], dtype=np.object_)
        for name, rows in earlier.items()
    }


def _noisy(
    values: Integers, noise: IntegerNoise, source: NoiseSource | None
) -> tuple[Integers, bool]:
    if values.size == 0:
        return values, bool(source is not None and source.simulated)
    draw = noise.add_to(values, source=source)
    return draw.values, draw.simulated


def _width(cell: tuple[Any, ...], encoding: Encoding) -> int:
    """Return how many keys of an engine cell are keys of the query."""
    return len(cell) - (1 if encoding.label_columns else 0)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)


# The types of the columns of an answer, in the words of JSON Schema.
#
# They are stated from the query and from the types that the table itself declares, so
# that an answer without rows has them too, and no type depends on what the rows hold.

_INT64 = 2**63
_DECIMAL_DIGITS = 76
_WORDS: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    date: "string",
    Decimal: "string",
}


def value_type(value: Any) -> str:
    """Return the type of a value as it is written; dates are text.

    Examples
    --------
    >>> value_type(True), value_type(3), value_type(date(2026, 1, 31))
    ('boolean', 'integer', 'string')
    """
    for kind in type(value).__mro__:
        if kind in _WORDS:
            return _WORDS[kind]
    return "null" if value is None else "string"


def answer_types(
    job: Job,
    encoding: Encoding,
    *,
    kinds: Sequence[str] = (),
    consistent: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the types of the columns of a query's answer, before there are rows.

    Parameters
    ----------
    job : Job
        With its public keys, if it has any.
    encoding : Encoding
        What is estimated.
    kinds : sequence of str
        The types of discovered keys, from the schema of the table; "null" if unknown.
    consistent : sequence of str
        What is done after the noise; "integer" rounds estimates.
    """
    keys: Sequence[str] = kinds or ("null",) * len(job.by)
    if job.grid is not None:
        keys = [_common({value_type(key) for key in some}) for some in job.grid.keys]
    labels = [
        _common({value_type(label) for label in column})
        for column in zip(*encoding.labels, strict=True)
    ]
    ends = "integer" if encoding.whole else "number"
    estimate = "integer" if "integer" in consistent else ends
    return (*keys, *labels, estimate, ends, ends)


def column_types(answer: Mapping[str, Any]) -> list[str]:
    """Return the type of each column of a stored answer.

    Those stated with it, widened where its rows hold more; an answer of an earlier
    version states none.

    Examples
    --------
    >>> answer = {"columns": ["zone", "estimate"], "rows": []}
    >>> column_types({**answer, "types": ["string", "integer"]})
    ['string', 'integer']
    >>> column_types({**answer, "rows": [["A", 1], ["B", 2.5]]})
    ['string', 'number']
    """
    stated = answer.get("types") or ["null"] * len(answer["columns"])
    found = [{kind} for kind in stated]
    for row in answer["rows"]:
        for kinds, value in zip(found, row, strict=True):
            kinds.add(value_type(value))
    return [_common(kinds) for kinds in found]


def _common(kinds: set[str]) -> str:
    some = kinds - {"null"}
    if some == {"integer", "number"}:
        return "number"
    return some.pop() if len(some) == 1 else "any" if some else "null"


def arrow_column(arrow: Any, values: Sequence[Any], kind: str) -> Any:
    """Return a column for Arrow.

    Whole numbers beyond 64 bits are decimals, beyond 76 digits text, as is a column of
    several types.
    """
    plain = {
        "boolean": arrow.bool_(),
        "null": arrow.null(),
        "number": arrow.float64(),
        "string": arrow.string(),
    }
    if kind in plain:
        made = float if kind == "number" else str if kind == "string" else lambda x: x
        cells = [None if value is None else made(value) for value in values]
        return arrow.array(cells, plain[kind])
    sizes = [abs(value) for value in values if isinstance(value, int)]
    most = max(sizes, default=0)
    if kind == "integer" and most < _INT64:
        return arrow.array(values, arrow.int64())
    if kind == "integer" and most < 10**_DECIMAL_DIGITS:
        digits = [None if value is None else Decimal(value) for value in values]
        return arrow.array(digits, arrow.decimal256(_DECIMAL_DIGITS, 0))
    texts = [None if value is None else str(value) for value in values]
    return arrow.array(texts, arrow.string())


# After the noise: no negative counts, whole numbers, and margins that add up.
#
# All of it is a function of noisy answers, so that it costs nothing; it changes the
# estimates, which are no longer unbiased once negative ones are raised to zero.

_KEPT = (
    "intervals are those of the answer before it was made consistent, widened where "
    "they would leave the estimate out"
)


def settle_rows(
    rows: list[tuple[Any, ...]], consistent: Sequence[str], *, non_negative: bool = True
) -> tuple[list[tuple[Any, ...]], tuple[str, ...]]:
    """Apply what a query asks for to each answer by itself.

    Parameters
    ----------
    rows : list of tuple
        Ending in estimate, low and high.
    consistent : sequence of str
        ``"non-negative"`` and ``"integer"``.
    non_negative : bool
        Whether the truth cannot be negative: the ends of the interval are then raised
        to zero as well, which loses no coverage.

    Returns
    -------
    list of tuple, tuple of str
        The rows and notes about them.

    Examples
    --------
    >>> settle_rows([("a", -3, -8, 2)], ["non-negative"])[0]
    [('a', 0, 0, 2)]
    """
    notes: list[str] = []
    if "integer" in consistent:
        rows = [_holding((*row[:-3], round(row[-3]), *row[-2:])) for row in rows]
        notes.append(f"estimates are rounded to whole numbers; {_KEPT}")
    if "non-negative" in consistent:
        first = 3 if non_negative else 1
        rows = [_raised_row(row, first) for row in rows]
        ends = "estimates and ends of intervals" if non_negative else "estimates"
        notes.append(f"negative {ends} are raised to 0")
    return rows, tuple(notes)


def _raised_row(row: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    numbers = [max(0, x) if at < count else x for at, x in enumerate(row[-3:])]
    return _holding((*row[:-3], *numbers))


def _holding(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Widen an interval to its estimate; a wider one covers at the same level."""
    value, low, high = row[-3:]
    return (*row[:-3], value, min(low, value), max(high, value))


@dataclass(frozen=True, slots=True)
class Table:
    """A released table of counts over public keys, to be reconciled with others.

    Parameters
    ----------
    answer : QueryAnswer
        Rows in the order of the grid, as the noise left them.
    grid : Grid
        Its keys.
    same : tuple
        Equal for tables that count the same rows.
    consistent : tuple of str
        What its query asks for.
    """

    answer: QueryAnswer
    grid: Grid
    same: tuple[Any, ...]
    consistent: tuple[str, ...] = ()


def add_up(tables: Sequence[Table]) -> list[QueryAnswer]:
    """Reconcile nested tables of counts so that margins add up.

    Parameters
    ----------
    tables : sequence of Table
        Any tables; those that count the same rows over a subset of another's columns,
        with the same keys in any order, are adjusted together.

    Returns
    -------
    list of QueryAnswer
        In the order given; estimates changed, intervals widened to hold them.

    Notes
    -----
    Weighted least squares on all tables of a family, weights one over the variance.
    If one of them asks for non-negative or whole numbers, the best such cells of the
    finest table are found and every other table is summed from them, so that margins
    still add up. The margins of the private tables add up only if every row has a
    public key in every column.
    """
    answers = [table.answer for table in tables]
    open_ = sorted(range(len(tables)), key=lambda at: -len(tables[at].grid.columns))
    while open_:
        top = open_.pop(0)
        family = [at for at in open_ if _nested(tables[at], tables[top])]
        if not family:
            continue
        open_ = [at for at in open_ if at not in family]
        members = [tables[top], *(tables[at] for at in family)]
        settled = _reconciled(members)
        for at, answer in zip((top, *family), settled, strict=True):
            answers[at] = answer
    return answers


def _nested(inner: Table, outer: Table) -> bool:
    known = {column: set(keys) for column, keys in _by_column(outer.grid)}
    pairs = _by_column(inner.grid)
    return inner.same == outer.same and all(known.get(c) == set(ks) for c, ks in pairs)


def _by_column(grid: Grid) -> list[tuple[str, tuple[Any, ...]]]:
    return list(zip(grid.columns, grid.keys, strict=True))


def _ordered(numbers: Array, columns: Sequence[str], *, old: Grid, new: Grid) -> Array:
    """Put numbers by `columns` from the order of keys of one grid to another's."""
    had, wanted = dict(_by_column(old)), dict(_by_column(new))
    for axis, column in enumerate(columns):
        place = {key: at for at, key in enumerate(had[column])}
        numbers = numbers.take([place[key] for key in wanted[column]], axis=axis)
    return numbers


def _reconciled(members: Sequence[Table]) -> list[QueryAnswer]:
    """Return the answers of a family, the finest table first."""
    top = members[0]
    margins = Margins(
        [(_aligned(table, top.grid), _weight(table)) for table in members]
    )
    asked = {wish for table in members for wish in table.consistent}
    fit = non_negative if "non-negative" in asked else least_squares
    cells = fit(margins)
    if "integer" in asked:
        cells = rounded(cells, margins)
    return [
        _replaced(table, cells, top.grid, whole="integer" in asked) for table in members
    ]


def _weight(table: Table) -> float:
    return 1.0 / max(table.answer.deviation, 1e-150) ** 2


def _aligned(table: Table, grid: Grid) -> Array:
    """Return the estimates with the axes of `grid`, length 1 where summed out."""
    numbers = np.array([float(row[-3]) for row in table.answer.rows])
    mine = numbers.reshape([len(keys) for keys in table.grid.keys])
    kept = [column for column in grid.columns if column in table.grid.columns]
    mine = mine.transpose([table.grid.columns.index(column) for column in kept])
    mine = _ordered(mine, kept, old=table.grid, new=grid)
    shape = [
        len(keys) if column in kept else 1
        for column, keys in zip(grid.columns, grid.keys, strict=True)
    ]
    return np.asarray(mine.reshape(shape))


def _replaced(table: Table, cells: Array, grid: Grid, *, whole: bool) -> QueryAnswer:
    lost = [a for a, c in enumerate(grid.columns) if c not in table.grid.columns]
    kept = [column for column in grid.columns if column in table.grid.columns]
    numbers = cells.sum(axis=tuple(lost)) if lost else cells
    numbers = _ordered(numbers, kept, old=grid, new=table.grid)
    order = [kept.index(column) for column in table.grid.columns]
    flat = numbers.transpose(order).ravel() if order else numbers.ravel()
    rows = [
        _holding((*row[:-3], int(value) if whole else float(value), *row[-2:]))
        for row, value in zip(table.answer.rows, flat, strict=True)
    ]
    notes = (*table.answer.notes, f"margins are made to add up; {_KEPT}")
    return replace(table.answer, rows=rows, notes=notes)


# The table that fits several noisy margins of it best.
#
# .. math:: \min_x \sum_q w_q \|A_q x - y_q\|^2
#
# with or without :math:`x \ge 0`, where :math:`A_q` sums out the columns that table q
# does not have. Summing out an axis of length n maps deviations from the mean of that
# axis to zero and multiplies the mean part by n. On the part of x that deviates along
# exactly the axes U, :math:`H = \sum_q w_q A_q^\top A_q` is therefore a number,
#
# .. math:: \lambda_U = \sum_{q: U \subseteq \text{axes}(q)} w_q
#    \prod_{a \notin \text{axes}(q)} n_a,
#
# and functions of H are applied part by part.

Axes = tuple[int, ...]
_MOST_STEPS = 300
_BATCHES = 64
_LOOSE = 1e-3  # how little a cell weighs against its margins


@dataclass(frozen=True, slots=True)
class Margins:
    """Several noisy margins of one table.

    Parameters
    ----------
    tables : sequence of (ndarray, float)
        For each table its numbers, with one axis per axis of the finest table and
        length 1 where that axis is summed out, and its weight: one over the variance.
        One table has all axes in full.
    """

    tables: Sequence[tuple[Array, float]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the finest table."""
        return np.broadcast_shapes(*(numbers.shape for numbers, _ in self.tables))

    def factors(self) -> dict[Axes, float]:
        """Return the number that H is on each part, by the axes it deviates along."""
        axes = range(len(self.shape))
        sizes = range(len(self.shape) + 1)
        parts = [chosen for size in sizes for chosen in combinations(axes, size)]
        return {chosen: self._factor(chosen) for chosen in parts}

    def _factor(self, chosen: Axes) -> float:
        total, shape = 0.0, self.shape
        for numbers, weight in self.tables:
            kept = [a for a, n in enumerate(numbers.shape) if n == shape[a]]
            if set(chosen) <= set(kept):
                lost = [n for a, n in enumerate(shape) if a not in kept]
                total += weight * float(np.prod(lost))
        return total

    def right(self) -> Array:
        """Return the right side of the normal equations."""
        found = np.zeros(self.shape)
        for numbers, weight in self.tables:
            found += weight * numbers
        return found


def _applied(
    array: Array, factor: Callable[[Axes], float], axis: int = 0, chosen: Axes = ()
) -> Array:
    """Multiply each part of an array by its factor; axes of means come back short."""
    if axis == array.ndim:
        return array * factor(chosen)
    mean = array.mean(axis=axis, keepdims=True)
    flat = _applied(mean, factor, axis + 1, chosen)
    if array.shape[axis] == 1:
        return flat
    return flat + _applied(array - mean, factor, axis + 1, (*chosen, axis))


def least_squares(margins: Margins) -> Array:
    """Return the cells that fit all margins best.

    Examples
    --------
    >>> cells, total = np.array([1.0, 2.0]), np.array([6.0])
    >>> least_squares(Margins([(cells, 1.0), (total, 1.0)])).tolist()
    [2.0, 3.0]
    """
    factors = margins.factors()
    return _applied(margins.right(), lambda chosen: 1 / factors[chosen])


def non_negative(margins: Margins) -> Array:
    r"""Return cells that are not negative, near those that fit all margins best.

    The margins of the least-squares cells are settled first, the coarsest before the
    others, and kept: cells raised to zero one by one would add the noise of all empty
    cells to every total.

    Notes
    -----
    A table without coarser ones is raised to zero. Every other one, with least-squares
    numbers y and settled margins :math:`m_q`, becomes

    .. math:: \arg\min_{x \ge 0} \|x - y\|^2 + 1000 \sum_q \|A_q x - m_q\|^2:

    the nearest table that has these margins, to a thousandth, or nearly has them where
    none does. It is :math:`x = \max(0, y - \sum_q A_q^\top r_q)`, where the r_q, one
    number per cell of a margin, minimise the convex dual

    .. math:: \tfrac12 \|x(r)\|^2 + \sum_q \Bigl(\frac{1}{2000} \|r_q\|^2
       + \langle m_q, r_q \rangle\Bigr),

    which L-BFGS does in tens of steps. Whatever r is, cells are not negative.

    Examples
    --------
    >>> cells, total = np.array([3.0, -2.0]), np.array([2.0])
    >>> non_negative(Margins([(cells, 1.0), (total, 1.0)])).round(2).tolist()
    [1.67, 0.0]
    """
    cells = least_squares(margins)
    if cells.min() >= 0:
        return cells
    shapes = {numbers.shape for numbers, _ in margins.tables}
    settled: dict[Axes, Array] = {}
    for lost in sorted((_lost(shape, cells) for shape in shapes), key=_coarsest_first):
        coarser = [axes for axes in settled if set(axes) > set(lost)]
        nearest = [a for a in coarser if not any(set(a) > set(b) for b in coarser)]
        numbers = cells.sum(axis=lost, keepdims=True)
        settled[lost] = _raised_cells(numbers, [settled[axes] for axes in nearest])
    return settled[()]


def _lost(shape: tuple[int, ...], cells: Array) -> Axes:
    return tuple(a for a, n in enumerate(shape) if n != cells.shape[a])


def _coarsest_first(lost: Axes) -> tuple[int, Axes]:
    return -len(lost), lost


def _raised_cells(numbers: Array, coarser: list[Array]) -> Array:
    """Return numbers that are not negative and add up to coarser tables."""
    if not coarser:
        return np.maximum(numbers, 0.0)
    unit = max(float(np.sqrt(np.mean(numbers**2))), 1e-100)
    dual = _Dual(
        numbers / unit,
        [margin / unit for margin in coarser],
        [_lost(margin.shape, numbers) for margin in coarser],
    )
    start = np.zeros(sum(margin.size for margin in coarser))
    steps = {"maxiter": _MOST_STEPS, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 20}
    options = cast(Any, steps)  # the stubs of SciPy know these names as a type only
    found = minimize(dual.value, start, jac=True, method="L-BFGS-B", options=options)
    return unit * dual.cells(dual.split(found.x))


@dataclass(frozen=True, slots=True)
class _Dual:
    """The dual problem of the nearest table; `lost` are the axes a margin sums out.

    Variables are scaled so that the problem is about as steep in all of them.
    """

    finest: Array
    others: list[Array]
    lost: list[Axes]

    @property
    def scales(self) -> list[float]:
        """One per margin: the root of how many cells it sums."""
        shape = self.finest.shape
        return [float(np.prod([shape[a] for a in axes])) ** 0.5 for axes in self.lost]

    def split(self, flat: Array) -> list[Array]:
        """Return the variables of each table."""
        cuts = np.cumsum([numbers.size for numbers in self.others])[:-1]
        parts = zip(np.split(flat, cuts), self.others, self.scales, strict=True)
        return [part.reshape(like.shape) / scale for part, like, scale in parts]

    def cells(self, duals: Sequence[Array]) -> Array:
        """Return the cells that belong to the variables."""
        left = self.finest.copy()
        for dual in duals:
            left -= dual
        return np.maximum(left, 0.0)

    def value(self, flat: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        duals = self.split(flat)
        cells = self.cells(duals)
        scales = self.scales
        value, slopes = 0.5 * float(np.sum(cells**2)), []
        for at, dual in enumerate(duals):
            numbers = self.others[at]
            value += float(np.sum(dual * (0.5 * _LOOSE * dual + numbers)))
            summed = cells.sum(axis=self.lost[at], keepdims=True)
            slope = _LOOSE * dual + numbers - summed
            slopes.append((slope / scales[at]).ravel())
        return value, np.concatenate(slopes)


def rounded(cells: Array, margins: Margins) -> Array:
    """Return whole cells near the given ones, whose margins are near theirs too.

    Every cell is rounded up or down, as many up as the total needs. Which ones are
    chosen a few at a time, where the margins of what is there so far lack most: cells
    rounded one by one would lose a table of small numbers altogether.

    Examples
    --------
    >>> thirds = np.full((3, 3), 1 / 3)
    >>> found = rounded(thirds, Margins([(thirds, 1.0), (np.ones((3, 1)), 1.0)]))
    >>> found.sum(axis=1).tolist()
    [1.0, 1.0, 1.0]
    """
    factors = margins.factors()
    found = np.floor(cells)
    may = cells > found
    left = int(np.rint(cells.sum() - found.sum()))
    while left > 0 and may.any():
        lacking = _applied(cells - found, factors.__getitem__)
        lacking = np.where(may, lacking, -np.inf)
        count = min(max(1, left // _BATCHES), int(may.sum()))
        best = np.argpartition(lacking, -count, axis=None)[-count:]
        found.flat[best] += 1
        may.flat[best] = False
        left -= count
    return found

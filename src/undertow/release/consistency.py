r"""After the noise: no negative counts, whole numbers, and margins that add up.

All of it is a function of noisy answers, so that it costs nothing; it changes the
estimates, which are no longer unbiased once negative ones are raised to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from undertow.release.answer import QueryAnswer
from undertow.release.job import Grid
from undertow.release.margins import (
    Array,
    Margins,
    least_squares,
    non_negative,
    rounded,
)

__all__ = ["Table", "add_up", "settle_rows"]

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
        rows = [_raised(row, first) for row in rows]
        ends = "estimates and ends of intervals" if non_negative else "estimates"
        notes.append(f"negative {ends} are raised to 0")
    return rows, tuple(notes)


def _raised(row: tuple[Any, ...], count: int) -> tuple[Any, ...]:
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

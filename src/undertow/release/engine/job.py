"""What the engine is asked and what it answers: whole numbers per cell, nothing else.

A job is made from the release file before any data is read. The engine turns it into
one query; only the aggregates below reach Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from undertow.release.language.expression import Expression

Measure = Literal["rows", "units", "sum", "squares"]
"""A whole number per cell: rows, distinct units, the sum of the codes of the value, or
the sum of their squares."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Public keys: every combination is a cell, whether or not the data has it.

    Parameters
    ----------
    columns : tuple of str
        The columns grouped by, in order; empty for one total.
    keys : tuple of tuple
        For each column its public keys, each once.
    """

    columns: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(len(column) for column in self.keys)

    def cells(self) -> Iterator[tuple[Any, ...]]:
        """Yield the cells, the last column fastest."""
        return product(*self.keys)


@dataclass(frozen=True, slots=True)
class Value:
    """How a number of a row becomes a whole number.

    The number is clipped to ``[low, high]`` and coded as
    ``floor((clipped - low) / step + 1/2)`` with ``step = 2**exponent``, so that codes
    run from 0 to `most`, sums are exact on every engine, and no order of addition
    matters. A missing number makes the row count for nothing.
    """

    column: str
    low: Fraction
    high: Fraction
    exponent: int

    @property
    def step(self) -> Fraction:
        """The unit of the codes."""
        return Fraction(2) ** self.exponent

    @property
    def most(self) -> int:
        """The largest code."""
        return int((self.high - self.low) / self.step + Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of the time line a run reads: ``start <= time < stop``.

    Epoch microseconds, in UTC; naive times are taken as UTC.
    """

    column: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Bounding:
    """How many rows of a unit are kept, chosen by a keyed hash.

    Parameters
    ----------
    unit : str or None
        Column of the protected unit; None if every row is a unit of its own.
    rows : int or None
        Most rows kept per unit, or per unit and window; None keeps all.
    window_us : int or None
        Length of a window in microseconds if `rows` counts per window.
    time : str or None
        The time column windows are cut from.
    """

    unit: str | None
    rows: int | None
    window_us: int | None = None
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One query, ready for the engine.

    Parameters
    ----------
    name : str
        The query's name.
    measures : tuple of Measure
        What to return per cell.
    where : Expression or None
        Rows that count.
    by : tuple of str
        Columns or derived columns grouped by.
    grid : Grid or None
        Public keys of `by`; None if the observed groups are returned for discovery,
        which always come with ``"units"``.
    value : Value or None
        The number behind ``"sum"`` and ``"squares"``.
    bins : tuple of Fraction or None
        Public cut points c_0 < ... < c_k of `bin_column`: the last key of a cell is
        then the number of its bin, 0 for numbers below c_1 and k - 1 for numbers from
        c_(k-1) on; numbers outside are counted in the first or last bin.
    bin_column : str or None
        The column that is cut.
    groups_per_unit : int or None
        Most cells that a unit counts in; others are dropped by the keyed hash.
    rows_per_group : int or None
        Most rows of a unit in one cell.
    total : bool
        Whether one number over all cells is returned, of the rows that count in any.
    """

    name: str
    measures: tuple[Measure, ...]
    where: Expression | None = None
    by: tuple[str, ...] = ()
    grid: Grid | None = None
    value: Value | None = None
    bins: tuple[Fraction, ...] | None = None
    bin_column: str | None = None
    groups_per_unit: int | None = None
    rows_per_group: int | None = None
    total: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Aggregates:
    """What came back: private numbers, to be noised and never shown.

    Parameters
    ----------
    cells : tuple of tuple
        The keys of each cell, in the order of the grid (bins last), absent cells
        included; sorted as text where the keys were discovered.
    measures : dict of str to ndarray
        For each measure one whole number per cell; Python integers in an array of
        dtype object where int64 could overflow.
    kinds : tuple of str
        Types of the keys in the words of JSON Schema, from the schema of the table;
        empty if unknown.
    """

    cells: tuple[tuple[Any, ...], ...]
    measures: dict[str, NDArray[np.int64] | NDArray[np.object_]]
    kinds: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Aggregates of {len(self.cells)} cells"

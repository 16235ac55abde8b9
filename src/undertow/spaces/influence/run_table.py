"""Runs of very many columns as arrays, and charges priced on all of them at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.privacy.exact import Exact
from undertow.spaces.change import Charge
from undertow.spaces.influence.layout import Layout

__all__ = ["ChargeTable", "Piece", "Run", "RunCosts", "RunTable", "placed"]

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

"""The sets of truths that a guess hits, restricted to one fibre of what is known.

Many guesses hit the same truths of a fibre, so each engine works on the distinct sets.
Three forms: cells of a partition, runs on a line, and rows of a matrix.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import ModelError
from undertow.privacy.exact import exact

__all__ = ["CellSets", "HitSets", "RowSets", "RunSets", "read_places", "whole_units"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Below this share of hits a matrix of rows is kept sparse.
_SPARSE_SHARE = 0.1
# Rows of a dense matrix turned into floats at a time.
_ROWS = 1024
# Whole numbers below this have exact differences as floats.
_WHOLE = 2**52


class HitSets(ABC):
    """Distinct hit sets within a fibre of n truths.

    Attributes
    ----------
    sizes : ndarray of int, of shape (sets,)
        Number of truths in each set.
    width : int
        Number n of truths.
    """

    __slots__ = ("sizes", "width")
    sizes: Indices
    width: int

    @property
    @abstractmethod
    def member(self) -> NDArray[np.integer[Any]]:
        """The set that each guess hits."""

    @abstractmethod
    def sums(self, weights: Floats) -> Floats:
        """Add weights (n, k) over each set: shape (sets, k)."""

    @property
    @abstractmethod
    def work(self) -> int:
        """Additions for one column of weights."""

    @property
    def full(self) -> NDArray[np.bool_]:
        """Which sets are the whole fibre."""
        return np.asarray(self.sizes == self.width)


class CellSets(HitSets):
    """Cells of a partition of the truths, and the empty set if a guess misses all.

    Parameters
    ----------
    truths : ndarray of int, of shape (n,)
        Cell of each truth.
    guesses : ndarray of int, of shape (guesses,)
        Cell that each guess hits: 0, 1, ..., each at least once.
    """

    __slots__ = ("_cell", "_cells", "_guesses")

    def __init__(self, truths: Indices, guesses: Indices) -> None:
        self._guesses = guesses
        self._cells, self._cell = np.unique(truths, return_inverse=True)
        sizes = np.bincount(self._cell)
        missed = int(guesses.max()) + 1 > len(self._cells)
        self.sizes = np.append(sizes, 0) if missed else sizes
        self.width = len(truths)

    @property
    def member(self) -> NDArray[np.integer[Any]]:
        """The set that each guess hits."""
        last = len(self._cells) - 1
        place = np.minimum(np.searchsorted(self._cells, self._guesses), last)
        return np.where(self._cells[place] == self._guesses, place, last + 1)

    def sums(self, weights: Floats) -> Floats:
        """Add weights over each cell, in O(n) per column."""
        if len(self.sizes) >= self.width and (self.sizes <= 1).all():
            added = np.zeros((len(self.sizes), weights.shape[1]))
            added[self._cell] = weights
            return added
        ones = np.ones(self.width)
        shape = (len(self.sizes), self.width)
        from scipy import sparse

        matrix = sparse.csr_array((ones, (self._cell, np.arange(self.width))), shape)
        return np.asarray(matrix @ weights)

    @property
    def work(self) -> int:
        """One addition per truth."""
        return self.width


class RunSets(HitSets):
    """Runs of consecutive truths on a line: those within `eta` of each guess.

    Parameters
    ----------
    truths, guesses : ndarray of float
        Coordinates.
    eta : float
        Distance at which a guess still hits, included.
    """

    __slots__ = ("_high", "_low", "_member", "_order")

    def __init__(self, truths: Floats, guesses: Floats, eta: float) -> None:
        self._order: Indices = np.argsort(truths, kind="stable")
        line = truths[self._order]
        ends = np.stack(_ends(line, guesses, eta), axis=1)
        ends[ends[:, 0] == ends[:, 1]] = 0  # one empty set, not one per place
        # One number for each pair of ends: whole rows sort a hundred times slower.
        keys = ends[:, 0] * (len(line) + 1) + ends[:, 1]
        runs, member = np.unique(keys, return_inverse=True)
        self._low, self._high = np.divmod(runs, len(line) + 1)
        self._member: Indices = member.reshape(-1).astype(np.intp)
        self.sizes = self._high - self._low
        self.width = len(truths)

    @property
    def member(self) -> NDArray[np.integer[Any]]:
        """The set that each guess hits."""
        return self._member

    def sums(self, weights: Floats) -> Floats:
        """Subtract prefix sums, in O(n + sets) per column."""
        prefix = np.zeros((self.width + 1, weights.shape[1]))
        np.cumsum(weights[self._order], axis=0, out=prefix[1:])
        return np.asarray(prefix[self._high] - prefix[self._low])

    @property
    def work(self) -> int:
        """One addition per truth and one per set."""
        return self.width + len(self.sizes)


def read_places(records: Sequence[Any]) -> Floats:
    """Return records that are numbers as places on a line.

    Examples
    --------
    >>> read_places([1, 2.5]).tolist()
    [1.0, 2.5]
    """
    try:
        line = np.array([float(record) for record in records])
    except (TypeError, ValueError, OverflowError):
        line = np.array([np.nan])
    text = any(isinstance(record, str | bytes) for record in records)
    if text or not np.isfinite(line).all():
        raise ModelError(
            "records must be finite numbers for the absolute distance; give a distance "
            "of your own for others."
        )
    # Two records that round to one place would pass for each other.
    pairs = zip(records, line.tolist(), strict=True)
    if any(isinstance(r, int | np.integer) and int(place) != r for r, place in pairs):
        raise ModelError(
            "records must be exact as floats for the absolute distance, got whole "
            "numbers beyond 2^53; subtract a common offset."
        )
    return line


def whole_units(places: Floats, eta: float) -> tuple[Floats, float]:
    """Return places and `eta` in a unit that makes all of them whole, if there is one.

    Numbers are read as the decimals they are written as, so that 0.8 and 0.6 are 0.2
    apart; a hit lost by rounding would understate the risk. Where no unit keeps them
    below 2^52 they come back as they are.

    Examples
    --------
    >>> whole_units(np.array([0.6, 0.8]), 0.2)
    (array([3., 4.]), 1.0)
    """
    if not math.isfinite(eta):
        return places, eta
    numbers = [Fraction(exact(abs(v))) for v in (*places.tolist(), eta)]
    unit = math.lcm(*(number.denominator for number in numbers))
    if max(numbers) * unit >= _WHOLE:
        return places, eta
    signs = np.sign(places)
    whole = np.array([float(number * unit) for number in numbers])
    return np.asarray(signs * whole[:-1]), float(whole[-1])


def _ends(line: Floats, guesses: Floats, eta: float) -> tuple[Indices, Indices]:
    """Return the first and past-the-last place with ``abs(truth - guess) <= eta``.

    The rounded difference grows with the truth, so the places form a run; the search
    by rounded ends is off by a few places at most and is put right by the test itself.
    """
    size = len(line)
    low = np.searchsorted(line, guesses - eta, side="left")
    high = np.searchsorted(line, guesses + eta, side="right")
    padded = np.concatenate([[-np.inf], line, [np.inf]])

    def slack(place: Indices) -> Floats:
        return np.asarray(padded[place + 1] - guesses)

    while (wide := (low > 0) & (slack(low - 1) >= -eta)).any():
        low = low - wide
    while (narrow := (low < size) & (slack(low) < -eta)).any():
        low = low + narrow
    while (wide := (high < size) & (slack(high) <= eta)).any():
        high = high + wide
    while (narrow := (high > 0) & (slack(high - 1) > eta)).any():
        high = high - narrow
    return low, np.maximum(low, high)


class RowSets(HitSets):
    """Rows of a matrix of hits, repeated rows taken once.

    Parameters
    ----------
    hits : ndarray of bool, of shape (guesses, n)
        Which truths each guess hits.
    """

    __slots__ = ("_few", "_matrix", "_member")

    def __init__(self, hits: NDArray[np.bool_]) -> None:
        packed = np.ascontiguousarray(np.packbits(hits, axis=1))
        keys = packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        rows = hits[first]
        self._member = member.reshape(-1).astype(np.int32)
        self.sizes = rows.sum(axis=1)
        self.width = hits.shape[1]
        self._few = int(self.sizes.sum()) < _SPARSE_SHARE * rows.size
        self._matrix: Any = rows
        if self._few:
            from scipy import sparse

            self._matrix = sparse.csr_array(rows, dtype=np.float64)

    @property
    def member(self) -> NDArray[np.integer[Any]]:
        """The set that each guess hits."""
        return self._member

    def sums(self, weights: Floats) -> Floats:
        """Multiply by the matrix of hits, sparse where it has few."""
        if self._few:
            return np.asarray(self._matrix @ weights)
        added = np.empty((len(self.sizes), weights.shape[1]))
        for start in range(0, len(self.sizes), _ROWS):
            rows = slice(start, start + _ROWS)
            added[rows] = self._matrix[rows].astype(np.float64) @ weights
        return added

    @property
    def work(self) -> int:
        """One addition per hit kept, or per entry of a dense matrix."""
        if self._few:
            return int(self.sizes.sum())
        return len(self.sizes) * self.width

r"""The upper envelope of Laplace gains, by closed-form breakpoints.

Between two neighbouring answers every gain is a combination of :math:`e^y` and
:math:`e^{-y}`, y in units of b, so it is fixed by its values p and q at the two:

.. math:: V_g(y) = p_g A(y) + q_g B(y), \qquad A(y) = \frac{\sinh(d-y)}{\sinh d},\
   B(y) = \frac{\sinh y}{\sinh d} .

Divided by A + B it is the line :math:`p_g(1-\tau) + q_g\tau` in
:math:`\tau = B/(A+B)`, which grows with y. The best guesses are the upper envelope of
lines, and two of them change places where
:math:`A/B = (q_j - q_i)/(p_i - p_j)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["fold_cells"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_UNIT = 2.0**-53
# Each round splits every open piece; far more than the pieces of any envelope need.
_ROUNDS = 4096


def fold_cells(values: Floats, rows: Indices, widths: Floats) -> tuple[Floats, Floats]:
    r"""Integrate the upper envelope over each of many cells.

    .. math:: \int_0^d \max_g\, (p_g A(y) + q_g B(y))\, dy

    Parameters
    ----------
    values : ndarray of shape (places, guesses)
        The gain of each guess at the ends of the cells.
    rows : ndarray of int, of shape (cells,)
        Place of the left end of each cell; the right end is the next place.
    widths : ndarray of shape (cells,)
        The d of each cell; positive.

    Returns
    -------
    value : ndarray of shape (cells,)
        The integral over the pieces found, which an attack attains.
    shortfall : ndarray of shape (cells,)
        What the true envelope can exceed it by, rounding of the values left out.

    Notes
    -----
    The envelope is convex in :math:`\tau`: if one line is best at both ends of a piece
    it is best on all of it; otherwise the lines best at the two ends cross inside, and
    either no line is higher there, which settles the piece, or the highest splits it.
    One evaluation of all lines per piece: O(guesses) each. A piece that is settled with
    an excess e at its crossing misses at most
    :math:`e\,(\tanh\frac{s}{2} + \tanh\frac{t}{2})`, s and t the lengths of its parts.

    Examples
    --------
    >>> import math
    >>> laws = np.array([[1.0, math.exp(-2)], [math.exp(-2), 1.0]])
    >>> value, shortfall = fold_cells(laws, np.array([0]), np.array([2.0]))
    >>> math.isclose(value[0], 2 * (1 - math.exp(-1))), bool(shortfall[0] < 1e-15)
    (True, True)
    """
    cells, best = _Cells(values, rows, widths), values.argmax(axis=1)
    every, zero = np.arange(len(widths), dtype=np.intp), np.zeros(len(widths))
    open_ = _Pieces(every, zero, widths, best[rows], best[rows + 1])
    value, shortfall = zero.copy(), zero.copy()
    for round_ in range(_ROUNDS):
        done = open_.left == open_.right
        value += cells.integral(open_.take(done))
        open_ = open_.take(~done)
        if not len(open_.cell):
            break
        # Settling all of them at last keeps the promise: their excess is counted.
        last = round_ == _ROUNDS - 1
        settled, lost, open_ = _advance(cells, open_, settle=last)
        value += settled
        shortfall += lost
    return value, shortfall


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Stretches of cells, with the lines that are best at their two ends."""

    cell: Indices
    start: Floats
    stop: Floats
    left: Indices
    right: Indices

    def take(self, which: NDArray[np.bool_]) -> _Pieces:
        return _Pieces(
            self.cell[which],
            self.start[which],
            self.stop[which],
            self.left[which],
            self.right[which],
        )

    def split(self, at: Floats, line: Indices) -> _Pieces:
        return _Pieces(
            np.concatenate([self.cell, self.cell]),
            np.concatenate([self.start, at]),
            np.concatenate([at, self.stop]),
            np.concatenate([self.left, line]),
            np.concatenate([line, self.right]),
        )


@dataclass(frozen=True, slots=True)
class _Cells:
    values: Floats
    rows: Indices
    widths: Floats

    def basis(self, cell: Indices, y: Floats) -> tuple[Floats, Floats]:
        """Return A and B, as products that neither overflow nor cancel."""
        d = self.widths[cell]
        whole = np.expm1(-2 * d)
        falling = np.exp(-y) * np.expm1(-2 * (d - y)) / whole
        return falling, np.exp(y - d) * np.expm1(-2 * y) / whole

    def crossing(self, pieces: _Pieces) -> Floats:
        """Return where the lines of the two ends cross, inside the piece."""
        row, i, j = self.rows[pieces.cell], pieces.left, pieces.right
        fall = np.maximum(self.values[row, i] - self.values[row, j], 0.0)
        rise = np.maximum(self.values[row + 1, j] - self.values[row + 1, i], 0.0)
        d = self.widths[pieces.cell]
        far = np.exp(-d)
        tiny = np.finfo(np.float64).tiny  # equal lines cross anywhere
        above, below = fall + rise * far + tiny, fall * far + rise + tiny
        place = (d + np.log(above) - np.log(below)) / 2
        return np.asarray(np.clip(place, pieces.start, pieces.stop))

    def integral(self, pieces: _Pieces) -> Floats:
        """Add up the left lines of the pieces of each cell."""
        d, start, stop = self.widths[pieces.cell], pieces.start, pieces.stop
        share = -np.expm1(start - stop) / np.expm1(-2 * d)
        falling = np.exp(-start) * np.expm1(start + stop - 2 * d) * share
        rising = np.exp(stop - d) * np.expm1(-start - stop) * share
        row = self.rows[pieces.cell]
        p, q = self.values[row, pieces.left], self.values[row + 1, pieces.left]
        return self.collect(pieces.cell, p * falling + q * rising)

    def collect(self, cell: Indices, parts: Floats) -> Floats:
        """Add up what belongs to each cell."""
        added = np.bincount(cell, weights=parts, minlength=len(self.widths))
        return added.astype(np.float64, copy=False)


def _advance(
    cells: _Cells, pieces: _Pieces, *, settle: bool
) -> tuple[Floats, Floats, _Pieces]:
    """Settle the pieces whose crossing no line passes, split the others."""
    row, number = cells.rows[pieces.cell], np.arange(len(pieces.cell))
    at = cells.crossing(pieces)
    falling, rising = cells.basis(pieces.cell, at)
    lines = cells.values[row] * falling[:, None]
    lines += cells.values[row + 1] * rising[:, None]
    best = lines.argmax(axis=1)
    left, right = lines[number, pieces.left], lines[number, pieces.right]
    excess = lines[number, best] - np.minimum(left, right)
    size = np.abs(cells.values[row, pieces.left])
    size += np.abs(cells.values[row + 1, pieces.right])
    done = (excess <= 8 * _UNIT * size) | (best == pieces.left)
    done |= (best == pieces.right) | settle
    closed = pieces.take(done)
    reach = np.tanh((at[done] - closed.start) / 2)
    reach += np.tanh((closed.stop - at[done]) / 2)
    lost = cells.collect(closed.cell, excess[done] * reach)
    value = cells.integral(closed.split(at[done], closed.right))
    return value, lost, pieces.take(~done).split(at[~done], best[~done])

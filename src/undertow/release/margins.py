r"""The table that fits several noisy margins of it best.

.. math:: \min_x \sum_q w_q \|A_q x - y_q\|^2

with or without :math:`x \ge 0`, where :math:`A_q` sums out the columns that table q
does not have. Summing out an axis of length n maps deviations from the mean of that
axis to zero and multiplies the mean part by n. On the part of x that deviates along
exactly the axes U, :math:`H = \sum_q w_q A_q^\top A_q` is therefore a number,

.. math:: \lambda_U = \sum_{q: U \subseteq \text{axes}(q)} w_q
   \prod_{a \notin \text{axes}(q)} n_a,

and functions of H are applied part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["Margins", "least_squares", "non_negative", "rounded"]

Array = NDArray[np.float64]
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
        settled[lost] = _raised(numbers, [settled[axes] for axes in nearest])
    return settled[()]


def _lost(shape: tuple[int, ...], cells: Array) -> Axes:
    return tuple(a for a, n in enumerate(shape) if n != cells.shape[a])


def _coarsest_first(lost: Axes) -> tuple[int, Axes]:
    return -len(lost), lost


def _raised(numbers: Array, coarser: list[Array]) -> Array:
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

"""Finite pairs of distributions behind piecewise-linear trade-off functions.

A piecewise-linear trade-off function is that of a finite pair :math:`(P, Q)`: one atom
per straight piece, with masses :math:`(p, q)` and slope :math:`-q/p`; the logarithm of
:math:`q/p` is the atom's *loss*. Products of pairs are tensor products of trade-off
functions, chains of pairs their groups.

Two operations lower a trade-off function, that is, err on the private side. Dropping a
piece splits its atom between the two neighbouring losses, both masses preserved: the
new pair tells more. Drawing tangents instead of the curve itself replaces a convex
function by an envelope below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.numeric.array import Floats
from undertow.numeric.rounding import UNIT, inflate
from undertow.numeric.search import bisect

# Mass that thinning and tangents may push to an infinite loss.
_TAIL = 1e-15
# Losses closer than this are rounding copies of one another.
_SAME_LOSS = 1e-12
# Raises delta before tangents are drawn, far above the rounding errors of the drawing.
_CURVE_MARGIN = 2.0**-40
# Relative error of a handful of rounded operations; of a loss, to its logarithms.
ROUNDING = 16 * UNIT
_LOG_ERROR = 4 * UNIT
_LARGEST_LOSS = 700.0
_TINY = 1e-290


@dataclass(frozen=True, slots=True, eq=False)
class Atoms:
    """Masses of a finite pair, one atom per loss, by descending loss.

    `error` bounds the relative error of the masses.
    """

    loss: Floats
    p: Floats
    q: Floats
    error: float = 0.0

    def __len__(self) -> int:
        return len(self.loss)

    def swapped(self) -> Atoms:
        """Return the pair in the other order."""
        return Atoms(-self.loss[::-1], self.q[::-1], self.p[::-1], self.error)

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence at `epsilon`, rounded up."""
        margin = self.error + ROUNDING
        if epsilon == math.inf:
            return inflate(float(self.q[self.loss == math.inf].sum()), margin)
        filled = self.q > 0
        loss, q = self.loss[filled], self.q[filled]
        # A loss is a difference of two logarithms; what it may err is added.
        size = np.where(loss == math.inf, 0.0, np.abs(loss) - 2.0 * np.log(q))
        gap = np.minimum(epsilon - loss - _LOG_ERROR * (size > 0) * size, 0.0)
        return inflate(math.fsum(-q * np.expm1(gap)), margin)

    def knots(self) -> tuple[Floats, Floats]:
        """Return the corners of the trade-off function, from alpha 0 to 1."""
        drawn = self.p > 0
        p, q = self.p[drawn], self.q[drawn]
        # Summed from the small end, so that both tails keep their digits.
        alphas = np.concatenate([[0.0], np.cumsum(p)])
        betas = np.concatenate([np.cumsum(q[::-1])[::-1], [0.0]])
        return np.minimum(alphas, 1.0), np.minimum(betas, 1.0)


def atoms_of(p: Floats, q: Floats, *, error: float = 0.0) -> Atoms:
    """Order the masses by descending loss and join atoms of equal loss."""
    present = (p > 0) | (q > 0)
    p, q = p[present], q[present]
    with np.errstate(divide="ignore"):
        loss = np.log(q) - np.log(p)
    values, place = np.unique(-loss, return_inverse=True)
    joined_p, joined_q = np.zeros(len(values)), np.zeros(len(values))
    np.add.at(joined_p, place, p)
    np.add.at(joined_q, place, q)
    return Atoms(-values, joined_p, joined_q, error + _joining_error(place))


def _joining_error(place: NDArray[np.intp]) -> float:
    """Bound the relative error of adding positive masses up at their places."""
    return UNIT * int(np.bincount(place).max(initial=1))


def binomial_atoms(n: int, *, epsilon: float, lost: float) -> Atoms:
    """Return the pair of `n` randomized responses, `lost` of each law in the open.

    Parameters
    ----------
    n : int
        Number of responses; positive.
    epsilon : float
        Loss of one response; positive and finite.
    lost : float
        Mass of each law where the other has none.
    """
    likely = 1.0 / (1.0 + math.exp(-epsilon))
    mode = min(n, int((n + 1) * likely))
    successes = np.arange(n + 1)
    rise = (n - successes[:-1]) / successes[1:] * math.exp(min(epsilon, 600.0))
    # From the mode outwards, because the tails may underflow.
    above = np.cumprod(rise[mode:])
    below = np.cumprod(1.0 / rise[:mode][::-1])[::-1]
    q = np.concatenate([below, [1.0], above])
    q *= (1.0 - lost) / math.fsum(q)
    loss = (2.0 * successes - n) * epsilon
    return Atoms(
        np.concatenate([[math.inf], loss[::-1], [-math.inf]]),
        np.concatenate([[0.0], q, [lost]]),
        np.concatenate([[lost], q[::-1], [0.0]]),
        # From the mode outwards each mass has four more roundings than the last.
        error=n * 2.0**-50,
    )


def product(first: Atoms, second: Atoms) -> Atoms:
    """Return the atoms of the product pair; their number multiplies."""
    p = np.multiply.outer(first.p, second.p).ravel()
    q = np.multiply.outer(first.q, second.q).ravel()
    # Subnormal masses have lost the digits of their loss; without them it is infinite,
    # which is on the private side.
    p, q = np.where(p < _TINY, 0.0, p), np.where(q < _TINY, 0.0, q)
    return atoms_of(p, q, error=first.error + second.error + ROUNDING)


def thinned(atoms: Atoms, knots: int) -> Atoms:
    """Drop pieces until about `knots` are left; never raises the trade-off function.

    Copies of one loss that differ by rounding are joined in any case.
    """
    finite = np.flatnonzero(np.isfinite(atoms.loss))
    loss = atoms.loss[finite]
    near = np.abs(np.diff(loss)) <= _SAME_LOSS * (1.0 + np.abs(loss[1:]))
    inside = np.zeros(len(loss), dtype=bool)
    inside[1:-1] = near[:-1] & near[1:]
    kept = finite[~inside]
    if len(kept) > knots:
        kept = kept[_spread(atoms, kept, knots)]
    if len(kept) == len(finite):
        return atoms
    return _split_between(atoms, kept)


def _spread(atoms: Atoms, kept: NDArray[np.intp], knots: int) -> NDArray[np.intp]:
    """Choose `knots` of the kept pieces, evenly over the losses that carry mass."""
    loss, finite = atoms.loss[kept], np.isfinite(atoms.loss)
    above = np.cumsum(np.where(finite, atoms.q, 0.0))[kept]
    below = np.cumsum(np.where(finite, atoms.p, 0.0)[::-1])[::-1][kept]
    first = int(np.count_nonzero(above < _TAIL))
    last = len(kept) - 1 - int(np.count_nonzero(below < _TAIL))
    if first >= last:
        first, last = 0, len(kept) - 1
    targets = np.linspace(loss[first], loss[last], knots)
    chosen = np.searchsorted(-loss, -targets)
    return np.unique(np.clip(chosen, first, last))


def _split_between(atoms: Atoms, kept: NDArray[np.intp]) -> Atoms:
    """Split every other atom between its kept neighbours, masses preserved."""
    ladder = np.concatenate([[math.inf], atoms.loss[kept], [-math.inf]])
    below = np.searchsorted(-ladder, -atoms.loss, side="left")
    below = np.clip(below, 1, len(ladder) - 1)
    high, low, loss = ladder[below - 1], ladder[below], atoms.loss
    p, q = np.zeros(len(ladder)), np.zeros(len(ladder))
    with np.errstate(invalid="ignore"):
        up = np.expm1(low - loss) / np.expm1(low - high)
        down = np.expm1(loss - high) / np.expm1(low - high)
    at_top, at_bottom = loss == high, loss == low
    up = np.where(at_top, 1.0, np.where(at_bottom, 0.0, up))
    down = np.where(at_top, 0.0, np.where(at_bottom, 1.0, down))
    q_up, p_down = atoms.q * up, atoms.p * down
    # Whole atoms keep both masses; split ones get the mass that fits their new loss.
    with np.errstate(invalid="ignore"):
        p_up = np.where(at_top, atoms.p, atoms.p * up * np.exp(loss - high))
        q_down = np.where(at_bottom, atoms.q, atoms.q * down * np.exp(low - loss))
    np.add.at(q, below - 1, q_up)
    np.add.at(p, below - 1, p_up)
    np.add.at(p, below, p_down)
    np.add.at(q, below, q_down)
    filled = (p > 0) | (q > 0)
    error = atoms.error + ROUNDING + 2 * _joining_error(below)
    return Atoms(ladder[filled], p[filled], q[filled], error)


def atoms_of_curve(
    delta: Callable[[float], float],
    inverse_delta: Callable[[float], float],
    *,
    knots: int,
) -> Atoms:
    """Draw tangents to a trade-off function from its delta curve.

    Parameters
    ----------
    delta : callable
        Upper bound on the hockey-stick divergence at every epsilon of at least 0.
    inverse_delta : callable
        The same for the pair in the other order.
    knots : int
        Number of tangents.

    Returns
    -------
    Atoms
        The pair whose trade-off function is the envelope of the tangents with slopes
        ``-exp(epsilon)`` and ``-exp(-epsilon)`` on an even grid.
    """
    count = max(1, knots // 2)
    right, right_edge = _half(delta, count)
    left, left_edge = _half(inverse_delta, count)
    distance = min(1.0, delta(0.0) * (1.0 + _CURVE_MARGIN))
    # Non-negative for a convex function. Where the raised tangents overlap at a corner
    # of slope -1, normalising takes back that part of the margin and no more.
    middle = 1.0 - distance - right_edge - left_edge
    scale = 1.0 / (1.0 + max(0.0, -middle))
    centre = Atoms(np.zeros(1), *np.full((2, 1), max(0.0, middle)))
    parts = [right, centre, left.swapped()]
    return Atoms(
        np.concatenate([part.loss for part in parts]),
        np.concatenate([part.p for part in parts]) * scale,
        np.concatenate([part.q for part in parts]) * scale,
        error=2.0**-46,  # a few roundings a tangent
    )


def _half(delta: Callable[[float], float], count: int) -> tuple[Atoms, float]:
    """Return the pieces steeper than -1, and the alpha at which they end."""
    grid = np.linspace(0.0, _reach(delta), count + 1)
    values = np.array([delta(epsilon) for epsilon in grid]) * (1.0 + _CURVE_MARGIN)
    lines, starts = _envelope(grid, np.minimum(values, 1.0))
    steep = np.exp(grid[lines])
    p = np.diff(starts)
    return Atoms(
        np.append(math.inf, grid[lines[:-1]]),
        np.append(0.0, p),
        np.append(min(1.0, values[lines[0]]), p * steep[:-1]),
    ), float(starts[-1])


def _envelope(grid: Floats, values: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return which tangents touch the envelope, steepest first, and where each begins.

    The flattest one always does: nothing follows it that could hide it.
    """
    lines: list[int] = []
    starts: list[float] = []
    for line in range(len(grid) - 1, -1, -1):
        start = 0.0
        while lines:
            top = lines[-1]
            fall = float(values[line] - values[top]) * math.exp(-grid[top])
            gap = -math.expm1(grid[line] - grid[top])
            start = fall / gap if gap > 0 else 0.0
            if start > starts[-1]:
                break
            lines.pop()
            starts.pop()
            start = 0.0
        lines.append(line)
        starts.append(start)
    return np.array(lines, dtype=np.intp), np.array(starts)


def _reach(delta: Callable[[float], float]) -> float:
    """Return an epsilon past which delta falls by less than the tail mass."""
    floor = delta(_LARGEST_LOSS) + _TAIL
    if delta(0.0) <= floor:
        return 0.0
    return bisect(lambda e: delta(e) <= floor, inside=_LARGEST_LOSS, outside=0.0)


def convex_floor(alphas: Floats, betas: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the greatest convex function below the points."""
    order = np.lexsort((betas, alphas))
    hull: list[tuple[float, float]] = []
    for x, y in zip(alphas[order].tolist(), betas[order].tolist(), strict=True):
        if hull and hull[-1][0] == x:
            continue
        while len(hull) > 1 and _not_below(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    corners = np.array(hull)
    return corners[:, 0], corners[:, 1]


def _not_below(
    first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]
) -> bool:
    rise = (middle[1] - first[1]) * (last[0] - first[0])
    return rise >= (last[1] - first[1]) * (middle[0] - first[0])


def chained(first: Atoms, second: Atoms) -> Atoms:
    r"""Return the pair (P, R) that a chain of pairs (P, Q) and (Q, R) guarantees.

    Notes
    -----
    The function is :math:`g(1 - f)`. Both pairs cut the Q-mass in order of their
    losses: where piece i of the first meets piece j of the second over a length m,
    there is an atom with masses :math:`m p_i/q_i` and :math:`m r_j/q_j`. Lengths are
    measured from the nearer end, so that small masses keep their digits however steep
    the pieces.
    """
    left, right = first.q > 0, second.p > 0
    length, i, j = _overlay(first.q[left], second.p[right])
    p = length * (first.p[left] / first.q[left])[i]
    q = length * (second.q[right] / second.p[right])[j]
    alone_p, alone_q = first.p[~left], second.q[~right]
    return atoms_of(
        np.concatenate([p, alone_p, np.zeros_like(alone_q)]),
        np.concatenate([q, np.zeros_like(alone_p), alone_q]),
        error=first.error + second.error + ROUNDING,
    )


def _overlay(
    first: Floats, second: Floats
) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Return lengths of the common refinement of two partitions of [0, 1].

    With each length come the pieces it lies in.
    """
    low = _overlay_half(first, second)
    high = _overlay_half(first[::-1], second[::-1])
    return (
        np.concatenate([low[0], high[0]]),
        np.concatenate([low[1], len(first) - 1 - high[1]]),
        np.concatenate([low[2], len(second) - 1 - high[2]]),
    )


def _overlay_half(
    first: Floats, second: Floats
) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    ends = np.cumsum(first), np.cumsum(second)
    inner = [end[end < 0.5] for end in ends]
    cuts = np.unique(np.concatenate([[0.0, 0.5], *inner]))
    middle = cuts[:-1] + np.diff(cuts) / 2
    place = [np.searchsorted(end, middle) for end in ends]
    return np.diff(cuts), place[0], place[1]

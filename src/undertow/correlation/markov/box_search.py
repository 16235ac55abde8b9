"""The least number that one step of a chain of many states does not raise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.markov.pairwise_windows import influences, pair_diameters

__all__ = ["BoxSide", "RowDivergence", "largest_level"]

Array = NDArray[np.float64]

# Most unknown records bounded by the diameter before rows are used.
_LONGEST = 64
# Pairs of rows remembered from each pass, and passes to confirm a root.
_REMEMBERED, _ROUNDS = 64, 12
# What a quotient is taken for whose logarithm would leave the floats.
_SMALLEST = 1e-300
_CLOSE = 1e-9


class RowDivergence:
    r"""Hockey-stick divergences of the rows of a stochastic matrix.

    .. math:: S_{xx'}(\lambda) = \sum_y \max(p_x(y) - \lambda p_{x'}(y), 0)

    Parameters
    ----------
    rows : ndarray of shape (s, s)
        Row-stochastic.

    Notes
    -----
    A pass over all pairs costs s^3. The pairs that were among the largest in some pass
    are remembered: on them alone a root is cheap to find, and one pass confirms it.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        self._leading: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.variation = self._pass(1.0)

    def largest(self, factor: float) -> float:
        """Return the largest divergence at a factor of at least 1, raised."""
        return self._raised(float(self._pass(factor).max()), factor)

    def leading(self, factor: float) -> float:
        """Return the largest divergence among the remembered pairs, raised."""
        first, second = np.divmod(self._leading, len(self.rows))
        apart = self.rows[first] - factor * self.rows[second]
        found = float(np.maximum(apart, 0.0).sum(axis=1).max())
        return self._raised(found, factor)

    def _raised(self, value: float, factor: float) -> float:
        return value * (1 + 1e-12) + 1e-15 * len(self.rows) * factor

    def _pass(self, factor: float) -> Array:
        from scipy.spatial.distance import cdist

        # The positive part of a difference from its absolute value and its sum.
        apart = cdist(self.rows, factor * self.rows, "cityblock") + (1 - factor)
        found = np.maximum(apart / 2, 0.0)
        flat = found.ravel()
        count = min(_REMEMBERED, len(flat))
        top = np.argpartition(-flat, count - 1)[:count]
        self._leading = np.union1d(self._leading, top)
        return np.asarray(found)


class BoxSide:
    """The windows of one side of a target, bounded pair by pair.

    Parameters
    ----------
    kernel : ndarray of shape (s, s)
        The transition matrix for the right side, its transpose for the left one.
    centre : ndarray of shape (s,)
        Weights that distant ends of a window lead to: ones, or the stationary law.
    """

    def __init__(self, kernel: Array, centre: Array) -> None:
        rows = kernel * centre
        self.diameters = pair_diameters(kernel)
        self.diameter = float(self.diameters.max())
        self._divergence = RowDivergence(rows / rows.sum(axis=1, keepdims=True))
        self._kernel, self._centre = kernel, centre
        self._weights = kernel.T
        self._widths: list[float] = []

    def bound(self, epsilon: float, ceiling: float) -> Array:
        """Return V for all pairs, at most what `ceiling` for the recursion gives.

        Parameters
        ----------
        epsilon : float
            DP level; positive.
        ceiling : float
            A number that bounds epsilon + V for every pair and window.
        """
        best = influences(ceiling, self.diameters)
        worst, short = float(best.max()), epsilon
        for count in range(1, _LONGEST + 1):
            # `short` bounds epsilon + V for windows of fewer than `count` records.
            inside = influences(short, self.diameters)
            if inside.max() >= worst:
                break
            reached = float(inside.max())
            beyond = self._beyond(epsilon, count, reached=reached, most=worst)
            found = np.maximum(inside, beyond)
            if found.max() < worst:
                best, worst = np.minimum(found, best), float(found.max())
            short = epsilon + reached
        np.fill_diagonal(best, 0.0)
        return best

    def _beyond(
        self, epsilon: float, count: int, *, reached: float, most: float
    ) -> Array:
        """Bound windows longer than `count`; infinite where that needs over `most`.

        Windows of `count` records are bounded by `reached`: the recursion starts there,
        and a step that keeps some v keeps every larger one.

        Weights within a factor ``exp(width)`` of the central ones act as if functions
        oscillated by `width` more, and tilt the two laws that are compared.
        """
        width, variation = self._width(count), self._divergence.variation
        rate = math.expm1(min(width, 700.0)) * (1 + 1e-12)
        tilt = np.log1p(rate * variation.T)
        added = epsilon + width + float(tilt.max())
        left = most - float(tilt.max())
        step = self._root(added, left) if left > 0 else math.inf
        if step == math.inf:
            return np.full_like(tilt, math.inf)
        step = max(step, reached - float(tilt.max()))
        rate = math.expm1(added + step) * (1 + 1e-12)
        return np.asarray(np.minimum(step, np.log1p(rate * variation)) + tilt)

    def _width(self, count: int) -> float:
        """Return how far log weights of windows longer than `count` oscillate."""
        while len(self._widths) < count:
            if self._widths:
                self._weights = self._weights @ self._kernel.T
                self._weights /= self._weights.sum(axis=1, keepdims=True)
            apart = np.log(self._weights) - np.log(self._centre)
            width = float((apart.max(axis=1) - apart.min(axis=1)).max())
            self._widths.append(width + 1e-13 * len(apart))
        return self._widths[count - 1]

    def _root(self, added: float, most: float) -> float:
        """Return v, above the least one by a share 1e-9, that one step keeps.

        With oscillation ``added + v`` no two rows differ by more than v.
        """

        def ratio(v: float, largest: Callable[[float], float]) -> float:
            return math.expm1(added + v) * largest(math.exp(v)) / math.expm1(v)

        for _ in range(_ROUNDS):
            found = _least_keeping(lambda v: ratio(v, self._divergence.leading), most)
            if found == math.inf or ratio(found, self._divergence.largest) <= 1:
                return found
        return math.inf


def largest_level(
    leakage_at: Callable[[float], float], target: float, *, low: float
) -> float:
    """Return a level within a share 1e-9 of the largest one that keeps the target.

    Parameters
    ----------
    leakage_at : callable
        Leakage as a function of epsilon, nearly non-decreasing; it may be 0.
    target : float
        Positive.
    low : float
        A level that keeps the target.

    Notes
    -----
    The Illinois rule on ``log(leakage / target)``, a dozen evaluations. Besides `low`
    only levels at which `leakage_at` was found at most `target` are returned.
    """

    def miss(level: float) -> float:
        return math.log(max(leakage_at(level) / target, _SMALLEST))

    top = miss(target)
    if top <= 0:
        return target
    return _crossing(miss, (low, miss(low)), (target, top))[0]


def _least_keeping(ratio: Callable[[float], float], most: float) -> float:
    """Return some v of at most `most` with ``ratio(v) <= 1``, nearly the least."""

    def spare(v: float) -> float:
        return -math.log(max(ratio(v), _SMALLEST))

    high, top = most, spare(most)
    if top < 0:
        return math.inf
    low, bottom = high / 4, spare(high / 4)
    while bottom >= 0:
        if low < 1e-9 * most:
            return low
        high, top, low, bottom = low, bottom, low / 4, spare(low / 4)
    return _crossing(spare, (low, bottom), (high, top))[1]


def _crossing(
    value: Callable[[float], float],
    below: tuple[float, float],
    above: tuple[float, float],
) -> tuple[float, float]:
    """Return the ends of a bracket of the zero of a rising function.

    The Illinois rule, between points with a value of at most 0 and of at least 0;
    evaluated points keep to their side.
    """
    (low, bottom), (high, top) = below, above
    rose = None
    while high - low > _CLOSE * high and bottom < 0 < top:
        share = min(max(bottom / (bottom - top), 1e-4), 1 - 1e-4)
        middle = low * (high / low) ** share
        if not low < middle < high:
            break
        here = value(middle)
        if here <= 0:
            low, bottom = middle, here
            top = top / 2 if rose is True else top
            rose = True
        else:
            high, top = middle, here
            bottom = bottom / 2 if rose is False else bottom
            rose = False
    return low, high

"""Markov quilts and the search for the best one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from undertow.correlation.comparators._chain import Matrix
from undertow.errors import NotApplicable

__all__ = [
    "Distances",
    "MarkovQuilt",
    "log_ratios",
    "narrowest",
    "two_sided",
    "worst_target",
]

# Widest window searched; the work grows with its square.
_WIDEST = 4096

Influence = Callable[[int], Matrix]
"""From a width w to the influence of the quilts (a, w + 1 - a), a = 1..w."""


@dataclass(frozen=True, slots=True)
class MarkovQuilt:
    """A window around a record, and how much its two ends tell of the record.

    Parameters
    ----------
    left, right : int or None
        Distance of the end on each side; None where the window runs to the end of the
        chain.
    width : int
        Records inside the window, the protected one included.
    influence : float
        Largest log-ratio of the ends' law between two values of the record.
    """

    left: int | None
    right: int | None
    width: int
    influence: float

    def scale(self, target: float) -> float:
        """Return ``width / (target - influence)``, infinite where that is no scale."""
        room = target - self.influence
        return self.width / room if room > 0 else math.inf


class Distances:
    """Log-ratio matrices of the powers of a kernel, computed once, up to a distance."""

    def __init__(self, kernel: Matrix) -> None:
        self._kernel, self._power = kernel, np.eye(len(kernel))
        self._table = np.zeros((0, *kernel.shape))
        self._filled = 0

    def up_to(self, distance: int) -> Matrix:
        if distance > len(self._table):
            grown = np.zeros((2 * distance, *self._kernel.shape))
            grown[: self._filled] = self._table[: self._filled]
            self._table = grown
        while self._filled < distance:
            self._power = self._power @ self._kernel
            self._table[self._filled] = log_ratios(self._power)
            self._filled += 1
        return self._table[:distance]


def log_ratios(kernel: Matrix) -> Matrix:
    """Return, for rows x and x', the largest ln kernel[x, y] / kernel[x', y]."""
    with np.errstate(divide="ignore"):
        logs = np.log(kernel)
    possible = np.isfinite(logs)
    above = np.where(possible, logs, -math.inf)[:, None, :]
    below = np.where(possible, logs, -math.inf)[None, :, :]
    with np.errstate(invalid="ignore"):
        ratios = np.where(above == -math.inf, -math.inf, above - below)
    return np.asarray(np.maximum(ratios.max(axis=2), 0.0))


def two_sided(behind: Distances, ahead: Distances, width: int) -> Matrix:
    """Return the influence of the quilts (a, width + 1 - a), a = 1, ..., width."""
    back, forth = behind.up_to(width), ahead.up_to(width)[::-1]
    return np.asarray((back + forth).max(axis=(1, 2)))


def narrowest(influence: Influence, target: float, *, size: int | None) -> MarkovQuilt:
    best: MarkovQuilt | None = None
    if size is not None:
        best = MarkovQuilt(None, None, size, 0.0)
    width = 1
    while best is None or width / target < best.scale(target):
        if width > _WIDEST:
            raise NotApplicable(
                f"the Markov quilt mechanism needs a window of at most {_WIDEST} "
                f"records with influence below the target, got none at {target}; use "
                "the general bound."
            )
        values = influence(width)
        a = int(np.argmin(values))
        found = MarkovQuilt(a + 1, width - a, width, float(values[a]))
        if best is None or found.scale(target) < best.scale(target):
            best = found if found.influence < target else best
        width += 1
    return best


def worst_target(behind: Matrix, ahead: Matrix, target: float) -> MarkovQuilt:
    """Return the best quilt of the record whose best quilt needs the most noise."""
    size = len(ahead)
    reach = np.arange(size, dtype=float)  # distance minus one
    both = _scales(_joint(behind, ahead), np.add.outer(reach, reach) + 1, target)
    nested = np.minimum.accumulate(np.minimum.accumulate(both, axis=0), axis=1)
    back, forth = behind.max(axis=(1, 2)), ahead.max(axis=(1, 2))
    needed = np.full(size, size / target)
    for i in range(size):
        left, right = i, size - 1 - i
        one_sided = (
            _scales(back[:left], right + 1 + reach[:left], target),
            _scales(forth[:right], left + 1 + reach[:right], target),
        )
        options = [side.min() for side in one_sided if side.size]
        if left and right:
            options.append(nested[left - 1, right - 1])
        needed[i] = min([needed[i], *options])
    worst = int(np.argmax(needed))
    return _best_of(worst, behind, ahead, target)


def _best_of(i: int, behind: Matrix, ahead: Matrix, target: float) -> MarkovQuilt:
    """Return the best of all quilts of record i."""
    size = len(ahead)
    right = size - 1 - i
    back, forth = behind.max(axis=(1, 2)), ahead.max(axis=(1, 2))
    quilts = [MarkovQuilt(None, None, size, 0.0)]
    quilts += [
        MarkovQuilt(a + 1, None, right + 1 + a, float(back[a])) for a in range(i)
    ]
    quilts += [
        MarkovQuilt(None, b + 1, i + 1 + b, float(forth[b])) for b in range(right)
    ]
    joint = _joint(behind[:i], ahead[:right])
    quilts += [
        MarkovQuilt(a + 1, b + 1, a + b + 1, float(joint[a, b]))
        for a, b in np.ndindex(joint.shape)
    ]
    return min(quilts, key=lambda quilt: quilt.scale(target))


def _joint(behind: Matrix, ahead: Matrix) -> Matrix:
    """Return the influence of each two-sided quilt: one pair (x, x') on both sides."""
    largest = np.zeros((len(behind), len(ahead)))
    for x, other in np.ndindex(behind.shape[1:]):
        np.maximum(
            largest, np.add.outer(behind[:, x, other], ahead[:, x, other]), out=largest
        )
    return largest


def _scales(influence: Matrix, widths: Matrix, target: float) -> Matrix:
    room = target - influence
    safe = np.where(room > 0, room, 1.0)
    return np.asarray(np.where(room > 0, widths / safe, math.inf))

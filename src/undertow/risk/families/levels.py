"""The inverse of a growing curve for many targets at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import nudge_up
from undertow.risk.families.base import LARGEST_LEVEL, Curve

__all__ = ["false_position", "greatest_levels"]

Floats = NDArray[np.float64]

# Targets from which a shared table pays, its size and first level; false position.
_MANY, _GRID, _FIRST, _TRIES, _NEAR = 32, 256, 1e-9, 80, 1e-12


def greatest_levels(
    curve: Curve, targets: Floats, *, largest: float = LARGEST_LEVEL
) -> Floats:
    """Return the greatest level at which a growing curve stays within each target.

    Few targets are bisected over the floats, 62 evaluations each. Many share a table of
    the curve, and from its brackets go on by false position; they end within a relative
    1e-11 below the target. A level of 0 says that no positive float fits.
    """
    low, high = np.zeros(targets.shape), np.full(targets.shape, nudge_up(largest))
    if len(targets) >= _MANY:
        grid = np.geomspace(_FIRST, largest, _GRID)
        place = np.searchsorted(curve.raised(grid), targets, side="right")
        inner = (place > 0) & (place < _GRID)
        low[inner], high[inner] = grid[place[inner] - 1], grid[place[inner]]
        ends = (low[inner], high[inner])
        low[inner] = false_position(curve, targets[inner], ends)
        high[inner] = np.nextafter(low[inner], np.inf)
    first, last = low.view(np.int64), high.view(np.int64)
    while (open_ := last - first > 1).any():
        middle = first[open_] + (last[open_] - first[open_]) // 2
        fits = curve.raised(middle.view(np.float64)) <= targets[open_]
        first[open_] = np.where(fits, middle, first[open_])
        last[open_] = np.where(fits, last[open_], middle)
    return low


def false_position(
    curve: Curve,
    targets: Floats,
    ends: tuple[Floats, Floats],
    *,
    near: float = _NEAR,
    width: float = 1e-15,
) -> Floats:
    """Raise the low ends to the targets within brackets, on logarithmic scales.

    By the Illinois rule, all brackets at a time, until the risk is within a share
    `near` below its target or the bracket within a share `width`.
    """
    (low, high), goal = ends, np.log(targets)
    below, above = (np.log(curve.raised(x)) - goal for x in (low, high))
    low, high, side = np.log(low), np.log(high), np.zeros(low.shape)
    for _ in range(_TRIES):
        todo = np.flatnonzero((below < -near) & (high - low > width))
        if not todo.size:
            break
        a, b, f, g = low[todo], high[todo], below[todo], above[todo]
        middle = np.where(g > f, (f * b - g * a) / np.where(g > f, f - g, 1.0), a)
        outside = ~((middle > a) & (middle < b))
        middle = np.where(outside, (a + b) / 2.0, middle)
        level = np.exp(middle)
        value = np.log(curve.raised(level)) - goal[todo]
        fits = value <= 0.0
        # An end that stays twice counts half, so that it moves next time.
        above[todo] = np.where(fits & (side[todo] > 0), g / 2.0, g)
        below[todo] = np.where(~fits & (side[todo] < 0), f / 2.0, f)
        low[todo] = np.where(fits, middle, a)
        below[todo] = np.where(fits, value, below[todo])
        high[todo] = np.where(fits, b, middle)
        above[todo] = np.where(fits, above[todo], value)
        side[todo] = np.where(fits, 1.0, -1.0)
    return np.asarray(np.exp(low) * (1.0 - 4e-16))

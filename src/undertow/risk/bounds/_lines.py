"""Lines and points below a trade-off function, and the corners they leave."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from undertow.risk.bounds._parts import LARGEST

__all__ = ["LOWERED", "envelope", "even_levels", "points_below", "reach_of"]

Floats = NDArray[np.float64]

LOWERED = 1e-12
"""Taken off every line: far above the rounding of corners and of their sums."""

_TAIL = 1e-15


def envelope(heights: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Return the corners on [0, 1] of the greatest of the lines height - slope x."""
    order = np.lexsort((heights, slopes))[::-1]
    kept: list[int] = []
    starts: list[float] = []
    for line in order.tolist():
        start = 0.0
        while kept:
            top = kept[-1]
            gap = float(slopes[top] - slopes[line])
            rise = float(heights[top] - heights[line])
            # Of parallel lines the higher came first.
            start = rise / gap if gap > 0 else math.inf
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
            start = 0.0
        if start < 1.0:
            kept.append(line)
            starts.append(start)
    alphas = np.append(starts, 1.0)
    lines = np.array(kept)
    # Each corner at the lower of its two lines, so that no chord rises above a line.
    after = heights[lines] - slopes[lines] * alphas[:-1]
    before = heights[lines] - slopes[lines] * alphas[1:]
    betas = np.append(after, 0.0)
    betas[1:] = np.minimum(betas[1:], before)
    betas[-1] = 0.0
    return alphas, np.maximum(0.0, betas)


def even_levels(count: int) -> Floats:
    """Return type I errors, evenly in the middle and by ratio towards both ends.

    Neighbouring distances differ by a bounded factor, so that a prolonged chord does
    not magnify rounding.
    """
    logit = np.linspace(-28.0, 28.0, 20_001)
    dense = 1.0 / (1.0 + np.exp(-logit))
    scale = logit / 112.0 + dense / 2.0
    inner = np.interp(np.linspace(scale[0], scale[-1], count), scale, dense)
    return np.concatenate([[0.0], inner, [1.0]])


def points_below(alphas: Floats, betas: Floats) -> tuple[Floats, Floats]:
    """Return points below every convex function through the given ones."""
    slopes = np.diff(betas) / np.diff(alphas)
    # On each interval the prolonged chords of its two neighbours; the greater is below.
    left = np.concatenate([[math.inf], slopes[:-1]])
    right = np.concatenate([slopes[1:], [0.0]])
    base = alphas[:-1]
    width = np.diff(alphas)
    last_height = np.append(betas[1:-1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # betas + left s = next - right (width - s)
        meet = (last_height - right * width - betas[:-1]) / (left - right)
    meet = np.clip(np.where(np.isfinite(meet), meet, 0.0), 0.0, width)
    meet[0] = 0.0
    drop = np.where(np.isfinite(left), left, 0.0) * meet
    along_left = np.where(np.isfinite(left), betas[:-1] + drop, -math.inf)
    along_right = last_height - right * (width - meet)
    height = np.maximum(0.0, np.maximum(along_left, along_right))
    x = np.concatenate([base + meet, alphas])
    y = np.concatenate([height, np.append(betas[:-1], 0.0)])
    return x, y


def reach_of(delta: Callable[[float], float]) -> float:
    """Return an epsilon past which delta falls by less than the tail mass."""
    floor = delta(LARGEST) + _TAIL
    low, high = 0.0, LARGEST
    for _ in range(24):
        middle = (low + high) / 2.0
        low, high = (low, middle) if delta(middle) <= floor else (middle, high)
    return high

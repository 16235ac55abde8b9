"""Which intervals and which outputs of two inputs are worth counting.

They are read off one part of the training outputs; nothing here certifies anything.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["proposed_labels", "proposed_spans"]

Floats = NDArray[np.float64]

# Outputs that are looked at one by one for being common, and for telling apart.
_LABELS = 1024
# Cut points of a score, and those of them that bound intervals.
_CUTS = 128
_ENDS = 32
# What an output of the second input weighs against in the search for narrow intervals,
# and the share of all outputs that makes an interval narrow: less than grids resolve.
_WEIGHTS = (4.0, 16.0, 64.0, 256.0)
_NARROW = 1.0 / 16.0


def proposed_labels(seen: Counter[Any], other: Counter[Any]) -> list[Any]:
    """Return outputs that occur twice or more: the commonest, and the most telling.

    Those are the 1,024 whose frequencies differ most for their size; so a rare output
    of one input is not hidden by thousands of common ones.

    Examples
    --------
    >>> proposed_labels(Counter("aab"), Counter("ac"))
    ['a']
    """
    pooled = seen + other
    found = [item for item in pooled.most_common(_LABELS) if item[1] > 1]
    if len(found) == _LABELS:
        first, second = seen.total(), other.total()

        def apart(label: Any) -> float:
            gap = abs(seen[label] * second - other[label] * first)
            return gap / math.sqrt(pooled[label])

        rest = (label for label, count in pooled.items() if count > 1)
        found += [(label, 0) for label in heapq.nlargest(_LABELS, rest, key=apart)]
    return list(dict.fromkeys(label for label, _ in found))


def proposed_spans(first: Floats, second: Floats) -> list[tuple[float, float]]:
    """Return half-lines, intervals between sample quantiles, and narrow intervals.

    Parameters
    ----------
    first, second : ndarray
        Scores of both inputs, sorted.
    """
    cuts = _cuts(np.sort(np.concatenate([first, second])), second)
    return [*_spans(cuts), *_narrow_spans(first, second)]


def _cuts(pooled: Floats, second: Floats) -> Floats:
    """Return sample quantiles, and the points just outside the second input's range."""
    places = np.linspace(0, len(pooled) - 1, _CUTS).round().astype(int)
    outside = np.nextafter(second[[0, -1]], [-np.inf, np.inf])
    return np.unique(np.concatenate([pooled[places], outside]))


def _spans(cuts: Floats) -> Iterator[tuple[float, float]]:
    for cut in cuts.tolist():
        yield cut, np.inf
        yield -np.inf, cut
    ends = cuts[np.unique(np.linspace(0, len(cuts) - 1, _ENDS).round().astype(int))]
    for number, low in enumerate(ends.tolist()):
        for high in ends[number:].tolist():
            yield low, high


def _narrow_spans(first: Floats, second: Floats) -> Iterator[tuple[float, float]]:
    """Find the intervals in which the first input outweighs the second most.

    The one that maximises the share of the first less some times that of the second,
    by running sums; only if it is too narrow for the grid of quantiles.
    """
    pooled = np.concatenate([first, second])
    values, place, counts = np.unique(pooled, return_inverse=True, return_counts=True)
    own, other = (
        np.bincount(part, minlength=len(values)) / len(part)
        for part in np.split(place, [len(first)])
    )
    held = np.concatenate([[0], np.cumsum(counts)])
    for weight in _WEIGHTS:
        running = np.concatenate([[0.0], np.cumsum(own - weight * other)])
        least = np.minimum.accumulate(running[:-1])
        stop = int(np.argmax(running[1:] - least))
        start = int(np.argmin(running[: stop + 1]))
        if held[stop + 1] - held[start] < _NARROW * len(pooled):
            yield float(values[start]), float(values[stop])

r"""Places on the Earth: which are within a number of metres of each other.

The great-circle distance on a sphere of the mean radius is at most 1.00562 times the
distance on the ellipsoid WGS 84, so a threshold stretched by 1.0057 loses no pair; the
page "Reconstruction advantage" proves it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import ModelError, NotApplicable

__all__ = ["EARTH_RADIUS", "STRETCH", "great_circle", "hits_on_globe"]

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth, in metres."""

STRETCH = 1.0057
"""What the threshold is multiplied by: covers the ellipsoid and all rounding."""

Floats = NDArray[np.float64]

_PAIRS = 400_000_000
# Distances held at a time.
_BLOCK = 1 << 20


def great_circle(guesses: Sequence[Any], truths: Sequence[Any]) -> Floats:
    """Return the distances in metres between places (latitude, longitude) in degrees.

    Examples
    --------
    >>> porto, lisbon = (41.1579, -8.6291), (38.7223, -9.1393)
    >>> float(great_circle([porto], [lisbon])[0, 0].round(-3))
    274000.0
    """
    half = _haversine(_read_places(guesses), _read_places(truths))
    return np.asarray(2.0 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1.0))))


def hits_on_globe(
    guesses: Sequence[Any], truths: Sequence[Any], *, eta: float
) -> NDArray[np.bool_]:
    """Say of each guess and truth whether they are within `eta` metres, by blocks."""
    size = len(guesses) * len(truths)
    if size > _PAIRS:
        raise NotApplicable(
            f"places must make at most {_PAIRS} pairs, got {size}; use fewer, such as "
            "the cells of a grid."
        )
    rows, columns = _read_places(guesses), _read_places(truths)
    hits = np.ones((len(rows), len(columns)), dtype=np.bool_)
    angle = STRETCH * eta / (2.0 * EARTH_RADIUS)
    if angle >= math.pi / 2.0:
        return hits
    limit = math.sin(angle) ** 2
    step = max(1, _BLOCK // max(1, len(columns)))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        hits[block] = _haversine(rows[block], columns) <= limit
    return hits


def _haversine(rows: Floats, columns: Floats) -> Floats:
    """Return the squared sine of half the angle between places, in degrees."""
    # Differences in degrees are as exact as the places; so are distances to a pole.
    up = rows[:, None, 0] - columns[None, :, 0]
    turn = np.fmod(np.abs(rows[:, None, 1] - columns[None, :, 1]), 360.0)
    around = np.minimum(turn, 360.0 - turn)
    narrow = [np.sin(np.radians(90.0 - np.abs(side[:, 0]))) for side in (rows, columns)]
    width = narrow[0][:, None] * narrow[1][None, :]
    return np.asarray(
        np.sin(np.radians(up) / 2.0) ** 2
        + width * np.sin(np.radians(around) / 2.0) ** 2
    )


def _read_places(places: Sequence[Any]) -> Floats:
    try:
        table = np.array([[_degrees(x) for x in place] for place in places])
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    proper = table.ndim == 2 and table.shape[1] == 2
    if not proper or not (
        np.all(np.abs(table[:, 0]) <= 90.0)
        and np.all((table[:, 1] >= -180.0) & (table[:, 1] <= 360.0))
    ):
        raise ModelError(
            "records must be (latitude, longitude) in degrees for a distance in "
            "metres, the first in [-90, 90], the second in [-180, 360]."
        )
    return table


def _degrees(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError("text")
    return float(value)

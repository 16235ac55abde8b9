"""Trips that stand in for the real ones: a start by visits, then steps along edges."""

from __future__ import annotations

import numpy as np

from undertow._validate import check_count
from undertow.datasets.roads import RoadNetwork, Walks

__all__ = ["walks_stand_in"]

_STAY, _AHEAD, _REPORTS = 0.3, 0.7, 40


def walks_stand_in(
    network: RoadNetwork, *, trips: int = 1820, rng: np.random.Generator
) -> Walks:
    """Draw trips of 40 reports: a start by visits, then stay, go on, or turn.

    A report repeats the place with probability 0.3; a traveller keeps to one way of
    choosing among the edges of a place with probability 0.7.

    Parameters
    ----------
    network : RoadNetwork
        Where to walk.
    trips : int
        How many; the last sixth is held out.
    rng : numpy.random.Generator
        Source of all draws.

    Returns
    -------
    Walks
        All inside the area, each of its own user.

    Examples
    --------
    >>> from undertow.datasets import grid_graph
    >>> walks = walks_stand_in(grid_graph(3, 4), trips=6, rng=np.random.default_rng(0))
    >>> len(walks), int(walks.held_out.sum())
    (6, 1)
    """
    count = check_count(trips, "trips")
    m, degree = len(network), np.bincount(network.edges[:, 0], minlength=len(network))
    first = np.cumsum(degree) - degree
    places = np.empty((count, _REPORTS), dtype=np.int64)
    places[:, 0] = rng.choice(m, size=count, p=network.prior().pmf)
    turns = rng.random(count)
    for step in range(1, _REPORTS):
        here = places[:, step - 1]
        turns = np.where(rng.random(count) < _AHEAD, turns, rng.random(count))
        ways = first[here] + (turns * degree[here]).astype(np.int64)
        moved = rng.random(count) >= _STAY
        places[:, step] = np.where(moved, network.edges[ways, 1], here)
    inside = np.ones(_REPORTS, dtype=np.bool_)
    held = np.arange(count) >= count - count // 6
    users = np.arange(count, dtype=np.int64)
    return Walks(tuple(places), (inside,) * count, held, users, network.name)

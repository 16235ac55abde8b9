"""Two cities: their roads, how often each crossing was visited, and trips.

*Porto* and *Beijing* (GeoLife): the road graphs of the sources, with two counts of
visits. The sources map *every* position report to its nearest node, also reports far
outside the area, which then pile up on its border: 60 % of the reports in Porto, 91 %
in Beijing. That count (``"all"``) reproduces the published baselines; the count of
reports inside the area (``"inside"``) is the honest one, and its largest share and
collision probability are smaller by an order of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice, check_count
from undertow.datasets import (
    RoadNetwork,
    grid_graph,
    read_columns,
    require_file,
)
from undertow.datasets.road import simple_edges
from undertow.errors import DataError
from undertow_studies.dataset.adult import read_parquet

CITIES = ("porto", "geolife")
"""Names of the cities: Porto, and Beijing, whose trips are those of GeoLife."""

# Zipf-Mandelbrot weights (rank + 3.852)^-1.4904: largest share 0.10 and collision
# probability 0.03 on 3052 nodes, which are the published numbers of Porto.
_SHIFT, _EXPONENT, _VISITS = 3.852, 1.4904, 10_000_000


@dataclass(frozen=True, eq=False)
class Walks:
    """Sequences of nodes.

    Parameters
    ----------
    nodes : tuple of ndarray of int
        One sequence for each trip or stay.
    inside : tuple of ndarray of bool
        Whether each report lay inside the area.
    held_out : ndarray of bool
        Sequences kept apart: the truncated ones of the challenge in Porto.
    users : ndarray of int
        Who walked.
    name : str
        Of the city.
    """

    nodes: tuple[NDArray[np.int64], ...]
    inside: tuple[NDArray[np.bool_], ...]
    held_out: NDArray[np.bool_]
    users: NDArray[np.int64]
    name: str

    def __len__(self) -> int:
        return len(self.nodes)


def load_roads(folder: Path, city: str) -> RoadNetwork:
    """Read ``CITY/nodes.csv`` and ``CITY/edges.csv``.

    Parameters
    ----------
    folder : Path
        Folder of the real data.
    city : {"porto", "geolife"}
        3052 or 5356 nodes, the authors' graphs.

    Notes
    -----
    Parallel edges (48 in Porto, 98 in Beijing) and loops (11 and 8) are dropped: hop
    distances do not see them.
    """
    check_choice(city, "city", choices=CITIES)
    nodes = read_columns(
        require_file(folder, f"{city}/nodes.csv"),
        ("node", "lat", "lon", "visits_snap_all", "visits_in_box"),
    )
    if nodes["node"] != [str(node) for node in range(len(nodes["node"]))]:
        raise DataError(
            f"{city}/nodes.csv must number its nodes 0, 1, 2, ... in order."
        )
    ends = read_columns(require_file(folder, f"{city}/edges.csv"), ("source", "target"))
    return RoadNetwork(
        np.array(nodes["lat"], dtype=float),
        np.array(nodes["lon"], dtype=float),
        simple_edges(np.array([ends["source"], ends["target"]], dtype=np.intp).T),
        np.array(nodes["visits_snap_all"], dtype=np.int64),
        np.array(nodes["visits_in_box"], dtype=np.int64),
        city,
        real=True,
    )


def load_trips(folder: Path, city: str = "porto") -> Walks:
    """Read ``porto/trips.parquet``: 1820 taxi trips, one report every 15 seconds.

    Every report is mapped to its nearest node; `inside` tells those that were in the
    area. Three trips are empty. The 320 held out are cut short by their origin.
    """
    check_choice(city, "city", choices=("porto",))
    table = read_parquet(
        require_file(folder, f"{city}/trips.parquet"),
        ("split", "taxi", "node", "in_box"),
    )
    return Walks(
        _sequences(table["node"], np.int64),
        _sequences(table["in_box"], np.bool_),
        np.asarray(table["split"] == "test", dtype=np.bool_),
        table["taxi"],
        city,
    )


def load_stays(folder: Path, city: str = "geolife") -> Walks:
    """Read ``geolife/node_visits.parquet``: 4189 uninterrupted stays in the area.

    Consecutive reports at one node are one step, and every step lies inside.
    """
    check_choice(city, "city", choices=("geolife",))
    path = require_file(folder, f"{city}/node_visits.parquet")
    table = read_parquet(path, ("user", "node"))
    nodes = _sequences(table["node"], np.int64)
    return Walks(
        nodes,
        tuple(np.ones(len(walk), dtype=np.bool_) for walk in nodes),
        np.zeros(len(nodes), dtype=np.bool_),
        table["user"],
        city,
    )


def city_stand_in(
    *, rows: int = 44, columns: int = 70, rng: np.random.Generator
) -> RoadNetwork:
    """Draw a grid of streets whose visits are as uneven as those published for Porto.

    Parameters
    ----------
    rows, columns : int
        Size of the grid; 3080 nodes by default, of diameter 112.
    rng : numpy.random.Generator
        Decides which node has which rank.

    Returns
    -------
    RoadNetwork
        With 10 million visits in proportion to :math:`(k + 3.852)^{-1.4904}` at the
        node of rank k: collision probability 0.03, largest share 0.10 at the default
        size. Both counts are the same, since nothing lies outside.

    Examples
    --------
    >>> city = city_stand_in(rng=np.random.default_rng(1))
    >>> prior = city.prior()
    >>> len(city), round(prior.collision, 3), round(float(prior.pmf.max()), 3)
    (3080, 0.03, 0.1)
    """
    grid = grid_graph(rows, columns)
    weight = (1.0 + np.arange(len(grid)) + _SHIFT) ** -_EXPONENT
    counts = np.round(_VISITS * weight / weight.sum()).astype(np.int64)
    visits = rng.permutation(np.maximum(counts, 1))
    return RoadNetwork(
        grid.latitude,
        grid.longitude,
        grid.edges,
        visits,
        visits,
        "city stand-in",
        real=False,
    )


def _sequences(column: NDArray[Any], kind: Any) -> tuple[NDArray[Any], ...]:
    return tuple(np.array(values, dtype=kind) for values in column)


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

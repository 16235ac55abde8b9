"""Road networks: a simple directed graph of crossings, and how often each was visited.

Visits are counted twice: every report mapped to its nearest crossing, also those far
outside the area, which pile up on its border, and the reports inside it alone.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_count, check_non_negative
from undertow.errors import DataError
from undertow.risk import Prior

_STEP_DEGREES = 0.001


@dataclass(frozen=True, eq=False)
class RoadNetwork:
    """A simple directed graph of crossings, and how often each was visited.

    Parameters
    ----------
    latitude, longitude : ndarray of float, shape (m,)
        Of the nodes, in degrees.
    edges : ndarray of int, shape (k, 2)
        From, to; all different, no loops, sorted.
    visits_all, visits_inside : ndarray of int, shape (m,)
        Reports mapped to each node: all of them, and those inside the area.
    name : str
        Of the city.
    real : bool
        Whether this is a real city.
    """

    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    edges: NDArray[np.intp]
    visits_all: NDArray[np.int64]
    visits_inside: NDArray[np.int64]
    name: str
    real: bool

    def __len__(self) -> int:
        return len(self.latitude)

    def prior(self, visits: str = "inside") -> Prior:
        """Return the shares of visits as a prior on the nodes.

        Parameters
        ----------
        visits : {"inside", "all"}
            The honest count, or the one the sources used.
        """
        check_choice(visits, "visits", choices=("inside", "all"))
        counts = self.visits_inside if visits == "inside" else self.visits_all
        return Prior.from_counts(dict(enumerate(counts.tolist())))

    @functools.cached_property
    def hops(self) -> NDArray[np.uint16]:
        """Number of edges from node (row) to node (column) on a shortest path.

        Two bytes a pair: 19 MB for Porto, 57 MB for Beijing, a few seconds.

        Raises
        ------
        DataError
            If some node cannot be reached from another.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import shortest_path

        # Older searches read 32-bit indices only.
        m, (source, target) = len(self), self.edges.T.astype(np.int32)
        graph = csr_array((np.ones(len(source)), (source, target)), shape=(m, m))
        distances = shortest_path(graph, unweighted=True)
        if not np.isfinite(distances).all():
            raise DataError(f"{self.name} must be strongly connected, got a gap.")
        return distances.astype(np.uint16)

    @property
    def diameter(self) -> int:
        """Largest number of hops between two nodes."""
        return int(self.hops.max())

    def guess_masses(self, eta: float, visits: str = "inside") -> NDArray[np.float64]:
        """Return the prior mass within `eta` hops of each guess, counted from it.

        The largest is the success of the best guess without looking, the smallest that
        of the worst one. The graph is directed: hops are those from the guess.
        """
        reach, pmf = check_non_negative(eta, "eta"), self.prior(visits).pmf
        step = max(1, (1 << 22) // len(self))
        rows = (self.hops[k : k + step] for k in range(0, len(self), step))
        return np.concatenate([(part <= reach) @ pmf for part in rows])


def grid_graph(rows: int, columns: int) -> RoadNetwork:
    """Return a rectangular grid with streets in both directions, each node as likely.

    Examples
    --------
    >>> grid = grid_graph(5, 10)
    >>> len(grid), len(grid.edges), grid.diameter
    (50, 170, 13)
    """
    m = check_count(rows, "rows") * check_count(columns, "columns")
    return _plain_network(
        _grid_streets(rows, columns), np.divmod(np.arange(m), columns), "grid"
    )


def braced_grid() -> RoadNetwork:
    """Return 50 nodes of diameter 11: a 6 x 7 grid with eight braced faces.

    One node in each of the first eight faces, by rows, is joined to its four corners:
    103 streets in both directions.

    Examples
    --------
    >>> graph = braced_grid()
    >>> len(graph), len(graph.edges) // 2, graph.diameter
    (50, 103, 11)
    """
    row, column = np.divmod(np.arange(8), 6)
    corner, centre = 7 * row + column, 42 + np.arange(8)
    braces = [np.stack([corner + k, centre]) for k in (0, 1, 7, 8)]
    streets = np.concatenate([_grid_streets(6, 7), *braces], axis=1)
    y, x = np.divmod(np.arange(42), 7)
    places = np.concatenate([y, row + 0.5]), np.concatenate([x, column + 0.5])
    return _plain_network(streets, places, "braced grid")


def simple_edges(edges: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the edges without loops, each once, sorted."""
    different = edges[edges[:, 0] != edges[:, 1]]
    return np.unique(different, axis=0)


def _grid_streets(rows: int, columns: int) -> NDArray[np.intp]:
    """Return both ends of every street of a grid, one direction."""
    node = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()])
    along = np.stack([node[:-1].ravel(), node[1:].ravel()])
    return np.concatenate([across, along], axis=1)


def _plain_network(
    streets: NDArray[np.intp], places: tuple[ArrayLike, ArrayLike], name: str
) -> RoadNetwork:
    both = simple_edges(np.concatenate([streets, streets[::-1]], axis=1).T)
    latitude, longitude = (np.asarray(p, dtype=float) * _STEP_DEGREES for p in places)
    ones = np.ones(math.prod(latitude.shape), dtype=np.int64)
    return RoadNetwork(latitude, longitude, both, ones, ones, name, real=False)

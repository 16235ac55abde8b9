r"""Hop distances of a directed graph, row by row.

:math:`d(v, w)` is the least number of arcs on a way *from v to w*. It obeys the
triangle inequality but is not symmetric where streets are one-way: rows are where a way
starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_index, check_non_negative
from undertow.errors import AssumptionError, MismatchError, ModelError

__all__ = [
    "adjacency",
    "ball_masses",
    "hop_blocks",
    "hop_distances",
    "largest_component",
]

Floats = NDArray[np.float64]
Hops = NDArray[np.int32]

# Sources searched at a time.
_WIDTH = 256


def adjacency(edges: Any, *, size: int | None = None, directed: bool = True) -> Any:
    """Build the sparse matrix of arcs.

    Parameters
    ----------
    edges : array_like of int, of shape (n, 2), or sparse array of shape (m, m)
        Arcs as (from, to), repeated ones count once; or a matrix whose non-zero entries
        are the arcs.
    size : int, optional
        Number of nodes of a list of pairs; one more than the largest number named by
        default.
    directed : bool, optional
        Whether an arc leads one way only.

    Returns
    -------
    scipy.sparse.csr_array of shape (size, size)
        1 where there is an arc; loops are dropped.

    Examples
    --------
    >>> adjacency([[0, 1], [1, 2], [2, 0]]).toarray().astype(int).tolist()
    [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    """
    if _is_sparse(edges):
        pairs, nodes = _entries(edges), int(edges.shape[0])
    else:
        pairs, nodes = _pairs(edges, size)
    kept = pairs[pairs[:, 0] != pairs[:, 1]]
    both = kept if directed else np.concatenate([kept, kept[:, ::-1]])
    return _arcs(both, nodes)


def _pairs(edges: Any, size: int | None) -> tuple[NDArray[Any], int]:
    try:
        pairs = np.asarray(edges)
    except ValueError:
        raise ModelError("edges must be pairs, got rows of all lengths.") from None
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ModelError(
            "edges must be pairs of numbers of nodes, of shape (n, 2), got "
            f"{pairs.dtype} of shape {pairs.shape}; give a matrix of arcs as a sparse "
            "array."
        )
    least = int(pairs.max()) + 1 if pairs.size else 1
    nodes = least if size is None else check_count(size, "size")
    if pairs.size and (pairs.min() < 0 or least > nodes):
        raise ModelError(
            f"edges must name nodes in 0..{nodes - 1}, got {pairs.min()} to "
            f"{pairs.max()}."
        )
    return pairs, nodes


def _entries(graph: Any) -> NDArray[Any]:
    if graph.shape[0] != graph.shape[1] or graph.shape[0] == 0:
        raise ModelError(f"graph must be a square matrix, got shape {graph.shape}.")
    found = graph.tocoo()
    kept = found.data != 0
    return np.stack([found.row[kept], found.col[kept]], axis=1)


def _is_sparse(graph: Any) -> bool:
    from scipy import sparse

    return bool(sparse.issparse(graph))


def _arcs(pairs: NDArray[Any], nodes: int) -> Any:
    from scipy import sparse

    ones = np.ones(len(pairs))
    places = (pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.int32))
    matrix = sparse.csr_array((ones, places), shape=(nodes, nodes))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def largest_component(graph: Any) -> NDArray[np.intp]:
    """Return the nodes of the largest strongly connected component, in order.

    Parameters
    ----------
    graph : sparse array of shape (m, m), or array_like of shape (n, 2)
        Arcs, as a sparse matrix or as pairs (from, to).

    Returns
    -------
    ndarray of int
        Keep these nodes: ``graph[kept][:, kept]``. Of several largest components, the
        one that holds the lowest node.

    Examples
    --------
    >>> largest_component([[0, 1], [1, 2], [2, 1]]).tolist()
    [1, 2]
    """
    labels = _components(adjacency(graph))
    sizes = np.bincount(labels)
    largest = np.flatnonzero(sizes[labels] == sizes.max())
    return np.flatnonzero(labels == labels[largest[0]])


def hop_distances(graph: Any, sources: Sequence[int] | None = None) -> Hops:
    r"""Count the hops from given nodes to every node.

    Parameters
    ----------
    graph : sparse array of shape (m, m), or array_like of shape (n, 2)
        Arcs, as a sparse matrix or as pairs (from, to); every stored non-zero entry is
        one arc of length 1.
    sources : sequence of int, optional
        Where the ways start; all nodes by default.

    Returns
    -------
    ndarray of int, of shape (sources, m)
        Entry [v, w] is the distance from source v to node w.

    Raises
    ------
    AssumptionError
        If some node cannot be reached from some other one.

    Notes
    -----
    Shortest ways over arcs of length 1: O(m + arcs) per source, up to a logarithm. A
    full table of 5356 nodes takes 115 MB.
    `hop_blocks` hands out the rows without keeping them.

    Examples
    --------
    >>> hop_distances([[0, 1], [1, 2], [2, 0]]).tolist()
    [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    """
    arcs = _connected(adjacency(graph))
    if sources is None:
        starts = np.arange(arcs.shape[0], dtype=np.intp)
    else:
        starts = np.array(
            [check_index(s, "sources", size=arcs.shape[0]) for s in sources],
            dtype=np.intp,
        )
    table = np.empty((len(starts), arcs.shape[0]), dtype=np.int32)
    for low in range(0, len(starts), _WIDTH):
        rows = slice(low, low + _WIDTH)
        table[rows] = _search(arcs, starts[rows])
    return table


def hop_blocks(graph: Any, *, width: int = _WIDTH) -> Iterator[tuple[slice, Hops]]:
    """Hand out the rows of the table of distances, `width` sources at a time.

    Parameters
    ----------
    graph : sparse array of shape (m, m), or array_like of shape (n, 2)
        As in :func:`hop_distances`.
    width : int, optional
        Rows held at a time.

    Yields
    ------
    tuple of (slice, ndarray of int)
        The sources and their rows.
    """
    arcs, step = _connected(adjacency(graph)), check_count(width, "width")
    for low in range(0, arcs.shape[0], step):
        rows = slice(low, min(low + step, arcs.shape[0]))
        yield rows, _search(arcs, np.arange(rows.start, rows.stop))


def ball_masses(graph: Any, weights: ArrayLike, *, eta: float) -> Floats:
    r"""Add the weights of the truths that each guess hits, :math:`d(x, g) \le \eta`.

    Parameters
    ----------
    graph : sparse array of shape (m, m), or array_like of shape (n, 2)
        As in :func:`hop_distances`.
    weights : array_like of shape (m,)
        Weight of each node, such as a prior.
    eta : float
        Radius in hops, included.

    Returns
    -------
    ndarray of shape (m,)
        The mass of each guess; its largest and smallest entries are the baselines
        :math:`\kappa^+` and :math:`\kappa^-`, to about m units of :math:`2^{-53}`.

    Notes
    -----
    The sum runs over truths, for a way from the truth to the guess: in a directed graph
    the ball around the guess in the other direction is another set. Streams over
    the rows, so that no table is kept: O(m (m + arcs)) time.

    Examples
    --------
    >>> path = adjacency([[i, i + 1] for i in range(4)], directed=False)
    >>> masses = ball_masses(path, [0.2] * 5, eta=1)
    >>> [round(float(mass), 12) for mass in (masses.max(), masses.min())]
    [0.6, 0.4]
    """
    arcs, radius = adjacency(graph), check_non_negative(eta, "eta")
    mass = np.asarray(weights, dtype=np.float64)
    if mass.shape != (arcs.shape[0],):
        raise MismatchError(
            f"weights must be one for each of the {arcs.shape[0]} nodes, got shape "
            f"{mass.shape}."
        )
    if not np.isfinite(mass).all():
        raise ModelError("weights must be finite numbers.")
    total = np.zeros(arcs.shape[0])
    for rows, hops in hop_blocks(arcs):
        total += mass[rows] @ (hops <= radius)
    return total


def _components(arcs: Any) -> NDArray[np.int32]:
    from scipy.sparse import csgraph

    _, labels = csgraph.connected_components(arcs, directed=True, connection="strong")
    return np.asarray(labels)


def _connected(arcs: Any) -> Any:
    sizes = np.bincount(_components(arcs))
    if len(sizes) > 1:
        raise AssumptionError(
            "graph must lead from every node to every other, got a largest strongly "
            f"connected component of {sizes.max()} of its {arcs.shape[0]} nodes; keep "
            "that one with largest_component."
        )
    return arcs


def _search(arcs: Any, starts: NDArray[np.intp]) -> Hops:
    from scipy.sparse import csgraph

    found = csgraph.dijkstra(arcs, directed=True, indices=starts, unweighted=True)
    return np.asarray(found).astype(np.int32)

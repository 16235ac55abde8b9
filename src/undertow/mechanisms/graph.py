"""Noise on a graph: hop distances and the exponential mechanism over the nodes.

Near nodes are likelier reports. :math:`d(v, w)` is the least number of arcs on a way
*from v to w*. It obeys the triangle inequality but is not symmetric where streets are
one-way: rows are where a way starts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_index, check_non_negative
from undertow.errors import AssumptionError, MismatchError, ModelError, NotApplicable
from undertow.mechanisms.base import ChoiceMechanism, ChoiceSource, read_candidates
from undertow.mechanisms.noise.draw import Draw, read_positive
from undertow.mechanisms.noise.secure import read_source
from undertow.numeric.array import Floats
from undertow.numeric.exact import Number, exact
from undertow.numeric.rounding import inflate
from undertow.privacy.loss import Pure
from undertow.spaces.base import Metric
from undertow.spaces.metric import DiscreteMetric

__all__ = [
    "GraphExponential",
    "adjacency",
    "ball_masses",
    "hop_blocks",
    "hop_distances",
    "largest_component",
]


# Largest space whose total variation is computed, pair by pair.
_PAIRED = 6000
_ENTRIES = 1 << 22
# Cover the slack of the triangle inequality and the rounding of two logs of sums.
_MARGIN = 4e-12
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class GraphExponential(ChoiceMechanism):
    r"""Report node w for the true node v with odds :math:`e^{-r\,d(v,w)}`.

    .. math:: p(w \mid v) = \frac{e^{-r\,d(v,w)}}{Z_v}, \qquad
       Z_v = \sum_u e^{-r\,d(v,u)}, \qquad r = \frac{\varepsilon}{2\Delta}

    Parameters
    ----------
    distances : array_like of shape (m, m)
        Distance from each true node (row) to each report (column): finite, zero on the
        diagonal, positive elsewhere, with the triangle inequality; it need not be
        symmetric. :meth:`from_graph` counts hops.
    epsilon : int, float, str, Decimal or Fraction
        The nominal privacy parameter; positive and finite.
    nodes : sequence of hashable, optional
        Names of the nodes; 0, ..., m - 1 by default.

    Raises
    ------
    AssumptionError
        If the triangle inequality fails.
    NotApplicable
        If it cannot be checked: more than 1000 nodes, and distances that are not the
        hops of a graph.

    Notes
    -----
    The score is minus the distance, its sensitivity the diameter :math:`\Delta`, which
    may be seen: the graph is public. The mechanism is :math:`\varepsilon`-DP for any
    two nodes, and its exact parameter is

    .. math:: \varepsilon^* = \max_{v, v'} \; r\,d(v', v) + \ln Z_{v'} - \ln Z_v
       \le \varepsilon,

    :math:`\varepsilon/2` where all normalisers are equal (proved on the page on graph
    mechanisms). :meth:`loss` states :math:`\varepsilon^*`, `epsilon` is the nominal
    value. [1]_ prints :math:`2\varepsilon\Delta` for the same exponent, which is that
    of odds :math:`e^{\varepsilon u}`.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025, sections 3.1.1 and 6.2.1.

    Examples
    --------
    >>> ring = [[i, (i + 1) % 6] for i in range(6)]
    >>> mechanism = GraphExponential.from_graph(ring, epsilon=10, directed=False)
    >>> mechanism.diameter, round(mechanism.loss().epsilon, 9)
    (Fraction(3, 1), 5.0)
    >>> mechanism.pmf(0).round(4).tolist()
    [0.6869, 0.1297, 0.0245, 0.0046, 0.0245, 0.1297]
    """

    candidates: tuple[Hashable, ...]
    distances: NDArray[Any]
    epsilon: Fraction
    diameter: Fraction
    log_normalisers: Floats
    _places: dict[Hashable, int] = field(repr=False)

    def __init__(
        self,
        distances: ArrayLike,
        *,
        epsilon: Number,
        nodes: Sequence[Hashable] | None = None,
    ) -> None:
        table = read_distances(distances)
        require_triangles(table)
        self._keep(table, epsilon, nodes)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        *,
        epsilon: Number,
        nodes: Sequence[Hashable] | None = None,
        directed: bool = True,
    ) -> GraphExponential:
        """Build the mechanism on the hop distances of a strongly connected graph.

        Parameters
        ----------
        graph : sparse array of shape (m, m), or array_like of shape (n, 2)
            Arcs, as a sparse matrix or as pairs (from, to).
        epsilon, nodes
            As above.
        directed : bool, optional
            Whether the arcs lead one way only.
        """
        mechanism = object.__new__(cls)
        table = hop_distances(adjacency(graph, directed=directed))
        mechanism._keep(table, epsilon, nodes)
        return mechanism

    def _keep(
        self,
        table: NDArray[Any],
        epsilon: Number,
        nodes: Sequence[Hashable] | None,
    ) -> None:
        if len(table) < 2:
            raise ModelError(
                f"distances must be of two nodes or more, got {len(table)}."
            )
        named = read_candidates(len(table) if nodes is None else nodes)
        if len(named) != len(table):
            raise MismatchError(
                f"nodes must name each of the {len(table)} rows, got {len(named)}."
            )
        table.setflags(write=False)
        object.__setattr__(self, "candidates", named)
        object.__setattr__(self, "distances", table)
        object.__setattr__(self, "epsilon", read_positive(epsilon, "epsilon"))
        largest = Fraction(exact(table.max().item(), "distances"))
        object.__setattr__(self, "diameter", largest)
        places = {node: place for place, node in enumerate(named)}
        object.__setattr__(self, "_places", places)
        sums = [odds.sum(axis=1) for odds in self._odds()]
        object.__setattr__(self, "log_normalisers", np.log(np.concatenate(sums)))

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.candidates)

    @property
    def rate(self) -> Fraction:
        r"""The :math:`r = \varepsilon/2\Delta` in the exponent."""
        return self.epsilon / (2 * self.diameter)

    def loss(self, metric: Metric | None = None) -> Pure:
        r"""Return the exact loss between any two nodes, rounded up.

        Parameters
        ----------
        metric : Metric, optional
            The discrete metric, which is the default.

        Notes
        -----
        :math:`\varepsilon^*` above, in O(m²), raised by a relative 4e-12 and an
        absolute 1e-13 for its rounding; never more than the nominal `epsilon`.
        """
        if metric is not None and not isinstance(metric, DiscreteMetric):
            raise MismatchError(
                f"metric must be the discrete metric on nodes, got {metric.name}."
            )
        logs, rate = self.log_normalisers, float(self.rate)
        worst = 0.0
        for rows in self._slices():
            # Row v', column v: log of p(v | v) over p(v | v').
            ratios = rate * self.distances[rows] + logs[rows, None] - logs
            worst = max(worst, float(ratios.max()))
        return self._raised(worst)

    def pair_loss(self, first: Hashable, second: Hashable) -> Pure:
        """Return the loss between two nodes, the larger of both directions."""
        v, w = self._position(first), self._position(second)
        if v == w:
            return Pure.zero()
        gap = float(self.log_normalisers[v] - self.log_normalisers[w])
        ahead, back = float(self.distances[v, w]), float(self.distances[w, v])
        rate = float(self.rate)
        return self._raised(max(rate * ahead + gap, rate * back - gap))

    def log_probabilities(self, given: Hashable) -> Floats:
        """Return the log probability of each report."""
        v = self._position(given)
        return np.asarray(
            -float(self.rate) * self.distances[v] - self.log_normalisers[v]
        )

    def pmf(self, given: Hashable) -> Floats:
        """Return the probability of each report."""
        return np.exp(self.log_probabilities(given))

    def row_blocks(self, width: int | None = None) -> Iterator[tuple[slice, Floats]]:
        """Hand out the rows of the channel: true nodes and the laws of their reports.

        Parameters
        ----------
        width : int, optional
            Rows at a time; about 4 million entries by default.
        """
        for rows in self._slices(width):
            logs = -float(self.rate) * self.distances[rows]
            yield rows, np.exp(logs - self.log_normalisers[rows, None])

    def column_blocks(self, width: int | None = None) -> Iterator[Floats]:
        """Hand out the columns of the channel, for a ``ChannelStream``.

        Examples
        --------
        >>> mechanism = GraphExponential([[0, 1], [1, 0]], epsilon=2)
        >>> [block.round(4).tolist() for block in mechanism.column_blocks(1)]
        [[[0.7311], [0.2689]], [[0.2689], [0.7311]]]
        """
        for columns in self._slices(width):
            logs = -float(self.rate) * self.distances[:, columns]
            yield np.exp(logs - self.log_normalisers[:, None])

    def total_variation(self) -> float:
        r"""Return the largest total variation between two nodes, rounded up.

        Raises
        ------
        NotApplicable
            Beyond 6000 nodes: O(m³) operations and the whole channel in memory.
        """
        if self.size > _PAIRED:
            raise NotApplicable(
                f"the total variation must be over at most {_PAIRED} nodes, got "
                f"{self.size}; use tanh(epsilon / 2) with the epsilon of loss()."
            )
        from scipy.spatial.distance import cdist

        laws = np.concatenate([block for _, block in self.row_blocks()])
        worst = max(
            float(cdist(laws[rows], laws[rows.start :], "cityblock").max())
            for rows in self._slices(256)
        )
        return min(1.0, inflate(worst / 2 + self.size * 2.0**-52, _MARGIN))

    def sample(
        self, values: Sequence[Hashable], *, source: ChoiceSource | None = None
    ) -> Draw:
        """Draw one report per true node: :meth:`sample_nodes`, by name.

        Parameters
        ----------
        values : sequence of hashable
            The true nodes, by name.
        source : ChoiceSource, optional
            Operating-system entropy by default.
        """
        truths = np.array([self._position(value) for value in values], dtype=np.intp)
        draw = self.sample_nodes(truths, source=source)
        return self._labels(draw.values, draw)

    def sample_nodes(
        self, truths: ArrayLike, *, source: ChoiceSource | None = None
    ) -> Draw:
        r"""Draw one report per true node, both by number.

        Parameters
        ----------
        truths : array_like of int
            Numbers of the true nodes.
        source : ChoiceSource, optional
            Operating-system entropy by default; a `SimulatedSource` is for studies.

        Notes
        -----
        Propose a uniform node and keep it with probability :math:`e^{-r\,d}`. With a
        `SecureSource` the coins are exact for rational r d, hence so is the law; about
        :math:`m/Z_v` proposals each, and that timing is not protected.
        """
        true = read_numbers(truths, self.size)
        origin = read_source(source, draws="bernoulli_exp")
        reports = np.empty(len(true), dtype=np.intp)
        pending = np.arange(len(true))
        while pending.size:
            named = np.asarray(origin.uniform(self.size, pending.size).values)
            named = named.astype(np.intp)
            kept = self._coins(self.distances[true[pending], named], origin)
            reports[pending[kept]] = named[kept]
            pending = pending[~kept]
        return Draw(reports, origin.simulated, origin.name)

    def _coins(self, distances: NDArray[Any], origin: Any) -> NDArray[np.bool_]:
        """Toss one coin of probability exp(-r d) for each distance."""
        kept = np.zeros(len(distances), dtype=np.bool_)
        for distance in np.unique(distances):
            same = np.flatnonzero(distances == distance)
            x = self.rate * Fraction(exact(distance.item(), "distances"))
            kept[same] = origin.bernoulli_exp(x, len(same)).values == 1
        return kept

    def _odds(self) -> Iterator[Floats]:
        rate = float(self.rate)
        for rows in self._slices():
            yield np.exp(-rate * self.distances[rows])

    def _slices(self, width: int | None = None) -> Iterator[slice]:
        step = max(1, _ENTRIES // self.size) if width is None else width
        for start in range(0, self.size, check_count(step, "width")):
            yield slice(start, min(start + step, self.size))

    def _raised(self, value: float) -> Pure:
        raised = inflate(max(value, 0.0) + _ROUNDING, _MARGIN)
        return Pure(min(Fraction(raised), self.epsilon))

    def _position(self, output: Hashable) -> int:
        if output not in self._places:
            raise ValueError(f"labels must be among the {self.size} nodes.")
        return self._places[output]

    def __repr__(self) -> str:
        return (
            f"GraphExponential({self.size} nodes, diameter {float(self.diameter):g}, "
            f"epsilon={float(self.epsilon):g})"
        )


# Largest table whose triangle inequality is checked point by point.
_CHECKED = 1000


def read_distances(distances: ArrayLike) -> NDArray[Any]:
    """Read a square table of distances: zero to oneself, positive to others."""
    try:
        table = np.array(distances)
    except ValueError:
        raise ModelError(
            "distances must be a table, got rows of all lengths."
        ) from None
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.size == 0:
        raise ModelError(f"distances must be a square table, got shape {table.shape}.")
    if table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise ModelError("distances must be finite numbers.")
    away = ~np.eye(len(table), dtype=bool)
    if np.diagonal(table).any() or (table[away] <= 0).any():
        raise ModelError(
            "distances must be zero from a node to itself and positive to others."
        )
    return table


def require_triangles(table: NDArray[Any]) -> None:
    """Refuse a table in which some detour is shorter than the way.

    A table that counts hops over its own entries of 1 passes in O(m) per arc; others
    are checked in O(m^3), to a relative 1e-12.
    """
    if _are_hops(table):
        return
    if len(table) > _CHECKED:
        raise NotApplicable(
            f"distances that are no hops must be of at most {_CHECKED} nodes, got "
            f"{len(table)}, for the triangle inequality to be checked; use from_graph."
        )
    slack = 1e-12 * float(table.max())
    for v, row in enumerate(table):
        if (row > (row[:, None] + table).min(axis=0) + slack).any():
            raise AssumptionError(
                "distances must obey the triangle inequality, got a detour that is "
                f"shorter than the way from node {v}; use the lengths of shortest ways."
            )


def _are_hops(table: NDArray[Any]) -> bool:
    """Say whether the table counts the hops over its own entries of 1."""
    arcs = np.argwhere(table == 1)
    if len(arcs) == 0:
        return False
    try:
        return bool((hop_distances(adjacency(arcs, size=len(table))) == table).all())
    except AssumptionError:
        return False


def read_numbers(truths: ArrayLike, size: int) -> NDArray[np.intp]:
    """Read numbers of nodes; the message never shows one."""
    array = np.asarray(truths)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError("truths must be a one-dimensional array of integers.")
    if array.size and not (array.min() >= 0 and array.max() < size):
        raise ValueError(f"truths must be numbers of nodes in 0..{size - 1}.")
    return array.astype(np.intp)


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

"""Views of graphs, and what the clique counts among them cost one edge.

Degrees, stars, vertex pairs and clique counts. The price of an edge is the number of
counted cliques that vanish with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from undertow.errors import FalsifiedClaimError, MismatchError
from undertow.numeric.exact import Number, exact, ext_scale
from undertow.privacy.loss import Pure
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.domain import Graph
from undertow.spaces.unit import Edge, Node


@dataclass(frozen=True, slots=True)
class Degree(View):
    """The degree of one vertex, a number.

    Examples
    --------
    >>> Degree(0).apply(frozenset({(0, 1), (0, 2)}), Graph(3))
    2
    """

    vertex: int

    def __post_init__(self) -> None:
        _require_index(self.vertex)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"degree of vertex {self.vertex}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the number of edges at the vertex."""
        return sum(self.vertex in edge for edge in database)

    def image(self, domain: Domain) -> Domain | None:
        """Return None: a number comes out."""
        return None

    def require_domain(self, domain: Domain) -> None:
        """Require a graph with this vertex."""
        _require_vertices(self, domain, (self.vertex,))


@dataclass(frozen=True, slots=True)
class IncidentEdges(View):
    """The edges at one vertex: what that vertex knows."""

    vertex: int

    def __post_init__(self) -> None:
        _require_index(self.vertex)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"edges of vertex {self.vertex}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the star of the vertex."""
        return frozenset(edge for edge in database if self.vertex in edge)

    def image(self, domain: Domain) -> Domain | None:
        """Return the graphs of the domain, which contain the stars."""
        return domain

    def keeps_chains(self, unit: Granularity, domain: Domain) -> bool:
        """Return True by edges and vertices: seen through the view, a chain is one."""
        return isinstance(unit, Edge | Node)

    def require_domain(self, domain: Domain) -> None:
        """Require a graph with this vertex."""
        _require_vertices(self, domain, (self.vertex,))


@dataclass(frozen=True, slots=True)
class VertexPairs(View):
    """The edges among given vertex pairs.

    Parameters
    ----------
    pairs : iterable of (int, int)
        The pairs, in either order of their vertices.

    Examples
    --------
    >>> VertexPairs([(1, 0)]).apply(frozenset({(0, 1), (0, 2)}), Graph(3))
    frozenset({(0, 1)})
    """

    pairs: frozenset[tuple[int, int]]

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        chosen = frozenset((min(pair), max(pair)) for pair in pairs)
        if not chosen or any(low == high for low, high in chosen):
            raise ValueError(
                "pairs must name pairs of two different vertices, got "
                f"{'none' if not chosen else 'a vertex with itself'}."
            )
        object.__setattr__(self, "pairs", chosen)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{len(self.pairs)} vertex pairs"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the edges among the pairs."""
        return database & self.pairs

    def image(self, domain: Domain) -> Domain | None:
        """Return the graphs of the domain, which contain the images."""
        return domain

    def keeps_chains(self, unit: Granularity, domain: Domain) -> bool:
        """Return True by edges and vertices: seen through the view, a chain is one."""
        return isinstance(unit, Edge | Node)

    def require_domain(self, domain: Domain) -> None:
        """Require a graph with these vertices."""
        _require_vertices(self, domain, (v for pair in self.pairs for v in pair))


@dataclass(frozen=True, slots=True)
class CliqueCount(View):
    """How many cliques of each size 3, 4, ..., `max_size` a graph has.

    Examples
    --------
    >>> triangle = frozenset({(0, 1), (0, 2), (1, 2)})
    >>> CliqueCount(4).apply(triangle, Graph(4))
    (1, 0)
    """

    max_size: int

    def __post_init__(self) -> None:
        if not isinstance(self.max_size, int) or self.max_size < 3:
            raise ValueError(
                f"max_size must be an integer of at least 3, got {self.max_size!r}."
            )

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"counts of cliques of 3 to {self.max_size} vertices"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the counts, smallest cliques first."""
        counts = count_cliques(database, max_size=self.max_size)
        return counts[2:]

    def image(self, domain: Domain) -> Domain | None:
        """Return None: a vector of numbers comes out."""
        return None

    def require_domain(self, domain: Domain) -> None:
        """Require a graph."""
        _require_vertices(self, domain, ())


def _require_index(vertex: int) -> None:
    if isinstance(vertex, bool) or not isinstance(vertex, int) or vertex < 0:
        raise ValueError(f"vertex must be a non-negative integer, got {vertex!r}.")


def _require_vertices(view: View, domain: Domain, vertices: Iterable[int]) -> None:
    if not isinstance(domain, Graph):
        raise MismatchError(
            f"view {view.name} must see a domain of kind graph, got {domain.kind}."
        )
    for vertex in vertices:
        if not 0 <= vertex < domain.vertices:
            raise ValueError(
                f"vertex must lie between 0 and {domain.vertices - 1}, got {vertex}."
            )


# What clique counts cost one edge.
#
# A release of the numbers of 3-, 4-, ..., k-cliques with Laplace noise protects edges
# unevenly by design: an isolated edge costs nothing, an edge in a 5-clique seven times
# the budget per count. The price of an edge is the number of counted cliques that
# vanish with it.

Adjacency = Mapping[int, frozenset[int]]
VertexPair = tuple[int, int]


def common_neighbourhood(
    edges: Iterable[VertexPair], edge: VertexPair
) -> dict[int, frozenset[int]]:
    """Return the graph on the vertices adjacent to both ends of `edge`.

    Parameters
    ----------
    edges : iterable of (int, int)
        A graph; `edge` itself may be in it or not.
    edge : (int, int)
        The two ends.

    Returns
    -------
    dict
        Vertex -> its neighbours, within the common neighbourhood.

    Examples
    --------
    >>> common_neighbourhood([(0, 1), (0, 2), (1, 2), (0, 3)], (0, 1))
    {2: frozenset()}
    """
    adjacency = _adjacency(edges)
    ends = [adjacency.get(end, frozenset()) for end in edge]
    shared = (ends[0] & ends[1]) - set(edge)
    return {vertex: adjacency[vertex] & shared for vertex in sorted(shared)}


def count_cliques(edges: Iterable[VertexPair], *, max_size: int) -> tuple[int, ...]:
    """Return the numbers of cliques of 1, 2, ..., `max_size` vertices.

    Vertices without edges are not counted.

    Examples
    --------
    >>> count_cliques([(0, 1), (0, 2), (1, 2)], max_size=4)
    (3, 3, 1, 0)
    """
    return _clique_counts(_adjacency(edges), max_size)


def clique_edge_loss(neighbourhood: Adjacency, max_size: int) -> int:
    """Count the cliques of 3 to `max_size` vertices that one edge lies in.

    Parameters
    ----------
    neighbourhood : mapping of int to frozenset of int
        The common neighbourhood of the edge, see :func:`common_neighbourhood`.
    max_size : int
        The largest clique that is counted by the release.

    Returns
    -------
    int
        How far the vector of counts moves, in the sum of absolute differences, when
        the edge goes.

    Notes
    -----
    Exact on every graph: an i-clique through the edge is an (i-2)-clique of the common
    neighbourhood. The thesis states Example 4.4 for edges with a unique maximum
    clique; that hypothesis is too weak, see :func:`unique_maximal_clique`.

    Examples
    --------
    >>> complete = [(i, j) for j in range(5) for i in range(j)]
    >>> clique_edge_loss(common_neighbourhood(complete, (0, 1)), 5)
    7
    """
    _require_size(max_size)
    return sum(_clique_counts(neighbourhood, max_size - 2))


def unique_maximal_clique(
    edges: Iterable[VertexPair], edge: VertexPair
) -> frozenset[int] | None:
    """Return the only maximal clique around `edge`, or None if there are several.

    Notes
    -----
    It is unique exactly when the common neighbourhood of the two ends is a clique.
    A unique clique of *maximum size* is not enough: in the 4-clique {0, 1, 2, 3} with
    the triangle {0, 1, 4}, the edge 01 lies in one largest clique, yet four counted
    cliques vanish with it, not three.

    Examples
    --------
    >>> graph = [(0, 1), (0, 2), (1, 2), (0, 4), (1, 4)]
    >>> unique_maximal_clique(graph, (0, 1)) is None
    True
    """
    shared = common_neighbourhood(edges, edge)
    if all(len(others) == len(shared) - 1 for others in shared.values()):
        return frozenset(shared) | frozenset(edge)
    return None


def clique_loss(clique_size: int, max_size: int, *, epsilon: Number = 1) -> Pure:
    r"""Return the price of an edge whose only maximal clique has a given size.

    .. math:: \varepsilon \sum_{i=3}^{k} \binom{r-2}{i-2}
              = \varepsilon\,(2^{r-2} - 1) \quad (k \ge r)

    Parameters
    ----------
    clique_size : int
        Vertices of the maximal clique, r; at least 2.
    max_size : int
        The largest clique that is counted, k; at least 3.
    epsilon : int, float, str, Decimal or Fraction
        The budget of each count.

    Returns
    -------
    Pure
        The loss of removing or adding the edge.

    Notes
    -----
    Example 4.4 of [1]_, corrected: it needs a unique *maximal* clique and counts of
    all sizes up to r; with k < r the sum stops at k.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> clique_loss(5, 5, epsilon="0.1")
    Pure(epsilon=0.7)
    """
    if clique_size < 2:
        raise ValueError(f"clique_size must be at least 2, got {clique_size}.")
    _require_size(max_size)
    return _priced_cliques(_cliques_of_edge(clique_size, max_size), epsilon)


def clique_metric(
    first: Iterable[VertexPair],
    second: Iterable[VertexPair],
    *,
    max_size: int,
    epsilon: Number = 1,
    assume_unique_maximal: bool = False,
) -> Pure:
    """Return what noisy clique counts cost between two graphs.

    Parameters
    ----------
    first, second : iterable of (int, int)
        The graphs, on one vertex set.
    max_size : int
        The largest clique that is counted.
    epsilon : int, float, str, Decimal or Fraction
        The budget of each count.
    assume_unique_maximal : bool
        Walk through the common subgraph with the closed form per edge instead of
        comparing the counts: a bound that needs no counting, never smaller.

    Raises
    ------
    FalsifiedClaimError
        If the assumption is false; the witness is the edge.

    Notes
    -----
    Without the assumption the value is the exact composed metric, the sum of absolute
    differences of the counts.
    """
    _require_size(max_size)
    one, two = frozenset(first), frozenset(second)
    if assume_unique_maximal:
        number = _cliques_on_the_way(one, two, max_size) + _cliques_on_the_way(
            two, one, max_size
        )
    else:
        counts = (count_cliques(graph, max_size=max_size)[2:] for graph in (one, two))
        number = sum(abs(a - b) for a, b in zip(*counts, strict=True))
    return _priced_cliques(number, epsilon)


def _priced_cliques(number: int, epsilon: Number) -> Pure:
    return Pure(ext_scale(exact(epsilon, "epsilon"), number))


def _cliques_on_the_way(
    graph: frozenset[VertexPair], other: frozenset[VertexPair], max_size: int
) -> int:
    total = 0
    for edge in sorted(graph - other):
        clique = unique_maximal_clique(graph, edge)
        if clique is None:
            raise FalsifiedClaimError(
                f"edge {edge} must lie in one maximal clique, got several; "
                "leave assume_unique_maximal out to count exactly.",
                witness=edge,
                source="thesis, Example 4.4",
            )
        total += _cliques_of_edge(len(clique), max_size)
    return total


def _cliques_of_edge(clique_size: int, max_size: int) -> int:
    sizes = range(3, min(clique_size, max_size) + 1)
    return sum(math.comb(clique_size - 2, size - 2) for size in sizes)


def _adjacency(edges: Iterable[VertexPair]) -> dict[int, frozenset[int]]:
    neighbours: dict[int, set[int]] = {}
    for low, high in edges:
        neighbours.setdefault(low, set()).add(high)
        neighbours.setdefault(high, set()).add(low)
    return {vertex: frozenset(others) for vertex, others in neighbours.items()}


def _clique_counts(adjacency: Adjacency, max_size: int) -> tuple[int, ...]:
    """Count cliques by size, each found once in increasing vertex order."""
    counts = [0] * max_size
    stack = [(0, frozenset(adjacency), -1)]
    while stack:
        size, candidates, last = stack.pop()
        for vertex in candidates:
            if vertex > last:
                counts[size] += 1
                if size + 1 < max_size:
                    stack.append((size + 1, candidates & adjacency[vertex], vertex))
    return tuple(counts)


def _require_size(max_size: int) -> None:
    if not isinstance(max_size, int) or max_size < 3:
        raise ValueError(
            f"max_size must be an integer of at least 3, got {max_size!r}."
        )

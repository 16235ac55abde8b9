"""Views of graphs: degrees, stars, vertex pairs and clique counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from undertow.errors import MismatchError
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.clique import count_cliques
from undertow.spaces.domain import Graph
from undertow.spaces.granularity import Edge, Node

__all__ = ["CliqueCount", "Degree", "IncidentEdges", "VertexPairs"]


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

"""Graphs on a fixed vertex set, with or without a cap on the degrees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import ClassVar

from undertow._validate import check_count
from undertow.spaces.base import Database, Domain
from undertow.spaces.domain_finite import require_enumerable

__all__ = ["Edges", "Graph"]

Edges = frozenset[tuple[int, int]]
"""A graph: the set of its edges ``(i, j)`` with ``i < j``."""

# Graphs on more vertices pass the enumeration limit for every positive cap.
_COUNTED_VERTICES = 12


@dataclass(frozen=True, slots=True)
class Graph(Domain):
    """The simple graphs on vertices 0, 1, ..., `vertices` - 1.

    Parameters
    ----------
    vertices : int
        The number of vertices, fixed and public.
    max_degree : int, optional
        A cap on every degree that belongs to the domain, not read off the data.

    Examples
    --------
    >>> Graph(4).count(), Graph(4, max_degree=1).count()
    (64, 10)
    >>> Graph.database([(2, 0)]) in Graph(3)
    True
    """

    kind: ClassVar[str] = "graph"
    vertices: int
    max_degree: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_count(self.vertices, "vertices")
        if self.max_degree is not None:
            check_count(self.max_degree, "max_degree", minimum=0)

    @staticmethod
    def database(edges: Iterable[tuple[int, int]]) -> Edges:
        """Return the canonical form: a frozenset of pairs, smaller vertex first."""
        return frozenset((min(e), max(e)) for e in edges)

    @property
    def is_capped(self) -> bool:
        """Whether the cap excludes any graph."""
        return self.max_degree is not None and self.max_degree < self.vertices - 1

    @property
    def degree_cap(self) -> int:
        """The largest degree any vertex can have."""
        most = self.vertices - 1
        return most if self.max_degree is None else min(most, self.max_degree)

    def degrees(self, database: Edges) -> list[int]:
        """Return the degree of every vertex."""
        degrees = [0] * self.vertices
        for i, j in database:
            degrees[i] += 1
            degrees[j] += 1
        return degrees

    def __contains__(self, database: object) -> bool:
        if not isinstance(database, frozenset):
            return False
        if not all(self._is_edge(edge) for edge in database):
            return False
        return max(self.degrees(database)) <= self.degree_cap

    def _is_edge(self, edge: object) -> bool:
        if not isinstance(edge, tuple) or len(edge) != 2:
            return False
        i, j = edge
        return isinstance(i, int) and isinstance(j, int) and 0 <= i < j < self.vertices

    def count(self) -> float:
        """Return the number of graphs.

        With a cap and more than twelve vertices it is an upper bound, beyond
        enumeration like the number itself.
        """
        if self.degree_cap == 0:
            return 1
        if self.is_capped and self.vertices <= _COUNTED_VERTICES:
            return _count_capped((self.degree_cap,) * self.vertices, {})
        pairs = math.comb(self.vertices, 2)
        return 2**pairs if pairs < 1000 else math.inf

    def databases(self) -> Iterator[Database]:
        """Yield every graph once."""
        require_enumerable(self)
        free = [self.degree_cap] * self.vertices
        return (frozenset(edges) for edges in _grow(0, free))


def _count_capped(free: tuple[int, ...], known: dict[tuple[int, ...], int]) -> int:
    """Count the graphs whose vertex i has at most ``free[i]`` edges (sorted)."""
    if len(free) < 2:
        return 1
    if free not in known:
        rest, total = free[1:], 0
        for chosen in product((0, 1), repeat=len(rest)):
            left = [room - bit for room, bit in zip(rest, chosen, strict=True)]
            if sum(chosen) <= free[0] and min(left) >= 0:
                total += _count_capped(tuple(sorted(left)), known)
        known[free] = total
    return known[free]


def _grow(vertex: int, free: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield the edge lists among `vertex` and later ones that respect `free`."""
    if vertex >= len(free) - 1:
        yield []
        return
    open_vertices = [u for u in range(vertex + 1, len(free)) if free[u]]
    for degree in range(min(free[vertex], len(open_vertices)) + 1):
        for chosen in combinations(open_vertices, degree):
            left = list(free)
            for u in chosen:
                left[u] -= 1
            for later in _grow(vertex + 1, left):
                yield [(vertex, u) for u in chosen] + later

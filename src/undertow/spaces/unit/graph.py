"""Granularities of graphs on a fixed vertex set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, ClassVar

from undertow.errors import AssumptionError
from undertow.spaces.base import Database, Domain
from undertow.spaces.canonical import Components, CoverBounds, vertex_cover
from undertow.spaces.domain import FiniteDomain, Graph
from undertow.spaces.unit.generic import Catalogued, require_shape

VERTICES = "the vertex set"


class _GraphLevel(Catalogued):
    kinds: ClassVar[tuple[str, ...]] = ("graph", "finite")
    otherwise: ClassVar[str] = "use bounded or unbounded on tables"

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless the relation makes sense on `domain`."""
        Catalogued.require_domain(self, domain)
        require_shape(domain, "graphs", name=self.name)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the vertex set."""
        return (VERTICES,)

    def components(self, domain: Domain) -> Components | None:
        """Return one component on graphs: every graph reaches the empty one."""
        if not isinstance(domain, Graph):
            return None
        return Components(domain.degree_cap > 0, 1)


@dataclass(frozen=True, slots=True)
class Edge(_GraphLevel):
    """Add or remove one edge.

    The size of the symmetric difference, also under a degree cap, which removing
    edges respects (thesis, Example 4.3).

    Examples
    --------
    >>> Edge().distance(Graph.database([(0, 1)]), Graph.database([(0, 2)]), Graph(4))
    2
    """

    splits_person: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The command-line name."""
        return "edge"

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        return len(first ^ second) == 1

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        degrees = domain.degrees(database)
        for edge in combinations(range(domain.vertices), 2):
            if edge in database:
                yield database - {edge}
            elif max(degrees[edge[0]], degrees[edge[1]]) < domain.degree_cap:
                yield database | {edge}

    def closed_form(self, first: Any, second: Any, domain: Domain) -> float | None:
        """Return the number of differing edges on classes closed under removal."""
        if isinstance(domain, FiniteDomain) and not domain.closed_under_removal:
            return None
        return len(first ^ second)


@dataclass(frozen=True, slots=True)
class Node(_GraphLevel):
    r"""Rewire all edges of one vertex.

    Notes
    -----
    On the class of all graphs the distance is the minimum vertex cover :math:`\tau` of
    the differing edges. Under a degree cap that is only a lower bound,
    :math:`\tau \le d \le 2\tau - 1`: attaching a vertex may break the cap until another
    is detached. There the distance is searched; :meth:`bounds` gives the interval,
    whose upper end a loss must use.

    Examples
    --------
    >>> one, two = Graph.database([(0, 1), (2, 3)]), Graph.database([(0, 2), (1, 3)])
    >>> Node().distance(one, two, Graph(4))
    2
    >>> Node().distance(one, two, Graph(4, max_degree=1))
    3
    """

    @property
    def name(self) -> str:
        """The command-line name."""
        return "node"

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        shared = set.intersection(*(set(edge) for edge in first ^ second))
        return bool(shared)

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        degrees, seen = domain.degrees(database), {database}
        for vertex in range(domain.vertices):
            mine = {e for e in database if vertex in e}
            linked = {u for e in mine for u in e} - {vertex}
            rest = database - mine
            open_vertices = [
                u
                for u in range(domain.vertices)
                if u != vertex and (u in linked or degrees[u] < domain.degree_cap)
            ]
            for chosen in _subsets(open_vertices, domain.degree_cap):
                other = rest | {(min(vertex, u), max(vertex, u)) for u in chosen}
                if other not in seen:
                    seen.add(other)
                    yield other

    def closed_form(self, first: Any, second: Any, domain: Domain) -> float | None:
        """Return the vertex cover number on all graphs; None where it is not proved."""
        bounds = self.bounds(first, second, domain)
        return bounds.low if bounds.exact else None

    def bounds(self, first: Any, second: Any, domain: Domain) -> CoverBounds:
        """Return an interval that contains the distance.

        On listed classes nothing bounds it from above.
        """
        cover = vertex_cover(first ^ second)
        if isinstance(domain, FiniteDomain):
            return CoverBounds(cover.low, math.inf) if cover.high > 1 else cover
        assert isinstance(domain, Graph)
        if not domain.is_capped or cover.high <= 1:
            return cover
        return CoverBounds(cover.low, 2 * cover.high - 1)

    def _search(self, first: Database, second: Database, domain: Domain) -> float:
        try:
            return Catalogued._search(self, first, second, domain)
        except AssumptionError as fault:
            bounds = self.bounds(first, second, domain)
            raise AssumptionError(
                "domain must be small enough to search for a node distance, got one "
                f"where it is only known to lie in {bounds.low}..{bounds.high}; use "
                "the upper end, Node().bounds(...).high, for a loss."
            ) from fault


def _subsets(items: list[int], most: int) -> Iterator[tuple[int, ...]]:
    sizes = range(min(most, len(items)) + 1)
    return chain.from_iterable(combinations(items, k) for k in sizes)

r"""Change classes of graphs: one edge, or one rewired vertex.

Edge target: one class per pair of vertices; with one view per vertex the worst pair is
the two heaviest vertices. Node target: vertex :math:`v` goes from neighbours :math:`A`
to :math:`B`. Its own degree moves by :math:`k = ||A| - |B||`, every vertex of
:math:`A \triangle B` by one. Under a cap :math:`\theta` on degrees

.. math:: |A \triangle B| \le \min(2\theta - k, n - 1), \qquad
          |A \triangle B| \equiv k \pmod 2,

and every such pair of sets occurs, all other vertices being otherwise isolated.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from undertow.errors import MismatchError
from undertow.numeric.exact import Exact, sqrt_up
from undertow.spaces.base import Granularity
from undertow.spaces.change import (
    Change,
    ChangeFamily,
    Charge,
    Column,
    Maximum,
    Row,
    align,
    totals,
)
from undertow.spaces.domain import Graph
from undertow.spaces.influence._column import Reduced, grow, reduce_column
from undertow.spaces.influence._family import (
    PairColumn,
    PairFamily,
    RepeatedFamily,
    UnionFamily,
)
from undertow.spaces.influence._run import listed
from undertow.spaces.metric import (
    AbsoluteDifference,
    Euclidean,
    LpNorm,
    SymmetricDifference,
)
from undertow.spaces.unit import Edge, FreeLunch, Group, Node
from undertow.spaces.view import (
    CliqueCount,
    Degree,
    Identity,
    IncidentEdges,
    VertexPairs,
)


def graph_family(
    domain: Graph, target: Granularity, *, columns: Sequence[Column]
) -> ChangeFamily | None:
    """Return the change classes of graphs; None where no formula is known."""
    plain = [reduce_column(column, domain) for column in columns]
    for column in plain:
        _require_unit(column, domain)
    return _family(domain, target, plain)


def _family(
    domain: Graph, target: Granularity, plain: Sequence[Reduced]
) -> ChangeFamily | None:
    if isinstance(target, Edge):
        return _edges(domain, plain)
    if isinstance(target, Node):
        return _nodes(domain, plain)
    if isinstance(target, FreeLunch):
        return _everything(domain, plain)
    if isinstance(target, Group):
        one = _family(domain, target.base, plain)
        if one is None:
            return None
        capped = {j: grow(c) for j, c in enumerate(plain) if not c.additive}
        # The same edge cannot change twice, so equal changes are only a bound.
        whole = _everything(domain, plain)
        return RepeatedFamily(one, target.size, capped=capped, tight=False, whole=whole)
    return None


def _require_unit(column: Reduced, domain: Graph) -> None:
    unit = column.unit
    if not isinstance(unit, Granularity):
        return
    if column.setting == "common" or column.view.image(domain) is not None:
        unit.require_domain(domain)
    elif not isinstance(unit, FreeLunch):
        raise MismatchError(
            f"unit must be a metric on numbers for {column.view.name} in the view "
            f"setting, got {unit.name}; use AbsoluteDifference or a norm, or state the "
            "claim in the common setting."
        )


def _known(column: Reduced) -> bool:
    """Return whether the unit measures what the view shows."""
    unit, view = column.unit, column.view
    if isinstance(unit, FreeLunch | Edge | Node):
        return True
    if column.setting == "common":
        return isinstance(unit, SymmetricDifference)
    if isinstance(view, Degree):
        return isinstance(unit, AbsoluteDifference)
    if isinstance(view, CliqueCount):
        return isinstance(unit, LpNorm | Euclidean)
    return isinstance(unit, SymmetricDifference)


@dataclass(frozen=True, slots=True)
class _Sights:
    """Columns by what they look at."""

    vertex: dict[int, list[int]]
    pairs: dict[tuple[int, int], list[int]]
    whole: dict[int, Exact]


def _edge_sights(domain: Graph, plain: Sequence[Reduced]) -> _Sights:
    sights = _Sights({}, {}, {})
    for j, column in enumerate(plain):
        view = column.view
        if isinstance(view, Degree | IncidentEdges):
            sights.vertex.setdefault(view.vertex, []).append(j)
        elif isinstance(view, VertexPairs):
            for pair in view.pairs:
                sights.pairs.setdefault(pair, []).append(j)
        else:
            sights.whole[j] = _one_edge(column, domain)
    return sights


def _one_edge(column: Reduced, domain: Graph) -> Exact:
    """Return the influence of one edge that the view sees."""
    if not _known(column):
        return column.finish(math.inf)
    if isinstance(column.view, CliqueCount):
        shared = domain.degree_cap - 1
        counts = [
            math.comb(shared, size - 2) for size in range(3, column.view.max_size + 1)
        ]
        return _cliques(column, counts)
    return column.finish(1)


def _cliques(column: Reduced, counts: Sequence[int], *, steps: Exact = 1) -> Exact:
    """Return the size of a change of clique counts in the unit of the column."""
    if not any(counts):
        return 0
    unit = column.unit
    if isinstance(unit, FreeLunch):
        return column.finish(1)
    if isinstance(unit, Edge | Node | SymmetricDifference):
        return column.finish(steps)
    assert isinstance(unit, LpNorm | Euclidean)
    order = 2 if isinstance(unit, Euclidean) else unit.p
    if order == 1:
        return column.finish(sum(counts))
    if order == math.inf:
        return column.finish(max(counts))
    if order == 2:
        return column.finish(Fraction(sqrt_up(sum(n * n for n in counts))))
    return column.finish(sum(counts))  # every norm is at most the sum


def _edges(domain: Graph, plain: Sequence[Reduced]) -> ChangeFamily:
    sights = _edge_sights(domain, plain)
    loose = [
        isinstance(c.view, CliqueCount)
        and isinstance(c.unit, LpNorm)
        and c.unit.p not in (1, 2, math.inf)
        for c in plain
    ]
    tight = all(column.faithful for column in plain) and not any(loose)
    parts: list[ChangeFamily] = [_vertex_pairs(domain, plain, sights, tight)]
    if sights.pairs:
        rows = [_pair_row(plain, sights, pair) for pair in sorted(sights.pairs)]
        parts.append(listed(rows, tight=tight))
    return parts[0] if len(parts) == 1 else UnionFamily(parts)


def _vertex_pairs(
    domain: Graph, plain: Sequence[Reduced], sights: _Sights, tight: bool
) -> PairFamily:
    own = sorted(sights.vertex)
    others = domain.vertices - len(own)
    free = next((v for v in range(domain.vertices) if v not in sights.vertex), None)
    names = own + ([] if free is None else [free])
    position = {vertex: at for at, vertex in enumerate(own)}
    columns: dict[int, PairColumn] = {}
    for j, column in enumerate(plain):
        if isinstance(column.view, Degree | IncidentEdges):
            one = _one_edge(column, domain)
            columns[j] = PairColumn([position[column.view.vertex]], one, 0, 0)
        elif j in sights.whole:
            moved = sights.whole[j]
            columns[j] = PairColumn(range(len(names)), moved, moved, moved)
        else:
            columns[j] = PairColumn((), 0, 0, 0)
    twice = [False] * len(own) + ([] if free is None else [others > 1])

    return PairFamily(
        len(names),
        twice=twice,
        columns=columns,
        describe=lambda s, t: _between(domain, names[s], names[t], set(own)),
        tight=tight,
    )


def _between(domain: Graph, one: int, two: int, own: set[int]) -> Change:
    if one == two:  # two vertices that no view belongs to
        free = range(one + 1, domain.vertices)
        two = next(vertex for vertex in free if vertex not in own)
    return _edge_change(min(one, two), max(one, two))


def _edge_change(one: int, two: int) -> Change:
    words = f"add or remove the edge between vertices {one} and {two}"
    return Change("edge", words, (("vertices", (one, two)),))


def _pair_row(plain: Sequence[Reduced], sights: _Sights, pair: tuple[int, int]) -> Row:
    influences: dict[int, Exact] = dict(sights.whole)
    seen = [j for vertex in pair for j in sights.vertex.get(vertex, ())]
    for j in (*seen, *sights.pairs[pair]):
        known = _known(plain[j])
        influences[j] = plain[j].finish(1 if known else math.inf)
    return Row(_edge_change(*pair), {j: a for j, a in influences.items() if a})


def _nodes(domain: Graph, plain: Sequence[Reduced]) -> ChangeFamily:
    sights = [_node_sight(column, domain) for column in plain]
    tight = all(column.faithful for column in plain)
    tight = tight and all(sight.exact for sight in sights)
    return NodeFamily(
        domain.vertices, domain.degree_cap, columns=dict(enumerate(sights)), tight=tight
    )


def _node_sight(column: Reduced, domain: Graph) -> NodeSight:
    view, unit = column.view, column.unit
    counts_edges = isinstance(unit, Edge | SymmetricDifference)
    rate: Rate = "once" if isinstance(unit, FreeLunch | Node) else "edges"
    if not _known(column):
        return NodeSight(column, _vertex(view), "lost", exact=True)
    if isinstance(view, Identity):
        return NodeSight(column, None, rate)
    if isinstance(view, IncidentEdges):
        return NodeSight(column, view.vertex, rate)
    if isinstance(view, Degree):
        return NodeSight(column, view.vertex, "once" if rate == "once" else "degree")
    if isinstance(view, VertexPairs):
        return NodeSight(column, None, rate, exact=False)
    assert isinstance(view, CliqueCount)
    counts = [
        math.comb(domain.degree_cap, size - 1) for size in range(3, view.max_size + 1)
    ]
    if counts_edges and any(counts):
        return NodeSight(column, None, "edges", exact=False)
    moved = _cliques(column, counts)
    return NodeSight(column, None, "fixed", fixed=moved, exact=False)


def _vertex(view: object) -> int | None:
    return view.vertex if isinstance(view, Degree | IncidentEdges) else None


def _everything(domain: Graph, plain: Sequence[Reduced]) -> ChangeFamily:
    """Return one class: the largest influence of each column on its own.

    Without a cap the empty and the complete graph attain them all, but for vertex
    pairs by vertices, whose covers are not counted, and clique counts.
    """
    n, cap = domain.vertices, domain.degree_cap
    influences: dict[int, Exact] = {}
    for j, column in enumerate(plain):
        value = _largest(column, n, cap)
        if value:
            influences[j] = value
    row = Row(Change("all", "replace the whole graph"), influences)
    whole = all(isinstance(c.view, Identity) and c.is_discrete for c in plain)
    ends = not domain.is_capped and all(_attained_by_ends(c) for c in plain)
    faithful = all(column.faithful for column in plain)
    return listed([row], tight=faithful and (whole or ends))


def _attained_by_ends(column: Reduced) -> bool:
    if isinstance(column.view, CliqueCount):
        return False
    by_pairs = isinstance(column.view, VertexPairs)
    return not (by_pairs and isinstance(column.unit, Node))


def _largest(column: Reduced, n: int, cap: int) -> Exact:
    view, unit = column.view, column.unit
    if not _known(column):
        return math.inf
    if isinstance(view, CliqueCount):
        sizes = range(3, view.max_size + 1)
        counts = [n * math.comb(cap, size - 1) // size for size in sizes]
        return _cliques(column, counts, steps=_all_steps(unit, n, cap))
    if isinstance(unit, FreeLunch):
        return column.finish(1)
    if isinstance(view, Degree):
        return column.finish(1 if isinstance(unit, Node) else cap)
    if isinstance(view, IncidentEdges):
        return column.finish(1 if isinstance(unit, Node) else min(n - 1, 2 * cap))
    steps = _all_steps(unit, n, cap)
    if isinstance(view, VertexPairs):
        steps = min(steps, len(view.pairs))
    return column.finish(steps)


def _all_steps(unit: object, n: int, cap: int) -> int:
    """Bound the steps between any two graphs; exact without a cap on the degrees."""
    if cap == n - 1:
        return n - 1 if isinstance(unit, Node) else math.comb(n, 2)
    edges = min(2 * (n * cap // 2), n * min(2 * cap, n - 1) // 2)
    # A cover of the edges that differ, of n - 1 vertices at most: all but one of them
    # are detached one by one, and attached again.
    return min(edges, 2 * (n - 1) - 1) if isinstance(unit, Node) else edges


# Rewiring one vertex: which vertex, by how much, and which others notice.

Rate = Literal["once", "edges", "degree", "fixed", "lost"]
"""What the rewired vertex itself costs: one step, the number of its edges that change,
the change of its degree, a fixed amount, or everything."""


@dataclass(frozen=True, slots=True)
class NodeSight:
    """How a column sees a rewired vertex.

    Parameters
    ----------
    column : Reduced
        The column.
    vertex : int or None
        The vertex it belongs to; None: the whole graph.
    rate : Rate
        What the rewired vertex itself costs.
    fixed : Exact
        The fixed amount.
    exact : bool
        Whether the influence is attained together with the others.
    """

    column: Reduced
    vertex: int | None
    rate: Rate
    fixed: Exact = 0
    exact: bool = True

    def at_centre(self, k: int, edges: int) -> Exact:
        """Return the influence on the rewired vertex, or on the whole graph."""
        if self.rate == "fixed":
            return self.fixed
        if self.rate == "lost":
            return math.inf
        amount = k if isinstance(self.column.view, Degree) else edges
        if self.rate == "once":
            return self.column.finish(1) if amount else 0
        return self.column.finish(amount)

    def at_end(self) -> Exact:
        """Return the influence on a vertex that gains or loses one edge."""
        return math.inf if self.rate == "lost" else self.column.finish(1)


class NodeFamily(ChangeFamily):
    """One vertex rewired from neighbours A to neighbours B.

    Parameters
    ----------
    vertices, cap : int
        The number of vertices and the largest degree.
    columns : mapping of int to NodeSight
        How each column sees the change.
    tight : bool
        Whether each class is attained in all columns together.

    Notes
    -----
    For every vertex and every change k of its degree, the largest number of edges that
    can change goes to the heaviest other vertices. Vertices whose charges are alike
    are looked at once.
    """

    def __init__(
        self,
        vertices: int,
        cap: int,
        *,
        columns: Mapping[int, NodeSight],
        tight: bool,
    ) -> None:
        self.vertices, self.cap = vertices, cap
        self.columns, self.tight = dict(columns), tight

    def maximise(self, charges: Sequence[Charge], *, coordinate: int = 0) -> Maximum:
        """Return the heaviest rewiring."""
        whole, own = self._split(align(charges, lambda j: self.columns[j].vertex))
        ends = {v: self._end_cost(held, coordinate) for v, held in own.items()}
        order = sorted(ends, key=lambda v: (-ends[v], v))
        order += self._bystanders(own)
        line = _HeaviestVertices(order, [ends.get(v, 0) for v in order])
        best: tuple[Exact, int, int, int] = (-1, 0, 0, 1)
        centres = self._centres(own, order)
        for k, edges in self._shapes():
            shared = self._centre_cost(whole, k, edges, coordinate)
            for vertex in centres:
                mine = self._centre_cost(own.get(vertex, ()), k, edges, coordinate)
                total = _sum(shared, mine, line.heaviest(edges, without=vertex))
                if total > best[0]:
                    best = (total, vertex, k, edges)
        value, vertex, k, edges = best
        chosen = [v for v in order if v != vertex][:edges]
        return Maximum(value, self._row(vertex, k, edges, chosen), self.tight)

    def _split(
        self, charges: Sequence[Charge]
    ) -> tuple[list[Charge], dict[int, list[Charge]]]:
        whole: list[Charge] = []
        own: dict[int, list[Charge]] = defaultdict(list)
        for charge in charges:
            vertex = self.columns[charge.columns[0]].vertex
            if vertex is None:
                whole.append(charge)
            else:
                own[vertex].append(charge)
        return whole, dict(own)

    def _shapes(self) -> list[tuple[int, int]]:
        """Return the changes k of the degree with the most edges that can change."""
        shapes = []
        for k in range(self.cap + 1):
            edges = min(2 * self.cap - k, self.vertices - 1)
            edges -= (edges - k) % 2
            if edges > 0:
                shapes.append((k, edges))
        return shapes

    def _bystanders(self, own: Mapping[int, object]) -> list[int]:
        """Return vertices without charges, as many as a rewiring can need."""
        needed = min(self.vertices - len(own), 2 * self.cap + 1)
        found: list[int] = []
        for vertex in range(self.vertices):
            if len(found) == needed:
                break
            if vertex not in own:
                found.append(vertex)
        return found

    def _centres(
        self, own: Mapping[int, Sequence[Charge]], order: Sequence[int]
    ) -> list[int]:
        """Return one vertex for each kind of charges, and one without any."""
        seen: dict[Hashable, int] = {}
        for vertex in order:
            key = tuple(self._key(charge) for charge in own.get(vertex, ()))
            seen.setdefault(key, vertex)
        return list(seen.values())

    def _key(self, charge: Charge) -> Hashable:
        sights = [self.columns[j] for j in charge.columns]
        forms = tuple((s.rate, s.fixed, s.column.steps) for s in sights)
        return forms, getattr(charge.price, "key", id(charge.price))

    def _end_cost(self, held: Sequence[Charge], coordinate: int) -> Exact:
        prices = [
            charge.price(tuple(self.columns[j].at_end() for j in charge.columns))
            for charge in held
        ]
        return totals(prices, coordinate + 1)[coordinate]

    def _centre_cost(
        self, held: Sequence[Charge], k: int, edges: int, coordinate: int
    ) -> Exact:
        prices = [
            charge.price(
                tuple(self.columns[j].at_centre(k, edges) for j in charge.columns)
            )
            for charge in held
        ]
        return totals(prices, coordinate + 1)[coordinate]

    def _row(self, vertex: int, k: int, edges: int, chosen: Sequence[int]) -> Row:
        influences: dict[int, Exact] = {}
        ends = set(chosen)
        for j, sight in self.columns.items():
            value: Exact = 0
            if sight.vertex is None or sight.vertex == vertex:
                value = sight.at_centre(k, edges)
            elif sight.vertex in ends:
                value = sight.at_end()
            if value:
                influences[j] = value
        words = f"rewire vertex {vertex}: {edges} edges change, its degree by {k}"
        details = (("vertex", vertex), ("degree", k), ("others", tuple(chosen)))
        return Row(Change("rewire", words, details), influences)


class _HeaviestVertices:
    """Vertices in decreasing weight, with the sums of the heaviest."""

    def __init__(self, order: Sequence[int], weights: Sequence[Exact]) -> None:
        self.weights = list(weights)
        self.place = {vertex: at for at, vertex in enumerate(order)}
        self.sums: list[Exact] = [0, *accumulate(weights, _sum)]

    def heaviest(self, number: int, *, without: int) -> Exact:
        """Return the sum of the `number` heaviest vertices other than one."""
        at = self.place[without]
        if at >= number:
            return self.sums[number]
        rest = self.sums[number + 1]
        if rest == math.inf:
            others = self.weights[:at] + self.weights[at + 1 : number + 1]
            return _sum(*others)
        return rest - self.weights[at]


def _sum(*values: Exact) -> Exact:
    total: Exact = 0
    for value in values:
        if value == math.inf:
            return math.inf
        total = total + value
    return total

"""Rewiring one vertex: which vertex, by how much, and which others notice."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from undertow.privacy.exact import Exact
from undertow.spaces.change import (
    Change,
    ChangeFamily,
    Charge,
    Maximum,
    Row,
    align,
    totals,
)
from undertow.spaces.influence.reduction import Reduced
from undertow.spaces.view import Degree

__all__ = ["NodeFamily", "NodeSight", "Rate"]

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
        line = _Line(order, [ends.get(v, 0) for v in order])
        best: tuple[Exact, int, int, int] = (-1, 0, 0, 1)
        centres = self._centres(own, order)
        for k, edges in self._shapes():
            shared = self._centre_cost(whole, k, edges, coordinate)
            for vertex in centres:
                mine = self._centre_cost(own.get(vertex, ()), k, edges, coordinate)
                total = _plus(shared, mine, line.heaviest(edges, without=vertex))
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


class _Line:
    """Vertices in decreasing weight, with the sums of the heaviest."""

    def __init__(self, order: Sequence[int], weights: Sequence[Exact]) -> None:
        self.weights = list(weights)
        self.place = {vertex: at for at, vertex in enumerate(order)}
        self.sums: list[Exact] = [0, *accumulate(weights, _plus)]

    def heaviest(self, number: int, *, without: int) -> Exact:
        """Return the sum of the `number` heaviest vertices other than one."""
        at = self.place[without]
        if at >= number:
            return self.sums[number]
        rest = self.sums[number + 1]
        if rest == math.inf:
            others = self.weights[:at] + self.weights[at + 1 : number + 1]
            return _plus(*others)
        return rest - self.weights[at]


def _plus(*values: Exact) -> Exact:
    total: Exact = 0
    for value in values:
        if value == math.inf:
            return math.inf
        total = total + value
    return total

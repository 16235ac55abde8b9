"""Change classes of listed domains: every neighbour pair is its own class."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction

from undertow.errors import AssumptionError, VacuousGranularityError
from undertow.privacy.exact import Exact
from undertow.spaces.base import Database, Domain, Granularity, Metric
from undertow.spaces.change import Change, ChangeFamily, Column, Row
from undertow.spaces.domain_finite import in_words
from undertow.spaces.influence.runs import listed
from undertow.spaces.view_range import range_of

__all__ = ["LARGEST_LISTED", "finite_family"]

LARGEST_LISTED = 3_000
"""Databases up to which a domain without closed forms is enumerated."""


def finite_family(
    domain: Domain, target: Granularity, *, columns: Sequence[Column]
) -> ChangeFamily:
    """Return one class per neighbour pair, with exact influences.

    Raises
    ------
    AssumptionError
        If the domain is too large to list.
    VacuousGranularityError
        If no two databases are neighbours.

    Notes
    -----
    View setting: the unit's distance inside the range of the view. Common setting: the
    quotient of the unit by the fibres of the view, a shortest path on which moving
    inside a fibre is free. Pairs with the same influences are one class.
    """
    if domain.count() > LARGEST_LISTED:
        raise AssumptionError(
            f"domain must have at most {LARGEST_LISTED} databases for {target.name} "
            "with these views, for which no closed form is known, got "
            f"{in_words(domain.count())}; use a smaller instance, or views by cell, "
            "time, user, id or vertex."
        )
    databases = list(domain.databases())
    measures = [_measure(column, domain, databases) for column in columns]
    rows: dict[tuple[Exact, ...], Row] = {}
    for first in databases:
        for second in target.neighbours(first, domain):
            values = tuple(measure(first, second) for measure in measures)
            if values not in rows:
                influences = {j: value for j, value in enumerate(values) if value}
                rows[values] = Row(_pair(first, second), influences)
    if not rows:
        if len(databases) == 1:
            return listed([Row(Change("none", "no change: there is one database"), {})])
        raise VacuousGranularityError(
            f"target must have neighbours in the domain, got {target.name}, which has "
            "none here; choose a granularity that allows a change.",
            source="paper, Example III.4",
        )
    return listed(list(rows.values()))


def _pair(first: Database, second: Database) -> Change:
    return Change("pair", "one neighbour pair", (("first", first), ("second", second)))


Measure = Callable[[Database, Database], Exact]


def _measure(column: Column, domain: Domain, databases: Sequence[Database]) -> Measure:
    column.view.require_domain(domain)
    if column.setting == "view":
        shown = range_of(column.view, domain)
        shown.require_unit(column.unit)
        seen = {database: column.view.apply(database, domain) for database in databases}

        def between(first: Database, second: Database) -> Exact:
            return shown.distance(column.unit, seen[first], seen[second])

        return between
    return _quotient(column, domain, databases)


def _quotient(column: Column, domain: Domain, databases: Sequence[Database]) -> Measure:
    """Return the distance modulo the fibres of the view, by shortest paths."""
    fibre = {d: column.view.apply(d, domain) for d in databases}
    edges = _fibre_edges(column.unit, domain, databases, fibre.__getitem__)
    known: dict[Hashable, dict[Hashable, Exact]] = {}

    def between(first: Database, second: Database) -> Exact:
        start, end = fibre[first], fibre[second]
        if start == end:
            return 0
        if start not in known:
            known[start] = _shortest(start, edges)
        return known[start].get(end, math.inf)

    return between


Edges = dict[Hashable, dict[Hashable, Exact]]


def _fibre_edges(
    unit: Metric,
    domain: Domain,
    databases: Sequence[Database],
    fibre: Callable[[Database], Hashable],
) -> Edges:
    edges: Edges = defaultdict(dict)
    for first in databases:
        for second, length in _steps(unit, domain, databases, first):
            start, end = fibre(first), fibre(second)
            if start != end and length < edges[start].get(end, math.inf):
                edges[start][end] = length
    return edges


def _steps(
    unit: Metric, domain: Domain, databases: Sequence[Database], first: Database
) -> Iterable[tuple[Database, Exact]]:
    if isinstance(unit, Granularity):
        return ((second, 1) for second in unit.neighbours(first, domain))
    return (
        (second, _exact(unit.distance(first, second, domain))) for second in databases
    )


def _shortest(start: Hashable, edges: Edges) -> dict[Hashable, Exact]:
    """Return the least length of a path from one fibre to every other."""
    found: dict[Hashable, Exact] = {start: 0}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for there, length in edges.get(here, {}).items():
            reached = math.inf if length == math.inf else found[here] + length
            if reached < found.get(there, math.inf):
                found[there] = reached
                waiting.append(there)
    return found


def _exact(distance: float) -> Exact:
    if distance == math.inf:
        return math.inf
    value = Fraction(distance)
    return int(value) if value.denominator == 1 else value

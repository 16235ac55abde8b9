"""The distance one claim is about, per pair of databases, found once and kept.

In the view setting it is the distance inside the range of the view; in the common
setting the quotient of the unit by the fibres of the view, a shortest chain of classes.
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod

from undertow.composition.finite_claims import exact_distance
from undertow.privacy.exact import Exact
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.view_range import range_of

__all__ = ["Column", "PullbackColumn", "QuotientColumn"]

Pair = tuple[Database, Database]


class Column(ABC):
    """The distance one claim is about; what is found once is kept."""

    def __init__(self, view: View, unit: Metric, domain: Domain) -> None:
        view.require_domain(domain)
        self.view, self.unit, self.domain = view, unit, domain
        self._seen: dict[Database, Database] = {}

    @abstractmethod
    def distance(self, pair: Pair) -> Exact:
        """Return the distance between what the release sees of the two databases."""

    def sees(self, database: Database) -> Database:
        """Return what the release sees of a database."""
        if database not in self._seen:
            self._seen[database] = self.view.apply(database, self.domain)
        return self._seen[database]


class PullbackColumn(Column):
    """``d(f(D), f(E))``, with chains that stay inside the range of the view."""

    def __init__(self, view: View, unit: Metric, domain: Domain) -> None:
        super().__init__(view, unit, domain)
        self._range = range_of(view, domain)
        self._range.require_unit(unit)
        self._known: dict[frozenset[Database], Exact] = {}

    def distance(self, pair: Pair) -> Exact:
        """Return the distance of the two values of the view."""
        ours, theirs = self.sees(pair[0]), self.sees(pair[1])
        if ours == theirs:
            return 0
        key = frozenset((ours, theirs))
        if key not in self._known:
            self._known[key] = self._range.distance(self.unit, ours, theirs)
        return self._known[key]


class QuotientColumn(Column):
    """The quotient of the unit by the fibres of the view: shortest chain of classes."""

    def __init__(self, view: View, unit: Metric, domain: Domain) -> None:
        super().__init__(view, unit, domain)
        self._fibres: dict[Database, list[Database]] = {}
        for database in domain.databases():
            self._fibres.setdefault(self.sees(database), []).append(database)
        if isinstance(unit, Granularity):
            unit.require_domain(domain)
        self._from: dict[Database, dict[Database, Exact]] = {}
        self._steps: dict[Database, dict[Database, Exact]] = {}

    def distance(self, pair: Pair) -> Exact:
        """Return the length of the shortest chain between the two classes."""
        source, goal = self.sees(pair[0]), self.sees(pair[1])
        if source not in self._from:
            self._from[source] = self._shortest(source)
        return self._from[source].get(goal, math.inf)

    def _shortest(self, source: Database) -> dict[Database, Exact]:
        best: dict[Database, Exact] = {source: 0}
        ticket = itertools.count()  # labels need not be comparable
        queue: list[tuple[Exact, int, Database]] = [(0, next(ticket), source)]
        done: set[Database] = set()
        while queue:
            length, _, label = heapq.heappop(queue)
            if label in done:
                continue
            done.add(label)
            for other, step in self._steps_from(label).items():
                if length + step < best.get(other, math.inf):
                    best[other] = length + step
                    heapq.heappush(queue, (length + step, next(ticket), other))
        return best

    def _steps_from(self, label: Database) -> dict[Database, Exact]:
        if label not in self._steps:
            measure = (
                self._neighbour_steps
                if isinstance(self.unit, Granularity)
                else self._metric_steps
            )
            self._steps[label] = measure(label)
        return self._steps[label]

    def _neighbour_steps(self, label: Database) -> dict[Database, Exact]:
        assert isinstance(self.unit, Granularity)
        return {
            self.sees(neighbour): 1
            for database in self._fibres[label]
            for neighbour in self.unit.neighbours(database, self.domain)
        }

    def _metric_steps(self, label: Database) -> dict[Database, Exact]:
        return {
            other: min(
                exact_distance(self.unit, (first, second), domain=self.domain)
                for first in self._fibres[label]
                for second in fibre
            )
            for other, fibre in self._fibres.items()
            if other != label
        }

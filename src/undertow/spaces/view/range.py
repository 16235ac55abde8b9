r"""The range of a view: where a claim in the view setting lives.

A release sees the values :math:`f(\mathbb D)` of its view and nothing else, so a claim
that it is private *on its view* promises something between neighbours that are both
values of the view. Two values at a distance are covered by a chain of such neighbours:

.. math:: d(y, z) = \min \{ n : y = y_0 \sim y_1 \sim \dots \sim y_n = z,\
          y_i \in f(\mathbb D) \}

and by nothing where no chain exists. The image of a view may hold more than its range;
a chain through the rest of it is no promise. This module is the one place where a unit
is read on the range of a view.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Protocol, runtime_checkable

from undertow.errors import AssumptionError
from undertow.numeric.exact import Exact, ext_scale, round_up
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.canonical import shortest_paths
from undertow.spaces.domain import ENUMERATION_LIMIT, FiniteDomain, in_words
from undertow.spaces.metric import Scaled, Values, image_or_values
from undertow.spaces.quotient import Quotient
from undertow.spaces.unit import FreeLunch, Group
from undertow.spaces.view.general import Chain


@runtime_checkable
class HasExactDistance(Protocol):
    """A metric that knows its distances exactly."""

    def exact_distance(
        self, pair: tuple[Database, Database], *, domain: Domain
    ) -> Exact:
        """Return the distance as an exact number."""


class ViewRange:
    """The values a view takes on a domain, and how far apart they are.

    Parameters
    ----------
    view : View
        What a release sees.
    domain : Domain
        Of what. It is enumerated only where the image of the view is not proved to
        give the same distances.

    Attributes
    ----------
    image : Domain
        A domain that holds the range.

    Examples
    --------
    Rows that may be absent move up where one before them is missing. Seen by position,
    the second of two rows is the only one that can come or go:

    >>> from undertow.spaces.domain import Rows
    >>> from undertow.spaces.unit import Unbounded
    >>> from undertow.spaces.view.table import RowPosition
    >>> shown = ViewRange(RowPosition(0, 1), Rows(2, values=(0, 1), free_ids=True))
    >>> Unbounded().distance((0, 0), (1, 0), shown.image)
    2
    >>> shown.distance(Unbounded(), (0, 0), (1, 0))
    4
    """

    def __init__(self, view: View, domain: Domain) -> None:
        self.view, self.domain = view, domain
        self.image = image_or_values(view, domain)
        self._chains: dict[Granularity, dict[Database, dict[Database, Exact]]] = {}
        self._next: dict[Granularity, dict[Database, list[Database]]] = {}

    @cached_property
    def values(self) -> tuple[Database, ...]:
        """The values of the view, each once.

        Raises
        ------
        AssumptionError
            If the domain is not finite, or too large to enumerate.
        """
        databases = self.domain.databases()
        return tuple(dict.fromkeys(self.view.apply(x, self.domain) for x in databases))

    def require_unit(self, unit: Metric) -> None:
        """Raise ``MismatchError`` unless `unit` makes sense on what the view shows."""
        if isinstance(unit, Granularity):
            unit.require_domain(self._space)

    def distance(self, unit: Metric, first: Database, second: Database) -> Exact:
        """Return how far apart two values of the view are in `unit`.

        Parameters
        ----------
        unit : Metric
            What a claim is stated in. The distance of a granularity runs along chains
            of values of the view; that of any other metric is read off the two values.
        first, second : Database
            Two values of the view.

        Returns
        -------
        int, Fraction or inf
            Exact; zero for equal values.

        Raises
        ------
        AssumptionError
            If chains must be searched and the domain is too large to enumerate.
        """
        if first == second:
            return 0
        if isinstance(unit, Scaled):
            return ext_scale(unit.factor, self.distance(unit.base, first, second))
        if isinstance(unit, Pullback):
            ends = (unit.view.apply(one, self.image) for one in (first, second))
            return self._seen_by(unit.view).distance(unit.base, *ends)
        if isinstance(unit, Quotient):
            return self._quotient(unit, first, second)
        if isinstance(unit, Group):
            steps = self.distance(unit.base, first, second)
            return steps if steps == math.inf else -(-int(steps) // unit.size)
        if isinstance(unit, Granularity) and not self._follows_image(unit):
            return self._reached(unit, first).get(second, math.inf)
        if isinstance(unit, HasExactDistance):
            self._require_whole(unit)
            return unit.exact_distance((first, second), domain=self._space)
        space = self._space if isinstance(unit, Granularity) else self.image
        return _exact(unit.distance(first, second, space))

    @cached_property
    def _space(self) -> Domain:
        """The image, or the values themselves where plain values come out."""
        if isinstance(self.image, Values) and not isinstance(self.domain, Values):
            return FiniteDomain(self.values)
        return self.image

    def _follows_image(self, unit: Granularity) -> bool:
        if isinstance(unit, FreeLunch) or isinstance(self.image, Values):
            return True  # one step, or a listed range
        return self.view.keeps_chains(unit, self.domain)

    def _seen_by(self, view: View) -> ViewRange:
        """Return the range of one view more."""
        return range_of(Chain(self.view, view), self.domain)

    def _require_whole(self, unit: Metric) -> None:
        if not self.view.fills_image(self.domain):
            raise AssumptionError(
                "unit must be a granularity or a plain metric on a view that does not "
                f"take every value of its image, got {unit.name} on {self.view.name}; "
                "state one claim for each of its parts."
            )

    def _reached(self, unit: Granularity, start: Database) -> dict[Database, Exact]:
        """Return the steps from one value to all it reaches inside the range."""
        known = self._chains.setdefault(unit, {})
        if start not in known:
            around = self._neighbours(unit)
            known[start] = shortest_paths(
                lambda here: ((there, 1) for there in around[here]), start
            )
        return known[start]

    def _neighbours(self, unit: Granularity) -> dict[Database, list[Database]]:
        if unit not in self._next:
            inside, image = frozenset(self._listed(unit)), self.image
            if image.count() <= ENUMERATION_LIMIT:
                self._next[unit] = {
                    one: [y for y in unit.neighbours(one, image) if y in inside]
                    for one in self.values
                }
            else:
                self._next[unit] = {
                    one: [
                        y
                        for y in self.values
                        if y != one and unit.are_neighbours(one, y, image)
                    ]
                    for one in self.values
                }
        return self._next[unit]

    def _listed(self, unit: Granularity) -> tuple[Database, ...]:
        if self.domain.count() > ENUMERATION_LIMIT:
            raise AssumptionError(
                f"domain must have at most {ENUMERATION_LIMIT} databases to tell how "
                f"far apart the values of view {self.view.name} are at {unit.name}, "
                "because the view does not take every value of its image, got "
                f"{in_words(self.domain.count())}; state the claim in the common "
                "setting."
            )
        return self.values

    def _quotient(self, unit: Quotient, first: Database, second: Database) -> Exact:
        if isinstance(unit.base, Scaled):  # scaling passes through
            inner = Quotient(unit.base.base, unit.view)
            return self.distance(Scaled(inner, unit.base.factor), first, second)
        if self.view.fills_image(self.domain):
            return _exact(unit.distance(first, second, self._space))
        fibres: dict[Database, list[Database]] = {}
        for value in self.values:
            fibres.setdefault(unit.view.apply(value, self.image), []).append(value)
        ends = [unit.view.apply(one, self.image) for one in (first, second)]
        return self._along_fibres(unit.base, fibres, ends[0], ends[1])

    def _along_fibres(
        self,
        base: Metric,
        fibres: dict[Database, list[Database]],
        start: Database,
        goal: Database,
    ) -> Exact:
        """Return the shortest path between two fibres; moves inside one are free."""
        left = dict(fibres)  # whatever was reached is never nearer later

        def steps(here: Database) -> Iterator[tuple[Database, Exact]]:
            del left[here]
            for there, members in left.items():
                pairs = itertools.product(fibres[here], members)
                yield there, min(self.distance(base, *pair) for pair in pairs)

        return shortest_paths(steps, start, goal=goal).get(goal, math.inf)


@dataclass(frozen=True, slots=True)
class Pullback(Metric):
    """The distance of what a view shows: ``d(f(D), f(E))``.

    Parameters
    ----------
    base : Metric
        A metric on the values of the view.
    view : View
        The map.

    Notes
    -----
    A granularity counts its steps along values of the view; see
    :class:`ViewRange`.
    """

    base: Metric
    view: View

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{self.base.name} through {self.view.name}"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the distance between the two values of the view, rounded up."""
        ours = self.view.apply(first, domain)
        theirs = self.view.apply(second, domain)
        distance = range_of(self.view, domain).distance(self.base, ours, theirs)
        return round_up(distance)


@lru_cache(maxsize=64)
def range_of(view: View, domain: Domain) -> ViewRange:
    """Return the range of a view; what was searched for the last few is kept."""
    return ViewRange(view, domain)


def _exact(distance: Any) -> Exact:
    if distance == math.inf:
        return math.inf
    value = Fraction(distance)
    return int(value) if value.denominator == 1 else value

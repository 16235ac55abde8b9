"""Element-level privacy: one cluster of one user's locations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from undertow.errors import AssumptionError, MismatchError
from undertow.spaces.base import Database, Domain
from undertow.spaces.connected import Components
from undertow.spaces.cover import least_feedback
from undertow.spaces.domain import Stream, require_members
from undertow.spaces.granularity.generic import Catalogued
from undertow.spaces.granularity.stream import CellLevel

__all__ = ["Element"]


@dataclass(frozen=True, slots=True)
class Element(CellLevel):
    r"""The content of one cluster of locations changes, for one user.

    Notes
    -----
    Thesis, Definition 3.4; a user's content in a cluster is the set of its points
    (time and location) there. :meth:`formula` counts the clusters whose content
    differs. It is the canonical distance for unrestricted multisets of points, but
    only a lower bound on streams, where a time holds at most one point. There

    * with gaps, the distance of one user is the formula plus the least number of
      clusters that must be emptied first, a minimum feedback set of the relation
      "the new content of cluster k needs a time held by cluster j";
    * without gaps no point can change its cluster, so that the cluster visited at
      each time is published, and clusters of one location have no neighbours.

    Examples
    --------
    >>> day = Stream(1, 2, clusters={"a": "A", "b": "B"})
    >>> swap = ((("a", "b"),), (("b", "a"),), day)
    >>> Element().formula(*swap), Element().distance(*swap)
    (2, 3)
    """

    kinds: ClassVar[tuple[str, ...]] = ("stream",)

    @property
    def name(self) -> str:
        """The command-line name."""
        return "element"

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless `domain` is a stream with clusters."""
        Catalogued.require_domain(self, domain)
        if isinstance(domain, Stream) and domain.clusters is None:
            raise MismatchError(
                "domain must name its clusters for element, got a stream without; "
                "set clusters, a mapping from location to cluster."
            )

    def formula(self, first: Any, second: Any, domain: Domain) -> int:
        """Return how many (user, cluster) contents differ: a lower bound."""
        self.require_domain(domain)
        require_members(domain, first, second)
        assert isinstance(domain, Stream)
        cluster = dict(domain.clusters or ())
        return sum(
            len(_contents(x, y, cluster)) for x, y in zip(first, second, strict=True)
        )

    def _formula(self, first: Any, second: Any, domain: Any) -> float:
        cluster = dict(domain.clusters)
        rows = zip(first, second, strict=True)
        return sum(
            _element_steps(_contents(x, y, cluster), regular=domain.regular)
            for x, y in rows
            if x != y
        )

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        for user, row in enumerate(database):
            for label in domain.cluster_labels:
                yield from _rewrites(user, row, label, database, domain)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the users, and on regular streams the clusters they visit."""
        if isinstance(domain, Stream) and domain.regular:
            return ("the set of users", "the cluster every user is in at every time")
        return ("the set of users",)

    def components(self, domain: Domain) -> Components | None:
        """Return the components; one per pattern of clusters without gaps."""
        assert isinstance(domain, Stream)
        if not domain.regular:
            return Components(True, 1)
        labels, values = len(domain.cluster_labels), len(domain.values or ())
        cells = domain.users * domain.times
        big = labels > 1 and cells * math.log2(labels) >= 1000
        patterns = math.inf if big else labels**cells
        named = ("one per pattern of clusters visited",) if patterns > 1 else ()
        return Components(values > labels, patterns, named)


Contents = dict[Any, tuple[dict[int, Any], dict[int, Any]]]


def _contents(mine: Any, theirs: Any, cluster: dict[Any, Any]) -> Contents:
    """Return cluster -> (points in `mine`, points in `theirs`) where they differ."""
    found: Contents = {}
    for side, row in enumerate((mine, theirs)):
        for time, value in enumerate(row):
            if value is not None:
                found.setdefault(cluster[value], ({}, {}))[side][time] = value
    return {label: pair for label, pair in found.items() if pair[0] != pair[1]}


def _element_steps(contents: Contents, *, regular: bool) -> float:
    if regular:
        moved = any(old.keys() != new.keys() for old, new in contents.values())
        return math.inf if moved else len(contents)
    pairs = list(contents.values())
    waits = {
        k: {j for j, (old, _) in enumerate(pairs) if j != k and new.keys() & old.keys()}
        for k, (_, new) in enumerate(pairs)
    }
    emptied = least_feedback(waits)
    if emptied is None:
        raise AssumptionError(
            "domain must entangle at most 20 clusters for an element distance, got a "
            "pair with more; join clusters, or state the claim at user level."
        )
    return len(pairs) + emptied


def _rewrites(
    user: int, row: Any, label: Any, database: Any, domain: Stream
) -> Iterator[Database]:
    cluster = dict(domain.clusters or ())
    inside = [value for value in domain.values or () if cluster[value] == label]
    options = []
    for value in row:
        if value is None:
            options.append([None, *inside])
        elif cluster[value] == label:
            options.append(inside if domain.regular else [None, *inside])
        else:
            options.append([value])
    for content in product(*options):
        if content != row:
            yield (*database[:user], content, *database[user + 1 :])

"""Streams: one row per user, one cell per time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

from undertow._validate import check_count
from undertow.errors import AssumptionError
from undertow.spaces.base import Database, Domain
from undertow.spaces.domain_finite import require_enumerable

__all__ = ["Stream"]


@dataclass(frozen=True, slots=True)
class Stream(Domain):
    """The users × times matrix of locations, one cell per user and time.

    A database is a tuple of rows, one per user; a row is a tuple of cell values, one
    per time; the gap, a time at which nothing was recorded, is None.

    Parameters
    ----------
    users, times : int
        The shape; users and times are numbered from 0.
    regular : bool
        Whether every user is recorded at every time. If not, a cell may be a gap, and
        a row of gaps is a user who is absent.
    values : iterable of hashable, optional
        The possible locations; None means two or more. Follows from `clusters`.
    clusters : mapping, optional
        Location -> cluster label, for element-level privacy.

    Examples
    --------
    >>> stream = Stream(2, 3, values=("a", "b"))
    >>> stream.count(), (("a", None, "b"), (None, None, None)) in stream
    (729, True)
    """

    kind: ClassVar[str] = "stream"
    users: int
    times: int
    regular: bool = field(default=False, kw_only=True)
    values: tuple[Hashable, ...] | None = field(default=None, kw_only=True)
    clusters: tuple[tuple[Hashable, Hashable], ...] | None = field(
        default=None, kw_only=True
    )

    def __post_init__(self) -> None:
        check_count(self.users, "users")
        check_count(self.times, "times")
        if self.clusters is not None:
            given: Any = self.clusters
            pairs = given.items() if isinstance(given, Mapping) else given
            object.__setattr__(self, "clusters", tuple((v, c) for v, c in pairs))
        self._settle_values()

    def _settle_values(self) -> None:
        if isinstance(self.values, str):
            raise TypeError(f"values must be a sequence, got the text {self.values!r}.")
        clustered = None if self.clusters is None else [v for v, _ in self.clusters]
        values = clustered if self.values is None else list(self.values)
        if values is None:
            return
        if not values or None in values or len(set(values)) != len(values):
            raise ValueError(
                "values must be non-empty, different and without None, which marks a "
                "gap."
            )
        if clustered is not None and (
            set(clustered) != set(values) or len(clustered) != len(values)
        ):
            raise ValueError(
                "clusters must give every value exactly one cluster, got other values."
            )
        object.__setattr__(self, "values", tuple(values))

    @property
    def cluster_labels(self) -> tuple[Hashable, ...]:
        """The cluster labels, each once, in the order first named."""
        return tuple(dict.fromkeys(label for _, label in self.clusters or ()))

    def cluster_of(self, value: Hashable) -> Hashable:
        """Return the cluster of a location; None for the gap."""
        clusters = dict(self.clusters or ())
        if value is not None and value not in clusters:
            raise ValueError(
                "value must be a location with a cluster, got one outside the stream."
            )
        return None if value is None else clusters[value]

    def choices(self) -> tuple[Hashable, ...]:
        """Return what one cell may hold, the gap first where there are gaps."""
        if self.values is None:
            raise AssumptionError(
                "domain must list its locations to generate databases, got a stream "
                "that leaves them open; set values."
            )
        return self.values if self.regular else (None, *self.values)

    def __contains__(self, database: object) -> bool:
        return (
            isinstance(database, tuple)
            and len(database) == self.users
            and all(
                isinstance(row, tuple)
                and len(row) == self.times
                and all(self._has_value(value) for value in row)
                for row in database
            )
        )

    def _has_value(self, value: object) -> bool:
        if value is None:
            return not self.regular
        return self.values is None or value in self.values

    def count(self) -> float:
        """Return the number of databases; infinite where values are left open."""
        if self.values is None:
            return math.inf
        each, cells = len(self.values) + (not self.regular), self.users * self.times
        return each**cells if cells * math.log2(each) < 1000 else math.inf

    def databases(self) -> Iterator[Database]:
        """Yield every database once."""
        require_enumerable(self)
        rows = list(product(self.choices(), repeat=self.times))
        return product(rows, repeat=self.users)

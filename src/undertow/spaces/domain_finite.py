"""Domains that are listed: enumerated databases, and points with a given metric.

Also the two helpers every domain shares: the limit on enumeration and the stable order
of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow.errors import AssumptionError, MismatchError
from undertow.spaces.base import Database, Domain

__all__ = [
    "ENUMERATION_LIMIT",
    "FiniteDomain",
    "MetricSpace",
    "in_words",
    "record_order",
    "require_enumerable",
    "require_members",
]

#: The largest number of databases that is enumerated.
ENUMERATION_LIMIT = 200_000


def record_order(record: Hashable) -> tuple[Any, ...]:
    """Return a sort key that orders any records alike in every process.

    Equal records get equal keys; numbers sort by value, text by code point, tuples and
    frozensets by their members.

    Examples
    --------
    >>> sorted([("b", 1), "a", 10, 2, None, ("b", 0)], key=record_order)
    [None, 2, 10, 'a', ('b', 0), ('b', 1)]
    """
    if record is None:
        return (0,)
    if isinstance(record, Real):
        return (1, record)
    if isinstance(record, str):
        return (2, record)
    if isinstance(record, tuple):
        return (3, tuple(record_order(part) for part in record))
    if isinstance(record, frozenset):
        return (4, tuple(sorted(record_order(part) for part in record)))
    return (5, type(record).__qualname__, repr(record))


def in_words(number: float) -> str:
    """Return a number of databases for a message, however long it is.

    Examples
    --------
    >>> in_words(1234567), in_words(10**400)
    ('1.23457e+06', 'over 1e+300')
    """
    return f"{number:g}" if number <= 1e300 or number == math.inf else "over 1e+300"


def require_enumerable(domain: Domain, limit: int = ENUMERATION_LIMIT) -> None:
    """Raise ``AssumptionError`` unless `domain` has at most `limit` databases."""
    number = domain.count()
    if number > limit:
        raise AssumptionError(
            f"domain must have at most {limit} databases to be enumerated, got "
            f"{in_words(number)}; use a smaller instance of the same kind."
        )


def require_members(domain: Domain, *databases: Database) -> None:
    """Raise ``ValueError`` unless every database lies in `domain`.

    The message never shows a database.
    """
    for name, database in zip(("first", "second"), databases, strict=False):
        if database not in domain:
            raise ValueError(
                f"{name} must be a database of the {domain.kind} domain in its "
                f"canonical form, got one outside it."
            )


@dataclass(frozen=True)
class FiniteDomain(Domain):
    """Any listed databases: a subclass cut out by hand, or a toy example.

    Parameters
    ----------
    elements : iterable of hashable
        The databases, without repetition.

    Notes
    -----
    Granularities of tables read the elements as sorted tuples of records, those of
    graphs as frozensets of edges, those of rows and streams as tuples of rows.

    Examples
    --------
    >>> FiniteDomain([(), ("a",)]).count()
    2
    """

    kind: ClassVar[str] = "finite"
    elements: tuple[Database, ...]

    def __init__(self, elements: Iterable[Database]) -> None:
        listed = tuple(elements)
        if not listed:
            raise ValueError("elements must hold at least one database, got none.")
        if len(set(listed)) != len(listed):
            raise ValueError("elements must not repeat, got a database twice.")
        object.__setattr__(self, "elements", listed)

    def __contains__(self, database: object) -> bool:
        return database in self._members

    def count(self) -> float:
        """Return the number of databases."""
        return len(self.elements)

    def databases(self) -> Iterator[Database]:
        """Yield every database once, in the order given."""
        return iter(self.elements)

    @cached_property
    def _members(self) -> frozenset[Database]:
        return frozenset(self.elements)

    @cached_property
    def holds_multisets(self) -> bool:
        """Whether every element is a tuple of records in the order of tables."""
        return all(
            isinstance(one, tuple) and one == tuple(sorted(one, key=record_order))
            for one in self.elements
        )

    @cached_property
    def holds_rows(self) -> bool:
        """Whether every element is a tuple, all of one length."""
        tuples = [one for one in self.elements if isinstance(one, tuple)]
        return len(tuples) == len(self.elements) and len({len(t) for t in tuples}) == 1

    @cached_property
    def holds_matrices(self) -> bool:
        """Whether every element is a tuple of tuples, all of one shape."""
        return self.holds_rows and (
            len(
                {
                    tuple(len(row) if isinstance(row, tuple) else -1 for row in one)
                    for one in self.elements
                    if isinstance(one, tuple)
                }
            )
            == 1
            and all(
                isinstance(row, tuple)
                for one in self.elements
                if isinstance(one, tuple)
                for row in one
            )
        )

    @cached_property
    def holds_graphs(self) -> bool:
        """Whether every element is a frozenset of pairs ``(i, j)`` with ``i < j``."""
        return all(
            isinstance(one, frozenset)
            and all(isinstance(e, tuple) and len(e) == 2 and e[0] < e[1] for e in one)
            for one in self.elements
        )

    @cached_property
    def closed_under_removal(self) -> bool:
        """Whether removing any one record (or edge) stays inside."""
        return all(
            smaller in self._members
            for one in self.elements
            for smaller in _one_smaller(one)
        )

    @cached_property
    def is_product(self) -> bool:
        """Whether the elements are all tuples over one set per coordinate."""
        if not self.holds_rows:
            return False
        tuples = [one for one in self.elements if isinstance(one, tuple)]
        columns = zip(*tuples, strict=True)
        return math.prod(len(set(column)) for column in columns) == len(self.elements)


def _one_smaller(database: Database) -> Iterator[Database]:
    if isinstance(database, tuple):
        for at in range(len(database)):
            yield database[:at] + database[at + 1 :]
    elif isinstance(database, frozenset):
        for member in database:
            yield database - {member}


@dataclass(frozen=True)
class MetricSpace(Domain):
    """Finitely many points with a given metric, checked when built.

    Parameters
    ----------
    points : iterable of hashable
        The points, without repetition.
    matrix : array_like, optional
        Distances in ``[0, inf]``, in the order of `points`.
    function : callable, optional
        ``function(point, point) -> float``; evaluated once on all pairs.

    Raises
    ------
    MismatchError
        If the matrix does not fit the points.
    AssumptionError
        If the distances are no extended pseudometric; the witness holds the points.

    Examples
    --------
    >>> MetricSpace((0, 1, 3), function=lambda x, y: abs(x - y)).between(0, 3)
    3.0
    """

    kind: ClassVar[str] = "metric"
    points: tuple[Hashable, ...]
    matrix: tuple[tuple[float, ...], ...] = field(repr=False)

    def __init__(
        self,
        points: Iterable[Hashable],
        *,
        matrix: Any = None,
        function: Callable[[Any, Any], float] | None = None,
    ) -> None:
        listed = tuple(points)
        if not listed or len(set(listed)) != len(listed):
            raise ValueError(
                f"points must be given, each once, got {len(listed)} with "
                f"{len(set(listed))} different."
            )
        if (matrix is None) == (function is None):
            raise ValueError(
                "one of matrix and function must be given, got both or none."
            )
        if function is not None:
            matrix = [[function(x, y) for y in listed] for x in listed]
        table = np.asarray(matrix, dtype=float)
        _require_pseudometric(table, listed)
        object.__setattr__(self, "points", listed)
        rows = tuple(tuple(float(x) for x in row) for row in table)
        object.__setattr__(self, "matrix", rows)

    def __contains__(self, database: object) -> bool:
        return database in self._index

    def count(self) -> float:
        """Return the number of points."""
        return len(self.points)

    def databases(self) -> Iterator[Database]:
        """Yield every point once, in the order given."""
        return iter(self.points)

    def between(self, first: Hashable, second: Hashable) -> float:
        """Return the distance of two points."""
        require_members(self, first, second)
        return self.matrix[self._index[first]][self._index[second]]

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {point: at for at, point in enumerate(self.points)}


def _require_pseudometric(
    table: NDArray[np.float64], points: Sequence[Hashable]
) -> None:
    n = len(points)
    if table.shape != (n, n):
        raise MismatchError(
            f"matrix must have shape {(n, n)}, one row per point, got {table.shape}."
        )
    if np.isnan(table).any() or (table < 0).any() or np.diagonal(table).any():
        raise AssumptionError(
            "matrix must hold distances in [0, inf] with a zero diagonal, got a "
            "negative, undefined or positive diagonal entry."
        )
    if (table != table.T).any():
        i, j = (int(k[0]) for k in np.nonzero(table != table.T))
        raise AssumptionError(
            f"matrix must be symmetric, got {table[i, j]:g} one way and "
            f"{table[j, i]:g} back between points number {i} and {j}.",
            witness=(points[i], points[j]),
        )
    _require_triangle(table, points)


def _require_triangle(table: NDArray[np.float64], points: Sequence[Hashable]) -> None:
    for k in range(len(points)):
        through = table[:, [k]] + table[[k], :]
        slack = 1e-12 * np.where(np.isfinite(through), through, 0.0)
        broken = table > through + slack
        if broken.any():
            i, j = (int(index[0]) for index in np.nonzero(broken))
            raise AssumptionError(
                "matrix must satisfy the triangle inequality, got "
                f"d({i}, {j}) = {table[i, j]:g} > d({i}, {k}) + d({k}, {j}) = "
                f"{through[i, j]:g} for points by number.",
                witness=(points[i], points[k], points[j]),
            )

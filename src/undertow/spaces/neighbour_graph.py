"""The graph of neighbours: shortest paths in it, and its sparse matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from undertow.errors import AssumptionError, SearchError
from undertow.spaces.base import Database, Domain, Granularity
from undertow.spaces.domain_finite import ENUMERATION_LIMIT

__all__ = ["canonical_distance", "neighbour_matrix", "neighbour_pairs"]


def canonical_distance(
    neighbours: Callable[[Any], Iterable[Any]],
    first: Database,
    second: Database,
    *,
    limit: int = ENUMERATION_LIMIT,
) -> float:
    """Return the least number of steps from `first` to `second`.

    Parameters
    ----------
    neighbours : callable
        Database -> its neighbours; symmetric, and inside the domain.
    first, second : hashable
        Two databases.
    limit : int
        The most databases to visit.

    Returns
    -------
    int or inf
        Zero iff equal, infinite iff no chain of neighbours connects them.

    Raises
    ------
    SearchError
        If more than `limit` databases were visited without an answer.

    Notes
    -----
    Breadth-first search from both ends; thesis, Section 2.1 and Proposition A.1.

    Examples
    --------
    >>> canonical_distance(lambda n: (n - 1, n + 1), 0, 7)
    7
    """
    if first == second:
        return 0
    near: _Side = ({first}, {first})
    far: _Side = ({second}, {second})
    steps = 0
    while near[1] and far[1]:
        if (len(near[1]), len(near[0])) > (len(far[1]), len(far[0])):
            near, far = far, near
        near = _grow(near, neighbours, limit)
        steps += 1
        if not near[1].isdisjoint(far[1]):
            return steps
    return math.inf


_Side = tuple[set[Database], set[Database]]  # visited, frontier


def _grow(side: _Side, neighbours: Callable[[Any], Iterable[Any]], limit: int) -> _Side:
    visited, frontier = side
    grown: set[Database] = set()
    room = limit - len(visited)
    for other in (other for database in frontier for other in neighbours(database)):
        if other not in visited:
            grown.add(other)
        if len(grown) > room:
            raise SearchError(
                f"limit must allow the search to finish, got {limit} databases visited "
                "without an answer; use a smaller instance of the domain."
            )
    visited |= grown
    return visited, grown


def neighbour_pairs(
    domain: Domain, granularity: Granularity
) -> Iterator[tuple[Database, Database]]:
    """Yield the neighbour pairs of an enumerable domain, both orders."""
    for database in domain.databases():
        for other in granularity.neighbours(database, domain):
            yield database, other


def neighbour_matrix(
    domain: Domain, relation: Granularity | Callable[[Any, Any], bool]
) -> Any:
    """Return the sparse 0/1 matrix of the relation on an enumerable domain."""
    from scipy.sparse import csr_array

    listed = list(domain.databases())
    if isinstance(relation, Granularity):
        index = {database: at for at, database in enumerate(listed)}
        pairs = [(index[x], index[y]) for x, y in neighbour_pairs(domain, relation)]
    else:
        pairs = _related(listed, relation)
    # The graph routines of older scipy read 32-bit indices only.
    rows, columns = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    n = len(listed)
    ones = np.ones(len(rows), dtype=np.int8)
    graph = csr_array((ones, (rows, columns)), shape=(n, n))
    graph.data.fill(1)  # a pair that is listed several times has been added up
    return graph


def _related(
    listed: list[Any], relation: Callable[[Any, Any], bool]
) -> list[tuple[int, int]]:
    pairs = []
    for i, x in enumerate(listed):
        for j in range(i):
            forth, back = relation(x, listed[j]), relation(listed[j], x)
            if bool(forth) != bool(back):
                raise AssumptionError(
                    "relation must be symmetric, got a pair related one way only.",
                    witness=(x, listed[j]),
                )
            if forth:
                pairs += [(i, j), (j, i)]
    return pairs

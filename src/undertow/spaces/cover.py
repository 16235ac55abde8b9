r"""The covering problems behind canonical distances.

Windows over times give the distances at w-event and trajectory level, minimum vertex
covers those at node level, assignments those at attribute level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from undertow._validate import check_count

__all__ = [
    "CoverBounds",
    "assignment_cost",
    "interval_cover",
    "least_feedback",
    "vertex_cover",
    "w_event_distance",
]

#: Edges up to which a non-bipartite component is solved exactly.
EXACT_EDGES = 60

# Below this many edges branching beats setting up a matching.
_TINY = 16


def w_event_distance(need: Sequence[int], w: int) -> int:
    """Return the least number of w-windows that repair `need` cells at each time.

    Parameters
    ----------
    need : sequence of int
        The number of differing cells at each time.
    w : int
        The window length; a window repairs at most one cell at each of its times.

    Notes
    -----
    Left to right, open a window at the first time that lacks one: a window that
    starts earlier helps no later time more. Linear in the number of times. It is the
    canonical distance of the relation of the thesis, Definition 3.2.

    Examples
    --------
    >>> w_event_distance([2, 0, 1, 0], 2)
    3
    """
    check_count(w, "w")
    if min(need, default=0) < 0:
        raise ValueError(f"need must hold no negative number, got {min(need)}.")
    total = cover = 0
    opened: list[int] = []
    for t, wanted in enumerate(need):
        if t >= w:
            cover -= opened[t - w]
        missing = max(0, wanted - cover)
        opened.append(missing)
        total += missing
        cover += missing
    return total


def interval_cover(points: Iterable[int], length: int) -> int:
    """Return the least number of intervals of `length` integers that cover `points`.

    Examples
    --------
    >>> interval_cover([0, 1, 2, 5, 9, 10], 3)
    3
    """
    check_count(length, "length")
    number, covered = 0, -math.inf
    for point in sorted(points):
        if point > covered:
            number, covered = number + 1, point + length - 1
    return number


def assignment_cost(costs: Sequence[Sequence[int]]) -> int:
    """Return the least total cost of matching each row to a column of its own.

    Examples
    --------
    >>> assignment_cost([[2, 1], [1, 2]])
    2
    """
    if not costs:
        return 0
    from scipy.optimize import linear_sum_assignment

    table = np.asarray(costs, dtype=np.int64)
    return int(table[linear_sum_assignment(table)].sum())


def least_feedback(waits: dict[int, set[int]]) -> int | None:
    """Return the least number of vertices whose removal leaves no directed cycle.

    Parameters
    ----------
    waits : dict
        Vertex -> the vertices it points to.

    Returns
    -------
    int or None
        None if more than 20 vertices remain after removing those on no cycle.
    """
    left = _on_cycles(waits)
    if len(left) > 20:
        return None
    for number in range(len(left) + 1):
        for chosen in combinations(sorted(left), number):
            rest = {v: out - set(chosen) for v, out in left.items() if v not in chosen}
            if not _on_cycles(rest):
                return number
    return len(left)


def _on_cycles(waits: dict[int, set[int]]) -> dict[int, set[int]]:
    """Drop vertices without a way in or without a way out until none is left."""
    left = dict(waits)
    while True:
        entered = set().union(*left.values()) if left else set()
        kept = {v: out & left.keys() for v, out in left.items() if v in entered}
        kept = {v: out for v, out in kept.items() if out}
        if kept == left:
            return left
        left = kept


Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CoverBounds:
    """A number lies between `low` and `high`, inclusive; `high` may be infinite."""

    low: int
    high: float

    @property
    def exact(self) -> bool:
        """Whether the number is known."""
        return self.low == self.high


def vertex_cover(
    edges: Iterable[Edge], *, exact_edges: int = EXACT_EDGES
) -> CoverBounds:
    r"""Bound the least number of vertices that touch every edge; often exactly.

    Parameters
    ----------
    edges : iterable of pairs
        A simple graph.
    exact_edges : int
        Non-bipartite components with more edges are bounded rather than solved.

    Notes
    -----
    Component by component: bipartite ones by maximum matching (König), small ones by
    branch and bound, the rest between the fractional cover :math:`\tau^* \ge \nu` and
    the better of its rounding and twice a maximal matching. So
    :math:`\nu \le low \le \tau \le high \le 2\nu` for the maximum matching
    :math:`\nu`.

    Examples
    --------
    >>> vertex_cover([(0, 1), (0, 2), (1, 2)])
    CoverBounds(low=2, high=2)
    """
    low, high = 0, 0.0
    for component in _connected(edges):
        bounds = _component_cover(component, exact_edges)
        low, high = low + bounds.low, high + bounds.high
    return CoverBounds(low, int(high))


def _component_cover(adjacent: dict[int, set[int]], exact_edges: int) -> CoverBounds:
    number = sum(len(out) for out in adjacent.values()) // 2
    side = None if number <= min(_TINY, exact_edges) else _two_colouring(adjacent)
    if side is not None:
        left = {v: out for v, out in adjacent.items() if not side[v]}
        size = len(_bipartite_matching(left))
        return CoverBounds(size, size)
    if number <= exact_edges:
        size = _branch(adjacent, len(adjacent))
        return CoverBounds(size, size)
    return _sandwich(adjacent)


def _connected(edges: Iterable[Edge]) -> list[dict[int, set[int]]]:
    adjacent: dict[int, set[int]] = {}
    for i, j in edges:
        adjacent.setdefault(i, set()).add(j)
        adjacent.setdefault(j, set()).add(i)
    parts, left = [], set(adjacent)
    while left:
        stack, reached = [left.pop()], set()
        while stack:
            vertex = stack.pop()
            reached.add(vertex)
            stack += adjacent[vertex] & left
            left -= adjacent[vertex]
        parts.append({v: adjacent[v] for v in reached})
    return parts


def _two_colouring(adjacent: dict[int, set[int]]) -> dict[int, bool] | None:
    side: dict[int, bool] = {}
    stack = [next(iter(adjacent))]
    side[stack[0]] = False
    while stack:
        vertex = stack.pop()
        for other in adjacent[vertex]:
            if other not in side:
                side[other] = not side[vertex]
                stack.append(other)
            elif side[other] == side[vertex]:
                return None
    return side


def _bipartite_matching(left: dict[int, set[int]]) -> dict[int, int]:
    """Return a maximum matching, right vertex -> left vertex."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    lefts = sorted(left)
    rights = sorted(set().union(*left.values()))
    column = {v: at for at, v in enumerate(rights)}
    # The graph routines of older scipy read 32-bit indices only.
    rows = np.array([at for at, v in enumerate(lefts) for _ in left[v]], dtype=np.int32)
    columns = np.array([column[u] for v in lefts for u in left[v]], dtype=np.int32)
    ones = np.ones(len(rows), dtype=np.int8)
    graph = csr_array((ones, (rows, columns)), shape=(len(lefts), len(rights)))
    mates = maximum_bipartite_matching(graph, perm_type="row")
    return {rights[c]: lefts[r] for c, r in enumerate(mates) if r >= 0}


def _maximal_matching(adjacent: dict[int, set[int]]) -> int:
    used: set[int] = set()
    for vertex in sorted(adjacent, key=lambda v: len(adjacent[v])):
        free = adjacent[vertex] - used
        if vertex not in used and free:
            used |= {vertex, min(free, key=lambda u: len(adjacent[u]))}
    return len(used) // 2


def _branch(adjacent: dict[int, set[int]], best: int) -> int:
    """Return the smaller of `best` and the cover number, by branch and bound."""
    adjacent = {v: out for v, out in adjacent.items() if out}
    if not adjacent:
        return 0
    if _maximal_matching(adjacent) >= best:
        return best
    leaf = next((v for v, out in adjacent.items() if len(out) == 1), None)
    if leaf is not None:  # its neighbour may be taken without loss
        rest = _drop(adjacent, adjacent[leaf])
        return min(best, 1 + _branch(rest, best - 1))
    pivot = max(adjacent, key=lambda v: len(adjacent[v]))
    best = min(best, 1 + _branch(_drop(adjacent, {pivot}), best - 1))
    others = set(adjacent[pivot])
    if len(others) >= best:
        return best
    rest = _drop(adjacent, others)
    return min(best, len(others) + _branch(rest, best - len(others)))


def _drop(adjacent: dict[int, set[int]], chosen: set[int]) -> dict[int, set[int]]:
    return {v: out - chosen for v, out in adjacent.items() if v not in chosen}


def _sandwich(adjacent: dict[int, set[int]]) -> CoverBounds:
    """Bound by the half-integral cover, a matching in the bipartite double."""
    double = _bipartite_matching(adjacent)  # left copy -> right copy of a vertex
    low = -(-len(double) // 2)
    high = min(2 * _maximal_matching(adjacent), len(adjacent) - 1, _greedy(adjacent))
    return CoverBounds(low, high)


def _greedy(adjacent: dict[int, set[int]]) -> int:
    taken, left = 0, dict(adjacent)
    while any(left.values()):
        pivot = max(left, key=lambda v: len(left[v]))
        left, taken = _drop(left, {pivot}), taken + 1
    return taken

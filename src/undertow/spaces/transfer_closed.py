"""Transfer factors by formula: the shared parts, and graphs."""

from __future__ import annotations

import math
from typing import NamedTuple

from undertow.spaces.base import Database, Domain, Granularity
from undertow.spaces.domain import Graph
from undertow.spaces.granularity.generic import FreeLunch, Group, Local
from undertow.spaces.granularity.graph import Edge, Node
from undertow.spaces.granularity.user import Trajectory

__all__ = ["Closed", "ceil_div", "graph_transfer", "grouped", "plain"]


class Closed(NamedTuple):
    """A factor by formula; `exact` if attained, else an upper bound."""

    factor: float
    change: str
    pair: tuple[Database, Database] | None = None
    exact: bool = True


def ceil_div(value: float, by: int) -> float:
    """Return `value` over `by`, rounded up; infinity stays."""
    return value if value == math.inf else -(-int(value) // by)


def plain(granularity: Granularity, domain: Domain) -> tuple[Granularity, int]:
    """Return what one step is and how many count as one, without synonyms."""
    if isinstance(granularity, Group):
        base, size = plain(granularity.base, domain)
        whole = isinstance(base, FreeLunch)  # one step already reaches everything
        return base, 1 if whole else size * granularity.size
    if isinstance(granularity, Trajectory):
        return granularity.on(domain), 1
    if isinstance(granularity, Local):
        return FreeLunch(), 1
    return granularity, 1


def grouped(one: Closed, whole: Closed, size: int, *, same: bool) -> Closed:
    """Return the factor for `size` steps, given that for one and for all at once.

    Never more than `size` times one step, nor more than the diameter. A granularity
    against its own groups attains it where everything is connected: a shortest path
    passes every distance.
    """
    if size == 1 or one.factor == math.inf:
        return one
    factor = min(size * one.factor, whole.factor)
    exact = same and whole.exact and one.exact and whole.factor < math.inf
    exact = exact or (whole.exact and whole.factor == 1)
    return Closed(factor, f"up to {size} times: {one.change}", None, exact)


def graph_transfer(
    have: Granularity, want: Granularity, domain: Graph
) -> Closed | None:
    r"""Return the factor between granularities of graphs.

    Edge to node is :math:`\min(2\theta, n-1)`: the edges of one vertex are swapped for
    as many others. To free lunch the diameters are those of the whole class, exact
    without a cap and bounded with one.
    """
    (mine, h), (target, g) = plain(have, domain), plain(want, domain)
    if not isinstance(mine, Edge | Node | FreeLunch):
        return None
    whole = _graph_base(mine, FreeLunch(), domain)
    if not isinstance(target, Edge | Node | FreeLunch):
        return None
    one = _graph_base(mine, target, domain)
    found = grouped(one, whole, g, same=mine == target)
    return found._replace(factor=ceil_div(found.factor, h))


def _graph_base(have: Granularity, want: Granularity, domain: Graph) -> Closed:
    n, cap = domain.vertices, domain.degree_cap
    single = _pair([], [(0, 1)])
    if isinstance(have, FreeLunch):
        return Closed(1, "any change", single)
    if isinstance(want, Edge):
        return Closed(1, "one edge appears", single)
    if isinstance(want, Node):
        if isinstance(have, Node):
            return Closed(1, "one vertex is rewired", single)
        left, right = range(1, cap + 1), range(cap + 1, min(2 * cap, n - 1) + 1)
        pair = _pair([(0, u) for u in left], [(0, u) for u in right])
        change = "a vertex swaps all its edges for as many others"
        return Closed(min(2 * cap, n - 1), change, pair)
    return _graph_diameter(have, domain)


def _graph_diameter(have: Granularity, domain: Graph) -> Closed:
    n, cap = domain.vertices, domain.degree_cap
    change = "one graph becomes any other"
    if not domain.is_capped:
        complete = [(i, j) for j in range(n) for i in range(j)]
        pair = _pair([], complete) if n <= 200 else None
        return Closed(
            math.comb(n, 2) if isinstance(have, Edge) else n - 1, change, pair
        )
    if isinstance(have, Edge):
        most = min(2 * (n * cap // 2), n * min(2 * cap, n - 1) // 2)
    else:
        most = 2 * (n - 1) - 1  # 2τ - 1 with τ at most n - 1
    return Closed(most, change, exact=False)


def _pair(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> tuple[Database, Database]:
    return Graph.database(first), Graph.database(second)

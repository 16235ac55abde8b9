"""The range of a view by enumeration: what a claim in the view setting promises.

Written from the definitions of the neighbour relations alone. Nothing here asks the
package how far apart two databases are, which image a view has, or which databases are
neighbours.
"""

from __future__ import annotations

import math
from collections import Counter, deque

from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    Scaled,
    SymmetricDifference,
)
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edge,
    Edit,
    Element,
    Event,
    FreeLunch,
    Group,
    LTrajectory,
    Trajectory,
    Unbounded,
    User,
    WEvent,
)


def adjacent(unit, one, two, *, kind, regular=False, clusters=None):
    """Return whether two different values of one kind of domain are neighbours."""
    if one == two:
        return False
    if isinstance(unit, FreeLunch):
        return True
    if kind == "graph":
        edges = one ^ two
        if isinstance(unit, Edge):
            return len(edges) == 1
        return bool(set.intersection(*(set(edge) for edge in edges)))
    if kind == "table":
        return _tables(unit, one, two)
    return (
        _rows(unit, one, two)
        if kind == "rows"
        else _streams(unit, one, two, regular, clusters)
    )


def _tables(unit, one, two):
    out = [*(Counter(one) - Counter(two)).elements()]
    into = [*(Counter(two) - Counter(one)).elements()]
    if isinstance(unit, Trajectory):
        unit = Unbounded() if unit.add_remove else Bounded()
    if isinstance(unit, Unbounded):
        return len(out) + len(into) == 1
    if isinstance(unit, Bounded):
        return len(out) == len(into) == 1
    if isinstance(unit, Edit):
        return max(len(out), len(into)) == 1
    assert isinstance(unit, Attribute)
    return len(out) == len(into) == 1 and _differing(out[0], into[0]) == 1


def _rows(unit, one, two):
    changed = [(x, y) for x, y in zip(one, two, strict=True) if x != y]
    lone = [None in pair for pair in changed]
    if isinstance(unit, User | Trajectory):
        unit = Unbounded() if unit.add_remove else BoundedById()
    if len(changed) != 1:
        return False
    if isinstance(unit, Unbounded):
        return lone[0]
    if isinstance(unit, Bounded | BoundedById):
        return not lone[0]
    if isinstance(unit, Edit):
        return True
    assert isinstance(unit, Attribute)
    return not lone[0] and _differing(*changed[0]) == 1


def _streams(unit, one, two, regular, clusters):
    cells = [
        (u, t)
        for u, (mine, theirs) in enumerate(zip(one, two, strict=True))
        for t, (x, y) in enumerate(zip(mine, theirs, strict=True))
        if x != y
    ]
    users, times = {u for u, _ in cells}, [t for _, t in cells]
    span = max(times) - min(times) + 1
    if isinstance(unit, Trajectory):
        unit = User(add_remove=unit.add_remove)
    if isinstance(unit, Event):
        (u, t), *others = cells
        return not others and (not unit.add_remove or None in (one[u][t], two[u][t]))
    if isinstance(unit, WEvent):
        fits = span <= unit.w and len(set(times)) == len(times)
        return fits and (len(users) == 1 or not unit.single_user)
    if len(users) > 1:
        return False
    (user,) = users
    mine, theirs = one[user], two[user]
    if isinstance(unit, LTrajectory):
        if regular or unit.periodic:
            return span <= unit.length
        points = [t for t, x in enumerate(mine) if x is not None]
        if points != [t for t, y in enumerate(theirs) if y is not None]:
            return False
        moved = [at for at, t in enumerate(points) if mine[t] != theirs[t]]
        return moved[-1] - moved[0] < unit.length
    if isinstance(unit, User):
        if unit.max_times is not None and any(
            sum(x is not None for x in row) > unit.max_times for row in (*one, *two)
        ):
            return False
        gone = [all(x is None for x in row) for row in (mine, theirs)]
        return any(gone) if unit.add_remove else True
    assert isinstance(unit, Element)
    contents = [
        {(t, x) for t, x in enumerate(row) if x is not None} for row in (mine, theirs)
    ]
    return len({clusters[x] for _, x in contents[0] ^ contents[1]}) == 1


def _differing(one, two):
    return sum(x != y for x, y in zip(one, two, strict=True))


class RangeDistance:
    """Shortest paths among the values that a view takes, and nowhere else."""

    def __init__(self, unit, shown, *, kind, clusters=None):
        """Take the values in `shown`; `kind` says how they are built."""
        self.values = list(dict.fromkeys(shown))
        self.unit, self.factor, self.size = unit, 1, 1
        while isinstance(self.unit, Scaled | Group):
            if isinstance(self.unit, Scaled):
                assert self.size == 1
                self.factor *= self.unit.factor
            else:
                self.size *= self.unit.size
            self.unit = self.unit.base
        self.how = {"kind": kind, "clusters": clusters}
        if kind == "stream":
            cells = (x for value in self.values for row in value for x in row)
            self.how["regular"] = None not in cells
        self.known = {}

    def __call__(self, one, two):
        """Return the distance of two values; infinite where no chain joins them."""
        if one == two:
            return 0
        if isinstance(self.unit, FreeLunch | DiscreteMetric):
            return self.factor
        if isinstance(self.unit, AbsoluteDifference):
            return self.factor * abs(one - two)
        if isinstance(self.unit, SymmetricDifference):
            mine, theirs = Counter(one), Counter(two)
            return self.factor * ((mine - theirs) + (theirs - mine)).total()
        if one not in self.known:
            self.known[one] = self._search(one)
        steps = self.known[one].get(two, math.inf)
        if steps == math.inf:
            return steps
        return self.factor * -(-steps // self.size)

    def joins(self, one, two):
        """Return whether two values are one step apart."""
        if self.size == 1 or isinstance(self.unit, FreeLunch):
            return adjacent(self.unit, one, two, **self.how)
        return self(one, two) == 1

    def _search(self, start):
        steps, waiting = {start: 0}, deque([start])
        while waiting:
            here = waiting.popleft()
            for there in self.values:
                if there not in steps and adjacent(self.unit, here, there, **self.how):
                    steps[there] = steps[here] + 1
                    waiting.append(there)
        return steps

"""Granularities of streams, from one event to everything of one person.

Events, windows, trajectory segments, the clusters of locations of element level, and
users; a user is protected on identified rows too, where a row is a user.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from undertow._validate import check_count
from undertow.errors import AssumptionError, MismatchError
from undertow.spaces.base import Database, Domain
from undertow.spaces.canonical import (
    Components,
    interval_cover,
    least_feedback,
    w_event_distance,
)
from undertow.spaces.domain import FiniteDomain, Rows, Stream, Table, require_members
from undertow.spaces.unit.generic import (
    Catalogued,
    Rule,
    require_shape,
    row_components,
    row_difference,
    row_distance,
    row_formula,
    row_steps,
)
from undertow.spaces.unit.table import Bounded, Unbounded

SHAPE = "the matrix shape: how many users and times"
Cell = tuple[int, int]


def _differing_cells(first: Any, second: Any) -> list[Cell]:
    return [
        (user, time)
        for user, (mine, theirs) in enumerate(zip(first, second, strict=True))
        if mine != theirs
        for time, (x, y) in enumerate(zip(mine, theirs, strict=True))
        if x != y
    ]


def _put(database: Any, changes: Sequence[tuple[Cell, Any]]) -> Any:
    rows = {user: list(database[user]) for (user, _), _ in changes}
    for (user, time), value in changes:
        rows[user][time] = value
    return tuple(
        tuple(rows[user]) if user in rows else row for user, row in enumerate(database)
    )


class CellLevel(Catalogued):
    """A step is a set of cells that change together."""

    kinds: ClassVar[tuple[str, ...]] = ("stream", "finite")
    otherwise: ClassVar[str] = "use bounded or unbounded on tables"
    splits_person: ClassVar[bool] = True

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless the relation makes sense on `domain`."""
        Catalogued.require_domain(self, domain)
        require_shape(domain, "matrices", name=self.name)

    @abstractmethod
    def _formula(self, first: Any, second: Any, domain: Any) -> float:
        """Return the distance where cells vary independently."""

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        return self._formula(first, second, domain) == 1

    def closed_form(
        self, first: Database, second: Database, domain: Domain
    ) -> float | None:
        """Return the distance by formula on streams; None on listed classes."""
        if isinstance(domain, FiniteDomain):
            return None
        return self._formula(first, second, domain)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the shape of the matrix."""
        return (SHAPE,)

    def components(self, domain: Domain) -> Components | None:
        """Return one component on streams, whose cells vary independently."""
        if not isinstance(domain, Stream):
            return None
        return Components(domain.count() > 1, 1)


@dataclass(frozen=True, slots=True)
class Event(CellLevel):
    """Change one cell of the matrix, or add or remove one event.

    Parameters
    ----------
    add_remove : bool
        One event appears or disappears, rather than one cell changing its content.

    Notes
    -----
    The number of differing cells (thesis, Definition 3.1); with `add_remove` the size
    of the symmetric difference of the events, so that a cell with another location
    counts twice. A stream without gaps has no neighbours under `add_remove`.

    Examples
    --------
    >>> day = Stream(1, 3)
    >>> Event(add_remove=True).distance((("a", "b", "b"),), (("a", None, None),), day)
    2
    """

    add_remove: bool = False

    @property
    def name(self) -> str:
        """The command-line name."""
        return "event:add-remove" if self.add_remove else "event"

    def _formula(self, first: Any, second: Any, domain: Any) -> float:
        cells = _differing_cells(first, second)
        if not self.add_remove:
            return len(cells)
        if isinstance(domain, Stream) and domain.regular:
            return math.inf if cells else 0
        gaps = sum(first[u][t] is None or second[u][t] is None for u, t in cells)
        return 2 * len(cells) - gaps

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        for user, row in enumerate(database):
            for time, mine in enumerate(row):
                for other in domain.choices():
                    lone = mine is None or other is None
                    if other != mine and (lone or not self.add_remove):
                        yield _put(database, [((user, time), other)])

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the shape of the matrix; nothing if events come and go."""
        return () if self.add_remove else (SHAPE,)

    def components(self, domain: Domain) -> Components | None:
        """Return the components; one per database where no event can come or go."""
        number = domain.count()
        if self.add_remove and isinstance(domain, Stream) and domain.regular:
            return Components(
                False, number, ("one per database",) if number > 1 else ()
            )
        return CellLevel.components(self, domain)


@dataclass(frozen=True, slots=True)
class WEvent(CellLevel):
    """Change at most one entry at each time, within `w` consecutive times.

    Parameters
    ----------
    w : int
        The window length.
    single_user : bool
        All changed entries belong to one user. The published definition lets them
        belong to different users, which protects more.

    Notes
    -----
    Thesis, Definition 3.2. The distance is a window cover, of all users together or,
    with `single_user`, of each user in turn.

    Examples
    --------
    >>> stream, two = Stream(2, 3), (("a", "b", "a"), ("a", "a", "a"))
    >>> one = (("a", "a", "a"), ("a", "b", "a"))
    >>> WEvent(3).distance(one, two, stream)
    2
    """

    w: int
    single_user: bool = False

    def __post_init__(self) -> None:
        check_count(self.w, "w")

    @property
    def name(self) -> str:
        """The command-line name."""
        return f"w-event:{self.w}" + (":single-user" if self.single_user else "")

    def _formula(self, first: Any, second: Any, domain: Any) -> float:
        cells = _differing_cells(first, second)
        if self.single_user:
            return _cover_by_user(cells, self.w)
        need = [0] * (max((time for _, time in cells), default=-1) + 1)
        for _, time in cells:
            need[time] += 1
        return w_event_distance(need, self.w)

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        users = range(len(database))
        scopes = [[user] for user in users] if self.single_user else [list(users)]
        for scope in scopes:
            for start in range(domain.times):
                yield from self._from(start, scope, database, domain)

    def _from(
        self, start: int, scope: list[int], database: Any, domain: Stream
    ) -> Iterator[Database]:
        """Yield the changes whose first time is `start`, at most one entry a time."""
        options: list[list[list[tuple[Cell, Any]]]] = []
        for time in range(start, min(start + self.w, domain.times)):
            entries = [
                [((user, time), value)]
                for user in scope
                for value in domain.choices()
                if value != database[user][time]
            ]
            options.append(entries if time == start else [[], *entries])
        for chosen in product(*options):
            yield _put(database, [change for part in chosen for change in part])


def _cover_by_user(cells: Sequence[Cell], length: int) -> int:
    times: dict[int, list[int]] = {}
    for user, time in cells:
        times.setdefault(user, []).append(time)
    return sum(interval_cover(mine, length) for mine in times.values())


@dataclass(frozen=True, slots=True)
class LTrajectory(CellLevel):
    """Modify the locations of `length` successive recorded points of one user.

    Parameters
    ----------
    length : int
        How many successive points are protected together.
    periodic : bool, optional
        True: every cell counts as a point, so a segment is a window of times. False:
        only recorded points count and gaps stay where they are. None: as the stream
        is, True if it is regular.

    Notes
    -----
    Thesis, Definition 3.3. Per user, the least number of segments of the user's own
    point index that cover the differing points; summed over users. If gaps stay, the
    number of points and their times are public.
    """

    kinds: ClassVar[tuple[str, ...]] = ("stream",)

    length: int
    periodic: bool | None = None

    def __post_init__(self) -> None:
        check_count(self.length, "length")

    @property
    def name(self) -> str:
        """The command-line name."""
        suffix = {None: "", True: ":periodic", False: ":recorded"}[self.periodic]
        return f"l-trajectory:{self.length}{suffix}"

    def moves_gaps(self, domain: Domain) -> bool:
        """Return whether a segment is a window of times on `domain`, gaps included."""
        assert isinstance(domain, Stream)
        return domain.regular or bool(self.periodic)

    def _formula(self, first: Any, second: Any, domain: Any) -> float:
        if self.moves_gaps(domain):
            return _cover_by_user(_differing_cells(first, second), self.length)
        total = 0
        for mine, theirs in zip(first, second, strict=True):
            if any(
                (x is None) != (y is None) for x, y in zip(mine, theirs, strict=True)
            ):
                return math.inf
            points = [
                (x, y) for x, y in zip(mine, theirs, strict=True) if x is not None
            ]
            changed = [at for at, (x, y) in enumerate(points) if x != y]
            total += interval_cover(changed, self.length)
        return total

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        if self.moves_gaps(domain):
            window = WEvent(self.length, single_user=True)
            yield from window._generate(database, domain)
            return
        for user, row in enumerate(database):
            points = [time for time, value in enumerate(row) if value is not None]
            for at in range(len(points)):
                segment = points[at : at + self.length]
                yield from _relocations(user, segment, database, domain)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the shape, and the recorded times where gaps stay."""
        if self.moves_gaps(domain):
            return (SHAPE,)
        return (SHAPE, "the number of recorded points of every user and their times")

    def components(self, domain: Domain) -> Components | None:
        """Return the components; one per pattern of gaps where gaps stay."""
        assert isinstance(domain, Stream)
        if self.moves_gaps(domain):
            return CellLevel.components(self, domain)
        several = domain.values is None or len(domain.values) > 1
        cells = domain.users * domain.times
        patterns = 2.0**cells if cells < 1000 else math.inf
        return Components(several, patterns, ("one per pattern of recorded times",))


def _relocations(
    user: int, segment: list[int], database: Any, domain: Stream
) -> Iterator[Database]:
    """Yield the changes of a segment that touch its first point."""
    places = [value for value in domain.choices() if value is not None]
    first, *others = segment
    mine = database[user][first]
    for start in (value for value in places if value != mine):
        for rest in product(places, repeat=len(others)):
            values = zip(segment, (start, *rest), strict=True)
            yield _put(database, [((user, time), value) for time, value in values])


# Element-level privacy: one cluster of one user's locations.


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


# Granularities that protect everything one person contributes.


def is_absent(row: Any) -> bool:
    """Return whether a user contributes nothing: no row, or a row of gaps."""
    return row is None or (isinstance(row, tuple) and all(x is None for x in row))


def recorded_times(row: Any) -> int:
    """Return at how many times a row of a stream is recorded."""
    return sum(value is not None for value in row)


@dataclass(frozen=True, slots=True)
class User(Catalogued):
    """Replace everything one user contributes, or add or remove the user.

    Parameters
    ----------
    add_remove : bool
        A user joins or leaves; on a stream a user who is absent has a row of gaps.
    max_times : int, optional
        A declared cap on the times recorded for one user of a stream. Databases that
        violate it are outside: nothing is promised about them.

    Notes
    -----
    The number of differing rows; with `add_remove`, the users in exactly one database
    plus twice those in both with different data. The cap leaves the rows independent
    and closed under removal, so both formulas hold inside it (thesis, Section 3.3).

    Examples
    --------
    >>> users = Rows(("u1", "u2", "u3"), free_ids=True)
    >>> User(add_remove=True).distance(("p", "q", None), ("r", None, "s"), users)
    4
    """

    kinds: ClassVar[tuple[str, ...]] = ("stream", "rows", "finite")
    otherwise: ClassVar[str] = "use bounded or unbounded where a record is a user"

    add_remove: bool = False
    max_times: int | None = None

    def __post_init__(self) -> None:
        if self.max_times is not None:
            check_count(self.max_times, "max_times")

    @property
    def name(self) -> str:
        """The command-line name."""
        cap = "" if self.max_times is None else f":max-times={self.max_times}"
        return "user" + (":add-remove" if self.add_remove else "") + cap

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless `domain` has users, and times to cap."""
        Catalogued.require_domain(self, domain)
        require_shape(domain, "rows", name=self.name)
        if self.max_times is None:
            return
        if not isinstance(domain, Stream):
            raise MismatchError(
                f"domain must be a stream for {self.name}, got {domain.kind}; "
                "leave max_times out."
            )
        if domain.regular and self.max_times < domain.times:
            raise MismatchError(
                f"domain must allow gaps for {self.name}, got a regular stream that "
                f"records all {domain.times} times; leave max_times out."
            )

    def _rule(self, domain: Domain) -> Rule:
        if self.add_remove:
            return "add-remove"
        # On a stream, listed or not, a row of gaps is a row like any other; rows keep
        # their id set.
        listed = isinstance(domain, FiniteDomain) and domain.holds_matrices
        return "edit" if listed or isinstance(domain, Stream) else "replace"

    def within_cap(self, database: Any) -> bool:
        """Return whether every user respects the declared cap."""
        cap = self.max_times
        return cap is None or all(recorded_times(row) <= cap for row in database)

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        if not (self.within_cap(first) and self.within_cap(second)):
            return False
        p, q = row_difference(first, second, absent=is_absent)
        return row_distance(self._rule(domain), p, q) == 1

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        if not self.within_cap(database):
            return iter(())
        rows = domain.choices() if isinstance(domain, Rows) else self._rows(domain)
        return row_steps(self._rule(domain), database, rows, absent=is_absent)

    def _rows(self, domain: Stream) -> list[Any]:
        rows = product(domain.choices(), repeat=domain.times)
        return [row for row in rows if self.within_cap((row,))]

    def closed_form(
        self, first: Database, second: Database, domain: Domain
    ) -> float | None:
        """Return the weighted number of differing rows, infinite outside the cap."""
        if first == second:
            return 0
        if not (self.within_cap(first) and self.within_cap(second)):
            return math.inf
        rule = self._rule(domain)
        if rule == "add-remove" and isinstance(domain, Stream) and domain.regular:
            return math.inf
        return row_formula(rule, first, second, domain, absent=is_absent)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the users unless they come and go, and the declared cap."""
        users: tuple[str, ...] = ()
        if not self.add_remove:
            named = isinstance(domain, Rows) and domain.free_ids
            users = ("the set of users",) if named else ("the number of users",)
        if self.max_times is None:
            return users
        cap = f"declared cap: at most {self.max_times} recorded times per user"
        return (*users, f"{cap}; nothing is promised about databases beyond it")

    def components(self, domain: Domain) -> Components | None:
        """Return the components; databases beyond the cap stand alone."""
        if isinstance(domain, FiniteDomain):
            return None
        if isinstance(domain, Rows):
            return row_components(self._rule(domain), domain)
        assert isinstance(domain, Stream)
        number = domain.count()
        if self.add_remove and domain.regular:
            return Components(
                False, number, ("one per database",) if number > 1 else ()
            )
        beyond = self._number_beyond(domain)
        if beyond == 0:
            return Components(number > 1, 1)
        label = f"one per database beyond {self.max_times} recorded times"
        return Components(True, 1 + beyond, ("within the cap", label))

    def _number_beyond(self, domain: Stream) -> float:
        """Return how many databases violate the cap."""
        if self.max_times is None or self.max_times >= domain.times:
            return 0
        if domain.count() == math.inf or domain.values is None:
            return math.inf
        each, times = len(domain.values), domain.times
        rows = sum(math.comb(times, k) * each**k for k in range(self.max_times + 1))
        return domain.count() - int(rows**domain.users)


@dataclass(frozen=True, slots=True)
class Trajectory(Catalogued):
    """A record is a whole trajectory: replace one, or add or remove one.

    Parameters
    ----------
    add_remove : bool
        A trajectory appears or disappears.

    Notes
    -----
    As :class:`Bounded` or :class:`Unbounded` on tables and as :class:`User` on streams
    and identified rows (thesis, Section 3.3).
    """

    kinds: ClassVar[tuple[str, ...]] = ("table", "stream", "rows", "finite")
    otherwise: ClassVar[str] = "use node on graphs"

    add_remove: bool = False

    @property
    def name(self) -> str:
        """The command-line name."""
        return "trajectory:add-remove" if self.add_remove else "trajectory"

    def on(self, domain: Domain) -> Catalogued:
        """Return the granularity it stands for on `domain`."""
        if isinstance(domain, Table | FiniteDomain):
            return Unbounded() if self.add_remove else Bounded()
        return User(add_remove=self.add_remove)

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless the relation makes sense on `domain`."""
        Catalogued.require_domain(self, domain)
        self.on(domain).require_domain(domain)

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        return self.on(domain)._adjacent(first, second, domain)

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        return self.on(domain)._generate(database, domain)

    def closed_form(
        self, first: Database, second: Database, domain: Domain
    ) -> float | None:
        """Return the closed form of the granularity it stands for."""
        return self.on(domain).closed_form(first, second, domain)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the invariants of the granularity it stands for."""
        return self.on(domain).invariants(domain)

    def components(self, domain: Domain) -> Components | None:
        """Return the components of the granularity it stands for."""
        return self.on(domain).components(domain)

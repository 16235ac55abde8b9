"""Granularities of streams: events, windows, trajectory segments."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from undertow._validate import check_count
from undertow.spaces.base import Database, Domain
from undertow.spaces.connected import Components
from undertow.spaces.cover import interval_cover, w_event_distance
from undertow.spaces.domain import FiniteDomain, Stream
from undertow.spaces.granularity._steps import require_shape
from undertow.spaces.granularity.generic import Catalogued

__all__ = ["CellLevel", "Event", "LTrajectory", "WEvent"]

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

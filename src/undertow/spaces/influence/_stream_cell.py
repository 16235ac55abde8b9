"""Cells of a stream: what can happen to them, and how far each unit then moves.

Cells of one user at the positions :math:`P` (times as the unit counts them), or one
cell at each position spread over different users:

=================== ========================== ==================================
unit                one user                   spread over users
=================== ========================== ==================================
Event               :math:`|P|`                :math:`|P|`
Event(add_remove)   1 per gap, else 2 per cell the same
WEvent(w)           windows covering P         the same
WEvent, single user windows covering P         windows of each user, added
LTrajectory(l)      segments covering P        segments of each user, added
User                1                          users touched
User(add_remove)    1 or 2                     the same for each user
Element             see below                  per cell, added
FreeLunch           1                          1
=================== ========================== ==================================

In the view setting times are counted as the view numbers them; in the common setting
as the stream does, because a step of the unit must fit there. Locations that the same
views see are interchangeable, and so are users and, but for their start, columns. As
one changed cell is seen by the views of its old and of its new location only, views of
locations are also bounded pair by pair.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from undertow.numeric.exact import Exact
from undertow.spaces.base import Granularity, Metric
from undertow.spaces.canonical import interval_cover
from undertow.spaces.change import Change, ChangeFamily, Column, Setting
from undertow.spaces.domain import Stream
from undertow.spaces.influence._column import (
    Layout,
    Reduced,
    grow,
    lay_out,
    reduce_column,
)
from undertow.spaces.influence._family import PairColumn, PairFamily, RepeatedFamily
from undertow.spaces.influence._run import ExplicitFamily, Piece, Run, RunTable, placed
from undertow.spaces.unit import Element, Event, FreeLunch, LTrajectory, User, WEvent
from undertow.spaces.view import Locations


@dataclass(frozen=True, slots=True, order=True)
class Flags:
    """What can happen to one changed cell, as a column sees it.

    Parameters
    ----------
    weight : int
        0: nothing; 1: an event appears or disappears; 2: one location becomes another.
    clusters : int
        How many clusters change their content.
    gap : bool
        Whether recorded times can change.
    """

    weight: int
    clusters: int = 0
    gap: bool = False


@dataclass(frozen=True, slots=True)
class StreamSight:
    """A plain column on a stream: a rectangle, perhaps restricted to locations.

    Parameters
    ----------
    column : Reduced
        The column.
    users : frozenset of int or None
        Whose rows it sees; None: all.
    times : sequence of int
        Which times it sees, in order.
    values : frozenset or None
        Which locations it sees; None: all.
    width : int
        How many users it sees.
    regular : bool
        Whether the unit knows no gaps.
    cluster_count : int
        How many clusters the unit tells apart.
    """

    column: Reduced
    users: frozenset[int] | None
    times: Sequence[int]
    values: frozenset[Hashable] | None
    width: int
    regular: bool
    cluster_count: int

    @property
    def contiguous(self) -> bool:
        """Whether the times are successive."""
        return self.times[-1] - self.times[0] == len(self.times) - 1

    @property
    def unit(self) -> Metric:
        """The unit of the plain column."""
        return self.column.unit

    def moved_by(self, shift: int) -> StreamSight:
        """Return the same column so many times later."""
        if not shift:
            return self
        return replace(self, times=tuple(time + shift for time in self.times))

    def positions(self, chosen: Sequence[int]) -> Sequence[int]:
        """Return the times among `chosen` that are seen, as the unit counts them."""
        kept = {time: at for at, time in enumerate(self.times)}
        renumber = self.column.setting == "view" or self.counts_recorded
        return [kept[t] if renumber else t for t in chosen if t in kept]

    @property
    def counts_recorded(self) -> bool:
        """Whether the unit counts recorded points only, and none may come or go."""
        # Cells outside the view may be taken as gaps, which are not counted.
        return isinstance(self.unit, LTrajectory) and not self._moves_gaps()

    def _moves_gaps(self) -> bool:
        assert isinstance(self.unit, LTrajectory)
        return self.regular or bool(self.unit.periodic)

    def one_user(
        self, positions: Sequence[int], flags: Flags, *, leaves: bool = False
    ) -> Exact:
        """Return the influence of changing one user's cells at `positions`.

        Parameters
        ----------
        positions : sequence of int
            In order, as :meth:`positions` gives them.
        flags : Flags
            What happens to each cell.
        leaves : bool
            Whether the user disappears altogether.
        """
        if not positions or not flags.weight:
            return 0
        return self.column.finish(self._plain(positions, flags, leaves))

    def _plain(self, positions: Sequence[int], flags: Flags, leaves: bool) -> Exact:
        unit = self.unit
        if isinstance(unit, FreeLunch):
            return 1
        if isinstance(unit, Event):
            return self._events(len(positions), flags)
        if isinstance(unit, WEvent):
            return interval_cover(positions, unit.w)
        if isinstance(unit, LTrajectory):
            lost = flags.gap and not self._moves_gaps()
            return math.inf if lost else interval_cover(positions, unit.length)
        if isinstance(unit, User):
            return self._rows(unit, flags, leaves)
        if isinstance(unit, Element):
            return self._contents(len(positions), flags)
        return math.inf

    def spread(self, positions: Sequence[int], flags: Flags) -> Exact:
        """Return the influence of one changed cell at each position, any users."""
        if not positions or not flags.weight:
            return 0
        number, unit = len(positions), self.column.unit
        if isinstance(unit, Event):
            return self.column.finish(self._events(number, flags))
        if isinstance(unit, FreeLunch):
            return self.column.finish(1)
        if isinstance(unit, WEvent) and not unit.single_user:
            return self.column.finish(interval_cover(positions, unit.w))
        if isinstance(unit, WEvent | LTrajectory):
            if self._plain(positions, flags, False) == math.inf:
                return math.inf
            length = unit.w if isinstance(unit, WEvent) else unit.length
            return self.column.finish(spread_cover(positions, self.width, length))
        each = self._plain(positions[:1], flags, False)
        if isinstance(unit, User):
            number = min(number, self.width)
        total = each if each == math.inf else number * each
        if isinstance(unit, Element) and total < math.inf:
            total = min(total, self.width * self._contents(number, flags))
        return self.column.finish(total)

    def everyone(self, flags: Flags) -> Exact:
        """Return the influence of changing every cell that is seen."""
        whole = self.positions(self.times)
        if isinstance(self.unit, FreeLunch) or not flags.weight:
            return self.one_user(whole, flags)
        each = self._plain(whole, flags, False)
        return self.column.finish(each if each == math.inf else self.width * each)

    def _events(self, number: int, flags: Flags) -> Exact:
        assert isinstance(self.unit, Event)
        if not self.unit.add_remove:
            return number
        return math.inf if self.regular else number * flags.weight

    def _rows(self, unit: User, flags: Flags, leaves: bool) -> Exact:
        if not unit.add_remove:
            return 1
        if self.regular:
            return math.inf
        if leaves or (flags.weight == 1 and len(self.times) == 1):
            return 1
        return 2

    def _contents(self, cells: int, flags: Flags) -> Exact:
        """Bound the contents that change, and the clusters to empty in between."""
        if self.regular and flags.clusters > 1:
            return math.inf
        contents = min(self.cluster_count, flags.clusters * cells)
        if cells == 1 or self.regular or flags.clusters == 1:
            return contents
        # Cells that join clusters in cycles touch fewer of them, so that contents and
        # those emptied in between are at most two for each cell.
        return min(2 * cells, contents + min(contents - 1, cells // 2))

    def attained(self, cells: int, flags: Flags, *, leaves: bool = False) -> bool:
        """Return whether the influence of that many cells of one user is exact.

        That is, reached by one change of the user together with all other columns.
        """
        if cells > 1 and isinstance(self.unit, Element) and self.cluster_count > 1:
            return False
        if cells > 1 and isinstance(self.unit, User) and self.unit.add_remove:
            # With one location, staying present on all views at once can fail.
            present = leaves or flags.weight > 1 or len(self.times) == 1
            return present and self.column.faithful
        # Cells that the view does not see may be taken as gaps, closing up the rest.
        hidden = self.counts_recorded and self.values is not None
        return self.column.faithful and not hidden

    def largest_cover(self, most: int) -> Exact:
        """Return the most that any `most` cells of one user can need to be covered."""
        whole = self.positions(self.times)
        unit = self.unit
        length = 1
        if isinstance(unit, WEvent):
            length = unit.w
        elif isinstance(unit, LTrajectory):
            length = unit.length
        return min(most, interval_cover(whole, length))


def spread_cover(positions: Sequence[int], users: int, length: int) -> int:
    """Return the most intervals of single users that one cell per position can need.

    In any `length` successive positions each user opens at most one interval; taking
    positions as they come until `users` are open, in turn, attains it.

    Examples
    --------
    >>> spread_cover(range(6), 2, 3), spread_cover(range(6), 9, 3)
    (4, 6)
    """
    opened: deque[int] = deque()
    total = 0
    for position in positions:
        while opened and opened[0] <= position - length:
            opened.popleft()
        if len(opened) < users:
            opened.append(position)
            total += 1
    return total


def stream_sight(column: Reduced, domain: Stream) -> StreamSight:
    """Return how a plain column sees a stream.

    Raises
    ------
    MismatchError
        If the unit makes no sense on what the view shows.
    """
    view = column.view
    users: frozenset[int] | None = getattr(view, "users", None)
    times = getattr(view, "times", None)
    seen = range(domain.times) if times is None else sorted(times)
    where, values = domain, None
    if isinstance(view, Locations):
        where, values = _located(view, column.setting, domain)
    if isinstance(column.unit, Granularity):
        _require_fit(column, where, len(seen))
    if values is not None and column.setting == "common" and domain.regular:
        # A hidden location of the same cluster may connect what looks separate.
        exact = column.faithful and not isinstance(column.unit, Element)
        column = replace(column, faithful=exact)
    return StreamSight(
        column,
        None if users is None or len(users) == domain.users else users,
        seen,
        values,
        domain.users if users is None else len(users),
        where.regular or _may_be_regular(column, domain),
        len(where.cluster_labels) if isinstance(column.unit, Element) else 0,
    )


def _may_be_regular(column: Reduced, domain: Stream) -> bool:
    """Return whether a view of places may leave no gaps where events come and go.

    The safe reading of a stream without gaps that leaves its locations open: the places
    may be all there are, and then no event can come or go, or they may not.
    """
    adds = bool(getattr(column.unit, "add_remove", False))
    hides = column.setting == "common" or column.view.fills_image(domain)
    return adds and not hides


def _require_fit(column: Reduced, where: Stream, times: int) -> None:
    unit = column.unit
    assert isinstance(unit, Granularity)
    if column.setting == "view" and times < where.times:
        where = replace(where, times=times) if isinstance(unit, User) else where
    unit.require_domain(where)


def _located(
    view: Locations, setting: Setting, domain: Stream
) -> tuple[Stream, frozenset[Hashable] | None]:
    """Return where the unit lives, and the locations that the view sees, if not all."""
    image = view.image(domain)
    assert isinstance(image, Stream)
    where = domain if setting == "common" else image
    if domain.values is None:
        return where, frozenset(view.values)
    values = frozenset(image.values or ())
    return where, None if values == frozenset(domain.values) else values


# What can happen to one cell: pairs of locations, grouped by the views that see them.
#
# A cell changes from one location, or the gap, to another. A view of some locations
# sees only those; the rest looks like gaps to it. Locations that the same views see are
# interchangeable.

Mode = Literal["replace", "add-remove", "relocate", "element"]
"""Any change of a cell; events that come and go; other locations at the same times; the
content of one cluster."""

# Different ways of changing a cell up to which they are compared one by one.
_COMPARED_STEPS = 200


@dataclass(frozen=True, slots=True)
class Palette:
    """What a cell of one change class can do, column by column.

    Parameters
    ----------
    label : str
        In words, where it matters.
    choices : tuple of tuple of Flags
        For each way of changing a cell that no other beats, the flags of all columns.
    exact : bool
        Whether the choices are known to exist in the domain.
    """

    label: str
    choices: tuple[tuple[Flags, ...], ...]
    exact: bool

    def together(self) -> tuple[Flags, ...]:
        """Return the worst flags of each column, as if one choice had them all."""
        return tuple(_worst_flags(flags) for flags in zip(*self.choices, strict=True))

    @property
    def single(self) -> bool:
        """Whether one choice is the worst for all columns."""
        return self.exact and len(self.choices) <= 1


@dataclass(frozen=True, slots=True)
class _LocationKind:
    """Locations that the same columns see; `number` counts them."""

    seen: tuple[bool, ...]
    cluster: Hashable
    number: int


def palettes(
    domain: Stream, sights: Sequence[StreamSight], mode: Mode
) -> list[Palette]:
    """Return what can happen to a cell; one palette per cluster in element mode."""
    looks = list(
        dict.fromkeys((sight.values, sight.column.setting) for sight in sights)
    )
    sets = [values for values, _ in looks]
    by_cluster = mode == "element" or any(isinstance(s.unit, Element) for s in sights)
    kinds = _kinds_of_location(domain, sets, by_cluster=by_cluster)
    exact = domain.values is not None or set(sets) <= {None}
    position = {look: at for at, look in enumerate(looks)}
    order = [position[sight.values, sight.column.setting] for sight in sights]
    matters = [
        _flags_that_matter(
            [s for s, place in zip(sights, order, strict=True) if place == at]
        )
        for at in range(len(looks))
    ]
    stays = [domain.regular and setting == "common" for _, setting in looks]
    found = []
    for label, members in _location_groups(domain, kinds, mode):
        steps = _cell_steps(members, gap=not domain.regular, mode=mode)
        choices, complete = _unbeaten_choices(steps, matters, stays)
        spread = tuple(tuple(flags[at] for at in order) for flags in choices)
        if any(choices):
            found.append(Palette(label, spread, exact and complete))
    return found or [Palette("", (tuple(Flags(0) for _ in sights),), True)]


def _location_groups(
    domain: Stream, kinds: Sequence[_LocationKind], mode: Mode
) -> list[tuple[str, list[_LocationKind]]]:
    """Return the locations a cell can go between, with words for them."""
    if mode != "element":
        return [("", list(kinds))]
    return [
        (f" of cluster {label!r}", [k for k in kinds if k.cluster == label])
        for label in domain.cluster_labels
    ]


def location_kinds(
    domain: Stream, sets: Sequence[frozenset[Hashable] | None]
) -> list[tuple[tuple[bool, ...], int]]:
    """Return which sets see each kind of location, and how many locations it holds."""
    return [
        (k.seen, k.number) for k in _kinds_of_location(domain, sets, by_cluster=False)
    ]


def _kinds_of_location(
    domain: Stream,
    sets: Sequence[frozenset[Hashable] | None],
    *,
    by_cluster: bool,
) -> list[_LocationKind]:
    if domain.values is None:
        named = sorted({v for s in sets if s is not None for v in s}, key=repr)
        # At least two locations exist; which others do is left open.
        values: list[Hashable] = [*named, _OpenLocation(1), _OpenLocation(2)]
    else:
        values = list(domain.values)
    counts: dict[tuple[tuple[bool, ...], Hashable], int] = {}
    for value in values:
        seen = tuple(s is None or value in s for s in sets)
        cluster = domain.cluster_of(value) if by_cluster and domain.clusters else None
        counts[seen, cluster] = counts.get((seen, cluster), 0) + 1
    return [_LocationKind(seen, cluster, n) for (seen, cluster), n in counts.items()]


@dataclass(frozen=True, slots=True)
class _OpenLocation:
    number: int


CellStep = tuple[_LocationKind, _LocationKind | None]


def _cell_steps(
    kinds: Sequence[_LocationKind], *, gap: bool, mode: Mode
) -> Iterator[CellStep]:
    """Yield the pairs of kinds a cell can go between; None is the gap."""
    if gap and mode != "relocate":
        for kind in kinds:
            yield kind, None
    if mode == "add-remove":
        return
    for at, one in enumerate(kinds):
        if one.number > 1:
            yield one, one
        for two in kinds[at + 1 :]:
            yield one, two


def _flags_that_matter(sights: Sequence[StreamSight]) -> Flags:
    """Return which flags any of the units looks at; the others are dropped."""
    sharp = any(getattr(sight.unit, "add_remove", False) for sight in sights)
    clusters = any(isinstance(sight.unit, Element) for sight in sights)
    # In the common setting an event that leaves the view may stay recorded elsewhere.
    recorded = any(
        s.counts_recorded and (s.column.setting == "view" or s.values is None)
        for s in sights
    )
    return Flags(1 + sharp, 2 * clusters, recorded)


def _unbeaten_choices(
    steps: Iterator[CellStep], matters: Sequence[Flags], stays: Sequence[bool]
) -> tuple[list[tuple[Flags, ...]], bool]:
    """Return the flags of steps that no other step beats; all joined if too many."""
    different: dict[tuple[Flags, ...], None] = {}
    for one, two in steps:
        flags = tuple(
            _seen_step(one, two, at, m, stays=stay)
            for at, (m, stay) in enumerate(zip(matters, stays, strict=True))
        )
        different[flags] = None
    if len(different) > _COMPARED_STEPS:
        return [
            tuple(_worst_flags(flags) for flags in zip(*different, strict=True))
        ], False
    kept = [
        flags
        for flags in different
        if not any(other != flags and _flags_beat(other, flags) for other in different)
    ]
    return kept, True


def _seen_step(
    one: _LocationKind,
    two: _LocationKind | None,
    at: int,
    matters: Flags,
    *,
    stays: bool,
) -> Flags:
    """Return what a view sees of a step; `stays`: what leaves it goes elsewhere."""
    before, after = one.seen[at], two is not None and two.seen[at]
    crossed = two is not None and one.cluster != two.cluster
    if before and after:
        return Flags(matters.weight, min(1 + crossed, matters.clusters), False)
    if before or after:
        clusters = min(1 + (stays and crossed), matters.clusters)
        return Flags(1, clusters, matters.gap)
    return Flags(0, 0, False)


def _worst_flags(flags: Sequence[Flags]) -> Flags:
    return Flags(
        max(f.weight for f in flags),
        max(f.clusters for f in flags),
        any(f.gap for f in flags),
    )


def _flags_beat(one: Sequence[Flags], other: Sequence[Flags]) -> bool:
    return all(
        a.weight >= b.weight and a.clusters >= b.clusters and a.gap >= b.gap
        for a, b in zip(one, other, strict=True)
    )


# Users of a stream, grouped by the views that see them.


@dataclass(frozen=True, slots=True)
class UserKind:
    """Users that the same columns see.

    Parameters
    ----------
    seen : tuple of bool
        For each column whether it sees them.
    number : int
        How many they are.
    example : int
        One of them.
    words : str
        How a change names them; empty where all users are alike.
    """

    seen: tuple[bool, ...]
    number: int
    example: int
    words: str


def user_kinds(domain: Stream, sights: Sequence[StreamSight]) -> list[UserKind]:
    """Return the kinds of user, in order of their first user.

    Only users that a view names are looked at one by one; all others are of one kind.
    """
    sets = list(dict.fromkeys(s.users for s in sights if s.users is not None))
    of_user: dict[int, list[int]] = {}
    for number, users in enumerate(sets):
        for user in users:
            of_user.setdefault(user, []).append(number)
    groups: dict[tuple[int, ...], list[int]] = {}
    for user in sorted(of_user):
        groups.setdefault(tuple(of_user[user]), []).append(user)
    rest = domain.users - len(of_user)
    found = [(key, len(members), members[0]) for key, members in groups.items()]
    if rest:
        free = next(u for u in range(domain.users) if u not in of_user)
        found.append(((), rest, free))
    position = {users: number for number, users in enumerate(sets)}
    kinds = [
        UserKind(
            tuple(s.users is None or position[s.users] in key for s in sights),
            number,
            example,
            f" of user {example}" if len(found) > 1 else " of one user",
        )
        for key, number, example in sorted(found, key=lambda item: item[2])
    ]
    return kinds


# How all columns see a stream: few shapes, each at many times.


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """Columns brought to plain ones, shape by shape.

    Parameters
    ----------
    shapes : tuple of Reduced
        The first column of each shape.
    layout : Layout
        Which columns share a shape.
    """

    shapes: tuple[Reduced, ...]
    layout: Layout


def plain_columns(columns: Sequence[Column], domain: Stream) -> PlainColumns:
    """Bring the columns of a stream to plain ones.

    Raises
    ------
    MismatchError, ValueError
        If a view does not fit the domain; of several the first.
    """
    layout = lay_out(columns, times=domain.times)
    if layout is None:  # some view does not fit: the first that fails says why
        for column in columns:
            reduce_column(column, domain)
    assert layout is not None
    chosen = [columns[at] for at in layout.firsts]
    plain = tuple(reduce_column(column, domain) for column in chosen)
    # Where only a bound is known the view is replaced by one that does not move.
    own = [p.view is c.view for p, c in zip(plain, chosen, strict=True)]
    return PlainColumns(plain, layout.fixed(own))


@dataclass(frozen=True, slots=True)
class Sights:
    """What the columns see of a stream.

    Parameters
    ----------
    shapes : tuple of StreamSight
        How the first column of each shape sees it.
    layout : Layout
        Which columns share a shape, and how much later they start.
    """

    shapes: tuple[StreamSight, ...]
    layout: Layout

    def each(self) -> list[StreamSight]:
        """Return the columns one by one."""
        places = zip(
            self.layout.shape_of.tolist(), self.layout.shift.tolist(), strict=True
        )
        return [self.shapes[shape].moved_by(shift) for shape, shift in places]

    def only(self, marked: Sequence[bool]) -> Sights:
        """Return the columns whose shape is marked, renumbered in their order."""
        kept = (s for s, keep in zip(self.shapes, marked, strict=True) if keep)
        return Sights(tuple(kept), self.layout.only(marked))

    def runs(
        self, pieces: Sequence[Sequence[Piece]], *, width: int, moves: bool = True
    ) -> RunTable:
        """Give every column the runs of its shape; see :func:`placed`."""
        return placed(pieces, self.layout, width=width, moves=moves)


# Views of locations: what leaves one place and enters another, pair by pair.
#
# A cell holds one location at a time, so one changed cell is seen by the views of its
# old and of its new location only. That holds for any number of locations, and several
# changed cells cost at most as often the worst pair.


def location_family(
    domain: Stream, sights: Sequence[StreamSight], *, mode: Mode, cells: int
) -> ChangeFamily:
    """Return the changes of up to `cells` cells as seen by views of locations.

    Parameters
    ----------
    domain : Stream
        The stream.
    sights : sequence of StreamSight
        Columns through views of locations.
    mode : Mode
        What can happen to a cell.
    cells : int
        How many cells one change can touch.
    """
    seen = location_kinds(domain, [sight.values for sight in sights])
    columns = {j: _location_column(sight, seen, j) for j, sight in enumerate(sights)}
    if mode == "add-remove":
        one: ChangeFamily = _coming_family(len(seen), columns)
    else:
        one = _moving_family(domain, seen, columns, mode)
    if cells == 1:
        return one
    capped = {
        j: grow(sight.column)
        for j, sight in enumerate(sights)
        if not sight.column.additive
    }
    return RepeatedFamily(one, cells, capped=capped, tight=False)


def _location_column(
    sight: StreamSight, seen: Sequence[tuple[tuple[bool, ...], int]], j: int
) -> PairColumn:
    members = [kind for kind, (views, _) in enumerate(seen) if views[j]]
    first = sight.positions(sight.times[:1])
    # The worst that can be meant: another cluster, a recorded time that changes.
    leaving = sight.one_user(
        first, Flags(1, 2 if sight.regular else 1, _may_leave_gap(sight))
    )
    inside = sight.one_user(first, Flags(2, 2, False))
    return PairColumn(members, leaving, inside, inside)


def _may_leave_gap(sight: StreamSight) -> bool:
    return sight.counts_recorded and sight.column.setting == "view"


def _moving_family(
    domain: Stream,
    seen: Sequence[tuple[tuple[bool, ...], int]],
    columns: dict[int, PairColumn],
    mode: Mode,
) -> PairFamily:
    gap = not domain.regular and mode != "relocate"
    return PairFamily(
        len(seen) + gap,
        twice=[number > 1 for _, number in seen] + [False] * gap,
        columns=columns,
        describe=lambda one, two: Change("location", "change the location of a cell"),
        tight=False,
    )


def _coming_family(kinds: int, columns: dict[int, PairColumn]) -> ExplicitFamily:
    runs: dict[int, list[Run]] = {
        j: [(kind, kind + 1, column.one) for kind in column.members]
        for j, column in columns.items()
        if column.one
    }
    return ExplicitFamily(
        kinds,
        runs,
        describe=lambda kind: Change("location", "add or remove an event"),
        tight=False,
    )

r"""How far each unit of a stream moves when given cells change.

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
as the stream does, because a step of the unit must fit there.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from undertow.privacy.exact import Exact
from undertow.spaces.base import Granularity, Metric
from undertow.spaces.change import Setting
from undertow.spaces.cover import interval_cover
from undertow.spaces.domain import Stream
from undertow.spaces.granularity import (
    Element,
    Event,
    FreeLunch,
    LTrajectory,
    User,
    WEvent,
)
from undertow.spaces.influence.reduction import Reduced
from undertow.spaces.view import Locations

__all__ = ["Flags", "StreamSight", "spread_cover", "stream_sight"]


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
        return self.column.finish(each if each == math.inf else number * each)

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
        return contents + min(contents - 1, cells // 2)

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

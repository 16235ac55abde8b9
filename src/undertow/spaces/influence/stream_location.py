"""Views of locations: what leaves one place and enters another, pair by pair.

A cell holds one location at a time, so one changed cell is seen by the views of its old
and of its new location only. That holds for any number of locations, and several
changed cells cost at most as often the worst pair.
"""

from __future__ import annotations

from collections.abc import Sequence

from undertow.spaces.change import Change, ChangeFamily
from undertow.spaces.domain import Stream
from undertow.spaces.influence.families import RepeatedFamily
from undertow.spaces.influence.pairs import PairColumn, PairFamily
from undertow.spaces.influence.reduction import grow
from undertow.spaces.influence.runs import ExplicitFamily, Run
from undertow.spaces.influence.stream_palette import Mode, location_kinds
from undertow.spaces.influence.stream_units import Flags, StreamSight

__all__ = ["location_family"]


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
    columns = {j: _column(sight, seen, j) for j, sight in enumerate(sights)}
    if mode == "add-remove":
        one: ChangeFamily = _coming(len(seen), columns)
    else:
        one = _moving(domain, seen, columns, mode)
    if cells == 1:
        return one
    capped = {
        j: grow(sight.column)
        for j, sight in enumerate(sights)
        if not sight.column.additive
    }
    return RepeatedFamily(one, cells, capped=capped, tight=False)


def _column(
    sight: StreamSight, seen: Sequence[tuple[tuple[bool, ...], int]], j: int
) -> PairColumn:
    members = [kind for kind, (views, _) in enumerate(seen) if views[j]]
    first = sight.positions(sight.times[:1])
    # The worst that can be meant: another cluster, a recorded time that changes.
    leaving = sight.one_user(first, Flags(1, 2 if sight.regular else 1, _gap(sight)))
    inside = sight.one_user(first, Flags(2, 2, False))
    return PairColumn(members, leaving, inside, inside)


def _gap(sight: StreamSight) -> bool:
    return sight.counts_recorded and sight.column.setting == "view"


def _moving(
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


def _coming(kinds: int, columns: dict[int, PairColumn]) -> ExplicitFamily:
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

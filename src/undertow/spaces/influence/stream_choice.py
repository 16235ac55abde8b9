"""Any few times of one user: recorded segments, and users with a participation cap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal

from undertow.privacy.exact import Exact
from undertow.spaces.change import Change, ChangeFamily, Row
from undertow.spaces.domain import Stream
from undertow.spaces.granularity import Event, FreeLunch, User
from undertow.spaces.influence.families import UnionFamily
from undertow.spaces.influence.runs import listed
from undertow.spaces.influence.slots import SlotColumn, TopFamily
from undertow.spaces.influence.stream_palette import palettes
from undertow.spaces.influence.stream_units import Flags, StreamSight
from undertow.spaces.influence.stream_users import UserKind, user_kinds

__all__ = ["Choice", "chosen_times"]

Choice = Literal["relocate", "leave", "replace"]
"""Other locations at recorded times; a user who leaves; a user's data replaced."""

# Sets of times up to which each one is a class of its own.
_LISTED_SETS = 3_000


@dataclass(frozen=True, slots=True)
class _Plan:
    """What happens to a chosen time: in one of the two sets, or in both."""

    domain: Stream
    mode: Choice
    most: int
    once: tuple[Flags, ...]
    twice: tuple[Flags, ...]
    exact: bool

    @property
    def in_both(self) -> bool:
        """Whether a time can be recorded before and after, at other locations."""
        return self.mode == "replace" and any(f.weight for f in self.twice)

    @property
    def leaves(self) -> bool:
        return self.mode == "leave"

    @property
    def largest(self) -> int:
        """The most times that can change."""
        slots = 2 * self.most if self.mode == "replace" else self.most
        return min(slots, self.domain.times)


def chosen_times(
    domain: Stream, sights: Sequence[StreamSight], *, most: int, mode: Choice
) -> ChangeFamily:
    """Return the sets of times that one user's change can touch.

    Parameters
    ----------
    domain : Stream
        The stream.
    sights : sequence of StreamSight
        The columns.
    most : int
        How many points one user has recorded, or one segment holds.
    mode : {"relocate", "leave", "replace"}
        Segments of recorded points touch at most `most` times, and so does a user who
        leaves; replacing a user's data up to twice as many, because the old and the
        new times may be different.
    """
    plan = _plan(domain, sights, most, mode)
    kinds = user_kinds(domain, sights)
    number = 3 if mode == "replace" else 2
    if number**domain.times * len(kinds) <= _LISTED_SETS:
        return _listed(plan, sights, kinds)
    parts = [_top(plan, sights, kind) for kind in kinds]
    return parts[0] if len(parts) == 1 else UnionFamily(parts)


def _plan(
    domain: Stream, sights: Sequence[StreamSight], most: int, mode: Choice
) -> _Plan:
    (moving,) = palettes(domain, sights, "relocate")
    nothing = tuple(Flags(0) for _ in sights)
    if mode == "relocate":
        return _Plan(domain, mode, most, moving.together(), nothing, moving.single)
    (coming,) = palettes(domain, sights, "add-remove")
    exact = coming.single and (mode == "leave" or moving.single)
    twice = moving.together() if mode == "replace" else nothing
    return _Plan(domain, mode, most, coming.together(), twice, exact)


def _choices(plan: _Plan) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the times in one set and those in both; every choice lies below one."""
    times = range(plan.domain.times)
    if plan.mode != "replace":
        for chosen in combinations(times, plan.largest):
            yield chosen, ()
        return
    for states in product((0, 1, 2), repeat=plan.domain.times):
        once = tuple(t for t in times if states[t] == 1)
        twice = tuple(t for t in times if states[t] == 2)
        fits = len(once) + 2 * len(twice) <= 2 * plan.most
        if fits and (once or twice) and (plan.in_both or not twice):
            yield once, twice


def _listed(
    plan: _Plan, sights: Sequence[StreamSight], kinds: Sequence[UserKind]
) -> ChangeFamily:
    rows = []
    for kind in kinds:
        for once, twice in _choices(plan):
            influences: dict[int, Exact] = {}
            for j, sight in enumerate(sights):
                value = _influence(plan, sight, j, once, twice) if kind.seen[j] else 0
                if value:
                    influences[j] = value
            rows.append(Row(_change(plan, kind, once, twice), influences))
    tight = plan.exact and all(_exact(plan, sight) for sight in sights)
    return listed(rows, tight=tight)


def _exact(plan: _Plan, sight: StreamSight) -> bool:
    # Staying present on the view takes recorded times away from those that change.
    present = isinstance(sight.unit, User) and sight.unit.add_remove
    loose = present and plan.mode == "replace" and len(sight.times) > 1
    weight = 1 if plan.mode == "leave" else 2
    exact = sight.attained(plan.largest, Flags(weight, 2), leaves=plan.leaves)
    return exact and not loose


def _influence(
    plan: _Plan,
    sight: StreamSight,
    j: int,
    once: Sequence[int],
    twice: Sequence[int],
) -> Exact:
    one, both = plan.once[j], plan.twice[j]
    first, second = sight.positions(once), sight.positions(twice)
    if isinstance(sight.unit, Event) and sight.unit.add_remove:
        if sight.regular and (first or second):
            return math.inf
        weight = one.weight * len(first) + both.weight * len(second)
        return sight.column.finish(weight)
    touched = sorted(
        [p for p in first if one.weight] + [p for p in second if both.weight]
    )
    if plan.mode == "relocate" and sight.counts_recorded:
        touched = list(range(len(touched)))  # successive points of the user
    return sight.one_user(touched, _joined(one, both, second), leaves=plan.leaves)


def _joined(one: Flags, both: Flags, second: Sequence[int]) -> Flags:
    if not second:
        return one
    return Flags(
        max(one.weight, both.weight),
        max(one.clusters, both.clusters),
        one.gap or both.gap,
    )


def _change(
    plan: _Plan, kind: UserKind, once: tuple[int, ...], twice: tuple[int, ...]
) -> Change:
    verb = {
        "relocate": "change the locations recorded",
        "leave": "remove or add all data, recorded",
        "replace": "replace all data, recorded",
    }[plan.mode]
    times = tuple(sorted((*once, *twice)))
    shown = ", ".join(map(str, times[:12])) + (", ..." if len(times) > 12 else "")
    details = (("users", kind.example), ("times", times), ("both", twice))
    return Change("times", f"{verb} at times {shown}{kind.words}", details)


def _top(plan: _Plan, sights: Sequence[StreamSight], kind: UserKind) -> TopFamily:
    columns: dict[int, SlotColumn] = {}
    tight = plan.exact
    for j, sight in enumerate(sights):
        if not kind.seen[j]:
            columns[j] = SlotColumn(None, 0, 0, 0)
            continue
        columns[j], exact = _slot(plan, sight, j)
        tight = tight and exact and sight.column.faithful
    return TopFamily(
        plan.domain.times,
        plan.most,
        columns=columns,
        replace=plan.mode == "replace",
        equal_sets=True,
        describe=lambda once, twice: _change(plan, kind, once, twice),
        tight=tight,
        notes=_notes(plan),
    )


def _notes(plan: _Plan) -> tuple[str, ...]:
    if plan.mode == "relocate":
        return ()
    return (f"every user is recorded at most {plan.most} times",)


def _slot(plan: _Plan, sight: StreamSight, j: int) -> tuple[SlotColumn, bool]:
    """Return how a column sees a choice of times, and whether it is exact."""
    times = tuple(sight.times)
    if len(times) == 1:
        one = _influence(plan, sight, j, times, ())
        both = _influence(plan, sight, j, (), times)
        return SlotColumn(times, one, both, max(one, both)), True
    if isinstance(sight.unit, Event) and sight.column.additive:
        return _events(plan, sight, j)
    return _constant(plan, sight, j)


def _events(plan: _Plan, sight: StreamSight, j: int) -> tuple[SlotColumn, bool]:
    times = tuple(sight.times)
    one = _influence(plan, sight, j, times[:1], ())
    both = _influence(plan, sight, j, (), times[:1])
    seen = min(len(times), plan.largest)
    if plan.mode != "replace":
        most = _influence(plan, sight, j, times[:seen], ())
        if len(times) == plan.domain.times:
            return SlotColumn(None, 0, 0, most), True
        return SlotColumn(times, one, both, most), True
    if math.inf in (one, both):
        return SlotColumn(times, one, both, math.inf), True
    # At most 2m slots, a time in both sets taking two of them.
    most = max(
        both * n + one * min(len(times) - n, 2 * plan.most - 2 * n)
        for n in range(min(len(times), plan.most) + 1)
    )
    return SlotColumn(times, one, both, most), True


def _constant(plan: _Plan, sight: StreamSight, j: int) -> tuple[SlotColumn, bool]:
    times = tuple(sight.times)
    seen = min(len(times), plan.largest)
    flags = _joined(plan.once[j], plan.twice[j], times if plan.in_both else ())
    unit = sight.unit
    if isinstance(unit, FreeLunch | User):
        most = sight.one_user(range(len(times)), flags, leaves=plan.leaves)
        least = min(plan.most, plan.domain.times)
        always = plan.domain.times - len(times) < least
        return SlotColumn(None, 0, 0, most), always and _exact(plan, sight)
    if plan.mode == "relocate" and sight.counts_recorded:
        most = sight.one_user(range(seen), flags)
        return SlotColumn(None, 0, 0, most), len(times) == plan.domain.times
    cover = sight.largest_cover(seen)
    apart = [3 * i * plan.domain.times for i in range(int(cover))]
    most = sight.one_user(apart, flags, leaves=plan.leaves)
    return SlotColumn(None, 0, 0, most), False

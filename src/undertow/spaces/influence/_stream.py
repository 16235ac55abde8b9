"""Change classes of streams: cells, windows, any few times, users.

Users that the same views see are interchangeable. The target decides which cells change
together: one cell, one at each of successive times, any few times of one user, or a
whole row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from typing import Literal

from undertow.numeric.exact import Exact
from undertow.spaces.base import Granularity
from undertow.spaces.change import Change, ChangeFamily, Column, Row
from undertow.spaces.domain import Stream
from undertow.spaces.influence._column import Reduced, grow
from undertow.spaces.influence._family import (
    IndependentFamily,
    LeastFamily,
    RepeatedFamily,
    SlotColumn,
    TopFamily,
    UnionFamily,
)
from undertow.spaces.influence._run import ExplicitFamily, Piece, Run, listed
from undertow.spaces.influence._stream_cell import (
    Flags,
    Mode,
    Palette,
    PlainColumns,
    Sights,
    StreamSight,
    UserKind,
    location_family,
    palettes,
    plain_columns,
    stream_sight,
    user_kinds,
)
from undertow.spaces.unit import (
    Element,
    Event,
    FreeLunch,
    Group,
    LTrajectory,
    User,
    WEvent,
)


def stream_family(
    domain: Stream, target: Granularity, *, columns: Sequence[Column]
) -> ChangeFamily | None:
    """Return the change classes of a stream; None where no formula is known.

    Notes
    -----
    Users that the same views see are interchangeable. Event: one class per kind of
    user and time. Windows: one per start, and kind of user where they belong to one.
    Recorded segments and users with a cap: any set of times. User: one per kind.
    Element: one per kind and cluster. Several steps at once are multiples of these.
    """
    return _family(domain, target, plain_columns(columns, domain))


def _family(
    domain: Stream, target: Granularity, plain: PlainColumns
) -> ChangeFamily | None:
    if isinstance(target, Group):
        return _repeated(domain, target, plain)
    sights = _sights(domain, target, plain)
    family = _route(domain, target, sights)
    located = [sight.values is not None for sight in sights.shapes]
    if family is None or family.tight or not any(located):
        return family
    return LeastFamily([family, _by_location(domain, target, sights, located)])


def _by_location(
    domain: Stream, target: Granularity, sights: Sights, located: Sequence[bool]
) -> ChangeFamily:
    """Bound views of locations by pairs of locations, beside all other views."""
    mode: Mode = "replace"
    if getattr(target, "add_remove", False):
        mode = "add-remove"
    elif isinstance(target, LTrajectory) and not target.moves_gaps(domain):
        mode = "relocate"
    seeing = sights.only(located).each()
    cells = _cell_number(domain, target)
    part = location_family(domain, seeing, mode=mode, cells=cells)
    others = [not inside for inside in located]
    rest = _route(domain, target, sights.only(others))
    assert rest is not None
    return IndependentFamily(
        [(part, sights.layout.columns(located)), (rest, sights.layout.columns(others))]
    )


def _cell_number(domain: Stream, target: Granularity) -> int:
    """Return how many cells one change can touch."""
    times = domain.times
    if isinstance(target, Event):
        return 1
    if isinstance(target, WEvent):
        return min(target.w, times)
    if isinstance(target, LTrajectory):
        return min(target.length, times)
    if isinstance(target, User) and target.max_times is not None:
        slots = target.max_times * (1 if target.add_remove else 2)
        return min(slots, times)
    return times * domain.users if isinstance(target, FreeLunch) else times


def _route(domain: Stream, target: Granularity, sights: Sights) -> ChangeFamily | None:
    if isinstance(target, Event):
        return _cells(domain, target, sights)
    if isinstance(target, WEvent):
        return window_family(domain, sights, w=target.w, one_user=target.single_user)
    if isinstance(target, LTrajectory):
        if target.moves_gaps(domain):
            return window_family(domain, sights, w=target.length, one_user=True)
        each = sights.each()
        return chosen_times(domain, each, most=target.length, mode="relocate")
    if isinstance(target, User):
        return _users(domain, target, sights)
    if isinstance(target, Element):
        return _contents(domain, sights)
    if isinstance(target, FreeLunch):
        return _everything(domain, sights)
    return None


def _sights(domain: Stream, target: Granularity, plain: PlainColumns) -> Sights:
    """Return how the columns see the stream."""
    shapes = [
        stream_sight(_within_cap(column, target, domain), domain)
        for column in plain.shapes
    ]
    return Sights(tuple(shapes), plain.layout)


def _within_cap(column: Reduced, target: Granularity, domain: Stream) -> Reduced:
    """Give up a claim about capped users where the change may leave the cap."""
    unit = column.unit
    if not isinstance(unit, User) or unit.max_times is None:
        return column
    if domain.regular and not _shows_gaps(column, domain):
        return column  # a cap below all times is refused there
    times = getattr(column.view, "times", None)
    seen = domain.times if times is None else len(times)
    step = target.base if isinstance(target, Group) else target
    cap = step.max_times if isinstance(step, User) else None
    if seen <= unit.max_times or (cap is not None and cap <= unit.max_times):
        return column
    lost: tuple[tuple[str, Exact], ...] = (*column.steps, ("scale", math.inf))
    return replace(column, unit=FreeLunch(), steps=lost, faithful=False)


def _shows_gaps(column: Reduced, domain: Stream) -> bool:
    """Return whether a view of a stream without gaps may show some."""
    if column.setting == "common":
        return False
    image = column.view.image(domain)
    return isinstance(image, Stream) and not image.regular


def _cells(domain: Stream, target: Event, sights: Sights) -> ExplicitFamily:
    mode: Mode = "add-remove" if target.add_remove else "replace"
    (palette,) = palettes(domain, sights.shapes, mode)
    kinds = user_kinds(domain, sights.shapes)
    times, block = domain.times, domain.times * len(kinds)
    pieces: list[list[Piece]] = []
    for s, sight in enumerate(sights.shapes):
        held: list[Piece] = []
        for c, choice in enumerate(palette.choices):
            influence = sight.one_user(sight.positions(sight.times[:1]), choice[s])
            for k, kind in enumerate(kinds):
                if influence and kind.seen[s]:
                    start = c * block + k * times
                    held.extend(_stretches(sight.times, start, influence))
        pieces.append(held)

    def describe(at: int) -> Change:
        kind, time = divmod(at % block, times)
        return _cell_change(kinds[kind], time, add_remove=target.add_remove)

    return ExplicitFamily(
        block * len(palette.choices),
        sights.runs(pieces, width=times),
        describe=describe,
        tight=palette.exact and all(s.column.faithful for s in sights.shapes),
    )


def _stretches(times: Sequence[int], block: int, influence: Exact) -> list[Piece]:
    """Join successive times into runs."""
    if times[-1] - times[0] == len(times) - 1:
        return [(block, times[0], times[-1] + 1, influence)]
    runs: list[Piece] = []
    for time in times:
        if runs and runs[-1][2] == time:
            runs[-1] = (block, runs[-1][1], time + 1, influence)
        else:
            runs.append((block, time, time + 1, influence))
    return runs


def _cell_change(kind: UserKind, time: int, *, add_remove: bool) -> Change:
    verb = "add or remove the event" if add_remove else "change the cell"
    details = (("users", kind.example), ("times", (time,)))
    return Change("event", f"{verb} at time {time}{kind.words}", details)


def _users(domain: Stream, target: User, sights: Sights) -> ChangeFamily:
    cap = target.max_times
    if cap is not None and cap < domain.times:
        choice: Choice = "leave" if target.add_remove else "replace"
        return chosen_times(domain, sights.each(), most=cap, mode=choice)
    mode: Mode = "add-remove" if target.add_remove else "replace"
    (palette,) = palettes(domain, sights.shapes, mode)
    verb = "add or remove all data" if target.add_remove else "replace all data"
    return _whole_rows(domain, sights, [palette], verb, leaves=target.add_remove)


def _contents(domain: Stream, sights: Sights) -> ExplicitFamily:
    found = palettes(domain, sights.shapes, "element")
    return _whole_rows(domain, sights, found, "change the content", within=True)


def _whole_rows(
    domain: Stream,
    sights: Sights,
    found: Sequence[Palette],
    verb: str,
    *,
    leaves: bool = False,
    within: bool = False,
) -> ExplicitFamily:
    kinds = user_kinds(domain, sights.shapes)
    worst = [palette.together() for palette in found]
    pieces: list[list[Piece]] = []
    for s, sight in enumerate(sights.shapes):
        held: list[Piece] = []
        whole = sight.positions(sight.times)
        for p, flags in enumerate(worst):
            influence = sight.one_user(whole, flags[s], leaves=leaves)
            if within and influence and isinstance(sight.unit, Element):
                influence = sight.column.finish(1)  # the content of one cluster
            for k, kind in enumerate(kinds):
                if influence and kind.seen[s]:
                    held.append((p * len(kinds) + k, 0, 1, influence))
        pieces.append(held)

    def describe(at: int) -> Change:
        which, k = divmod(at, len(kinds))
        words = f"{verb}{found[which].label}{kinds[k].words}"
        return Change("user", words, (("users", kinds[k].example),))

    tight = all(palette.single for palette in found) and all(
        sight.attained(len(sight.times), flags[s], leaves=leaves)
        or (within and isinstance(sight.unit, Element) and sight.column.faithful)
        for flags in worst
        for s, sight in enumerate(sights.shapes)
    )
    runs = sights.runs(pieces, width=1, moves=False)
    return ExplicitFamily(len(kinds) * len(found), runs, describe=describe, tight=tight)


def _everything(
    domain: Stream, sights: Sights, *, mode: Mode = "replace"
) -> ExplicitFamily:
    (palette,) = palettes(domain, sights.shapes, mode)
    flags = palette.together()
    pieces: list[list[Piece]] = []
    for s, sight in enumerate(sights.shapes):
        influence = sight.everyone(flags[s])
        pieces.append([(0, 0, 1, influence)] if influence else [])
    exact = all(
        sight.attained(len(sight.times), flags[s])
        for s, sight in enumerate(sights.shapes)
    )
    return ExplicitFamily(
        1,
        sights.runs(pieces, width=1, moves=False),
        describe=lambda at: Change("all", "replace the whole data"),
        tight=palette.single and exact,
    )


def _repeated(
    domain: Stream, target: Group, plain: PlainColumns
) -> ChangeFamily | None:
    one = _family(domain, target.base, plain)
    if one is None:
        return None
    capped = {
        j: grow(plain.shapes[plain.layout.shape_of[j]])
        for j in plain.layout.columns([not column.additive for column in plain.shapes])
    }
    base, whole = target.base, None
    if not isinstance(base, Element):
        stays = isinstance(base, LTrajectory) and not base.moves_gaps(domain)
        sights = _sights(domain, base, plain)
        whole = _everything(domain, sights, mode="relocate" if stays else "replace")
    # Equal changes of different users: at least as many as there are steps.
    same = all(getattr(column.view, "users", None) is None for column in plain.shapes)
    room = same and domain.users >= target.size * _users_per_step(target.base)
    return RepeatedFamily(one, target.size, capped=capped, tight=room, whole=whole)


def _users_per_step(base: Granularity) -> float:
    if isinstance(base, FreeLunch | Group):
        return math.inf
    return base.w if isinstance(base, WEvent) and not base.single_user else 1


# Windows of successive times: one class per start, columns as runs over the starts.

# Ways of handing the times of a window to kinds of users that are listed one by one.
_LISTED_WINDOWS = 20_000


def window_family(
    domain: Stream, sights: Sights, *, w: int, one_user: bool
) -> ChangeFamily:
    """Return the windows of `w` successive times.

    Parameters
    ----------
    domain : Stream
        The stream.
    sights : Sights
        The columns.
    w : int
        The window length; longer than the stream means the whole of it.
    one_user : bool
        Whether the changed entries belong to one user, or each time to any user.

    Notes
    -----
    With at least `w` users the entries of a window may all belong to different ones,
    which is the worst case for every unit at once. Where views tell users apart, the
    assignments are listed if they are few; otherwise each view is charged as if all
    entries were its own, an upper bound.
    """
    w = min(w, domain.times)
    kinds = user_kinds(domain, sights.shapes)
    if one_user or domain.users == 1:
        return _windows_of_one_user(domain, sights, kinds, w)
    if len(kinds) == 1:
        return _windows_of_any_users(
            domain,
            sights,
            w,
            tight=_one_assignment_is_worst(domain.users, sights.shapes, w),
        )
    starts = domain.times - w + 1
    if len(kinds) ** w * starts <= _LISTED_WINDOWS:
        return _windows_assigned(domain, sights.each(), w)
    return _windows_of_any_users(domain, sights, w, tight=False)


def _flags_together(
    domain: Stream, sights: Sequence[StreamSight]
) -> tuple[tuple[Flags, ...], bool]:
    (palette,) = palettes(domain, sights, "replace")
    return palette.together(), palette.single


def _windows_of_one_user(
    domain: Stream, sights: Sights, kinds: Sequence[UserKind], w: int
) -> ExplicitFamily:
    flags, tight = _flags_together(domain, sights.shapes)
    starts = domain.times - w + 1
    pieces: list[list[Piece]] = []
    for s, sight in enumerate(sights.shapes):
        tight = tight and sight.attained(w, flags[s])
        along = _influence_along(
            sight, domain.times, w, partial(_alone, sight, flags[s])
        )
        blocks = [k * starts for k, kind in enumerate(kinds) if kind.seen[s]]
        pieces.append([(block, *run) for block in blocks for run in along])

    def describe(at: int) -> Change:
        k, start = divmod(at, starts)
        return _window_change(start, w, kinds[k].words)

    runs = sights.runs(pieces, width=starts)
    return ExplicitFamily(starts * len(kinds), runs, describe=describe, tight=tight)


def _windows_of_any_users(
    domain: Stream, sights: Sights, w: int, *, tight: bool
) -> ExplicitFamily:
    flags, single = _flags_together(domain, sights.shapes)
    pieces: list[list[Piece]] = []
    for s, sight in enumerate(sights.shapes):
        along = _influence_along(
            sight, domain.times, w, partial(_apart, sight, flags[s])
        )
        pieces.append([(0, *run) for run in along])
    exact = tight and single and all(s.column.faithful for s in sights.shapes)
    starts = domain.times - w + 1
    return ExplicitFamily(
        starts,
        sights.runs(pieces, width=starts),
        describe=lambda start: _window_change(start, w, ", of any users"),
        tight=exact,
    )


def _alone(sight: StreamSight, flags: Flags, positions: Sequence[int]) -> Exact:
    return sight.one_user(positions, flags)


def _apart(sight: StreamSight, flags: Flags, positions: Sequence[int]) -> Exact:
    return sight.spread(positions, flags)


def _one_assignment_is_worst(users: int, sights: Sequence[StreamSight], w: int) -> bool:
    """Return whether one assignment of users is the worst for all columns."""
    return users >= w or not any(_looks_at_users(sight, w) for sight in sights)


def _looks_at_users(sight: StreamSight, w: int) -> bool:
    """Return whether the unit looks at which user an entry of the window belongs to."""
    personal = isinstance(sight.unit, User | LTrajectory | Element) or (
        isinstance(sight.unit, WEvent) and sight.unit.single_user
    )
    return personal and len(sight.times) > 1


def _influence_along(
    sight: StreamSight,
    times: int,
    w: int,
    influence: Callable[[Sequence[int]], Exact],
) -> list[Run]:
    """Return the influence of the windows as runs over their starts.

    Runs of successive times go as if windows could start before the stream and end
    after it, so that they can be moved.
    """
    if not sight.contiguous:
        values = [
            influence(sight.positions(_times_inside(sight.times, start, w)))
            for start in range(times - w + 1)
        ]
        return _joined_runs((s, s + 1, value) for s, value in enumerate(values))
    first, final = sight.times[0], sight.times[-1]
    if first == final:
        value = influence((0,))
        return [(first - w + 1, first + 1, value)] if value else []
    most = min(w, len(sight.times))
    known = [influence(range(n)) for n in range(most + 1)]
    pieces: list[Run] = []
    for n in range(1, most):  # the window slides in
        pieces.append((first - w + n, first - w + n + 1, known[n]))
    pieces.append((first - w + most, final - most + 2, known[most]))
    for n in range(most - 1, 0, -1):  # and out
        pieces.append((final - n + 1, final - n + 2, known[n]))
    return _joined_runs(pieces)


def _times_inside(times: Sequence[int], start: int, w: int) -> list[int]:
    return [time for time in times if start <= time < start + w]


def _joined_runs(pieces: Iterable[Run]) -> list[Run]:
    runs: list[Run] = []
    for start, stop, value in pieces:
        if not value:
            continue
        if runs and runs[-1][1] == start and runs[-1][2] == value:
            runs[-1] = (runs[-1][0], stop, value)
        else:
            runs.append((start, stop, value))
    return runs


def _window_change(start: int, w: int, whose: str) -> Change:
    times = tuple(range(start, start + w)) if w <= 24 else (start, start + w - 1)
    if w == 1:
        words = f"change one entry at time {start}{whose}"
    else:
        last = start + w - 1
        words = f"change one entry at each of the times {start} to {last}{whose}"
    return Change("window", words, (("start", start), ("length", w), ("times", times)))


def _windows_assigned(
    domain: Stream, sights: Sequence[StreamSight], w: int
) -> ChangeFamily:
    """List every way of handing the times of a window to kinds of users."""
    kinds = user_kinds(domain, sights)
    flags, tight = _flags_together(domain, sights)
    rows = []
    for start in range(domain.times - w + 1):
        times = range(start, start + w)
        for chosen in product(range(len(kinds)), repeat=w):
            influences: dict[int, Exact] = {}
            for j, sight in enumerate(sights):
                value = _shared_influence(
                    sight, times, chosen, kinds, j=j, flags=flags[j]
                )
                if value:
                    influences[j] = value
            users = tuple(kinds[k].example for k in chosen)
            change = _window_change(start, w, f", of users like {users}")
            rows.append(Row(change, influences))
    free = all(kind.number >= w for kind in kinds) or not any(
        _looks_at_users(sight, w) for sight in sights
    )
    exact = tight and free and all(sight.column.faithful for sight in sights)
    return listed(rows, tight=exact)


def _shared_influence(
    sight: StreamSight,
    times: Sequence[int],
    chosen: Sequence[int],
    kinds: Sequence[UserKind],
    *,
    j: int,
    flags: Flags,
) -> Exact:
    """Bound the influence where each kind of user has its share of the times."""
    mine = [t for t, k in zip(times, chosen, strict=True) if kinds[k].seen[j]]
    return sight.spread(sight.positions(mine), flags)


# Any few times of one user: recorded segments, and users with a participation cap.

Choice = Literal["relocate", "leave", "replace"]
"""Other locations at recorded times; a user who leaves; a user's data replaced."""

# Sets of times up to which each one is a class of its own.
_LISTED_SETS = 3_000


@dataclass(frozen=True, slots=True)
class _TimeChoice:
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
    plan = _time_choice(domain, sights, most, mode)
    kinds = user_kinds(domain, sights)
    number = 3 if mode == "replace" else 2
    if number**domain.times * len(kinds) <= _LISTED_SETS:
        return _listed_choices(plan, sights, kinds)
    parts = [_heaviest_choice(plan, sights, kind) for kind in kinds]
    return parts[0] if len(parts) == 1 else UnionFamily(parts)


def _time_choice(
    domain: Stream, sights: Sequence[StreamSight], most: int, mode: Choice
) -> _TimeChoice:
    (moving,) = palettes(domain, sights, "relocate")
    nothing = tuple(Flags(0) for _ in sights)
    if mode == "relocate":
        return _TimeChoice(
            domain, mode, most, moving.together(), nothing, moving.single
        )
    (coming,) = palettes(domain, sights, "add-remove")
    exact = coming.single and (mode == "leave" or moving.single)
    twice = moving.together() if mode == "replace" else nothing
    return _TimeChoice(domain, mode, most, coming.together(), twice, exact)


def _chosen_sets(
    plan: _TimeChoice,
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
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


def _listed_choices(
    plan: _TimeChoice, sights: Sequence[StreamSight], kinds: Sequence[UserKind]
) -> ChangeFamily:
    rows = []
    for kind in kinds:
        for once, twice in _chosen_sets(plan):
            influences: dict[int, Exact] = {}
            for j, sight in enumerate(sights):
                value = (
                    _choice_influence(plan, sight, j, once, twice)
                    if kind.seen[j]
                    else 0
                )
                if value:
                    influences[j] = value
            rows.append(Row(_choice_change(plan, kind, once, twice), influences))
    tight = plan.exact and all(_choice_exact(plan, sight) for sight in sights)
    return listed(rows, tight=tight)


def _choice_exact(plan: _TimeChoice, sight: StreamSight) -> bool:
    # Staying present on the view takes recorded times away from those that change.
    present = isinstance(sight.unit, User) and sight.unit.add_remove
    loose = present and plan.mode == "replace" and len(sight.times) > 1
    weight = 1 if plan.mode == "leave" else 2
    exact = sight.attained(plan.largest, Flags(weight, 2), leaves=plan.leaves)
    return exact and not loose


def _choice_influence(
    plan: _TimeChoice,
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
    return sight.one_user(touched, _joined_flags(one, both, second), leaves=plan.leaves)


def _joined_flags(one: Flags, both: Flags, second: Sequence[int]) -> Flags:
    if not second:
        return one
    return Flags(
        max(one.weight, both.weight),
        max(one.clusters, both.clusters),
        one.gap or both.gap,
    )


def _choice_change(
    plan: _TimeChoice, kind: UserKind, once: tuple[int, ...], twice: tuple[int, ...]
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


def _heaviest_choice(
    plan: _TimeChoice, sights: Sequence[StreamSight], kind: UserKind
) -> TopFamily:
    columns: dict[int, SlotColumn] = {}
    tight = plan.exact
    for j, sight in enumerate(sights):
        if not kind.seen[j]:
            columns[j] = SlotColumn(None, 0, 0, 0)
            continue
        columns[j], exact = _slot_column(plan, sight, j)
        tight = tight and exact and sight.column.faithful
    return TopFamily(
        plan.domain.times,
        plan.most,
        columns=columns,
        replace=plan.mode == "replace",
        equal_sets=True,
        describe=lambda once, twice: _choice_change(plan, kind, once, twice),
        tight=tight,
        notes=_choice_notes(plan),
    )


def _choice_notes(plan: _TimeChoice) -> tuple[str, ...]:
    if plan.mode == "relocate":
        return ()
    return (f"every user is recorded at most {plan.most} times",)


def _slot_column(
    plan: _TimeChoice, sight: StreamSight, j: int
) -> tuple[SlotColumn, bool]:
    """Return how a column sees a choice of times, and whether it is exact."""
    times = tuple(sight.times)
    if len(times) == 1:
        one = _choice_influence(plan, sight, j, times, ())
        both = _choice_influence(plan, sight, j, (), times)
        return SlotColumn(times, one, both, max(one, both)), True
    if isinstance(sight.unit, Event) and sight.column.additive:
        return _event_column(plan, sight, j)
    return _constant_column(plan, sight, j)


def _event_column(
    plan: _TimeChoice, sight: StreamSight, j: int
) -> tuple[SlotColumn, bool]:
    times = tuple(sight.times)
    one = _choice_influence(plan, sight, j, times[:1], ())
    both = _choice_influence(plan, sight, j, (), times[:1])
    seen = min(len(times), plan.largest)
    if plan.mode != "replace":
        most = _choice_influence(plan, sight, j, times[:seen], ())
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


def _constant_column(
    plan: _TimeChoice, sight: StreamSight, j: int
) -> tuple[SlotColumn, bool]:
    times = tuple(sight.times)
    seen = min(len(times), plan.largest)
    flags = _joined_flags(plan.once[j], plan.twice[j], times if plan.in_both else ())
    unit = sight.unit
    if isinstance(unit, FreeLunch | User):
        most = sight.one_user(range(len(times)), flags, leaves=plan.leaves)
        least = min(plan.most, plan.domain.times)
        always = plan.domain.times - len(times) < least
        return SlotColumn(None, 0, 0, most), always and _choice_exact(plan, sight)
    if plan.mode == "relocate" and sight.counts_recorded:
        most = sight.one_user(range(seen), flags)
        return SlotColumn(None, 0, 0, most), len(times) == plan.domain.times
    if isinstance(unit, Element) and plan.in_both and flags.clusters > 1:
        seen = min(seen, plan.most)  # a time in both sets takes the room of two
    cover = sight.largest_cover(seen)
    apart = [3 * i * plan.domain.times for i in range(int(cover))]
    most = sight.one_user(apart, flags, leaves=plan.leaves)
    return SlotColumn(None, 0, 0, most), False

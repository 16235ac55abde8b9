"""Change classes of streams: cells, windows, segments, users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from undertow.privacy.exact import Exact
from undertow.spaces.base import Granularity
from undertow.spaces.change import Change, ChangeFamily, Column
from undertow.spaces.domain import Stream
from undertow.spaces.granularity import (
    Element,
    Event,
    FreeLunch,
    Group,
    LTrajectory,
    User,
    WEvent,
)
from undertow.spaces.influence.families import (
    IndependentFamily,
    LeastFamily,
    RepeatedFamily,
)
from undertow.spaces.influence.reduction import Reduced, grow
from undertow.spaces.influence.run_table import Piece
from undertow.spaces.influence.runs import ExplicitFamily
from undertow.spaces.influence.stream_choice import Choice, chosen_times
from undertow.spaces.influence.stream_location import location_family
from undertow.spaces.influence.stream_palette import Mode, Palette, palettes
from undertow.spaces.influence.stream_sights import (
    PlainColumns,
    Sights,
    plain_columns,
)
from undertow.spaces.influence.stream_units import stream_sight
from undertow.spaces.influence.stream_users import UserKind, user_kinds
from undertow.spaces.influence.stream_window import window_family

__all__ = ["stream_family"]


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

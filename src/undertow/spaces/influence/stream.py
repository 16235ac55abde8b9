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
from undertow.spaces.influence.reduction import Reduced, grow, reduce_column
from undertow.spaces.influence.runs import ExplicitFamily, Run
from undertow.spaces.influence.stream_choice import Choice, chosen_times
from undertow.spaces.influence.stream_location import location_family
from undertow.spaces.influence.stream_palette import Mode, Palette, palettes
from undertow.spaces.influence.stream_units import StreamSight, stream_sight
from undertow.spaces.influence.stream_users import UserKind, user_kinds
from undertow.spaces.influence.stream_window import window_family
from undertow.spaces.view import At

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
    plain = [reduce_column(column, domain) for column in columns]
    return _family(domain, target, plain)


def _family(
    domain: Stream, target: Granularity, plain: Sequence[Reduced]
) -> ChangeFamily | None:
    if isinstance(target, Group):
        return _repeated(domain, target, plain)
    sights = _sights(domain, target, plain)
    family = _route(domain, target, sights)
    located = [j for j, sight in enumerate(sights) if sight.values is not None]
    if family is None or family.tight or not located:
        return family
    return LeastFamily([family, _by_location(domain, target, sights, located)])


def _by_location(
    domain: Stream,
    target: Granularity,
    sights: Sequence[StreamSight],
    located: Sequence[int],
) -> ChangeFamily:
    """Bound views of locations by pairs of locations, beside all other views."""
    mode: Mode = "replace"
    if getattr(target, "add_remove", False):
        mode = "add-remove"
    elif isinstance(target, LTrajectory) and not target.moves_gaps(domain):
        mode = "relocate"
    seeing = [sights[j] for j in located]
    cells = _cell_number(domain, target)
    part = location_family(domain, seeing, mode=mode, cells=cells)
    others = [j for j in range(len(sights)) if j not in set(located)]
    rest = _route(domain, target, [sights[j] for j in others])
    assert rest is not None
    return IndependentFamily([(part, located), (rest, others)])


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


def _route(
    domain: Stream, target: Granularity, sights: Sequence[StreamSight]
) -> ChangeFamily | None:
    if isinstance(target, Event):
        return _cells(domain, target, sights)
    if isinstance(target, WEvent):
        return window_family(domain, sights, w=target.w, one_user=target.single_user)
    if isinstance(target, LTrajectory):
        if target.moves_gaps(domain):
            return window_family(domain, sights, w=target.length, one_user=True)
        return chosen_times(domain, sights, most=target.length, mode="relocate")
    if isinstance(target, User):
        return _users(domain, target, sights)
    if isinstance(target, Element):
        return _contents(domain, sights)
    if isinstance(target, FreeLunch):
        return _everything(domain, sights)
    return None


def _sights(
    domain: Stream, target: Granularity, plain: Sequence[Reduced]
) -> list[StreamSight]:
    """Return how the columns see the stream; single times are looked at once."""
    alike: dict[tuple[object, ...], StreamSight] = {}
    sights: list[StreamSight] = []
    for column in plain:
        view = column.view
        if not isinstance(view, At):
            sights.append(stream_sight(_within_cap(column, target, domain), domain))
            continue
        key = (column.unit, column.setting, column.steps, column.faithful)
        if key not in alike:
            alike[key] = stream_sight(_within_cap(column, target, domain), domain)
        sights.append(alike[key].moved_to(view.time))
    return sights


def _within_cap(column: Reduced, target: Granularity, domain: Stream) -> Reduced:
    """Give up a claim about capped users where the change may leave the cap."""
    unit = column.unit
    if not isinstance(unit, User) or unit.max_times is None or domain.regular:
        return column
    times = getattr(column.view, "times", None)
    seen = domain.times if times is None else len(times)
    step = target.base if isinstance(target, Group) else target
    cap = step.max_times if isinstance(step, User) else None
    if seen <= unit.max_times or (cap is not None and cap <= unit.max_times):
        return column
    lost: tuple[tuple[str, Exact], ...] = (*column.steps, ("scale", math.inf))
    return replace(column, unit=FreeLunch(), steps=lost, faithful=False)


def _cells(
    domain: Stream, target: Event, sights: Sequence[StreamSight]
) -> ExplicitFamily:
    mode: Mode = "add-remove" if target.add_remove else "replace"
    (palette,) = palettes(domain, sights, mode)
    kinds = user_kinds(domain, sights)
    times, block = domain.times, domain.times * len(kinds)
    runs: dict[int, list[Run]] = {}
    for j, sight in enumerate(sights):
        held = runs.setdefault(j, [])
        for c, choice in enumerate(palette.choices):
            influence = sight.one_user(sight.positions(sight.times[:1]), choice[j])
            for k, kind in enumerate(kinds):
                if influence and kind.seen[j]:
                    start = c * block + k * times
                    held.extend(_stretches(sight.times, start, influence))

    def describe(at: int) -> Change:
        kind, time = divmod(at % block, times)
        return _cell_change(kinds[kind], time, add_remove=target.add_remove)

    return ExplicitFamily(
        block * len(palette.choices),
        runs,
        describe=describe,
        tight=palette.exact and all(sight.column.faithful for sight in sights),
    )


def _stretches(times: Sequence[int], start: int, influence: Exact) -> list[Run]:
    """Join successive times into runs."""
    if times[-1] - times[0] == len(times) - 1:
        return [(start + times[0], start + times[-1] + 1, influence)]
    runs: list[Run] = []
    for time in times:
        at = start + time
        if runs and runs[-1][1] == at:
            runs[-1] = (runs[-1][0], at + 1, influence)
        else:
            runs.append((at, at + 1, influence))
    return runs


def _cell_change(kind: UserKind, time: int, *, add_remove: bool) -> Change:
    verb = "add or remove the event" if add_remove else "change the cell"
    details = (("users", kind.example), ("times", (time,)))
    return Change("event", f"{verb} at time {time}{kind.words}", details)


def _users(domain: Stream, target: User, sights: Sequence[StreamSight]) -> ChangeFamily:
    cap = target.max_times
    if cap is not None and cap < domain.times:
        choice: Choice = "leave" if target.add_remove else "replace"
        return chosen_times(domain, sights, most=cap, mode=choice)
    mode: Mode = "add-remove" if target.add_remove else "replace"
    (palette,) = palettes(domain, sights, mode)
    verb = "add or remove all data" if target.add_remove else "replace all data"
    return _whole_rows(domain, sights, [palette], verb, leaves=target.add_remove)


def _contents(domain: Stream, sights: Sequence[StreamSight]) -> ExplicitFamily:
    found = palettes(domain, sights, "element")
    return _whole_rows(domain, sights, found, "change the content", within=True)


def _whole_rows(
    domain: Stream,
    sights: Sequence[StreamSight],
    found: Sequence[Palette],
    verb: str,
    *,
    leaves: bool = False,
    within: bool = False,
) -> ExplicitFamily:
    kinds = user_kinds(domain, sights)
    worst = [palette.together() for palette in found]
    runs: dict[int, list[Run]] = {}
    for j, sight in enumerate(sights):
        whole = sight.positions(sight.times)
        for p, flags in enumerate(worst):
            influence = sight.one_user(whole, flags[j], leaves=leaves)
            if within and influence and isinstance(sight.unit, Element):
                influence = sight.column.finish(1)  # the content of one cluster
            for k, kind in enumerate(kinds):
                if influence and kind.seen[j]:
                    at = p * len(kinds) + k
                    runs.setdefault(j, []).append((at, at + 1, influence))

    def describe(at: int) -> Change:
        which, k = divmod(at, len(kinds))
        words = f"{verb}{found[which].label}{kinds[k].words}"
        return Change("user", words, (("users", kinds[k].example),))

    tight = all(palette.single for palette in found) and all(
        sight.attained(len(sight.times), flags[j], leaves=leaves) or within
        for flags in worst
        for j, sight in enumerate(sights)
    )
    return ExplicitFamily(len(kinds) * len(found), runs, describe=describe, tight=tight)


def _everything(domain: Stream, sights: Sequence[StreamSight]) -> ExplicitFamily:
    (palette,) = palettes(domain, sights, "replace")
    flags = palette.together()
    runs: dict[int, list[Run]] = {}
    for j, sight in enumerate(sights):
        influence = sight.everyone(flags[j])
        if influence:
            runs[j] = [(0, 1, influence)]
    exact = all(s.attained(len(s.times), flags[j]) for j, s in enumerate(sights))
    return ExplicitFamily(
        1,
        runs,
        describe=lambda at: Change("all", "replace the whole data"),
        tight=palette.single and exact,
    )


def _repeated(
    domain: Stream, target: Group, plain: Sequence[Reduced]
) -> ChangeFamily | None:
    one = _family(domain, target.base, plain)
    if one is None:
        return None
    capped = {j: grow(column) for j, column in enumerate(plain) if not column.additive}
    # Equal changes of different users: at least as many as there are steps.
    same = all(getattr(column.view, "users", None) is None for column in plain)
    room = same and domain.users >= target.size * _users_per_step(target.base)
    return RepeatedFamily(one, target.size, capped=capped, tight=room)


def _users_per_step(base: Granularity) -> float:
    if isinstance(base, FreeLunch | Group):
        return math.inf
    return base.w if isinstance(base, WEvent) and not base.single_user else 1

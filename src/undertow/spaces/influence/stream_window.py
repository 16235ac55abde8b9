"""Windows of successive times: one class per start, columns as runs over the starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product

from undertow.privacy.exact import Exact
from undertow.spaces.change import Change, ChangeFamily, Row
from undertow.spaces.domain import Stream
from undertow.spaces.granularity import Element, LTrajectory, User, WEvent
from undertow.spaces.influence.run_table import Piece
from undertow.spaces.influence.runs import ExplicitFamily, Run, listed
from undertow.spaces.influence.stream_palette import palettes
from undertow.spaces.influence.stream_sights import Sights
from undertow.spaces.influence.stream_units import Flags, StreamSight
from undertow.spaces.influence.stream_users import UserKind, user_kinds

__all__ = ["window_family"]

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
        return _one_user(domain, sights, kinds, w)
    if len(kinds) == 1:
        return _mixed(domain, sights, w, tight=_free(domain.users, sights.shapes, w))
    starts = domain.times - w + 1
    if len(kinds) ** w * starts <= _LISTED_WINDOWS:
        return _assigned(domain, sights.each(), w)
    return _mixed(domain, sights, w, tight=False)


def _flags(
    domain: Stream, sights: Sequence[StreamSight]
) -> tuple[tuple[Flags, ...], bool]:
    (palette,) = palettes(domain, sights, "replace")
    return palette.together(), palette.single


def _one_user(
    domain: Stream, sights: Sights, kinds: Sequence[UserKind], w: int
) -> ExplicitFamily:
    flags, tight = _flags(domain, sights.shapes)
    starts = domain.times - w + 1
    pieces: list[list[Piece]] = []
    for s, sight in enumerate(sights.shapes):
        tight = tight and sight.attained(w, flags[s])
        along = _along(sight, domain.times, w, partial(_alone, sight, flags[s]))
        blocks = [k * starts for k, kind in enumerate(kinds) if kind.seen[s]]
        pieces.append([(block, *run) for block in blocks for run in along])

    def describe(at: int) -> Change:
        k, start = divmod(at, starts)
        return _window(start, w, kinds[k].words)

    runs = sights.runs(pieces, width=starts)
    return ExplicitFamily(starts * len(kinds), runs, describe=describe, tight=tight)


def _mixed(domain: Stream, sights: Sights, w: int, *, tight: bool) -> ExplicitFamily:
    flags, single = _flags(domain, sights.shapes)
    pieces: list[list[Piece]] = []
    for s, sight in enumerate(sights.shapes):
        along = _along(sight, domain.times, w, partial(_apart, sight, flags[s]))
        pieces.append([(0, *run) for run in along])
    exact = tight and single and all(s.column.faithful for s in sights.shapes)
    starts = domain.times - w + 1
    return ExplicitFamily(
        starts,
        sights.runs(pieces, width=starts),
        describe=lambda start: _window(start, w, ", of any users"),
        tight=exact,
    )


def _alone(sight: StreamSight, flags: Flags, positions: Sequence[int]) -> Exact:
    return sight.one_user(positions, flags)


def _apart(sight: StreamSight, flags: Flags, positions: Sequence[int]) -> Exact:
    return sight.spread(positions, flags)


def _free(users: int, sights: Sequence[StreamSight], w: int) -> bool:
    """Return whether one assignment of users is the worst for all columns."""
    return users >= w or not any(_cares(sight, w) for sight in sights)


def _cares(sight: StreamSight, w: int) -> bool:
    """Return whether the unit looks at which user an entry of the window belongs to."""
    personal = isinstance(sight.unit, User | LTrajectory | Element) or (
        isinstance(sight.unit, WEvent) and sight.unit.single_user
    )
    return personal and len(sight.times) > 1


def _along(
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
            influence(sight.positions(_inside(sight.times, start, w)))
            for start in range(times - w + 1)
        ]
        return _join((s, s + 1, value) for s, value in enumerate(values))
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
    return _join(pieces)


def _inside(times: Sequence[int], start: int, w: int) -> list[int]:
    return [time for time in times if start <= time < start + w]


def _join(pieces: Iterable[Run]) -> list[Run]:
    runs: list[Run] = []
    for start, stop, value in pieces:
        if not value:
            continue
        if runs and runs[-1][1] == start and runs[-1][2] == value:
            runs[-1] = (runs[-1][0], stop, value)
        else:
            runs.append((start, stop, value))
    return runs


def _window(start: int, w: int, whose: str) -> Change:
    times = tuple(range(start, start + w)) if w <= 24 else (start, start + w - 1)
    if w == 1:
        words = f"change one entry at time {start}{whose}"
    else:
        last = start + w - 1
        words = f"change one entry at each of the times {start} to {last}{whose}"
    return Change("window", words, (("start", start), ("length", w), ("times", times)))


def _assigned(domain: Stream, sights: Sequence[StreamSight], w: int) -> ChangeFamily:
    """List every way of handing the times of a window to kinds of users."""
    kinds = user_kinds(domain, sights)
    flags, tight = _flags(domain, sights)
    rows = []
    for start in range(domain.times - w + 1):
        times = range(start, start + w)
        for chosen in product(range(len(kinds)), repeat=w):
            influences: dict[int, Exact] = {}
            for j, sight in enumerate(sights):
                value = _shared(sight, times, chosen, kinds, j=j, flags=flags[j])
                if value:
                    influences[j] = value
            users = tuple(kinds[k].example for k in chosen)
            change = _window(start, w, f", of users like {users}")
            rows.append(Row(change, influences))
    free = all(kind.number >= w for kind in kinds) or not any(
        _cares(sight, w) for sight in sights
    )
    exact = tight and free and all(sight.column.faithful for sight in sights)
    return listed(rows, tight=exact)


def _shared(
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

"""Neighbour pairs of a stream that attain a transfer factor."""

from __future__ import annotations

from typing import Any

from undertow.spaces.domain import Stream
from undertow.spaces.transfer_unit import Unit, spread_times

__all__ = ["stream_pair"]

# A pair is shown only where it has at most this many cells.
_SHOWN_CELLS = 100_000

Changes = dict[tuple[int, int], tuple[Any, Any]]


def stream_pair(have: Unit, want: Unit, domain: Stream) -> tuple[Any, Any] | None:
    """Return neighbours of `want` that are as far apart in `have` as any.

    None where the stream is too large to write out, and at element level, where a
    factor is stated without its pair.
    """
    if domain.users * domain.times > _SHOWN_CELLS or have.family == "element":
        return None
    if have.cap is not None and (want.cap is None or want.cap > have.cap):
        return _beyond_cap(want, domain)
    if want.family == "any" or want.family in ("window", "crowd"):
        background, changes = _cell_changes(have, want, domain)
    else:
        background, changes = _one_user(have, want, domain)
    return _matrices(background, changes, domain)


def _two(domain: Stream) -> tuple[Any, Any]:
    """Return two different contents of a cell, places first."""
    places = (0, 1) if domain.values is None else domain.values
    return places[0], places[1] if len(places) > 1 else None


def _cell_changes(have: Unit, want: Unit, domain: Stream) -> tuple[Any, Changes]:
    n, old_new = domain.users, _two(domain)
    stays = have.family == "people" and old_new[1] is None
    times = range(1 if stays else domain.times)  # a user of one place keeps the rest
    if have.family == "segment":
        old_new = (old_new[0], None)  # a gap moves, which the segment never does
    if want.family == "any":
        cells = [(u, t) for u in range(n) for t in times]
    elif want.family == "window":
        cells = [(0, t) for t in times[: want.reach]]
    else:
        # In each run of the other's window length every user changes at most once.
        run = have.reach if have.family == "window" else 1
        run = n if have.family == "people" else run
        cells = [(min(t % run, n - 1), t) for t in range(want.reach)]
    return old_new[0], dict.fromkeys(cells, old_new)


def _one_user(have: Unit, want: Unit, domain: Stream) -> tuple[Any, Changes]:
    old, new = _two(domain)
    number = spread_times(want, domain)
    times = _apart(number, have, domain)
    if want.family == "events":
        keep = old if have.family == "people" else None
        return keep, {(0, times[0]): (None, old)}
    if want.family == "people":
        return None, {(0, t): (None, old) for t in times}
    if want.family == "segment":
        return None, {(0, t): (old, new) for t in times}
    if want.family == "capped":
        return None, _replacement(have, times, want.cap or 1, domain)
    return _cluster_change(have, times, domain)


def _apart(number: int, have: Unit, domain: Stream) -> list[int]:
    """Return up to `number` times as far apart as the other's window asks for."""
    step = have.reach if have.family in ("window", "crowd") else 1
    return list(range(0, domain.times, step))[:number]


def _replacement(have: Unit, times: list[int], cap: int, domain: Stream) -> Changes:
    old, new = _two(domain)
    if have.family in ("events", "people") and new is not None:
        return {(0, t): (old, new) for t in range(cap)}
    left: Changes = {(0, t): (old, None) for t in times[:cap]}
    return left | {(0, t): (None, old) for t in times[cap : 2 * cap]}


def _cluster_change(
    have: Unit, times: list[int], domain: Stream
) -> tuple[Any, Changes]:
    cluster = dict(domain.clusters or ())
    places = domain.values or ()
    twins = [
        (x, y) for x in places for y in places if x != y and cluster[x] == cluster[y]
    ]
    if twins and (domain.regular or have.family in ("events", "people")):
        return twins[0][0], dict.fromkeys([(0, t) for t in times], twins[0])
    if have.family == "people" and domain.times > 1:
        return places[0], {(0, 0): (None, places[0])}
    return None, {(0, t): (None, places[0]) for t in times}


def _beyond_cap(want: Unit, domain: Stream) -> tuple[Any, Any]:
    """Return neighbours of which one has a user recorded at every time."""
    old, new = _two(domain)
    if want.family == "people":
        times = range(want.cap or domain.times)
        return _matrices(None, {(0, t): (None, old) for t in times}, domain)
    if want.family == "capped":
        times = range(want.cap or domain.times)
        return _matrices(None, {(0, t): (old, None) for t in times}, domain)
    if want.family == "segment":
        return _matrices(old, {(0, 0): (old, new)}, domain)
    return _matrices(old, {(0, 0): (old, None)}, domain)


def _matrices(background: Any, changes: Changes, domain: Stream) -> tuple[Any, Any]:
    fill = _two(domain)[0] if domain.regular and background is None else background
    sides = []
    for side in (0, 1):
        rows = [[fill] * domain.times for _ in range(domain.users)]
        for (user, time), contents in changes.items():
            rows[user][time] = contents[side]
        sides.append(tuple(tuple(row) for row in rows))
    return sides[0], sides[1]

r"""Transfer factors by formula on streams of :math:`n` users and :math:`T` times.

Event, window, trajectory-segment and user level are one family: a step changes entries
within :math:`w` consecutive times, at most one per time, of one user or of any users.
An event is a window of one time; a user is a window of all times of one user.

========================= =================================================
from windows of w, to ... factor
========================= =================================================
v times of one user       :math:`\lceil v/w \rceil`
v times, any users        :math:`\lceil v/w \rceil`; of one user's windows
                          :math:`\lfloor v/w \rfloor \min(w,n) + \min(v \bmod w, n)`
any k times of one user   :math:`\min(k, \lceil T/w \rceil)`
any change                :math:`n \lceil T/w \rceil`
========================= =================================================
"""

from __future__ import annotations

import math

from undertow.spaces.base import Granularity
from undertow.spaces.domain import Stream
from undertow.spaces.transfer_closed import Closed, ceil_div, grouped, plain
from undertow.spaces.transfer_unit import Unit, spread_times, stream_unit
from undertow.spaces.transfer_witness import stream_pair

__all__ = ["stream_transfer"]


def stream_transfer(
    have: Granularity, want: Granularity, domain: Stream
) -> Closed | None:
    """Return the factor between granularities of streams.

    Exact but for some changes measured at element level, and for groups of another
    granularity; those are upper bounds.
    """
    (base, h), (target, g) = plain(have, domain), plain(want, domain)
    mine, theirs = stream_unit(base, domain), stream_unit(target, domain)
    if mine is None or theirs is None:
        return None
    one = _factor(mine, theirs, domain)
    whole = _factor(mine, Unit("any", domain.times), domain)
    found = grouped(one, whole, g, same=mine == theirs)
    if g == 1 and found.exact:
        found = found._replace(pair=stream_pair(mine, theirs, domain))
    return found._replace(factor=ceil_div(found.factor, h))


def _factor(have: Unit, want: Unit, domain: Stream) -> Closed:
    change = _describe(want, domain)
    if have.family == "any" or have == want:
        return Closed(1, change)
    if have.cap is not None and (want.cap is None or want.cap > have.cap):
        return Closed(math.inf, f"{change}, beyond the cap of {have.cap} times")
    if have.family in ("window", "crowd", "capped"):
        return Closed(_from_window(have, want, domain), change)
    if have.family == "events":
        return Closed(_from_events(want, domain), change)
    if have.family == "people":
        return Closed(_from_people(want, domain), change)
    if have.family == "segment":
        same = want.family == "segment"
        return Closed(ceil_div(want.reach, have.reach) if same else math.inf, change)
    return _from_element(want, domain)._replace(change=change)


def _describe(want: Unit, domain: Stream) -> str:
    return {
        "window": f"one user changes at {want.reach} consecutive times",
        "crowd": f"one entry changes at each of {want.reach} consecutive times",
        "any": f"all {domain.users} users change at all {domain.times} times",
        "events": "one event appears",
        "people": "one user appears",
        "segment": f"one user's {want.reach} successive points are moved",
        "capped": "one user is replaced by another recorded at other times",
        "element": "one cluster of one user changes",
    }[want.family]


def _from_window(have: Unit, want: Unit, domain: Stream) -> float:
    n, w = domain.users, have.reach
    if want.family == "window":
        return ceil_div(want.reach, w)
    if want.family == "crowd":
        if have.family == "crowd":
            return ceil_div(want.reach, w)
        whole, rest = divmod(want.reach, w)
        return whole * min(w, n) + min(rest, n)
    if want.family == "any":
        return n * ceil_div(domain.times, w)
    return min(spread_times(want, domain), ceil_div(domain.times, w))


def _several(domain: Stream) -> bool:
    return domain.values is None or len(domain.values) > 1


def _wide_cluster(domain: Stream) -> bool:
    return len(domain.values or ()) > len(domain.cluster_labels)


def _from_events(want: Unit, domain: Stream) -> float:
    if domain.regular:
        return math.inf
    twice = 2 if _several(domain) else 1
    if want.family == "any":
        return twice * domain.users * domain.times
    if want.family in ("people", "events"):
        return spread_times(want, domain)
    if want.family == "capped":
        cap = want.cap or domain.times
        return 2 * cap if _several(domain) else min(domain.times, 2 * cap)
    if want.family == "element":
        return domain.times * (2 if _wide_cluster(domain) else 1)
    return twice * want.reach


def _from_people(want: Unit, domain: Stream) -> float:
    if domain.regular:
        return math.inf
    elsewhere = domain.times > 1  # another event may stay, so that the user does
    twice = 2 if elsewhere or _several(domain) else 1
    if want.family == "people":
        return 1
    if want.family == "events":
        return 2 if elsewhere else 1
    if want.family == "element":
        return 2 if elsewhere or _wide_cluster(domain) else 1
    if want.family in ("crowd", "any"):
        reach = want.reach if want.family == "crowd" else domain.users
        return twice * min(reach, domain.users)
    return twice


def _from_element(want: Unit, domain: Stream) -> Closed:
    """Bound the element distance: two steps per point, or all clusters out and in."""
    labels, n = len(domain.cluster_labels), domain.users
    if domain.regular:
        return Closed(math.inf, "")
    if want.family == "events":
        return Closed(1, "")
    if want.family == "people":
        return Closed(min(labels, spread_times(want, domain)), "")
    if want.family == "capped":
        points = want.cap or domain.times
        return Closed(min(2 * points, 2 * labels - 1), "", exact=points == 1)
    points = domain.times if want.family == "any" else want.reach
    each = min(2 * points, 2 * labels - 1)
    # All clusters can wait for each other once every ordered pair has a time.
    attained = points == 1 or points >= labels * (labels - 1)
    if want.family == "any":
        return Closed(n * each, "", exact=attained)
    if want.family == "crowd":
        return Closed(min(2 * points, n * each), "", exact=n >= points)
    return Closed(each, "", exact=attained)

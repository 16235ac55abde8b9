"""What one step of a granularity is on a stream, in one common form."""

from __future__ import annotations

from typing import Literal, NamedTuple

from undertow.spaces.base import Granularity
from undertow.spaces.domain import Stream
from undertow.spaces.granularity.element import Element
from undertow.spaces.granularity.generic import FreeLunch
from undertow.spaces.granularity.stream import Event, LTrajectory, WEvent
from undertow.spaces.granularity.user import User

__all__ = ["Family", "Unit", "spread_times", "stream_unit"]

Family = Literal[
    "window", "crowd", "any", "events", "people", "segment", "capped", "element"
]


class Unit(NamedTuple):
    """A granularity on one stream: its family, its reach in times, its cap.

    ``window``: entries of one user within `reach` times; ``crowd``: one entry per time
    within `reach` times; ``any``: everything; ``events``: one event comes or goes;
    ``people``: one user comes or goes; ``segment``: `reach` recorded points of one user
    whose gaps stay; ``capped``: one user with at most `cap` recorded times is replaced;
    ``element``: one cluster of one user.
    """

    family: Family
    reach: int
    cap: int | None = None


def stream_unit(granularity: Granularity, domain: Stream) -> Unit | None:
    """Return the unit a granularity stands for on `domain`."""
    times = domain.times
    if isinstance(granularity, FreeLunch):
        return Unit("any", times)
    if isinstance(granularity, Event):
        return Unit("events" if granularity.add_remove else "window", 1)
    if isinstance(granularity, WEvent):
        alone = granularity.single_user or domain.users == 1 or granularity.w == 1
        return Unit("window" if alone else "crowd", min(granularity.w, times))
    if isinstance(granularity, LTrajectory):
        moves = granularity.moves_gaps(domain)
        return Unit("window" if moves else "segment", min(granularity.length, times))
    if isinstance(granularity, User):
        return _user_unit(granularity, times)
    if isinstance(granularity, Element):
        one = len(domain.cluster_labels) == 1
        return Unit("window" if one else "element", times)
    return None


def _user_unit(granularity: User, times: int) -> Unit:
    cap = granularity.max_times
    cap = None if cap is None or cap >= times else cap
    if granularity.add_remove:
        return Unit("people", times, cap)
    return Unit("window", times) if cap is None else Unit("capped", times, cap)


def spread_times(want: Unit, domain: Stream) -> int:
    """Return how many times of one user a step can change, wherever they lie."""
    if want.family == "events":
        return 1
    if want.family == "capped":
        return min(domain.times, 2 * (want.cap or domain.times))
    if want.family == "people":
        return min(domain.times, want.cap or domain.times)
    return want.reach  # segment, element

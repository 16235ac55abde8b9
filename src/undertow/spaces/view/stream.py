"""Views of streams: times, users, rectangles and locations.

Times and users are numbered from 0. A view of some times or users renumbers them from 0
in their order, so that its image is a stream again; windows on the image count the
times it kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from undertow.errors import MismatchError
from undertow.spaces.base import Domain, View
from undertow.spaces.domain import Stream
from undertow.spaces.view.general import named


class _Rectangle(View):
    """Some users at some times; None stands for all of them."""

    __slots__ = ()

    def _kept_users(self) -> frozenset[int] | None:
        return None

    def _kept_times(self) -> frozenset[int] | None:
        return None

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the sub-matrix, users and times renumbered in their order."""
        stream = _stream(self, domain)
        users = _order(self._kept_users(), stream.users)
        times = _order(self._kept_times(), stream.times)
        return tuple(tuple(database[u][t] for t in times) for u in users)

    def image(self, domain: Domain) -> Domain | None:
        """Return the stream on the kept users and times."""
        stream = _stream(self, domain)
        users, times = self._kept_users(), self._kept_times()
        return replace(
            stream,
            users=stream.users if users is None else len(users),
            times=stream.times if times is None else len(times),
        )

    def fills_image(self, domain: Domain) -> bool:
        """Return True: cells vary independently."""
        return True

    def require_domain(self, domain: Domain) -> None:
        """Require a stream that has these users and times."""
        stream = _stream(self, domain)
        for name, kept, number in (
            ("users", self._kept_users(), stream.users),
            ("times", self._kept_times(), stream.times),
        ):
            if kept is not None and not all(0 <= index < number for index in kept):
                raise ValueError(
                    f"{name} must be numbered from 0 to {number - 1} on this stream, "
                    f"got {_span(kept)}."
                )


@dataclass(frozen=True, slots=True)
class At(_Rectangle):
    """All users at one time.

    Examples
    --------
    >>> At(1).apply((("a", "b"), ("a", None)), Stream(2, 2))
    (('b',), (None,))
    """

    time: int

    def __post_init__(self) -> None:
        _whole("time", self.time)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"time {self.time}"

    @property
    def times(self) -> frozenset[int]:
        """The time."""
        return frozenset((self.time,))

    def _kept_times(self) -> frozenset[int]:
        return self.times


@dataclass(frozen=True, slots=True)
class Window(_Rectangle):
    """All users at `length` successive times from `start`."""

    start: int
    length: int

    def __post_init__(self) -> None:
        _whole("start", self.start)
        if _whole("length", self.length) < 1:
            raise ValueError(f"length must be positive, got {self.length}.")

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"times {self.start} to {self.start + self.length - 1}"

    @property
    def times(self) -> frozenset[int]:
        """The times in the window."""
        return frozenset(range(self.start, self.start + self.length))

    def require_domain(self, domain: Domain) -> None:
        """Require a stream that has these times, whose ends tell it."""
        if self.start + self.length > _stream(self, domain).times:
            _Rectangle.require_domain(self, domain)

    def _kept_times(self) -> frozenset[int]:
        return self.times


@dataclass(frozen=True, slots=True)
class Times(_Rectangle):
    """All users at any set of times."""

    times: frozenset[int]

    def __init__(self, times: Iterable[int]) -> None:
        object.__setattr__(self, "times", _indices("times", times))

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"times {_span(self.times)}"

    def _kept_times(self) -> frozenset[int]:
        return self.times


@dataclass(frozen=True, slots=True)
class Users(_Rectangle):
    """Some users at all times."""

    users: frozenset[int]

    def __init__(self, users: Iterable[int]) -> None:
        object.__setattr__(self, "users", _indices("users", users))

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"users {_span(self.users)}"

    def _kept_users(self) -> frozenset[int]:
        return self.users


@dataclass(frozen=True, slots=True)
class Cells(_Rectangle):
    """Some users at some times."""

    users: frozenset[int]
    times: frozenset[int]

    def __init__(self, users: Iterable[int], times: Iterable[int]) -> None:
        object.__setattr__(self, "users", _indices("users", users))
        object.__setattr__(self, "times", _indices("times", times))

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"users {_span(self.users)} at times {_span(self.times)}"

    def _kept_users(self) -> frozenset[int]:
        return self.users

    def _kept_times(self) -> frozenset[int]:
        return self.times


@dataclass(frozen=True, slots=True)
class Locations(View):
    """The events at some places, every other cell a gap.

    Parameters
    ----------
    values : iterable of hashable
        Locations, or labels of clusters of them.

    Examples
    --------
    >>> Locations(["a"]).apply((("a", "b"), ("a", None)), Stream(2, 2))
    (('a', None), ('a', None))
    """

    values: frozenset[Hashable]

    def __init__(self, values: Iterable[Hashable]) -> None:
        chosen = frozenset(values)
        if not chosen:
            raise ValueError("values must name at least one location, got none.")
        object.__setattr__(self, "values", chosen)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"locations {named(self.values)}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the matrix with every other cell turned into a gap."""
        stream = _stream(self, domain)
        if stream.values is None:
            return _mask(database, self.values)
        return _mask(database, frozenset(self._chosen(stream)))

    def image(self, domain: Domain) -> Domain | None:
        """Return the stream on these locations.

        It has gaps unless the locations are all that a stream without gaps has.
        """
        stream = _stream(self, domain)
        if stream.values is None:
            return replace(stream, regular=False)
        chosen = self._chosen(stream)
        clusters = stream.clusters and tuple(
            p for p in stream.clusters if p[0] in chosen
        )
        whole = stream.regular and len(chosen) == len(stream.values)
        return replace(stream, regular=whole, values=chosen, clusters=clusters)

    def fills_image(self, domain: Domain) -> bool:
        """Return whether cells vary independently, and it is known where they can gap.

        A stream without gaps that leaves its locations open may have no others than
        the ones named: then nothing is hidden, and no cell of the view is ever a gap.
        """
        stream = _stream(self, domain)
        known = stream.values is not None or not stream.regular
        return known or len(self.values) == 1

    def require_domain(self, domain: Domain) -> None:
        """Require a stream that has these locations or clusters."""
        stream = _stream(self, domain)
        if stream.values is None:
            return
        known = set(stream.values) | set(stream.cluster_labels)
        if not self.values <= known:
            raise ValueError(
                "values must be locations or clusters of the stream, got "
                f"{named(self.values - known)}."
            )
        for label in self.values & set(stream.values) & set(stream.cluster_labels):
            if {v for v in stream.values if stream.cluster_of(v) == label} != {label}:
                raise ValueError(
                    f"values must not name {label!r}, which is a location and the "
                    "label of another cluster; list the locations instead."
                )

    def _chosen(self, stream: Stream) -> tuple[Hashable, ...]:
        labels = dict(stream.clusters or ())
        return tuple(
            value
            for value in stream.values or ()
            if value in self.values or labels.get(value, value) in self.values
        )


def _mask(database: Any, chosen: frozenset[Hashable]) -> tuple[Any, ...]:
    return tuple(tuple(v if v in chosen else None for v in row) for row in database)


def _stream(view: View, domain: Domain) -> Stream:
    if isinstance(domain, Stream):
        return domain
    raise MismatchError(
        f"view {view.name} must see a domain of kind stream, got {domain.kind}."
    )


def _order(kept: frozenset[int] | None, number: int) -> Iterable[int]:
    return range(number) if kept is None else sorted(kept)


def _whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a non-negative integer, got {value!r}.")
    return value


def _indices(name: str, values: Iterable[int]) -> frozenset[int]:
    kept = frozenset(_whole(name, value) for value in values)
    if not kept:
        raise ValueError(f"{name} must name at least one index, got none.")
    return kept


def _span(indices: frozenset[int]) -> str:
    ordered = sorted(indices)
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]} to {ordered[-1]}"
    shown = [str(index) for index in ordered[:6]]
    return ", ".join(shown if len(ordered) <= 6 else [*shown, "..."])

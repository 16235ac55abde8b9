"""What can happen to one cell: pairs of locations, grouped by the views that see them.

A cell changes from one location, or the gap, to another. A view of some locations sees
only those; the rest looks like gaps to it. Locations that the same views see are
interchangeable.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from undertow.spaces.domain import Stream
from undertow.spaces.granularity import Element
from undertow.spaces.influence.stream_units import Flags, StreamSight

__all__ = ["Mode", "Palette", "location_kinds", "palettes"]

Mode = Literal["replace", "add-remove", "relocate", "element"]
"""Any change of a cell; events that come and go; other locations at the same times; the
content of one cluster."""

# Different ways of changing a cell up to which they are compared one by one.
_COMPARED_STEPS = 200


@dataclass(frozen=True, slots=True)
class Palette:
    """What a cell of one change class can do, column by column.

    Parameters
    ----------
    label : str
        In words, where it matters.
    choices : tuple of tuple of Flags
        For each way of changing a cell that no other beats, the flags of all columns.
    exact : bool
        Whether the choices are known to exist in the domain.
    """

    label: str
    choices: tuple[tuple[Flags, ...], ...]
    exact: bool

    def together(self) -> tuple[Flags, ...]:
        """Return the worst flags of each column, as if one choice had them all."""
        return tuple(_worst(flags) for flags in zip(*self.choices, strict=True))

    @property
    def single(self) -> bool:
        """Whether one choice is the worst for all columns."""
        return self.exact and len(self.choices) <= 1


@dataclass(frozen=True, slots=True)
class _Kind:
    """Locations that the same columns see; `number` counts them."""

    seen: tuple[bool, ...]
    cluster: Hashable
    number: int


def palettes(
    domain: Stream, sights: Sequence[StreamSight], mode: Mode
) -> list[Palette]:
    """Return what can happen to a cell; one palette per cluster in element mode."""
    looks = list(
        dict.fromkeys((sight.values, sight.column.setting) for sight in sights)
    )
    sets = [values for values, _ in looks]
    by_cluster = mode == "element" or any(isinstance(s.unit, Element) for s in sights)
    kinds = _kinds(domain, sets, by_cluster=by_cluster)
    exact = domain.values is not None or set(sets) <= {None}
    position = {look: at for at, look in enumerate(looks)}
    order = [position[sight.values, sight.column.setting] for sight in sights]
    matters = [
        _matters([s for s, place in zip(sights, order, strict=True) if place == at])
        for at in range(len(looks))
    ]
    stays = [domain.regular and setting == "common" for _, setting in looks]
    found = []
    for label, members in _groups(domain, kinds, mode):
        steps = _steps(members, gap=not domain.regular, mode=mode)
        choices, complete = _choices(steps, matters, stays)
        spread = tuple(tuple(flags[at] for at in order) for flags in choices)
        if any(choices):
            found.append(Palette(label, spread, exact and complete))
    return found or [Palette("", (tuple(Flags(0) for _ in sights),), True)]


def _groups(
    domain: Stream, kinds: Sequence[_Kind], mode: Mode
) -> list[tuple[str, list[_Kind]]]:
    """Return the locations a cell can go between, with words for them."""
    if mode != "element":
        return [("", list(kinds))]
    return [
        (f" of cluster {label!r}", [k for k in kinds if k.cluster == label])
        for label in domain.cluster_labels
    ]


def location_kinds(
    domain: Stream, sets: Sequence[frozenset[Hashable] | None]
) -> list[tuple[tuple[bool, ...], int]]:
    """Return which sets see each kind of location, and how many locations it holds."""
    return [(k.seen, k.number) for k in _kinds(domain, sets, by_cluster=False)]


def _kinds(
    domain: Stream,
    sets: Sequence[frozenset[Hashable] | None],
    *,
    by_cluster: bool,
) -> list[_Kind]:
    if domain.values is None:
        named = sorted({v for s in sets if s is not None for v in s}, key=repr)
        # At least two locations exist; which others do is left open.
        values: list[Hashable] = [*named, _Other(1), _Other(2)]
    else:
        values = list(domain.values)
    counts: dict[tuple[tuple[bool, ...], Hashable], int] = {}
    for value in values:
        seen = tuple(s is None or value in s for s in sets)
        cluster = domain.cluster_of(value) if by_cluster and domain.clusters else None
        counts[seen, cluster] = counts.get((seen, cluster), 0) + 1
    return [_Kind(seen, cluster, n) for (seen, cluster), n in counts.items()]


@dataclass(frozen=True, slots=True)
class _Other:
    number: int


Step = tuple[_Kind, _Kind | None]


def _steps(kinds: Sequence[_Kind], *, gap: bool, mode: Mode) -> Iterator[Step]:
    """Yield the pairs of kinds a cell can go between; None is the gap."""
    if gap and mode != "relocate":
        for kind in kinds:
            yield kind, None
    if mode == "add-remove":
        return
    for at, one in enumerate(kinds):
        if one.number > 1:
            yield one, one
        for two in kinds[at + 1 :]:
            yield one, two


def _matters(sights: Sequence[StreamSight]) -> Flags:
    """Return which flags any of the units looks at; the others are dropped."""
    sharp = any(getattr(sight.unit, "add_remove", False) for sight in sights)
    clusters = any(isinstance(sight.unit, Element) for sight in sights)
    # In the common setting an event that leaves the view may stay recorded elsewhere.
    recorded = any(
        s.counts_recorded and (s.column.setting == "view" or s.values is None)
        for s in sights
    )
    return Flags(1 + sharp, 2 * clusters, recorded)


def _choices(
    steps: Iterator[Step], matters: Sequence[Flags], stays: Sequence[bool]
) -> tuple[list[tuple[Flags, ...]], bool]:
    """Return the flags of steps that no other step beats; all joined if too many."""
    different: dict[tuple[Flags, ...], None] = {}
    for one, two in steps:
        flags = tuple(
            _seen(one, two, at, m, stays=stay)
            for at, (m, stay) in enumerate(zip(matters, stays, strict=True))
        )
        different[flags] = None
    if len(different) > _COMPARED_STEPS:
        return [tuple(_worst(flags) for flags in zip(*different, strict=True))], False
    kept = [
        flags
        for flags in different
        if not any(other != flags and _beats(other, flags) for other in different)
    ]
    return kept, True


def _seen(
    one: _Kind, two: _Kind | None, at: int, matters: Flags, *, stays: bool
) -> Flags:
    """Return what a view sees of a step; `stays`: what leaves it goes elsewhere."""
    before, after = one.seen[at], two is not None and two.seen[at]
    crossed = two is not None and one.cluster != two.cluster
    if before and after:
        return Flags(matters.weight, min(1 + crossed, matters.clusters), False)
    if before or after:
        clusters = min(1 + (stays and crossed), matters.clusters)
        return Flags(1, clusters, matters.gap)
    return Flags(0, 0, False)


def _worst(flags: Sequence[Flags]) -> Flags:
    return Flags(
        max(f.weight for f in flags),
        max(f.clusters for f in flags),
        any(f.gap for f in flags),
    )


def _beats(one: Sequence[Flags], other: Sequence[Flags]) -> bool:
    return all(
        a.weight >= b.weight and a.clusters >= b.clusters and a.gap >= b.gap
        for a, b in zip(one, other, strict=True)
    )

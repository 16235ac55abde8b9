"""The views that a partitioning rule builds, one per block."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import combinations
from typing import Any, NamedTuple

from undertow.errors import MismatchError
from undertow.spaces.base import Domain, View
from undertow.spaces.view import (
    Ids,
    IncidentEdges,
    Locations,
    Project,
    RandomBlock,
    RowPosition,
    Select,
    SortedPosition,
    Times,
    Users,
    VertexPairs,
)

__all__ = ["Cut", "block_views"]

Block = frozenset[Any]


class Cut(NamedTuple):
    """A rule with its parameters."""

    rule: str
    blocks: tuple[Block, ...] | None
    of: int
    salt: str


def block_views(cut: Cut, domain: Domain) -> tuple[View, ...]:
    """Return one view per block, checked against the domain."""
    build, kinds = _BUILDERS[cut.rule]
    if domain.kind not in kinds:
        raise MismatchError(
            f"a partition by {cut.rule} must cut a domain of kind "
            f"{' or '.join(kinds)}, got {domain.kind}."
        )
    if cut.blocks is not None:
        # The blocks fit the domain iff their union does.
        merged = cut._replace(blocks=(frozenset().union(*cut.blocks),))
        build(merged, domain)[0].require_domain(domain)
    views = build(cut, domain)
    if not views:
        raise MismatchError(
            f"a partition by {cut.rule} must have at least one block, got a domain of "
            f"kind {domain.kind} with nothing to cut by; list the blocks."
        )
    return views


def _split(elements: Iterable[Hashable]) -> tuple[Block, ...]:
    return tuple(frozenset((element,)) for element in elements)


def _by_value(cut: Cut, domain: Any) -> tuple[View, ...]:
    if domain.multi:
        raise MismatchError(
            "a partition by value must cut a table whose records have one cell each, "
            "got overlapping cells; use one view per cell in a plan instead."
        )
    blocks = cut.blocks or _split(domain.cells)
    return tuple(Select(*block) for block in blocks)


def _by_id(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(Ids(block) for block in cut.blocks or _split(domain.ids))


def _by_hash(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(RandomBlock(block, cut.of, cut.salt) for block in range(cut.of))


def _by_row(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(RowPosition(block, cut.of) for block in range(cut.of))


def _by_sorted(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(SortedPosition(block, cut.of) for block in range(cut.of))


def _by_time(cut: Cut, domain: Any) -> tuple[View, ...]:
    blocks = cut.blocks or _split(range(domain.times))
    return tuple(Times(block) for block in blocks)


def _by_user(cut: Cut, domain: Any) -> tuple[View, ...]:
    blocks = cut.blocks or _split(range(domain.users))
    return tuple(Users(block) for block in blocks)


def _by_place(cut: Cut, domain: Any) -> tuple[View, ...]:
    clusters = cut.rule == "cluster"
    places = domain.cluster_labels if clusters else domain.values
    if cut.blocks is None and not places:
        raise MismatchError(
            f"a partition by {cut.rule} must know the places, got a stream that "
            "leaves them open; list the blocks, or set values and clusters."
        )
    return tuple(Locations(block) for block in cut.blocks or _split(places))


def _by_column(cut: Cut, domain: Any) -> tuple[View, ...]:
    names = [name for name, _ in domain.attributes]
    if cut.blocks is None and not names:
        raise MismatchError(
            "a partition by column must cut a domain that names its columns, got none."
        )
    return tuple(Project(*sorted(b)) for b in cut.blocks or _split(names))


def _by_pair(cut: Cut, domain: Any) -> tuple[View, ...]:
    pairs = combinations(range(domain.vertices), 2)
    return tuple(VertexPairs(block) for block in cut.blocks or _split(pairs))


def _by_vertex(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(IncidentEdges(vertex) for vertex in range(domain.vertices))


_Builder = Callable[[Cut, Any], tuple[View, ...]]
_BUILDERS: dict[str, tuple[_Builder, tuple[str, ...]]] = {
    "value": (_by_value, ("table",)),
    "id": (_by_id, ("rows",)),
    "random": (_by_hash, ("rows",)),
    "row position": (_by_row, ("rows", "finite")),
    "sorted position": (_by_sorted, ("rows", "table", "finite")),
    "time": (_by_time, ("stream",)),
    "user": (_by_user, ("stream",)),
    "location": (_by_place, ("stream",)),
    "cluster": (_by_place, ("stream",)),
    "column": (_by_column, ("table", "rows")),
    "vertex pair": (_by_pair, ("graph",)),
    "vertex": (_by_vertex, ("graph",)),
}

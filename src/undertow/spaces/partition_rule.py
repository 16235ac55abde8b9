"""The rules by which data are cut into blocks, fixed before the data are seen."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from undertow.errors import IncompatiblePartitionError
from undertow.spaces.base import Domain, View
from undertow.spaces.partition_views import Cut, block_views
from undertow.spaces.view import Identity

__all__ = ["RULES", "Partition"]

Block = frozenset[Any]

#: The rules a partition may follow.
RULES = (
    "value",
    "row position",
    "sorted position",
    "id",
    "random",
    "time",
    "user",
    "location",
    "vertex pair",
    "vertex",
    "column",
    "cluster",
    "data",
)


@dataclass(frozen=True, slots=True)
class Partition:
    """A rule that cuts the data into blocks, fixed before the data are seen.

    Parameters
    ----------
    rule : str
        One of :data:`RULES`.
    blocks : tuple of frozenset, optional
        What goes into each block; left out, one block per cell, id, time and so on.
    of : int, optional
        How many blocks, for the rules by position and by hash.
    salt : str, optional
        For the rule by hash.
    reason : str
        For blocks computed from the data: how.

    Raises
    ------
    ValueError
        If two blocks share an element: blocks must be disjoint. (The sources print
        the opposite sign in the definition; thesis, Section 4.2.)

    Notes
    -----
    Built by the class methods. The blocks need not cover the data. The rule "vertex"
    is the one exception to disjointness: every edge lies in the stars of both ends.

    Examples
    --------
    >>> [sorted(block) for block in Partition.by_value(["N", "S"], ["W"]).blocks]
    [['N', 'S'], ['W']]
    """

    rule: str
    blocks: tuple[Block, ...] | None = None
    of: int | None = None
    salt: str | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(
                f"rule must be one of {', '.join(RULES)}, got {self.rule!r}."
            )
        _require_disjoint(self.blocks or ())

    @classmethod
    def by_value(cls, *blocks: Iterable[Hashable]) -> Partition:
        """Cut a table by the cell of a record."""
        return cls("value", _frozen(blocks))

    @classmethod
    def by_id(cls, *blocks: Iterable[Hashable]) -> Partition:
        """Cut rows by stable ids."""
        return cls("id", _frozen(blocks))

    @classmethod
    def by_time(cls, *blocks: Iterable[int]) -> Partition:
        """Cut a stream by time."""
        return cls("time", _frozen(blocks))

    @classmethod
    def by_user(cls, *blocks: Iterable[int]) -> Partition:
        """Cut a stream by user."""
        return cls("user", _frozen(blocks))

    @classmethod
    def by_location(cls, *blocks: Iterable[Hashable]) -> Partition:
        """Cut a stream by where the events happen."""
        return cls("location", _frozen(blocks))

    @classmethod
    def by_cluster(cls, *blocks: Iterable[Hashable]) -> Partition:
        """Cut a stream by the cluster of the location."""
        return cls("cluster", _frozen(blocks))

    @classmethod
    def by_column(cls, *blocks: Iterable[str]) -> Partition:
        """Cut a table or rows vertically, by attribute."""
        return cls("column", _frozen(blocks))

    @classmethod
    def by_vertex_pair(cls, *blocks: Iterable[tuple[int, int]]) -> Partition:
        """Cut a graph by vertex pair."""
        ordered = [[(min(pair), max(pair)) for pair in block] for block in blocks]
        return cls("vertex pair", _frozen(ordered))

    @classmethod
    def per_vertex(cls) -> Partition:
        """Give every vertex its own edges."""
        return cls("vertex")

    @classmethod
    def by_row_position(cls, of: int) -> Partition:
        """Deal rows out in turn, by their position."""
        return cls("row position", of=_count(of))

    @classmethod
    def by_sorted_position(cls, of: int) -> Partition:
        """Deal rows out in turn, by their position after sorting."""
        return cls("sorted position", of=_count(of))

    @classmethod
    def random(cls, of: int, *, salt: str) -> Partition:
        """Cut rows by a salted hash of their id."""
        return cls("random", of=_count(of), salt=salt)

    @classmethod
    def data_dependent(cls, reason: str) -> Partition:
        """Name a partition computed from the data, which no check accepts."""
        return cls("data", reason=reason)

    def views(self, domain: Domain) -> tuple[View, ...]:
        """Return one view per block.

        Raises
        ------
        IncompatiblePartitionError
            If the blocks are computed from the data.
        MismatchError
            If the rule makes no sense on the domain.
        """
        if self.rule == "data":
            raise IncompatiblePartitionError(
                "blocks must be fixed before the data are seen, got blocks computed "
                f"from the data ({self.reason}); fix them, or compute them from an "
                "earlier private release.",
                source="thesis, Section 4.2",
            )
        cut = Cut(self.rule, self.blocks, self.of or 1, self.salt or "")
        return block_views(cut, domain)

    def union(self, domain: Domain) -> View:
        """Return the view of everything that lies in some block."""
        if self.blocks is None:
            return Identity()
        merged = Partition(self.rule, (frozenset().union(*self.blocks),))
        return merged.views(domain)[0]


def _frozen(blocks: Iterable[Iterable[Any]]) -> tuple[Block, ...] | None:
    return tuple(frozenset(block) for block in blocks) or None


def _count(of: int) -> int:
    if isinstance(of, bool) or not isinstance(of, int) or of < 1:
        raise ValueError(f"of must be a positive integer, got {of!r}.")
    return of


def _require_disjoint(blocks: tuple[Block, ...]) -> None:
    seen: set[Any] = set()
    for at, block in enumerate(blocks):
        if not block:
            raise ValueError(f"blocks must not be empty, got block {at} empty.")
        if not seen.isdisjoint(block):
            shared = next(iter(sorted(map(repr, seen & block))))
            raise ValueError(
                f"blocks must be disjoint, got {shared} in block {at} and in an "
                "earlier one; use overlapping views in a plan instead."
            )
        seen |= block

"""Views by which row a record is: its id, a salted hash of it, or its position."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from undertow.errors import MismatchError
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.domain import Rows, Table, record_order
from undertow.spaces.granularity import (
    Attribute,
    Bounded,
    BoundedById,
    Edit,
    Unbounded,
    User,
)
from undertow.spaces.view_general import named, require_kind

__all__ = ["Ids", "RandomBlock", "RowPosition", "SortedPosition"]


@dataclass(frozen=True, slots=True)
class Ids(View):
    """The rows with these ids, in the order of the domain.

    Parameters
    ----------
    ids : iterable of hashable
        Stable ids, which no change of the data alters.
    """

    ids: frozenset[Hashable]

    def __init__(self, ids: Iterable[Hashable]) -> None:
        chosen = frozenset(ids)
        if not chosen:
            raise ValueError("ids must name at least one row, got none.")
        object.__setattr__(self, "ids", chosen)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"ids {named(self.ids)}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the values of these rows."""
        rows = _rows(self, domain)
        pairs = zip(rows.ids, database, strict=True)
        return tuple(value for key, value in pairs if key in self.ids)

    def image(self, domain: Domain) -> Domain | None:
        """Return the rows with these ids."""
        rows = _rows(self, domain)
        return replace(rows, ids=tuple(key for key in rows.ids if key in self.ids))

    def fills_image(self, domain: Domain) -> bool:
        """Return True: rows vary independently."""
        return True

    def require_domain(self, domain: Domain) -> None:
        """Require rows that have these ids."""
        known = _rows(self, domain).known_ids
        unknown = frozenset(at for at in self.ids if at not in known)
        if unknown:
            raise ValueError(
                f"ids must be ids of the rows, got {named(unknown)}; the rows have "
                "others."
            )


@dataclass(frozen=True, slots=True)
class RandomBlock(View):
    """The rows whose id falls into one of several blocks by a salted hash.

    Parameters
    ----------
    block, of : int
        Block number `block` of `of`, counted from 0.
    salt : str
        Fixed before the data are seen; another salt is another assignment.

    Notes
    -----
    The block is ``BLAKE2b(salt, id)`` modulo `of`: a function of the id alone, alike on
    every machine, so a change of values never moves a row to another block. A block
    without ids is empty.
    """

    block: int
    of: int
    salt: str

    def __post_init__(self) -> None:
        _require_block(self.block, self.of)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"random block {self.block} of {self.of}"

    def holds(self, key: Hashable) -> bool:
        """Return whether the id `key` falls into this block."""
        stable = int(key) if isinstance(key, Integral) else record_order(key)
        text = f"{len(self.salt)}:{self.salt}:{stable!r}".encode()
        digest = hashlib.blake2b(text, digest_size=16).digest()
        return int.from_bytes(digest, "big") % self.of == self.block

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the values of the rows in the block."""
        pairs = zip(_rows(self, domain).ids, database, strict=True)
        return tuple(value for key, value in pairs if self.holds(key))

    def image(self, domain: Domain) -> Domain | None:
        """Return the rows in the block."""
        rows = _rows(self, domain)
        return replace(rows, ids=tuple(key for key in rows.ids if self.holds(key)))

    def fills_image(self, domain: Domain) -> bool:
        """Return True: rows vary independently."""
        return True

    def require_domain(self, domain: Domain) -> None:
        """Require rows with ids."""
        _rows(self, domain)


@dataclass(frozen=True, slots=True)
class _Position(View):
    """Every `of`-th present row, from number `block`, in an order of its own."""

    block: int
    of: int

    def __post_init__(self) -> None:
        _require_block(self.block, self.of)

    def _ordered(self, present: list[Any]) -> list[Any]:
        """Return the present rows in the order that is dealt out."""
        return present

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the rows at these positions."""
        present = self._ordered([row for row in database if row is not None])
        room = self._places(len(domain.ids)) if isinstance(domain, Rows) else None
        return _pad(present[self.block :: self.of], room)

    def image(self, domain: Domain) -> Domain | None:
        """Return as many rows as there are positions; None on a listed domain."""
        if isinstance(domain, Rows):
            return replace(domain, ids=range(self._places(len(domain.ids))))
        return None

    def _places(self, number: int) -> int:
        return len(range(self.block, number, self.of))

    def places(self, domain: Domain) -> float:
        """Return how many positions there are at most."""
        if isinstance(domain, Rows):
            return self._places(len(domain.ids))
        most = domain.greatest_size if isinstance(domain, Table) else math.inf
        return most if most == math.inf else self._places(int(most))


@dataclass(frozen=True, slots=True)
class RowPosition(_Position):
    """Every `of`-th row, from row number `block`, counting present rows only.

    Parameters
    ----------
    block, of : int
        Positions ``block, block + of, block + 2 of, ...``, counted from 0.

    Notes
    -----
    A deleted row shifts all later ones, so one change can touch every block. Missing
    rows at the end come out as None where ids may be absent.

    Examples
    --------
    >>> RowPosition(0, 4).apply((5, 3, 8, 1), Rows(4)), RowPosition(0, 4).apply(
    ...     (None, 3, 8, 1), Rows(4, free_ids=True))
    ((5,), (3,))
    """

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"row positions {self.block} of {self.of}"

    def fills_image(self, domain: Domain) -> bool:
        """Return whether rows cannot be absent, or one position holds them all."""
        rows = isinstance(domain, Rows)
        return rows and (not _can_be_absent(domain) or self.places(domain) <= 1)

    def keeps_chains(self, unit: Granularity, domain: Domain) -> bool:
        """Return True where `unit` replaces rows: absent ones are always the last.

        Where rows come and go one by one, only the last position can change so.
        """
        known = isinstance(unit, Attribute | Bounded | BoundedById | Edit | User)
        proved = known and not getattr(unit, "add_remove", False)
        return self.fills_image(domain) or (isinstance(domain, Rows) and proved)

    def require_domain(self, domain: Domain) -> None:
        """Require rows, or listed tuples of rows."""
        require_kind(self, domain, ("rows", "finite"))


@dataclass(frozen=True, slots=True)
class SortedPosition(_Position):
    """Every `of`-th row of the table sorted by value, from position `block`.

    Parameters
    ----------
    block, of : int
        Positions ``block, block + of, block + 2 of, ...``, counted from 0.

    Notes
    -----
    Equal values are interchangeable, so ties need no rule. One changed value can shift
    every position. Missing rows at the end come out as None where ids may be absent.

    Examples
    --------
    >>> [SortedPosition(b, 3).apply((4, 3, 2), Rows(3)) for b in range(3)]
    [(2,), (3,), (4,)]
    """

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"sorted positions {self.block} of {self.of}"

    def _ordered(self, present: list[Any]) -> list[Any]:
        return sorted(present, key=record_order)

    def image(self, domain: Domain) -> Domain | None:
        """Return as many rows as there are positions; None on a listed domain."""
        if not isinstance(domain, Table):
            return _Position.image(self, domain)
        if domain.greatest_size == math.inf:
            return domain
        places = self._places(int(domain.greatest_size))
        if domain.size is None:
            return replace(domain, max_size=places)
        return replace(domain, size=places)

    def fills_image(self, domain: Domain) -> bool:
        """Return whether any multiset comes out, or a single position."""
        if isinstance(domain, Table):
            return True
        return isinstance(domain, Rows) and self.places(domain) <= 1

    def keeps_chains(self, unit: Granularity, domain: Domain) -> bool:
        """Return True where steps of `unit` can keep the order of the positions.

        Values that grow are replaced from the top, values that shrink from the bottom.
        Attributes change one by one past at most one neighbour, so at two positions.
        Without absent rows no row can come or go, in the image as in the range.
        """
        if self.fills_image(domain):
            return True
        if not isinstance(domain, Rows):
            return False
        if isinstance(unit, Attribute):
            several = [v is None or len(v) > 1 for _, v in domain.attributes]
            return self.places(domain) <= 2 or sum(several) <= 1
        if isinstance(unit, Unbounded) or getattr(unit, "add_remove", False):
            return not domain.free_ids
        return isinstance(unit, Bounded | BoundedById | Edit | User)

    def require_domain(self, domain: Domain) -> None:
        """Require rows, a table, or listed tuples of rows."""
        require_kind(self, domain, ("rows", "table", "finite"))


def _can_be_absent(domain: Domain) -> bool:
    return isinstance(domain, Rows) and domain.free_ids


def _pad(rows: list[Any], room: int | None) -> tuple[Any, ...]:
    return (*rows, *[None] * (0 if room is None else room - len(rows)))


def _require_block(block: int, of: int) -> None:
    if not (isinstance(of, int) and isinstance(block, int) and 0 <= block < of):
        raise ValueError(
            "block must be an integer from 0 up to, not including, of, "
            f"got block {block!r} of {of!r}."
        )


def _rows(view: View, domain: Domain) -> Rows:
    if isinstance(domain, Rows):
        return domain
    raise MismatchError(
        f"view {view.name} must see a domain of kind rows, got {domain.kind}."
    )

"""Views by which row a record is: its id, a salted hash of it, or its position."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from undertow.errors import MismatchError
from undertow.spaces.base import Domain, View
from undertow.spaces.domain import FiniteDomain, Rows, Table, record_order
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

    def require_domain(self, domain: Domain) -> None:
        """Require rows that have these ids."""
        unknown = self.ids - set(_rows(self, domain).ids)
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

    def require_domain(self, domain: Domain) -> None:
        """Require rows with ids."""
        _rows(self, domain)


@dataclass(frozen=True, slots=True)
class RowPosition(View):
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

    block: int
    of: int

    def __post_init__(self) -> None:
        _require_block(self.block, self.of)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"row positions {self.block} of {self.of}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the rows at these positions."""
        present = [row for row in database if row is not None]
        return _pad(present[self.block :: self.of], self._room(domain))

    def image(self, domain: Domain) -> Domain | None:
        """Return as many rows as there are positions; None on a listed domain."""
        room = self._room(domain)
        return None if room is None else replace(_rows(self, domain), ids=range(room))

    def require_domain(self, domain: Domain) -> None:
        """Require rows, or listed tuples of rows."""
        require_kind(self, domain, ("rows", "finite"))

    def _room(self, domain: Domain) -> int | None:
        if isinstance(domain, FiniteDomain):
            return None
        return len(range(self.block, len(_rows(self, domain).ids), self.of))


@dataclass(frozen=True, slots=True)
class SortedPosition(View):
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

    block: int
    of: int

    def __post_init__(self) -> None:
        _require_block(self.block, self.of)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"sorted positions {self.block} of {self.of}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the values at these positions of the sorted table."""
        present = sorted((r for r in database if r is not None), key=record_order)
        return _pad(present[self.block :: self.of], self._room(domain))

    def image(self, domain: Domain) -> Domain | None:
        """Return as many rows as there are positions; None on a listed domain."""
        room = self._room(domain)
        if room is not None:
            return replace(_rows(self, domain), ids=range(room))
        if not isinstance(domain, Table) or domain.greatest_size == float("inf"):
            return domain if isinstance(domain, Table) else None
        places = len(range(self.block, int(domain.greatest_size), self.of))
        if domain.size is None:
            return replace(domain, max_size=places)
        return replace(domain, size=places)

    def require_domain(self, domain: Domain) -> None:
        """Require rows, a table, or listed tuples of rows."""
        require_kind(self, domain, ("rows", "table", "finite"))

    def _room(self, domain: Domain) -> int | None:
        if not isinstance(domain, Rows):
            return None
        return len(range(self.block, len(domain.ids), self.of))


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

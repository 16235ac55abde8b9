"""Views of tables and rows: by what a record says, or by which row it is.

By its cell or some of its columns; by its id, a salted hash of the id, or its
position.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from numbers import Integral
from typing import Any, Literal

from undertow.errors import FalsifiedClaimError, MismatchError
from undertow.numeric.exact import Exact, Number, exact, format_up
from undertow.spaces.base import Domain, Granularity, Metric, View
from undertow.spaces.domain import Rows, Table, record_order
from undertow.spaces.metric import Euclidean, require_number
from undertow.spaces.unit import Attribute, Bounded, BoundedById, Edit, Unbounded, User
from undertow.spaces.view.general import named, require_kind


@dataclass(frozen=True, slots=True)
class Select(View):
    """The records in some cells of a table, or how many they are.

    Parameters
    ----------
    *cells : hashable
        The cells; with overlapping cells, records that lie in at least one of them.
    statistic : {"records", "count"}
        The sub-multiset itself, or its size.

    Notes
    -----
    Multiplicities are kept. A cell without records gives the empty multiset, or 0.

    Examples
    --------
    >>> table = Table(("N", "S"), values_per_cell=1)
    >>> Select("N").apply(("N", "N", "S"), table)
    ('N', 'N')
    >>> Select("N", statistic="count").apply(("N", "N", "S"), table)
    2
    """

    cells: frozenset[Hashable]
    statistic: Literal["records", "count"] = "records"

    def __init__(
        self, *cells: Hashable, statistic: Literal["records", "count"] = "records"
    ) -> None:
        if not cells:
            raise ValueError("cells must name at least one cell, got none.")
        if statistic not in ("records", "count"):
            raise ValueError(
                f"statistic must be 'records' or 'count', got {statistic!r}."
            )
        object.__setattr__(self, "cells", frozenset(cells))
        object.__setattr__(self, "statistic", statistic)

    @property
    def name(self) -> str:
        """The name used in reports."""
        prefix = "count of " if self.statistic == "count" else ""
        return f"{prefix}cells {named(self.cells)}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the sub-multiset in canonical form, or its size."""
        table = _table(self, domain)
        chosen = tuple(
            r for r in database if not self.cells.isdisjoint(table.cells_of(r))
        )
        return len(chosen) if self.statistic == "count" else chosen

    def image(self, domain: Domain) -> Domain | None:
        """Return the table on the selected cells; None for a count.

        On a table whose cells overlap it keeps all cells: a selected record may lie
        in others too.
        """
        if self.statistic == "count":
            return None
        table = _table(self, domain)
        resized = (
            table
            if self.covers(table)
            else replace(
                table,
                size=None,
                max_size=table.max_size if table.size is None else table.size,
            )
        )
        return resized if table.multi else _restrict(resized, self.cells)

    def require_domain(self, domain: Domain) -> None:
        """Require a table that has the cells."""
        unknown = self.cells - _table(self, domain).cell_set
        if unknown:
            raise ValueError(
                f"cells must be cells of the table, got {named(unknown)}; "
                f"{_way_to_cells(unknown, _table(self, domain))}."
            )

    def fills_image(self, domain: Domain) -> bool:
        """Return whether every record of the image can be selected."""
        if self.statistic == "count":
            return False
        return not _table(self, domain).multi or self.covers(domain)

    def keeps_chains(self, unit: Granularity, domain: Domain) -> bool:
        """Return True for changes of records: none need leave the cells and return."""
        by_record = isinstance(unit, Attribute | Bounded | Edit | Unbounded)
        return self.statistic == "records" and by_record

    def covers(self, domain: Domain) -> bool:
        """Return whether every record of the universe is selected."""
        table = _table(self, domain)
        labels = dict(table.attributes).get(table.cell) if table.cells else None
        if not table.multi:
            return self.cells >= (set(labels) if labels else table.cell_set)
        # Without a list of its own a table of overlapping cells has records in none.
        return labels is not None and all(self.cells & _as_set(x) for x in labels)


@dataclass(frozen=True, slots=True)
class Project(View):
    """Some columns of a table or of identified rows.

    Parameters
    ----------
    *attributes : str
        The columns to keep; they come out in the order of the domain.

    Examples
    --------
    >>> table = Table(attributes=("age", "sex", "zip"))
    >>> Project("sex").apply(((30, "f", 1), (40, "m", 1)), table)
    (('f',), ('m',))
    """

    attributes: tuple[str, ...]

    def __init__(self, *attributes: str) -> None:
        if not attributes or len(set(attributes)) != len(attributes):
            raise ValueError(
                f"attributes must name different columns, got {attributes!r}."
            )
        object.__setattr__(self, "attributes", attributes)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"columns {', '.join(self.attributes)}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the multiset or the rows of the kept columns, in canonical form."""
        kept = [i for i, (n, _) in enumerate(_columns(domain)) if n in self.attributes]
        rows = tuple(
            row if row is None else tuple(row[i] for i in kept) for row in database
        )
        return Table.database(rows) if isinstance(domain, Table) else rows

    def image(self, domain: Domain) -> Domain | None:
        """Return the domain on the kept columns."""
        kept = tuple(c for c in _columns(domain) if c[0] in self.attributes)
        if isinstance(domain, Rows):
            return replace(domain, values=None, attributes=kept)
        assert isinstance(domain, Table)
        smaller = replace(domain, values_per_cell=None, attributes=())
        if domain.cell not in self.attributes:
            smaller = replace(smaller, cells=(), multi=False, max_cells=None)
        return replace(smaller, attributes=kept)

    def fills_image(self, domain: Domain) -> bool:
        """Return True: the columns vary independently."""
        return True

    def require_domain(self, domain: Domain) -> None:
        """Require a table or rows with these columns."""
        require_kind(self, domain, ("table", "rows"))
        names = [name for name, _ in _columns(domain)]
        unknown = [name for name in self.attributes if name not in names]
        if unknown:
            raise ValueError(
                f"attributes must be columns of the domain, got {', '.join(unknown)}; "
                f"it has {', '.join(names) or 'none'}."
            )


@dataclass(frozen=True, slots=True)
class Nearest(View):
    """The place nearest to a target among the records of some cells.

    Parameters
    ----------
    *cells : hashable
        The district.
    place : tuple of str
        The columns that hold the coordinates of a record.
    target : tuple of float
        Where to measure from, by straight-line distance.
    sentinel : tuple of float
        What an empty district shows.
    diameter : int, float, str, Decimal or Fraction
        The most by which two outcomes, the sentinel included, can be apart.

    Notes
    -----
    Ties go to the smallest place in the order of coordinates. The nearest record of an
    empty district is undefined in the paper (Example IV.2): the sentinel is part of
    the view, and must lie within the diameter of every place. Where the columns list
    their values this is checked.
    """

    cells: frozenset[Hashable]
    place: tuple[str, ...]
    target: tuple[float, ...]
    sentinel: tuple[float, ...]
    diameter: Exact

    def __init__(
        self,
        *cells: Hashable,
        place: Iterable[str],
        target: Iterable[float],
        sentinel: Iterable[float],
        diameter: Number,
    ) -> None:
        object.__setattr__(self, "cells", Select(*cells).cells)
        object.__setattr__(self, "place", tuple(place))
        object.__setattr__(self, "target", tuple(target))
        object.__setattr__(self, "sentinel", tuple(sentinel))
        object.__setattr__(self, "diameter", exact(diameter, "diameter"))
        if not len(self.place) == len(self.target) == len(self.sentinel) > 0:
            raise MismatchError(
                "place, target and sentinel must have one length, got "
                f"{len(self.place)}, {len(self.target)} and {len(self.sentinel)}."
            )

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"place nearest to {self.target} in cells {named(self.cells)}"

    def apply(self, database: Any, domain: Domain) -> Any:
        """Return the coordinates of the nearest record, or the sentinel."""
        table = _table(self, domain)
        at = [table.attribute_names.index(name) for name in self.place]
        inside = (r for r in database if self.cells & table.cells_of(r))
        places = {tuple(record[i] for i in at) for record in inside}
        return min(places, key=self._rank, default=self.sentinel)

    def image(self, domain: Domain) -> Domain | None:
        """Return None: a point comes out."""
        return None

    def require_domain(self, domain: Domain) -> None:
        """Require the cells, the columns, and places within the diameter."""
        Select(*self.cells).require_domain(domain)
        Project(*self.place).require_domain(domain)
        columns = dict(_columns(domain))
        listed = [columns[name] for name in self.place]  # in the order of the sentinel
        if None in listed:
            return
        corners = product(*[(min(v), max(v)) for v in listed if v])  # type: ignore[type-var]  # coordinates
        for one, two in combinations({*corners, self.sentinel}, 2):
            if Euclidean().distance(one, two, domain) > self.diameter:
                raise FalsifiedClaimError(
                    f"diameter must be at least the distance of any two outcomes of "
                    f"{self.name}, got {format_up(self.diameter)}; the witness holds "
                    "two places further apart.",
                    witness=(one, two),
                    source="paper, Example IV.2",
                )

    def stretch(self, source: Metric, target: Metric) -> Exact:
        """Return the diameter: no step moves the outcome further."""
        bounded = source.canonical and target == Euclidean()
        return self.diameter if bounded else math.inf

    def _rank(self, point: tuple[float, ...]) -> tuple[Any, ...]:
        gaps = [
            _coordinate(x) - _coordinate(y)
            for x, y in zip(point, self.target, strict=True)
        ]
        return sum(gap**2 for gap in gaps), point


def _way_to_cells(unknown: frozenset[Hashable], table: Table) -> str:
    """Say what a view of cells can name on a table, and what shows anything else."""
    columns = unknown & set(table.attribute_names)
    if columns:
        return (
            f"{named(columns)} is a column and no cell, and Project (kind attributes "
            "in a plan file) shows columns"
        )
    if table.cells:
        return f"the table has the cells {named(table.cell_set)}"
    return (
        "the table has no cells: name them in Table(cells=...), or see its columns by "
        "Project (kind attributes in a plan file)"
    )


def _table(view: View, domain: Domain) -> Table:
    if isinstance(domain, Table):
        return domain
    raise MismatchError(
        f"view {view.name} must see a domain of kind table, got {domain.kind}."
    )


def _columns(domain: Domain) -> tuple[tuple[str, tuple[Hashable, ...] | None], ...]:
    assert isinstance(domain, Table | Rows)
    return domain.attributes


def _coordinate(value: Any) -> Fraction:
    number: Any = require_number(value)
    if math.isinf(number):
        raise TypeError("a place must be given by finite numbers, got an infinite one.")
    return Fraction(number)


def _as_set(label: Any) -> frozenset[Hashable]:
    return frozenset(label)


def _restrict(table: Table, chosen: frozenset[Hashable]) -> Table:
    """Return the table on some of its cells, each record in exactly one."""
    attributes = tuple(
        (name, tuple(v for v in values if v in chosen))
        if name == table.cell and values is not None
        else (name, values)
        for name, values in table.attributes
    )
    cells = tuple(cell for cell in table.cells if cell in chosen)
    return replace(table, cells=cells, attributes=attributes)


# Views by which row a record is: its id, a salted hash of it, or its position.


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

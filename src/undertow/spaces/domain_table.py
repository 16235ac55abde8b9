"""Tables: unordered multisets of records."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import (
    chain,
    combinations,
    combinations_with_replacement,
    islice,
    product,
)
from typing import Any, ClassVar

from undertow._validate import check_count
from undertow.spaces.base import Database, Domain
from undertow.spaces.domain_finite import record_order, require_enumerable
from undertow.spaces.domain_rows import (
    Attributes,
    distinct,
    fits_attributes,
    number_of_records,
    open_universe,
    read_attributes,
)

__all__ = ["Table"]


@dataclass(frozen=True, slots=True)
class Table(Domain):
    """Unordered multisets of records: all, of one size, or up to a size.

    A database is the tuple of its records in the order of :meth:`database`.

    Parameters
    ----------
    cells : iterable of hashable, optional
        Labels that partition the record universe. Without cells and attributes the
        universe is left open: any record, at least two different ones.
    cell : str
        What a cell is called; with `attributes`, the attribute that decides the cell.
    size, max_size : int, optional
        The fixed number of records, or a cap on it; neither means any number.
    multi : bool
        Whether a record may lie in several cells, or in none.
    max_cells : int, optional
        The cap on the cells of one record; only with `multi`.
    values_per_cell : int, optional
        Different record values in each cell (in each cell set with `multi`). None
        means two or more, the safe reading. Follows from `attributes` where given.
    attributes : mapping or iterable of str, optional
        Name -> possible values, or names alone.

    Notes
    -----
    Records are, with `attributes`, tuples of attribute values in order; otherwise the
    cell label itself if ``values_per_cell == 1``, else pairs ``(cell, j)``. With
    `multi` a frozenset of labels stands for the cell.

    Examples
    --------
    >>> table = Table(("a", "b", "c"), values_per_cell=1, max_size=4)
    >>> table.count(), table.database(["b", "a", "a"])
    (35, ('a', 'a', 'b'))
    """

    kind: ClassVar[str] = "table"
    cells: tuple[Hashable, ...] = ()
    cell: str = field(default="cell", kw_only=True)
    size: int | None = field(default=None, kw_only=True)
    max_size: int | None = field(default=None, kw_only=True)
    multi: bool = field(default=False, kw_only=True)
    max_cells: int | None = field(default=None, kw_only=True)
    values_per_cell: int | None = field(default=None, kw_only=True)
    attributes: Attributes = field(default=(), kw_only=True)
    #: The cells as a set, kept because every view of a long plan is checked against it.
    cell_set: frozenset[Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", distinct("cells", self.cells))
        object.__setattr__(self, "cell_set", frozenset(self.cells))
        object.__setattr__(self, "attributes", read_attributes(self.attributes))
        if self.size is not None and self.max_size is not None:
            raise ValueError("one of size and max_size must be left out, got both.")
        for name, minimum in (("size", 0), ("max_size", 0), ("values_per_cell", 1)):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, minimum=minimum)
        self._check_cells()
        if self.attributes and self.cells:
            self._place_cells_in_attributes()

    def _check_cells(self) -> None:
        if self.max_cells is not None:
            if not self.multi:
                raise ValueError(
                    "max_cells must come with multi=True, got multi=False."
                )
            check_count(self.max_cells, "max_cells")
        if not self.cells and (self.multi or self.values_per_cell is not None):
            raise ValueError(
                "cells must be given with multi or values_per_cell, got none."
            )

    def _place_cells_in_attributes(self) -> None:
        listed = dict(self.attributes)
        if self.cell not in listed:
            raise ValueError(
                f"attributes must contain the cell attribute {self.cell!r}, got "
                f"{', '.join(listed)}; set cell to the one that decides the cell."
            )
        labels = tuple(self._cell_sets()) if self.multi else self.cells
        values = listed[self.cell]
        if values is not None and not set(values) <= set(labels):
            raise ValueError(
                f"attributes must take the values of {self.cell!r} from the cells, "
                "got a value that is no cell."
            )
        listed[self.cell] = labels if values is None else values
        object.__setattr__(self, "attributes", tuple(listed.items()))
        others = tuple(pair for pair in self.attributes if pair[0] != self.cell)
        number = number_of_records(others)
        derived = None if number == math.inf else int(number)
        if self.values_per_cell not in (None, derived):
            raise ValueError(
                f"values_per_cell must agree with attributes, which give {derived}, "
                f"got {self.values_per_cell}; leave it out."
            )
        object.__setattr__(self, "values_per_cell", derived)

    @staticmethod
    def database(records: Iterable[Hashable]) -> tuple[Hashable, ...]:
        """Return the canonical form of a multiset: its records in stable order."""
        return tuple(sorted(records, key=record_order))

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """The names of the attributes, in order."""
        return tuple(name for name, _ in self.attributes)

    @property
    def least_size(self) -> int:
        """The smallest number of records."""
        return 0 if self.size is None else self.size

    @property
    def greatest_size(self) -> float:
        """The largest number of records; infinite without a cap."""
        if self.size is not None:
            return self.size
        return math.inf if self.max_size is None else self.max_size

    @property
    def universe_size(self) -> float:
        """The number of different records; infinite where it is left open."""
        if self.attributes:
            return number_of_records(self.attributes)
        if not self.cells or self.values_per_cell is None:
            return math.inf
        return self._number_of_cell_sets() * self.values_per_cell

    def _number_of_cell_sets(self) -> int:
        if not self.multi:
            return len(self.cells)
        most = len(self.cells) if self.max_cells is None else self.max_cells
        return sum(math.comb(len(self.cells), k) for k in range(most + 1))

    def _cell_sets(self) -> Iterator[frozenset[Hashable]]:
        most = len(self.cells) if self.max_cells is None else self.max_cells
        subsets = (combinations(self.cells, k) for k in range(most + 1))
        return (frozenset(chosen) for chosen in chain.from_iterable(subsets))

    def records(self, at_most: int | None = None) -> Iterator[Hashable]:
        """Yield the records of the universe; all, or the first `at_most` examples.

        An open universe yields examples only if `at_most` is given: values left open
        are then numbered 0, 1.
        """
        if at_most is None and self.universe_size == math.inf:
            raise open_universe()
        return islice(self._universe(), at_most)

    def _universe(self) -> Iterator[Hashable]:
        if self.attributes:
            open_values: tuple[Hashable, ...] = (0, 1)
            yield from product(*[v or open_values for _, v in self.attributes])
            return
        labels: Iterable[Hashable] = self._cell_sets() if self.multi else self.cells
        if not self.cells:
            labels = (0, 1)
        for label in labels:
            if self.values_per_cell == 1 or not self.cells:
                yield label
            else:
                for j in range(self.values_per_cell or 2):
                    yield (label, j)

    def cells_of(self, record: Hashable) -> frozenset[Hashable]:
        """Return the cells `record` lies in; empty on a table without cells."""
        if not self.cells:
            return frozenset()
        label: Any = record
        if self.attributes:
            assert isinstance(record, tuple)
            label = record[self.attribute_names.index(self.cell)]
        elif self.values_per_cell != 1:
            assert isinstance(record, tuple)
            label = record[0]
        return frozenset(label) if self.multi else frozenset((label,))

    def has_record(self, record: object) -> bool:
        """Return whether `record` belongs to the universe."""
        if self.attributes:
            return fits_attributes(record, self.attributes)
        if not self.cells:
            return True
        if self.values_per_cell == 1:
            return self._is_label(record)
        if not isinstance(record, tuple) or len(record) != 2:
            return False
        label, j = record
        if not self._is_label(label):
            return False
        if self.values_per_cell is None:
            return True
        return isinstance(j, int) and 0 <= j < self.values_per_cell

    def _is_label(self, label: object) -> bool:
        if not self.multi:
            return label in self.cells
        most = len(self.cells) if self.max_cells is None else self.max_cells
        return (
            isinstance(label, frozenset)
            and len(label) <= most
            and label <= self.cell_set
        )

    def __contains__(self, database: object) -> bool:
        return (
            isinstance(database, tuple)
            and self.least_size <= len(database) <= self.greatest_size
            and all(self.has_record(record) for record in database)
            and database == self.database(database)
        )

    def count(self) -> float:
        """Return the number of databases; infinite where it is not bounded."""
        n, universe = self.greatest_size, self.universe_size
        if n == 0:
            return 1
        if n == math.inf or universe == math.inf:
            return math.inf
        records, most = int(universe), int(n)
        if self.size is not None:
            return math.comb(records + most - 1, most)
        return math.comb(records + most, most)

    def databases(self) -> Iterator[Database]:
        """Yield every database once, smaller ones first."""
        require_enumerable(self)
        universe = [] if self.greatest_size == 0 else list(self.records())
        universe.sort(key=record_order)
        for n in range(self.least_size, int(self.greatest_size) + 1):
            yield from combinations_with_replacement(universe, n)

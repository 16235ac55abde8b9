"""The domains a guarantee can range over.

============== ========== ================================================
class          kind       a database is
============== ========== ================================================
`Table`        table      the sorted tuple of its records, a multiset
`Rows`         rows       a tuple of values, one per id
`Stream`       stream     a tuple of rows, one cell per time
`Graph`        graph      a frozenset of edges ``(i, j)`` with ``i < j``
`FiniteDomain` finite     whatever was listed
`MetricSpace`  metric     a point
============== ========== ================================================

First what every domain shares, the limit on enumeration and the stable order of
records, with the domains that are listed; then rows, tables, streams and graphs.
"""

from __future__ import annotations

import math
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import cached_property
from itertools import (
    chain,
    combinations,
    combinations_with_replacement,
    islice,
    product,
)
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count
from undertow.errors import AssumptionError, MismatchError
from undertow.spaces.base import Database, Domain

# Domains that are listed: enumerated databases, and points with a given metric.
#
# Also the two helpers every domain shares: the limit on enumeration and the stable
# order of records.

#: The largest number of databases that is enumerated.
ENUMERATION_LIMIT = 200_000


def record_order(record: Hashable) -> tuple[Any, ...]:
    """Return a sort key that orders any records alike in every process.

    Equal records get equal keys; numbers sort by value, text by code point, tuples and
    frozensets by their members.

    Examples
    --------
    >>> sorted([("b", 1), "a", 10, 2, None, ("b", 0)], key=record_order)
    [None, 2, 10, 'a', ('b', 0), ('b', 1)]
    """
    if record is None:
        return (0,)
    if isinstance(record, Real):
        return (1, record)
    if isinstance(record, str):
        return (2, record)
    if isinstance(record, tuple):
        return (3, tuple(record_order(part) for part in record))
    if isinstance(record, frozenset):
        return (4, tuple(sorted(record_order(part) for part in record)))
    return (5, type(record).__qualname__, repr(record))


def in_words(number: float) -> str:
    """Return a number of databases for a message, however long it is.

    Examples
    --------
    >>> in_words(1234567), in_words(10**400)
    ('1.23457e+06', 'over 1e+300')
    """
    return f"{number:g}" if number <= 1e300 or number == math.inf else "over 1e+300"


def require_enumerable(domain: Domain, limit: int = ENUMERATION_LIMIT) -> None:
    """Raise ``AssumptionError`` unless `domain` has at most `limit` databases."""
    number = domain.count()
    if number > limit:
        raise AssumptionError(
            f"domain must have at most {limit} databases to be enumerated, got "
            f"{in_words(number)}; use a smaller instance of the same kind."
        )


def require_members(domain: Domain, *databases: Database) -> None:
    """Raise ``ValueError`` unless every database lies in `domain`.

    The message never shows a database.
    """
    for name, database in zip(("first", "second"), databases, strict=False):
        if database not in domain:
            raise ValueError(
                f"{name} must be a database of the {domain.kind} domain in its "
                f"canonical form, got one outside it."
            )


@dataclass(frozen=True)
class FiniteDomain(Domain):
    """Any listed databases: a subclass cut out by hand, or a toy example.

    Parameters
    ----------
    elements : iterable of hashable
        The databases, without repetition.

    Notes
    -----
    Granularities of tables read the elements as sorted tuples of records, those of
    graphs as frozensets of edges, those of rows and streams as tuples of rows.

    Examples
    --------
    >>> FiniteDomain([(), ("a",)]).count()
    2
    """

    kind: ClassVar[str] = "finite"
    elements: tuple[Database, ...]

    def __init__(self, elements: Iterable[Database]) -> None:
        listed = tuple(elements)
        if not listed:
            raise ValueError("elements must hold at least one database, got none.")
        if len(set(listed)) != len(listed):
            raise ValueError("elements must not repeat, got a database twice.")
        object.__setattr__(self, "elements", listed)

    def __contains__(self, database: object) -> bool:
        return database in self._members

    def count(self) -> float:
        """Return the number of databases."""
        return len(self.elements)

    def databases(self) -> Iterator[Database]:
        """Yield every database once, in the order given."""
        return iter(self.elements)

    @cached_property
    def _members(self) -> frozenset[Database]:
        return frozenset(self.elements)

    @cached_property
    def holds_multisets(self) -> bool:
        """Whether every element is a tuple of records in the order of tables."""
        return all(
            isinstance(one, tuple) and one == tuple(sorted(one, key=record_order))
            for one in self.elements
        )

    @cached_property
    def holds_rows(self) -> bool:
        """Whether every element is a tuple, all of one length."""
        tuples = [one for one in self.elements if isinstance(one, tuple)]
        return len(tuples) == len(self.elements) and len({len(t) for t in tuples}) == 1

    @cached_property
    def holds_matrices(self) -> bool:
        """Whether every element is a tuple of tuples, all of one shape."""
        return self.holds_rows and (
            len(
                {
                    tuple(len(row) if isinstance(row, tuple) else -1 for row in one)
                    for one in self.elements
                    if isinstance(one, tuple)
                }
            )
            == 1
            and all(
                isinstance(row, tuple)
                for one in self.elements
                if isinstance(one, tuple)
                for row in one
            )
        )

    @cached_property
    def holds_graphs(self) -> bool:
        """Whether every element is a frozenset of pairs ``(i, j)`` with ``i < j``."""
        return all(
            isinstance(one, frozenset)
            and all(isinstance(e, tuple) and len(e) == 2 and e[0] < e[1] for e in one)
            for one in self.elements
        )

    @cached_property
    def closed_under_removal(self) -> bool:
        """Whether removing any one record (or edge) stays inside."""
        return all(
            smaller in self._members
            for one in self.elements
            for smaller in _one_smaller(one)
        )

    @cached_property
    def is_product(self) -> bool:
        """Whether the elements are all tuples over one set per coordinate."""
        if not self.holds_rows:
            return False
        tuples = [one for one in self.elements if isinstance(one, tuple)]
        columns = zip(*tuples, strict=True)
        return math.prod(len(set(column)) for column in columns) == len(self.elements)


def _one_smaller(database: Database) -> Iterator[Database]:
    if isinstance(database, tuple):
        for at in range(len(database)):
            yield database[:at] + database[at + 1 :]
    elif isinstance(database, frozenset):
        for member in database:
            yield database - {member}


@dataclass(frozen=True)
class MetricSpace(Domain):
    """Finitely many points with a given metric, checked when built.

    Parameters
    ----------
    points : iterable of hashable
        The points, without repetition.
    matrix : array_like, optional
        Distances in ``[0, inf]``, in the order of `points`.
    function : callable, optional
        ``function(point, point) -> float``; evaluated once on all pairs.

    Raises
    ------
    MismatchError
        If the matrix does not fit the points.
    AssumptionError
        If the distances are no extended pseudometric; the witness holds the points.

    Examples
    --------
    >>> MetricSpace((0, 1, 3), function=lambda x, y: abs(x - y)).between(0, 3)
    3.0
    """

    kind: ClassVar[str] = "metric"
    points: tuple[Hashable, ...]
    matrix: tuple[tuple[float, ...], ...] = field(repr=False)

    def __init__(
        self,
        points: Iterable[Hashable],
        *,
        matrix: Any = None,
        function: Callable[[Any, Any], float] | None = None,
    ) -> None:
        listed = tuple(points)
        if not listed or len(set(listed)) != len(listed):
            raise ValueError(
                f"points must be given, each once, got {len(listed)} with "
                f"{len(set(listed))} different."
            )
        if (matrix is None) == (function is None):
            raise ValueError(
                "one of matrix and function must be given, got both or none."
            )
        if function is not None:
            matrix = [[function(x, y) for y in listed] for x in listed]
        table = np.asarray(matrix, dtype=float)
        _require_pseudometric(table, listed)
        object.__setattr__(self, "points", listed)
        rows = tuple(tuple(float(x) for x in row) for row in table)
        object.__setattr__(self, "matrix", rows)

    def __contains__(self, database: object) -> bool:
        return database in self._index

    def count(self) -> float:
        """Return the number of points."""
        return len(self.points)

    def databases(self) -> Iterator[Database]:
        """Yield every point once, in the order given."""
        return iter(self.points)

    def between(self, first: Hashable, second: Hashable) -> float:
        """Return the distance of two points."""
        require_members(self, first, second)
        return self.matrix[self._index[first]][self._index[second]]

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {point: at for at, point in enumerate(self.points)}


def _require_pseudometric(
    table: NDArray[np.float64], points: Sequence[Hashable]
) -> None:
    n = len(points)
    if table.shape != (n, n):
        raise MismatchError(
            f"matrix must have shape {(n, n)}, one row per point, got {table.shape}."
        )
    if np.isnan(table).any() or (table < 0).any() or np.diagonal(table).any():
        raise AssumptionError(
            "matrix must hold distances in [0, inf] with a zero diagonal, got a "
            "negative, undefined or positive diagonal entry."
        )
    if (table != table.T).any():
        i, j = (int(k[0]) for k in np.nonzero(table != table.T))
        raise AssumptionError(
            f"matrix must be symmetric, got {table[i, j]:g} one way and "
            f"{table[j, i]:g} back between points number {i} and {j}.",
            witness=(points[i], points[j]),
        )
    _require_triangle(table, points)


def _require_triangle(table: NDArray[np.float64], points: Sequence[Hashable]) -> None:
    for k in range(len(points)):
        through = table[:, [k]] + table[[k], :]
        slack = 1e-12 * np.where(np.isfinite(through), through, 0.0)
        broken = table > through + slack
        if broken.any():
            i, j = (int(index[0]) for index in np.nonzero(broken))
            raise AssumptionError(
                "matrix must satisfy the triangle inequality, got "
                f"d({i}, {j}) = {table[i, j]:g} > d({i}, {k}) + d({k}, {j}) = "
                f"{through[i, j]:g} for points by number.",
                witness=(points[i], points[k], points[j]),
            )


# Rows with identities, and how attributes of records are declared.

Attributes = tuple[tuple[str, tuple[Hashable, ...] | None], ...]
"""Attribute names in order, each with its possible values (None: two or more)."""


def read_attributes(given: Any) -> Attributes:
    """Read a mapping name -> values, a sequence of names, or the stored form."""
    items = given.items() if isinstance(given, Mapping) else given
    pairs = []
    for item in items:
        name, values = (item, None) if isinstance(item, str) else item
        values = None if values is None else distinct(f"attribute {name!r}", values)
        if values == ():
            raise ValueError(f"attribute {name!r} must have a value, got none.")
        pairs.append((name, values))
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("attributes must have different names, got one twice.")
    return tuple(pairs)


def distinct(name: str, values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return `values` as a tuple, refusing repetitions."""
    if isinstance(values, str):
        raise TypeError(
            f"{name} must be a sequence of labels, got the text {values!r}."
        )
    listed = tuple(values)
    if len(set(listed)) != len(listed):
        raise ValueError(f"{name} must not repeat, got a value twice.")
    return listed


def number_of_records(attributes: Attributes) -> float:
    """Return how many records the attributes allow; infinite where left open."""
    sizes = [math.inf if values is None else len(values) for _, values in attributes]
    return math.prod(sizes)


def open_universe() -> Exception:
    """Return the refusal to generate records that are left open."""
    return AssumptionError(
        "domain must list its records to generate them, got a table that leaves them "
        "open; set values_per_cell, or give attributes with their values."
    )


def fits_attributes(record: object, attributes: Attributes) -> bool:
    """Return whether `record` is a tuple of allowed attribute values."""
    return (
        isinstance(record, tuple)
        and len(record) == len(attributes)
        and all(
            values is None or value in values
            for value, (_, values) in zip(record, attributes, strict=True)
        )
    )


@dataclass(frozen=True, slots=True)
class Rows(Domain):
    """Rows with identities: one value per id, in the order of the ids.

    Parameters
    ----------
    ids : int or iterable of hashable
        The number of rows (ids 0, 1, ...), or the ids themselves.
    values : iterable of hashable, optional
        The possible values of a row; None means two or more. Follows from `attributes`
        where they list their values.
    attributes : mapping or iterable of str, optional
        Name -> possible values, or names alone; a row is then a tuple of them.
    free_ids : bool
        Whether an id may be absent; its value is then None.

    Examples
    --------
    >>> rows = Rows(3, values=(0, 1))
    >>> rows.count(), (0, 1, 1) in rows, (0, 1) in rows
    (8, True, False)
    """

    kind: ClassVar[str] = "rows"
    ids: Sequence[Hashable]
    values: tuple[Hashable, ...] | None = field(default=None, kw_only=True)
    attributes: Attributes = field(default=(), kw_only=True)
    free_ids: bool = field(default=False, kw_only=True)
    #: The ids for look-up, kept because every view of a long plan is checked so.
    known_ids: Container[Hashable] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", _read_ids(self.ids))
        known = self.ids if isinstance(self.ids, range) else frozenset(self.ids)
        object.__setattr__(self, "known_ids", known)
        object.__setattr__(self, "attributes", read_attributes(self.attributes))
        if self.values is not None:
            object.__setattr__(self, "values", distinct("values", self.values))
            if not self.values or None in self.values:
                raise ValueError(
                    "values must be non-empty and without None, which marks an "
                    "absent row."
                )
        if self.attributes:
            self._derive_values()

    def _derive_values(self) -> None:
        if number_of_records(self.attributes) == math.inf:
            derived = None
        else:
            derived = tuple(product(*[v or () for _, v in self.attributes]))
        if self.values is not None and (
            derived is None or set(self.values) != set(derived)
        ):
            raise ValueError(
                "values must be left out where attributes are given, got values that "
                "are not all combinations of the attributes."
            )
        object.__setattr__(self, "values", derived)

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """The names of the attributes, in order."""
        return tuple(name for name, _ in self.attributes)

    def choices(self) -> tuple[Hashable, ...]:
        """Return what one row may hold, None first where the id may be absent."""
        if self.values is None:
            raise open_universe()
        return (None, *self.values) if self.free_ids else self.values

    def __contains__(self, database: object) -> bool:
        return (
            isinstance(database, tuple)
            and len(database) == len(self.ids)
            and all(self._has_value(value) for value in database)
        )

    def _has_value(self, value: object) -> bool:
        if value is None:
            return self.free_ids
        if self.attributes:
            return fits_attributes(value, self.attributes)
        return self.values is None or value in self.values

    def count(self) -> float:
        """Return the number of databases; infinite where values are left open."""
        if not self.ids:
            return 1
        if self.values is None:
            return math.inf
        each = len(self.values) + self.free_ids
        exponent = len(self.ids) * math.log2(each)
        return each ** len(self.ids) if exponent < 1000 else math.inf

    def databases(self) -> Iterator[Database]:
        """Yield every database once."""
        require_enumerable(self)
        choices = self.choices() if self.ids else ()
        return product(choices, repeat=len(self.ids))


def _read_ids(given: Any) -> Sequence[Hashable]:
    if isinstance(given, int):
        return range(check_count(given, "ids", minimum=0))
    if isinstance(given, range):
        return given
    listed = distinct("ids", given)
    return range(len(listed)) if listed == tuple(range(len(listed))) else listed


# Tables: unordered multisets of records.


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


# Streams: one row per user, one cell per time.


@dataclass(frozen=True, slots=True)
class Stream(Domain):
    """The users × times matrix of locations, one cell per user and time.

    A database is a tuple of rows, one per user; a row is a tuple of cell values, one
    per time; the gap, a time at which nothing was recorded, is None.

    Parameters
    ----------
    users, times : int
        The shape; users and times are numbered from 0.
    regular : bool
        Whether every user is recorded at every time. If not, a cell may be a gap, and
        a row of gaps is a user who is absent.
    values : iterable of hashable, optional
        The possible locations; None means two or more. Follows from `clusters`.
    clusters : mapping, optional
        Location -> cluster label, for element-level privacy.

    Examples
    --------
    >>> stream = Stream(2, 3, values=("a", "b"))
    >>> stream.count(), (("a", None, "b"), (None, None, None)) in stream
    (729, True)
    """

    kind: ClassVar[str] = "stream"
    users: int
    times: int
    regular: bool = field(default=False, kw_only=True)
    values: tuple[Hashable, ...] | None = field(default=None, kw_only=True)
    clusters: tuple[tuple[Hashable, Hashable], ...] | None = field(
        default=None, kw_only=True
    )

    def __post_init__(self) -> None:
        check_count(self.users, "users")
        check_count(self.times, "times")
        if self.clusters is not None:
            given: Any = self.clusters
            pairs = given.items() if isinstance(given, Mapping) else given
            object.__setattr__(self, "clusters", tuple((v, c) for v, c in pairs))
        self._settle_values()

    def _settle_values(self) -> None:
        if isinstance(self.values, str):
            raise TypeError(f"values must be a sequence, got the text {self.values!r}.")
        clustered = None if self.clusters is None else [v for v, _ in self.clusters]
        values = clustered if self.values is None else list(self.values)
        if values is None:
            return
        if not values or None in values or len(set(values)) != len(values):
            raise ValueError(
                "values must be non-empty, different and without None, which marks a "
                "gap."
            )
        if clustered is not None and (
            set(clustered) != set(values) or len(clustered) != len(values)
        ):
            raise ValueError(
                "clusters must give every value exactly one cluster, got other values."
            )
        object.__setattr__(self, "values", tuple(values))

    @property
    def cluster_labels(self) -> tuple[Hashable, ...]:
        """The cluster labels, each once, in the order first named."""
        return tuple(dict.fromkeys(label for _, label in self.clusters or ()))

    def cluster_of(self, value: Hashable) -> Hashable:
        """Return the cluster of a location; None for the gap."""
        clusters = dict(self.clusters or ())
        if value is not None and value not in clusters:
            raise ValueError(
                "value must be a location with a cluster, got one outside the stream."
            )
        return None if value is None else clusters[value]

    def choices(self) -> tuple[Hashable, ...]:
        """Return what one cell may hold, the gap first where there are gaps."""
        if self.values is None:
            raise AssumptionError(
                "domain must list its locations to generate databases, got a stream "
                "that leaves them open; set values."
            )
        return self.values if self.regular else (None, *self.values)

    def __contains__(self, database: object) -> bool:
        return (
            isinstance(database, tuple)
            and len(database) == self.users
            and all(
                isinstance(row, tuple)
                and len(row) == self.times
                and all(self._has_value(value) for value in row)
                for row in database
            )
        )

    def _has_value(self, value: object) -> bool:
        if value is None:
            return not self.regular
        return self.values is None or value in self.values

    def count(self) -> float:
        """Return the number of databases; infinite where values are left open."""
        if self.values is None:
            return math.inf
        each, cells = len(self.values) + (not self.regular), self.users * self.times
        return each**cells if cells * math.log2(each) < 1000 else math.inf

    def databases(self) -> Iterator[Database]:
        """Yield every database once."""
        require_enumerable(self)
        rows = list(product(self.choices(), repeat=self.times))
        return product(rows, repeat=self.users)


# Graphs on a fixed vertex set, with or without a cap on the degrees.

Edges = frozenset[tuple[int, int]]
"""A graph: the set of its edges ``(i, j)`` with ``i < j``."""

# Graphs on more vertices pass the enumeration limit for every positive cap.
_COUNTED_VERTICES = 12


@dataclass(frozen=True, slots=True)
class Graph(Domain):
    """The simple graphs on vertices 0, 1, ..., `vertices` - 1.

    Parameters
    ----------
    vertices : int
        The number of vertices, fixed and public.
    max_degree : int, optional
        A cap on every degree that belongs to the domain, not read off the data.

    Examples
    --------
    >>> Graph(4).count(), Graph(4, max_degree=1).count()
    (64, 10)
    >>> Graph.database([(2, 0)]) in Graph(3)
    True
    """

    kind: ClassVar[str] = "graph"
    vertices: int
    max_degree: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_count(self.vertices, "vertices")
        if self.max_degree is not None:
            check_count(self.max_degree, "max_degree", minimum=0)

    @staticmethod
    def database(edges: Iterable[tuple[int, int]]) -> Edges:
        """Return the canonical form: a frozenset of pairs, smaller vertex first."""
        return frozenset((min(e), max(e)) for e in edges)

    @property
    def is_capped(self) -> bool:
        """Whether the cap excludes any graph."""
        return self.max_degree is not None and self.max_degree < self.vertices - 1

    @property
    def degree_cap(self) -> int:
        """The largest degree any vertex can have."""
        most = self.vertices - 1
        return most if self.max_degree is None else min(most, self.max_degree)

    def degrees(self, database: Edges) -> list[int]:
        """Return the degree of every vertex."""
        degrees = [0] * self.vertices
        for i, j in database:
            degrees[i] += 1
            degrees[j] += 1
        return degrees

    def __contains__(self, database: object) -> bool:
        if not isinstance(database, frozenset):
            return False
        if not all(self._is_edge(edge) for edge in database):
            return False
        return max(self.degrees(database)) <= self.degree_cap

    def _is_edge(self, edge: object) -> bool:
        if not isinstance(edge, tuple) or len(edge) != 2:
            return False
        i, j = edge
        return isinstance(i, int) and isinstance(j, int) and 0 <= i < j < self.vertices

    def count(self) -> float:
        """Return the number of graphs.

        With a cap and more than twelve vertices it is an upper bound, beyond
        enumeration like the number itself.
        """
        if self.degree_cap == 0:
            return 1
        if self.is_capped and self.vertices <= _COUNTED_VERTICES:
            return _count_capped_graphs((self.degree_cap,) * self.vertices, {})
        pairs = math.comb(self.vertices, 2)
        return 2**pairs if pairs < 1000 else math.inf

    def databases(self) -> Iterator[Database]:
        """Yield every graph once."""
        require_enumerable(self)
        free = [self.degree_cap] * self.vertices
        return (frozenset(edges) for edges in _grown_graphs(0, free))


def _count_capped_graphs(
    free: tuple[int, ...], known: dict[tuple[int, ...], int]
) -> int:
    """Count the graphs whose vertex i has at most ``free[i]`` edges (sorted)."""
    if len(free) < 2:
        return 1
    if free not in known:
        rest, total = free[1:], 0
        for chosen in product((0, 1), repeat=len(rest)):
            left = [room - bit for room, bit in zip(rest, chosen, strict=True)]
            if sum(chosen) <= free[0] and min(left) >= 0:
                total += _count_capped_graphs(tuple(sorted(left)), known)
        known[free] = total
    return known[free]


def _grown_graphs(vertex: int, free: list[int]) -> Iterator[list[tuple[int, int]]]:
    """Yield the edge lists among `vertex` and later ones that respect `free`."""
    if vertex >= len(free) - 1:
        yield []
        return
    open_vertices = [u for u in range(vertex + 1, len(free)) if free[u]]
    for degree in range(min(free[vertex], len(open_vertices)) + 1):
        for chosen in combinations(open_vertices, degree):
            left = list(free)
            for u in chosen:
                left[u] -= 1
            for later in _grown_graphs(vertex + 1, left):
                yield [(vertex, u) for u in chosen] + later

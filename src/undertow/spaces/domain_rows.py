"""Rows with identities, and how attributes of records are declared."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

from undertow._validate import check_count
from undertow.errors import AssumptionError
from undertow.spaces.base import Database, Domain
from undertow.spaces.domain_finite import require_enumerable

__all__ = [
    "Attributes",
    "Rows",
    "distinct",
    "fits_attributes",
    "number_of_records",
    "open_universe",
    "read_attributes",
]

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
        object.__setattr__(self, "ids", _ids(self.ids))
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


def _ids(given: Any) -> Sequence[Hashable]:
    if isinstance(given, int):
        return range(check_count(given, "ids", minimum=0))
    if isinstance(given, range):
        return given
    listed = distinct("ids", given)
    return range(len(listed)) if listed == tuple(range(len(listed))) else listed

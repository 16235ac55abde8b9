"""Granularities of tables and of identified rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from undertow.errors import MismatchError
from undertow.spaces.base import Database, Domain
from undertow.spaces.canonical import Components, assignment_cost
from undertow.spaces.domain import Rows, Table
from undertow.spaces.unit.generic import (
    Catalogued,
    Rule,
    multiset_components,
    multiset_difference,
    multiset_distance,
    multiset_formula,
    multiset_steps,
    require_shape,
    row_components,
    row_difference,
    row_distance,
    row_formula,
    row_steps,
)

SIZE = "size: the number of records"
IDS = "the set of ids"


def _is_none(row: object) -> bool:
    return row is None


class RecordLevel(Catalogued):
    """One record is added, removed or replaced, by one of the elementary rules."""

    @property
    @abstractmethod
    def rule(self) -> Rule:
        """Which elementary change one step is."""

    @property
    def by_row(self) -> bool:
        """Whether listed databases are read as rows rather than as multisets."""
        return False

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless the relation makes sense on `domain`."""
        Catalogued.require_domain(self, domain)
        require_shape(domain, "rows" if self.by_row else "multisets", name=self.name)

    def _on_rows(self, domain: Domain) -> bool:
        return isinstance(domain, Rows) or self.by_row

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        if self._on_rows(domain):
            p, q = row_difference(first, second, absent=_is_none)
            return row_distance(self.rule, p, q) == 1
        a, b = multiset_difference(first, second)
        return multiset_distance(self.rule, a, b) == 1

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        if self._on_rows(domain):
            return row_steps(self.rule, database, domain.choices(), absent=_is_none)
        return multiset_steps(self.rule, database, domain)

    def closed_form(
        self, first: Database, second: Database, domain: Domain
    ) -> float | None:
        """Return the distance by the table of elementary changes, where proved."""
        if self._on_rows(domain):
            return row_formula(self.rule, first, second, domain, absent=_is_none)
        return multiset_formula(self.rule, first, second, domain)

    def components(self, domain: Domain) -> Components | None:
        """Return what is proved about the neighbour graph; None if nothing is."""
        if isinstance(domain, Rows):
            return row_components(self.rule, domain)
        return multiset_components(self.rule, domain)


@dataclass(frozen=True, slots=True)
class Unbounded(RecordLevel):
    """Add or remove one record.

    The distance is the size of the symmetric difference on every class closed under
    removing records; with a fixed number of records there are no neighbours at all.
    Thesis, Section 2.1; paper, Definition II.3.

    Examples
    --------
    >>> Unbounded().distance(("a", "a", "b"), ("a", "c"), Table())
    3
    """

    kinds: ClassVar[tuple[str, ...]] = ("table", "rows", "finite")
    otherwise: ClassVar[str] = "use event:add-remove or edge there"

    @property
    def rule(self) -> Rule:
        """Which elementary change one step is."""
        return "add-remove"

    @property
    def name(self) -> str:
        """The command-line name."""
        return "unbounded"

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return nothing: presence itself is protected."""
        return ()


@dataclass(frozen=True, slots=True)
class Bounded(RecordLevel):
    """Replace one record.

    Parameters
    ----------
    ordered : bool
        Rows have identities (:class:`Rows`) and one of them changes its value.

    Notes
    -----
    Unordered: half the symmetric difference at equal sizes, else infinite (paper,
    Definition II.4). Ordered: the Hamming distance (thesis, Definition 2.1).

    Examples
    --------
    >>> Bounded().distance(("a", "a", "b"), ("a", "c", "c"), Table())
    2
    """

    ordered: bool = False

    @property
    def rule(self) -> Rule:
        """Which elementary change one step is."""
        return "replace"

    @property
    def by_row(self) -> bool:
        """Whether listed databases are read as rows rather than as multisets."""
        return self.ordered

    @property
    def name(self) -> str:
        """The command-line name."""
        return "bounded:ordered" if self.ordered else "bounded"

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless the relation makes sense on `domain`."""
        wanted = "rows" if self.ordered else "table"
        if domain.kind not in (wanted, "finite"):
            raise MismatchError(
                f"domain must be of kind {wanted} for {self.name}, got {domain.kind}; "
                "use bounded on tables, bounded:ordered on rows, event on streams and "
                "edge on graphs."
            )
        RecordLevel.require_domain(self, domain)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the number of records, and the identities of ordered rows."""
        if self.ordered:
            return ("size: the number of rows", "which row is whose")
        return (SIZE,)


@dataclass(frozen=True, slots=True)
class BoundedById(RecordLevel):
    """Replace the value of one id.

    The Hamming distance over the ids where the id sets agree, else infinite; the id
    set is public (paper, Example IV.7; thesis, Proposition 4.7).
    """

    kinds: ClassVar[tuple[str, ...]] = ("rows", "finite")
    otherwise: ClassVar[str] = "use bounded on tables"

    @property
    def rule(self) -> Rule:
        """Which elementary change one step is."""
        return "replace"

    @property
    def by_row(self) -> bool:
        """Whether listed databases are read as rows rather than as multisets."""
        return True

    @property
    def name(self) -> str:
        """The command-line name."""
        return "bounded-by-id"

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the set of ids."""
        return (IDS,)


@dataclass(frozen=True, slots=True)
class Edit(RecordLevel):
    """Add, remove or replace one record.

    The distance is the larger of the two differences, on tables of any and of capped
    size; with a fixed size it is that of replacement. Elsewhere it is searched.
    """

    kinds: ClassVar[tuple[str, ...]] = ("table", "rows", "finite")
    otherwise: ClassVar[str] = "use event or edge there"

    @property
    def rule(self) -> Rule:
        """Which elementary change one step is."""
        return "edit"

    @property
    def name(self) -> str:
        """The command-line name."""
        return "edit"

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return nothing: presence itself is protected."""
        return ()


@dataclass(frozen=True, slots=True)
class Attribute(Catalogued):
    """Change one attribute of one record.

    Rows: the number of differing cells. Tables of equal size: the cheapest perfect
    matching of the records under the Hamming distance, an assignment problem; infinite
    at different sizes.

    Examples
    --------
    >>> bits = Table(attributes={"x": (0, 1), "y": (0, 1), "z": (0, 1)}, size=2)
    >>> Attribute().distance(((0, 0, 0), (1, 1, 1)), ((0, 0, 1), (1, 1, 0)), bits)
    2
    """

    kinds: ClassVar[tuple[str, ...]] = ("table", "rows")
    otherwise: ClassVar[str] = "use event on streams"
    splits_person: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The command-line name."""
        return "attribute"

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless `domain` names its attributes."""
        Catalogued.require_domain(self, domain)
        assert isinstance(domain, Table | Rows)
        if not domain.attributes:
            raise MismatchError(
                "domain must name its attributes for attribute, got none; set "
                "attributes, or use bounded."
            )

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        return self.closed_form(first, second, domain) == 1

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        ordered = isinstance(domain, Rows)
        for at, record in enumerate(database):
            if record is None or (not ordered and record in database[:at]):
                continue
            rest = (*database[:at], *database[at + 1 :])
            for other in _one_attribute_away(record, domain):
                if ordered:
                    yield (*database[:at], other, *database[at + 1 :])
                else:
                    yield Table.database((*rest, other))

    def closed_form(self, first: Any, second: Any, domain: Domain) -> float:
        """Return the least number of attribute changes."""
        if isinstance(domain, Rows):
            pairs = list(zip(first, second, strict=True))
            if any((x is None) != (y is None) for x, y in pairs):
                return math.inf
            return sum(hamming(x, y) for x, y in pairs if x is not None)
        if len(first) != len(second):
            return math.inf
        return assignment_cost([[hamming(x, y) for y in second] for x in first])

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the number of records, or the ids of rows."""
        return (IDS,) if isinstance(domain, Rows) else (SIZE,)

    def components(self, domain: Domain) -> Components | None:
        """Return the components of replacement, which are the same."""
        if isinstance(domain, Rows):
            return row_components("replace", domain)
        return multiset_components("replace", domain)


def hamming(first: Any, second: Any) -> int:
    """Return in how many places two tuples of one length differ."""
    return sum(x != y for x, y in zip(first, second, strict=True))


def _one_attribute_away(record: Any, domain: Table | Rows) -> Iterator[tuple[Any, ...]]:
    if isinstance(domain, Table):
        domain.records()  # refuses a universe that is left open
    else:
        domain.choices()
    for at, (_, values) in enumerate(domain.attributes):
        for value in values or ():
            if value != record[at]:
                yield (*record[:at], value, *record[at + 1 :])

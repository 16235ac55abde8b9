r"""Granularities that make sense on any domain, and what all of them share.

What a granularity of the catalogue does the same way as every other one; free lunch,
local, groups and relations of your own; and the three elementary changes, on multisets
of records and on identified rows: ``add-remove``, ``replace`` and ``edit`` (either).

For multisets write :math:`a = |D \setminus D'|` and :math:`b = |D' \setminus D|`; for
rows, :math:`p` for the ids present in exactly one database and :math:`q` for those
present in both with different values. Then

=========== ==================================== ====================================
rule        multisets                            rows
=========== ==================================== ====================================
add-remove  :math:`a + b`                        :math:`p + 2q`
replace     :math:`a` if :math:`a = b`, else ∞   :math:`q` if :math:`p = 0`, else ∞
edit        :math:`\max(a, b)`                   :math:`p + q`
=========== ==================================== ====================================
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from undertow._validate import check_count
from undertow.errors import AssumptionError, MismatchError, SearchError
from undertow.spaces.base import Database, Domain, Granularity
from undertow.spaces.canonical import Components, canonical_distance
from undertow.spaces.domain import (
    FiniteDomain,
    MetricSpace,
    Rows,
    Stream,
    Table,
    require_enumerable,
    require_members,
)


class Catalogued(Granularity):
    """What every granularity of the catalogue does the same way.

    A subclass says which domains it fits, which different databases are adjacent, how
    to generate them, and a closed form where one is proved.
    """

    #: The kinds of domain the relation makes sense on; empty means any.
    kinds: ClassVar[tuple[str, ...]] = ()
    #: What to use instead on another kind.
    otherwise: ClassVar[str] = "choose a granularity of that domain"

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless the relation makes sense on `domain`."""
        if self.kinds and domain.kind not in self.kinds:
            raise MismatchError(
                f"domain must be of kind {' or '.join(self.kinds)} for {self.name}, "
                f"got {domain.kind}; {self.otherwise}."
            )

    def are_neighbours(self, first: Database, second: Database, domain: Domain) -> bool:
        """Return whether two different databases are one step apart."""
        self.require_domain(domain)
        require_members(domain, first, second)
        return first != second and self._adjacent(first, second, domain)

    def neighbours(self, database: Database, domain: Domain) -> Iterator[Database]:
        """Yield the neighbours of `database` inside `domain`, each once."""
        self.require_domain(domain)
        require_members(domain, database)
        return self._steps(database, domain)

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the canonical distance: by formula where proved, else by search.

        Raises
        ------
        AssumptionError
            If no formula is proved on `domain` and the search would be too large.
        """
        self.require_domain(domain)
        require_members(domain, first, second)
        if first == second:
            return 0
        value = self.closed_form(first, second, domain)
        return self._search(first, second, domain) if value is None else value

    def _search(self, first: Database, second: Database, domain: Domain) -> float:
        try:
            return canonical_distance(
                lambda database: self._steps(database, domain), first, second
            )
        except SearchError as fault:
            raise AssumptionError(
                f"domain must be small enough to search for a {self.name} distance "
                f"where no closed form is proved, got one where {fault.args[0]}"
            ) from fault

    def _steps(self, database: Database, domain: Domain) -> Iterator[Database]:
        if isinstance(domain, FiniteDomain | MetricSpace):
            return self._scan(database, domain)
        return self._generate(database, domain)

    def _scan(self, database: Database, domain: Domain) -> Iterator[Database]:
        for other in domain.databases():
            if other != database and self._adjacent(database, other, domain):
                yield other

    @abstractmethod
    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        """Return whether two different databases of `domain` are neighbours."""

    @abstractmethod
    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        """Yield the neighbours on a structural domain, each once."""

    def components(self, domain: Domain) -> Components | None:
        """Return what is proved about the neighbour graph; None if nothing is."""
        return None


@dataclass(frozen=True, slots=True)
class FreeLunch(Catalogued):
    """Any two different databases are neighbours.

    The smallest canonical metric: what holds here holds, with the same loss, at every
    granularity (thesis, Appendix A.1; paper, Section III-A).
    """

    @property
    def name(self) -> str:
        """The command-line name."""
        return "free-lunch"

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        return True

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        return self._scan(database, domain)

    def closed_form(self, first: Database, second: Database, domain: Domain) -> float:
        """Return one for different databases."""
        return int(first != second)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return nothing: everything is protected."""
        return ()

    def components(self, domain: Domain) -> Components:
        """Return one component."""
        return Components(domain.count() > 1, 1)


@dataclass(frozen=True, slots=True)
class Local(FreeLunch):
    """Local DP: the data is one person's, and any two values are neighbours.

    Thesis, Section 2.1 and Remark A.4. A table or rows of at most one record count:
    that is what a view shows of one person.
    """

    @property
    def name(self) -> str:
        """The command-line name."""
        return "local"

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless `domain` holds one person's data."""
        alone = (
            isinstance(domain, FiniteDomain | MetricSpace)
            or (isinstance(domain, Table) and domain.greatest_size <= 1)
            or (isinstance(domain, Rows) and len(domain.ids) <= 1)
            or (isinstance(domain, Stream) and domain.users == 1)
        )
        if not alone:
            raise MismatchError(
                "domain must hold the data of one person for local, got the data of "
                f"several (kind {domain.kind}); use free-lunch where they may change "
                "together, or a view that shows one person."
            )


@dataclass(frozen=True, slots=True)
class Group(Catalogued):
    r"""Up to `size` steps of another granularity count as one.

    Parameters
    ----------
    base : Granularity
        What one step is.
    size : int
        How many steps are protected together.

    Notes
    -----
    The distance is :math:`\lceil d / g \rceil`: cut a shortest path of the base into
    pieces of length :math:`g` (group privacy, thesis, Proposition 2.3).

    Examples
    --------
    >>> from undertow.spaces.unit import Unbounded
    >>> Group(Unbounded(), 3).distance((), (0,) * 7, Table())
    3
    """

    base: Granularity
    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.base, Granularity):
            raise TypeError(f"base must be a granularity, got {self.base!r}.")
        check_count(self.size, "size")

    @property
    def splits_person(self) -> bool:  # type: ignore[override]  # follows the base
        """Whether the base splits a person."""
        return self.base.splits_person

    @property
    def name(self) -> str:
        """The command-line name."""
        return f"group:{self.size}:{self.base.name}"

    def require_domain(self, domain: Domain) -> None:
        """Raise ``MismatchError`` unless the base fits `domain`."""
        self.base.require_domain(domain)

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        return self.base.distance(first, second, domain) <= self.size

    def _steps(self, database: Database, domain: Domain) -> Iterator[Database]:
        return self._generate(database, domain)

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        seen, frontier = {database}, [database]
        for _ in range(self.size):
            grown = []
            for one in frontier:
                for other in self.base.neighbours(one, domain):
                    if other not in seen:
                        seen.add(other)
                        grown.append(other)
                        yield other
            frontier = grown

    def closed_form(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the distance of the base over the group size, rounded up."""
        steps = self.base.distance(first, second, domain)
        return steps if steps == math.inf else -(-int(steps) // self.size)

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return the invariants of the base."""
        return self.base.invariants(domain)

    def components(self, domain: Domain) -> Components | None:
        """Return the components of the base, which are the same."""
        return (
            self.base.components(domain) if isinstance(self.base, Catalogued) else None
        )


@dataclass(frozen=True, slots=True, init=False)
class Relation(Catalogued):
    """A neighbour relation of your own, on a domain that can be listed.

    Parameters
    ----------
    name : str
        Its name in reports.
    relation : callable
        ``relation(first, second) -> bool``; must be symmetric.

    Examples
    --------
    >>> steps = Relation("line", lambda x, y: abs(x - y) == 1)
    >>> steps.distance(0, 3, FiniteDomain(range(4)))
    3
    """

    label: str
    relation: Callable[[Any, Any], bool]

    def __init__(self, name: str, relation: Callable[[Any, Any], bool]) -> None:
        if not callable(relation):
            raise TypeError(f"relation must be callable, got {relation!r}.")
        object.__setattr__(self, "label", name)
        object.__setattr__(self, "relation", relation)

    @property
    def name(self) -> str:
        """The name given."""
        return self.label

    def require_domain(self, domain: Domain) -> None:
        """Raise ``AssumptionError`` unless `domain` can be listed."""
        require_enumerable(domain)

    def _adjacent(self, first: Any, second: Any, domain: Any) -> bool:
        forth, back = self.relation(first, second), self.relation(second, first)
        if bool(forth) != bool(back):
            raise AssumptionError(
                f"relation must be symmetric, got a pair that {self.label} relates "
                "one way only.",
                witness=(first, second),
            )
        return bool(forth)

    def _generate(self, database: Any, domain: Any) -> Iterator[Database]:
        return self._scan(database, domain)

    def closed_form(self, first: Database, second: Database, domain: Domain) -> None:
        """Return None: distances are searched."""
        return None

    def invariants(self, domain: Domain) -> tuple[str, ...]:
        """Return nothing known beyond the components that a check finds."""
        return ()


Rule = Literal["add-remove", "replace", "edit"]


def require_shape(domain: Domain, shape: str, *, name: str) -> None:
    """Raise ``MismatchError`` unless a listed domain holds databases of `shape`."""
    if isinstance(domain, FiniteDomain) and not getattr(domain, f"holds_{shape}"):
        form = {
            "multisets": "tuples of records, each built by Table.database",
            "rows": "tuples of one length",
            "matrices": "tuples of rows, all of one shape",
            "graphs": "frozensets of edges, each built by Graph.database",
        }[shape]
        raise MismatchError(
            f"domain must list {form} for {name}, got an element of another form."
        )


def multiset_difference(first: Any, second: Any) -> tuple[int, int]:
    """Return how many records are only in `first` and only in `second`."""
    mine, theirs = Counter(first), Counter(second)
    return (mine - theirs).total(), (theirs - mine).total()


def multiset_distance(rule: Rule, a: int, b: int) -> float:
    """Return the distance over all multisets."""
    if rule == "add-remove":
        return a + b
    if rule == "edit":
        return max(a, b)
    return a if a == b else math.inf


def multiset_formula(
    rule: Rule, first: Any, second: Any, domain: Domain
) -> float | None:
    """Return the canonical distance on `domain`, or None where none is proved.

    On tables of any, of capped and, for replacement and edits, of fixed size the
    formulas hold; under add-remove a fixed size has no neighbours. On listed classes
    add-remove needs closure under removal.
    """
    a, b = multiset_difference(first, second)
    if isinstance(domain, Table):
        if rule == "add-remove" and domain.size is not None:
            return math.inf if a + b else 0
        return multiset_distance(rule, a, b)
    if rule == "add-remove" and getattr(domain, "closed_under_removal", False):
        return a + b
    return None


def multiset_steps(rule: Rule, database: Any, domain: Table) -> Iterator[Any]:
    """Yield the neighbours of a multiset, each once."""
    distinct = list(dict.fromkeys(database))
    if rule != "replace" and len(database) > domain.least_size:
        for record in distinct:
            yield _without_record(database, record)
    if rule != "replace" and len(database) < domain.greatest_size:
        for record in domain.records():
            yield Table.database((*database, record))
    if rule != "add-remove" and database:
        universe = list(domain.records())
        for record in distinct:
            rest = _without_record(database, record)
            for other in universe:
                if other != record:
                    yield Table.database((*rest, other))


def _without_record(
    database: tuple[Hashable, ...], record: Hashable
) -> tuple[Any, ...]:
    at = database.index(record)
    return database[:at] + database[at + 1 :]


def multiset_components(rule: Rule, domain: Domain) -> Components | None:
    """Return the components of the neighbour graph on a table."""
    if not isinstance(domain, Table):
        return None
    number = domain.count()
    if number == 1:
        return Components(False, 1)
    if rule == "add-remove" and domain.size is not None:
        return Components(False, number, ("one per database",))
    if rule != "replace":
        return Components(True, 1)
    if domain.universe_size < 2:
        return Components(False, number, ("one per database",))
    if domain.size is not None:
        return Components(True, 1)
    if domain.max_size is None:
        return Components(True, math.inf, ("one per size",))
    sizes = tuple(f"size {n}" for n in range(domain.max_size + 1))
    return Components(True, len(sizes), sizes)


Absent = Callable[[Any], bool]


def row_difference(first: Any, second: Any, *, absent: Absent) -> tuple[int, int]:
    """Return p and q: rows present in one only, and present in both but different."""
    p = q = 0
    for mine, theirs in zip(first, second, strict=True):
        if mine != theirs:
            lone = absent(mine) or absent(theirs)
            p, q = p + lone, q + (not lone)
    return p, q


def row_distance(rule: Rule, p: int, q: int) -> float:
    """Return the distance over all choices of rows."""
    if rule == "add-remove":
        return p + 2 * q
    if rule == "edit":
        return p + q
    return math.inf if p else q


def row_formula(
    rule: Rule, first: Any, second: Any, domain: Domain, *, absent: Absent
) -> float | None:
    """Return the canonical distance on `domain`, or None where none is proved.

    The rows must vary independently; add-remove needs rows that can be absent. On
    listed classes only replacement and edits on a product are proved.
    """
    p, q = row_difference(first, second, absent=absent)
    if isinstance(domain, FiniteDomain):
        proved = domain.is_product and rule != "add-remove"
        return row_distance(rule, p, q) if proved else None
    can_be_absent = not isinstance(domain, Rows) or domain.free_ids
    if rule == "add-remove" and not can_be_absent:
        return math.inf if q else 0
    return row_distance(rule, p, q)


def row_steps(
    rule: Rule, database: Any, choices: Sequence[Any], *, absent: Absent
) -> Iterator[Any]:
    """Yield the neighbours that replace one row by one of `choices`, each once."""
    for at, mine in enumerate(database):
        for other in choices:
            lone = absent(mine) or absent(other)
            allowed = rule == "edit" or lone == (rule == "add-remove")
            if other != mine and allowed:
                yield (*database[:at], other, *database[at + 1 :])


def row_components(rule: Rule, domain: Rows) -> Components:
    """Return the components of the neighbour graph on identified rows."""
    number, values = domain.count(), domain.values
    if number == 1:
        return Components(False, 1)
    if rule == "add-remove" and not domain.free_ids:
        return Components(False, number, ("one per database",))
    if rule == "replace" and domain.free_ids:
        several = values is None or len(values) > 1
        patterns = 2.0 ** len(domain.ids) if len(domain.ids) < 1000 else math.inf
        return Components(several, patterns, ("one per set of ids present",))
    return Components(True, 1)

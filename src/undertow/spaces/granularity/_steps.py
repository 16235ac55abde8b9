r"""The three elementary changes, on multisets of records and on identified rows.

``add-remove``, ``replace`` and ``edit`` (either). For multisets write
:math:`a = |D \setminus D'|` and :math:`b = |D' \setminus D|`; for rows, :math:`p` for
the ids present in exactly one database and :math:`q` for those present in both with
different values. Then

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
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal

from undertow.errors import MismatchError
from undertow.spaces.base import Domain
from undertow.spaces.connected import Components
from undertow.spaces.domain import FiniteDomain, Rows, Table

__all__ = [
    "Rule",
    "multiset_components",
    "multiset_difference",
    "multiset_distance",
    "multiset_formula",
    "multiset_steps",
    "require_shape",
    "row_components",
    "row_difference",
    "row_distance",
    "row_formula",
    "row_steps",
]

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
            yield _without(database, record)
    if rule != "replace" and len(database) < domain.greatest_size:
        for record in domain.records():
            yield Table.database((*database, record))
    if rule != "add-remove" and database:
        universe = list(domain.records())
        for record in distinct:
            rest = _without(database, record)
            for other in universe:
                if other != record:
                    yield Table.database((*rest, other))


def _without(database: tuple[Hashable, ...], record: Hashable) -> tuple[Any, ...]:
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

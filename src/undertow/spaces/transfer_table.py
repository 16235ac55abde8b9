r"""Transfer factors by formula on tables and on identified rows.

Every change is summarised by how many records it takes away and puts in, or how many
ids it touches in which way; distances and relations depend on nothing else. So the
factor is a maximum over a handful of extreme changes, and exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from undertow.spaces.base import Database, Granularity
from undertow.spaces.domain import Rows, Table
from undertow.spaces.granularity._steps import multiset_distance, row_distance
from undertow.spaces.granularity.generic import FreeLunch
from undertow.spaces.granularity.table import (
    Attribute,
    Bounded,
    BoundedById,
    Edit,
    Unbounded,
)
from undertow.spaces.granularity.user import User
from undertow.spaces.transfer_closed import Closed, ceil_div, plain

__all__ = ["rows_transfer", "table_transfer"]

Change = tuple[float, float]


def _rule(granularity: Granularity) -> str | None:
    if isinstance(granularity, Unbounded):
        return "add-remove"
    if isinstance(granularity, Bounded | BoundedById):
        return "replace"
    if isinstance(granularity, User):
        return "add-remove" if granularity.add_remove else "replace"
    if isinstance(granularity, Edit):
        return "edit"
    if isinstance(granularity, Attribute):
        return "attribute"
    return "any" if isinstance(granularity, FreeLunch) else None


class _Kind(NamedTuple):
    """How changes of one kind of domain are listed, priced, said and shown."""

    changes: Callable[[str, float, Any], list[Change]]
    cost: Callable[[str, Change, float | None, Any], float]
    pair: Callable[[str, Change, float | None, Any], tuple[Database, Database] | None]
    text: str


def table_transfer(
    have: Granularity, want: Granularity, domain: Table
) -> Closed | None:
    """Return the factor between granularities of tables; always exact."""
    text = "{} records leave and {} enter"
    kind = _Kind(_table_changes, _table_cost, _table_pair, text)
    return _transfer(have, want, domain, kind=kind)


def rows_transfer(have: Granularity, want: Granularity, domain: Rows) -> Closed | None:
    """Return the factor between granularities of identified rows; always exact."""
    text = "{} ids come or go and {} change their value"
    kind = _Kind(_row_changes, _row_cost, _row_pair, text)
    return _transfer(have, want, domain, kind=kind)


def _transfer(
    have: Granularity, want: Granularity, domain: Table | Rows, *, kind: _Kind
) -> Closed | None:
    (mine, h), (target, g) = plain(have, domain), plain(want, domain)
    has, wants = _rule(mine), _rule(target)
    if has is None or wants is None:
        return None
    radius = math.inf if wants == "any" else g
    cells = _attribute_cells(wants, radius, domain)
    scored = [
        (kind.cost(has, change, cells, domain), change)
        for change in kind.changes(wants, radius, domain)
    ]
    factor, change = max(scored, key=lambda item: item[0])
    return Closed(
        ceil_div(factor, h),
        _say(kind.text, change),
        kind.pair(has, change, cells, domain),
    )


def _table_changes(wants: str, radius: float, domain: Table) -> list[Change]:
    """Return the extreme (records out, records in) that one step can reach."""
    most = domain.greatest_size
    reach = min(radius, most)
    rest = most if radius == math.inf else min(radius - reach, most)
    changes: list[Change] = {
        "add-remove": [(1, 0), (reach, 0), (reach, rest)],
        "replace": [(1, 1), (reach, reach)],
        "attribute": [(1, 1), (reach, reach)],
        "edit": [(1, 0), (reach, 0), (1, 1), (reach, reach)],
        "any": [(1, 0), (reach, 0), (1, 1), (reach, reach)],
    }[wants]
    return [
        (out, into)
        for out, into in changes
        if (domain.size is None or out == into)
        and (domain.universe_size > 1 or 0 in (out, into))
    ]


def _attribute_cells(wants: str, radius: float, domain: Table | Rows) -> float | None:
    """Return how many attribute values one step changes; None: all of a record's."""
    if wants != "attribute":
        return None
    records = domain.greatest_size if isinstance(domain, Table) else len(domain.ids)
    return min(radius, records * _free_attributes(domain))


def _free_attributes(domain: Table | Rows) -> int:
    return sum(values is None or len(values) > 1 for _, values in domain.attributes)


def _table_cost(has: str, change: Change, cells: float | None, domain: Table) -> float:
    out, into = change
    if has == "any":
        return 1
    if has == "attribute":
        if out != into:
            return math.inf
        return out * _free_attributes(domain) if cells is None else cells
    if has == "add-remove" and domain.size is not None:
        return math.inf
    if math.inf in change:
        return math.inf
    return multiset_distance(has, int(out), int(into))  # type: ignore[arg-type]  # a rule


def _table_pair(
    has: str, change: Change, cells: float | None, domain: Table
) -> tuple[Database, Database] | None:
    if math.inf in change or cells == math.inf:
        return None
    out, into = int(change[0]), int(change[1])
    old, new = _two_records(domain, None if cells is None else 1)
    kept = 0 if domain.size is None else domain.size - out
    if has == "attribute" and cells is not None:
        return _attribute_pair(int(cells), domain)
    first = Table.database([old] * (kept + out))
    return first, Table.database([old] * kept + [new] * into)


def _two_records(domain: Table, differing: int | None) -> tuple[Any, Any]:
    """Return two records, differing in so many attributes; in all if None."""
    if not domain.attributes:
        records = [*domain.records(at_most=2)] * 2
        return records[0], records[1]
    return _varied(domain, 0), _varied(domain, differing)


def _varied(domain: Table | Rows, changed: int | None) -> tuple[Any, ...]:
    """Return a record with its first `changed` free attributes at a second value."""
    left = math.inf if changed is None else changed
    record = []
    for _, values in domain.attributes:
        options = (0, 1) if values is None else values
        second = left > 0 and len(options) > 1
        left -= second
        record.append(options[1] if second else options[0])
    return tuple(record)


def _attribute_pair(cells: int, domain: Table) -> tuple[Database, Database]:
    """Return databases `cells` attribute changes apart, spread over the records."""
    free, base = _free_attributes(domain), _varied(domain, 0)
    number = -(-cells // free) if domain.size is None else domain.size
    counts = [max(0, min(free, cells - free * at)) for at in range(number)]
    changed = [_varied(domain, count) for count in counts]
    return Table.database([base] * number), Table.database(changed)


def _row_changes(wants: str, radius: float, domain: Rows) -> list[Change]:
    """Return the extreme (ids come or go, ids changed) that one step can reach."""
    n = len(domain.ids)
    reach = min(radius, n)
    twice = 0 if radius <= n else min(radius - n, n)
    extremes: dict[str, list[Change]] = {
        "add-remove": [(1, 0), (reach, 0), (reach - twice, twice)],
        "replace": [(0, 1), (0, reach)],
        "attribute": [(0, 1), (0, reach)],
        "edit": [(1, 0), (reach, 0), (0, reach)],
        "any": [(1, 0), (n, 0), (0, n)],
    }
    several = domain.values is None or len(domain.values) > 1
    return [
        (lone, both)
        for lone, both in extremes[wants]
        if (domain.free_ids or not lone) and (several or not both) and lone + both
    ]


def _row_cost(has: str, change: Change, cells: float | None, domain: Rows) -> float:
    lone, both = change
    if has == "any":
        return 1
    if has == "attribute":
        if lone:
            return math.inf
        return both * _free_attributes(domain) if cells is None else cells
    if has == "add-remove" and not domain.free_ids:
        return math.inf
    return row_distance(has, int(lone), int(both))  # type: ignore[arg-type]  # a rule


def _row_pair(
    has: str, change: Change, cells: float | None, domain: Rows
) -> tuple[Database, Database]:
    lone, both = int(change[0]), int(change[1])
    old, new = _two_values(domain, cells)
    n = len(domain.ids)
    first = [old] * n
    second = [None] * lone + [new] * both + [old] * (n - lone - both)
    if has == "attribute" and cells is not None:
        free, left = _free_attributes(domain), int(cells)
        counts = [max(0, min(free, left - free * at)) for at in range(n)]
        second = [_varied(domain, count) for count in counts]
    return tuple(first), tuple(second)


def _two_values(domain: Rows, cells: float | None) -> tuple[Any, Any]:
    if domain.attributes:
        return _varied(domain, 0), _varied(domain, None if cells is None else 1)
    values = (0, 1) if domain.values is None else domain.values * 2
    return values[0], values[1]


def _say(text: str, change: Change) -> str:
    shown = ["any number" if x == math.inf else f"{x:g}" for x in change]
    return text.format(*shown)

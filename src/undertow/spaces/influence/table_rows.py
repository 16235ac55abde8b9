"""Given changes of a table: one replacement, or several records at once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

from undertow.errors import AssumptionError
from undertow.privacy.exact import Exact
from undertow.spaces.change import Change, Column, Row
from undertow.spaces.domain import Table
from undertow.spaces.granularity import Attribute, Bounded, Edit, FreeLunch, Unbounded
from undertow.spaces.influence.reduction import Reduced, reduce_column
from undertow.spaces.influence.table_change import replaced
from undertow.spaces.influence.table_units import TableSight, table_sight
from undertow.spaces.metric import AbsoluteDifference, SymmetricDifference

__all__ = ["record_row", "replacement_row"]

# Units of which a record that enters or leaves the view costs at most one.
_BY_RECORD = (Attribute, Unbounded)


def replacement_row(
    domain: Table,
    *,
    columns: Sequence[Column],
    source: Hashable,
    destination: Hashable,
) -> Row:
    """Return the influences of replacing a record of one cell by one of another.

    Parameters
    ----------
    domain : Table
        With cells that do not overlap.
    columns : sequence of Column
        What is asked; influences are counted by their position.
    source, destination : hashable
        Cells; equal for a replacement inside one cell.
    """
    _require_cells(domain, source, destination)
    sights = [table_sight(reduce_column(c, domain), domain) for c in columns]
    influences: dict[int, Exact] = {}
    for j, sight in enumerate(sights):
        inside = sum(sees(sight, (cell,)) for cell in (source, destination))
        both = sight.same if source == destination else sight.move
        influence = (0, sight.one, both)[inside]
        if influence:
            influences[j] = influence
    return Row(replaced((source,), (destination,), domain), influences)


def record_row(
    domain: Table, *, columns: Sequence[Column], changes: Mapping[Hashable, int]
) -> Row:
    """Return the influences of adding and removing several records.

    Parameters
    ----------
    domain : Table
        With cells that do not overlap.
    columns : sequence of Column
        Additive units (add/remove-one, differences of counts) and discrete ones.
    changes : mapping of hashable to int
        Cell -> records added (positive) or removed (negative).

    Raises
    ------
    AssumptionError
        If a unit does not add up over records.
    ValueError
        If no two tables of the domain differ so.
    """
    _require_cells(domain, *changes)
    _require_possible(domain, changes)
    influences: dict[int, Exact] = {}
    for j, column in enumerate(columns):
        plain = reduce_column(column, domain)
        sight = table_sight(plain, domain)
        moved = [n for cell, n in changes.items() if sees(sight, (cell,)) and n]
        if moved:
            influences[j] = _several(plain, sight, moved, domain)
    amounts = ", ".join(f"{n:+d} in cell {cell!r}" for cell, n in changes.items())
    change = Change(
        "records", f"records: {amounts}", (("cells", tuple(changes.items())),)
    )
    return Row(change, influences)


def _several(
    plain: Reduced, sight: TableSight, moved: Sequence[int], domain: Table
) -> Exact:
    if not plain.additive and not plain.is_discrete:
        raise AssumptionError(
            "unit must add up over records for a change of several, got "
            f"{plain.unit.name}; ask for a granularity instead."
        )
    added = sum(n for n in moved if n > 0)
    removed = -sum(n for n in moved if n < 0)
    if getattr(plain.view, "statistic", "records") == "count":
        added, removed = max(added - removed, 0), max(removed - added, 0)
    if not added and not removed:
        return 0
    return plain.finish(_between(plain, added, removed, domain, sight.cells is None))


def _between(
    plain: Reduced, added: int, removed: int, domain: Table, whole: bool
) -> Exact:
    """Return how far the view moves; `whole`: it sees every record."""
    unit, common = plain.unit, plain.setting == "common"
    padded = common and not whole  # records outside the view make up for the others
    if isinstance(unit, FreeLunch):
        return 1
    if isinstance(unit, Edit):
        return max(added, removed)
    if isinstance(unit, Bounded):
        return max(added, removed) if added == removed or padded else math.inf
    if isinstance(unit, Attribute) and not padded:
        attributes = len(domain.attributes)
        return added * attributes if added == removed else math.inf
    if isinstance(unit, Unbounded) and whole and domain.size is not None:
        return math.inf  # no record can come or go
    if isinstance(unit, SymmetricDifference) and common and domain.size is not None:
        return 2 * max(added, removed)
    known = isinstance(unit, AbsoluteDifference | SymmetricDifference)
    return added + removed if known or isinstance(unit, _BY_RECORD) else math.inf


def _require_possible(domain: Table, changes: Mapping[Hashable, int]) -> None:
    added = sum(n for n in changes.values() if n > 0)
    removed = -sum(n for n in changes.values() if n < 0)
    if domain.size is not None and added != removed:
        raise ValueError(
            f"changes must add as many records as they remove on a table of "
            f"{domain.size}, got {added} added and {removed} removed; leave size out "
            "if the number of records may change."
        )
    if max(added, removed) > domain.greatest_size:
        raise ValueError(
            f"changes must fit a table of at most {int(domain.greatest_size)} records, "
            f"got {added} added and {removed} removed."
        )


def _require_cells(domain: Table, *cells: Hashable) -> None:
    unknown = [cell for cell in cells if cell not in domain.cells]
    if unknown or domain.multi:
        raise ValueError(
            "cells must be cells of a table whose cells do not overlap, got "
            f"{unknown[0]!r}."
            if unknown
            else "cells must not overlap, got multi=True."
        )


def sees(sight: TableSight, label: tuple[Hashable, ...]) -> bool:
    """Return whether a column sees records with these cells."""
    return sight.cells is None or not sight.cells.isdisjoint(label)

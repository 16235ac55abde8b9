"""Given changes of a table: one replacement, or several records at once."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

from undertow.errors import AssumptionError
from undertow.privacy.exact import Exact
from undertow.spaces.change import Change, Column, Row
from undertow.spaces.domain import Table
from undertow.spaces.granularity import Bounded, Edit
from undertow.spaces.influence.reduction import Reduced, reduce_column
from undertow.spaces.influence.table_change import replaced
from undertow.spaces.influence.table_units import TableSight, table_sight

__all__ = ["record_row", "replacement_row"]


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
    """
    _require_cells(domain, *changes)
    influences: dict[int, Exact] = {}
    for j, column in enumerate(columns):
        plain = reduce_column(column, domain)
        sight = table_sight(plain, domain)
        moved = [n for cell, n in changes.items() if sees(sight, (cell,)) and n]
        if moved:
            influences[j] = _several(plain, sight, moved)
    amounts = ", ".join(f"{n:+d} in cell {cell!r}" for cell, n in changes.items())
    change = Change(
        "records", f"records: {amounts}", (("cells", tuple(changes.items())),)
    )
    return Row(change, influences)


def _several(plain: Reduced, sight: TableSight, moved: Sequence[int]) -> Exact:
    if plain.is_discrete or sight.one == math.inf:
        return sight.one
    if not plain.additive:
        raise AssumptionError(
            "unit must add up over records for a change of several, got "
            f"{plain.unit.name}; ask for a granularity instead."
        )
    added = sum(n for n in moved if n > 0)
    removed = -sum(n for n in moved if n < 0)
    shown = getattr(plain.view, "statistic", "records")
    if shown == "count":
        return abs(added - removed) * sight.one
    if isinstance(plain.unit, Bounded | Edit):
        return max(added, removed) * sight.one
    return (added + removed) * sight.one


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

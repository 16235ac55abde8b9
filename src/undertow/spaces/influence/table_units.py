"""How far each unit moves when one record of a table changes.

A record *enters or leaves* a view, or is *replaced inside* it. On sub-multisets:

==================== ============== ======= ==============================
unit                 enters, leaves replace remark
==================== ============== ======= ==============================
Unbounded            1              2       no neighbours at a fixed size
Bounded, view        ∞              1       sizes of the image differ
Bounded, common      1              1       ∞, 1 where the view sees every
                                            record: nothing can pad it
Edit                 1              1
FreeLunch            1              1
Attribute, view      ∞              k       k attributes differ
Attribute, common    1              ≤ 2     out of the view and back in
SymmetricDifference  1              2       2, 2 in common at a fixed size
==================== ============== ======= ==============================

A count moves by 1 when a record enters or leaves and not at all under replacement.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

from undertow.errors import MismatchError, VacuousGranularityError
from undertow.privacy.exact import Exact
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.domain import Table
from undertow.spaces.granularity import Attribute, Bounded, Edit, FreeLunch, Unbounded
from undertow.spaces.influence.reduction import Reduced
from undertow.spaces.metric import AbsoluteDifference, SymmetricDifference, Values
from undertow.spaces.view import Project, Select

__all__ = ["TableSight", "possible_cells", "table_sight"]


@dataclass(frozen=True, slots=True)
class TableSight:
    """What a column sees of one changed record.

    Parameters
    ----------
    cells : frozenset or None
        The cells whose records it sees; None: every record.
    one : Exact
        Influence of a record that enters or leaves the view.
    move, same : Exact
        Influence of a record replaced inside the view, by one of another cell or of
        the same cell.
    kept : frozenset of str or None
        The attributes it sees; None: all of them.
    """

    cells: frozenset[object] | None
    one: Exact
    move: Exact
    same: Exact
    kept: frozenset[str] | None = None


def table_sight(
    column: Reduced, domain: Table, *, attribute: str | None = None
) -> TableSight:
    """Return what `column` sees of a changed record.

    Parameters
    ----------
    column : Reduced
        A plain column.
    domain : Table
        The table.
    attribute : str, optional
        Set where a replacement changes this attribute alone.

    Raises
    ------
    VacuousGranularityError
        If a common-domain unit has no neighbours at the fixed size of the table.
    MismatchError
        If the unit makes no sense on what the view shows.
    """
    _require_unit(column, domain)
    view = column.view
    if isinstance(view, Select) and view.statistic == "count":
        one = _count_moves(column, domain)
        return TableSight(_cells(view, domain), column.finish(one), 0, 0)
    names = domain.attribute_names
    kept = frozenset(view.attributes if isinstance(view, Project) else names)
    move, same = (
        _changed(domain, kept, attribute=attribute, leaves_cell=leaves)
        for leaves in (True, False)
    )
    if not names:
        move = same = 1
    cells = _cells(view, domain) if isinstance(view, Select) else None
    one = column.finish(_enters(column, domain, whole=cells is None))
    return TableSight(
        cells,
        one,
        column.finish(_replaced(column, domain, whole=cells is None, differing=move)),
        column.finish(_replaced(column, domain, whole=cells is None, differing=same)),
        kept if isinstance(view, Project) else None,
    )


def possible_cells(domain: Table) -> list[tuple[Hashable, ...]]:
    """Return every cell, or set of cells, that a record can have."""
    if not domain.cells:
        return [()]
    listed: Any = dict(domain.attributes).get(domain.cell)
    if not domain.multi:
        return [(cell,) for cell in listed or domain.cells]
    if listed is not None:
        return [tuple(label) for label in listed]
    most = len(domain.cells) if domain.max_cells is None else domain.max_cells
    sets = (combinations(domain.cells, size) for size in range(most + 1))
    return list(chain.from_iterable(sets))


def _cells(view: Select, domain: Table) -> frozenset[object] | None:
    return None if _sees_all(view, domain) else frozenset(view.cells)


def _sees_all(view: Select, domain: Table) -> bool:
    """Return whether no record can lie outside the view."""
    listed: Any = dict(domain.attributes).get(domain.cell)
    if domain.multi and listed is None:
        return False  # a record may lie in no cell at all
    if domain.multi:
        return all(not view.cells.isdisjoint(label) for label in listed)
    return all(cell in view.cells for cell in listed or domain.cells)


def _changed(
    domain: Table, kept: frozenset[str], *, attribute: str | None, leaves_cell: bool
) -> int:
    """Return how many kept attributes a replacement can change at once."""
    listed = [
        name
        for name, values in domain.attributes
        if name in kept and (values is None or len(values) > 1)
    ]
    if attribute is not None:
        return int(attribute in listed)
    if domain.cells and not leaves_cell:
        listed = [name for name in listed if name != domain.cell]
    return len(listed)


def _require_unit(column: Reduced, domain: Table) -> None:
    unit = column.unit
    if column.setting == "common":
        if isinstance(unit, Unbounded) and domain.size is not None:
            raise VacuousGranularityError(
                "unit must have neighbours in the domain in the common setting, got "
                "unbounded on a table of fixed size; state the claim at bounded, or "
                "leave size out.",
                source="paper, Example III.4",
            )
        where: Domain = domain
    else:
        where = column.view.image(domain) or Values()
    if isinstance(unit, Granularity):
        _require_fit(unit, where)


def _require_fit(unit: Granularity, where: Domain) -> None:
    if isinstance(where, Values) and not isinstance(unit, FreeLunch):
        raise MismatchError(
            f"unit must be a metric on numbers for a count in the view setting, got "
            f"{unit.name}; use AbsoluteDifference, or state the claim in the common "
            "setting."
        )
    unit.require_domain(where)


def _enters(column: Reduced, domain: Table, *, whole: bool) -> Exact:
    unit, common = column.unit, column.setting == "common"
    if isinstance(unit, FreeLunch | Edit | Unbounded):
        return 1
    if isinstance(unit, SymmetricDifference):
        return 2 if common and domain.size is not None else 1
    if isinstance(unit, Bounded | Attribute):
        return 1 if common and not whole else math.inf
    return math.inf


def _replaced(column: Reduced, domain: Table, *, whole: bool, differing: int) -> Exact:
    unit, common = column.unit, column.setting == "common"
    if not differing:
        return 0
    if isinstance(unit, FreeLunch | Edit | Bounded):
        return 1
    if isinstance(unit, SymmetricDifference):
        return 2
    if isinstance(unit, Unbounded):
        return math.inf if whole and domain.size is not None else 2
    if isinstance(unit, Attribute):
        return min(differing, 2) if common and not whole else differing
    return math.inf


def _count_moves(column: Reduced, domain: Table) -> Exact:
    assert isinstance(column.view, Select)
    whole = _sees_all(column.view, domain)
    common = column.setting == "common"
    if isinstance(column.unit, FreeLunch):
        return 1
    if not common:
        return 1 if isinstance(column.unit, AbsoluteDifference) else math.inf
    return _enters(column, domain, whole=whole)

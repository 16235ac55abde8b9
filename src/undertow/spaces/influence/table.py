"""Change classes of tables: records that enter, leave, or are replaced."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from undertow.privacy.exact import Exact
from undertow.spaces.base import Granularity
from undertow.spaces.change import Change, ChangeFamily, Column
from undertow.spaces.domain import Table
from undertow.spaces.granularity import (
    Attribute,
    Bounded,
    Edit,
    FreeLunch,
    Group,
    Unbounded,
)
from undertow.spaces.influence.families import RepeatedFamily, UnionFamily
from undertow.spaces.influence.pairs import PairColumn, PairFamily
from undertow.spaces.influence.reduction import Reduced, grow, reduce_column
from undertow.spaces.influence.runs import ExplicitFamily, Run
from undertow.spaces.influence.slots import SlotColumn, TopFamily
from undertow.spaces.influence.table_change import (
    added,
    exchanged,
    in_cells,
    replaced,
)
from undertow.spaces.influence.table_rows import record_row, replacement_row
from undertow.spaces.influence.table_units import (
    TableSight,
    possible_cells,
    table_sight,
)

__all__ = ["record_row", "replacement_row", "table_family"]

# Cell sets of overlapping tables up to which every one is a type of its own.
_LISTED_SETS = 2_000
_REPLACING = (Attribute, Bounded)


def table_family(
    domain: Table, target: Granularity, *, columns: Sequence[Column]
) -> ChangeFamily | None:
    """Return the change classes of a table; None where no formula is known.

    Notes
    -----
    Record types are grouped by the views that see them. Unbounded: one class per type.
    Bounded: one per pair of types, a type with itself where two record values share
    it. Edit: both. Attribute: one per type and attribute, and pairs of cells. Several
    steps at once, and free lunch, are multiples of these.
    """
    plain = [reduce_column(column, domain) for column in columns]
    if isinstance(target, Group):
        replaces = domain.size is not None or isinstance(target.base, _REPLACING)
        everything = _everything(domain, plain, base=Bounded() if replaces else Edit())
        return _repeated(
            domain, target.base, plain, times=target.size, whole=everything
        )
    if isinstance(target, FreeLunch):
        base = Edit() if domain.size is None else Bounded()
        return _everything(domain, plain, base=base)
    return _family(domain, target, plain)


def _everything(
    domain: Table, plain: Sequence[Reduced], *, base: Granularity
) -> ChangeFamily | None:
    """Return the changes of every record."""
    return _repeated(domain, base, plain, times=domain.greatest_size, whole=None)


def _family(
    domain: Table, target: Granularity, plain: Sequence[Reduced]
) -> ChangeFamily | None:
    if isinstance(target, Attribute):
        return _attribute_family(domain, plain)
    if not isinstance(target, Unbounded | Bounded | Edit):
        return None
    sights = [table_sight(column, domain) for column in plain]
    faithful = all(column.faithful for column in plain)
    if domain.multi and not _few_sets(domain):
        if isinstance(target, Edit):
            return None
        return _top_family(
            domain, sights, faithful, replace=isinstance(target, Bounded)
        )
    types = _types(domain, sights)
    parts: list[ChangeFamily] = []
    if isinstance(target, Unbounded | Edit) and domain.size is None:
        parts.append(_entering(domain, types, sights, faithful))
    if isinstance(target, Bounded | Edit) and _can_replace(domain, types):
        parts.append(_replacing(domain, types, sights, faithful))
    return parts[0] if len(parts) == 1 else UnionFamily(parts)


@dataclass(frozen=True, slots=True)
class _Types:
    """Record types: cells, or sets of cells, that the same columns see."""

    labels: list[tuple[Hashable, ...]]
    sizes: list[int]
    members: list[Sequence[int]]

    def twice(self, domain: Table) -> list[bool]:
        """Return which types hold two record values or more."""
        several = _values_per_label(domain) > 1
        return [several or size > 1 for size in self.sizes]


def _few_sets(domain: Table) -> bool:
    listed = dict(domain.attributes).get(domain.cell)
    if listed is not None:
        return len(listed) <= _LISTED_SETS
    number, most = 0, _most_cells(domain)
    for size in range(most + 1):
        number += math.comb(len(domain.cells), size)
        if number > _LISTED_SETS:
            return False
    return True


def _most_cells(domain: Table) -> int:
    cells = len(domain.cells)
    return cells if domain.max_cells is None else min(cells, domain.max_cells)


def _values_per_label(domain: Table) -> float:
    if not domain.cells:
        return domain.universe_size
    return math.inf if domain.values_per_cell is None else domain.values_per_cell


def _sets_of_cells(sets: Sequence[frozenset[object]]) -> dict[object, list[int]]:
    """Return which of the sets hold each cell."""
    found: dict[object, list[int]] = {}
    for number, cells in enumerate(sets):
        for cell in cells:
            found.setdefault(cell, []).append(number)
    return found


def _types(domain: Table, sights: Sequence[TableSight]) -> _Types:
    sets = list(dict.fromkeys(s.cells for s in sights if s.cells is not None))
    of_cell = _sets_of_cells(sets)
    apart = any(sight.move != sight.same for sight in sights)
    found: dict[tuple[int, ...], int] = {}
    labels: list[tuple[Hashable, ...]] = []
    sizes: list[int] = []
    seen_by: list[list[int]] = [[] for _ in sets]
    for label in possible_cells(domain):
        numbers = sorted({n for cell in label for n in of_cell.get(cell, ())})
        key = (*numbers, -1 - len(labels)) if apart else tuple(numbers)
        if key in found:
            sizes[found[key]] += 1
            continue
        found[key] = len(labels)
        for number in numbers:
            seen_by[number].append(len(labels))
        labels.append(label)
        sizes.append(1)
    position = {cells: number for number, cells in enumerate(sets)}
    members: list[Sequence[int]] = [
        range(len(labels)) if s.cells is None else seen_by[position[s.cells]]
        for s in sights
    ]
    return _Types(labels, sizes, members)


def _can_replace(domain: Table, types: _Types) -> bool:
    return len(types.labels) > 1 or any(types.twice(domain))


def _entering(
    domain: Table, types: _Types, sights: Sequence[TableSight], faithful: bool
) -> ExplicitFamily:
    runs = {
        j: _runs(types.members[j], sight.one)
        for j, sight in enumerate(sights)
        if sight.one
    }
    return ExplicitFamily(
        len(types.labels),
        runs,
        describe=lambda at: added(types.labels[at], domain),
        tight=faithful,
    )


def _runs(members: Sequence[int], value: Exact) -> list[Run]:
    """Join successive members into runs."""
    if isinstance(members, range):
        return [(members.start, members.stop, value)] if members else []
    runs: list[Run] = []
    for at in members:
        if runs and runs[-1][1] == at:
            runs[-1] = (runs[-1][0], at + 1, value)
        else:
            runs.append((at, at + 1, value))
    return runs


def _replacing(
    domain: Table,
    types: _Types,
    sights: Sequence[TableSight],
    faithful: bool,
    *,
    twice: Sequence[bool] | None = None,
) -> PairFamily:
    columns = {
        j: PairColumn(types.members[j], sight.one, sight.move, sight.same)
        for j, sight in enumerate(sights)
    }
    return PairFamily(
        len(types.labels),
        twice=types.twice(domain) if twice is None else twice,
        columns=columns,
        describe=lambda s, t: replaced(types.labels[s], types.labels[t], domain),
        tight=faithful,
    )


def _attribute_family(domain: Table, plain: Sequence[Reduced]) -> ChangeFamily | None:
    if domain.multi:
        return None
    parts: list[ChangeFamily] = []
    faithful = all(column.faithful for column in plain)
    for name, values in domain.attributes:
        if values is not None and len(values) < 2:
            continue
        sights = [table_sight(c, domain, attribute=name) for c in plain]
        types = _types(domain, sights)
        if domain.cells and name == domain.cell:
            parts.append(_moving_cells(domain, sights, faithful))
        else:
            parts.append(_one_attribute(domain, types, sights, name, faithful))
    return UnionFamily(parts)


def _moving_cells(
    domain: Table, sights: Sequence[TableSight], faithful: bool
) -> PairFamily:
    types = _types(domain, sights)
    # Two cells of one type: the record moves, though no column tells them apart.
    twice = [size > 1 for size in types.sizes]
    return _replacing(domain, types, sights, faithful, twice=twice)


def _one_attribute(
    domain: Table,
    types: _Types,
    sights: Sequence[TableSight],
    name: str,
    faithful: bool,
) -> ExplicitFamily:
    runs = {
        j: _runs(types.members[j], sight.same)
        for j, sight in enumerate(sights)
        if sight.same
    }

    def describe(at: int) -> Change:
        where = in_cells(types.labels[at], domain)
        details = (("attribute", name), ("cells", types.labels[at]))
        return Change("attribute", f"change {name!r} of a record{where}", details)

    return ExplicitFamily(len(types.labels), runs, describe=describe, tight=faithful)


def _top_family(
    domain: Table, sights: Sequence[TableSight], faithful: bool, *, replace: bool
) -> TopFamily:
    position = {cell: at for at, cell in enumerate(domain.cells)}
    columns: dict[int, SlotColumn] = {}
    for j, sight in enumerate(sights):
        both = max(sight.move, sight.same)
        most = max(sight.one, both) if replace else sight.one
        if sight.cells is None:
            columns[j] = SlotColumn(None, 0, 0, both if replace else sight.one)
            faithful = faithful and (not replace or sight.move == sight.same)
        else:
            items = tuple(sorted(position[cell] for cell in sight.cells))
            columns[j] = SlotColumn(items, sight.one, both, most, additive=False)
    most_cells = _most_cells(domain)
    return TopFamily(
        len(domain.cells),
        most_cells,
        columns=columns,
        replace=replace,
        equal_sets=domain.values_per_cell != 1,
        describe=lambda once, twice: exchanged(domain, once, twice, replace=replace),
        tight=faithful,
        notes=(f"every record lies in at most {most_cells} cells",),
    )


def _repeated(
    domain: Table,
    base: Granularity,
    plain: Sequence[Reduced],
    *,
    times: Exact,
    whole: ChangeFamily | None,
) -> ChangeFamily | None:
    one = _family(domain, base, plain)
    if one is None:
        return None
    capped = {j: grow(c) for j, c in enumerate(plain) if not c.additive}
    room = domain.greatest_size >= times
    return RepeatedFamily(one, times, capped=capped, tight=room, whole=whole)

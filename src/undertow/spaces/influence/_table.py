"""Change classes of tables: records that enter, leave, or are replaced.

The classes of a target; given changes, one replacement or several records at once; and
all of them in words. They rest on how far each unit moves when one record changes. A
record *enters or leaves* a view, or is *replaced inside* it. On sub-multisets:

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
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

from undertow.errors import AssumptionError, MismatchError, VacuousGranularityError
from undertow.numeric.exact import Exact
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.change import Change, ChangeFamily, Column, Row
from undertow.spaces.domain import Table
from undertow.spaces.influence._column import Reduced, grow, reduce_column
from undertow.spaces.influence._family import (
    PairColumn,
    PairFamily,
    RepeatedFamily,
    SlotColumn,
    TopFamily,
    UnionFamily,
)
from undertow.spaces.influence._run import ExplicitFamily, Run
from undertow.spaces.metric import AbsoluteDifference, SymmetricDifference, Values
from undertow.spaces.unit import Attribute, Bounded, Edit, FreeLunch, Group, Unbounded
from undertow.spaces.view import Project, Select

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
        describe=lambda at: added_in_words(types.labels[at], domain),
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
        describe=lambda s, t: replaced_in_words(
            types.labels[s], types.labels[t], domain
        ),
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
        where = cells_in_words(types.labels[at], domain)
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
        describe=lambda once, twice: exchanged_in_words(
            domain, once, twice, replace=replace
        ),
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
        one = _moved_count(column, domain)
        return TableSight(_seen_cells(view, domain), column.finish(one), 0, 0)
    names = domain.attribute_names
    kept = frozenset(view.attributes if isinstance(view, Project) else names)
    move, same = (
        _changed_attributes(domain, kept, attribute=attribute, leaves_cell=leaves)
        for leaves in (True, False)
    )
    if not names:
        move = same = 1
    cells = _seen_cells(view, domain) if isinstance(view, Select) else None
    one = column.finish(_moved_on_entry(column, domain, whole=cells is None))
    return TableSight(
        cells,
        one,
        column.finish(
            _moved_on_replacement(column, domain, whole=cells is None, differing=move)
        ),
        column.finish(
            _moved_on_replacement(column, domain, whole=cells is None, differing=same)
        ),
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


def _seen_cells(view: Select, domain: Table) -> frozenset[object] | None:
    return None if _sees_all(view, domain) else frozenset(view.cells)


def _sees_all(view: Select, domain: Table) -> bool:
    """Return whether no record can lie outside the view."""
    listed: Any = dict(domain.attributes).get(domain.cell)
    if domain.multi and listed is None:
        return False  # a record may lie in no cell at all
    if domain.multi:
        return all(not view.cells.isdisjoint(label) for label in listed)
    return all(cell in view.cells for cell in listed or domain.cells)


def _changed_attributes(
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


def _moved_on_entry(column: Reduced, domain: Table, *, whole: bool) -> Exact:
    unit, common = column.unit, column.setting == "common"
    if isinstance(unit, FreeLunch | Edit | Unbounded):
        return 1
    if isinstance(unit, SymmetricDifference):
        return 2 if common and domain.size is not None else 1
    if isinstance(unit, Bounded | Attribute):
        return 1 if common and not whole else math.inf
    return math.inf


def _moved_on_replacement(
    column: Reduced, domain: Table, *, whole: bool, differing: int
) -> Exact:
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


def _moved_count(column: Reduced, domain: Table) -> Exact:
    assert isinstance(column.view, Select)
    whole = _sees_all(column.view, domain)
    common = column.setting == "common"
    if isinstance(column.unit, FreeLunch):
        return 1
    if not common:
        return 1 if isinstance(column.unit, AbsoluteDifference) else math.inf
    return _moved_on_entry(column, domain, whole=whole)


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
    return Row(replaced_in_words((source,), (destination,), domain), influences)


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
            influences[j] = _moved_by_several(plain, sight, moved, domain)
    amounts = ", ".join(f"{n:+d} in cell {cell!r}" for cell, n in changes.items())
    change = Change(
        "records", f"records: {amounts}", (("cells", tuple(changes.items())),)
    )
    return Row(change, influences)


def _moved_by_several(
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
    return plain.finish(
        _moved_by_records(plain, added, removed, domain, sight.cells is None)
    )


def _moved_by_records(
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


def cells_in_words(label: tuple[Hashable, ...], domain: Table) -> str:
    """Return where a record lies, in words."""
    if not domain.cells:
        return ""
    if not domain.multi:
        return f" of {domain.cell} {label[0]!r}"
    named = ", ".join(repr(cell) for cell in label) or "none"
    return f" of {domain.cell}s {named}"


def added_in_words(label: tuple[Hashable, ...], domain: Table) -> Change:
    """Return the change that adds or removes one record."""
    where = cells_in_words(label, domain)
    return Change("add", f"add or remove a record{where}", (("cells", label),))


def replaced_in_words(
    source: tuple[Hashable, ...], destination: tuple[Hashable, ...], domain: Table
) -> Change:
    """Return the change that replaces one record, with example databases."""
    details: tuple[tuple[str, object], ...] = (
        ("from", source),
        ("to", destination),
    )
    if source == destination:
        where = cells_in_words(source, domain)
        summary = f"replace a record{where} by another one of the same"
        if not domain.cells:
            summary = "replace a record by another one"
        return Change("replace", summary, details)
    there = cells_in_words(destination, domain)
    summary = f"replace a record{cells_in_words(source, domain)} by one{there}"
    if not domain.multi:
        one, two = source[0], destination[0]
        pair = ((one, one, one), (one, one, two))
        details = (*details, ("example", pair))
    return Change("replace", summary, details)


def exchanged_in_words(
    domain: Table, once: tuple[int, ...], twice: tuple[int, ...], *, replace: bool
) -> Change:
    """Return the change of a record in several cells, by position of the cells."""
    alone = tuple(domain.cells[i] for i in once)
    shared = tuple(domain.cells[i] for i in twice)
    if not replace:
        return added_in_words(alone, domain)
    details = (("either", alone), ("both", shared))
    named = ", ".join(repr(cell) for cell in (*alone, *shared))
    return Change("replace", f"replace a record, touching cells {named}", details)

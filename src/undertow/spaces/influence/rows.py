r"""Change classes of identified rows: one id changes its value, comes or goes.

With :math:`p` for ids present in exactly one database and :math:`q` for ids present in
both with different values, units move by

=================================== =============================
Unbounded, User(add_remove)         :math:`p + 2q`
Edit                                :math:`p + q`
Bounded(ordered), BoundedById, User :math:`q`, infinite if p > 0
Attribute                           changed attributes, the same
=================================== =============================

both on a view of some ids and modulo what it does not see, since rows vary
independently. Views by position see an id wherever the rows before it put it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from undertow.privacy.exact import Exact
from undertow.spaces.base import Granularity
from undertow.spaces.change import Change, ChangeFamily, Column, Row
from undertow.spaces.domain import Rows
from undertow.spaces.granularity import (
    Attribute,
    Bounded,
    BoundedById,
    Edit,
    FreeLunch,
    Group,
    Unbounded,
    User,
)
from undertow.spaces.influence.families import RepeatedFamily
from undertow.spaces.influence.reduction import Reduced, grow, reduce_column
from undertow.spaces.influence.runs import listed
from undertow.spaces.view import (
    Ids,
    Project,
    RandomBlock,
    RowPosition,
    SortedPosition,
)

__all__ = ["rows_family"]


@dataclass(frozen=True, slots=True)
class _Sight:
    """A plain column on rows.

    Parameters
    ----------
    column : Reduced
        The column.
    ids : frozenset or None
        Which ids it sees; None: all.
    kept : frozenset of str or None
        Which attributes it sees; None: all.
    room : int
        How many rows one change can move: more than one for views by position.
    exact : bool
        Whether its influence is attained together with the others.
    """

    column: Reduced
    ids: frozenset[Hashable] | None
    kept: frozenset[str] | None
    room: int
    exact: bool

    def sees(self, key: Hashable) -> bool:
        """Return whether a row with this id is seen."""
        return self.ids is None or key in self.ids


@dataclass(frozen=True, slots=True)
class _Step:
    """What happens to one id: its value changes, or it comes or goes."""

    words: str
    toggles: bool
    attribute: str | None = None


def rows_family(
    domain: Rows, target: Granularity, *, columns: Sequence[Column]
) -> ChangeFamily | None:
    """Return the change classes of identified rows; None where none are known."""
    plain = [reduce_column(column, domain) for column in columns]
    return _family(domain, target, plain)


def _family(
    domain: Rows, target: Granularity, plain: Sequence[Reduced]
) -> ChangeFamily | None:
    sights = [_sight(column, domain) for column in plain]
    if isinstance(target, Group):
        return _repeated(domain, target, plain, sights)
    if isinstance(target, FreeLunch):
        return _everything(domain, sights)
    steps = _steps(domain, target)
    if steps is None:
        return None
    kinds = _id_kinds(domain, sights)
    rows = [_row(domain, sights, kind, step=step) for kind in kinds for step in steps]
    return listed(rows, tight=all(s.exact and s.column.faithful for s in sights))


def _sight(column: Reduced, domain: Rows) -> _Sight:
    view = column.view
    where = domain if column.setting == "common" else view.image(domain)
    if isinstance(column.unit, Granularity) and isinstance(where, Rows):
        column.unit.require_domain(where)
    ids: frozenset[Hashable] | None = None
    kept = frozenset(view.attributes) if isinstance(view, Project) else None
    room, exact = 1, True
    if isinstance(view, Ids):
        ids = frozenset(view.ids)
    elif isinstance(view, RandomBlock):
        ids = frozenset(key for key in domain.ids if view.holds(key))
    elif isinstance(view, RowPosition) and not domain.free_ids:
        ids = frozenset(domain.ids[view.block :: view.of])
    elif isinstance(view, RowPosition | SortedPosition):
        room = len(range(view.block, len(domain.ids), view.of))
        exact = False
    return _Sight(column, ids, kept, room, exact)


def _steps(domain: Rows, target: Granularity) -> list[_Step] | None:
    several = domain.values is None or len(domain.values) > 1
    change = [_Step("change the value", False)] if several else []
    toggle = [_Step("add or remove the row", True)] if domain.free_ids else []
    if isinstance(target, Attribute):
        return [
            _Step(f"change {name!r}", False, name)
            for name, values in domain.attributes
            if values is None or len(values) > 1
        ]
    if isinstance(target, User):
        return toggle if target.add_remove else change
    if isinstance(target, Bounded | BoundedById):
        return change
    if isinstance(target, Unbounded):
        return toggle
    return [*toggle, *change] if isinstance(target, Edit) else None


@dataclass(frozen=True, slots=True)
class _Kind:
    """Ids that the same columns see."""

    seen: tuple[bool, ...]
    example: Hashable
    number: int


def _id_kinds(domain: Rows, sights: Sequence[_Sight]) -> list[_Kind]:
    sets = list(dict.fromkeys(s.ids for s in sights if s.ids is not None))
    of_id: dict[Hashable, list[int]] = {}
    for number, ids in enumerate(sets):
        for key in ids:
            of_id.setdefault(key, []).append(number)
    groups: dict[tuple[int, ...], list[Hashable]] = {}
    for key in domain.ids:
        groups.setdefault(tuple(of_id.get(key, ())), []).append(key)
    position = {ids: number for number, ids in enumerate(sets)}
    return [
        _Kind(
            tuple(s.ids is None or position[s.ids] in numbers for s in sights),
            members[0],
            len(members),
        )
        for numbers, members in groups.items()
    ]


def _row(domain: Rows, sights: Sequence[_Sight], kind: _Kind, *, step: _Step) -> Row:
    influences: dict[int, Exact] = {}
    for j, sight in enumerate(sights):
        value = _influence(domain, sight, step) if kind.seen[j] else 0
        if value:
            influences[j] = value
    summary = f"{step.words} of id {kind.example!r}"
    return Row(Change("row", summary, (("id", kind.example),)), influences)


def _influence(domain: Rows, sight: _Sight, step: _Step) -> Exact:
    if sight.room == 0:
        return 0
    shown = _shown(domain, sight, step.attribute)
    if not step.toggles and not shown:
        return 0
    by_position = sight.room > 1 or not sight.exact
    if by_position and sight.column.setting == "view":
        if isinstance(sight.column.view, SortedPosition):
            shown = _shown(domain, sight, None)  # another record takes the position
        return sight.column.finish(_shifted(sight, step, shown))
    return sight.column.finish(_moved(domain, sight, step.toggles, shown))


def _shown(domain: Rows, sight: _Sight, attribute: str | None) -> int:
    """Return how many attributes that the column sees can change at once."""
    names = [n for n, v in domain.attributes if v is None or len(v) > 1]
    if not domain.attributes:
        return 1
    if attribute is not None:
        names = [attribute]
    return sum(sight.kept is None or name in sight.kept for name in names)


def _moved(domain: Rows, sight: _Sight, toggles: bool, shown: int) -> Exact:
    unit = sight.column.unit
    if isinstance(unit, FreeLunch | Edit):
        return 1
    if isinstance(unit, Unbounded) or (isinstance(unit, User) and unit.add_remove):
        if toggles:
            return 1
        return 2 if domain.free_ids else math.inf
    if isinstance(unit, Bounded | BoundedById | User):
        return math.inf if toggles else 1
    if isinstance(unit, Attribute):
        return math.inf if toggles else shown
    return math.inf


def _shifted(sight: _Sight, step: _Step, shown: int) -> Exact:
    """Bound the rows of a block by position that one change can shift."""
    unit = sight.column.unit
    shifts = sight.room
    if isinstance(sight.column.view, RowPosition) and not step.toggles:
        shifts = 1  # the row stays where it is
    if isinstance(unit, FreeLunch):
        return 1
    if isinstance(unit, Edit):
        return shifts
    if isinstance(unit, Unbounded) or (isinstance(unit, User) and unit.add_remove):
        return 2 * shifts
    if step.toggles:
        return math.inf
    if isinstance(unit, Bounded | BoundedById | User):
        return shifts
    return shifts * shown if isinstance(unit, Attribute) else math.inf


def _everything(domain: Rows, sights: Sequence[_Sight]) -> ChangeFamily:
    several = domain.values is None or len(domain.values) > 1
    influences: dict[int, Exact] = {}
    for j, sight in enumerate(sights):
        seen = len(domain.ids) if sight.ids is None else len(sight.ids)
        steps = [_Step("", True)] if domain.free_ids else []
        steps += [_Step("", False)] if several else []
        each = max(_influence(domain, sight, step) for step in steps)
        total = each if sight.column.is_discrete or each == math.inf else seen * each
        if seen and total:
            influences[j] = total
    row = Row(Change("all", "replace the whole data"), influences)
    discrete = all(s.column.is_discrete for s in sights)
    additive = all(s.column.additive or s.column.is_discrete for s in sights)
    exact = all(s.exact and s.column.faithful for s in sights)
    # Where rows can change and be absent, no one pair is the worst for every unit.
    one_way = discrete or not (several and domain.free_ids)
    return listed([row], tight=additive and exact and one_way)


def _repeated(
    domain: Rows,
    target: Group,
    plain: Sequence[Reduced],
    sights: Sequence[_Sight],
) -> ChangeFamily | None:
    one = _family(domain, target.base, plain)
    if one is None:
        return None
    capped = {j: grow(column) for j, column in enumerate(plain) if not column.additive}
    room = all(kind.number >= target.size for kind in _id_kinds(domain, sights))
    simple = not isinstance(target.base, FreeLunch | Group)
    return RepeatedFamily(one, target.size, capped=capped, tight=room and simple)

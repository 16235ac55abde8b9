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
independently. Views by position see an id wherever the rows before it put it; in the
view setting their steps are steps inside the range, where absent rows come last and
sorted ones stay sorted.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from undertow.numeric.exact import Exact
from undertow.spaces.base import Granularity
from undertow.spaces.change import Change, ChangeFamily, Column, Row
from undertow.spaces.domain import Rows
from undertow.spaces.influence._column import Reduced, grow, reduce_column
from undertow.spaces.influence._family import RepeatedFamily
from undertow.spaces.influence._run import listed
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edit,
    FreeLunch,
    Group,
    Unbounded,
    User,
)
from undertow.spaces.view import Ids, Project, RandomBlock, RowPosition, SortedPosition


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

    @property
    def by_position(self) -> bool:
        """Whether a row can take the place of another one in the view."""
        return not self.exact


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
        return _everything(domain, sights, stay=False)
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
    change = [_Step("change the value", False)] if _several(domain) else []
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
    return sight.column.finish(_plain_influence(domain, sight, step))


def _plain_influence(domain: Rows, sight: _Sight, step: _Step) -> Exact:
    if sight.room == 0:
        return 0
    shown = _shown(domain, sight, step.attribute)
    if not step.toggles and not shown:
        return 0
    if sight.by_position and sight.column.setting == "view":
        return _shifted(domain, sight, step, shown)
    return _moved(domain, sight, step.toggles, shown)


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
    if _comes_and_goes(unit):
        if toggles:
            return 1
        return 2 if domain.free_ids else math.inf
    if isinstance(unit, Bounded | BoundedById | User):
        return math.inf if toggles else 1
    if isinstance(unit, Attribute):
        return math.inf if toggles else shown
    return math.inf


def _shifted(domain: Rows, sight: _Sight, step: _Step, shown: int) -> Exact:
    """Bound how far one change moves a block by position inside its range."""
    view, unit = sight.column.view, sight.column.unit
    assert isinstance(view, RowPosition | SortedPosition)
    if _comes_and_goes(unit) and domain.free_ids:
        if not _several(domain):
            return 1  # how many positions there are
        # Only the last position comes or goes: all after the first that differs leave.
        fewer = len(range(view.block, len(domain.ids) - 1, view.of))
        return sight.room + (fewer if step.toggles else sight.room)
    if isinstance(view, RowPosition) and not step.toggles:
        return _moved(domain, sight, False, shown)  # the row stays where it is
    if step.toggles and isinstance(unit, Edit):
        return sight.room
    if step.toggles and not isinstance(unit, FreeLunch):
        return math.inf  # the number of positions is published
    return _across(domain, sight)


def _across(domain: Rows, sight: _Sight) -> Exact:
    """Bound how far apart two blocks by position with all positions held can be."""
    view, unit = sight.column.view, sight.column.unit
    if isinstance(unit, FreeLunch):
        return 1
    if _comes_and_goes(unit):
        return 2 * sight.room if domain.free_ids else math.inf
    if isinstance(unit, Attribute):
        each = _shown(domain, sight, None)
        # Otherwise by way of the smallest record at every position.
        ways = 1 if view.keeps_chains(unit, domain) else 2
        return ways * sight.room * each
    known = isinstance(unit, Bounded | BoundedById | Edit | User)
    return sight.room if known else math.inf


def _comes_and_goes(unit: object) -> bool:
    """Return whether a step of the unit is a row that comes or goes."""
    return isinstance(unit, Unbounded) or (isinstance(unit, User) and unit.add_remove)


def _several(domain: Rows) -> bool:
    return domain.values is None or len(domain.values) > 1


def _everything(domain: Rows, sights: Sequence[_Sight], *, stay: bool) -> ChangeFamily:
    """Return one class: the largest influence of each column on its own.

    Parameters
    ----------
    domain : Rows
        The rows.
    sights : sequence of _Sight
        The columns.
    stay : bool
        Whether all rows stay present.
    """
    several, toggles = _several(domain), domain.free_ids and not stay
    steps = [_Step("", True)] if toggles else []
    steps += [_Step("", False)] if several else []
    influences: dict[int, Exact] = {}
    for j, sight in enumerate(sights):
        total = sight.column.finish(_all_rows(domain, sight, steps))
        if total:
            influences[j] = total
    row = Row(Change("all", "replace the whole data"), influences)
    discrete = all(s.column.is_discrete for s in sights)
    exact = all(s.exact and s.column.faithful for s in sights)
    # Where rows can change and be absent, no one pair is the worst for every unit.
    one_way = discrete or not (several and toggles)
    return listed([row], tight=exact and one_way)


def _all_rows(domain: Rows, sight: _Sight, steps: Sequence[_Step]) -> Exact:
    seen = len(domain.ids) if sight.ids is None else len(sight.ids)
    each = max((_plain_influence(domain, sight, step) for step in steps), default=0)
    if not each or not seen:
        return 0
    if each == math.inf or sight.column.is_discrete:
        return each
    if sight.by_position and sight.column.setting == "view":
        return _across(domain, sight) if _several(domain) else sight.room
    return seen * each


def _repeated(
    domain: Rows,
    target: Group,
    plain: Sequence[Reduced],
    sights: Sequence[_Sight],
) -> ChangeFamily | None:
    one = _family(domain, target.base, plain)
    if one is None:
        return None
    steps = _steps(domain, target.base) or []
    stay = not any(step.toggles for step in steps)
    whole = _everything(domain, sights, stay=stay)
    capped = {j: grow(column) for j, column in enumerate(plain) if not column.additive}
    room = all(kind.number >= target.size for kind in _id_kinds(domain, sights))
    return RepeatedFamily(one, target.size, capped=capped, tight=room, whole=whole)

from __future__ import annotations

import math

import pytest

from undertow.errors import VacuousGranularityError
from undertow.spaces.change import Charge, Column
from undertow.spaces.domain import Rows
from undertow.spaces.influence import change_family
from undertow.spaces.metric import Euclidean
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
from undertow.spaces.view import (
    Identity,
    Ids,
    Project,
    RandomBlock,
    RowPosition,
    SortedPosition,
)

FIXED = Rows(6)
FREE = Rows(6, free_ids=True)
NAMED = Rows(4, attributes=("x", "y"))


def influence(column, target, domain=FIXED):
    family = change_family(domain, target, columns=(column,))
    return family.maximise([Charge((0,), lambda a: a)]).value


@pytest.mark.parametrize(
    ("unit", "changed", "toggled"),
    [
        (Unbounded(), 2, 1),
        (User(add_remove=True), 2, 1),
        (Edit(), 1, 1),
        (BoundedById(), 1, math.inf),
        (Bounded(ordered=True), 1, math.inf),
        (User(), 1, math.inf),
        (FreeLunch(), 1, 1),
        (Euclidean(), math.inf, math.inf),
    ],
)
@pytest.mark.parametrize("setting", ["view", "common"])
def test_units_on_one_id(unit, setting, changed, toggled):
    column = Column(Ids([0, 1]), unit, setting)
    assert influence(column, BoundedById(), FREE) == changed
    assert influence(column, Unbounded(), FREE) == toggled
    assert influence(column, Edit(), FREE) == max(changed, toggled)


def test_without_absent_ids_nothing_can_be_added():
    with pytest.raises(VacuousGranularityError, match="neighbours"):
        influence(Column(Ids([0]), BoundedById(), "view"), Unbounded())
    assert influence(Column(Ids([0]), Unbounded(), "view"), BoundedById()) == math.inf


def test_blocks_of_ids_are_touched_one_at_a_time():
    columns = tuple(Column(Ids([i]), BoundedById(), "view") for i in range(6))
    family = change_family(FIXED, BoundedById(), columns=columns)
    top = family.maximise([Charge((i,), lambda a, w=i: (w * a[0],)) for i in range(6)])
    assert (top.value, top.row.change.detail("id")) == (5, 5)
    assert top.tight


def test_hashed_blocks_are_blocks_of_ids():
    blocks = [RandomBlock(block, 3, "salt") for block in range(3)]
    columns = tuple(Column(block, BoundedById(), "view") for block in blocks)
    family = change_family(FIXED, BoundedById(), columns=columns)
    charges = [Charge((j,), lambda a: a) for j in range(3)]
    assert family.maximise(charges).value == 1


def test_positions_of_fixed_rows_are_ids():
    columns = tuple(Column(RowPosition(b, 2), BoundedById(), "view") for b in range(2))
    family = change_family(FIXED, BoundedById(), columns=columns)
    top = family.maximise([Charge((j,), lambda a: a) for j in range(2)])
    assert (top.value, top.tight) == (1, True)


def test_T_6_5_positions_shift_when_a_row_goes():
    columns = tuple(Column(RowPosition(b, 4), FreeLunch(), "view") for b in range(4))
    family = change_family(Rows(4, free_ids=True), Unbounded(), columns=columns)
    assert family.maximise([Charge((j,), lambda a: a) for j in range(4)]).value == 4
    bounded = Column(RowPosition(0, 2), BoundedById(), "view")
    assert influence(bounded, Unbounded(), FREE) == math.inf
    assert influence(Column(RowPosition(0, 2), Edit(), "view"), Unbounded(), FREE) == 3


def test_T_6_5_positions_of_sorted_rows_all_move():
    columns = tuple(Column(SortedPosition(b, 3), FreeLunch(), "view") for b in range(3))
    family = change_family(Rows(3), BoundedById(), columns=columns)
    top = family.maximise([Charge((j,), lambda a: a) for j in range(3)])
    assert (top.value, top.tight) == (3, False)
    half = Column(SortedPosition(0, 2), Bounded(ordered=True), "view")
    assert influence(half, BoundedById()) == 3
    # A common claim pays the distance of the pair.
    common = Column(SortedPosition(0, 2), Bounded(ordered=True), "common")
    assert influence(common, BoundedById()) == 1


def test_another_record_takes_a_sorted_position_with_all_its_attributes():
    column = Column(SortedPosition(0, 4), Attribute(), "view")
    assert influence(column, Attribute(), NAMED) == 2


def test_attributes_of_one_row():
    kept = tuple(Column(Project(name), Attribute(), "view") for name in "xy")
    family = change_family(NAMED, Attribute(), columns=kept)
    assert family.maximise([Charge((j,), lambda a: a) for j in range(2)]).value == 1
    assert influence(Column(Identity(), Attribute(), "view"), BoundedById(), NAMED) == 2


def test_everything_at_once_and_groups():
    column = Column(Ids([0, 1]), BoundedById(), "view")
    assert influence(column, FreeLunch()) == 2
    assert influence(column, Group(BoundedById(), 2)) == 2
    assert influence(Column(Ids([0]), FreeLunch(), "view"), Group(User(), 3)) == 1

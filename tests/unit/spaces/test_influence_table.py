from __future__ import annotations

import math
from fractions import Fraction

import pytest

from undertow.errors import AssumptionError, MismatchError, VacuousGranularityError
from undertow.spaces.change import Charge, Column
from undertow.spaces.domain import Table
from undertow.spaces.influence import change_family
from undertow.spaces.influence._table import record_row, replacement_row
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    Euclidean,
    FunctionMetric,
    LpNorm,
    Scaled,
    SymmetricDifference,
    ZeroMetric,
)
from undertow.spaces.quotient import Quotient
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edit,
    FreeLunch,
    Group,
    Relation,
    Unbounded,
)
from undertow.spaces.view import (
    Chain,
    Clip,
    Identity,
    Lipschitz,
    Project,
    Select,
    SortedPosition,
    Truncate,
)
from undertow.spaces.view.range import Pullback

CITY = Table(("N", "S", "E"))
COUNT = Select("N", statistic="count")
PEOPLE = Table(("N", "S"), attributes={"cell": None, "age": (1, 2), "sex": (1, 2)})


def influence(column, target, domain=CITY):
    """Return the largest influence of one column under the target."""
    family = change_family(domain, target, columns=(column,))
    return family.maximise([Charge((0,), lambda a: a)]).value


@pytest.mark.parametrize(
    ("unit", "setting", "add", "replace"),
    [
        (Unbounded(), "view", 1, 2),
        (Unbounded(), "common", 1, 2),
        (Bounded(), "view", math.inf, math.inf),
        (Bounded(), "common", 1, 1),
        (Edit(), "view", 1, 1),
        (Edit(), "common", 1, 1),
        (FreeLunch(), "view", 1, 1),
        (DiscreteMetric(), "common", 1, 1),
        (SymmetricDifference(), "view", 1, 2),
        (Scaled(Unbounded(), "1.5"), "view", Fraction(3, 2), 3),
        (Group(Unbounded(), 2), "view", 1, 1),
        (ZeroMetric(), "view", 0, 0),
        (Quotient(Bounded(), Select("N")), "view", math.inf, math.inf),
        (FunctionMetric("mine", lambda x, y: 0), "view", math.inf, math.inf),
        (AbsoluteDifference(), "common", math.inf, math.inf),
    ],
)
def test_units_on_the_records_of_a_cell(unit, setting, add, replace):
    column = Column(Select("N"), unit, setting)
    assert influence(column, Unbounded()) == add
    assert influence(column, Bounded()) == replace


def test_bounded_claims_about_every_record_cannot_be_padded():
    whole = Column(Select("N", "S", "E"), Bounded(), "common")
    assert influence(whole, Unbounded()) == math.inf
    assert influence(whole, Bounded()) == 1
    assert influence(Column(Identity(), Bounded(), "common"), Unbounded()) == math.inf


def test_a_cell_that_no_record_can_have_does_not_pad_either():
    domain = Table(("a", "b", "c"), attributes={"cell": ("a", "b"), "x": (0, 1)})
    column = Column(Select("a", "b"), Bounded(), "common")
    assert influence(column, Unbounded(), domain) == math.inf


@pytest.mark.parametrize(
    ("unit", "setting", "add", "replace"),
    [
        (AbsoluteDifference(), "view", 1, 1),
        (LpNorm(2), "view", 1, 1),
        (Unbounded(), "common", 1, 1),
        (Bounded(), "common", 1, 1),
        (FreeLunch(), "view", 1, 1),
    ],
)
def test_units_on_counts(unit, setting, add, replace):
    column = Column(COUNT, unit, setting)
    assert influence(column, Unbounded()) == add
    assert influence(column, Bounded()) == replace


def test_a_count_of_everything_never_changes_under_replacement():
    whole = Select("N", "S", "E", statistic="count")
    assert influence(Column(whole, Bounded(), "common"), Bounded()) == 0
    assert influence(Column(whole, Bounded(), "common"), Unbounded()) == math.inf
    assert influence(Column(whole, AbsoluteDifference(), "view"), Bounded()) == 0


def test_a_count_in_the_view_setting_needs_a_metric_on_numbers():
    with pytest.raises(MismatchError, match="use AbsoluteDifference"):
        influence(Column(COUNT, Bounded(), "view"), Bounded())


def test_a_unit_of_another_domain_is_refused():
    with pytest.raises(MismatchError, match="kind rows"):
        influence(Column(Select("N"), BoundedById(), "common"), Bounded())


def test_add_remove_claims_are_vacuous_at_a_fixed_size():
    fixed = Table(("a", "b"), size=3)
    with pytest.raises(VacuousGranularityError, match="state the claim at bounded"):
        influence(Column(Select("a"), Unbounded(), "common"), Bounded(), fixed)
    # On the image of a view the size is free again.
    assert influence(Column(Select("a"), Unbounded(), "view"), Bounded(), fixed) == 2
    difference = Column(Select("a"), SymmetricDifference(), "common")
    assert influence(difference, Bounded(), fixed) == 2


def test_attribute_changes_reach_only_the_columns_that_are_kept():
    kept = Column(Project("age"), Bounded(), "view")
    assert influence(kept, Attribute(), PEOPLE) == 1
    other = Table(attributes={"age": (1, 2), "sex": (1,)})
    assert influence(Column(Project("sex"), Bounded(), "view"), Bounded(), other) == 0


@pytest.mark.parametrize(
    ("view", "setting", "bounded"),
    [
        (Identity(), "view", 3),
        (Project("age", "sex"), "view", 2),
        (Select("N"), "common", 2),
        (Select("N"), "view", math.inf),
    ],
)
def test_attribute_units_count_changed_attributes(view, setting, bounded):
    column = Column(view, Attribute(), setting)
    assert influence(column, Bounded(), PEOPLE) == bounded


def test_one_attribute_at_a_time_moves_a_record_out_of_its_cell():
    column = Column(Select("N"), Bounded(), "common")
    assert influence(column, Attribute(), PEOPLE) == 1
    assert influence(Column(Select("N"), Unbounded(), "view"), Attribute(), PEOPLE) == 2
    count = Column(Select("N", statistic="count"), AbsoluteDifference(), "view")
    family = change_family(PEOPLE, Attribute(), columns=(count,))
    top = family.maximise([Charge((0,), lambda a: a)])
    assert (top.value, top.row.change.kind) == (1, "replace")


def test_free_lunch_targets_reach_as_far_as_the_size_allows():
    capped = Table(("N", "S"), max_size=5)
    assert (
        influence(Column(Select("N"), Unbounded(), "view"), FreeLunch(), capped) == 10
    )
    assert influence(Column(Select("N"), FreeLunch(), "view"), FreeLunch(), capped) == 1
    assert influence(Column(Select("N"), Edit(), "view"), FreeLunch()) == math.inf


# ---------------------------------------------------------------- wrapped columns


def test_declared_maps_stretch_what_the_view_before_them_moves():
    double = Lipschitz(
        "twice", len, unit_from=Unbounded(), unit_to=Euclidean(), constant=2
    )
    column = Column(Chain(Select("N"), double), Euclidean(), "view")
    assert influence(column, Unbounded()) == 2
    assert influence(column, Bounded()) == 4
    alone = Column(double, Euclidean(), "view")
    assert influence(alone, Bounded()) == 4
    assert influence(Column(double, LpNorm(1), "view"), Bounded()) == math.inf


def test_declared_maps_in_the_common_setting_are_bounded_by_the_view_before():
    opaque = Lipschitz("f", len, unit_from=Unbounded(), unit_to=Euclidean())
    column = Column(Chain(Select("N"), opaque), Bounded(), "common")
    family = change_family(CITY, Bounded(), columns=(column,))
    top = family.maximise([Charge((0,), lambda a: a)])
    assert top.value == 1
    assert not top.tight


def test_clipping_caps_the_influence_of_a_number():
    column = Column(Chain(COUNT, Clip(0, 0.5)), AbsoluteDifference(), "view")
    assert influence(column, Unbounded()) == Fraction(1, 2)
    wide = Column(Chain(COUNT, Clip(-math.inf, 9)), AbsoluteDifference(), "view")
    assert influence(wide, Unbounded()) == 1


def test_truncation_is_not_free_at_record_level():
    column = Column(Truncate(2), Unbounded(), "view")
    assert influence(column, Unbounded()) == 2


def test_pullbacks_are_read_through_their_view():
    unit = Pullback(AbsoluteDifference(), COUNT)
    assert influence(Column(Identity(), unit, "view"), Bounded()) == 1
    assert influence(Column(Select("N"), unit, "common"), Bounded()) == 1


def test_a_view_that_cannot_answer_is_infinite_never_zero():
    sorted_block = SortedPosition(0, 2)
    assert influence(Column(sorted_block, Bounded(), "view"), Bounded()) == math.inf
    # In the common setting the distance of the pair itself bounds it.
    assert influence(Column(sorted_block, Bounded(), "common"), Bounded()) == 1


def test_claims_whose_units_look_elsewhere_stay_valid():
    # One release, two claims; the second unit is defined through another view.
    city = Table(("N", "S"), values_per_cell=1, max_size=2)
    columns = (
        Column(Identity(), Pullback(AbsoluteDifference(), COUNT), "view"),
        Column(Identity(), Unbounded(), "view"),
    )
    family = change_family(city, Bounded(), columns=columns)
    cheapest = Charge((0, 1), lambda a: (min(3 * a[0], a[1]),))
    assert family.maximise([cheapest]).value >= 2


# ---------------------------------------------------------------- size and rows


def test_a_hierarchy_of_ten_thousand_blocks_takes_no_time():
    blocks = tuple(range(10_000))
    views = [Select(*blocks)]
    views += [Select(*blocks[k : k + 100]) for k in range(0, 10_000, 100)]
    views += [Select(block) for block in blocks]
    columns = tuple(Column(view, Bounded(), "common") for view in views)
    family = change_family(Table(blocks), Bounded(), columns=columns)
    weights = [1] + [2] * 100 + [3] * 10_000
    charges = [
        Charge((j,), lambda a, w=weight: (w * a[0],))
        for j, weight in enumerate(weights)
    ]
    top = family.maximise(charges)
    assert top.value == 11
    assert top.tight


def test_overlapping_cells_with_joint_views_are_bounded_from_above():
    few = Table(range(6), multi=True, max_cells=2, values_per_cell=1)
    many = Table(range(80), multi=True, max_cells=2, values_per_cell=1)
    views = [Select(0, 1), Select(2, 3), Select(0, 2)]
    columns = tuple(Column(view, Unbounded(), "view") for view in views)
    charges = [Charge((j,), lambda a: a) for j in range(3)]
    exact = change_family(few, Unbounded(), columns=columns).maximise(charges)
    bound = change_family(many, Unbounded(), columns=columns).maximise(charges)
    assert (exact.value, exact.tight) == (3, True)
    assert bound.value >= 3
    assert not bound.tight


def test_rows_of_several_records_add_what_adds_up():
    columns = [
        Column(Select("N"), Unbounded(), "view"),
        Column(Select("N", "S"), Edit(), "view"),
        Column(COUNT, AbsoluteDifference(), "view"),
        Column(Select("E"), FreeLunch(), "view"),
        Column(Select("N"), Bounded(), "view"),
    ]
    row = record_row(CITY, columns=columns, changes={"N": 3, "S": -2})
    assert row.influences == {0: 3, 1: 3, 2: 3, 4: math.inf}
    grouped = [Column(Select("N"), Group(Unbounded(), 2), "view")]
    with pytest.raises(AssumptionError, match="add up over records"):
        record_row(CITY, columns=grouped, changes={"N": 3})


def test_rows_of_a_replacement_name_the_cells():
    columns = [Column(Select("N"), Bounded(), "common")]
    row = replacement_row(CITY, columns=columns, source="N", destination="S")
    assert row.influences == {0: 1}
    assert row.change.summary == "replace a record of cell 'N' by one of cell 'S'"
    with pytest.raises(ValueError, match="got 'X'"):
        replacement_row(CITY, columns=columns, source="N", destination="X")


def test_what_a_relation_of_ones_own_measures_is_not_known_to_be_attained():
    table = Table(("a", "b"), values_per_cell=1, size=2)
    own = Relation("anything", lambda first, second: True)
    family = change_family(
        table, Bounded(), columns=[Column(Identity(), own, "common")]
    )
    top = family.maximise([Charge((0,), lambda influences: influences)])
    assert (top.value, top.tight) == (math.inf, False)

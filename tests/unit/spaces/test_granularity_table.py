"""Granularities of tables and rows: relations, invariants, refusals."""

import math

import pytest

from undertow.errors import AssumptionError, MismatchError
from undertow.spaces.canonical import check_domain
from undertow.spaces.domain import FiniteDomain, Graph, MetricSpace, Rows, Stream, Table
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edit,
    Event,
    FreeLunch,
    Group,
    Local,
    Relation,
    Trajectory,
    Unbounded,
    User,
)

SMALL = Table(("a", "b"), values_per_cell=1, max_size=2)


def test_neighbours_of_a_small_table():
    assert set(Unbounded().neighbours(("a",), SMALL)) == {(), ("a", "a"), ("a", "b")}
    assert set(Bounded().neighbours(("a",), SMALL)) == {("b",)}
    assert set(Edit().neighbours(("a",), SMALL)) == {
        (),
        ("a", "a"),
        ("a", "b"),
        ("b",),
    }
    assert set(Unbounded().neighbours(("a", "b"), SMALL)) == {("a",), ("b",)}


def test_neighbours_are_generated_without_listing_the_domain():
    table = Table(("a", "b"), values_per_cell=1)  # infinitely many databases
    big = Table.database("a" * 500 + "b" * 500)
    assert len(set(Unbounded().neighbours(big, table))) == 4
    assert len(set(Bounded().neighbours(big, table))) == 2


def test_the_order_of_rows_matters_only_where_it_is_declared():
    assert Bounded(ordered=True).distance((0, 1), (1, 0), Rows(2)) == 2
    with pytest.raises(MismatchError, match="bounded:ordered on rows"):
        Bounded().distance((0, 1), (1, 0), Rows(2))
    with pytest.raises(MismatchError, match="kind rows for bounded:ordered"):
        Bounded(ordered=True).require_domain(SMALL)


@pytest.mark.parametrize(
    ("granularity", "domain"),
    [
        (Unbounded(), Stream(1, 1)),
        (Edit(), Graph(3)),
        (BoundedById(), SMALL),
        (Attribute(), Stream(1, 1)),
        (Attribute(), SMALL),
        (Attribute(), Rows(3)),
        (User(), SMALL),
        (Trajectory(), Graph(3)),
        (Local(), SMALL),
        (Local(), Graph(3)),
        (Event(), SMALL),
        (Group(Event(), 2), SMALL),
        (Unbounded(), FiniteDomain([("b", "a")])),
        (Unbounded(), FiniteDomain([1, 2])),
        (BoundedById(), FiniteDomain([(1,), (1, 2)])),
    ],
    ids=lambda value: getattr(value, "name", repr(value)),
)
def test_a_relation_is_refused_where_it_makes_no_sense(granularity, domain):
    with pytest.raises(MismatchError, match="domain must"):
        granularity.require_domain(domain)


@pytest.mark.parametrize(
    ("granularity", "domain", "expected"),
    [
        (Unbounded(), SMALL, ()),
        (Edit(), SMALL, ()),
        (FreeLunch(), SMALL, ()),
        (Bounded(), SMALL, ("size: the number of records",)),
        (Group(Bounded(), 2), SMALL, ("size: the number of records",)),
        (Trajectory(), SMALL, ("size: the number of records",)),
        (Trajectory(add_remove=True), SMALL, ()),
        (
            Bounded(ordered=True),
            Rows(2),
            ("size: the number of rows", "which row is whose"),
        ),
        (BoundedById(), Rows(2), ("the set of ids",)),
        (Attribute(), Rows(2, attributes=("x",)), ("the set of ids",)),
        (Attribute(), Table(attributes=("x",)), ("size: the number of records",)),
        (User(), Rows(2, free_ids=True), ("the set of users",)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_what_is_not_protected_is_said(granularity, domain, expected):
    assert granularity.invariants(domain) == expected


def test_databases_outside_the_domain_are_refused():
    with pytest.raises(ValueError, match="first must be a database"):
        Unbounded().distance(("c",), (), SMALL)
    with pytest.raises(ValueError, match="second must be a database"):
        Unbounded().are_neighbours((), ("b", "a"), SMALL)
    with pytest.raises(ValueError, match="first must be a database"):
        Unbounded().neighbours(("c",), SMALL)


def test_a_subclass_that_is_not_closed_is_searched_not_guessed():
    # Sizes 0 and 2 only: nothing can be added or removed one at a time.
    listed = FiniteDomain([(), ("a", "a"), ("a", "b"), ("b", "b")])
    assert Unbounded().closed_form((), ("a", "a"), listed) is None
    assert Unbounded().distance((), ("a", "a"), listed) == math.inf
    assert Unbounded().distance((), ("a", "a"), SMALL) == 2
    assert Bounded().distance(("a", "a"), ("b", "b"), listed) == 2


def test_a_subclass_closed_under_removal_keeps_the_formula():
    listed = FiniteDomain([(), ("a",), ("b",), ("a", "b")])
    assert Unbounded().closed_form(("a",), ("b",), listed) == 2


def test_edits_on_a_subclass_can_be_longer_than_their_formula():
    listed = FiniteDomain([("a", "a"), ("a", "a", "b"), ("a", "b", "b"), ("b", "b")])
    # max(a, b) is 2 between the ends, but each middle step is needed.
    assert Edit().distance(("a", "a"), ("b", "b"), listed) == 3


def test_rows_of_a_listed_product_have_the_hamming_distance():
    square = FiniteDomain([(x, y) for x in (0, 1) for y in (0, 1)])
    assert Bounded(ordered=True).closed_form((0, 0), (1, 1), square) == 2
    corner = FiniteDomain([(0, 0), (0, 1), (1, 1)])
    assert Bounded(ordered=True).closed_form((0, 0), (1, 1), corner) is None
    assert Bounded(ordered=True).distance((0, 0), (1, 1), corner) == 2


def test_absent_ids_separate_replacement_from_presence():
    rows = Rows(2, free_ids=True)
    pair = ("x", None), ("y", "z")
    assert BoundedById().distance(*pair, rows) == math.inf
    assert Unbounded().distance(*pair, rows) == 3
    assert Edit().distance(*pair, rows) == 2


def test_attributes_left_open_generate_nothing():
    table = Table(attributes=("x",), size=1)
    with pytest.raises(AssumptionError, match="list its records"):
        list(Attribute().neighbours(((0,),), table))
    with pytest.raises(AssumptionError, match="list its records"):
        list(Attribute().neighbours(((0,),), Rows(1, attributes=("x",))))


def test_attribute_changes_do_not_reach_other_sizes():
    table = Table(attributes={"x": (0, 1)})
    assert Attribute().distance(((0,),), (), table) == math.inf
    assert Attribute().distance((), (), table) == 0


def test_local_means_one_person():
    points = MetricSpace((1, 2), function=lambda x, y: abs(x - y))
    assert Local().distance(1, 2, points) == 1
    assert (
        Local().distance(("a",), ("b",), Table(("a", "b"), values_per_cell=1, size=1))
        == 1
    )
    assert Local().distance((0,), (1,), Rows(1)) == 1
    assert Local().distance((("a", "b"),), (("b", "b"),), Stream(1, 2)) == 1


def test_a_relation_of_ones_own_must_be_symmetric():
    domain = FiniteDomain(range(4))
    line = Relation("line", lambda x, y: abs(x - y) == 1)
    assert line.name == "line"
    assert list(line.neighbours(1, domain)) == [0, 2]
    assert line.distance(0, 3, domain) == 3
    assert line.invariants(domain) == ()
    with pytest.raises(AssumptionError, match="symmetric"):
        Relation("up", lambda x, y: y == x + 1).distance(0, 3, domain)
    with pytest.raises(AssumptionError, match="at most"):
        line.require_domain(Table())
    with pytest.raises(TypeError, match="callable"):
        Relation("none", 3)


def test_a_relation_of_ones_own_may_leave_things_apart():
    found = check_domain(
        FiniteDomain(range(4)), Relation("even", lambda x, y: (x + y) % 2 == 0)
    )
    assert found.enumerated
    assert found.component_count == 2
    assert found.components == (
        "component 0 (2 databases)",
        "component 1 (2 databases)",
    )


def test_groups_flatten_what_they_hold():
    assert Group(Event(), 2).splits_person
    assert not Group(Unbounded(), 2).splits_person
    domain = FiniteDomain(range(6))
    line = Relation("line", lambda x, y: abs(x - y) == 1)
    assert set(Group(line, 2).neighbours(2, domain)) == {0, 1, 3, 4}
    assert Group(line, 2).distance(0, 5, domain) == 3
    with pytest.raises(TypeError, match="base must be a granularity"):
        Group("bounded", 2)
    with pytest.raises(ValueError, match="size must be"):
        Group(Bounded(), 0)


def test_free_lunch_joins_everything_it_can_list():
    assert set(FreeLunch().neighbours((), SMALL)) == set(SMALL.databases()) - {()}
    with pytest.raises(AssumptionError, match="at most"):
        list(FreeLunch().neighbours((), Table()))


def test_granularities_that_split_a_person_say_so():
    assert Attribute().splits_person
    assert not Bounded().splits_person
    assert not User().splits_person

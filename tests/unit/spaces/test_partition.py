"""Partitions, and the checks that decide what a release per block costs."""

import math

import pytest

from undertow.errors import IncompatiblePartitionError, MismatchError
from undertow.spaces.domain import FiniteDomain, Graph, Rows, Stream, Table
from undertow.spaces.metric import FunctionMetric, LpNorm, SymmetricDifference
from undertow.spaces.partition import (
    Partition,
    commutes,
    is_compatible,
    is_nonexpansive,
    most_touched,
)
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edge,
    Event,
    FreeLunch,
    Relation,
    Unbounded,
    User,
)
from undertow.spaces.view import (
    Identity,
    Ids,
    IncidentEdges,
    Locations,
    Project,
    RandomBlock,
    RowPosition,
    Select,
    SortedPosition,
    Times,
    Users,
    VertexPairs,
)

TABLE = Table(("a", "b", "c"), values_per_cell=1, max_size=3)
STREAM = Stream(2, 2, clusters={"p": "home", "q": "shop"})


@pytest.mark.parametrize(
    ("partition", "domain", "views"),
    [
        (Partition.by_value(), TABLE, (Select("a"), Select("b"), Select("c"))),
        (Partition.by_value("ab", "c"), TABLE, (Select("a", "b"), Select("c"))),
        (Partition.by_id(), Rows(2), (Ids([0]), Ids([1]))),
        (Partition.by_id([1]), Rows(2), (Ids([1]),)),
        (Partition.by_time(), STREAM, (Times([0]), Times([1]))),
        (Partition.by_user([0, 1]), STREAM, (Users([0, 1]),)),
        (Partition.by_location(), STREAM, (Locations(["p"]), Locations(["q"]))),
        (Partition.by_cluster(), STREAM, (Locations(["home"]), Locations(["shop"]))),
        (
            Partition.by_column(),
            Table(attributes=("x", "y")),
            (Project("x"), Project("y")),
        ),
        (
            Partition.by_vertex_pair([(1, 0)], [(1, 2)]),
            Graph(3),
            (VertexPairs([(0, 1)]), VertexPairs([(1, 2)])),
        ),
        (Partition.per_vertex(), Graph(2), (IncidentEdges(0), IncidentEdges(1))),
        (
            Partition.random(2, salt="s"),
            Rows(9),
            (RandomBlock(0, 2, "s"), RandomBlock(1, 2, "s")),
        ),
        (
            Partition.by_row_position(2),
            Rows(4),
            (RowPosition(0, 2), RowPosition(1, 2)),
        ),
        (Partition.by_sorted_position(1), TABLE, (SortedPosition(0, 1),)),
    ],
    ids=lambda value: value.rule if isinstance(value, Partition) else "",
)
def test_a_rule_builds_one_view_per_block(partition, domain, views):
    assert partition.views(domain) == views


def test_by_default_every_vertex_pair_is_a_block():
    assert len(Partition.by_vertex_pair().views(Graph(5))) == 10


def test_blocks_need_not_cover_the_data():
    part = Partition.by_value(["a"], ["b"])
    assert part.union(TABLE) == Select("a", "b")
    assert Partition.by_value().union(TABLE) == Identity()


def test_shared_and_empty_blocks_and_unknown_rules_are_refused():
    with pytest.raises(ValueError, match="'b' in block 1"):
        Partition.by_value(["a", "b"], ["b"])
    with pytest.raises(ValueError, match="block 1 empty"):
        Partition.by_value(["a"], [])
    with pytest.raises(ValueError, match="rule must be one of"):
        Partition("hour")
    with pytest.raises(ValueError, match="of must be a positive"):
        Partition.by_row_position(0)
    with pytest.raises(ValueError, match="in block 1"):
        Partition.by_vertex_pair([(0, 1)], [(1, 0)])


@pytest.mark.parametrize(
    ("partition", "domain"),
    [
        (Partition.by_value(), Graph(3)),
        (Partition.by_row_position(2), TABLE),
        (Partition.by_time(), TABLE),
        (Partition.by_location(), Stream(1, 1)),
        (Partition.by_column(), TABLE),
        (Partition.by_value(), Table(("a", "b"), multi=True)),
        (Partition.by_value(), Table()),
        (Partition.by_id(), Rows(0)),
    ],
    ids=lambda value: getattr(value, "rule", ""),
)
def test_a_rule_on_the_wrong_domain_is_refused(partition, domain):
    with pytest.raises(MismatchError, match="must"):
        partition.views(domain)


def test_blocks_outside_the_domain_are_refused():
    with pytest.raises(ValueError, match="got z"):
        Partition.by_value(["a"], ["z"]).views(TABLE)
    with pytest.raises(ValueError, match="numbered"):
        Partition.by_time([7]).views(STREAM)


def test_blocks_computed_from_the_data_are_refused_everywhere():
    tree = Partition.data_dependent("k-d tree on the exact points")
    for check in (
        lambda: tree.views(TABLE),
        lambda: is_compatible(tree, Unbounded(), domain=TABLE),
        lambda: is_nonexpansive(tree, Unbounded(), domain=TABLE),
        lambda: commutes(SymmetricDifference(), tree, domain=TABLE),
    ):
        with pytest.raises(IncompatiblePartitionError, match="k-d tree"):
            check()


def test_value_partitions_are_compatible_with_add_remove_and_not_with_replace():
    cut = Partition.by_value()
    assert is_compatible(cut, Unbounded(), domain=TABLE) == (True, None, "")
    refused = is_compatible(cut, Bounded(), domain=TABLE)
    assert not refused.holds
    assert Bounded().are_neighbours(*refused.witness, TABLE)
    assert refused.reason == "2 blocks differ"
    assert most_touched(cut, Bounded(), domain=TABLE).blocks == 2


def test_a_replacement_moves_a_block_out_of_reach():
    refused = is_nonexpansive(Partition.by_value(), Bounded(), domain=TABLE)
    assert not refused.holds
    first, second = refused.witness
    image = Select("a").image(TABLE)
    gaps = {
        Bounded().distance(
            Select(cell).apply(first, TABLE),
            Select(cell).apply(second, TABLE),
            Select(cell).image(TABLE),
        )
        for cell in "abc"
    }
    assert math.inf in gaps
    assert image.cells == ("a",)


def test_nonexpansion_fails_where_the_granularity_makes_no_sense_on_a_block():
    listed = FiniteDomain([(5, 3), (3, 5)])
    swap = Relation("swap", lambda one, two: one == two[::-1])
    refused = is_nonexpansive(Partition.by_row_position(1), swap, domain=listed)
    assert not refused.holds


def test_a_partition_of_ids_is_compatible_with_replacing_a_value():
    rows = Rows(6, values=(0, 1))
    odd_even = Partition.by_id([0, 2, 4], [1, 3, 5])
    assert is_compatible(odd_even, BoundedById(), domain=rows).holds
    assert is_nonexpansive(odd_even, BoundedById(), domain=rows).holds


def test_a_change_outside_all_blocks_touches_none():
    part = Partition.by_value(["a"])
    touched = most_touched(part, Unbounded(), domain=TABLE)
    assert touched.blocks == 1
    only_c = Table(("a", "c"), values_per_cell=1, max_size=1)
    counts = {
        sum(
            view.apply(one, only_c) != view.apply(two, only_c)
            for view in part.views(only_c)
        )
        for one, two in [((), ("c",)), ((), ("a",))]
    }
    assert counts == {0, 1}


def test_the_symmetric_difference_commutes_with_every_value_partition():
    for cut in (Partition.by_value(), Partition.by_value("ab", "c")):
        assert commutes(SymmetricDifference(), cut, domain=TABLE) == (True, True, None)
    partial = commutes(
        SymmetricDifference(), Partition.by_value("a", "b"), domain=TABLE
    )
    assert (partial.holds, partial.equal) == (True, True)


def test_replacement_does_not_commute_with_a_value_partition():
    found = commutes(Bounded(), Partition.by_value(), domain=TABLE)
    assert not found.holds
    assert Bounded().distance(*found.witness, TABLE) < math.inf


def test_canonical_metrics_of_edges_users_and_cells_commute_with_their_partitions():
    pairs = Partition.by_vertex_pair([(0, 1)], [(0, 2)])
    assert commutes(Edge(), pairs, domain=Graph(3)) == (True, True, None)
    users = Stream(2, 1, regular=True, values=(0, 1))
    assert commutes(User(), Partition.by_user(), domain=users) == (True, True, None)
    rows = Rows(2, attributes={"x": (0, 1), "y": (0, 1)})
    assert commutes(Attribute(), Partition.by_column(), domain=rows).holds


def test_free_lunch_does_not_commute_because_every_block_may_change_at_once():
    found = commutes(FreeLunch(), Partition.by_value(), domain=TABLE)
    assert not found.holds
    moved = [Select(c).apply(d, TABLE) for d in found.witness for c in "abc"]
    assert sum(one != two for one, two in zip(moved[:3], moved[3:], strict=True)) > 1


def test_the_sum_norm_commutes_with_rows_and_the_euclidean_norm_does_not():
    rows = Rows(2, values=(0, 1))
    found = commutes(LpNorm(1), Partition.by_id(), domain=rows)
    assert found == (True, True, None)
    euclid = commutes(LpNorm(2), Partition.by_id(), domain=rows)
    assert not euclid.holds  # 1 + 1 exceeds the square root of 2
    assert set(euclid.witness) <= set(rows.databases())


def test_the_printed_equality_is_reported_apart_from_the_inequality():
    # One block that holds everything but sees no difference below two records.
    table = Table(("a", "b", "c"), values_per_cell=1, max_size=2)
    steps = FunctionMetric(
        "even steps",
        lambda one, two: 2.0 * (len(set(one) ^ set(two)) > 1) if one != two else 0.0,
    )
    found = commutes(steps, Partition.by_value(["a"], ["b"]), domain=table)
    assert (found.holds, found.equal) == (True, False)
    assert steps.distance(*found.witness, table) > 0


def test_time_blocks_are_touched_together_by_a_user_and_apart_by_an_event():
    cut = Partition.by_time()
    assert most_touched(cut, Event(), domain=STREAM).blocks == 1
    assert most_touched(cut, User(), domain=STREAM).blocks == 2

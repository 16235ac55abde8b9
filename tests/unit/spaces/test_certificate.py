"""The compatibility table against enumeration, and attacks on certificates."""

import math
from dataclasses import replace

import numpy as np
import pytest

from undertow.errors import (
    IncompatiblePartitionError,
    MismatchError,
    UndertowError,
    VacuousGranularityError,
)
from undertow.spaces.canonical import neighbour_pairs
from undertow.spaces.domain import FiniteDomain, Graph, Rows, Stream, Table
from undertow.spaces.partition import (
    COMPATIBILITY,
    Certificate,
    Partition,
    certificate_for,
    falsify_certificate,
    is_nonexpansive,
    most_touched,
)
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edge,
    Edit,
    Element,
    Event,
    FreeLunch,
    Group,
    Local,
    LTrajectory,
    Node,
    Relation,
    Trajectory,
    Unbounded,
    User,
    WEvent,
)
from undertow.spaces.view import Locations

TABLE = Table(("a", "b", "c"), values_per_cell=2, max_size=3)
ROWS = Rows(4, values=(0, 1, 2))
FREE = Rows(4, values=(0, 1), free_ids=True)
COLUMNS = Table(attributes={"x": (0, 1), "y": (0, 1), "z": (0, 1)}, max_size=2)
CELLED = Table(
    ("n", "s"), cell="area", attributes={"area": ("n", "s"), "y": (0, 1)}, max_size=3
)
WIDE_ROWS = Rows(3, attributes={"x": (0, 1), "y": (0, 1)})
GAPPY = Stream(2, 3, values=("p", "q"))
REGULAR = Stream(3, 3, regular=True, values=("p", "q"))
LONG = Stream(1, 6, regular=True, values=("p", "q"))
SPARSE = Stream(1, 5, values=("p",))
CLUSTERED = Stream(2, 2, clusters={"p": "home", "q": "home", "r": "shop"})
GRAPH = Graph(4)
CAPPED = Graph(5, max_degree=2)
MATCHINGS = Graph(5, max_degree=1)

value, time, user = Partition.by_value(), Partition.by_time(), Partition.by_user()
place, cluster = Partition.by_location(), Partition.by_cluster()
pair, vertex, column = (
    Partition.by_vertex_pair(),
    Partition.per_vertex(),
    Partition.by_column(),
)
ids, hashed = Partition.by_id(), Partition.random(3, salt="s")
positions = Partition.by_row_position(2)
ordered = Partition.by_sorted_position(2)

# granularity, rule, domain, blocks touched, each moved by one step at most, verdict
ENTRIES = [
    (Unbounded(), value, TABLE, 1, True, "max"),
    (Bounded(), value, TABLE, 2, False, "refuse"),
    (Edit(), value, TABLE, 2, True, "top-2 sum"),
    (Attribute(), value, CELLED, 2, False, "refuse"),
    (BoundedById(), ids, ROWS, 1, True, "max"),
    (Bounded(ordered=True), ids, ROWS, 1, True, "max"),
    (Bounded(ordered=True), hashed, ROWS, 1, True, "max"),
    (Bounded(ordered=True), positions, ROWS, 1, True, "max"),
    (BoundedById(), positions, ROWS, 1, True, "max"),
    (Bounded(ordered=True), ordered, ROWS, 2, False, "refuse"),
    (Unbounded(), positions, FREE, 2, False, "refuse"),
    (Unbounded(), ordered, TABLE, 2, False, "refuse"),
    (Unbounded(), ids, FREE, 1, True, "max"),
    (Unbounded(), hashed, FREE, 1, True, "max"),
    (Edit(), ids, FREE, 1, True, "max"),
    (Attribute(), ids, WIDE_ROWS, 1, True, "max"),
    (User(), ids, ROWS, 1, True, "max"),
    (User(add_remove=True), ids, FREE, 1, True, "max"),
    (Event(), time, GAPPY, 1, True, "max"),
    (Event(), user, GAPPY, 1, True, "max"),
    (Event(add_remove=True), time, GAPPY, 1, True, "max"),
    (Event(add_remove=True), user, GAPPY, 1, True, "max"),
    (Event(add_remove=True), place, GAPPY, 1, True, "max"),
    (Event(add_remove=True), cluster, CLUSTERED, 1, True, "max"),
    (WEvent(2), time, REGULAR, 2, True, "window sum"),
    (WEvent(2), user, REGULAR, 2, True, "top-2 sum"),
    (WEvent(2, single_user=True), time, REGULAR, 2, True, "window sum"),
    (WEvent(2, single_user=True), user, REGULAR, 1, True, "max"),
    (LTrajectory(3), time, LONG, 3, True, "window sum"),
    (LTrajectory(2), time, GAPPY, 2, True, "top-2 sum"),
    (LTrajectory(2), user, GAPPY, 1, True, "max"),
    (User(), time, GAPPY, 3, True, "sum"),
    (User(max_times=2), time, SPARSE, 4, True, "top-4 sum"),
    (User(), user, GAPPY, 1, True, "max"),
    (User(), place, GAPPY, 2, True, "sum"),
    (User(add_remove=True), time, GAPPY, 3, True, "sum"),
    (User(add_remove=True, max_times=2), time, SPARSE, 2, True, "top-2 sum"),
    (User(add_remove=True), user, GAPPY, 1, True, "max"),
    (User(add_remove=True), place, GAPPY, 2, True, "sum"),
    (Element(), cluster, CLUSTERED, 1, True, "max"),
    (Element(), user, CLUSTERED, 1, True, "max"),
    (Edge(), pair, GRAPH, 1, True, "max"),
    (Edge(), vertex, GRAPH, 2, True, "top-2 sum"),
    (Edge(), vertex, CAPPED, 2, True, "top-2 sum"),
    (Node(), pair, GRAPH, 3, True, "top-3 sum"),
    (Node(), vertex, GRAPH, 4, True, "sum"),
    (Node(), pair, MATCHINGS, 2, True, "top-2 sum"),
    (Node(), vertex, MATCHINGS, 3, True, "top-3 sum"),
    (Attribute(), column, COLUMNS, 1, True, "max"),
    (Bounded(), column, COLUMNS, 3, True, "sum"),
    (Unbounded(), column, COLUMNS, 3, True, "sum"),
    (Edit(), column, COLUMNS, 3, True, "sum"),
    (Bounded(ordered=True), column, WIDE_ROWS, 2, True, "sum"),
    (BoundedById(), column, WIDE_ROWS, 2, True, "sum"),
    (FreeLunch(), time, LONG, 6, True, "sum"),
    (FreeLunch(), value, TABLE, 3, True, "sum"),
    (Trajectory(), value, TABLE, 2, False, "refuse"),
    (Trajectory(add_remove=True), value, TABLE, 1, True, "max"),
    (Group(Unbounded(), 2), value, TABLE, 2, True, "top-2 sum"),
]


def _label(entry):
    granularity, partition, domain, *_ = entry
    return f"{granularity.name} by {partition.rule} on {domain.kind}"


@pytest.mark.parametrize("entry", ENTRIES, ids=_label)
def test_the_table_says_what_enumeration_finds(entry):
    granularity, partition, domain, touched, nonexpansive, verdict = entry
    certificate = certificate_for(granularity, partition, domain=domain)
    assert (certificate.touched, certificate.nonexpansive) == (touched, nonexpansive)
    assert certificate.verdict == verdict
    assert most_touched(partition, granularity, domain=domain).blocks == touched
    found = is_nonexpansive(partition, granularity, domain=domain)
    assert found.holds == nonexpansive


def test_every_row_of_the_table_is_enumerated():
    listed = {(e[0].name.split(":")[0], e[1].rule) for e in ENTRIES}
    listed |= {("event", "location"), ("any", "data"), ("local", "any")}
    for row in COMPATIBILITY:
        name = row.granularity.split(":")[0]
        rules = {rule for family, rule in listed if name in (family, "any")}
        assert rules if row.rule == "any" else row.rule in rules, row


def test_event_by_location_is_refused_because_recorded_times_would_move():
    certificate = certificate_for(Event(), place, domain=REGULAR)
    assert (certificate.touched, certificate.verdict) == (2, "refuse")
    assert certificate.common_verdict == "top-2 sum"
    assert most_touched(place, Event(), domain=REGULAR).blocks == 2
    # A replaced point keeps its time: on a block, recorded cells stay recorded.
    small = Stream(1, 2, regular=True, values=("p", "q"))
    view = Locations(["p"])
    block = FiniteDomain({view.apply(one, small) for one in small.databases()})
    replaced = Relation(
        "replace a recorded point",
        lambda one, two: (
            one != two
            and all((x is None) == (y is None) for x, y in zip(*one, *two, strict=True))
        ),
    )
    moved = {
        replaced.distance(view.apply(one, small), view.apply(two, small), block)
        for one, two in neighbour_pairs(small, Event())
        if view.apply(one, small) != view.apply(two, small)
    }
    assert moved == {float("inf")}


def test_local_and_free_lunch_touch_every_block():
    single = Rows(1, attributes={"x": (0, 1), "y": (0, 1)})
    certificate = certificate_for(Local(), column, domain=single)
    assert (certificate.touched, certificate.verdict) == (2, "sum")
    assert most_touched(column, Local(), domain=single).blocks == 2


def test_blocks_computed_from_the_data_are_refused_in_both_settings():
    quantiles = Partition.data_dependent("quartiles of the exact data")
    certificate = certificate_for(Unbounded(), quantiles, domain=TABLE)
    assert (certificate.verdict, certificate.common_verdict) == ("refuse", "refuse")
    with pytest.raises(IncompatiblePartitionError, match="quartiles of the exact data"):
        quantiles.views(TABLE)


def test_bounded_by_value_is_finite_in_the_common_domain_only():
    certificate = certificate_for(Bounded(), value, domain=TABLE)
    assert (certificate.verdict, certificate.common_verdict) == ("refuse", "top-2 sum")


def test_one_block_that_holds_everything_costs_its_own_budget_under_bounded():
    whole = Partition.by_value(["a", "b", "c"])
    certificate = certificate_for(Bounded(), whole, domain=TABLE)
    assert (certificate.touched, certificate.verdict) == (1, "max")
    assert is_nonexpansive(whole, Bounded(), domain=TABLE).holds


def test_one_block_that_leaves_records_out_is_refused_under_bounded():
    part = Partition.by_value(["a", "b"])
    assert certificate_for(Bounded(), part, domain=TABLE).verdict == "refuse"
    assert not is_nonexpansive(part, Bounded(), domain=TABLE).holds


def test_row_positions_of_rows_that_may_be_absent_are_refused():
    certificate = certificate_for(BoundedById(), positions, domain=FREE)
    assert certificate.verdict == "refuse"


def test_blocks_of_scattered_times_cost_the_largest_sum_and_not_a_window():
    scattered = Partition.by_time([0, 5], [1], [2], [3], [4])
    stream = Stream(1, 6, regular=True, values=("p", "q"))
    certificate = certificate_for(WEvent(2), scattered, domain=stream)
    assert certificate.verdict == "top-2 sum"
    apart = most_touched(Partition.by_time([0, 5], [4]), WEvent(2), domain=stream)
    assert apart.blocks == 2  # blocks 0 and 4 are touched together, though not adjacent


def test_a_group_of_two_touches_twice_the_blocks_and_is_refused_where_the_base_is():
    assert certificate_for(Group(Edge(), 2), pair, domain=GRAPH).touched == 2
    assert certificate_for(Group(Bounded(), 2), value, domain=TABLE).verdict == "refuse"
    quantiles = Partition.data_dependent("quartiles")
    refused = certificate_for(Group(Bounded(), 2), quantiles, domain=TABLE)
    assert refused.common_verdict == "refuse"


def test_a_pair_outside_the_table_is_refused_with_the_way_out():
    with pytest.raises(IncompatiblePartitionError, match="is_compatible"):
        certificate_for(Element(), time, domain=CLUSTERED)
    with pytest.raises(MismatchError):
        certificate_for(Edge(), value, domain=TABLE)


def test_a_relation_that_borrows_a_name_borrows_no_certificate():
    everything = Relation("unbounded", lambda one, two: one != two)
    with pytest.raises(IncompatiblePartitionError, match="no such row"):
        certificate_for(everything, value, domain=TABLE)


def test_the_table_needs_no_enumeration_on_large_domains():
    streets = Table(tuple(range(10_000)))
    assert certificate_for(Unbounded(), value, domain=streets).blocks == 10_000
    year = Stream(1_000_000, 8760)
    assert certificate_for(WEvent(24), time, domain=year).touched == 24


def test_an_attack_leaves_true_certificates_standing():
    rng = np.random.default_rng(5)
    for entry in ENTRIES:
        certificate = certificate_for(entry[0], entry[1], domain=entry[2])
        assert falsify_certificate(certificate, trials=20, rng=rng) is None, entry


@pytest.mark.parametrize(
    ("granularity", "partition", "domain", "touched", "reason"),
    [
        pytest.param(Bounded(), value, TABLE, 1, "2 blocks differ", id="touched"),
        pytest.param(Bounded(), value, TABLE, 2, "more than one step", id="expansion"),
        pytest.param(
            Bounded(), value, Table(("a", "b")), 1, "2 blocks differ", id="open values"
        ),
        pytest.param(User(), time, Stream(3, 4), 1, "blocks differ", id="open stream"),
        pytest.param(
            Bounded(ordered=True), ordered, Rows(4), 2, "one step", id="open rows"
        ),
        pytest.param(Edge(), vertex, CAPPED, 1, "2 blocks differ", id="graph"),
        pytest.param(
            Bounded(),
            column,
            Table(attributes=("x", "y"), size=2),
            1,
            "2 blocks differ",
            id="open attributes",
        ),
    ],
)
def test_an_attack_topples_a_false_certificate(
    granularity, partition, domain, touched, reason
):
    claim = Certificate(
        granularity,
        partition,
        domain,
        blocks=len(partition.views(domain)),
        touched=touched,
        nonexpansive=True,
        verdict="max",
        common_verdict="max",
        source="claimed",
    )
    found = falsify_certificate(claim, trials=500, rng=np.random.default_rng(1))
    assert found is not None
    assert reason in found.reason
    assert len(found.pair) == 2


def test_an_attack_on_a_granularity_without_neighbours_finds_nothing():
    fixed = Table(("a", "b"), values_per_cell=1, size=2)
    proved = certificate_for(Bounded(), value, domain=fixed)
    claim = replace(proved, granularity=Unbounded())
    assert falsify_certificate(claim, trials=3, rng=np.random.default_rng(0)) is None


def test_blocks_computed_from_the_data_touch_without_limit():
    cut, table = Partition.data_dependent("quantile cuts"), Table(("a", "b"))
    for granularity in (Unbounded(), Group(Unbounded(), 2)):
        refused = certificate_for(granularity, cut, domain=table)
        assert refused.touched == math.inf
        assert refused.verdict == refused.common_verdict == "refuse"


def test_local_privacy_of_one_record_survives_a_cut_by_value():
    """The one record is in a block or not: the block is the data of one person."""
    table = Table(("a", "b"), values_per_cell=1, size=1)
    cut = Partition.by_value()
    certificate = certificate_for(Local(), cut, domain=table)
    rng = np.random.default_rng(3)
    assert is_nonexpansive(cut, Local(), domain=table).holds
    assert certificate.verdict == "sum"
    assert falsify_certificate(certificate, trials=50, rng=rng) is None


@pytest.mark.parametrize("regular", [False, True])
def test_event_by_location_masks_to_gaps_but_is_refused_as_sets_of_events(regular):
    """A moved point shifts two masked blocks by one cell, and two sets by no step.

    As masked matrices, where a hidden cell is a gap, every Event step moves each of
    two blocks by one Event step. As the sets of recorded events, the size of a block
    changes, which no replacement of an event can do.
    """
    stream = Stream(2, 2, regular=regular, values=("a", "b"))
    cut = Partition.by_location()
    refused = certificate_for(Event(), cut, domain=stream)
    assert (refused.verdict, refused.common_verdict) == ("refuse", "top-2 sum")
    assert is_nonexpansive(cut, Event(), domain=stream).holds
    masked, listed = set(), set()
    for first, second in neighbour_pairs(stream, Event()):
        steps, sets = 0.0, 0.0
        for view in cut.views(stream):
            images = [view.apply(database, stream) for database in (first, second)]
            steps += Event().distance(*images, view.image(stream))
            sets += Bounded().distance(*map(_events, images), Table())
        masked.add(steps)
        listed.add(sets)
    moved = {2.0} if regular else {1.0, 2.0}
    assert masked == moved
    assert listed == {math.inf}


def _events(matrix):
    return Table.database(
        (user, time, value)
        for user, row in enumerate(matrix)
        for time, value in enumerate(row)
        if value is not None
    )


FEW = [
    Table(("a", "b"), values_per_cell=2, size=2),
    Table(("a", "b"), values_per_cell=1, size=0),
    Table(("a", "b"), values_per_cell=1, max_size=1),
    Table(("a",), values_per_cell=1, size=2),
    Table(("a", "b"), values_per_cell=1, multi=True, size=2),
    Table(attributes={"x": (0, 1), "y": (0, 1)}, size=2),
    Rows(2, values=(0, 1)),
    Rows(2, values=(0,)),
    Rows(3, values=(0, 1), free_ids=True),
    Stream(2, 2, values=("p", "q")),
    Stream(2, 2, values=("p",), regular=True),
    Stream(2, 2, values=("p", "q"), regular=True),
    Graph(2),
    Graph(3, max_degree=0),
]
UNITS = [
    Attribute(),
    Bounded(),
    BoundedById(),
    Edge(),
    Edit(),
    Event(),
    Event(add_remove=True),
    FreeLunch(),
    Group(Unbounded(), 2),
    Local(),
    LTrajectory(2),
    Node(),
    Trajectory(),
    Unbounded(),
    User(),
    User(add_remove=True),
    WEvent(2),
]
CUTS = [value, time, user, place, pair, vertex, column, Partition.by_id()]


@pytest.mark.parametrize("domain", FEW, ids=repr)
@pytest.mark.parametrize("granularity", UNITS, ids=lambda unit: unit.name)
def test_no_certificate_is_about_neighbours_that_do_not_exist(granularity, domain):
    try:
        granularity.require_domain(domain)
    except MismatchError:
        return
    pairs = list(neighbour_pairs(domain, granularity))
    for cut in CUTS:
        try:
            certificate = certificate_for(granularity, cut, domain=domain)
        except VacuousGranularityError:
            assert not pairs
            assert domain.count() > 1
            continue
        except UndertowError:
            continue  # a rule that does not cut this domain
        assert pairs or domain.count() == 1
        touched = most_touched(cut, granularity, domain=domain).blocks
        assert touched <= certificate.touched

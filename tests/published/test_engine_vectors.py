"""Worked numbers of the composition theory, through the scalable engine."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from undertow.composition.engine import (
    compose_columns,
    loss_at_distance,
    price_row,
)
from undertow.errors import VacuousGranularityError
from undertow.privacy.gaussian import gdp_epsilon
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.change import Column
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.influence._table import record_row, replacement_row
from undertow.spaces.metric import AbsoluteDifference, Euclidean
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edge,
    Event,
    FreeLunch,
    LTrajectory,
    Node,
    Unbounded,
    User,
    WEvent,
)
from undertow.spaces.view import (
    At,
    Chain,
    Degree,
    Identity,
    Ids,
    Lipschitz,
    Project,
    Select,
    Window,
)

DISTRICTS = Table(("N", "S", "E", "W"))
DAY = Stream(1000, 24)
BUDGETS = ("0.5", "1.0", "0.3", "0.8")
PAIRS = (("1.0", "1e-6"), ("0.5", "1e-5"), ("0.3", 0))


def by_cell(domain, unit, setting, **options):
    return [Column(Select(cell, **options), unit, setting) for cell in domain.cells]


def composed(domain, target, columns, losses, **options):
    return compose_columns(domain, target, columns=columns, losses=losses, **options)


def value(result):
    return next(iter(v for k, v in result.loss.to_dict().items() if k != "notion"))


def hours(kind, **options):
    budgets = ["0.5" if hour in (8, 18) else "0.1" for hour in range(24)]
    columns = [Column(At(hour), Event(), "view") for hour in range(24)]
    return columns, [kind(budget) for budget in budgets]


def test_T_5_1_the_maximum_is_taken_over_the_sum_not_inside_it():
    columns = [Column(Window(start, 12), Event(), "view") for start in (0, 12)]
    result = composed(DAY, WEvent(3), columns, [Pure("0.1")] * 2)
    assert result.loss == Pure("0.3")
    alone = [
        composed(DAY, WEvent(3), [column], [Pure("0.1")]).loss for column in columns
    ]
    assert alone[0] + alone[1] == Pure("0.6")


@pytest.mark.parametrize(
    ("target", "unit", "setting", "expected"),
    [
        (Unbounded(), Unbounded(), "view", "0.8"),
        (Bounded(), Unbounded(), "view", "1.3"),
        (Bounded(), Bounded(), "common", "1.0"),
    ],
)
def test_T_5_2_overlapping_views(target, unit, setting, expected):
    table = Table(("a", "b", "c"), values_per_cell=1)
    columns = [Column(Select(*cells), unit, setting) for cells in ("ab", "bc", "c")]
    losses = [Pure("0.5"), Pure("0.3"), Pure("0.2")]
    assert composed(table, target, columns, losses).loss == Pure(expected)


def test_T_5_3_sequential_composition_adds():
    columns = [Column(Identity(), Bounded(), "view")] * 4
    losses = [Pure(budget) for budget in BUDGETS]
    assert composed(DISTRICTS, Bounded(), columns, losses).loss == Pure("2.6")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Event(), "0.9"),
        (User(), "5.3"),
        (WEvent(3), "2.1"),
        (WEvent(3, single_user=True), "1.1"),
    ],
)
def test_T_5_4_mixed_granularities_in_one_sum(target, expected):
    units = (User(), Event(), WEvent(3))
    columns = [Column(Identity(), unit, "view") for unit in units]
    result = composed(DAY, target, columns, [Pure("0.5"), Pure("0.1"), Pure("0.3")])
    assert result.loss == Pure(expected)
    assert result.tight


def test_T_5_5_at_most_three_hospitals_per_ambulance():
    fleet = Table(range(20), multi=True, max_cells=3)
    losses = [Pure(1)] * 20
    unbounded = by_cell(fleet, Unbounded(), "view")
    common = by_cell(fleet, Bounded(), "common")
    assert composed(fleet, Unbounded(), unbounded, losses).loss == Pure(3)
    assert composed(fleet, Bounded(), common, losses).loss == Pure(6)
    assert composed(fleet, Bounded(), unbounded, losses).loss == Pure(6)


def test_T_5_6_the_largest_few():
    fleet = Table(range(8), multi=True, max_cells=3)
    budgets = ("0.2", "0.5", "0.1", "0.4", "0.3", "0.25", "0.6", "0.05")
    columns = by_cell(fleet, Bounded(), "common")
    for kind, expected in (
        (Pure, (1.5, 2.25)),
        (GDP, (0.877496438739, 0.981070843517)),
    ):
        losses = [kind(budget) for budget in budgets]
        found = [
            value(composed(fleet, target, columns, losses))
            for target in (Unbounded(), Bounded())
        ]
        assert found == pytest.approx(expected, abs=1e-12)


def test_T_5_6_unbounded_units_pay_the_largest_few_twice():
    fleet = Table(range(4), multi=True, max_cells=2)
    columns = by_cell(fleet, Unbounded(), "view")
    losses = [Pure(budget) for budget in ("0.6", "0.5", "0.3", "0.2")]
    assert composed(fleet, Bounded(), columns, losses).loss == Pure("2.2")


def test_T_5_7_and_T_5_8_degrees_at_edge_and_node_level():
    columns = [Column(Degree(v), AbsoluteDifference(), "view") for v in range(1000)]
    pure, gauss = [Pure("0.1")] * 1000, [GDP("0.1")] * 1000
    capped, free = Graph(1000, max_degree=20), Graph(1000)
    assert composed(capped, Edge(), columns, pure).loss == Pure("0.2")
    assert composed(capped, Node(), columns, pure).loss == Pure("4.0")
    assert composed(free, Node(), columns, pure).loss == Pure("199.8")
    edge, node = (composed(capped, g, columns, gauss) for g in (Edge(), Node()))
    assert value(edge) == pytest.approx(0.141421356237, abs=1e-12)
    assert value(node) == pytest.approx(2.049390153192, abs=1e-12)


def test_T_5_11_one_ambulance_lies_in_one_district():
    city = Table(("east", "west"))
    nearest = Lipschitz(
        "nearest", min, unit_from=FreeLunch(), unit_to=Euclidean(), constant=10
    )
    columns = by_cell(city, AbsoluteDifference(), "view", statistic="count")
    columns += [
        Column(Chain(Select(cell), nearest), Euclidean(), "view") for cell in city.cells
    ]
    result = composed(city, Unbounded(), columns, [Pure(1)] * 4)
    assert result.loss == Pure(11)


def test_T_6_1_bounded_blocks_in_the_view_setting_have_no_finite_loss():
    columns = by_cell(DISTRICTS, Bounded(), "view")
    result = composed(DISTRICTS, Bounded(), columns, [Pure(0)] * 4)
    assert result.loss == Pure(math.inf)
    three, two = result.row.change.detail("example")
    assert len(set(three)) == 1
    assert sorted(map(three.count, three)) == [3, 3, 3]
    assert len(set(two)) == 2


def test_T_6_1_the_witness_of_the_districts_is_the_heaviest_move():
    columns = by_cell(DISTRICTS, Bounded(), "view")
    result = composed(DISTRICTS, Bounded(), columns, [Pure(b) for b in BUDGETS])
    assert result.row.change.detail("example") == (("S", "S", "S"), ("S", "S", "W"))


def test_T_6_2_unbounded_blocks_cost_the_largest():
    columns = by_cell(DISTRICTS, Unbounded(), "view")
    losses = [Pure(budget) for budget in BUDGETS]
    assert composed(DISTRICTS, Unbounded(), columns, losses).loss == Pure("1.0")


def test_T_6_4_blocks_of_ids_cost_the_largest():
    rows = Rows((1, 2, 3, 4, 5, 6))
    columns = [Column(Ids(i), BoundedById(), "view") for i in ((1, 3, 5), (2, 4, 6))]
    result = composed(rows, BoundedById(), columns, [Pure("0.4"), Pure("0.9")])
    assert result.loss == Pure("0.9")


@pytest.mark.parametrize(
    ("target", "pure", "gauss"),
    [
        (Event(), "0.5", 0.5),
        (WEvent(3), "0.7", 0.519615242271),
        (LTrajectory(3, periodic=False), "1.1", 0.714142842854),
        (User(), "3.2", 0.848528137424),
        (User(max_times=4), "1.6", 0.748331477355),
        (User(max_times=4, add_remove=True), "1.2", 0.721110255093),
    ],
)
def test_T_6_6_hourly_releases_at_every_granularity(target, pure, gauss):
    result = composed(DAY, target, *hours(Pure))
    assert result.loss == Pure(pure)
    assert result.tight
    assert value(composed(DAY, target, *hours(GDP))) == pytest.approx(gauss, abs=1e-11)


def test_T_6_7_overlapping_moving_windows():
    losses = [Pure("0.1")] * 22
    events = [Column(Window(start, 3), Event(), "view") for start in range(22)]
    users = [Column(Window(start, 3), User(), "view") for start in range(22)]
    assert composed(DAY, Event(), events, losses).loss == Pure("0.3")
    assert composed(DAY, WEvent(3), events, losses).loss == Pure("0.9")
    one_user = composed(DAY, WEvent(3, single_user=True), users, losses)
    assert one_user.loss == Pure("0.5")


def test_T_7_1_the_two_largest_budgets():
    columns = by_cell(DISTRICTS, Bounded(), "common")
    losses = [Pure(budget) for budget in BUDGETS]
    result = composed(DISTRICTS, Bounded(), columns, losses)
    assert result.loss == Pure("1.8")
    assert result.row.change.detail("from") == ("S",)
    assert result.row.change.detail("to") == ("W",)
    assert composed(DISTRICTS, Unbounded(), columns, losses).loss == Pure("1.0")
    whole = [Column(Select(*DISTRICTS.cells), Bounded(), "common")]
    assert composed(DISTRICTS, Bounded(), whole, [Pure("0.4")]).loss == Pure("0.4")
    assert composed(DISTRICTS, Unbounded(), whole, [Pure("0.4")]).loss.is_infinite


def test_T_7_1_unbounded_units_pay_twice_the_largest():
    three = Table(("a", "b", "c"))
    losses = [Pure(1), Pure("0.1"), Pure("0.1")]
    common = by_cell(three, Bounded(), "common")
    unbounded = by_cell(three, Unbounded(), "view")
    assert composed(three, Bounded(), common, losses).loss == Pure("1.1")
    assert composed(three, Bounded(), unbounded, losses).loss == Pure(2)


def test_T_7_1_a_fixed_number_of_residents_has_no_unbounded_neighbours():
    fixed = Table(DISTRICTS.cells, size=1000)
    columns = by_cell(fixed, Bounded(), "common")
    losses = [Pure(budget) for budget in BUDGETS]
    assert composed(fixed, Bounded(), columns, losses).loss == Pure("1.8")
    with pytest.raises(VacuousGranularityError, match="neighbours"):
        composed(fixed, Unbounded(), columns, losses)


def test_T_7_2_common_claims_about_everything_are_sequential():
    columns = [Column(Identity(), Bounded(), "common")] * 4
    losses = [Pure(budget) for budget in BUDGETS]
    assert composed(DISTRICTS, Bounded(), columns, losses).loss == Pure("2.6")


@pytest.mark.parametrize(
    ("target", "statistic", "expected"),
    [
        (Unbounded(), "records", "0.6"),
        (Bounded(), "records", "1.1"),
        (Bounded(), "count", "1.0"),
    ],
)
def test_T_7_3_hierarchies(target, statistic, expected):
    blocks = tuple((d, b) for d in "ABC" for b in range(4))
    city = Table(blocks)
    nodes = [(blocks, "0.1")]
    nodes += [([b for b in blocks if b[0] == d], "0.2") for d in "ABC"]
    nodes += [([b], "0.3") for b in blocks]
    columns, losses, releases = [], [], []
    for number, (cells, budget) in enumerate(nodes):
        for unit in (Unbounded(), Bounded()):
            view = Select(*cells, statistic=statistic)
            columns.append(Column(view, unit, "common"))
            losses.append(Pure(budget))
            releases.append(number)
    result = composed(city, target, columns, losses, releases=releases)
    assert result.loss == Pure(expected)
    assert result.tight


def test_T_7_4_overlapping_counts_in_the_common_domain():
    table = Table(("a", "b", "c"), values_per_cell=1)
    losses = [Pure("0.5"), Pure("0.3"), Pure("0.2")]
    for statistic, ab, bc in (("records", "0.8", "1.0"), ("count", "0.5", "0.7")):
        columns = [
            Column(Select(*cells, statistic=statistic), Bounded(), "common")
            for cells in ("ab", "bc", "c")
        ]
        assert composed(table, Bounded(), columns, losses).loss == Pure("1.0")
        for pair, expected in (("ab", ab), ("bc", bc)):
            row = replacement_row(
                table, columns=columns, source=pair[0], destination=pair[1]
            )
            if (statistic, pair) == ("count", "ab"):
                expected = "0.3"
            assert price_row(row, losses=losses) == Pure(expected)


def test_T_7_5_to_T_7_8_the_two_largest_in_other_notions():
    columns = by_cell(DISTRICTS, Bounded(), "common")
    gauss = composed(DISTRICTS, Bounded(), columns, [GDP(b) for b in BUDGETS])
    assert value(gauss) == pytest.approx(1.280624847487, abs=1e-12)
    rhos = [ZCDP(rho) for rho in ("0.02", "0.05", "0.01", "0.04")]
    assert composed(DISTRICTS, Bounded(), columns, rhos).loss == ZCDP("0.09")
    assert composed(DISTRICTS, Unbounded(), columns, rhos).loss == ZCDP("0.05")
    pairs = [Approx(*pair) for pair in PAIRS]
    approx = composed(DISTRICTS, Bounded(), columns[:3], pairs)
    assert approx.loss == Approx("1.5", "1.1e-5")
    histogram = composed(DISTRICTS, Bounded(), columns, [GDP(1)] * 4)
    assert value(histogram) == pytest.approx(math.sqrt(2), abs=1e-12)


def test_T_8_3_disjoint_inputs_keep_the_whole_front():
    columns = by_cell(DISTRICTS, Unbounded(), "view")[:3]
    result = composed(
        DISTRICTS, Unbounded(), columns, [Approx(*pair) for pair in PAIRS]
    )
    assert result.loss == Approx("1.0", "1e-5")
    assert {loss for loss, _ in result.front} == {
        Approx("1.0", "1e-6"),
        Approx("0.5", "1e-5"),
    }


@pytest.mark.parametrize(
    ("distance", "epsilon", "delta"),
    [(1, 6, 6e-5), (2, 12, 2.230969097e-4), (3, 18, 6.664402756e-4)],
)
def test_T_8_5_hospitals_keep_the_profile_per_view(distance, epsilon, delta):
    fleet = Table(range(20), multi=True, max_cells=3)
    columns = by_cell(fleet, Bounded(), "common")
    result = loss_at_distance(
        fleet,
        Bounded(),
        distance=distance,
        columns=columns,
        losses=[Approx(1, "1e-5")] * 20,
    )
    assert result.loss.epsilon == epsilon
    assert result.loss.delta == pytest.approx(delta, rel=1e-9)


def test_T_8_5_at_unbounded_level():
    fleet = Table(range(20), multi=True, max_cells=3)
    columns = by_cell(fleet, Bounded(), "common")
    result = composed(fleet, Unbounded(), columns, [Approx(1, "1e-5")] * 20)
    assert result.loss == Approx(3, "3e-5")


def test_T_10_11_removing_one_record_in_each_of_two_blocks():
    columns = by_cell(DISTRICTS, Unbounded(), "view")
    for changes, expected in (({"N": 1, "S": 1}, math.sqrt(2)), ({"N": 3, "S": -4}, 5)):
        row = record_row(DISTRICTS, columns=columns, changes=changes)
        loss = price_row(row, losses=[GDP(1)] * 4)
        assert loss.mu == pytest.approx(expected, abs=1e-12)


def test_T_10_12_ten_regions():
    regions = Table(range(10))
    losses = [GDP(1)] * 10
    unbounded = by_cell(regions, Unbounded(), "view")
    common = by_cell(regions, Bounded(), "common")
    found = [
        value(composed(regions, Unbounded(), unbounded, losses)),
        value(composed(regions, Bounded(), common, losses)),
        value(composed(regions, Bounded(), unbounded, losses)),
        value(
            composed(
                regions, Bounded(), [Column(Identity(), Bounded(), "view")] * 10, losses
            )
        ),
    ]
    assert found == pytest.approx([1, 2**0.5, 2, 10**0.5], abs=1e-12)
    epsilons = [gdp_epsilon(mu, 1e-5) for mu in found]
    expected = [4.377178, 6.572970, 9.997256, 17.856587]
    assert epsilons == pytest.approx(expected, abs=1e-5)


def test_T_10_13_hourly_gaussian_releases():
    columns = [Column(At(hour), Event(), "view") for hour in range(24)]
    for target, mu, epsilon in (
        (Event(), 0.1, 0.396857),
        (WEvent(3), 0.173205080757, 0.714694),
        (User(), 0.489897948557, 2.204119),
    ):
        result = composed(DAY, target, columns, [GDP("0.1")] * 24)
        assert value(result) == pytest.approx(mu, abs=1e-12)
        assert gdp_epsilon(value(result), 1e-6) == pytest.approx(epsilon, abs=1e-5)


def test_T_14_1_queries_on_different_roads():
    roads = Table(("A", "B", "C"))
    columns = [
        Column(Identity(), Unbounded(), "view"),
        Column(Select("A"), Unbounded(), "view"),
        Column(Select("B"), Unbounded(), "view"),
    ]
    losses = [Pure("0.5")] * 3
    assert composed(roads, Unbounded(), columns, losses).loss == Pure("1.0")
    row = replacement_row(roads, columns=columns, source="A", destination="B")
    assert price_row(row, losses=losses) == Pure("2.0")
    more = [*columns, Column(Select("A"), Unbounded(), "view")]
    again = composed(roads, Unbounded(), more, [*losses, Pure("0.1")])
    assert again.loss == Pure("1.1")


def test_story_of_the_columns_one_and_two_way_marginals():
    table = Table(attributes=("a", "b", "c", "d"))
    for width, budget, attribute, record in (
        (1, "0.25", "0.25", "1.0"),
        (2, "0.1", "0.3", "0.6"),
    ):
        columns = [
            Column(Project(*names), Bounded(), "view")
            for names in combinations("abcd", width)
        ]
        losses = [Pure(budget)] * len(columns)
        assert composed(table, Attribute(), columns, losses).loss == Pure(attribute)
        assert composed(table, Bounded(), columns, losses).loss == Pure(record)


def test_story_of_the_districts_move_costs():
    columns = by_cell(DISTRICTS, Bounded(), "common")
    losses = [Pure(budget) for budget in BUDGETS]
    for source, destination, expected in (("N", "E", "0.8"), ("N", "N", "0.5")):
        row = replacement_row(
            DISTRICTS, columns=columns, source=source, destination=destination
        )
        assert price_row(row, losses=losses) == Pure(expected)

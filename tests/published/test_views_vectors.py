"""Published and derived numbers for sensitivities, partitions, quotients and cliques.

Statements are numbered as in P. Guerra-Balboa, *A Formal Study of Differential Privacy
in Complex and Correlated Data*, PhD thesis, KIT, 2026 ("thesis") and P. Guerra-Balboa,
À. Miranda-Pascual, J. Parra-Arnau and T. Strufe, *Composition in Differential Privacy
for General Granularity Notions* ("paper"). Tests named E show where a printed statement
had to be corrected, by its counterexample.
"""

# Test names carry the ids of the vectors, which are upper case.

import math
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from scipy.special import expit

from undertow.errors import FalsifiedClaimError, UnboundedSensitivityError
from undertow.privacy.loss import Pure
from undertow.spaces.canonical import canonical_matrix, neighbour_pairs
from undertow.spaces.domain import FiniteDomain, Graph, Rows, Stream, Table
from undertow.spaces.metric import (
    AbsoluteDifference,
    Euclidean,
    FunctionMetric,
    LpNorm,
    MatrixMetric,
    SymmetricDifference,
    check_pseudometric,
    verify_pseudometric,
)
from undertow.spaces.partition import Partition, commutes, is_compatible, most_touched
from undertow.spaces.quotient import (
    canonical_quotient,
    min_privacy,
    quotient_metric,
    sub_universe_distance,
)
from undertow.spaces.sensitivity import falsify, preprocess, sensitivity
from undertow.spaces.unit import (
    Bounded,
    Edge,
    Edit,
    FreeLunch,
    Relation,
    Unbounded,
    User,
)
from undertow.spaces.view import (
    Degree,
    Identity,
    IncidentEdges,
    Lipschitz,
    Nearest,
    Select,
    Truncate,
)
from undertow.spaces.view.graph import (
    clique_edge_loss,
    clique_loss,
    clique_metric,
    common_neighbourhood,
    count_cliques,
    unique_maximal_clique,
)

MULTISETS = Table(("a", "b", "c"), values_per_cell=1, max_size=4)
REALS = AbsoluteDifference()


def _histogram(database):
    return tuple(database.count(value) for value in "abc")


@pytest.mark.parametrize(
    ("function", "unit", "target", "expected"),
    [
        pytest.param(
            Select("a", statistic="count"), Unbounded(), REALS, 1, id="T-4.1-count-U"
        ),
        pytest.param(
            Select("a", statistic="count"), Bounded(), REALS, 1, id="T-4.1-count-B"
        ),
        pytest.param(_histogram, Unbounded(), LpNorm(1), 1, id="T-4.1-l1-U"),
        pytest.param(_histogram, Bounded(), LpNorm(1), 2, id="T-4.1-l1-B"),
        pytest.param(_histogram, Unbounded(), LpNorm(2), 1, id="T-4.1-l2-U"),
        pytest.param(_histogram, Bounded(), LpNorm(2), math.sqrt(2), id="T-4.1-l2-B"),
    ],
)
def test_T_4_1_counts_and_histograms(function, unit, target, expected):
    found = sensitivity(function, MULTISETS, source=unit, target=target)
    assert found.value == pytest.approx(expected, rel=1e-15)


def _squash(x):
    return float(expit(-x))  # 1 / (1 + e^x) without overflow


def _draw_reals(rng):
    return tuple(float(x) for x in rng.uniform(-1e9, 1e9, size=2))


def _any_two_reals(name, function, constant):
    lunch = FunctionMetric("free lunch on the reals", lambda x, y: float(x != y))
    return Lipschitz(name, function, constant=constant, unit_from=lunch, unit_to=REALS)


def _attack(view):
    rng = np.random.default_rng(1)
    return falsify(view, FiniteDomain((0,)), sampler=_draw_reals, rng=rng)


def test_T_4_2_squashing_has_sensitivity_one_as_a_supremum_only():
    found = [
        sensitivity(
            _squash, FiniteDomain((-x, 0, x)), source=FreeLunch(), target=REALS
        ).value
        for x in (1, 5, 20, 30)
    ]
    assert found == sorted(found)
    assert 1 - 1e-12 < found[-1] < 1
    assert _attack(_any_two_reals("squash", _squash, 1)) is None
    assert _attack(_any_two_reals("squash", _squash, "0.99")) is not None


@pytest.mark.parametrize("constant", [1, 1000, "1e8"])
def test_T_4_2_the_identity_on_the_reals_has_no_finite_sensitivity(constant):
    raw = _any_two_reals("identity", lambda x: x, constant)
    first, second = _attack(raw)
    assert abs(first - second) > float(constant)
    wide = FiniteDomain((0, 2 * int(float(constant))))
    found = sensitivity(Identity(), wide, source=FreeLunch(), target=REALS)
    assert found.value > float(constant)


def test_T_4_2_privacy_after_squashing_says_nothing_about_the_mechanism_itself():
    # Laplace noise of scale 1 on a real loses |x - y|: at most 1 after squashing,
    # without limit before (thesis, Remark A.4; paper, Remark III.7).
    points = FiniteDomain((-40.0, 0.0, 40.0))
    squashed = sensitivity(_squash, points, source=FreeLunch(), target=REALS).value
    plain = sensitivity(Identity(), points, source=FreeLunch(), target=REALS).value
    assert preprocess(Pure(1), squashed).within(Pure(1))
    assert preprocess(Pure(1), plain) == Pure(80)


def test_T_4_3_the_identity_between_add_remove_and_replace():
    def identity(source, target):
        return sensitivity(Identity(), MULTISETS, source=source, target=target).value

    assert identity(Unbounded(), Bounded()) == math.inf
    assert identity(Bounded(), Unbounded()) == 2


def test_T_4_4_telling_apart_what_the_source_does_not_is_infinite():
    blurred = MatrixMetric("xyz", [[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    points = FiniteDomain("xyz")
    apart = {"source": blurred, "target": REALS}
    assert sensitivity("xyz".index, points, **apart).value == math.inf
    assert sensitivity("yx.z".find, points, **apart).value == math.inf
    constant_there = {"x": 0, "y": 0, "z": 2}.get
    assert sensitivity(constant_there, points, **apart).value == 2


def test_T_4_5_preprocessing_scales_and_refuses_infinity():
    assert preprocess(Pure("0.5"), 3) == Pure("1.5")
    with pytest.raises(UnboundedSensitivityError):
        preprocess(Pure("0.5"), math.inf)


def test_T_4_6_truncation_doubles_at_record_level_and_not_at_user_level():
    owners = Table(("u", "v"), cell="user", values_per_cell=3, max_size=4)
    records = sensitivity(Truncate(2), owners, source=Unbounded(), target=Unbounded())
    assert records.value == 2
    stream = Stream(2, 3, values=("p",))
    people = sensitivity(Truncate(2), stream, source=User(), target=User())
    assert people.value == 1


def _degree_change(one, two, domain):
    return sum(
        REALS.distance(
            Degree(v).apply(one, domain), Degree(v).apply(two, domain), domain
        )
        for v in range(domain.vertices)
    )


def test_T_5_7_moving_one_edge_changes_two_degrees():
    graph, one, two = Graph(4), frozenset({(0, 1)}), frozenset({(0, 2)})
    assert _degree_change(one, two, graph) == 2
    assert 2 * Edge().distance(one, two, graph) == 4


@pytest.mark.parametrize(
    ("size", "expected"), [(2, 0), (3, 1), (4, 3), (5, 7), (6, 15), (7, 31)]
)
def test_T_5_9_price_of_an_edge_by_the_size_of_its_clique(size, expected):
    graph = frozenset(combinations(range(size), 2))
    edge = (0, 1)
    assert clique_loss(size, 7) == Pure(expected)
    assert clique_edge_loss(common_neighbourhood(graph, edge), 7) == expected
    lost = clique_metric(graph, graph - {edge}, max_size=7)
    assert lost == Pure(expected)


def test_T_5_9_counting_up_to_four_truncates_the_sum():
    assert clique_loss(5, 4) == Pure(6)
    graph = frozenset(combinations(range(5), 2))
    assert clique_metric(graph, graph - {(0, 1)}, max_size=4) == Pure(6)


FOUR_AND_THREE = frozenset(combinations(range(4), 2)) | {(0, 4), (1, 4)}


def test_T_5_10_a_unique_maximum_clique_is_not_enough():
    shared = common_neighbourhood(FOUR_AND_THREE, (0, 1))
    assert clique_edge_loss(shared, 4) == 4
    assert clique_loss(4, 4) == Pure(3)
    assert unique_maximal_clique(FOUR_AND_THREE, (0, 1)) is None
    with pytest.raises(FalsifiedClaimError) as refusal:
        clique_metric(
            FOUR_AND_THREE,
            FOUR_AND_THREE - {(0, 1)},
            max_size=4,
            assume_unique_maximal=True,
        )
    assert refusal.value.witness == (0, 1)


DISTRICTS = Table(
    ("d1", "d2"),
    cell="district",
    attributes={"district": ("d1", "d2"), "x": (0, 6), "y": (0, 8)},
    max_size=3,
)


def _ambulance_losses():
    """Yield the summed loss of two counts and two nearest places at neighbours."""
    nearest = [
        Nearest(d, place="xy", target=(0, 0), sentinel=(6, 8), diameter=10)
        for d in ("d1", "d2")
    ]
    blocks = [Select(d) for d in ("d1", "d2")]
    for view in nearest:
        view.require_domain(DISTRICTS)
    for one, two in neighbour_pairs(DISTRICTS, Unbounded()):
        counted = sum(
            Unbounded().distance(
                v.apply(one, DISTRICTS), v.apply(two, DISTRICTS), v.image(DISTRICTS)
            )
            for v in blocks
        )
        moved = [
            Euclidean().distance(
                v.apply(one, DISTRICTS), v.apply(two, DISTRICTS), DISTRICTS
            )
            for v in nearest
        ]
        yield counted + sum(moved), sum(gap > 0 for gap in moved)


def test_T_5_11_one_ambulance_moves_one_district_only():
    losses = list(_ambulance_losses())
    assert max(loss for loss, _ in losses) == 11


def test_T_6_3_the_symmetric_difference_commutes_with_blocks_that_leave_records_out():
    cut, metric = Partition.by_value(["a"], ["b"]), SymmetricDifference()
    one, two = ("a", "b", "c"), ("c", "c")
    table = Table(("a", "b", "c"), values_per_cell=1, max_size=3)
    blocks = [
        metric.distance(v.apply(one, table), v.apply(two, table), table)
        for v in cut.views(table)
    ]
    union = cut.union(table)
    assert blocks == [1, 1]
    assert metric.distance(union.apply(one, table), union.apply(two, table), table) == 2
    assert metric.distance(one, two, table) == 3
    assert commutes(metric, cut, domain=table).holds


def test_T_6_3_replacement_does_not_commute():
    cut = Partition.by_value(["a"], ["b"])
    table = Table(("a", "b"), values_per_cell=1, size=1)
    found = commutes(Bounded(), cut, domain=table)
    assert (found.holds, found.witness) == (False, (("a",), ("b",)))
    blocks = [
        Bounded().distance(
            v.apply(("a",), table), v.apply(("b",), table), v.image(table)
        )
        for v in cut.views(table)
    ]
    assert (sum(blocks), Bounded().distance(("a",), ("b",), table)) == (math.inf, 1)


def test_T_6_5_deleting_the_first_row_changes_every_position():
    rows = FiniteDomain([(5, 3, 8, 1), (3, 8, 1)])
    deleting = Relation("delete a row", lambda one, two: abs(len(one) - len(two)) == 1)
    cut = Partition.by_row_position(4)
    found = is_compatible(cut, deleting, domain=rows)
    assert found == (False, ((5, 3, 8, 1), (3, 8, 1)), "4 blocks differ")


def test_T_6_5_every_position_of_rows_with_ids_can_shift_too():
    rows = Rows(4, values=(1, 3, 5, 8), free_ids=True)
    cut = Partition.by_row_position(4)
    shown = [
        tuple(v.apply(d, rows) for v in cut.views(rows))
        for d in ((5, 3, 8, 1), (None, 3, 8, 1))
    ]
    assert sum(a != b for a, b in zip(*shown, strict=True)) == 4
    assert most_touched(cut, Unbounded(), domain=rows).blocks == 4


def test_T_6_5_one_value_shifts_every_position_of_a_sorted_table():
    rows = Rows(3, values=(1, 2, 3, 4))
    cut = Partition.by_sorted_position(3)
    before, after = (
        tuple(v.apply(d, rows) for v in cut.views(rows)) for d in ((1, 2, 3), (4, 2, 3))
    )
    assert before == ((1,), (2,), (3,))
    assert after == ((2,), (3,), (4,))
    refused = is_compatible(cut, Bounded(ordered=True), domain=rows)
    assert not refused.holds
    assert most_touched(cut, Bounded(ordered=True), domain=rows).blocks == 3


def test_T_7_0_minimum_privacy_breaks_the_triangle_and_the_quotient_does_not():
    points = np.array([0, 1, 11, 12])
    line = np.abs(np.subtract.outer(points, points))
    labels = ["1", "23", "23", "4"]
    minimum, quotient = min_privacy(line, labels), quotient_metric(line, labels)
    assert (minimum[0, 3], minimum[0, 1], minimum[2, 3]) == (12, 1, 1)
    assert not check_pseudometric(minimum).holds
    assert quotient[0, 3] == 2
    assert check_pseudometric(quotient).holds


def test_T_7_1a_exact_quotient_of_a_sub_universe():
    table = Table(tuple("abcd"), values_per_cell=1, size=3)
    one, two = ("a", "c", "c"), ("b", "d", "d")
    view = Select("a", "b")
    ours, theirs = view.apply(one, table), view.apply(two, table)
    assert Bounded().distance(one, two, table) == 3
    assert SymmetricDifference().distance(ours, theirs, table) == 2
    assert sub_universe_distance(ours, theirs) == 1
    index, matrix = canonical_quotient(Bounded(), view, domain=table)
    assert matrix[index[ours], index[theirs]] == 1


def test_T_7_1b_padding_to_equal_size_costs_at_most_the_symmetric_difference():
    table = Table(tuple("abcd"), values_per_cell=1)
    second = ("b", "b", "c")
    gaps = {
        pad: Bounded().distance(Table.database(("a", *pad)), second, table)
        for pad in combinations_with_replacement("abcd", 2)
    }
    assert max(gaps.values()) <= SymmetricDifference().distance(("a",), second, table)
    assert gaps[("d", "d")] == 3


def test_E1_overlapping_blocks_are_no_partition():
    # Printed: blocks with non-empty intersections. One added record would then touch
    # two of them, and the maximum of the budgets would not cover the sum.
    table = Table(("a", "b", "c"), values_per_cell=1, max_size=2)
    overlapping = [Select("a", "b"), Select("b", "c")]
    touched = max(
        sum(v.apply(one, table) != v.apply(two, table) for v in overlapping)
        for one, two in neighbour_pairs(table, Unbounded())
    )
    assert touched == 2
    with pytest.raises(ValueError, match="disjoint"):
        Partition.by_value(["a", "b"], ["b", "c"])


def test_E6_compatibility_gives_an_inequality_and_not_an_equality():
    table = Table(("a", "b", "c"), values_per_cell=1, max_size=2)
    cut = Partition.by_value(["a"], ["b"])
    assert is_compatible(cut, Unbounded(), domain=table).holds
    one, two = (), ("c",)
    touched = [v.apply(one, table) != v.apply(two, table) for v in cut.views(table)]
    assert sum(touched) == 0  # not 1, as printed
    moved = [
        Unbounded().distance(v.apply(one, table), v.apply(two, table), v.image(table))
        for v in cut.views(table)
    ]
    assert sum(moved) == 0 < Unbounded().distance(one, two, table) == 1


def test_E7_commuting_is_not_compatible():
    # On tables of one size the symmetric difference commutes with a value partition,
    # while no replacement is compatible with it.
    table = Table(("a", "b"), values_per_cell=1, size=2)
    cut = Partition.by_value()
    assert commutes(SymmetricDifference(), cut, domain=table).holds
    assert not is_compatible(cut, Bounded(), domain=table).holds


def test_E10_degrees_move_by_at_most_two_per_edge_with_equality_at_neighbours_only():
    graph = Graph(4)
    listed = list(graph.databases())
    ratios = set()
    for one in listed:
        for two in listed:
            edges = Edge().distance(one, two, graph)
            moved = _degree_change(one, two, graph)
            assert moved <= 2 * edges
            if edges == 1:
                assert moved == 2
            elif edges:
                ratios.add(moved / edges)
    assert min(ratios) < 2
    # One edge touches two vertices, not one.
    touched = most_touched(Partition.per_vertex(), Edge(), domain=graph)
    assert touched.blocks == 2
    assert IncidentEdges(0).apply(frozenset({(0, 1)}), graph)


def test_E11_the_clique_formula_needs_a_unique_maximal_clique_and_large_counts():
    # The 4-clique is the only largest clique around edge 01, the formula says 3.
    sizes = sorted(
        len(group)
        for size in (3, 4, 5)
        for group in combinations(range(5), size)
        if {0, 1} <= set(group)
        and all(pair in FOUR_AND_THREE for pair in combinations(group, 2))
    )
    assert sizes == [3, 3, 3, 4]
    before = count_cliques(FOUR_AND_THREE, max_size=4)[2:]
    after = count_cliques(FOUR_AND_THREE - {(0, 1)}, max_size=4)[2:]
    assert sum(before) - sum(after) == 4 > 2**2 - 1
    # With counts up to k < r the closed form 2^(r-2) - 1 = 7 is not reached either.
    assert clique_loss(5, 4) == Pure(6) != Pure(2**3 - 1)


def test_E12_the_printed_sub_universe_distance_is_only_an_upper_bound():
    table = Table(tuple("abcd"), values_per_cell=1, size=4)
    view = Select("a", "b")
    listed = list(table.databases())
    shown = [view.apply(one, table) for one in listed]
    distances = canonical_matrix(table, Bounded())
    index, exact = canonical_quotient(Bounded(), view, domain=table)
    assert len(index) ** 2 == 225
    larger = 0
    for i, ours in enumerate(shown):
        for j, theirs in enumerate(shown):
            quotient = exact[index[ours], index[theirs]]
            assert quotient == sub_universe_distance(ours, theirs)
            gap = SymmetricDifference().distance(ours, theirs, table)
            printed = min(distances[i, j], gap)
            assert quotient <= printed
            larger += quotient < printed
    assert larger > 0


def test_E12_the_exact_value_is_the_edit_metric_of_the_sub_multisets():
    image = Table(("a", "b"), values_per_cell=1, max_size=4)
    for one in image.databases():
        for two in image.databases():
            assert sub_universe_distance(one, two) == Edit().distance(one, two, image)


def test_E12_the_whole_universe_is_a_counterexample_to_dropping_properness():
    table = Table(("a", "b"), values_per_cell=1, max_size=3)
    index, matrix = canonical_quotient(Bounded(), Select("a", "b"), domain=table)
    assert matrix[index[("a",)], index[("a", "a")]] == math.inf
    assert sub_universe_distance(("a",), ("a", "a")) == 1


def test_E21_the_largest_distance_between_two_sets_is_no_metric():
    def farthest(one, two):
        return max((math.dist(x, y) for x in one for y in two), default=0.0)

    sets = FiniteDomain([((0, 0), (6, 8)), ((0, 0),)])
    with pytest.raises(FalsifiedClaimError, match="diagonal") as refusal:
        verify_pseudometric(FunctionMetric("farthest", farthest), sets)
    assert farthest(*refusal.value.witness) > 0


def test_E21_twice_the_diameter_is_valid_but_loose_at_neighbours():
    losses = list(_ambulance_losses())
    assert {moved for _, moved in losses} == {0, 1}  # never both districts
    assert max(loss for loss, _ in losses) == 1 + 10 < 1 + 2 * 10

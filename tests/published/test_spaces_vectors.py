"""Numbers and examples about granularities, each under its id.

Ids T-2.x and T-3.x are the vectors of distances and of transfers; ids E3 and E4 are
statements of the sources that are wrong as printed, with the pair that shows it.
"""

import math
from itertools import product

import pytest

from undertow.errors import VacuousGranularityError
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.canonical import (
    canonical_matrix,
    check_domain,
    interval_cover,
    intrinsic_gap,
    vertex_cover,
    w_event_distance,
)
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.transfer import implies, transfer, transfer_factor, transfer_matrix
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    Edge,
    Edit,
    Element,
    Event,
    FreeLunch,
    Group,
    LTrajectory,
    Node,
    Unbounded,
    User,
    WEvent,
)

inf = math.inf
ABC = Table(("a", "b", "c"), values_per_cell=1)
UP_TO_FOUR = Table(("a", "b", "c"), values_per_cell=1, max_size=4)
OF_THREE = Table(("a", "b", "c"), values_per_cell=1, size=3)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("aab", "ac", (3, inf, 2, 1), id="T-2.1"),
        pytest.param("aab", "acc", (4, 2, 2, 1), id="T-2.2"),
    ],
)
def test_T_2_1_and_T_2_2_distances_of_multisets(first, second, expected):
    pair = Table.database(first), Table.database(second)
    units = (Unbounded(), Bounded(), Edit(), FreeLunch())
    assert tuple(unit.distance(*pair, ABC) for unit in units) == expected


@pytest.mark.parametrize(("size", "expected"), [(1, 7), (2, 4), (3, 3), (7, 1)])
def test_T_2_3_groups_cut_the_path_into_pieces(size, expected):
    pair = Table.database("aaab"), Table.database("bbbb" + "c")
    assert Unbounded().distance(*pair, ABC) == 7
    assert Group(Unbounded(), size).distance(*pair, ABC) == expected


def edges(text):
    return Graph.database((int(e[0]), int(e[1])) for e in text.split())


@pytest.mark.parametrize(
    ("first", "second", "edge", "node"),
    [
        ("01", "02", 2, 1),
        ("", "01 23", 2, 2),
        ("01 02 12", "", 3, 2),
    ],
)
def test_T_2_4_distances_of_graphs_on_four_vertices(first, second, edge, node):
    pair = edges(first), edges(second)
    assert Edge().distance(*pair, Graph(4)) == edge
    assert Node().distance(*pair, Graph(4)) == node


@pytest.mark.parametrize(
    ("cap", "first", "second"),
    [(1, "01 23", "02 13"), (2, "01 02 13", "01 12 03 23")],
)
def test_T_2_4a_a_degree_cap_makes_node_distances_longer(cap, first, second):
    pair = edges(first), edges(second)
    assert vertex_cover(pair[0] ^ pair[1]).low == 2
    assert Node().distance(*pair, Graph(4)) == 2
    assert Node().distance(*pair, Graph(4, max_degree=cap)) == 3
    bounds = Node().bounds(*pair, Graph(4, max_degree=cap))
    assert (bounds.low, bounds.high) == (2, 3)


def test_T_2_4a_how_many_pairs_the_cap_affects_on_five_vertices():
    domain = Graph(5, max_degree=2)
    listed = list(domain.databases())
    distances = canonical_matrix(domain, Node())
    longer = sum(
        distances[i, j] > vertex_cover(x ^ y).high
        for i, x in enumerate(listed)
        for j, y in enumerate(listed)
    )
    assert (longer, len(listed) ** 2) == (1410, 64009)


def test_T_2_5_attribute_distance_is_an_assignment():
    bits = {name: (0, 1) for name in "xyz"}
    first, second = ((0, 0, 0), (1, 1, 1)), ((1, 1, 0), (0, 0, 1))
    table = Table(attributes=bits, size=2)
    pair = Table.database(first), Table.database(second)
    assert Attribute().distance(*pair, table) == 2
    assert Attribute().distance(first, second, Rows(2, attributes=bits)) == 4


def test_T_2_6_closed_forms_hold_on_all_multisets_of_at_most_four():
    listed = list(UP_TO_FOUR.databases())
    assert len(listed) == 35
    for unit in (Unbounded(), Bounded(), Edit()):
        searched = canonical_matrix(UP_TO_FOUR, unit)
        for (i, x), (j, y) in product(enumerate(listed), repeat=2):
            assert unit.closed_form(x, y, UP_TO_FOUR) == searched[i, j]


def test_T_2_6a_one_user_leaves_the_hospital():
    day = Stream(1, 3, clusters={"home": "home", "hospital": "hospital"})
    pair = (("home", "hospital", "hospital"),), (("home", None, None),)
    units = (Element(), Event(add_remove=True), User())
    assert [unit.distance(*pair, day) for unit in units] == [1, 2, 1]


def test_T_2_6b_users_come_and_go():
    users = Rows(("u1", "u2", "u3"), free_ids=True)
    pair = ("p", "q", None), ("p'", None, "r")
    assert User(add_remove=True).distance(*pair, users) == 4
    assert User().distance(*pair, users) == inf


def test_T_2_6c_swapping_two_visits_costs_more_than_the_formula():
    day = Stream(1, 3, clusters={"a": "A", "b": "B"})
    swap = (("a", "b", None),), (("b", "a", None),)
    searched = canonical_matrix(day, Element())
    listed = list(day.databases())
    assert Element().formula(*swap, day) == 2
    assert Element().distance(*swap, day) == 3
    assert searched[listed.index(swap[0]), listed.index(swap[1])] == 3
    assert Element().distance((("a", None, None),), (("b", None, None),), day) == 2


def test_T_2_6c_without_gaps_no_point_changes_its_cluster():
    day = Stream(1, 3, regular=True, clusters={"a": "A", "b": "B"})
    assert Element().distance((("a", "b", "a"),), (("b", "a", "a"),), day) == inf
    with pytest.raises(VacuousGranularityError):
        check_domain(day, Element())


def test_T_2_7_add_remove_is_vacuous_at_a_fixed_size():
    with pytest.raises(VacuousGranularityError, match="promises nothing"):
        check_domain(OF_THREE, Unbounded())
    found = check_domain(OF_THREE, Unbounded(), allow_vacuous=True)
    assert found.vacuous
    assert not found.has_edges


def test_T_2_8_replacement_publishes_the_size():
    found = check_domain(UP_TO_FOUR, Bounded())
    assert found.component_count == 5
    assert found.components == tuple(f"size {n}" for n in range(5))
    assert found.invariants == ("size: the number of records",)
    assert "published in the clear" in found.warnings[0]
    assert check_domain(OF_THREE, Bounded()).connected


@pytest.mark.parametrize(
    ("need", "w", "expected"),
    [
        ([1, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0], 3, 3),
        ([2, 0, 1, 0], 2, 3),
        ([1] * 24, 3, 8),
        ([1] * 24, 5, 5),
    ],
)
def test_T_2_9_window_covers(need, w, expected):
    assert w_event_distance(need, w) == expected


def test_T_2_10_interval_cover():
    assert interval_cover([0, 1, 2, 5, 9, 10], 3) == 3


def test_T_3_3_unbounded_gives_bounded_and_not_conversely():
    assert implies(Unbounded(), Bounded(), ABC) == 2
    back = transfer_factor(Bounded(), Unbounded(), ABC)
    assert back.factor == inf
    assert Unbounded().are_neighbours(*back.pair, ABC)
    assert Bounded().distance(*back.pair, ABC) == inf


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (Pure(1), Pure(2)),
        (ZCDP("0.5"), ZCDP(2)),
        (GDP(1), GDP(2)),
    ],
)
def test_T_3_4_losses_restated_at_bounded_level(loss, expected):
    assert transfer(loss, implies(Unbounded(), Bounded(), ABC)) == expected


def test_T_3_4_approximate_loss_restated_at_bounded_level():
    found = transfer(Approx(1, 1e-5), implies(Unbounded(), Bounded(), ABC))
    assert found.epsilon == 2
    assert found.delta == pytest.approx(3.718281828459e-5, rel=1e-12)


def test_T_3_5_free_lunch_gives_everything():
    stream, graph = Stream(5, 4), Graph(6, max_degree=2)
    for want in (Unbounded(), Bounded(), Edit(), FreeLunch()):
        assert implies(FreeLunch(), want, ABC) == 1
    for want in (Event(), WEvent(3), LTrajectory(2), User(), User(add_remove=True)):
        assert implies(FreeLunch(), want, stream) == 1
    for want in (Edge(), Node()):
        assert implies(FreeLunch(), want, graph) == 1


def test_T_3_5_to_free_lunch_it_costs_every_row_and_at_fixed_size_nothing_helps():
    assert implies(Bounded(ordered=True), FreeLunch(), Rows(7)) == 7
    assert implies(Unbounded(), Bounded(), OF_THREE) == inf


def ceil(a, b):
    return -(-a // b)


def stream_table(n, T, w, length):  # the table of T-3.6, for length >= w
    windows, segments = ceil(T, w), ceil(T, length)
    return [
        [1, w, length, T, n * T],
        [1, 1, ceil(length, w), windows, n * windows],
        [1, min(w, n), 1, segments, n * segments],
        [1, min(w, n), 1, 1, n],
    ]


STREAM_UNITS = (Event(), WEvent(2), LTrajectory(3), User(), FreeLunch())


@pytest.mark.parametrize(("n", "T"), [(1000, 24), (2, 24), (1, 7), (3, 4)])
def test_T_3_6_closed_table_on_streams(n, T):
    rows = transfer_matrix(STREAM_UNITS, Stream(n, T, regular=True))
    factors = [[entry.factor for entry in row] for row in rows]
    assert factors[:4] == stream_table(n, T, 2, 3)
    assert factors[4] == [1] * 5
    assert all(entry.exact for row in rows for entry in row)


@pytest.mark.parametrize(("n", "T"), [(2, 3), (1, 5), (3, 3), (2, 4)])
def test_T_3_6_enumerated_table_on_streams(n, T):
    domain = Stream(n, T, regular=True, values=(0, 1))
    listed = list(domain.databases())
    matrices = [canonical_matrix(domain, unit) for unit in STREAM_UNITS]
    index = {database: at for at, database in enumerate(listed)}
    factors = [
        [
            max(
                int(matrix[index[x], index[y]])
                for x in listed[:1]  # the group of relabellings acts transitively
                for y in want.neighbours(x, domain)
            )
            for want in STREAM_UNITS
        ]
        for matrix in matrices
    ]
    assert factors[:4] == stream_table(n, T, 2, 3)


def test_T_3_6_concrete_figures_for_a_day_of_hours():
    day = Stream(1000, 24)
    assert implies(Event(), User(), day) == 24
    assert implies(WEvent(3), User(), day) == 8
    assert implies(User(), WEvent(3), day) == 3


def test_T_3_6_a_window_of_all_times_is_stronger_than_a_user():
    day = Stream(1000, 24)
    assert implies(WEvent(24), User(), day) == 1
    assert implies(User(), WEvent(24), day) == 24
    assert implies(User(), WEvent(24), Stream(5, 24)) == 5
    assert implies(User(), WEvent(24, single_user=True), day) == 1


def test_T_3_7_attributes_edges_and_nodes():
    table = Table(attributes={"age": None, "sex": ("f", "m"), "zip": None}, size=100)
    assert implies(Attribute(), Bounded(), table) == 3
    assert implies(Bounded(), Attribute(), table) == 1
    assert implies(Edge(), Node(), Graph(1000)) == 999
    assert implies(Node(), Edge(), Graph(1000)) == 1
    assert implies(Edge(), Node(), Graph(1000, max_degree=20)) == 40
    assert implies(Edge(), Node(), Graph(30, max_degree=20)) == 29


@pytest.mark.parametrize("cap", [1, 2, 3, 4])
def test_T_3_7_edge_to_node_enumerated_on_five_vertices(cap):
    domain = Graph(5, max_degree=cap)
    worst = max(
        len(x ^ y) for x in domain.databases() for y in Node().neighbours(x, domain)
    )
    assert worst == min(2 * cap, 4) == implies(Edge(), Node(), domain)


def test_E3_the_identity_stretches_by_the_transfer_factor_read_backwards():
    # Printed: from d^G1 to d^G2 the identity has sensitivity dist(G1, G2). By the
    # printed definition of dist it is dist(G2, G1): here 2, where the other is inf.
    d_bounded = canonical_matrix(UP_TO_FOUR, Bounded())
    d_unbounded = canonical_matrix(UP_TO_FOUR, Unbounded())
    joined = (d_bounded > 0) & (d_bounded < inf)
    stretch = (d_unbounded[joined] / d_bounded[joined]).max()
    assert stretch == transfer_factor(Unbounded(), Bounded(), UP_TO_FOUR).factor == 2
    assert transfer_factor(Bounded(), Unbounded(), UP_TO_FOUR).factor == inf


def test_E4_a_finite_factor_does_not_carry_protection_the_printed_way():
    # Printed: dist(G1, G2) < inf means what G1 protects is protected by G2. With G1
    # unbounded and G2 bounded the distance is 2, unbounded protects the size, and
    # publishing the size is bounded 0-DP: nothing of it is protected there.
    assert implies(Unbounded(), Bounded(), UP_TO_FOUR) == 2
    listed = list(UP_TO_FOUR.databases())
    bounded_pairs = [
        (x, y) for x in listed for y in Bounded().neighbours(x, UP_TO_FOUR)
    ]
    assert bounded_pairs
    assert all(len(x) == len(y) for x, y in bounded_pairs)
    assert all(
        len(x) != len(y) for x in listed for y in Unbounded().neighbours(x, UP_TO_FOUR)
    )


def test_induced_distance_is_not_the_intrinsic_one_at_fixed_size():
    gap = intrinsic_gap(Unbounded(), OF_THREE, within=ABC)
    assert (gap.induced, gap.intrinsic) == (6, inf)
    assert intrinsic_gap(Unbounded(), UP_TO_FOUR, within=ABC) is None

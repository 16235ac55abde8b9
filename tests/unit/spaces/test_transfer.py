"""Transfer factors: formulas against inspection of every neighbour pair."""

import math
from itertools import product

import pytest

from undertow.errors import (
    AssumptionError,
    InfiniteLossError,
    MismatchError,
    VacuousGranularityError,
)
from undertow.privacy.loss import Pure
from undertow.spaces.canonical import (
    canonical_matrix,
    interval_cover,
    neighbour_matrix,
    neighbour_pairs,
)
from undertow.spaces.domain import FiniteDomain, Graph, Rows, Stream, Table
from undertow.spaces.transfer import (
    implies,
    transfer,
    transfer_bound,
    transfer_factor,
    transfer_matrix,
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

CATALOGUE = {
    "table": [
        Unbounded(),
        Bounded(),
        Edit(),
        FreeLunch(),
        Attribute(),
        Trajectory(add_remove=True),
        Group(Unbounded(), 3),
        Group(Bounded(), 2),
        Group(Attribute(), 3),
    ],
    "rows": [
        Unbounded(),
        BoundedById(),
        Edit(),
        FreeLunch(),
        Attribute(),
        User(add_remove=True),
        Group(Unbounded(), 2),
        Group(Unbounded(), 4),
        Group(Attribute(), 3),
    ],
    "stream": [
        Event(),
        Event(add_remove=True),
        WEvent(2),
        WEvent(3, single_user=True),
        LTrajectory(2),
        LTrajectory(2, periodic=True),
        Element(),
        User(),
        User(add_remove=True),
        User(max_times=1),
        User(add_remove=True, max_times=2),
        FreeLunch(),
        Group(Event(), 2),
    ],
    "graph": [Edge(), Node(), FreeLunch(), Group(Edge(), 2), Group(Node(), 2)],
}
DOMAINS = [
    Table(("a", "b", "c"), values_per_cell=1, max_size=3),
    Table(("a", "b", "c"), values_per_cell=1, size=2),
    Table(("a",), values_per_cell=1, max_size=4),
    Table(attributes={"x": (0, 1), "y": (0, 1, 2), "z": (5,)}, size=2),
    Table(attributes={"x": (0, 1), "y": (0, 1)}, max_size=3),
    Table(("a", "b"), values_per_cell=1, multi=True, max_size=3),
    Table(("a", "b"), values_per_cell=1, multi=True, max_cells=1, size=2),
    Rows(3, values=(0, 1)),
    Rows(3, values=(0, 1), free_ids=True),
    Rows(3, values=(0,), free_ids=True),
    Rows(2, attributes={"x": (0, 1), "y": (0, 1)}, free_ids=True),
    Stream(2, 3, regular=True, clusters={"a": "A", "b": "B"}),
    Stream(1, 3, regular=True, clusters={"a": "A", "b": "A", "c": "B"}),
    Stream(2, 2, clusters={"a": "A", "b": "B"}),
    Stream(2, 2, clusters={"a": "A"}),
    Stream(1, 3, clusters={"a": "A", "b": "A", "c": "B"}),
    Stream(1, 4, clusters={"a": "A", "b": "B"}),
    Stream(1, 1, clusters={"a": "A", "b": "B"}),
    Stream(1, 3, clusters={"a": "A", "b": "B", "c": "C"}),
    Stream(1, 3, clusters={"a": "A", "b": "B", "c": "C", "d": "D"}),
    Stream(2, 3, values=("a",)),
    Graph(4),
    Graph(4, max_degree=2),
    Graph(5, max_degree=1),
]


def fitting(domain):
    for granularity in CATALOGUE[domain.kind]:
        try:
            granularity.require_domain(domain)
        except MismatchError:
            continue
        yield granularity


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_change_classes_agree_with_the_inspection_of_all_neighbours(domain):
    catalogue = list(fitting(domain))
    distances = {g: canonical_matrix(domain, g) for g in catalogue}
    edges = {g: neighbour_matrix(domain, g).nonzero() for g in catalogue}
    for have, want in product(catalogue, repeat=2):
        if not len(edges[want][0]):
            with pytest.raises(VacuousGranularityError):
                transfer_factor(have, want, domain)
            continue
        truth = distances[have][edges[want]].max()
        found = transfer_bound(have, want, domain)
        case = f"{have.name} -> {want.name}"
        assert found.factor >= truth, case
        assert not found.exact or found.factor == truth, case
        assert transfer_factor(have, want, domain).factor == truth, case
        if found.pair is not None:
            assert want.are_neighbours(*found.pair, domain), case
            assert have.distance(*found.pair, domain) == truth, case


@pytest.mark.parametrize(
    ("have", "want", "domain", "factor"),
    [
        (Unbounded(), Edit(), Table(tuple("abcdefghijklmnop"), multi=True), 2),
        (Bounded(), Attribute(), Table(attributes=("x", "y"), size=10**6), 1),
        (Element(), FreeLunch(), Stream(10**6, 24, clusters={"a": 1, "b": 2}), 3e6),
        (Element(), User(max_times=1), Stream(5, 24, clusters={"a": 1, "b": 2}), 2),
        (WEvent(2), User(max_times=5), Stream(10**6, 24), 10),
        (User(max_times=2), Event(), Stream(10**6, 24), math.inf),
        (Group(Event(), 7), Group(Event(), 30), Stream(10**6, 24), 5),
    ],
)
def test_factors_of_large_domains_are_known_to_be_attained(have, want, domain, factor):
    found = transfer_factor(have, want, domain)
    assert (found.factor, found.exact, found.enumerated) == (factor, True, False)


@pytest.mark.parametrize(
    ("n", "T", "w", "v"), [(2, 7, 3, 7), (3, 6, 4, 6), (2, 6, 4, 5), (4, 6, 3, 6)]
)
def test_one_users_windows_against_crowds_by_assigning_times_to_users(n, T, w, v):
    best = max(
        sum(interval_cover([t for t in range(v) if owner[t] == u], w) for u in range(n))
        for owner in product(range(n), repeat=v)
    )
    found = transfer_factor(LTrajectory(w), WEvent(v), Stream(n, T, regular=True))
    assert found.factor == best
    assert LTrajectory(w).distance(*found.pair, Stream(n, T, regular=True)) == best


def test_the_whole_domain_bounds_the_loss_of_any_change():
    table = Table(("a", "b"), values_per_cell=1, max_size=10)
    assert implies(Unbounded(), FreeLunch(), table) == 20
    assert implies(Edit(), FreeLunch(), table) == 10
    assert implies(Unbounded(), FreeLunch(), Table()) == math.inf
    assert transfer_factor(Unbounded(), FreeLunch(), Table()).pair is None
    assert "any number" in transfer_factor(Unbounded(), FreeLunch(), Table()).change


def test_nothing_carries_over_between_components_and_the_pair_shows_it():
    domain = Stream(3, 5)
    for have, want in [
        (LTrajectory(2), Event()),
        (LTrajectory(2), User(add_remove=True)),
        (User(max_times=2), Event()),
        (User(max_times=2), User()),
        (User(max_times=2), User(add_remove=True, max_times=3)),
        (User(max_times=2), LTrajectory(2)),
        (User(add_remove=True, max_times=2), User(max_times=3)),
    ]:
        found = transfer_factor(have, want, domain)
        assert found.factor == math.inf
        assert want.are_neighbours(*found.pair, domain)
        assert have.distance(*found.pair, domain) == math.inf


def test_a_declared_cap_carries_to_a_smaller_one_only():
    domain = Stream(3, 8)
    assert implies(User(max_times=4), User(max_times=2), domain) == 1
    assert implies(User(), User(max_times=2), domain) == 1
    assert implies(User(max_times=2), User(max_times=4), domain) == math.inf
    assert implies(Event(), User(max_times=2), domain) == 4
    assert implies(Event(), User(add_remove=True, max_times=2), domain) == 2


def test_a_group_already_held_is_free():
    assert implies(Group(Unbounded(), 2), Bounded(), Table()) == 1
    assert implies(Group(Bounded(), 4), Group(Bounded(), 9), Table()) == 3
    assert implies(Unbounded(), Group(Bounded(), 5), Table()) == 10
    assert implies(Group(Group(Unbounded(), 2), 3), Group(Unbounded(), 6), Table()) == 1


def test_groups_inside_one_component_are_not_overstated():
    domain = Stream(2, 3, values=("a",))  # nothing joins what the cap keeps apart
    one = User(max_times=1)
    assert transfer_bound(one, Group(one, 5), domain).factor == 2
    assert implies(one, Group(one, 5), domain) == 2
    graph = Graph(6)
    assert transfer_factor(Edge(), Group(FreeLunch(), 3), graph).exact


def test_upper_bounds_say_that_they_are():
    domain = Graph(40, max_degree=3)
    found = transfer_factor(Edge(), FreeLunch(), domain)
    assert not found.exact
    assert found.factor == 120
    assert not transfer_factor(Node(), FreeLunch(), domain).exact
    assert not transfer_factor(WEvent(3), Group(Event(), 4), Stream(2, 24)).exact
    assert transfer_factor(FreeLunch(), Group(User(), 4), Stream(50, 24)).exact


def test_several_steps_of_different_users_attain_the_bound_together():
    stream, want = Stream(50, 24), Group(User(), 4)
    found = transfer_factor(WEvent(3), want, stream)
    assert (found.factor, found.exact) == (32, True)
    assert want.are_neighbours(*found.pair, stream)
    assert WEvent(3).distance(*found.pair, stream) == 32


def test_small_domains_are_inspected_where_the_formula_is_a_bound():
    found = transfer_factor(Node(), FreeLunch(), Graph(4, max_degree=1))
    assert found.enumerated
    assert found.exact
    assert found.factor == canonical_matrix(Graph(4, max_degree=1), Node()).max()
    assert FreeLunch().are_neighbours(*found.pair, Graph(4, max_degree=1))


def test_listed_domains_are_inspected():
    domain = FiniteDomain(range(5))
    line = Relation("line", lambda x, y: abs(x - y) == 1)
    hop = Relation("hop", lambda x, y: abs(x - y) == 2)
    assert implies(line, hop, domain) == 2
    found = transfer_factor(hop, line, domain)
    assert found.factor == math.inf
    assert line.are_neighbours(*found.pair, domain)


def test_without_formula_or_list_it_is_refused():
    table = Table(("a", "b", "c"), values_per_cell=1, size=100)
    own = Relation("own", lambda x, y: True)
    with pytest.raises(
        AssumptionError, match="at most 3000 databases where no formula"
    ):
        transfer_factor(own, Bounded(), table)


def test_unbounded_transfers_to_nothing_at_a_fixed_size_and_is_no_target_there():
    table = Table(("a", "b"), values_per_cell=1, size=3)
    assert implies(Unbounded(), Bounded(), table) == math.inf
    with pytest.raises(VacuousGranularityError):
        transfer_factor(Bounded(), Unbounded(), table)
    with pytest.raises(VacuousGranularityError, match="one database"):
        transfer_factor(Bounded(), Edit(), Table(size=0))


def test_granularities_of_another_domain_are_refused():
    with pytest.raises(MismatchError):
        transfer_factor(Edge(), Bounded(), Table())
    with pytest.raises(MismatchError):
        transfer_factor(Bounded(), Edge(), Table())


def test_local_is_free_lunch_for_one_person():
    assert implies(Local(), Attribute(), Table(attributes=("x", "y"), size=1)) == 1
    assert implies(Attribute(), Local(), Table(attributes=("x", "y"), size=1)) == 2


def test_losses_are_restated_and_infinite_factors_refused():
    assert transfer(Pure("0.5"), 24) == Pure(12)
    assert transfer(Pure("0.5"), 1) == Pure("0.5")
    with pytest.raises(InfiniteLossError):
        transfer(Pure("0.5"), math.inf)


def test_the_matrix_has_ones_on_its_diagonal_and_obeys_the_chain_rule():
    units = (Event(), WEvent(3), LTrajectory(5, periodic=True), User(), FreeLunch())
    rows = transfer_matrix(units, Stream(7, 12))
    factors = [[entry.factor for entry in row] for row in rows]
    assert [factors[k][k] for k in range(5)] == [1] * 5
    for i, j, k in product(range(5), repeat=3):
        assert factors[i][k] <= factors[i][j] * factors[j][k]
    assert (rows[0][3].have, rows[0][3].want) == ("event", "user")


def test_pairs_of_enormous_streams_are_not_written_out():
    found = transfer_factor(Event(), User(), Stream(10**6, 24))
    assert found.factor == 24
    assert found.pair is None
    assert found.exact
    assert found.change == "replace all data of one user"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("have", [Unbounded(), Edit()])
def test_groups_over_a_single_record_value_reach_as_far_as_inspection_says(have, size):
    """With one value nothing can be replaced, but several records can still leave."""
    table = Table(("a",), values_per_cell=1, max_size=3)
    want = Group(Unbounded(), size)
    farthest = max(have.distance(*pair, table) for pair in neighbour_pairs(table, want))
    assert transfer_factor(have, want, table).factor == farthest == min(size, 3)


@pytest.mark.parametrize("times", [1, 127, 128, 256, 512])
def test_a_neighbour_that_is_listed_many_times_is_a_neighbour(times):
    class Listed(Relation):
        def neighbours(self, database, domain):
            return (
                x for x in super().neighbours(database, domain) for _ in range(times)
            )

    line = FiniteDomain(range(5))
    want = Listed("two apart", lambda x, y: abs(x - y) == 2)
    have = Relation("one apart", lambda x, y: abs(x - y) == 1)
    matrix = neighbour_matrix(line, want).toarray()
    assert (matrix == [[abs(x - y) == 2 for y in range(5)] for x in range(5)]).all()
    assert transfer_factor(have, want, domain=line).factor == 2
    assert transfer_factor(want, Listed("self", want.relation), domain=line).factor == 1

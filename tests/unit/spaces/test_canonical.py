"""Shortest paths, canonical matrices, what is connected, what is induced."""

import math

import numpy as np
import pytest

from undertow.errors import AssumptionError, SearchError, VacuousGranularityError
from undertow.spaces.canonical import (
    canonical_distance,
    canonical_matrix,
    check_domain,
    intrinsic_gap,
    is_canonical,
    neighbour_pairs,
)
from undertow.spaces.domain import FiniteDomain, Graph, Rows, Stream, Table
from undertow.spaces.unit import (
    Bounded,
    Edge,
    Edit,
    Event,
    FreeLunch,
    Group,
    Node,
    Relation,
    Unbounded,
)


def ring(n):
    return lambda x: ((x - 1) % n, (x + 1) % n)


@pytest.mark.parametrize(
    ("n", "target", "expected"), [(10, 0, 0), (10, 5, 5), (11, 8, 3)]
)
def test_the_shorter_way_round_a_ring(n, target, expected):
    assert canonical_distance(ring(n), 0, target) == expected


def test_no_chain_is_infinite_and_found_from_the_smaller_side():
    def neighbours(x):
        return [] if x == "alone" else [x + 1]  # the other side is endless

    assert canonical_distance(neighbours, "alone", 0) == math.inf
    assert canonical_distance(neighbours, 0, "alone") == math.inf


def test_a_search_that_grows_too_large_stops_at_once():
    def everything(x):
        yield from range(10**12)

    with pytest.raises(SearchError, match="1000 databases visited"):
        canonical_distance(everything, -1, -2, limit=1000)


def test_self_loops_are_ignored():
    matrix = canonical_matrix(FiniteDomain(range(3)), lambda x, y: abs(x - y) <= 1)
    assert matrix.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def test_a_one_way_relation_is_refused_with_the_pair():
    with pytest.raises(AssumptionError, match="symmetric") as fault:
        canonical_matrix(FiniteDomain(range(3)), lambda x, y: x == y + 1)
    assert set(fault.value.witness) == {0, 1}


def test_matrices_are_for_small_domains():
    with pytest.raises(AssumptionError, match="at most 3000"):
        canonical_matrix(Table(("a", "b"), values_per_cell=1, size=5000), Bounded())


def test_a_relation_without_edges_gives_infinite_distances():
    matrix = canonical_matrix(FiniteDomain(range(2)), lambda x, y: False)
    assert matrix.tolist() == [[0, math.inf], [math.inf, 0]]


def test_neighbour_pairs_come_in_both_orders():
    pairs = set(neighbour_pairs(Graph(3), Edge()))
    assert len(pairs) == 8 * 3
    assert {(y, x) for x, y in pairs} == pairs


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[0]], True),
        ([[0, math.inf], [math.inf, 0]], True),
        ([[0, 3, 6], [3, 0, 3], [6, 3, 0]], True),
        ([[0, 1, 1.5], [1, 0, 1], [1.5, 1, 0]], False),
        ([[0, 1, 3], [1, 0, 2], [3, 2, 0]], False),
        ([[0, 0], [0, 0]], False),
        ([[0, 1], [2, 0]], False),
        ([[1, 1], [1, 0]], False),
    ],
)
def test_which_matrices_come_from_a_relation(matrix, expected):
    # The last integer one fails because no unit step leads from 1 to 2 at distance 2.
    assert is_canonical(matrix) is expected


def test_every_matrix_of_a_granularity_is_canonical_and_a_scaled_one_too():
    matrix = canonical_matrix(Table(("a", "b"), values_per_cell=1, max_size=3), Edit())
    assert is_canonical(matrix)
    assert is_canonical(0.3 * matrix)
    assert not is_canonical(np.sqrt(matrix))


def test_a_vacuous_granularity_is_refused_unless_it_is_asked_about():
    table = Table(("a", "b"), values_per_cell=1, size=4)
    with pytest.raises(VacuousGranularityError, match="unbounded without any") as fault:
        check_domain(table, Unbounded())
    assert "III.4" in fault.value.source
    assert check_domain(table, Unbounded(), allow_vacuous=True).vacuous
    with pytest.raises(VacuousGranularityError):
        check_domain(Table(("a",), values_per_cell=1, max_size=2), Bounded())
    with pytest.raises(VacuousGranularityError):
        check_domain(Rows(3), Unbounded())


def test_a_vacuous_granularity_is_recognised_on_listed_classes():
    listed = FiniteDomain([(), ("a", "a")])
    with pytest.raises(VacuousGranularityError):
        check_domain(listed, Unbounded())


def test_one_database_has_nothing_to_tell_apart():
    for granularity in (Unbounded(), Bounded(), Edit(), FreeLunch()):
        found = check_domain(Table(size=0), granularity)
        assert not found.vacuous
        assert found.connected
        assert found.warnings == ()


def test_open_tables_are_checked_by_proof():
    found = check_domain(Table(), Bounded())
    assert not found.enumerated
    assert found.component_count == math.inf
    assert found.components == ("one per size",)
    assert "inf components" in found.warnings[0]
    assert check_domain(Table(), Unbounded()).connected
    assert check_domain(Stream(10**6, 10**3), Group(Event(), 2)).connected


def test_long_lists_of_components_are_cut_in_the_warning():
    table = Table(("a", "b"), values_per_cell=1, max_size=50)
    found = check_domain(table, Bounded())
    assert len(found.components) == 51
    assert found.warnings[0].endswith("size 7, ….")


def test_a_domain_too_large_to_list_needs_a_proof():
    with pytest.raises(AssumptionError, match="at most"):
        check_domain(Table(), Relation("own", lambda x, y: True))


def test_the_gap_between_induced_and_intrinsic_distance():
    capped, free = Graph(4, max_degree=1), Graph(4)
    gap = intrinsic_gap(Node(), capped, within=free)
    assert (gap.induced, gap.intrinsic) == (2, 3)
    assert intrinsic_gap(Edge(), capped, within=free) is None


def test_the_widest_gap_is_reported():
    listed = FiniteDomain([(), ("a",), ("a", "a", "a"), ("a", "a", "a", "a", "a", "a")])
    gap = intrinsic_gap(Unbounded(), listed, within=Table())
    assert (gap.induced, gap.intrinsic) == (6, math.inf)
    assert {gap.first, gap.second} == {(), ("a",) * 6}


def test_a_finite_gap_is_measured_by_its_width():
    path = FiniteDomain([("a",), ("a", "c"), ("a", "b", "c"), ("b", "c"), ("b",)])
    gap = intrinsic_gap(Unbounded(), path, within=Table())
    assert (gap.induced, gap.intrinsic) == (2, 4)

"""Edge and node level, with and without a degree cap."""

import math

import pytest

from undertow.errors import AssumptionError, MismatchError
from undertow.spaces.canonical import check_domain
from undertow.spaces.domain import FiniteDomain, Graph, Table
from undertow.spaces.unit import Edge, Node


def complete(n):
    return Graph.database((i, j) for j in range(n) for i in range(j))


def test_rewiring_a_vertex_of_a_triangle():
    domain = Graph(3)
    found = set(Node().neighbours(complete(3), domain))
    assert found == set(domain.databases()) - {complete(3), frozenset()}
    assert len(set(Edge().neighbours(complete(3), domain))) == 3


@pytest.mark.parametrize("granularity", [Edge(), Node()], ids=lambda g: g.name)
def test_neighbours_respect_the_degree_cap(granularity):
    domain = Graph(5, max_degree=2)
    for database in domain.databases():
        near = list(granularity.neighbours(database, domain))
        assert len(near) == len(set(near))
        assert all(other in domain for other in near)


@pytest.mark.parametrize("n", range(2, 30, 3))
def test_from_empty_to_complete_every_vertex_but_one_is_rewired(n):
    domain = Graph(n)
    bounds = Node().bounds(frozenset(), complete(n), domain)
    assert bounds.low <= n - 1 <= bounds.high
    if n <= 11:
        assert Node().distance(frozenset(), complete(n), domain) == n - 1


def test_a_large_bipartite_difference_is_solved_exactly():
    domain = Graph(200)
    difference = Graph.database((i, 100 + j) for i in range(40) for j in range(100))
    assert Node().distance(frozenset(), difference, domain) == 40


def test_a_distance_that_cannot_be_found_is_refused_with_its_bounds():
    domain = Graph(400, max_degree=12)
    first = Graph.database([(0, 1), (2, 3)])
    second = Graph.database([(0, 2), (1, 3)])
    with pytest.raises(AssumptionError, match=r"lie in 2\.\.3; use the upper end"):
        Node().distance(first, second, domain)


def test_neighbours_under_a_cap_need_no_search():
    domain = Graph(400, max_degree=12)
    first, second = Graph.database([(0, 1)]), Graph.database([(0, 2), (0, 3)])
    assert Node().closed_form(first, second, domain) == 1
    assert Node().distance(first, second, domain) == 1


def test_a_listed_class_bounds_nothing_from_above():
    listed = FiniteDomain([frozenset(), Graph.database([(0, 1), (2, 3)])])
    pair = listed.elements
    assert Node().bounds(*pair, listed).high == math.inf
    assert Node().distance(*pair, listed) == math.inf
    assert Edge().closed_form(*pair, listed) is None
    assert Edge().distance(*pair, listed) == math.inf


def test_a_listed_class_closed_under_removal_keeps_the_edge_formula():
    listed = FiniteDomain(Graph(4, max_degree=1).databases())
    pair = Graph.database([(0, 1)]), Graph.database([(0, 2)])
    assert Edge().closed_form(*pair, listed) == 2


def test_graph_levels_publish_the_vertex_set_and_connect_the_rest():
    for granularity in (Edge(), Node()):
        assert granularity.invariants(Graph(4)) == ("the vertex set",)
        assert check_domain(Graph(400, max_degree=3), granularity).connected
        assert not check_domain(Graph(1), granularity).vacuous
        with pytest.raises(MismatchError, match="kind graph"):
            granularity.require_domain(Table())
        with pytest.raises(MismatchError, match="frozensets of edges"):
            granularity.require_domain(FiniteDomain([1]))
    assert Edge().splits_person
    assert not Node().splits_person

"""What clique counts cost one edge."""

import math
from itertools import combinations

import pytest

from undertow.errors import FalsifiedClaimError
from undertow.privacy.loss import Pure
from undertow.spaces.domain import Graph
from undertow.spaces.metric import LpNorm
from undertow.spaces.view import CliqueCount
from undertow.spaces.view.graph import (
    clique_edge_loss,
    clique_loss,
    clique_metric,
    common_neighbourhood,
    count_cliques,
    unique_maximal_clique,
)
from undertow.spaces.view.range import Pullback


def complete(vertices):
    return frozenset(combinations(range(vertices), 2))


def test_counts_by_size_on_a_complete_graph_are_binomial():
    assert count_cliques(complete(5), max_size=6) == (5, 10, 10, 5, 1, 0)
    assert count_cliques([], max_size=3) == (0, 0, 0)


def test_the_edge_loss_is_the_number_of_cliques_that_vanish_on_every_graph():
    for edges in list(Graph(5).databases())[::5]:
        for edge in edges:
            before = count_cliques(edges, max_size=5)[2:]
            after = count_cliques(edges - {edge}, max_size=5)[2:]
            lost = sum(before) - sum(after)
            assert clique_edge_loss(common_neighbourhood(edges, edge), 5) == lost


def test_the_common_neighbourhood_does_not_need_the_edge_itself():
    graph = complete(4)
    with_edge = common_neighbourhood(graph, (0, 1))
    assert with_edge == common_neighbourhood(graph - {(0, 1)}, (0, 1))
    assert with_edge == {2: {3}, 3: {2}}
    assert common_neighbourhood([(0, 1)], (5, 6)) == {}


def test_the_closed_form_is_the_edge_loss_of_a_complete_graph():
    for size in range(2, 8):
        for max_size in range(3, 9):
            shared = common_neighbourhood(complete(size), (0, 1))
            price = clique_loss(size, max_size)
            assert price == Pure(clique_edge_loss(shared, max_size))


def test_uniqueness_is_decided_as_brute_force_decides_it():
    for edges in list(Graph(5).databases())[::11]:
        for edge in edges:
            cliques = [
                frozenset(group)
                for size in range(2, 6)
                for group in combinations(range(5), size)
                if set(edge) <= set(group)
                and all(pair in edges for pair in combinations(group, 2))
            ]
            maximal = [c for c in cliques if not any(c < other for other in cliques)]
            found = unique_maximal_clique(edges, edge)
            assert found == (maximal[0] if len(maximal) == 1 else None)


def test_the_metric_is_the_pullback_of_the_sum_norm():
    metric = Pullback(LpNorm(1), CliqueCount(4))
    graphs = list(Graph(4).databases())
    for one in graphs[::5]:
        for two in graphs:
            exact = clique_metric(one, two, max_size=4, epsilon="0.1")
            assert exact == Pure(f"{int(metric.distance(one, two, Graph(4)))}/10")


def _walk(one, two):
    try:
        return clique_metric(one, two, max_size=4, assume_unique_maximal=True)
    except FalsifiedClaimError as refusal:
        return refusal.witness


def test_the_walk_through_the_common_subgraph_is_never_smaller_where_it_applies():
    graphs, refused = list(Graph(4).databases()), 0
    for one in graphs[::3]:
        for two in graphs:
            walk = _walk(one, two)
            if isinstance(walk, Pure):
                assert clique_metric(one, two, max_size=4).within(walk)
            else:
                refused += 1
                home = one if walk in one else two
                assert unique_maximal_clique(home, walk) is None
    assert 0 < refused < len(graphs[::3]) * len(graphs) / 2


def test_equal_graphs_cost_nothing_even_without_noise():
    assert clique_metric(complete(4), complete(4), max_size=4, epsilon="inf") == Pure(0)
    assert clique_metric(complete(3), [], max_size=3, epsilon="inf").is_infinite


def test_prices_scale_exactly_with_the_budget():
    assert clique_loss(5, 5, epsilon="0.1") == Pure("0.7")
    assert clique_loss(3, 3, epsilon=math.inf).is_infinite
    assert clique_loss(2, 3, epsilon=math.inf) == Pure(0)


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="clique_size"):
        clique_loss(1, 3)
    with pytest.raises(ValueError, match="max_size"):
        clique_loss(3, 2)
    with pytest.raises(ValueError, match="max_size"):
        clique_edge_loss({}, 2)
    with pytest.raises(ValueError, match="max_size"):
        clique_metric([], [], max_size=1)

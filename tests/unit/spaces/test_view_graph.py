"""Views of graphs."""

from itertools import combinations

import pytest

from undertow.errors import MismatchError
from undertow.spaces.domain import Graph, Table
from undertow.spaces.unit import Edge
from undertow.spaces.view import CliqueCount, Degree, IncidentEdges, VertexPairs

STAR = frozenset({(0, 1), (0, 2), (2, 3)})


def test_degree_and_star_of_every_vertex():
    graph = Graph(4)
    assert [Degree(v).apply(STAR, graph) for v in range(4)] == [2, 1, 2, 1]
    assert IncidentEdges(2).apply(STAR, graph) == {(0, 2), (2, 3)}
    for vertex in range(4):
        star = IncidentEdges(vertex).apply(STAR, graph)
        assert len(star) == Degree(vertex).apply(STAR, graph)


def test_vertex_pairs_take_either_order_and_partition_the_edges():
    graph = Graph(4)
    assert VertexPairs([(1, 0), (3, 2)]).apply(STAR, graph) == {(0, 1), (2, 3)}
    parts = [
        VertexPairs([pair]).apply(STAR, graph) for pair in combinations(range(4), 2)
    ]
    assert frozenset().union(*parts) == STAR
    assert sum(map(len, parts)) == len(STAR)


@pytest.mark.parametrize("domain", [Graph(4), Graph(5, max_degree=2)])
def test_edge_distance_on_the_image_is_that_of_the_values_themselves(domain):
    view = IncidentEdges(0)
    shown = {view.apply(one, domain) for one in domain.databases()}
    image = view.image(domain)
    assert shown <= set(image.databases())
    for one in shown:
        for two in shown:
            assert Edge().distance(one, two, image) == len(one ^ two)


def test_clique_counts_match_brute_force():
    graph = Graph(5)
    for edges in list(graph.databases())[::7]:
        expected = tuple(
            sum(
                all(pair in edges for pair in combinations(group, 2))
                for group in combinations(range(5), size)
            )
            for size in (3, 4, 5)
        )
        assert CliqueCount(5).apply(edges, graph) == expected


def test_numbers_have_no_image():
    assert Degree(0).image(Graph(2)) is None
    assert CliqueCount(3).image(Graph(2)) is None
    assert VertexPairs([(0, 1)]).image(Graph(2)) == Graph(2)


@pytest.mark.parametrize(
    "view", [Degree(4), IncidentEdges(4), VertexPairs([(0, 4)])], ids=lambda v: v.name
)
def test_vertices_outside_the_graph_are_refused(view):
    with pytest.raises(ValueError, match="between 0 and 3"):
        view.require_domain(Graph(4))


@pytest.mark.parametrize("view", [Degree(0), VertexPairs([(0, 1)]), CliqueCount(3)])
def test_graph_views_refuse_other_domains(view):
    with pytest.raises(MismatchError, match="kind graph"):
        view.require_domain(Table(("a",)))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Degree(-1),
        lambda: IncidentEdges(True),
        lambda: VertexPairs([]),
        lambda: VertexPairs([(1, 1)]),
        lambda: CliqueCount(2),
    ],
)
def test_nonsense_is_refused_when_built(build):
    with pytest.raises(ValueError, match="must"):
        build()


@pytest.mark.parametrize(
    ("view", "name"),
    [
        (Degree(3), "degree of vertex 3"),
        (IncidentEdges(3), "edges of vertex 3"),
        (VertexPairs([(0, 1)]), "1 vertex pairs"),
        (CliqueCount(5), "counts of cliques of 3 to 5 vertices"),
    ],
)
def test_every_view_has_a_name_and_hashes(view, name):
    assert view.name == name
    view.require_domain(Graph(5))
    assert len({view, view}) == 1

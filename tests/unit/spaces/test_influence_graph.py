from __future__ import annotations

import math
from fractions import Fraction

import pytest

from undertow.errors import MismatchError
from undertow.spaces.change import Charge, Column
from undertow.spaces.domain import Graph
from undertow.spaces.influence import change_family
from undertow.spaces.metric import AbsoluteDifference, Euclidean, LpNorm
from undertow.spaces.unit import Edge, FreeLunch, Group, Node
from undertow.spaces.view import (
    CliqueCount,
    Degree,
    Identity,
    IncidentEdges,
    VertexPairs,
)

FRIENDS = Graph(10)
CAPPED = Graph(10, max_degree=3)


def influence(column, target, domain=CAPPED):
    family = change_family(domain, target, columns=(column,))
    return family.maximise([Charge((0,), lambda a: a)]).value


@pytest.mark.parametrize(
    ("view", "unit", "setting", "edge", "node"),
    [
        (Identity(), Edge(), "view", 1, 6),
        (Identity(), Node(), "view", 1, 1),
        (Identity(), FreeLunch(), "common", 1, 1),
        (Degree(0), AbsoluteDifference(), "view", 1, 3),
        (Degree(0), Edge(), "common", 1, 3),
        (Degree(0), Node(), "common", 1, 1),
        (IncidentEdges(0), Edge(), "view", 1, 6),
        (IncidentEdges(0), Node(), "view", 1, 1),
        (VertexPairs([(0, 1), (2, 3)]), Edge(), "view", 1, 6),
        (CliqueCount(4), LpNorm(1), "view", 3, 4),
        (CliqueCount(4), LpNorm(math.inf), "view", 2, 3),
        (CliqueCount(4), Edge(), "common", 1, 6),
        (Identity(), Euclidean(), "view", math.inf, math.inf),
    ],
)
def test_units_on_graphs(view, unit, setting, edge, node):
    column = Column(view, unit, setting)
    assert influence(column, Edge()) == edge
    assert influence(column, Node()) == node


def test_a_euclidean_change_of_clique_counts_is_rounded_up():
    value = influence(Column(CliqueCount(4), Euclidean(), "view"), Edge())
    assert value**2 >= 5
    assert float(value) == pytest.approx(math.sqrt(5))
    assert isinstance(value, Fraction)


def test_clique_counts_without_triangles_never_change():
    sparse = Graph(5, max_degree=1)
    assert influence(Column(CliqueCount(5), LpNorm(1), "view"), Edge(), sparse) == 0


def test_a_degree_in_the_view_setting_needs_a_metric_on_numbers():
    with pytest.raises(MismatchError, match="use AbsoluteDifference"):
        influence(Column(Degree(0), Edge(), "view"), Edge())


def test_an_edge_costs_the_two_heaviest_vertices():
    columns = tuple(Column(Degree(v), AbsoluteDifference(), "view") for v in range(10))
    family = change_family(FRIENDS, Edge(), columns=columns)
    charges = [Charge((v,), lambda a, w=v: (w * a[0],)) for v in range(10)]
    top = family.maximise(charges)
    assert (top.value, top.row.change.detail("vertices")) == (17, (8, 9))


def test_named_vertex_pairs_are_looked_at_one_by_one():
    columns = (
        Column(VertexPairs([(0, 1)]), Edge(), "view"),
        Column(VertexPairs([(2, 3)]), Edge(), "view"),
        Column(Degree(3), AbsoluteDifference(), "view"),
    )
    family = change_family(FRIENDS, Edge(), columns=columns)
    charges = [
        Charge((j,), lambda a, w=w: (w * a[0],)) for j, w in enumerate((4, 3, 2))
    ]
    top = family.maximise(charges)
    assert (top.value, top.row.change.detail("vertices")) == (5, (2, 3))
    assert top.tight


def test_an_edge_between_vertices_nobody_looks_at_costs_nothing():
    columns = (Column(VertexPairs([(0, 1)]), Edge(), "view"),)
    family = change_family(Graph(2), Edge(), columns=columns)
    assert family.maximise([Charge((0,), lambda a: (2 * a[0],))]).value == 2


def test_rewiring_respects_the_parity_of_the_degrees():
    # Three vertices: the centre can gain two edges, or swap one for the other.
    triangle = Graph(3)
    columns = tuple(Column(Degree(v), AbsoluteDifference(), "view") for v in range(3))
    family = change_family(triangle, Node(), columns=columns)
    charges = [Charge((v,), lambda a: (a[0] * a[0],)) for v in range(3)]
    assert family.maximise(charges).value == 6
    alone = change_family(triangle, Node(), columns=columns[:1])
    assert alone.maximise([Charge((0,), lambda a: a)]).value == 2


def test_a_lost_column_is_infinite_wherever_it_is_touched():
    columns = (
        Column(Degree(0), AbsoluteDifference(), "view"),
        Column(IncidentEdges(1), Euclidean(), "view"),
    )
    family = change_family(FRIENDS, Node(), columns=columns)
    charges = [Charge((j,), lambda a: a) for j in range(2)]
    top = family.maximise(charges)
    assert top.value == math.inf


def test_groups_and_everything_are_upper_bounds():
    degree = Column(Degree(0), AbsoluteDifference(), "view")
    assert influence(degree, Group(Edge(), 2)) == 2
    assert influence(degree, FreeLunch()) == 3
    assert influence(Column(Identity(), Edge(), "view"), FreeLunch(), FRIENDS) == 45
    assert influence(Column(Identity(), FreeLunch(), "view"), FreeLunch()) == 1
    assert influence(Column(IncidentEdges(0), Node(), "view"), FreeLunch()) == 1
    assert influence(Column(VertexPairs([(0, 1)]), Edge(), "view"), FreeLunch()) == 1
    cliques = Column(CliqueCount(3), LpNorm(1), "view")
    assert influence(cliques, FreeLunch()) == 10
    assert not change_family(CAPPED, Group(Edge(), 2), columns=(degree,)).tight

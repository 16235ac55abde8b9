"""Closed forms equal shortest paths, on small domains of every kind."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components, shortest_path

from undertow.spaces.canonical import canonical_matrix, check_domain, is_canonical
from undertow.spaces.domain import FiniteDomain, Graph, Rows, Stream, Table
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
    Trajectory,
    Unbounded,
    User,
    WEvent,
)

RECORD = [Unbounded(), Bounded(), Edit(), Trajectory(), Trajectory(add_remove=True)]
GROUPED = [Group(Unbounded(), 2), Group(Bounded(), 3), Group(Edit(), 2)]
TABLES = [
    Table(("a", "b", "c"), values_per_cell=1, max_size=3),
    Table(("a", "b", "c"), values_per_cell=1, size=3),
    Table(("a", "b"), values_per_cell=2, max_size=2),
    Table(("a",), values_per_cell=1, max_size=3),
    Table(("a", "b"), values_per_cell=1, multi=True, max_size=2),
    Table(("a", "b", "c"), values_per_cell=1, multi=True, max_cells=1, size=2),
    Table(("a", "b"), values_per_cell=1, size=1),
    Table(attributes={"x": (0, 1), "y": (0, 1, 2)}, max_size=2),
    Table(("u", "v"), cell="x", attributes={"x": ("u", "v"), "y": (0, 1)}, size=2),
]
ROWS = [
    Rows(3, values=(0, 1)),
    Rows(2, values=(0, 1, 2), free_ids=True),
    Rows(3, values=(0,), free_ids=True),
    Rows(2, attributes={"x": (0, 1), "y": (0, 1)}),
    Rows(2, attributes={"x": (0, 1), "y": (0, 1)}, free_ids=True),
]
STREAMS = [
    Stream(2, 3, regular=True, clusters={"a": "A", "b": "B"}),
    Stream(1, 3, regular=True, clusters={"a": "A", "b": "A", "c": "B"}),
    Stream(2, 2, clusters={"a": "A", "b": "B"}),
    Stream(1, 4, clusters={"a": "A", "b": "B"}),
    Stream(1, 3, clusters={"a": "A", "b": "A", "c": "B"}),
    Stream(1, 3, clusters={"a": "A", "b": "B", "c": "C"}),
    Stream(2, 2, clusters={"a": "A"}),
    Stream(3, 2, regular=True, clusters={"a": "A", "b": "A"}),
]
CELLS = [
    Event(),
    Event(add_remove=True),
    WEvent(2),
    WEvent(3),
    WEvent(2, single_user=True),
    LTrajectory(1),
    LTrajectory(2),
    LTrajectory(2, periodic=True),
    LTrajectory(2, periodic=False),
    Element(),
    User(),
    User(add_remove=True),
]
GRAPHS = [Graph(4), Graph(4, max_degree=1), Graph(4, max_degree=2), Graph(2)]

CASES = [
    *[(d, g) for d in TABLES for g in (*RECORD, FreeLunch())],
    *[(d, g) for d in TABLES[:2] for g in GROUPED],
    *[(d, Attribute()) for d in TABLES if d.attributes],
    *[(d, Local()) for d in TABLES if d.size == 1],
    *[
        (d, g)
        for d in ROWS
        for g in (
            Unbounded(),
            Bounded(ordered=True),
            BoundedById(),
            Edit(),
            User(),
            User(add_remove=True),
            Trajectory(),
            FreeLunch(),
            Group(BoundedById(), 2),
        )
    ],
    *[(d, Attribute()) for d in ROWS if d.attributes],
    *[(d, g) for d in STREAMS for g in CELLS],
    *[(d, g) for d in STREAMS[:2] for g in (Trajectory(), Group(WEvent(2), 2))],
    *[
        (d, g)
        for d in STREAMS
        if not d.regular
        for g in (User(max_times=1), User(add_remove=True, max_times=1))
    ],
    *[(d, g) for d in GRAPHS for g in (Edge(), Node(), Group(Edge(), 2), FreeLunch())],
]


def _label(value):
    return value.name if hasattr(value, "name") else repr(value)


def _by_definition(domain, granularity):
    """Shortest paths in the graph that `are_neighbours` draws: no generator used."""
    listed = list(domain.databases())
    joined = np.array(
        [[granularity.are_neighbours(x, y, domain) for y in listed] for x in listed]
    )
    return listed, joined, shortest_path(joined, unweighted=True)


@pytest.mark.parametrize(("domain", "granularity"), CASES, ids=_label)
def test_every_distance_is_a_shortest_path_of_the_relation(domain, granularity):
    listed, joined, paths = _by_definition(domain, granularity)
    assert (joined == joined.T).all()
    assert not joined.diagonal().any()
    for i, x in enumerate(listed):
        for j, y in enumerate(listed[: i + 1]):
            pair = (x, y) if (i + j) % 2 else (y, x)  # both orders come up
            assert granularity.distance(*pair, domain) == paths[i, j]
    assert is_canonical(paths)
    for x, row in zip(listed, joined, strict=True):
        generated = list(granularity.neighbours(x, domain))
        assert len(set(generated)) == len(generated)
        assert set(generated) == {
            y for y, near in zip(listed, row, strict=True) if near
        }
    _check_components(domain, granularity, joined)


def _check_components(domain, granularity, joined):
    found = check_domain(domain, granularity, allow_vacuous=True)
    number, _ = connected_components(joined, directed=False)
    assert found.component_count == number
    assert found.connected == (number == 1)
    assert found.has_edges == joined.any()
    assert found.vacuous == (len(joined) > 1 and not joined.any())
    assert bool(found.warnings) == (number > 1)
    assert bool(found.components) == (number > 1)


@pytest.mark.parametrize(("domain", "granularity"), CASES[::5], ids=_label)
def test_every_distance_is_an_extended_metric(domain, granularity):
    matrix = canonical_matrix(domain, granularity)
    assert (matrix == matrix.T).all()
    assert ((matrix == 0) == np.eye(len(matrix), dtype=bool)).all()
    for k in range(len(matrix)):
        assert (matrix <= matrix[:, [k]] + matrix[[k], :]).all()


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sets(st.sampled_from(list(TABLES[0].databases())), min_size=2, max_size=14))
@pytest.mark.parametrize("granularity", [Unbounded(), Bounded(), Edit()], ids=_label)
def test_on_any_subclass_of_multisets_the_distance_is_still_a_path(granularity, chosen):
    domain = FiniteDomain(sorted(chosen))
    listed, _, paths = _by_definition(domain, granularity)
    for i, x in enumerate(listed):
        for j, y in enumerate(listed):
            value = granularity.distance(x, y, domain)
            assert value == paths[i, j]
            assert value >= granularity.distance(x, y, TABLES[0])


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sets(st.sampled_from(list(GRAPHS[0].databases())), min_size=2, max_size=14))
@pytest.mark.parametrize("granularity", [Edge(), Node()], ids=_label)
def test_on_any_subclass_of_graphs_the_distance_is_still_a_path(granularity, chosen):
    domain = FiniteDomain(sorted(chosen, key=sorted))
    listed, _, paths = _by_definition(domain, granularity)
    for i, x in enumerate(listed):
        for j, y in enumerate(listed):
            assert granularity.distance(x, y, domain) == paths[i, j]


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sets(st.sampled_from(list(STREAMS[3].databases())), min_size=2, max_size=14))
@pytest.mark.parametrize("granularity", [Event(), WEvent(2), User()], ids=_label)
def test_on_any_subclass_of_streams_the_distance_is_still_a_path(granularity, chosen):
    domain = FiniteDomain(chosen)
    listed, _, paths = _by_definition(domain, granularity)
    for i, x in enumerate(listed):
        for j, y in enumerate(listed):
            assert granularity.distance(x, y, domain) == paths[i, j]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_element_distance_stays_between_the_formula_and_twice_it(data):
    stream = Stream(1, 6, clusters={"a": "A", "b": "B", "c": "C", "d": "C"})
    cell = st.sampled_from(stream.choices())
    row = st.tuples(*[cell] * 6)
    first, second = (data.draw(row),), (data.draw(row),)
    low = Element().formula(first, second, stream)
    value = Element().distance(first, second, stream)
    assert low <= value <= max(low, 2 * low - 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(5, 6), st.integers(1, 2), st.randoms(use_true_random=False))
def test_node_distance_under_a_cap_lies_in_its_bounds(vertices, cap, random):
    domain = Graph(vertices, max_degree=cap)
    pool = list(domain.databases())
    first, second = random.choice(pool), random.choice(pool)
    value = Node().distance(first, second, domain)
    bounds = Node().bounds(first, second, domain)
    assert bounds.low <= value <= bounds.high < math.inf

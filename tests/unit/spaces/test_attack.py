"""Random databases and neighbours lie where they should, and everywhere there."""

import numpy as np
import pytest

from undertow.errors import AssumptionError, MismatchError
from undertow.spaces.canonical import concrete, random_database, random_neighbours
from undertow.spaces.domain import FiniteDomain, Graph, MetricSpace, Rows, Stream, Table
from undertow.spaces.metric import Values
from undertow.spaces.unit import Bounded, Unbounded

SMALL = [
    FiniteDomain("abc"),
    MetricSpace((0, 1, 3), function=lambda x, y: abs(x - y)),
    Table(("a", "b"), values_per_cell=1, max_size=3),
    Table(("a", "b"), values_per_cell=1, size=2),
    Table(("a", "b"), multi=True, max_cells=1, values_per_cell=1, max_size=2),
    Rows(2, values=(0, 1), free_ids=True),
    Stream(1, 2, values=("p",)),
    Graph(3),
    Graph(4, max_degree=1),
]


@pytest.mark.parametrize("domain", SMALL, ids=lambda domain: domain.kind)
def test_every_database_of_a_small_domain_comes_up(domain):
    rng = np.random.default_rng(11)
    drawn = {random_database(domain, rng=rng) for _ in range(600)}
    assert drawn == set(domain.databases())


@pytest.mark.parametrize(
    "domain",
    [
        Table(),
        Table(("a", "b")),
        Table(("a", "b"), multi=True),
        Table(attributes=("x", "y")),
        Table(("a", "b"), cell="x", attributes=("x", "y")),
        Rows(3),
        Rows(3, attributes=("x", "y")),
        Stream(2, 2),
        Graph(3),
    ],
    ids=lambda domain: domain.kind,
)
def test_values_left_open_are_filled_with_examples(domain):
    rng = np.random.default_rng(3)
    small = concrete(domain)
    drawn = [random_database(small, rng=rng) for _ in range(30)]
    assert all(one in small for one in drawn)
    assert len(set(drawn)) > 1


def test_drawn_neighbours_are_neighbours():
    rng = np.random.default_rng(4)
    table = Table(("a", "b"), values_per_cell=1, max_size=3)
    pairs = [random_neighbours(table, Unbounded(), rng=rng) for _ in range(50)]
    assert all(Unbounded().are_neighbours(*pair, table) for pair in pairs)
    assert len(set(pairs)) > 5


def test_a_database_without_neighbours_gives_none():
    table = Table(("a",), values_per_cell=1, size=2)
    rng = np.random.default_rng(0)
    assert random_neighbours(table, Bounded(), rng=rng) is None


def test_other_domains_and_empty_universes_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(MismatchError, match="sampler"):
        random_database(Values(), rng=rng)
    with pytest.raises(AssumptionError, match="domain must"):
        random_database(Table(("a",)), rng=rng)

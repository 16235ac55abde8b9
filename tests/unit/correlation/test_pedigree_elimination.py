"""Summing out people: laws of counts and dosages against listing every database."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from undertow.correlation.pedigree import Pedigree, query_law
from undertow.correlation.pedigree._factor import (
    Factor,
    eliminate,
    elimination_order,
    multiply,
    read_lattice,
    shift_by_degree,
    sum_out,
)
from undertow.correlation.pedigree.model import conditional_tables
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery, LipschitzQuery
from undertow.errors import ModelError, NotApplicable

RNG = np.random.default_rng(7)
LOOP = [None, None, (0, 1), (1, 0), (2, 3), (4, None)]


def listed_law(pedigree, value, known):
    """The law by listing every database."""
    law: dict[float, float] = {}
    for row in itertools.product(range(3), repeat=pedigree.size):
        if all(row[j] == x for j, x in known.items()):
            weight = float(np.exp(pedigree.log_prob(row)))
            law[value(row)] = law.get(value(row), 0.0) + weight
    total = sum(law.values())
    return {v: w / total for v, w in law.items()}


WEIGHTS = (1.0, -0.5, 0.1, 0.3, 2.0, 0.0)
QUERIES = [
    (CountQuery({2}), lambda x: sum(g == 2 for g in x)),
    (CountQuery({0, 1}), lambda x: sum(g < 2 for g in x)),
    (LinearQuery(), sum),
    (LinearQuery(WEIGHTS), lambda x: float(np.dot(WEIGHTS, x))),
    (LinearQuery(2.0, clip=(0.5, 1.5)), lambda x: sum(2 * np.clip(x, 0.5, 1.5))),
]


@pytest.mark.parametrize("known", [{}, {4: 0}, {0: 2, 5: 1}, {2: 1, 3: 2, 4: 1}])
@pytest.mark.parametrize(("query", "value"), QUERIES)
def test_the_law_of_a_query_is_that_of_the_listed_databases(query, value, known):
    pedigree = Pedigree(LOOP, frequency=0.3)
    found = query_law(pedigree, query, known=known)
    assert found.probability.sum() == pytest.approx(1, abs=1e-12)
    law = dict(zip(np.round(found.support, 9), found.probability, strict=True))
    listed = listed_law(pedigree, lambda x: float(np.round(value(x), 9)) + 0.0, known)
    for v, weight in listed.items():
        assert law.pop(v) == pytest.approx(weight, abs=1e-13)
    assert max(law.values(), default=0.0) == 0.0


def test_families_are_convolved():
    pedigree = Pedigree.nuclear(1, frequency=0.5, families=2)
    one = query_law(Pedigree.nuclear(1, frequency=0.5), LinearQuery()).probability
    both = query_law(pedigree, LinearQuery()).probability
    np.testing.assert_allclose(both, np.convolve(one, one), atol=1e-15)


def test_a_large_family_is_no_harder_than_its_width():
    wide = Pedigree.nuclear(60, frequency=0.5)
    law = query_law(wide, LinearQuery(), known={0: 2, 1: 2})
    assert law.probability[-1] == 1.0
    assert law.support[-1] == 2 * 62


def test_impossible_knowledge_has_no_law():
    with pytest.raises(ModelError, match="able to occur together"):
        query_law(Pedigree(LOOP, frequency=0.3), CountQuery({2}), known={0: 2, 2: 0})


def test_a_tangled_pedigree_is_refused_and_the_general_bound_named():
    # Everybody of one generation has children with everybody of the other sex.
    founders = [None] * 32
    children = [(i, j) for i in range(16) for j in range(16, 32)]
    with pytest.raises(NotApplicable, match="the general bound has no such limit"):
        query_law(Pedigree(founders + children, frequency=0.5), CountQuery({2}))


def test_open_people_keep_their_axis():
    pedigree = Pedigree(LOOP, frequency=0.3)
    table = conditional_tables(pedigree, range(6), free=(5, 0))
    assert table.scope == (5, 0)
    weights = table.table[..., 0] / table.table.sum()
    for x, y in itertools.product(range(3), repeat=2):
        listed = listed_law(pedigree, lambda row: (row[5], row[0]), {})
        assert weights[x, y] == pytest.approx(listed.get((x, y), 0.0), abs=1e-14)


@pytest.mark.parametrize("query", [AnyQuery(), LipschitzQuery(clip=(0, 2))])
def test_other_queries_are_refused(query):
    with pytest.raises(NotApplicable, match="count or a linear query"):
        read_lattice(query, 3, range(3))


def test_lattices_refuse_what_they_cannot_hold():
    with pytest.raises(NotApplicable, match="at most 1024 steps"):
        read_lattice(LinearQuery((1.0, 0.123456)), 2, range(2))
    with pytest.raises(NotApplicable, match="no use for a gap"):
        read_lattice(LinearQuery(gap=1.0), 2, range(2))
    with pytest.raises(ValueError, match="states must be genotypes"):
        read_lattice(CountQuery({3}), 2, range(2))
    with pytest.raises(ModelError, match="one for each of the 2"):
        read_lattice(LinearQuery((1.0, 1.0, 1.0)), 2, range(2))


def test_a_query_that_counts_everything_does_not_move():
    lattice = read_lattice(CountQuery({0, 1, 2}), 3, range(3))
    assert (lattice.span, lattice.offset, lattice.step) == (0, 3.0, 1.0)


def random_factor(scope, length):
    return Factor(scope, RNG.random((*(3 for _ in scope), length)))


def test_products_multiply_polynomials():
    first, second = random_factor((0, 1), 2), random_factor((1, 2), 3)
    found = multiply(first, second)
    assert found.scope == (0, 1, 2)
    for a, b, c in itertools.product(range(3), repeat=3):
        expected = np.convolve(first.table[a, b], second.table[b, c])
        np.testing.assert_allclose(found.table[a, b, c], expected)


def test_sums_count_the_value_they_sum_over():
    factor = random_factor((0, 1), 2)
    found = sum_out(factor, 0, (0, 1, 2))
    assert found.scope == (1,)
    shifted = shift_by_degree(factor, 0, (0, 1, 2)).table
    np.testing.assert_allclose(found.table, shifted.sum(axis=0))
    np.testing.assert_allclose(found.table[:, 1:3], sum_direct(factor)[:, 1:3])


def sum_direct(factor):
    total = np.zeros((3, 4))
    for value in range(3):
        total[:, value : value + 2] += factor.table[value]
    return total


def test_the_order_of_elimination_does_not_matter():
    factors = [
        random_factor((0, 1), 2),
        random_factor((1, 2), 1),
        random_factor((2,), 2),
    ]
    results = [
        eliminate(factors, order, degrees={1: (0, 1, 1)}).table
        for order in itertools.permutations(range(3))
    ]
    for result in results[1:]:
        ratio = result / results[0]
        np.testing.assert_allclose(ratio, ratio.flat[0])  # a common power of two


def test_the_order_keeps_tables_small():
    line = [(i, i + 1) for i in range(30)]
    order, largest = elimination_order(line, range(30))
    assert sorted(order) == list(range(30))
    assert largest == 9
    assert elimination_order([(0, -1)], [0], sizes={-1: 7})[1] == 21

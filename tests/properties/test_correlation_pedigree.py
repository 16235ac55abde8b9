"""What holds for every pedigree, frequency, query and DP level."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.laplace import laplace_leakage
from undertow.correlation.pedigree import (
    Pedigree,
    PedigreeTheorem,
    family_conjecture,
    pedigree_leakage,
    query_law,
)
from undertow.correlation.query import CountQuery, LinearQuery

levels = st.floats(1e-3, 8)
frequencies = st.floats(1e-4, 1 - 1e-4)
queries = st.one_of(
    st.sets(st.integers(0, 2), min_size=1, max_size=2).map(CountQuery),
    st.just(LinearQuery()),
    st.just(LinearQuery(clip=(0, 1))),
)


@st.composite
def pedigrees(draw, largest=5):
    size = draw(st.integers(1, largest))
    people = []
    for person in range(size):
        older = [None, *range(person)]
        pair = [draw(st.sampled_from(older)) for _ in range(2)]
        if pair[0] is not None and pair[0] == pair[1]:
            pair[1] = None
        people.append(tuple(pair))
    return Pedigree(people, frequency=draw(frequencies))


def joint_table(pedigree: Pedigree) -> JointTable:
    rows = np.array(list(itertools.product(range(3), repeat=pedigree.size)))
    pmf = np.exp(pedigree.log_prob(rows)).reshape((3,) * pedigree.size)
    return JointTable(pmf / pmf.sum(), values=(0.0, 1.0, 2.0))


@settings(max_examples=40, deadline=None)
@given(pedigrees(largest=4), levels, queries)
def test_elimination_agrees_with_the_joint_table(pedigree, epsilon, query):
    found = pedigree_leakage(pedigree, epsilon, query=query)
    scale = query.sensitivity(pedigree) / epsilon
    table = laplace_leakage(joint_table(pedigree), scale, query=query)
    assert found.scope.is_every_pair
    if query.clip is None:
        assert found.value == pytest.approx(table.value, abs=1e-9)
    else:  # the table covers secrets inside the clip interval only
        assert found.value >= table.value - 1e-9


@settings(max_examples=60, deadline=None)
@given(pedigrees(), levels, queries)
def test_leakage_lies_between_the_dp_level_and_the_general_bound(
    pedigree, epsilon, query
):
    found = pedigree_leakage(pedigree, epsilon, query=query).value
    assert epsilon * (1 - 1e-12) <= found
    assert found <= pedigree.largest_group * epsilon * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(pedigrees(), levels, st.floats(1, 3), queries)
def test_more_noise_never_leaks_more(pedigree, epsilon, factor, query):
    less = pedigree_leakage(pedigree, epsilon, query=query).value
    more = pedigree_leakage(pedigree, epsilon * factor, query=query).value
    assert less <= more * (1 + 1e-11)


@settings(max_examples=60, deadline=None)
@given(levels, st.integers(1, 6), frequencies)
def test_enumeration_is_never_below_the_family_formula(epsilon, children, frequency):
    low = family_conjecture(epsilon, children, frequency=frequency).value
    family = Pedigree.nuclear(children, frequency=frequency)
    assert pedigree_leakage(family, epsilon).value >= low


@settings(max_examples=15, deadline=None)
@given(pedigrees(largest=4), st.floats(-6, 2), queries)
def test_calibration_inverts_the_leakage(pedigree, exponent, query):
    target, method = 10.0**exponent, PedigreeTheorem()
    level = method.invert(pedigree, target, query=query)
    reached = method.bound(pedigree, level, query=query).value
    assert reached <= target
    assert reached == pytest.approx(target, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(pedigrees(), st.randoms(use_true_random=False))
def test_relabelling_people_changes_nothing(pedigree, random):
    order = list(range(pedigree.size))
    random.shuffle(order)
    people = [()] * pedigree.size
    for person, pair in enumerate(pedigree.parents):
        people[order[person]] = tuple(None if p is None else order[p] for p in pair)
    moved = Pedigree(people, frequency=pedigree.frequency)
    value = pedigree_leakage(pedigree, 1.0).value
    assert pedigree_leakage(moved, 1.0).value == pytest.approx(value, rel=1e-11)


@settings(max_examples=40, deadline=None)
@given(pedigrees(), levels)
def test_swapping_the_alleles_swaps_the_homozygotes(pedigree, epsilon):
    swapped = Pedigree(pedigree.parents, founder=pedigree.founder[::-1])
    first = pedigree_leakage(pedigree, epsilon, query=CountQuery({2})).value
    second = pedigree_leakage(swapped, epsilon, query=CountQuery({0})).value
    assert first == pytest.approx(second, rel=1e-10)


@settings(max_examples=40, deadline=None)
@given(pedigrees(), queries)
def test_the_law_of_a_query_is_a_law_with_the_right_mean(pedigree, query):
    law = query_law(pedigree, query)
    assert law.probability.min() >= 0
    assert law.probability.sum() == pytest.approx(1, abs=1e-12)
    if query == LinearQuery():  # alleles are neither made nor lost on average
        mean = float(law.support @ law.probability)
        expected = 2 * pedigree.frequency * pedigree.size
        assert mean == pytest.approx(expected, rel=1e-9)

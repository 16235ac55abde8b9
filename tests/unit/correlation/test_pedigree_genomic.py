"""Bounds when only the family size is known, and the family formula."""

from __future__ import annotations

import math

import pytest

from undertow.correlation.pedigree import (
    Genotype,
    Pedigree,
    family_conjecture,
    genomic_accuracy,
    genomic_bounds,
    genomic_witness,
    pedigree_adversary_leakage,
    pedigree_leakage,
    query_law,
)
from undertow.correlation.query import CountQuery
from undertow.errors import NotApplicable


def test_the_witness_databases_are_the_only_ones_the_attacker_sees():
    first, second, who = genomic_witness(5, 7)
    family = Pedigree.nuclear(3, frequency=0.3, unrelated=2)
    for database in (first, second):
        known = {0: 2, 1: int(database[1]), 5: 0, 6: 0}
        law = query_law(family, CountQuery({2}), known=known)
        count = sum(x == Genotype.BB for x in database)
        assert law.probability[count] == 1.0
    found = pedigree_adversary_leakage(family, 0.7, adversary=who)
    assert found.value == pytest.approx(4 * 0.7, rel=1e-11)


def test_the_lower_bound_is_rounded_down_and_the_upper_one_up():
    low, high = genomic_bounds(0.1, 4)
    assert low.value <= 0.3 <= 3 * 0.1
    assert high.value >= 4 * 0.1
    assert low.quantity == "BDPL lower bound"


@pytest.mark.parametrize("size", [1, 2])
def test_families_below_three_have_no_lower_bound(size):
    with pytest.raises(NotApplicable, match="family must be at least 3"):
        genomic_bounds(1.0, size)


def test_the_witness_needs_room_for_the_family():
    with pytest.raises(ValueError, match="size must be a whole number of at least 5"):
        genomic_witness(5, 4)


@pytest.mark.parametrize("children", [1, 2, 3, 4])
@pytest.mark.parametrize("frequency", [0.02, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_family_formula_equals_enumeration_where_it_was_tried(
    children, frequency, epsilon
):
    low = family_conjecture(epsilon, children, frequency=frequency).value
    family = Pedigree.nuclear(children, frequency=frequency)
    exact = pedigree_leakage(family, epsilon).value
    assert low <= exact == pytest.approx(low, abs=1e-10)


def test_the_family_formula_is_labelled_a_conjecture_and_is_no_method():
    found = family_conjecture(1.0, 2, frequency=0.5)
    assert "equality is a conjecture" in found.unchecked
    assert found.quantity == "BDPL lower bound"
    names = [method.name for method in Pedigree.nuclear(2, frequency=0.5).methods()]
    assert names == ["elimination", "general"]


def test_the_family_formula_does_not_overflow():
    assert family_conjecture(900.0, 5, frequency=0.5).value >= 6 * 900
    assert family_conjecture(0.0, 5, frequency=0.5).value == 0


@pytest.mark.parametrize("frequency", [0.0, 1.0])
def test_the_family_formula_needs_both_alleles(frequency):
    with pytest.raises(ValueError, match=r"frequency must be in \(0, 1\)"):
        family_conjecture(1.0, 2, frequency=frequency)


def test_accuracy_lists_its_numbers():
    found = genomic_accuracy(1.0, 3, beta=0.5)
    assert found.floor is None
    assert found.to_dict() == {"alpha": found.alpha, "beta": 0.5, "floor": None}
    assert found.alpha >= 3 * math.log(2)
    with pytest.raises(ValueError, match="beta must be in"):
        genomic_accuracy(1.0, 3, beta=0.0)

"""The bound that needs nothing but group sizes."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from undertow.correlation.group import (
    Blocks,
    GeneralTheorem,
    Independent,
    general_budget,
    general_leakage,
)
from undertow.correlation.query import AnyQuery, CountQuery
from undertow.errors import NotApplicable


def test_the_bound_is_the_group_times_the_level():
    assert general_leakage(0.5, 3).value == 1.5
    assert general_leakage(0.1, 3).value == 0.3  # exactly three tenths, not above


def test_a_group_of_one_is_plain_dp():
    found = general_leakage(0.7, 1)
    assert found.value == 0.7
    assert found.is_exact


def test_level_zero_leaks_nothing():
    assert general_leakage(0.0, 9).value == 0.0


def test_larger_groups_are_not_claimed_attained_by_every_model():
    assert general_leakage(1.0, 2).tight is None


def test_the_inverse_is_the_target_over_the_group():
    assert general_budget(1.0, 5) == 0.2
    assert general_budget(0.0, 5) == 0.0


@pytest.mark.parametrize("group", [1, 2, 3, 7, 49, 10**6])
@pytest.mark.parametrize("target", [1e-4, 0.1, 1.0, 3.3, 20.0])
def test_the_recomputed_leakage_stays_within_the_target(group, target):
    level = general_budget(target, group)
    assert general_leakage(level, group).value <= target
    assert level == pytest.approx(target / group, rel=1e-15)


def test_rounding_is_upwards():
    epsilon = 0.1 + 0.2  # 0.30000000000000004
    value = general_leakage(epsilon, 3).value
    assert Fraction(value) >= 3 * Fraction("0.30000000000000004")


@pytest.mark.parametrize("group", [0, -1, 1.5, True, math.inf])
def test_a_group_is_a_positive_whole_number(group):
    with pytest.raises(ValueError, match=r"group must be a whole number"):
        general_leakage(1.0, group)
    with pytest.raises(ValueError, match=r"group must be a whole number"):
        general_budget(1.0, group)


@pytest.mark.parametrize("epsilon", [-1, math.nan, math.inf])
def test_a_level_is_finite(epsilon):
    with pytest.raises(ValueError, match=r"epsilon must be"):
        general_leakage(epsilon, 2)
    with pytest.raises(ValueError, match=r"epsilon must be"):
        general_budget(epsilon, 2)


def test_the_method_reads_the_largest_group():
    method, model = GeneralTheorem(), Blocks([2, 5, 1])
    assert method.bound(model, 0.5, query=CountQuery()).value == 2.5
    assert method.invert(model, 1.0, query=CountQuery()) == 0.2
    assert method.bound(Independent(), 0.5, query=AnyQuery()).value == 0.5


def test_a_model_without_limit_needs_a_length():
    class Unlimited(Independent):
        largest_group = None

    with pytest.raises(NotApplicable, match=r"give the model its length"):
        GeneralTheorem().bound(Unlimited(), 1.0, query=AnyQuery())
    with pytest.raises(NotApplicable, match=r"give the model its length"):
        GeneralTheorem().invert(Unlimited(), 1.0, query=AnyQuery())

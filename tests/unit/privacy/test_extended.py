"""Arithmetic with infinite distances."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.numeric.exact import ext_l2, ext_max, ext_scale, ext_sum

extended = st.one_of(st.fractions(min_value=0), st.just(math.inf))


@given(extended)
def test_a_zero_distance_costs_nothing_and_an_infinite_one_everything(factor):
    assert ext_scale(factor, 0) == 0
    assert ext_scale(factor, math.inf) == math.inf


@given(st.fractions(min_value=0), st.fractions(min_value=0))
def test_products_of_fractions_are_exact(factor, distance):
    product = ext_scale(factor, distance)
    assert product == factor * distance
    assert not isinstance(product, float)


def test_an_infinite_factor_is_infinite_unless_nothing_changes():
    assert ext_scale(math.inf, Fraction(1, 10**9)) == math.inf
    assert ext_scale(2.0, 3) == 6.0


@given(st.lists(extended))
def test_sums_are_exact_or_infinite(values):
    total = ext_sum(values)
    if math.inf in values:
        assert total == math.inf
    else:
        assert total == sum(values, Fraction(0))


def test_sums_of_floats_are_correctly_rounded():
    assert ext_sum([0.1] * 10) == 1.0
    assert ext_sum([]) == 0


def test_norms_neither_overflow_nor_lose_infinity():
    assert ext_l2([1e200, 1e200]) == pytest.approx(math.sqrt(2) * 1e200)
    assert ext_l2([1, math.inf]) == math.inf
    assert ext_l2([]) == 0


def test_the_maximum_over_no_release_is_zero():
    assert ext_max([]) == 0
    assert ext_max([1, Fraction(3, 2), math.inf]) == math.inf


@pytest.mark.parametrize("bad", [-1, math.nan, -math.inf, Fraction(-1, 2)])
@pytest.mark.parametrize(
    "call",
    [
        lambda bad: ext_scale(bad, 1),
        lambda bad: ext_scale(1, bad),
        lambda bad: ext_sum([1, bad]),
        lambda bad: ext_l2([1, bad]),
        lambda bad: ext_max([1, bad]),
    ],
)
def test_negative_numbers_and_nan_are_refused(call, bad):
    with pytest.raises(ValueError, match=r"must be in \[0, inf\]"):
        call(bad)

"""Budgets are read exactly and reported on the safe side."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.numeric.exact import (
    exact,
    format_up,
    round_down,
    round_up,
    sqrt_down,
    sqrt_up,
)

fractions = st.fractions(min_value=0, max_value=10**30)
wide = st.builds(
    lambda mantissa, exponent: Fraction(mantissa) * Fraction(10) ** exponent,
    st.integers(0, 10**20),
    st.integers(-330, 290),
)


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        "0.1",
        Decimal("0.1"),
        Fraction(1, 10),
        "1/10",
        np.float64(0.1),
        " 0.1 ",
        "1e-1",
    ],
)
def test_one_tenth_is_one_tenth_however_it_is_written(value):
    assert exact(value) == Fraction(1, 10)


def test_integers_and_infinity_are_read_as_they_are():
    assert exact(3) == exact(np.int64(3)) == exact("3") == 3
    for infinite in (math.inf, "inf", "Infinity", Decimal("inf")):
        assert exact(infinite) == math.inf


@given(st.floats(0, 1e300, allow_subnormal=False))
def test_a_float_is_read_through_its_shortest_decimal(value):
    assert exact(value) == Fraction(repr(value))


@pytest.mark.parametrize("value", [-1, -0.1, "-1/3", -math.inf, "-inf"])
def test_negative_budgets_are_refused(value):
    with pytest.raises(ValueError, match="epsilon must be non-negative"):
        exact(value, "epsilon")


@pytest.mark.parametrize(
    "value", [math.nan, "nan", "", "one", "1/0", "1/2/3", "0x1", "1e999"]
)
def test_text_that_is_no_budget_is_refused(value):
    with pytest.raises(ValueError, match="budget must"):
        exact(value, "budget")


@pytest.mark.parametrize("value", [True, None, [1], 1j, b"1"])
def test_types_that_are_no_number_are_refused(value):
    with pytest.raises(TypeError, match="must be an int"):
        exact(value)


def test_a_text_that_would_fill_the_memory_is_refused_quickly():
    with pytest.raises(ValueError, match="1000 characters"):
        exact("1" * 2000)
    with pytest.raises(ValueError, match="between 1e-400 and 1e400"):
        exact("1e1000000000")


def test_the_upper_limit_is_part_of_the_range():
    assert exact(1, at_most=1) == 1
    with pytest.raises(ValueError, match="delta must be at most 1"):
        exact("1.0000000001", "delta", at_most=1)


@given(wide)
def test_rounding_goes_its_own_way_and_no_further_than_one_float(value):
    up, down = round_up(value), round_down(value)
    assert Fraction(down) <= value
    assert up == math.inf or Fraction(up) >= value
    assert down == up or math.nextafter(down, math.inf) == up


def test_rounding_beyond_the_floats_keeps_its_direction():
    assert round_up(Fraction(10) ** 400) == math.inf
    assert round_down(Fraction(10) ** 400) == math.nextafter(math.inf, 0)
    assert round_up(Fraction(1, 10**400)) == 5e-324
    assert round_down(Fraction(1, 10**400)) == 0.0
    assert round_up(math.inf) == round_down(math.inf) == math.inf


@given(fractions)
def test_roots_are_the_neighbouring_floats_of_the_exact_root(value):
    low, high = sqrt_down(value), sqrt_up(value)
    assert Fraction(low) ** 2 <= value <= Fraction(high) ** 2
    assert high == low or math.nextafter(low, math.inf) == high


def test_roots_of_squares_and_infinity_are_exact():
    assert sqrt_up(Fraction(9, 4)) == sqrt_down(Fraction(9, 4)) == 1.5
    assert sqrt_up(0) == sqrt_down(0) == 0.0
    assert sqrt_up(math.inf) == sqrt_down(math.inf) == math.inf


@given(fractions, st.integers(1, 20))
def test_a_formatted_budget_is_never_below_the_budget(value, digits):
    shown = Fraction(format_up(value, digits))
    assert shown >= value
    assert shown <= value * (1 + Fraction(10) ** (1 - digits))


def test_formats_are_short():
    assert format_up(Fraction(9, 5)) == "1.8"
    assert format_up(0) == "0"
    assert format_up(math.inf) == "inf"

"""Directed rounding and bisection end on the asked-for side."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import SearchError
from undertow.numeric.rounding import (
    exp_up,
    expm1_down,
    expm1_up,
    greatest_float,
    greatest_int,
    inflate,
    keep_exact,
    least_float,
    log_down,
    nudge_down,
    nudge_up,
)

rationals = st.fractions(min_value=0, max_value=600, max_denominator=10**6)


@given(rationals)
def test_directed_exponentials_enclose_the_exact_value(x):
    with mpmath.workdps(400):
        exponent = mpmath.mpf(x.numerator) / x.denominator
        assert exp_up(x) >= mpmath.exp(exponent)
        assert expm1_down(x) <= mpmath.expm1(exponent) <= expm1_up(x)
        assert exp_up(x) <= mpmath.exp(exponent) * (1 + mpmath.mpf("1e-12"))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_the_directed_logarithm_is_below_the_exact_one(x):
    with mpmath.workdps(60):
        truth = mpmath.log(mpmath.mpf(x.numerator) / x.denominator)
        assert log_down(x) <= truth
        assert log_down(x) >= truth - mpmath.mpf("1e-13") * (1 + abs(truth))


def test_logarithms_beyond_the_floats_are_found_and_still_below():
    for x in (Fraction(1, 10**400), Fraction(10**400), Fraction(10**200, 3**1000)):
        with mpmath.workdps(60):
            truth = mpmath.log(mpmath.mpf(x.numerator) / x.denominator)
            assert truth - mpmath.mpf("1e-9") < log_down(x) <= truth
    assert log_down(math.inf) == math.inf
    assert log_down(1) == 0.0


def test_overflow_is_infinite_upwards_and_finite_downwards():
    assert exp_up(10**4) == expm1_up(10**4) == math.inf
    assert expm1_down(10**4) == math.nextafter(math.inf, 0)
    assert expm1_down(math.inf) == math.inf
    assert exp_up(0) == 1.0
    assert expm1_up(0) == expm1_down(0) == 0.0


def test_nudges_are_single_steps():
    assert nudge_up(1.0, 2) == 1.0 + 2 * 2.0**-52
    assert nudge_down(nudge_up(0.3)) == 0.3
    assert inflate(0.0, 1.0) == 0.0
    assert inflate(2.0, 0.0) > 2.0


def test_a_kept_value_is_a_fraction_or_infinite():
    assert keep_exact(0.1) == Fraction(0.1) != Fraction(1, 10)
    assert keep_exact(math.inf) == math.inf


@given(st.floats(1e-300, 1e150))
def test_bisection_returns_the_requested_neighbour_of_the_root(root):
    above = least_float(lambda x: x >= root, low=0.0, high=math.inf)
    below = greatest_float(lambda x: x < root, low=0.0, high=math.inf)
    assert above == root
    assert below == nudge_down(root)


def test_bisection_refuses_a_bracket_that_holds_no_root():
    with pytest.raises(SearchError, match="upper end"):
        least_float(lambda x: False, low=0.0, high=1.0)
    with pytest.raises(SearchError, match="lower end"):
        greatest_float(lambda x: False, low=0.0, high=1.0)


@given(st.integers(0, 10**30))
def test_the_greatest_integer_is_found_by_doubling(limit):
    assert greatest_int(lambda n: n <= limit) == limit

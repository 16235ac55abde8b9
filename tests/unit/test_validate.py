"""One function per kind of argument."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from undertow._validate import (
    check_choice,
    check_count,
    check_finite,
    check_index,
    check_non_negative,
    check_positive,
    check_probability,
)

FLOAT_CHECKS = [check_finite, check_non_negative, check_positive, check_probability]


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_of_any_kind_become_int(value):
    number = check_count(value, "n")
    assert number == 3
    assert type(number) is int


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", True, np.True_, None, 1.5, [1]])
def test_count_refuses_what_is_no_whole_number_of_at_least_one(value):
    with pytest.raises(ValueError, match=r"^n must be a whole number of at least 1"):
        check_count(value, "n")


def test_count_obeys_its_minimum():
    assert check_count(0, "n", minimum=0) == 0
    with pytest.raises(ValueError, match="at least 3, got 2"):
        check_count(2, "n", minimum=3)


def test_index_stays_inside_its_range():
    assert check_index(4, "i", size=5) == 4
    with pytest.raises(ValueError, match=r"i must be in 0\.\.4, got 5"):
        check_index(5, "i", size=5)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        check_index(-1, "i", size=5)


@pytest.mark.parametrize("check", FLOAT_CHECKS)
@pytest.mark.parametrize("value", [True, "0.5", b"0.5", None, [0.5], 1j])
def test_number_checks_refuse_other_types(check, value):
    with pytest.raises(TypeError, match="x must be a number"):
        check(value, "x")


@pytest.mark.parametrize("check", FLOAT_CHECKS)
@pytest.mark.parametrize(
    "value", [0.5, Fraction(1, 2), Decimal("0.5"), np.float32(0.5)]
)
def test_number_checks_read_every_real_type(check, value):
    number = check(value, "x")
    assert number == 0.5
    assert type(number) is float


@pytest.mark.parametrize("check", FLOAT_CHECKS)
def test_number_checks_refuse_nan(check):
    with pytest.raises(ValueError, match="got nan"):
        check(math.nan, "x")


@pytest.mark.parametrize("value", [math.inf, -math.inf, 10**400, -Fraction(10**400)])
def test_finite_refuses_infinity_and_what_overflows_to_it(value):
    with pytest.raises(ValueError, match="x must be finite"):
        check_finite(value, "x")


def test_non_negative_allows_zero_and_infinity():
    assert check_non_negative(0, "x") == 0
    assert check_non_negative(math.inf, "x") == math.inf
    assert check_non_negative(10**400, "x") == math.inf
    with pytest.raises(ValueError, match=r"non-negative, got -0\.1"):
        check_non_negative(-0.1, "x")


@pytest.mark.parametrize("value", [0, -1, math.inf, 10**400])
def test_positive_refuses_zero_negative_and_infinite(value):
    with pytest.raises(ValueError, match="positive and finite"):
        check_positive(value, "x")


def test_probability_is_closed_unless_told_otherwise():
    assert check_probability(0, "p") == 0
    assert check_probability(1, "p") == 1
    for value in (0, 1):
        with pytest.raises(ValueError, match=r"p must be in \(0, 1\)"):
            check_probability(value, "p", open_interval=True)
    with pytest.raises(ValueError, match=r"p must be in \[0, 1\], got 1\.1"):
        check_probability(1.1, "p")


def test_choice_lists_what_is_allowed():
    assert check_choice("b", "letter", choices=("a", "b")) == "b"
    with pytest.raises(ValueError, match="letter must be one of 'a', 'b', got 'c'"):
        check_choice("c", "letter", choices=("a", "b"))
    with pytest.raises(ValueError, match="got \\['a'\\]"):
        check_choice(["a"], "letter", choices=("a", "b"))

"""Cut points and ranges beyond a column's type are clipped or refused, never failed."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from undertow.errors import PlanError
from undertow.release.engine.pipeline import bin_number, code
from undertow.release.plan.encoding import value_lattice
from undertow.release.source.opening import open_source

INFINITE = float("inf")
MOST = 10**38 - 1


def decimals(scale, *units):
    """Return decimals in units of their last place, which no context rounds."""
    digits = [(int(u < 0), tuple(map(int, str(abs(u)))), -scale) for u in units]
    return pa.array([Decimal(d) for d in digits], pa.decimal128(38, scale))


def bins(values, *cuts):
    """Return how many of the cut points each number reaches."""
    ends = (Fraction(cuts[0]) - 1, *map(Fraction, cuts), Fraction(cuts[-1]) + 1)
    with open_source(pa.table({"x": values})) as source:
        number = bin_number(source.table.x, ends)
        return source.execute(source.table.select(c=number))["c"].to_pylist()


@pytest.mark.parametrize(
    ("values", "cuts", "found"),
    [
        (pa.array([0, 1, 2**64 - 1], pa.uint64()), (-5, 0, 1, 2**63), [2, 3, 4]),
        (pa.array([0, 2**64 - 1], pa.uint64()), (2**64 - 1, 2**64, 10**39), [0, 1]),
        (pa.array([0, 255], pa.uint8()), (-1, 10, 10**300), [1, 2]),
        (pa.array([-(2**63), 2**63 - 1]), (-(10**300), 0, 10**300), [1, 2]),
        (pa.array([True, False]), (-(10**300), 1, 10**300), [2, 1]),
        (decimals(37, -MOST, 0, MOST), (-11, -1, 1, 11), [1, 2, 3]),
        (pa.array([-1e308, INFINITE]), (-(10**309), 0, 10**309), [1, 3]),
        (pa.array([-INFINITE, 0.0]), (-(10**309), 0, 10**309), [0, 2]),
    ],
    ids=[
        "uint64",
        "uint64 end",
        "uint8",
        "int64",
        "bool",
        "decimal",
        "float",
        "infinite",
    ],
)
def test_cut_points_beyond_a_type_are_reached_by_all_or_none(values, cuts, found):
    assert bins(values, *cuts) == found


@pytest.mark.parametrize("scale", [0, 1, 18, 37])
def test_cut_points_of_decimals_keep_all_their_digits(scale):
    cut = 12345678901234567890123456789012345678
    values = decimals(scale, cut - 1, cut, cut + 1)
    assert bins(values, Fraction(cut, 10**scale)) == [0, 1, 1]
    # A cut between two values is reached by the upper one.
    assert bins(values, Fraction(2 * cut + 1, 2 * 10**scale)) == [0, 0, 1]


def test_cut_points_of_whole_decimals_beyond_their_digits_are_refused():
    with pytest.raises(PlanError, match=r"bins of 'x' must be below 10\^38 .* cast"):
        bins(decimals(0, 1, 2), 10**38)


@pytest.mark.parametrize("scale", [36, 37, 38])
@pytest.mark.parametrize("high", [1, 9, 10, 100, 10**6])
def test_decimals_of_many_places_have_codes_in_any_range(scale, high):
    value = value_lattice("x", low=Fraction(-high), high=Fraction(high))
    values = decimals(scale, -MOST, 0, MOST)
    with open_source(pa.table({"x": values})) as source:
        found = source.table.select(c=code(source.table.x, value))
        low, middle, top = source.execute(found)["c"].to_pylist()
    reach = min(Fraction(high), Fraction(10) ** (38 - scale))
    assert middle == (value.most + 1) // 2
    assert abs(top - (value.high + reach) / value.step) <= 1
    assert abs(low - (value.high - reach) / value.step) <= 1


def stated(x, value):
    """The code as the formula says it."""
    inside = min(max(Fraction(x), value.low), value.high)
    return floor((inside - value.low) / value.step + Fraction(1, 2))


@given(
    whole=st.sampled_from([0, 1, -1, 7, 2**40, -(2**62), 2**63 - 1]),
    low=st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(-1, 10**12)]),
    width=st.integers(-30, 15),
    digits=st.integers(1, 9),
    added=st.booleans(),
)
@example(whole=0, low=Fraction(0), width=-12, digits=1, added=True)
@example(whole=7, low=Fraction(-1, 10**12), width=-11, digits=9, added=False)
def test_whole_numbers_have_their_codes_in_any_range(whole, low, width, digits, added):
    low += whole
    high = low + digits * Fraction(10) ** width
    value = value_lattice("x", low=low, high=high, added=added)
    near = (0, whole - 1, whole, whole + 1, -(2**63), 2**63 - 1)
    numbers = [n for n in near if -(2**63) <= n < 2**63]
    with open_source(pa.table({"x": pa.array([*numbers, None], pa.int64())})) as source:
        found = source.execute(source.table.select(c=code(source.table.x, value)))
    codes = found["c"].to_pylist()
    assert codes == [*(stated(n, value) for n in numbers), None]

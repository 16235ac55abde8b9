"""Directed rounding and bisection end on the asked-for side."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import SearchError
from undertow.numeric.array import complements, disagreement, read_floats, read_law
from undertow.numeric.quadrature import panel_rule, unit_rule
from undertow.numeric.rounding import (
    CLOSED_FORM,
    DOZENS,
    HANDFUL,
    LIBM_ULPS,
    UNIT,
    exp_up,
    expm1_down,
    expm1_up,
    inflate,
    keep_exact,
    log_down,
    nudge_down,
    nudge_up,
)
from undertow.numeric.search import (
    bisect,
    bisect_each,
    golden_section,
    greatest_float,
    greatest_int,
    greatest_level,
    greatest_levels,
    least_float,
    raise_level,
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


positive = st.floats(1e-3, 1e3)


@given(st.floats(0.01, 0.99), st.floats(-80.0, 10.0), st.floats(0.5, 80.0))
def test_bisection_ends_inside_whichever_end_that_is(share, low, width):
    high = low + width
    turn = low + share * width
    below = bisect(lambda x: x <= turn, inside=low, outside=high)
    above = bisect(lambda x: x > turn, inside=high, outside=low)
    assert below <= turn < above
    assert above == math.nextafter(below, math.inf)
    early = bisect(lambda x: x > turn, inside=high, outside=low, rounds=5)
    assert turn < early <= turn + width / 2**5 * 1.001


def test_bisection_to_a_width_leaves_a_bracket_of_that_width():
    asked = []

    def within(x):
        asked.append(x)
        return x <= 3.0

    end = bisect(within, inside=1.0, outside=9.0, width=1e-6)
    first_out = min(x for x in asked if x > 3.0)
    assert end <= 3.0 < first_out <= end * (1 + 1e-6)


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=9))
def test_many_brackets_are_bisected_like_one(turns):
    places = np.array(turns)
    ends = bisect_each(
        lambda x: x <= places,
        inside=np.zeros(len(turns)),
        outside=np.ones(len(turns)),
        rounds=80,
    )
    alone = [
        bisect(lambda x, turn=turn: x <= turn, inside=0.0, outside=1.0, rounds=80)
        for turn in turns
    ]
    assert ends.tolist() == alone


@given(st.floats(-5, 5), st.floats(0.5, 3))
def test_a_golden_section_keeps_the_minimiser_and_the_least_value_seen(place, power):
    seen = []

    def value(x):
        seen.append(abs(x - place) ** power)
        return seen[-1]

    found = golden_section(value, -6.0, 6.0, width=1e-4)
    assert found.low <= place <= found.high <= found.low + 1e-4
    assert found.least == min(seen)
    assert len(seen) < 30


@given(st.lists(positive, min_size=1, max_size=70), st.floats(0.5, 5.0))
def test_the_greatest_levels_fit_and_nothing_larger_does(targets, power):
    goals = np.array(targets)
    levels = greatest_levels(lambda x: x**power, goals, largest=1e9)
    assert (levels**power <= goals).all()
    assert ((levels * (1 + 1e-10)) ** power > goals * (1 - 1e-9)).all()
    capped = greatest_levels(lambda x: x**power, goals, largest=1e-9)
    assert (capped[goals >= 1e-9**power] == 1e-9).all()


@given(positive, st.floats(0.5, 5.0), positive)
def test_one_greatest_level_was_evaluated_and_fits(target, power, start):
    asked = {}

    def value(x):
        asked[x] = x**power
        return asked[x]

    level = greatest_level(value, target, least=1e-9, largest=1e20, start=start)
    assert asked[level] <= target
    assert asked[level] >= target * (1 - 1.1e-10)
    assert greatest_level(lambda x: 1.0, 0.5, least=1e-9, largest=9.0) == 0.0
    assert greatest_level(lambda x: 0.0, 0.5, least=1e-9, largest=9.0) == 9.0


def test_a_curve_with_a_jump_is_raised_to_the_jump_and_not_past_it():
    def jump(x):
        return 0.1 if x < 2.0 else 0.6

    assert 2.0 * (1 - 1e-11) <= raise_level(jump, 0.2, 1.0, 3.0) < 2.0


def test_each_margin_covers_the_operations_it_is_named_for():
    function = LIBM_ULPS * 2 * UNIT  # a unit in the last place is at most two UNIT
    assert HANDFUL >= 3 * function + 8 * UNIT
    assert DOZENS >= 32 * function + 200 * UNIT
    assert CLOSED_FORM >= 1e-14 + 2 * 4000 * UNIT
    # Relative errors multiply: what is left of their squares fits as well.
    assert Fraction(1 + DOZENS) > Fraction(1 + UNIT) ** 511


class _LawError(ValueError):
    pass


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=20), st.floats(-9e-7, 9e-7))
def test_a_law_is_read_as_it_is_or_scaled_to_sum_to_one(weights, missing):
    given_law = np.array(weights) / math.fsum(weights) * (1 + missing)
    kept = read_law(given_law, "pmf", tolerance=1e-6, normalised=False)
    assert kept.tolist() == given_law.tolist()
    scaled = read_law(given_law, "pmf", tolerance=1e-6)
    assert abs(math.fsum(scaled.tolist()) - 1) <= len(weights) * 2.0**-53
    assert scaled * math.fsum(given_law.tolist()) == pytest.approx(given_law)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], "pmf must be a vector of at least one probability, got shape (0,)"),
        ([[1.0]], "pmf must be a vector of at least one probability, got shape (1, 1)"),
        ([1.5, -0.5], "got entries from -0.5 to 1.5; start anew."),
        ([0.5, 0.4], "sum to 1, got the sum 0.9; start anew."),
        ([math.nan, 1.0], "pmf must be non-negative and sum to 1"),
        ([math.inf, -math.inf], "pmf must be non-negative and sum to 1"),
        ([1e308, 1e308, 1e308], "pmf must be non-negative and sum to 1"),
        (["a"], "pmf must be an array of numbers"),
        ([True, False], "pmf must be an array of numbers"),
    ],
)
def test_what_is_no_law_is_refused_with_the_reason(values, sentence):
    with pytest.raises(_LawError, match=re.escape(sentence)):
        read_law(values, "pmf", tolerance=1e-9, error=_LawError, remedy="start anew")


def test_the_tolerance_of_a_law_is_that_of_its_exact_sum():
    read_law([0.5, 0.5 + 2.0**-30], "pmf", tolerance=2.0**-30)
    with pytest.raises(ValueError, match="divide by the sum"):
        read_law([0.5, 0.5 + 2.0**-30 + 2.0**-52], "pmf", tolerance=2.0**-30)


@pytest.mark.parametrize("size", [1, 5, 32])
def test_a_gauss_rule_integrates_polynomials_up_to_its_degree(size):
    nodes, weights = unit_rule(size)
    assert ((nodes > 0) & (nodes < 1)).all()
    for degree in range(2 * size):
        assert weights @ nodes**degree == pytest.approx(1 / (degree + 1), rel=1e-13)
    missed = weights @ nodes ** (2 * size) - 1 / (2 * size + 1)
    assert size > 5 or missed < -1e-9
    with pytest.raises(ValueError, match="read-only"):
        nodes[0] = 0.0


def test_a_composite_rule_adds_up_its_panels():
    cuts = np.array([0.0, 0.125, 0.5, 3.0])
    nodes, weights = panel_rule(cuts, 12)
    assert len(nodes) == 36
    assert weights @ np.exp(nodes) == pytest.approx(math.exp(3) - 1, rel=1e-14)
    inside = np.searchsorted(cuts, nodes) - 1
    assert np.bincount(inside).tolist() == [12, 12, 12]


def test_read_floats_takes_fractions_and_refuses_mixed_text():
    assert read_floats([Fraction(1, 4), 1], "x").tolist() == [0.25, 1.0]
    with pytest.raises(ValueError, match="x must be an array of numbers"):
        read_floats([Fraction(1, 4), "1"], "x")


def test_complements_keep_the_digits_of_a_near_point_mass():
    assert complements(np.array([1e-20, 1.0])).tolist() == [1.0, 1e-20]
    assert disagreement(np.array([1e-20, 1.0])) == 2e-20

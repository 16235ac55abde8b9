"""The largest level within a target: all searches find the same one."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from undertow.correlation.level import (
    attained_level,
    largest_level,
    last_level,
    level_above,
    level_by_batches,
    scaled_down,
    smooth_level,
)
from undertow.errors import InfeasibleTarget
from undertow.numeric.exact import exact


def curve(epsilon):
    return 4 * math.asinh(5 * math.sinh(epsilon / 4))


# Each with the relative width that it stops at; all are given curve(target / 5) or
# less than the target as a level to start from.
SEARCHES = {
    "bisection": (lambda t: largest_level(curve, t), 1e-12),
    "floats": (lambda t: last_level(lambda e: curve(e) <= t, t), 1e-14),
    "doubling": (lambda t: level_above(lambda e: curve(e) <= t, t / 5), 1e-12),
    "smooth": (lambda t: smooth_level(curve, t, low=t / 5), 1e-8),
    "attained": (lambda t: attained_level(curve, t, t / 5, t), 1e-9),
    "batches": (
        lambda t: level_by_batches(lambda es: [curve(e) for e in es], t, name="it"),
        1e-12,
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("target", [1e-6, 1e-3, 0.1, 1.0, 3.0, 20.0])
def test_every_search_finds_the_largest_level_and_never_passes_the_target(name, target):
    search, width = SEARCHES[name]
    level = search(target)
    assert curve(level) <= target
    assert level == pytest.approx(4 * math.asinh(math.sinh(target / 4) / 5), rel=width)


@pytest.mark.parametrize(
    "name", ["bisection", "floats", "smooth", "attained", "batches"]
)
def test_the_target_itself_is_a_level_where_nothing_is_lost(name):
    same = {
        "bisection": lambda: largest_level(lambda e: e, 2.0),
        "floats": lambda: last_level(lambda e: e <= 2.0, 2.0),
        "smooth": lambda: smooth_level(lambda e: e, 2.0, low=1.0),
        "attained": lambda: attained_level(lambda e: e, 2.0, 1.0, 2.0),
        "batches": lambda: level_by_batches(lambda es: es, 2.0, name="it"),
    }
    assert same[name]() == 2.0


def test_a_target_that_no_positive_level_reaches_is_refused():
    with pytest.raises(InfeasibleTarget, match="positive DP level, got 1"):
        last_level(lambda e: e == 0, 1.0)
    own = InfeasibleTarget("target must be above 3.", least=3.0)
    with pytest.raises(InfeasibleTarget, match="above 3"):
        last_level(lambda e: False, 1.0, refusal=own)
    with pytest.raises(InfeasibleTarget, match="what it can reach"):
        level_by_batches(lambda es: [math.inf for _ in es], 1.0, name="it")


def test_doubling_ends_at_the_most_that_is_tried():
    assert level_above(lambda e: True, 1.0, most=100.0) <= 100.0


@pytest.mark.parametrize("factor", [1, 3, 49, 0.7, 1.1, Fraction(10, 3), 1 + 2.0**-40])
@pytest.mark.parametrize("target", [0.1, 0.3, 1.0, 2.2, 1e-300])
def test_a_quotient_is_rounded_down_and_by_no_more_than_two_floats(target, factor):
    level = scaled_down(target, factor)
    assert exact(level) * Fraction(factor) <= exact(target)
    above = math.nextafter(math.nextafter(level, math.inf), math.inf)
    assert exact(above) * Fraction(factor) > exact(target)

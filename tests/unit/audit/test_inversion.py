"""Mechanism-specific inverses: a parameter from a success rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.audit.inversion import FAMILIES, estimate_level, family_success
from undertow.mechanisms.local import (
    hash_buckets,
    hashing_success,
    subset_breakpoints,
    subset_success,
)

MILLION = 10**6
LEVELS = (0.5, 1.0, 3.0, 5.0, 9.0, 12.0, 16.0)


def expected(family, level, m):
    return round(MILLION * family_success(family, level, categories=m))


@pytest.mark.parametrize("m", [10, 3052])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_inverse_recovers_the_level_where_it_is_not_saturated(family, m):
    for level in LEVELS:
        if family == "olh" and level > 12:
            continue
        hits = expected(family, level, m)
        fit = estimate_level(family, hits, MILLION, categories=m)
        assert fit.low <= level <= fit.high
        if fit.status == "interior" and family != "olh":
            assert abs(fit.value - level) < 0.25 * (fit.high - fit.low) + 1e-9


@pytest.mark.parametrize("family", ["grr", "sue", "she", "ss"])
def test_families_that_reveal_everything_in_the_end_do_not_saturate(family):
    for level in LEVELS[-2:]:
        hits = expected(family, level, 3052)
        fit = estimate_level(family, hits, MILLION, categories=3052)
        assert fit.status in ("interior", "jump")


@pytest.mark.parametrize(
    ("family", "level", "m"),
    [("oue", 12.0, 100), ("oue", 16.0, 3052), ("blh", 5.0, 100), ("olh", 12.0, 100)],
)
def test_saturation_is_reported_with_an_open_interval(family, level, m):
    fit = estimate_level(family, expected(family, level, m), MILLION, categories=m)
    assert fit.status == "saturated"
    assert fit.low <= level < fit.high == math.inf
    assert fit.to_dict()["high"] == "inf"


def test_a_success_beyond_the_limit_of_a_family_has_no_level():
    fit = estimate_level("oue", 900_000, MILLION, categories=100)
    assert (fit.value, fit.high, fit.status) == (math.inf, math.inf, "saturated")


def test_a_success_inside_a_jump_of_subset_selection_gives_its_left_end():
    m = 10
    for point, size in zip(subset_breakpoints(m)[1:], (4, 3, 2), strict=True):
        below = subset_success(m, point, subset=size)
        above = subset_success(m, point, subset=size - 1)
        assert below < above
        hits = round(MILLION * (below + above) / 2)
        fit = estimate_level("ss", hits, MILLION, categories=m)
        assert fit.status == "jump"
        assert fit.value == pytest.approx(point, abs=1e-12)


@pytest.mark.parametrize("m", [2, 5, 20])
def test_optimised_hashing_gives_the_smallest_compatible_level(m):
    # A fine scan of the success, which falls where the buckets grow.
    grid = np.arange(0.005, 3.5, 0.005)
    curve = np.array([hashing_success(m, e, buckets=hash_buckets(e)) for e in grid])
    assert (np.diff(curve) < 0).any()
    for level in (1.0, 1.2, 2.0, 3.0):
        hits = expected("olh", level, m)
        fit = estimate_level("olh", hits, MILLION, categories=m)
        assert not (curve[grid < fit.value] >= hits / MILLION).any()
        beyond = math.nextafter(fit.value, 0)
        buckets = hash_buckets(beyond)
        reached = hashing_success(m, fit.value, buckets=buckets)
        assert reached == pytest.approx(hits / MILLION, abs=1e-9)
        assert fit.value <= level + 1e-3
        assert fit.low <= level <= fit.high


def test_a_non_monotone_success_has_several_levels_and_the_smallest_is_given():
    # Just after ln 3 the buckets grow to four: the same success, twice.
    m = 2
    after = math.log(3) + 0.01
    hits = expected("olh", after, m)
    fit = estimate_level("olh", hits, MILLION, categories=m)
    assert fit.value < math.log(3) - 0.01
    assert fit.high > after


@pytest.mark.parametrize(
    ("family", "shape", "success"),
    [
        ("ss", 2, lambda level: subset_success(20, level, subset=2)),
        ("olh", 7, lambda level: hashing_success(20, level, buckets=7)),
    ],
)
def test_sizes_that_do_not_follow_the_rule_are_inverted_as_they_are(
    family, shape, success
):
    for level in (0.5, 2.0, 5.0):
        hits = round(MILLION * success(level))
        fit = estimate_level(family, hits, MILLION, categories=20, shape=shape)
        assert fit.value == pytest.approx(level, abs=0.01)
        assert fit.low < level < fit.high
        assert fit.status == "interior"


@pytest.mark.parametrize(
    ("family", "shape", "said"),
    [
        ("grr", 2, "shape must be left out for grr"),
        ("ss", 20, "shape must be below the 20 categories"),
        ("olh", 1, "shape must be a whole number of at least 2"),
    ],
)
def test_sizes_are_checked(family, shape, said):
    with pytest.raises(ValueError, match=said):
        estimate_level(family, 10, 100, categories=20, shape=shape)


def test_blind_guessing_is_level_zero():
    fit = estimate_level("grr", 90, 1000, categories=10)
    assert (fit.value, fit.low, fit.status) == (0.0, 0.0, "blind")
    none = estimate_level("grr", 0, MILLION, categories=10)
    assert (none.low, none.value, none.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_success_rises_on_a_grid_except_where_buckets_grow(family):
    grid = np.linspace(0.05, 12, 80)
    curve = [family_success(family, e, categories=3052) for e in grid]
    assert (np.diff(curve) > -1e-15).all()


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="family must be one of"):
        estimate_level("rappor", 1, 10, categories=3)
    with pytest.raises(ValueError, match="subset must be left out"):
        family_success("grr", 1, categories=3, subset=1)
    with pytest.raises(ValueError, match="trials"):
        estimate_level("grr", 0, 0, categories=3)
    with pytest.raises(ValueError, match="confidence must be in"):
        estimate_level("grr", 1, 10, categories=3, confidence=1.0)


def test_optimised_hashing_with_two_buckets_is_still_optimised_hashing():
    from undertow.audit.inversion import estimate_protocol_level
    from undertow.mechanisms.local import BinaryHashing, OptimizedHashing

    few = OptimizedHashing(100, 0.5)
    assert few.buckets == 2
    found = estimate_protocol_level(few, 1500, 100_000)
    assert found is not None
    assert found.family == "olh"
    assert (
        estimate_protocol_level(BinaryHashing(100, 0.5), 1500, 100_000).family == "blh"
    )

"""Closed forms of a noisy number, their worst placements and their inverses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from undertow.errors import ModelError
from undertow.risk.scalar import (
    calibrate_gaussian_scale,
    calibrate_laplace_level,
    gaussian_advantage,
    gaussian_pair_advantage,
    gaussian_placement_advantage,
    laplace_advantage,
    laplace_pair_advantage,
    laplace_placement_advantage,
)


@pytest.mark.parametrize(
    ("formula", "law"), [(laplace_advantage, "laplace"), (gaussian_advantage, "norm")]
)
def test_the_formula_is_the_integral_of_the_largest_density(formula, law):
    line = np.array([0.0, 0.3, 0.3, 1.1, 4.0])
    density = getattr(stats, law)(scale=0.8).pdf
    cells = [-30, *np.unique(np.concatenate([line, (line[1:] + line[:-1]) / 2])), 30]
    total = sum(
        integrate.quad(lambda t: density(t - line).max(), a, b)[0]
        for a, b in itertools.pairwise(cells)
    )
    assert formula(line[::-1], 0.8) == pytest.approx((total - 1) / 5, abs=1e-9)


@pytest.mark.parametrize("formula", [laplace_advantage, gaussian_advantage])
def test_equal_gaps_are_worst_and_reach_the_placement_form(formula):
    rng = np.random.default_rng(2)
    even = formula(np.linspace(0, 1, 7), 0.4)
    for _ in range(200):
        inner = np.sort(rng.random(5))
        assert formula([0, *inner, 1], 0.4) <= even
        assert formula(0.7 * np.array([0, *inner, 1]), 0.4) <= even
    placed = (
        laplace_placement_advantage(7, 2.5)
        if formula is laplace_advantage
        else gaussian_placement_advantage(7, 2.5)
    )
    assert placed == pytest.approx(even, abs=1e-13)


def test_limits_of_the_closed_forms():
    assert laplace_placement_advantage(1, 5) == gaussian_placement_advantage(1, 5) == 0
    assert laplace_placement_advantage(5, 0) == gaussian_placement_advantage(5, 0) == 0
    for form in (laplace_placement_advantage, gaussian_placement_advantage):
        assert form(5, math.inf) == pytest.approx(0.8)
        assert form(5, math.inf) <= 0.8
        assert form(5, 1e4) <= 0.8
        assert 0 < form(5, 1e-9) < 1e-9
    assert laplace_pair_advantage(0, 1) == gaussian_pair_advantage(0, 1) == 0


def test_pairs_are_two_answers():
    assert laplace_pair_advantage(3, 2) == pytest.approx((1 - math.exp(-0.75)) / 2)
    assert gaussian_pair_advantage(3, 2) == pytest.approx(stats.norm.cdf(0.75) - 0.5)


@pytest.mark.parametrize("records", [2, 10, 1000])
@pytest.mark.parametrize("share", [1e-280, 1e-10, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999])
def test_calibrations_invert_their_forms_on_the_private_side(records, share):
    target = share * (records - 1) / records
    level = calibrate_laplace_level(target, records=records)
    assert level.achieves.value <= target
    assert level.achieves.value == pytest.approx(target, rel=1e-9)
    back = laplace_placement_advantage(records, level.value * (1 + 1e-8))
    assert back > target * (1 - 1e-7)
    noise = calibrate_gaussian_scale(target, records=records, sensitivity=3)
    assert noise.achieves.value <= target
    assert noise.achieves.value == pytest.approx(target, rel=1e-9)
    assert gaussian_placement_advantage(records, 3 / noise.value) <= target


def test_targets_that_never_bind_need_no_noise():
    assert calibrate_laplace_level(0.9, records=10).value == math.inf
    assert calibrate_gaussian_scale(0.95, records=10).value == 0
    assert calibrate_gaussian_scale(0.95, records=10).achieves.value <= 0.9 + 1e-12


def test_bad_arguments_get_one_sentence():
    with pytest.raises(ModelError, match="answers must be finite numbers"):
        laplace_advantage([0, math.inf], 1)
    with pytest.raises(ValueError, match="scale must be positive"):
        laplace_advantage([0, 1], 0)
    with pytest.raises(ValueError, match="target must be positive"):
        calibrate_laplace_level(0, records=3)
    with pytest.raises(ValueError, match="at least 1e-290"):
        calibrate_gaussian_scale(5e-324, records=3)
    with pytest.raises(ValueError, match="records must be a whole number"):
        calibrate_gaussian_scale(0.1, records=1)


@pytest.mark.parametrize("form", [laplace_advantage, gaussian_advantage])
@pytest.mark.parametrize("unit", [1e-307, 1.0, 1e308])
def test_a_closed_form_does_not_depend_on_the_unit(form, unit):
    assert form([0.0, unit], unit) == pytest.approx(form([0.0, 1.0], 1.0), rel=1e-11)


@pytest.mark.parametrize("form", [laplace_advantage, gaussian_advantage])
def test_a_gap_too_small_for_a_float_is_still_a_risk(form):
    assert 0 < form([0.0, 1e-300], 1e100) < 1e-299
    assert form([1.0, 1.0], 1e100) == 0
    assert form([-1e308, 1e308], 1.0) == 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda m: laplace_placement_advantage(m, 1.0),
        lambda m: gaussian_placement_advantage(m, 1.0),
        lambda m: calibrate_laplace_level(0.1, records=m),
    ],
    ids=["laplace", "gaussian", "calibrate"],
)
def test_more_records_than_floats_can_count_are_refused_in_a_sentence(call):
    with pytest.raises(ValueError, match=r"records must be at most 1e\+15\."):
        call(10**400)

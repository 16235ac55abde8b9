"""Clipped releases: the coupling bound, its scope, and what is really attained."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from undertow.correlation.gaussian import (
    ClippedRelease,
    Gaussian,
    clip_records,
    clipped_log_density,
    clipped_output_leakage,
    clipped_tail_leakage,
    gaussian_laplace_log_density,
    pair_leakage,
    partial_shift,
    scope_leakage,
)
from undertow.correlation.leak import leakage
from undertow.correlation.query import LinearQuery, Scope
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable, ScopeWarning

PAIR = [[225.0, 101.25], [101.25, 225.0]]
UNIT = ClippedRelease(1.0, (0, 10))


def pairs(rho=0.45, mean=100.0):
    return Gaussian([[225.0, 225 * rho], [225 * rho, 225.0]], mean=[mean, mean])


# The output law, by quadrature


@pytest.mark.parametrize("rho", [0.45, -0.8])
@pytest.mark.parametrize("output", [-50.0, 120.0, 199.0, 260.0, 500.0])
def test_the_output_density_is_the_integral_it_says(rho, output):
    model, clip, secret, scale = pairs(rho), (40.0, 160.0), 130.0, 120.0
    law = model.given({0: secret})
    normal = stats.norm(law.mean[0], math.sqrt(law.covariance[0, 0]))

    def integrand(z):
        noise = output - secret - min(max(z, 40.0), 160.0)
        return normal.pdf(z) * math.exp(-abs(noise) / scale) / (2 * scale)

    breaks = sorted({40.0, 160.0, min(max(output - secret, -49.0), 249.0)})
    ends = [normal.mean() - 150, *breaks, normal.mean() + 150]
    total = sum(
        integrate.quad(integrand, low, high, epsabs=1e-14)[0]
        for low, high in itertools.pairwise(ends)
        if high > low
    )
    found = clipped_log_density(model, 1.0, clip=clip, secret=secret, output=[output])
    assert math.exp(found[0]) == pytest.approx(total, rel=1e-8)


def test_the_output_density_integrates_to_one():
    grid = np.linspace(-4000, 4000, 400_001)
    density = np.exp(
        clipped_log_density(pairs(), 1.0, clip=(40, 160), secret=70, output=grid)
    )
    assert integrate.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-7)


def test_the_tail_formula_survives_records_far_outside():
    model = Gaussian([[1.0, 0.9], [0.9, 1.0]], mean=[0.0, 1e4])
    leak = clipped_tail_leakage(model, 1.0, clip=(0, 10), pair=(0, 10))
    assert leak == pytest.approx(1.0, abs=1e-9)
    away = clipped_tail_leakage(model, 1.0, clip=(0, 10), pair=(-3e4, 3e4))
    assert away == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.3, 0.9])
@pytest.mark.parametrize("pair", [(160, 40), (100, 90), (300, 20), (-200, 500)])
def test_what_is_attained_stays_below_the_coupling_bound(rho, pair):
    model, release = pairs(rho), ClippedRelease(1.3, (40, 160))
    attained = clipped_output_leakage(model, 1.3, clip=(40, 160), pair=pair)
    tail = clipped_tail_leakage(model, 1.3, clip=(40, 160), pair=pair)
    bound = pair_leakage(model, release, pair=pair)
    assert tail <= attained + 1e-9
    assert attained <= bound.value + 1e-12
    assert bound.value <= 2.6 + 1e-12


def test_closed_forms_refuse_more_than_two_records_and_empty_intervals():
    three = Gaussian(np.eye(3))
    with pytest.raises(ModelError, match="two records"):
        clipped_tail_leakage(three, 1.0, clip=(0, 1), pair=(0, 1))
    with pytest.raises(ValueError, match="low < high"):
        clipped_tail_leakage(pairs(), 1.0, clip=(1, 0), pair=(0, 1))


# Gaussian plus Laplace


@pytest.mark.parametrize("variance", [1e-6, 0.5, 4.0, 400.0])
def test_gaussian_plus_laplace_has_the_density_of_the_convolution(variance):
    scale, sd = 1.5, math.sqrt(variance)
    for output in (-30.0, -1.0, 0.3, 12.0):
        expected = integrate.quad(
            lambda t, s=output: (
                stats.norm.pdf(t) * math.exp(-abs(s - 0.2 - sd * t) / scale)
            ),
            -12,
            12,
            points=[min(max((output - 0.2) / sd, -11.9), 11.9)],
            epsabs=1e-15,
        )[0] / (2 * scale)
        found = gaussian_laplace_log_density(
            output, mean=0.2, variance=variance, scale=scale
        )
        assert float(np.exp(found)) == pytest.approx(expected, rel=1e-7)


def test_without_a_gaussian_part_the_law_is_laplace():
    found = gaussian_laplace_log_density([-2.0, 3.0], variance=0.0, scale=2.0)
    assert found == pytest.approx(stats.laplace(scale=2.0).logpdf([-2.0, 3.0]))


def test_the_slope_of_the_log_density_stays_below_one_over_the_scale():
    grid = np.linspace(-1e4, 1e4, 100_001)
    values = gaussian_laplace_log_density(grid, variance=9.0, scale=2.0)
    slopes = np.abs(np.diff(values) / np.diff(grid))
    assert slopes.max() <= 0.5 + 1e-9
    assert slopes[0] == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(ModelError, match="non-negative"):
        gaussian_laplace_log_density(0.0, variance=-1.0, scale=1.0)


# Scopes and several releases


def test_a_smaller_scope_leaks_less_and_a_larger_one_warns():
    model = pairs()
    release = ClippedRelease(1.0, (40, 160))
    values = [
        scope_leakage(model, [release], scope=scope).value
        for scope in (Scope.inside(90, 110), Scope.within(60), Scope.inside(40, 160))
    ]
    assert values == pytest.approx([1.45 / 6, 1.45 / 2, 1.45], abs=1e-9)
    with pytest.warns(ScopeWarning):
        shifted = scope_leakage(model, [release], scope=Scope.inside(200, 300))
    assert shifted.value == pytest.approx(0.45 * 100 / 120, abs=1e-9)


def test_several_clip_widths_are_summed_record_by_record():
    model = Gaussian([[1.0, 0.5], [0.5, 1.0]])
    wide, narrow = ClippedRelease(1.0, (0, 10)), ClippedRelease(0.6, (0, 3))
    inside = scope_leakage(model, [wide, narrow], scope=Scope.within(3))
    assert inside.value == pytest.approx(1.5 * (0.3 + 0.6), abs=1e-9)
    with pytest.warns(ScopeWarning):
        more = scope_leakage(model, [wide, narrow], scope=Scope.within(10))
    assert more.value == pytest.approx(1.5 + 0.6 + 0.6, abs=1e-9)  # not 1.5 * 1.6
    with pytest.raises(ValueError, match="at least one release"):
        scope_leakage(model, [], scope=Scope.within(1))


def test_the_whole_line_costs_the_general_bound():
    with pytest.warns(ScopeWarning):
        found = scope_leakage(pairs(), [UNIT, UNIT], scope=Scope.every_pair())
    assert found.value == 4.0
    assert found.method == "general"


def test_limited_correlations_share_the_shifts_out():
    model = Gaussian.limited(0.275, 3)
    inside = pair_leakage(model, UNIT, pair=(0, 10))
    assert inside.value == pytest.approx(1.55, abs=1e-9)
    assert inside.witness is None
    half = pair_leakage(model, UNIT, pair=(2, 7))
    assert half.value == pytest.approx(1.55 / 2, abs=1e-9)
    far = pair_leakage(model, UNIT, pair=(-1e4, 1e4))
    assert far.value == pytest.approx(3.0, abs=1e-9)
    alone = pair_leakage(Gaussian.limited(0.5, 1), UNIT, pair=(0, 10))
    assert alone.value == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(NotApplicable, match="below 1"):
        pair_leakage(Gaussian.limited(0.9, 5), UNIT, pair=(0, 10))


def test_long_series_share_the_shifts_out():
    series = Gaussian.autoregressive(0.5, 1000)
    found = pair_leakage(series, UNIT, pair=(0, 10))
    assert found.value == pytest.approx(3.0, abs=1e-9)
    assert found.witness.details["known"] == []


def test_exchangeable_groups_saturate_class_by_class():
    family = Gaussian.exchangeable([1, 30], correlation=[[1, 0.3], [0.3, 0.2]])
    found = pair_leakage(family, UNIT, pair=(0, 10))
    assert found.value == pytest.approx(1 + 30 * 0.3, abs=1e-8)
    with pytest.warns(ScopeWarning):
        far = scope_leakage(family, [UNIT], scope=Scope.within(100))
    assert far.value == pytest.approx(31.0, abs=1e-8)


def test_the_pair_bound_names_the_attacker_and_covers_pairs_in_between():
    model = pairs()
    found = pair_leakage(model, ClippedRelease(1.0, (40, 160)), pair=(150, 60))
    assert found.witness.details["pair"] == (150.0, 60.0)
    assert found.scope == Scope.inside(60, 150)
    assert found.tight is None
    with pytest.raises(ValueError, match="two different values"):
        pair_leakage(model, UNIT, pair=(1, 1))


def test_a_simulated_trio_leaks_less_than_the_bound_and_more_than_a_signed_factor():
    """T40 by Monte Carlo: log-mean-exp of the clipped sum in the tail."""
    correlation = np.array([[1, 0.81, -0.9], [0.81, 1, -0.9], [-0.9, -0.9, 1]])
    model = Gaussian(1e-4 * correlation, mean=[5.0, 5.0, 100.0])
    rng = np.random.default_rng(4)
    moments = []
    for x in (0.0, 10.0):
        draws = model.sample_given({0: x}, 20_000, rng=rng)
        sums = clip_records(draws, (0, 10)).sum(axis=1)
        moments.append(math.log(np.mean(np.exp(sums / 10))))
    assert abs(moments[1] - moments[0]) == pytest.approx(1.81, abs=1e-3)


def test_clipping_moves_values_and_refuses_what_is_no_number():
    assert clip_records([[-1, 11], [3, 4]], (0, 10)).tolist() == [[0, 10], [3, 4]]
    with pytest.raises(ValueError, match="nan"):
        clip_records([1.0, math.nan], (0, 10))
    with pytest.raises(ValueError, match="low < high"):
        clip_records([1.0], (10, 0))
    with pytest.raises(ValueError, match="low < high"):
        ClippedRelease(1.0, (2, 2))


def test_clipping_keeps_metric_privacy():
    """Lemma 6.13: clipped records move no further than the records do."""
    rng = np.random.default_rng(0)
    one, other = rng.normal(scale=8, size=(2, 1000, 4))
    moved = np.abs(clip_records(one, (-5, 5)) - clip_records(other, (-5, 5)))
    assert np.all(moved <= np.abs(one - other) + 1e-12)
    assert np.all(moved <= 10)


def test_the_coupling_bound_of_one_attacker_by_hand():
    matrix = np.array([[1.0, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 1.0]])
    _, shifts = partial_shift(matrix, Adversary(1))
    by_hand = 0.1 * (10 + np.minimum(10, np.abs(shifts) * 15).sum())
    with pytest.warns(ScopeWarning):
        found = scope_leakage(Gaussian(matrix), [UNIT], scope=Scope.within(15))
    assert found.value == pytest.approx(by_hand, abs=1e-9)


def equal(correlation, size=2):
    return np.full((size, size), correlation) + (1 - correlation) * np.eye(size)


@pytest.mark.parametrize(
    "model",
    [
        Gaussian.from_blocks([equal(0.5)], [3]),
        Gaussian.exchangeable([2], correlation=[[0.5]], groups=3),
    ],
)
def test_a_weighted_query_names_the_copy_that_leaks(model):
    query = LinearQuery([1, 0, 0, 1, 1, 1], clip=(0, 1))
    found = leakage(model, 1.0, query=query, method="saturated")
    assert found.value == pytest.approx(1.5)
    assert found.witness.details["target"] in (4, 5)

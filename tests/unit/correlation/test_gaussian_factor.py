"""Closed forms: edges, refusals and inverses."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from undertow.correlation.gaussian import gaussian_laplace_log_density
from undertow.correlation.gaussian.method import (
    gaussian_correlation_limit,
    gaussian_crossover,
    gaussian_factor,
)
from undertow.correlation.gaussian.structure import (
    autoregressive_factor,
    dominant_factor,
)
from undertow.errors import NotApplicable

VARIANTS = ("sharp", "intermediate", "thesis")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_lone_record_or_no_correlation_costs_nothing(variant):
    assert gaussian_factor(1, 0.9, variant=variant) == 1.0
    assert gaussian_factor(50, 0.0, variant=variant) == 1.0


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_records_cost_one_plus_the_correlation(variant):
    found = gaussian_factor(2, 0.45, variant=variant)
    assert found == pytest.approx(1.45, abs=1e-12)
    assert found >= 1.45


@pytest.mark.parametrize("variant", VARIANTS)
def test_too_much_correlation_is_refused_with_the_number_and_the_way_out(variant):
    with pytest.raises(NotApplicable, match=r"got 1\.2 .*covariance.*general"):
        gaussian_factor(5, 0.4, variant=variant)


@pytest.mark.parametrize("variant", ["intermediate", "thesis"])
def test_unequal_deviations_are_refused_by_the_printed_forms(variant):
    with pytest.raises(NotApplicable, match=r"ratio of 2.*sharp"):
        gaussian_factor(3, 0.1, variant=variant, sd_ratio=2.0)


def test_wrong_ranges_are_refused():
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        gaussian_factor(3, 1.0)
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        gaussian_factor(3, -0.1)
    with pytest.raises(ValueError, match="at least 1"):
        gaussian_factor(3, 0.1, sd_ratio=0.5)
    with pytest.raises(ValueError, match="one of"):
        gaussian_factor(3, 0.1, variant="best")
    with pytest.raises(ValueError, match="at least 2"):
        gaussian_crossover(1)
    with pytest.raises(ValueError, match="above 1"):
        gaussian_correlation_limit(1.0, 3)


def test_the_thesis_form_meets_the_general_bound_at_the_crossover():
    for m in (3, 4, 7, 30):
        rho = gaussian_crossover(m)
        at = gaussian_factor(m, rho, variant="thesis")
        assert at == pytest.approx(m, rel=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("factor", [1 + 1e-6, 1.1, 1.5, 2.0, 3.0, 40.0])
@pytest.mark.parametrize("group", [2, 3, 10, 57])
def test_the_correlation_limit_inverts_the_factor(variant, factor, group):
    rho = gaussian_correlation_limit(factor, group, variant=variant)
    assert gaussian_factor(group, rho, variant=variant) <= factor
    above = rho * (1 + 1e-9)
    if above < 1 and above * (group - 2) < 1:
        assert gaussian_factor(group, above, variant=variant) > factor * (1 - 1e-12)


def test_any_correlation_of_two_records_costs_at_most_two():
    assert gaussian_correlation_limit(2.5, 2) == math.nextafter(1.0, 0.0)


def test_a_large_group_is_cheap_to_bound():
    found = gaussian_factor(10**6, 1e-7, variant="intermediate")
    assert gaussian_factor(10**6, 1e-7) < found
    assert found < gaussian_factor(10**6, 1e-7, variant="thesis")


@pytest.mark.parametrize(
    ("group", "correlation"),
    [(5, 0.3333333333333333), (7, 0.19999999999999998), (4, 0.49999999), (9, 0.05)],
)
def test_the_intermediate_form_is_the_rounded_up_maximum(group, correlation):
    rho = Fraction(repr(correlation))
    most = max(
        (group - k - 1) * (k + 1) * rho / (1 - k * rho) for k in range(group - 1)
    )
    found = gaussian_factor(group, correlation, variant="intermediate")
    assert Fraction(found) >= 1 + most > Fraction(math.nextafter(found, 0))


def test_the_intermediate_form_takes_no_memory_for_huge_groups():
    found = gaussian_factor(10**12, 1e-14, variant="intermediate")
    assert found == pytest.approx(1 + 1e10 / 4, rel=0.02)


def test_correlations_below_rounding_still_round_up():
    tiny = 1e-18
    assert dominant_factor([[1.0, tiny], [tiny, 1.0]]).value > 1
    assert autoregressive_factor(tiny, 3).value > 1
    assert dominant_factor(np.eye(3)).value == 1
    assert autoregressive_factor(0.0, 3).value == 1


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("output", [0.0, 0.7, -4.0, 300.0])
def test_the_gaussian_laplace_density_keeps_its_digits(scale, output):
    with mpmath.workdps(60):
        b, z = mpmath.mpf(scale), mpmath.mpf(output)
        phi = [mpmath.ncdf(x - 1 / b) for x in (z, -z)]
        parts = mpmath.exp(-z / b) * phi[0] + mpmath.exp(z / b) * phi[1]
        truth = 1 / (2 * b * b) - mpmath.log(2 * b) + mpmath.log(parts)
    found = gaussian_laplace_log_density(output, variance=1.0, scale=scale)
    assert float(found) == pytest.approx(float(truth), rel=1e-12, abs=1e-12)

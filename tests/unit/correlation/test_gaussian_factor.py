"""Closed forms: edges, refusals and inverses."""

from __future__ import annotations

import math

import pytest

from undertow.correlation.gaussian.method import (
    gaussian_correlation_limit,
    gaussian_crossover,
    gaussian_factor,
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

"""Closed formulas of other methods, and all methods side by side."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.correlation.gaussian import Gaussian
from undertow.correlation.group import Independent, general_budget
from undertow.correlation.query import AnyQuery, LinearQuery
from undertow.errors import InfeasibleTarget, NotApplicable
from undertow_studies.comparators import ConversionCurve
from undertow_studies.comparators.comparison import (
    CASES,
    compare_scales,
    reference_case,
    side_by_side,
)
from undertow_studies.comparators.scale import (
    ComparatorScale,
    group_scale,
    printed_gaussian_scale,
    yang_scale,
    zhao_leakage,
    zhao_scale,
)

ACTIVITY = [[0.882, 0.118], [0.305, 0.695]]


def test_group_scale_is_the_general_bound():
    for target in (0.1, 1.0, 7.0):
        for m in (1, 3, 100):
            found = group_scale(target, m, sensitivity=2.5)
            assert found.noise_scale == pytest.approx(2.5 / general_budget(target, m))
            assert found.is_guarantee


def test_yang_scale_grows_with_every_record():
    assert yang_scale(2.0, 7, width=20).noise_scale == pytest.approx(70)


def test_theorem_6_14_as_printed_is_a_guarantee_for_equal_variances_only():
    equal = printed_gaussian_scale([[1, 0.45], [0.45, 1]], 2.0, width=120)
    assert equal.is_guarantee
    assert equal.noise_scale == pytest.approx(60 * 1.45)
    measured = printed_gaussian_scale([[4, 0.9], [0.9, 1]], 2.0, width=120)
    assert not measured.is_guarantee
    assert measured.noise_scale == equal.noise_scale
    assert "differ by 2" in measured.note


def test_zhao_scale_inverts_its_bound():
    for target in (11.0, 15.0, 40.0):
        scale = zhao_scale(target, ACTIVITY, sensitivity=1.0).noise_scale
        assert zhao_leakage(1 / scale, ACTIVITY) == pytest.approx(target, abs=1e-9)


def test_zhao_scale_says_which_targets_it_cannot_reach():
    with pytest.raises(InfeasibleTarget, match="6 ln omega") as refused:
        zhao_scale(10.0, ACTIVITY)
    assert refused.value.least == pytest.approx(10.639363)
    with pytest.raises(NotApplicable, match="no zero entry"):
        zhao_scale(10.0, [[1.0, 0.0], [0.5, 0.5]])


def test_a_scale_knows_whether_it_exists():
    row = ComparatorScale("m", "s", 1.0, math.inf, "a", False, note="why")
    assert not row.is_feasible
    assert row.to_dict()["noise_scale"] is None
    with pytest.raises(ValueError, match="noise_scale must be positive"):
        ComparatorScale("m", "s", 1.0, 0.0, "a", False)


@pytest.fixture(scope="module")
def rows():
    return side_by_side(1.0)


def by_method(rows, case):
    return {row.method: row for row in rows if row.model == case}


@pytest.mark.slow
def test_every_case_is_compared_and_sorted_by_noise(rows):
    assert {row.model for row in rows} == set(CASES)
    for case in CASES:
        scales = [row.noise_scale for row in rows if row.model == case]
        assert scales == sorted(scales)


def test_every_row_names_its_attackers_and_infeasible_rows_their_reason(rows):
    for row in rows:
        assert row.attackers
        assert row.source
        assert row.is_feasible or row.note


def test_methods_that_were_not_tried_have_no_row(rows):
    assert not any("by name" in row.note for row in rows)


def test_no_guarantee_needs_less_noise_than_independent_records(rows):
    for case in CASES:
        free = by_method(rows, case)["independent"].noise_scale
        assert all(
            row.noise_scale >= free * (1 - 1e-12)
            for row in rows
            if row.model == case and row.is_guarantee
        )


def test_chains_show_the_numbers_of_their_methods(rows):
    found = by_method(rows, "activity")
    assert found["two-state"].noise_scale == pytest.approx(4.0036, abs=1e-3)
    assert found["quilt"].noise_scale == pytest.approx(14.854, abs=1e-3)
    assert found["general"].noise_scale == pytest.approx(17568)
    assert not found["gamma"].is_feasible
    assert "8.05982" in found["gamma"].note
    assert not found["zhao"].is_feasible
    assert not found["wasserstein"].is_feasible
    assert not found["quilt"].is_guarantee


def test_heights_show_the_numbers_of_their_methods(rows):
    found = by_method(rows, "galton")
    guarantees = [row for row in found.values() if row.is_guarantee]
    assert min(row.noise_scale for row in guarantees) == pytest.approx(
        146.818, abs=0.01
    )
    assert found["general"].noise_scale == pytest.approx(300)
    assert found["yang"].noise_scale == pytest.approx(300)
    assert not found["wasserstein"].is_guarantee


def test_the_printed_calibration_under_protects_the_scores(rows):
    found = by_method(rows, "iq")
    assert found["thesis-as-printed"].noise_scale == pytest.approx(
        120 * 1.448276, rel=1e-5
    )
    assert not found["thesis-as-printed"].is_guarantee
    assert found["thesis-as-printed"].noise_scale < found["covariance"].noise_scale
    assert not found["thesis"].is_feasible


def test_scores_show_the_factor_of_unequal_variances(rows):
    guarantees = [
        row.noise_scale for row in by_method(rows, "iq").values() if row.is_guarantee
    ]
    assert min(guarantees) == pytest.approx(120 * 1.609975, rel=1e-5)


def test_at_large_targets_the_published_bounds_appear():
    found = by_method(side_by_side(12.0, cases=["activity"]), "activity")
    assert found["gamma"].is_feasible
    assert found["zhao"].is_feasible
    assert found["two-state"].noise_scale < found["gamma"].noise_scale
    assert found["gamma"].noise_scale < found["zhao"].noise_scale


def test_models_without_comparators_show_their_own_methods():
    found = compare_scales(Independent(4), 0.5, query=AnyQuery())
    assert found[0].noise_scale == pytest.approx(2.0)
    assert all("record" in row.model for row in found)


def test_an_unknown_case_is_refused():
    with pytest.raises(ValueError, match="activity"):
        reference_case("weather")


def test_reference_covariances_have_the_published_correlations():
    cov = np.asarray(reference_case("galton").model.covariance)
    sd = np.sqrt(np.diag(cov))
    corr = cov / np.outer(sd, sd)
    assert corr[0, 2] == pytest.approx(0.27535483)
    iq = np.asarray(reference_case("iq").model.covariance)
    assert iq[0, 1] / math.sqrt(iq[0, 0] * iq[1, 1]) == pytest.approx(0.448276, 1e-5)


CLIPPED = LinearQuery(clip=(0, 1))


UNCLIPPED = LinearQuery(gap=1.0)


def equal(correlation, size=2):
    return np.full((size, size), correlation) + (1 - correlation) * np.eye(size)


def test_a_conversion_curve_reads_levels_as_decimals():
    identity = ConversionCurve([(1, 0.0)], "identity", "everyone", True)
    assert [identity.leakage(k / 10) for k in range(1, 30)] == [
        k / 10 for k in range(1, 30)
    ]


@pytest.mark.parametrize(
    "covariance",
    [np.eye(20), equal(0.6, 4), np.kron(np.eye(2), equal(0.5)), equal(1 - 1e-14, 3)],
)
def test_a_comparison_gives_a_row_where_a_method_gives_no_scale(covariance):
    rows = compare_scales(Gaussian(covariance), 1.0, query=CLIPPED)
    methods = {row.method for row in rows}
    assert {"wasserstein", "thesis-as-printed", "yang"} <= methods
    assert all(row.note for row in rows if not row.is_feasible)


def test_a_comparison_reads_groups_not_the_whole_covariance():
    rows = compare_scales(Gaussian(np.kron(np.eye(9), equal(0.5))), 1.0, query=CLIPPED)
    scales = {row.method: row.noise_scale for row in rows}
    assert scales["thesis-as-printed"] == pytest.approx(1.5)
    assert scales["wasserstein"] == pytest.approx(1.5)


def test_no_guarantee_of_an_unclipped_comparison_is_below_the_exact_scale():
    spread = [[1.0, 9.0], [9.0, 100.0]]
    rows = compare_scales(Gaussian(spread), 1.0, query=UNCLIPPED)
    kept = [row.noise_scale for row in rows if row.is_guarantee]
    assert min(kept) >= 10.0
    assert not next(row for row in rows if row.method == "yang").is_guarantee


def test_the_printed_bound_is_a_guarantee_for_equal_variances_only():
    assert printed_gaussian_scale(equal(0.5), 1.0).is_guarantee
    assert not printed_gaussian_scale([[1, 0.5], [0.5, 1 + 1e-9]], 1.0).is_guarantee

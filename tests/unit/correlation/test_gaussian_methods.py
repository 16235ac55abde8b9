"""Methods: which applies to which release, what it says, and that it rounds safely."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.gaussian import (
    ClippedRelease,
    Gaussian,
    pair_leakage,
    scope_leakage,
    worst_factor,
)
from undertow.correlation.gaussian.method import (
    CovarianceTheorem,
    IntermediateTheorem,
    SaturatedTheorem,
    SharpTheorem,
    ThesisTheorem,
)
from undertow.correlation.leak import leakage
from undertow.correlation.query import (
    AnyQuery,
    CountQuery,
    LinearQuery,
    LipschitzQuery,
    Scope,
)
from undertow.errors import NotApplicable, ScopeWarning
from undertow.numeric.exact import exact

MIXED = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]])
SUM = LinearQuery(clip=(0, 10))
FREE = LinearQuery(gap=10.0)
CLIPPED = ("saturated", "structured", "covariance", "sharp", "intermediate", "thesis")


@pytest.mark.parametrize("method", CLIPPED)
def test_every_method_speaks_of_clipped_laplace_releases_in_scope(method):
    found = leakage(Gaussian(MIXED), 1.0, query=SUM, method=method)
    assert found.method == method
    assert found.scope == Scope.inside(0, 10)
    assert "clipped to [0, 10]" in found.mechanisms
    assert found.tight is None
    assert 1.8 - 1e-9 <= found.value <= 3
    assert any("Gaussian" in text for text in found.unchecked)


@pytest.mark.parametrize("method", CLIPPED)
@pytest.mark.parametrize("target", [1e-5, 0.1, 1.0, 3.7, 1e5])
def test_levels_and_leakages_are_inverse_to_each_other(method, target):
    model = Gaussian(MIXED)
    found = calibrate(model, target, query=SUM, method=method)
    assert found.achieves.value <= target
    assert found.achieves.value == pytest.approx(target, rel=1e-9)


@pytest.mark.parametrize("method", CLIPPED)
def test_no_level_leaks_nothing_and_leakage_is_monotone(method):
    model = Gaussian(MIXED)
    values = [
        leakage(model, eps, query=SUM, method=method).value for eps in (0, 0.5, 1, 2)
    ]
    assert values[0] == 0.0
    assert values == sorted(values)


def test_the_leakage_is_rounded_up():
    model = Gaussian(MIXED)
    factor = Fraction(leakage(model, 1, query=SUM, method="covariance").value)
    found = leakage(model, 0.1, query=SUM, method="covariance").value
    assert Fraction(found) >= factor * exact(0.1) * (1 - Fraction(1, 10**15))
    assert Fraction(found) >= Fraction(18, 100)


def test_an_unclipped_linear_query_is_exact_and_signed():
    found = leakage(Gaussian(MIXED), 1.0, query=FREE)
    assert found.method == "linear-exact"
    assert found.tight is True
    assert found.scope == Scope.within(10)
    assert "not DP" in found.mechanisms
    assert found.value == pytest.approx(worst_factor(MIXED, signed=True).value)
    assert found.value < leakage(Gaussian(MIXED), 1.0, query=SUM).value
    reasons = {other.name: other.reason for other in found.alternatives}
    assert "needs a DP release" in reasons["general"]
    assert "clipped query" in reasons["saturated"]


def test_an_unclipped_factor_is_not_capped_by_the_group():
    matrix = [[1, 0.9, 0.43], [0.9, 1, 0], [0.43, 0, 1]]
    free = leakage(Gaussian(matrix), 1.0, query=FREE, method="covariance")
    assert free.value > 3.2
    capped = leakage(Gaussian(matrix), 1.0, query=SUM, method="covariance")
    assert capped.value == 3.0


def test_weights_of_an_unclipped_query_enter_with_their_signs():
    matrix = np.array([[1.0, 0.8], [0.8, 1.0]])
    difference = LinearQuery([1.0, -1.0], gap=1.0)
    found = leakage(Gaussian(matrix), 1.0, query=difference)
    assert found.value == pytest.approx(1.0, abs=1e-9)  # the informed attacker
    total = leakage(Gaussian(matrix), 1.0, query=LinearQuery(gap=1.0))
    assert total.value == pytest.approx(1.8, abs=1e-9)


def test_weights_of_a_clipped_query_enter_without_their_signs():
    matrix = np.array([[1.0, 0.8], [0.8, 1.0]])
    query = LinearQuery([1.0, -0.5], clip=(0, 1))
    found = leakage(Gaussian(matrix), 1.0, query=query)
    assert found.method == "saturated"
    assert found.value == pytest.approx(1.4, abs=1e-9)
    plain = leakage(Gaussian(matrix), 1.0, query=query, method="covariance")
    assert plain.value == pytest.approx(1.8, abs=1e-9)


def test_a_clipped_record_counts_for_at_most_one():
    matrix = [[1.0, 1.5, 0.0], [1.5, 9.0, 0.5], [0.0, 0.5, 1.0]]
    saturated = leakage(Gaussian(matrix), 1.0, query=SUM, method="saturated").value
    plain = leakage(Gaussian(matrix), 1.0, query=SUM, method="covariance").value
    assert saturated < plain <= 3


@pytest.mark.parametrize("query", [AnyQuery(), CountQuery()])
def test_other_releases_get_the_general_bound_with_the_reason(query):
    found = leakage(Gaussian(MIXED), 1.0, query=query)
    assert (found.value, found.method) == (3.0, "general")
    assert found.scope.is_every_pair
    for method in CLIPPED:
        with pytest.raises(NotApplicable, match="metric privacy"):
            leakage(Gaussian(MIXED), 1.0, query=query, method=method)


def test_a_linear_query_without_clip_or_gap_has_no_bound():
    with pytest.raises(NotApplicable, match="no method applies"):
        leakage(Gaussian(MIXED), 1.0, query=LinearQuery())
    with pytest.raises(NotApplicable, match="clip="):
        leakage(Gaussian(MIXED), 1.0, query=LinearQuery(), method="general")
    with pytest.raises(NotApplicable, match="DP release"):
        calibrate(Gaussian(MIXED), 1.0, query=FREE, method="general")


def test_a_lipschitz_query_is_treated_as_a_sum():
    found = leakage(Gaussian(MIXED), 1.0, query=LipschitzQuery(0.01, clip=(0, 10)))
    assert found.value == pytest.approx(leakage(Gaussian(MIXED), 1, query=SUM).value)


def test_published_methods_are_the_theorems_of_the_sources():
    names = {m.name for m in Gaussian(MIXED).methods() if m.published}
    assert names == {"covariance", "thesis", "general"}
    limited = Gaussian.limited(0.275, 3)
    published = calibrate(limited, 1.0, query=SUM, method="published")
    assert published.method == "thesis"
    assert published.epsilon == pytest.approx(0.5395348837, abs=1e-9)
    best = calibrate(limited, 1.0, query=SUM)
    assert best.method == "sharp"
    assert best.epsilon == pytest.approx(0.6451612903, abs=1e-9)


def test_a_block_of_eighteen_is_searched_only_by_name():
    m = 18
    matrix = np.full((m, m), 0.2) + 0.8 * np.eye(m)
    matrix[0, 1] = matrix[1, 0] = -0.1
    found = leakage(Gaussian(matrix), 1.0, query=SUM)
    reasons = {other.name: other.reason for other in found.alternatives}
    assert "attackers" in reasons["covariance"]
    assert "ask for method='saturated' by name" in reasons["saturated"]


def test_a_large_block_without_structure_falls_to_the_general_bound_and_says_why():
    m = 30
    matrix = np.full((m, m), 0.5) + 0.5 * np.eye(m)
    matrix[0, 1] = matrix[1, 0] = 0.1
    found = leakage(Gaussian(matrix), 1.0, query=SUM)
    assert (found.method, found.value) == ("general", 30.0)
    reasons = {other.name: other.reason for other in found.alternatives}
    assert "at most 20 records, got 30" in reasons["covariance"]
    assert "M-matrix" in reasons["structured"]
    assert "14.0" in reasons["thesis"] or "got 14" in reasons["thesis"]


def test_correlations_of_one_to_rounding_are_refused_by_closed_forms():
    near = np.nextafter(1.0, 0.0)
    model = Gaussian([[1.0 + 2**-52, near], [near, 1.0 + 2**-52]])
    with pytest.raises(NotApplicable, match="general"):
        leakage(model, 1.0, query=SUM, method="sharp")
    assert leakage(model, 1.0, query=SUM).value == 2.0


def test_exchangeable_groups_have_their_own_method_signed_and_not():
    family = Gaussian.exchangeable(
        [2, 40], correlation=[[0.1, -0.1], [-0.1, 0.3]], groups=3
    )
    clipped = leakage(family, 1.0, query=SUM)
    assert clipped.method == "exchangeable"
    free = leakage(family, 1.0, query=FREE)
    assert free.method == "linear-exact"
    assert free.value < leakage(family, 1.0, query=FREE, method="exchangeable").value
    again = leakage(family, 2.0, query=SUM, method="exchangeable")
    assert again.value == pytest.approx(2 * clipped.value, rel=1e-12)


def test_independent_records_leak_their_level():
    model = Gaussian(np.diag([1.0, 4.0]))
    assert leakage(model, 0.7, query=SUM).value == pytest.approx(0.7, abs=1e-12)
    assert leakage(model, 0.7).value == pytest.approx(0.7, rel=1e-15)


def test_a_weighted_query_needs_a_weight_for_each_record():
    from undertow.errors import ModelError

    with pytest.raises(ModelError, match="each of the 3 records"):
        leakage(Gaussian(MIXED), 1.0, query=LinearQuery([1.0, 2.0], clip=(0, 1)))


UNIT_CLIP = LinearQuery(clip=(0, 1))


UNCLIPPED = LinearQuery(gap=1.0)


def equal(correlation, size=2):
    return np.full((size, size), correlation) + (1 - correlation) * np.eye(size)


@pytest.mark.parametrize("correlation", [0.0, 0.13, 0.5, 0.81])
def test_every_decimal_target_can_be_calibrated_and_is_kept(correlation):
    model = Gaussian(equal(correlation))
    for hundredths in range(1, 300, 7):
        target = hundredths / 100
        found = calibrate(model, target, query=UNIT_CLIP)
        assert target * (1 - 1e-9) <= found.achieves.value <= target


@pytest.mark.parametrize(
    "method",
    [
        CovarianceTheorem(),
        IntermediateTheorem(),
        SaturatedTheorem(),
        SharpTheorem(),
        ThesisTheorem(),
    ],
)
def test_leakage_at_a_budget_never_passes_the_target(method):
    rng = np.random.default_rng(3)
    for _ in range(200):
        model = Gaussian(equal(round(rng.uniform(0, 0.9), 2)))
        target = round(rng.uniform(0.01, 5), 2)
        level = method.invert(model, target, query=UNIT_CLIP)
        value = method.bound(model, level, query=UNIT_CLIP).value
        assert target * (1 - 1e-9) <= value <= target


def test_an_unclipped_value_that_is_mostly_rounding_is_not_called_exact():
    near = 1 - 1e-11
    model = Gaussian([[1, near, 0.3], [near, 1, 0.3], [0.3, 0.3, 1]])
    found = leakage(model, 1.0, query=UNCLIPPED, method="linear-exact")
    assert found.value > 2
    assert found.tight is None
    regular = leakage(Gaussian(equal(0.5)), 1.0, query=UNCLIPPED, method="linear-exact")
    assert regular.tight is True


@pytest.mark.parametrize("method", ["thesis", "intermediate", "sharp"])
def test_nearly_equal_variances_are_paid_for(method):
    ratio = 1 + 5e-10
    model = Gaussian([[1.0, 0.5 * ratio], [0.5 * ratio, ratio**2]])
    found = leakage(model, 1.0, query=UNIT_CLIP, method=method)
    assert found.value >= 1 + 0.5 * ratio
    assert found.value == pytest.approx(1.5, abs=1e-8)


def test_ten_tenths_of_a_budget_are_not_less_than_one():
    releases = [ClippedRelease(0.1, (0, 1))] * 10
    model = Gaussian(np.eye(2))
    assert scope_leakage(model, releases, scope=Scope.inside(0, 1)).value == 1.0
    with pytest.warns(ScopeWarning):
        assert scope_leakage(model, releases, scope=Scope.every_pair()).value == 1.0


@pytest.mark.parametrize(
    ("clip", "pair"), [((0, 1), (1e308, -1e308)), ((0, 5e-324), (0, 1))]
)
def test_secrets_beyond_all_floats_saturate_every_record(clip, pair):
    model = Gaussian(equal(0.5, 3))
    assert pair_leakage(model, ClippedRelease(1.0, clip), pair=pair).value == 3.0

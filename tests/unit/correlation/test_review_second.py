"""Gaussian models and comparators at the edges: rounding, conditioning, odd inputs."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_array

from undertow.correlation.calibrate import calibrate
from undertow.correlation.gaussian import (
    ClippedRelease,
    Gaussian,
    gaussian_factor,
    gaussian_laplace_log_density,
    pair_leakage,
    scope_leakage,
)
from undertow.correlation.gaussian.method import (
    CovarianceTheorem,
    IntermediateTheorem,
    SaturatedTheorem,
    SharpTheorem,
    ThesisTheorem,
)
from undertow.correlation.gaussian.structure import (
    autoregressive_factor,
    dominant_factor,
)
from undertow.correlation.leak import leakage
from undertow.correlation.query import LinearQuery, Scope
from undertow.errors import ModelError, NotApplicable, ScopeWarning
from undertow_studies.comparators import (
    ConversionCurve,
    compare_scales,
    count_wasserstein_scale,
    gaussian_wasserstein_scale,
    printed_gaussian_scale,
    response_law,
    wasserstein_infinity,
)

CLIPPED = LinearQuery(clip=(0, 1))
UNCLIPPED = LinearQuery(gap=1.0)


def equal(correlation, size=2):
    return np.full((size, size), correlation) + (1 - correlation) * np.eye(size)


@pytest.mark.parametrize("correlation", [0.0, 0.13, 0.5, 0.81])
def test_every_decimal_target_can_be_calibrated_and_is_kept(correlation):
    model = Gaussian(equal(correlation))
    for hundredths in range(1, 300, 7):
        target = hundredths / 100
        found = calibrate(model, target, query=CLIPPED)
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
        level = method.invert(model, target, query=CLIPPED)
        value = method.bound(model, level, query=CLIPPED).value
        assert target * (1 - 1e-9) <= value <= target


def test_a_conversion_curve_reads_levels_as_decimals():
    identity = ConversionCurve([(1, 0.0)], "identity", "everyone", True)
    assert [identity.leakage(k / 10) for k in range(1, 30)] == [
        k / 10 for k in range(1, 30)
    ]


def test_an_unclipped_value_that_is_mostly_rounding_is_not_called_exact():
    near = 1 - 1e-11
    model = Gaussian([[1, near, 0.3], [near, 1, 0.3], [0.3, 0.3, 1]])
    found = leakage(model, 1.0, query=UNCLIPPED, method="linear-exact")
    assert found.value > 2
    assert found.tight is None
    regular = leakage(Gaussian(equal(0.5)), 1.0, query=UNCLIPPED, method="linear-exact")
    assert regular.tight is True


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


@pytest.mark.parametrize("method", ["thesis", "intermediate", "sharp"])
def test_nearly_equal_variances_are_paid_for(method):
    ratio = 1 + 5e-10
    model = Gaussian([[1.0, 0.5 * ratio], [0.5 * ratio, ratio**2]])
    found = leakage(model, 1.0, query=CLIPPED, method=method)
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


def test_a_covariance_of_records_in_small_units_must_be_symmetric_too():
    with pytest.raises(ModelError, match="symmetric"):
        Gaussian([[1e12, 0, 0], [0, 1e-6, 0.9e-6], [0, 0, 1e-6]])


def test_duplicate_entries_of_a_sparse_precision_are_added():
    double = csr_array(([1.0, 1.0, -0.9, -0.9, 2.0], [0, 0, 1, 0, 1], [0, 3, 5]))
    plain = Gaussian.from_precision([[2.0, -0.9], [-0.9, 2.0]])
    found = Gaussian.from_precision(double)
    assert found.structured().value == plain.structured().value
    np.testing.assert_allclose(found.columns([0, 1]), plain.columns([0, 1]))


def test_limits_of_an_ill_conditioned_precision_are_upper_bounds():
    rng = np.random.default_rng(1)
    with mpmath.workdps(50):
        for _ in range(60):
            size = int(rng.integers(2, 5))
            root = rng.standard_normal((size, size))
            matrix = (root * 10.0 ** rng.uniform(-9, 0, size)) @ root.T
            matrix = (matrix + matrix.T) / 2
            exact = mpmath.inverse(mpmath.matrix(matrix.tolist()))
            sds = [mpmath.sqrt(exact[i, i]) for i in range(size)]
            largest = max(
                abs(exact[i, j]) / (sds[i] * sds[j])
                for i in range(size)
                for j in range(i)
            )
            found = Gaussian.from_precision(matrix).limits()
            assert found.correlation >= min(largest, 1)
            assert found.sd_ratio >= max(sds) / min(sds)


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


def test_correlations_below_rounding_still_round_up():
    tiny = 1e-18
    assert dominant_factor([[1.0, tiny], [tiny, 1.0]]).value > 1
    assert autoregressive_factor(tiny, 3).value > 1
    assert dominant_factor(np.eye(3)).value == 1
    assert autoregressive_factor(0.0, 3).value == 1


@pytest.mark.parametrize("sd", [1e-200, 1e200])
def test_a_series_whose_variance_no_float_holds_is_refused(sd):
    with pytest.raises(ModelError, match="another unit"):
        Gaussian.autoregressive(0.9, 10, sd=sd)


@pytest.mark.parametrize("sds", [[math.inf, math.inf], [1.0, math.inf]])
def test_infinite_standard_deviations_are_refused(sds):
    with pytest.raises(ModelError, match="sds"):
        Gaussian.limited(0.3, 3, sds=sds)
    with pytest.raises(ModelError, match="sds"):
        Gaussian.exchangeable([1, 1], correlation=np.eye(2), sds=sds)


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


def _largest_move(matrix):
    """Return the largest |1 + sum of shifts| over all attackers, in fractions."""
    size = len(matrix)
    best = Fraction(0)
    for mask in range(2**size):
        schur = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
        for k in range(size):
            if mask >> k & 1:
                pivot, row = schur[k][k], list(schur[k])
                for i in range(size):
                    share = schur[i][k] / pivot
                    schur[i] = [
                        a - share * b for a, b in zip(schur[i], row, strict=True)
                    ]
        moves = [
            abs(sum(schur[i])) / schur[i][i] for i in range(size) if not mask >> i & 1
        ]
        best = max([best, *moves])
    return best


def test_the_gaussian_wasserstein_scale_pays_for_its_conditioning():
    rng = np.random.default_rng(8)
    for _ in range(20):
        root = rng.standard_normal((3, 3))
        matrix = (root * [1.0, 1e-8, 1e-4]) @ root.T
        matrix = (matrix + matrix.T) / 2
        found = gaussian_wasserstein_scale(matrix, 1.0, gap=1.0)
        assert Fraction(found.noise_scale) >= _largest_move(matrix)
    with pytest.raises(NotApplicable, match="conditional variances"):
        gaussian_wasserstein_scale(equal(1 - 1e-15), 1.0, gap=1.0)


def test_the_printed_bound_is_a_guarantee_for_equal_variances_only():
    assert printed_gaussian_scale(equal(0.5), 1.0).is_guarantee
    assert not printed_gaussian_scale([[1, 0.5], [0.5, 1 + 1e-9]], 1.0).is_guarantee


def test_laws_with_values_that_are_no_numbers_are_refused():
    for value in (math.nan, math.inf):
        with pytest.raises(ModelError, match="finite values"):
            wasserstein_infinity(([0, value], [0.5, 0.5]), ([0, 1], [0.5, 0.5]))


@pytest.mark.parametrize("states", [(0, 1), ()])
def test_a_count_of_all_or_no_states_is_refused(states):
    with pytest.raises(ValueError, match="leave a state out"):
        count_wasserstein_scale([[0.8, 0.2], [0.3, 0.7]], 1.0, length=3, states=states)


def test_tiny_flip_probabilities_are_not_lost():
    law = response_law(2, 0, flip=1e-18)
    np.testing.assert_allclose(law, [1e-36, 2e-18, 1.0], rtol=1e-12)

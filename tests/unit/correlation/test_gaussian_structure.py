"""Large blocks: signs of the precision, dominance, and the banded solver."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.sparse import csr_array, diags

from undertow.correlation.gaussian import Gaussian
from undertow.correlation.gaussian.shift import worst_factor
from undertow.correlation.gaussian.structure import (
    BandedPrecision,
    autoregressive_factor,
    dense_structured_factor,
    dominant_factor,
    precision_factor,
    signed_colouring,
    toeplitz_factor,
)
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable


def ar_precision(phi, n):
    main = np.full(n, 1 + phi**2)
    main[[0, -1]] = 1.0
    side = np.full(n - 1, -phi)
    return csr_array(diags([side, main, side], offsets=[-1, 0, 1])) / (1 - phi**2)


def ar(phi, n):
    return phi ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


@pytest.mark.parametrize("width", [0, 1, 2, 5])
@pytest.mark.parametrize("size", [7, 30])
def test_the_diagonal_of_a_banded_inverse_is_that_of_the_dense_one(width, size):
    rng = np.random.default_rng(width)
    root = np.tril(rng.normal(size=(size, size)))
    root = np.triu(root, -width) + 3 * np.eye(size)
    matrix = root @ root.T
    order = rng.permutation(size)  # hides the band from the solver
    shuffled = matrix[np.ix_(order, order)]
    banded = BandedPrecision(csr_array(shuffled))
    dense = np.linalg.inv(shuffled)
    assert banded.inverse_diagonal() == pytest.approx(np.diag(dense), rel=1e-9)
    right = rng.normal(size=(size, 2))
    assert banded.solve(right) == pytest.approx(dense @ right, rel=1e-8, abs=1e-10)


def test_a_shuffled_band_is_found_again():
    size, rng = 300, np.random.default_rng(0)
    order = rng.permutation(size)
    shuffled = ar_precision(0.6, size)[np.ix_(order, order)]
    assert BandedPrecision(shuffled).width <= 2


def test_a_wide_large_matrix_is_refused():
    size = 40_000
    arms = diags([np.full(size, 2.0)], offsets=[0]).tolil()
    arms[0, 1:] = -1e-4
    arms[1:, 0] = -1e-4
    with pytest.raises(ModelError, match=r"narrow band.*Gaussian.limited"):
        BandedPrecision(arms.tocsr())


def test_an_indefinite_precision_is_refused():
    with pytest.raises(ModelError, match="positive definite"):
        BandedPrecision(csr_array([[1.0, 2.0], [2.0, 1.0]]))


def test_signs_are_found_where_they_exist():
    matrix = csr_array([[2.0, 1.0, 0.0], [1.0, 2.0, -0.5], [0.0, -0.5, 2.0]])
    signs = signed_colouring(matrix)
    assert signs.tolist() in ([1, -1, -1], [-1, 1, 1])
    odd = csr_array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    assert signed_colouring(odd) is None
    assert signed_colouring(csr_array(np.eye(2))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("phi", [0.3, 0.5, 0.9, -0.7])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_four_routes_agree_on_an_autoregressive_series(phi, n):
    closed = autoregressive_factor(phi, n).value
    sparse = precision_factor(ar_precision(phi, n)).value
    dense = dense_structured_factor(ar(phi, n)).value
    searched = worst_factor(ar(phi, n)).value
    for other in (sparse, dense, searched):
        assert other == pytest.approx(closed, abs=2e-8)


def test_the_closed_form_of_a_long_series():
    for phi, value in ((0.3, 1.857142857), (0.5, 3.0), (0.9, 19.0), (-0.9, 19.0)):
        found = autoregressive_factor(phi, 10**6)
        assert found.value == pytest.approx(value, abs=1e-8)
        assert found.value >= value - 1e-14
    assert autoregressive_factor(0.5, 1).value == 1.0
    assert autoregressive_factor(0.0, 10).value == 1.0
    with pytest.raises(ModelError, match=r"\(-1, 1\)"):
        autoregressive_factor(1.0, 5)


def test_equicorrelation_keeps_its_closed_form_where_theorem_6_14_fails():
    for m, rho in ((5, 0.9), (40, 0.5)):
        matrix = np.full((m, m), rho) + (1 - rho) * np.eye(m)
        found = dense_structured_factor(matrix)
        assert found.value == pytest.approx(1 + (m - 1) * rho, abs=1e-6)
        assert found.adversary.known == frozenset()


def test_parents_and_children_are_not_an_m_matrix():
    family = np.full((5, 5), 0.5) + 0.5 * np.eye(5)
    family[0, 1] = family[1, 0] = 0.0
    with pytest.raises(NotApplicable, match=r"M-matrix up to signs.*covariance"):
        dense_structured_factor(family)
    inverse = np.linalg.inv(family)
    with pytest.raises(NotApplicable, match="cycle of the wrong sign"):
        precision_factor(csr_array((inverse + inverse.T) / 2))


def test_a_wrong_sign_above_rounding_is_not_zeroed_out():
    precision = ar_precision(0.8, 6).toarray()
    precision[0, 5] = precision[5, 0] = 1e-7
    assert signed_colouring(csr_array(precision)) is None
    covariance = np.linalg.inv(precision)
    with pytest.raises(NotApplicable, match="neither"):
        dense_structured_factor((covariance + covariance.T) / 2)


def test_dominance_is_exact_up_to_two_and_refused_above():
    matrix = np.array([[1, -0.6, 0.3], [-0.6, 2.0, 0.5], [0.3, 0.5, 1.5]])
    found = dominant_factor(matrix)
    assert found.value == pytest.approx(worst_factor(matrix).value, abs=1e-9)
    assert found.adversary == Adversary(0)
    with pytest.raises(NotApplicable, match="twice the variance"):
        dominant_factor([[1.0, 0.9, 0.9], [0.9, 1.0, 0.9], [0.9, 0.9, 1.0]])


def test_a_toeplitz_series_uses_its_row_sums():
    lags = [1.0, -0.3, 0.1, 0.05, 0.0]
    from scipy.linalg import toeplitz

    found = toeplitz_factor(lags)
    assert found.value == pytest.approx(worst_factor(toeplitz(lags)).value, abs=1e-9)
    assert found.adversary.target == 2
    steep = 0.8 ** np.arange(6)
    assert toeplitz_factor(steep).value == pytest.approx(
        autoregressive_factor(0.8, 6).value, abs=1e-8
    )
    with pytest.raises(NotApplicable, match="dominant"):
        toeplitz_factor(0.9 ** np.arange(3000))


def test_the_residual_bound_is_above_the_truth():
    matrix = ar_precision(0.999, 2000)
    found = precision_factor(matrix)
    closed = autoregressive_factor(0.999, 2000).value
    assert closed * (1 - 1e-12) <= found.value <= closed * (1 + 1e-6)


def test_a_precision_at_the_edge_of_singularity_is_refused():
    n = 50
    path = diags([[-1.0], [2.0], [-1.0]], offsets=[-1, 0, 1], shape=(n, n))
    matrix = path.tocsr()
    matrix[0, 0] = matrix[n - 1, n - 1] = 1.0  # a Laplacian: singular
    matrix = matrix + 1e-13 * diags([np.ones(n)], offsets=[0])
    with pytest.raises(NotApplicable, match="singularity"):
        precision_factor(matrix)


def test_a_dense_covariance_at_the_edge_of_singularity_is_refused():
    with pytest.raises(NotApplicable, match="singularity"):
        dense_structured_factor(ar(1 - 1e-9, 10))


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

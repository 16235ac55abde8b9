"""The Wasserstein mechanism, against transport programs and enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from undertow.errors import ModelError, NotApplicable
from undertow_studies.comparators.pufferfish import (
    count_wasserstein_scale,
    gaussian_wasserstein_scale,
    wasserstein_infinity,
    wasserstein_scale,
)

ACTIVITY = [[9713 / 11008, 1295 / 11008], [1295 / 4250, 2955 / 4250]]


def distance_by_program(first, second):
    """Smallest distance within which a transport plan exists."""
    (x, p), (y, q) = (tuple(map(np.asarray, law)) for law in (first, second))
    gaps = np.abs(np.subtract.outer(x, y))
    rows = np.kron(np.eye(x.size), np.ones(y.size))
    columns = np.kron(np.ones(x.size), np.eye(y.size))
    for reach in np.unique(gaps):
        cost = (gaps > reach + 1e-12).astype(float).ravel()
        plan = linprog(
            cost, A_eq=np.vstack([rows, columns]), b_eq=np.r_[p, q], bounds=(0, None)
        )
        if plan.fun < 1e-9:
            return reach
    raise AssertionError("a transport plan always exists")


def stationary(P):
    return np.linalg.matrix_power(np.asarray(P), 4096)[0]


def count_law(P, n, i, x):
    """Law of the number of ones given record i, by enumeration of paths."""
    P, law = np.asarray(P), np.zeros(n + 1)
    for path in itertools.product((0, 1), repeat=n):
        if path[i] == x:
            steps = math.prod(P[a, b] for a, b in itertools.pairwise(path))
            law[sum(path)] += stationary(P)[path[0]] * steps
    return np.arange(n + 1), law / law.sum()


def test_distance_equals_the_transport_program():
    rng = np.random.default_rng(3)
    for _ in range(30):
        laws = [
            (rng.integers(0, 9, size=k), rng.dirichlet(np.full(k, 0.7)))
            for k in (rng.integers(1, 6), rng.integers(1, 6))
        ]
        found = wasserstein_infinity(*laws)
        assert found == pytest.approx(distance_by_program(*laws))


def test_distance_is_symmetric_and_zero_between_equal_laws():
    first, second = ([3, 0, 1], [0.2, 0.5, 0.3]), ([0, 2], [0.6, 0.4])
    assert wasserstein_infinity(first, first) == 0
    assert wasserstein_infinity(first, second) == wasserstein_infinity(second, first)


def test_distance_sees_tails_of_tiny_probability():
    tail = 1e-40
    first, second = ([0, 1, 50], [0.5, 0.5, tail]), ([0, 1], [0.5, 0.5])
    assert wasserstein_infinity(first, second) == 49
    assert wasserstein_infinity(([-50, 0], [tail, 1.0]), ([0], [1.0])) == 50


def test_rounding_of_sums_is_not_read_as_a_tail():
    parts = np.full(10, 0.1)
    first = (np.arange(10), parts)
    second = (np.arange(10) + 0.0, np.full(10, 1 / 10) * (1 + 1e-16))
    assert wasserstein_infinity(first, second) == 0


def test_laplace_noise_of_the_scale_keeps_the_promise():
    rng = np.random.default_rng(8)
    outputs = np.linspace(-5, 15, 801)
    for target in (0.3, 2.0):
        for _ in range(10):
            laws = [(np.arange(6), rng.dirichlet(np.full(6, 0.6))) for _ in range(2)]
            scale = wasserstein_scale([laws], target, attackers="one").noise_scale
            densities = [
                np.exp(-np.abs(outputs[:, None] - x[None, :]) / scale) @ p
                for x, p in laws
            ]
            assert np.abs(np.log(densities[0] / densities[1])).max() <= target


@pytest.mark.parametrize("n", [2, 3, 6])
def test_count_scale_equals_enumeration_of_paths(n):
    for P in (ACTIVITY, [[0.2, 0.8], [0.7, 0.3]], [[0.8, 0.2], [0.2, 0.8]]):
        expected = max(
            wasserstein_infinity(count_law(P, n, i, 0), count_law(P, n, i, 1))
            for i in range(n)
        )
        found = count_wasserstein_scale(P, 2.0, length=n)
        assert found.noise_scale == pytest.approx(expected / 2)
        assert not found.is_guarantee


def test_count_scale_of_other_states_is_that_of_the_relabelled_chain():
    P = np.array([[0.7, 0.3], [0.1, 0.9]])
    ones = count_wasserstein_scale(P, 1.0, length=12).noise_scale
    zeros = count_wasserstein_scale(P, 1.0, length=12, states=(0,)).noise_scale
    assert ones == zeros


def test_count_scale_is_at_least_the_shift_of_the_mean():
    P = np.array(ACTIVITY)
    memory = P[0, 0] + P[1, 1] - 1
    shift = (1 + memory) / (1 - memory)
    assert count_wasserstein_scale(P, 1.0, length=100).noise_scale >= shift


def test_gaussian_scale_equals_regression_coefficients_of_every_attacker():
    rng = np.random.default_rng(5)
    for m in (1, 2, 4):
        root = rng.normal(size=(m, m + 2))
        cov, weights = root @ root.T, rng.normal(size=m)
        best = 0.0
        for i in range(m):
            others = [j for j in range(m) if j != i]
            for size in range(m):
                for K in itertools.combinations(others, size):
                    T, U = [*K, i], [j for j in others if j not in K]
                    slope = cov[np.ix_(U, T)] @ np.linalg.inv(cov[np.ix_(T, T)])[:, -1]
                    best = max(best, abs(weights[i] + weights[U] @ slope))
        found = gaussian_wasserstein_scale(cov, 0.5, gap=3.0, weights=weights)
        assert found.noise_scale == pytest.approx(6.0 * best, rel=1e-9)
        assert found.is_guarantee


def test_gaussian_scale_lets_signs_cancel():
    cov = [[1.0, -0.5], [-0.5, 1.0]]
    assert gaussian_wasserstein_scale(cov, 1.0, gap=1.0).noise_scale == pytest.approx(1)


def test_what_cannot_be_listed_is_refused():
    with pytest.raises(NotApplicable, match="at most 1000 records"):
        count_wasserstein_scale(ACTIVITY, 1.0, length=1001)
    with pytest.raises(NotApplicable, match="tails of the count"):
        count_wasserstein_scale([[0.1, 0.9], [0.9, 0.1]], 1.0, length=700)
    with pytest.raises(NotApplicable, match="at most 14 records"):
        gaussian_wasserstein_scale(np.eye(15), 1.0, gap=1.0)
    with pytest.raises(ValueError, match="two different laws"):
        wasserstein_scale([], 1.0, attackers="nobody")


def test_malformed_laws_and_matrices_are_refused():
    good = ([0], [1.0])
    for law in (([0, 1], [0.5, 0.4]), ([0], [0.5, 0.5]), ([0, 1], [1.5, -0.5])):
        with pytest.raises(ModelError):
            wasserstein_infinity(good, law)
    for cov in ([[1, 2], [2, 1]], [[1, 0.5], [0.4, 1]], [1.0]):
        with pytest.raises(ModelError):
            gaussian_wasserstein_scale(cov, 1.0, gap=1.0)
    with pytest.raises(ValueError, match="one finite number"):
        gaussian_wasserstein_scale(np.eye(2), 1.0, gap=1.0, weights=[1.0])
    with pytest.raises(ValueError, match="not all be zero"):
        gaussian_wasserstein_scale(np.eye(2), 1.0, gap=1.0, weights=[0.0, 0.0])


def equal(correlation, size=2):
    return np.full((size, size), correlation) + (1 - correlation) * np.eye(size)


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


def test_laws_with_values_that_are_no_numbers_are_refused():
    for value in (math.nan, math.inf):
        with pytest.raises(ModelError, match="finite values"):
            wasserstein_infinity(([0, value], [0.5, 0.5]), ([0, 1], [0.5, 0.5]))


@pytest.mark.parametrize("states", [(0, 1), ()])
def test_a_count_of_all_or_no_states_is_refused(states):
    with pytest.raises(ValueError, match="leave a state out"):
        count_wasserstein_scale([[0.8, 0.2], [0.3, 0.7]], 1.0, length=3, states=states)

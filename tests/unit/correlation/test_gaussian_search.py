"""Partial shifts and the search over attackers, against literal enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.gaussian import shift as sweep
from undertow.correlation.gaussian.law import searched_factor
from undertow.correlation.gaussian.model import Gaussian
from undertow.correlation.gaussian.shift import (
    Saturation,
    adversary_factor,
    check_covariance,
    check_mean,
    check_weights,
    connected_blocks,
    partial_shift,
    worst_factor,
)
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable


def random_covariance(size, seed, spread=0.5):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size + 2))
    sds = np.exp(spread * rng.normal(size=size))
    matrix = root @ root.T
    scale = sds / np.sqrt(np.diag(matrix))
    return matrix * np.outer(scale, scale)


def attackers(size):
    for i in range(size):
        rest = [j for j in range(size) if j != i]
        for count in range(size):
            for known in itertools.combinations(rest, count):
                yield i, known


def naive(matrix, objective):
    """Return the largest objective(target, unknown, shifts), by plain solves."""
    best = -math.inf
    for i, known in attackers(len(matrix)):
        told = [*known, i]
        unknown = [j for j in range(len(matrix)) if j not in told]
        unit = np.eye(len(told))[-1]
        shifts = matrix[np.ix_(unknown, told)] @ np.linalg.solve(
            matrix[np.ix_(told, told)], unit
        )
        best = max(best, objective(i, unknown, shifts))
    return best


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 9, 10])
def test_the_search_finds_what_enumeration_finds(size):
    matrix = random_covariance(size, size)
    found = worst_factor(matrix)
    expected = naive(matrix, lambda i, u, c: 1 + np.abs(c).sum())
    assert found.value >= expected * (1 - 1e-14)
    assert found.value == pytest.approx(expected, abs=1e-9 + 2 * found.margin)
    named = adversary_factor(matrix, found.adversary)
    assert named == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("size", [2, 4, 6, 9])
def test_the_signed_weighted_search_finds_what_enumeration_finds(size):
    matrix = random_covariance(size, 50 + size)
    a = np.random.default_rng(size).normal(size=size)
    found = worst_factor(matrix, weights=a, signed=True)
    top = np.abs(a).max()
    expected = naive(matrix, lambda i, u, c: abs(a[i] + a[u] @ c) / top)
    assert found.value == pytest.approx(expected, abs=1e-9 + 2 * found.margin)
    named = adversary_factor(matrix, found.adversary, weights=a, signed=True)
    assert named == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("size", [2, 4, 6, 9])
def test_the_saturated_weighted_search_finds_what_enumeration_finds(size):
    matrix = random_covariance(size, 90 + size, spread=1.0)
    a = np.random.default_rng(size).normal(size=size)
    phi = Saturation(((0.7, 0.4), (0.2, 0.3)), own=0.8)

    def objective(i, u, c):
        moves = np.minimum(0.7 * abs(c), 0.4) + np.minimum(0.2 * abs(c), 0.3)
        return (0.8 * abs(a[i]) + np.abs(a[u]) @ moves) / np.abs(a).max()

    found = worst_factor(matrix, weights=a, saturation=phi)
    expected = naive(matrix, objective)
    assert found.value == pytest.approx(expected, abs=1e-9 + 2 * found.margin)


def test_the_batch_size_changes_nothing(monkeypatch):
    matrix = random_covariance(9, 3)
    found = worst_factor(matrix)
    for batched in (1, 4, 12):
        monkeypatch.setattr(sweep, "_BATCHED", batched)
        again = worst_factor(matrix)
        assert again.value == pytest.approx(found.value, rel=1e-11)
        assert again.adversary == found.adversary


def test_independent_records_have_factor_one_and_an_attacker_who_knows_nothing():
    found = worst_factor(np.diag([1.0, 4.0, 9.0]))
    assert found.value == pytest.approx(1.0, abs=1e-12)
    assert found.adversary.known == frozenset()
    assert worst_factor([[2.0]]).value == 1.0


def test_records_of_weight_zero_move_nothing_but_can_still_be_aimed_at():
    matrix = np.array([[1.0, 0.8], [0.8, 1.0]])
    found = worst_factor(matrix, weights=[0.0, 2.0])
    assert found.value == pytest.approx(1.0, abs=1e-12)
    only = adversary_factor(matrix, Adversary(0), weights=[0.0, 2.0])
    assert only == pytest.approx(0.8)


def test_a_large_block_is_refused_with_the_way_out():
    with pytest.raises(
        NotApplicable, match=r"at most 20 records, got 21; .*structured"
    ):
        worst_factor(np.eye(21))
    with pytest.raises(NotApplicable, match="at most 3"):
        worst_factor(np.eye(4), max_block=3)
    with pytest.raises(NotApplicable, match="got 25"):
        searched_factor(Gaussian(np.full((25, 25), 0.5) + 0.5 * np.eye(25)))


def test_a_nearly_singular_block_is_refused_with_the_way_out():
    matrix = [[1.0, 1 - 1e-13], [1 - 1e-13, 1.0]]
    with pytest.raises(NotApplicable, match=r"least eigenvalue.*general"):
        worst_factor(matrix)


def test_signed_and_saturated_do_not_mix():
    with pytest.raises(ValueError, match="freeze"):
        worst_factor(np.eye(2), signed=True, saturation=Saturation())


def test_the_rounding_margin_covers_an_ill_conditioned_block():
    import mpmath

    near = 1 - 1e-7
    matrix = np.array([[1, near, 0.3], [near, 1, 0.3], [0.3, 0.3, 1]])
    found = worst_factor(matrix)
    with mpmath.workdps(50):
        exact = mpmath.matrix(matrix.tolist())
        best = mpmath.mpf(0)
        for i, known in attackers(3):
            told = [*known, i]
            unknown = [j for j in range(3) if j not in told]
            block = mpmath.matrix([[exact[r, c] for c in told] for r in told])
            unit = mpmath.matrix([0] * len(known) + [1])
            told_part = mpmath.lu_solve(block, unit)
            total = mpmath.mpf(1)
            for u in unknown:
                move = sum(exact[u, t] * told_part[r] for r, t in enumerate(told))
                total += abs(move)
            best = max(best, total)
    assert best <= found.value <= best + 3 * found.margin
    assert found.margin < 1e-3


def test_shifts_are_those_of_a_least_squares_regression():
    matrix = random_covariance(5, 1)
    unknown, shifts = partial_shift(matrix, Adversary(3, {0, 4}))
    draws = np.random.default_rng(0).multivariate_normal(np.zeros(5), matrix, 4000)
    told = draws[:, [0, 4, 3]]
    fitted, *_ = np.linalg.lstsq(told, draws[:, list(unknown)], rcond=None)
    assert unknown == (1, 2)
    assert shifts == pytest.approx(fitted[2], abs=0.1)


def test_the_fully_informed_attacker_sees_no_shift():
    unknown, shifts = partial_shift(np.eye(3), Adversary(1, {0, 2}))
    assert unknown == ()
    assert shifts.shape == (0,)
    assert adversary_factor(np.eye(3), Adversary(1, {0, 2})) == 1.0


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "least eigenvalue of -1"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([1.0, 2.0], "square"),
        ([[math.nan]], "finite"),
        ([[0.0]], "positive definite"),
    ],
)
def test_a_malformed_covariance_is_refused(matrix, words):
    with pytest.raises(ModelError, match=words):
        check_covariance(matrix)


def test_means_and_weights_are_checked():
    assert check_mean(2.0, 3).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ModelError, match="each of the 3 records"):
        check_mean([1.0], 3)
    with pytest.raises(ModelError, match="each of the 2 records"):
        check_weights([1.0], 2)
    with pytest.raises(ModelError, match="not all be zero"):
        check_weights([0.0, 0.0], 2)


def test_groups_are_connected_through_others():
    matrix = np.eye(4)
    matrix[0, 2] = matrix[2, 0] = matrix[2, 3] = matrix[3, 2] = 0.1
    assert [group.tolist() for group in connected_blocks(matrix)] == [[0, 2, 3], [1]]


def test_the_attacker_is_numbered_in_the_model_and_the_factor_is_remembered():
    block = np.array([[1.0, 0.1, 0.0], [0.1, 1.0, 0.0], [0.0, 0.0, 1.0]])
    matrix = np.kron(np.eye(2), block)
    matrix[3, 4] = matrix[4, 3] = 0.7
    model = Gaussian(matrix)
    found = searched_factor(model)
    assert found.adversary == Adversary(3)
    assert searched_factor(model) is found


def test_weights_are_relative_to_the_largest_of_all_blocks():
    matrix = np.kron(np.eye(2), [[1.0, 0.5], [0.5, 1.0]])
    found = searched_factor(Gaussian(matrix), weights=np.array([4.0, 2.0, 1.0, 1.0]))
    assert found.value == pytest.approx((4 + 0.5 * 2) / 4, abs=1e-9)
    idle = searched_factor(Gaussian(matrix), weights=np.array([0.0, 0.0, 1.0, 1.0]))
    assert idle.value == pytest.approx(1.5, abs=1e-9)
    assert idle.adversary.target in (2, 3)

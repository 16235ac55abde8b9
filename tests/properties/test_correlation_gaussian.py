"""Gaussian factors on random laws: two routes agree, bounds are never passed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from undertow.correlation.gaussian import (
    ClippedRelease,
    Gaussian,
    clipped_output_leakage,
    dense_structured_factor,
    dominant_factor,
    gaussian_crossover,
    gaussian_factor,
    pair_leakage,
    precision_factor,
    worst_factor,
)
from undertow.correlation.gaussian.shift import Saturation
from undertow.errors import NotApplicable

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 6)


def random_covariance(size, seed, spread=0.4):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size + 3))
    matrix = root @ root.T + 0.2 * np.eye(size)
    sds = np.exp(spread * rng.normal(size=size))
    scale = sds / np.sqrt(np.diag(matrix))
    return matrix * np.outer(scale, scale)


def random_m_matrix(size, seed):
    """A symmetric M-matrix with random signs, scales and zeros."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((size, size)) * (rng.random((size, size)) < 0.7), 1)
    matrix = -(weights + weights.T)
    matrix += np.diag(-matrix.sum(axis=1) + rng.exponential(0.5, size) + 0.02)
    signs = rng.choice([-1.0, 1.0], size) * np.exp(0.3 * rng.normal(size=size))
    return matrix * np.outer(signs, signs)


def naive(matrix):
    best, size = 1.0, len(matrix)
    for i in range(size):
        rest = [j for j in range(size) if j != i]
        for count in range(size - 1):
            for known in itertools.combinations(rest, count):
                told = [*known, i]
                unknown = [j for j in rest if j not in known]
                unit = np.eye(len(told))[-1]
                shifts = matrix[np.ix_(unknown, told)] @ np.linalg.solve(
                    matrix[np.ix_(told, told)], unit
                )
                best = max(best, 1 + np.abs(shifts).sum())
    return best


@settings(max_examples=40)
@given(sizes, seeds)
def test_the_search_equals_enumeration(size, seed):
    matrix = random_covariance(size, seed)
    found, expected = worst_factor(matrix).value, naive(matrix)
    assert found >= expected * (1 - 1e-13)
    assert found == pytest.approx(expected, abs=1e-9)


@given(sizes, seeds, st.floats(0.05, 0.98))
def test_the_sharp_form_is_never_below_the_search(size, seed, share):
    rng = np.random.default_rng(seed)
    rho = share / max(size - 2, 1)
    patterns = rng.choice([-1.0, 1.0, 0.5, 0.0], (size, size))
    above = np.triu(rho * patterns, 1)
    matrix = above + above.T + np.eye(size)
    if np.linalg.eigvalsh(matrix)[0] < 1e-6:
        return
    found = worst_factor(matrix)
    sharp = gaussian_factor(size, rho)
    assert found.value <= sharp + 2 * found.margin
    assert sharp <= gaussian_factor(size, rho, variant="intermediate") + 1e-12
    middle = gaussian_factor(size, rho, variant="intermediate")
    assert middle <= gaussian_factor(size, rho, variant="thesis") * (1 + 1e-13)


@given(sizes, seeds, st.floats(0.05, 0.98), st.floats(1.0, 4.0))
def test_the_sharp_form_with_a_ratio_covers_unequal_deviations(
    size, seed, share, ratio
):
    rng = np.random.default_rng(seed)
    rho = share / max(size - 2, 1)
    above = np.triu(rng.uniform(-rho, rho, (size, size)), 1)
    matrix = above + above.T + np.eye(size)
    if np.linalg.eigvalsh(matrix)[0] < 1e-6:
        return
    sds = rng.uniform(1.0, ratio, size)
    found = worst_factor(matrix * np.outer(sds, sds))
    bound = gaussian_factor(size, rho, sd_ratio=ratio)
    assert found.value <= bound + 2 * found.margin


@settings(max_examples=50)
@given(sizes, seeds)
def test_structure_equals_the_search_on_signed_m_matrices(size, seed):
    precision = random_m_matrix(size, seed)
    covariance = np.linalg.inv(precision)
    covariance = (covariance + covariance.T) / 2
    searched = worst_factor(covariance)
    by_signs = precision_factor(csr_array(precision))
    assert by_signs.value == pytest.approx(searched.value, rel=1e-8, abs=1e-8)
    assert by_signs.value >= searched.value - searched.margin - 1e-9
    assert dense_structured_factor(covariance).value == pytest.approx(
        searched.value, rel=1e-5
    )


@given(sizes, seeds)
def test_dominant_covariances_have_their_row_sum_as_factor(size, seed):
    rng = np.random.default_rng(seed)
    above = np.triu(rng.uniform(-1, 1, (size, size)), 1)
    matrix = above + above.T
    matrix += np.diag(np.abs(matrix).sum(axis=1) * rng.uniform(1.001, 2, size) + 1e-3)
    searched = worst_factor(matrix)
    assert dominant_factor(matrix).value == pytest.approx(
        searched.value, abs=1e-9 + 2 * searched.margin
    )


@given(sizes, seeds, st.floats(1e-3, 1e3))
def test_a_common_rescaling_changes_nothing(size, seed, scale):
    matrix = random_covariance(size, seed)
    before, after = worst_factor(matrix), worst_factor(scale**2 * matrix)
    assert after.value == pytest.approx(before.value, rel=1e-9)


@given(sizes, seeds)
def test_a_permutation_of_the_records_permutes_the_attacker(size, seed):
    matrix = random_covariance(size, seed)
    order = np.random.default_rng(seed).permutation(size)
    before, after = worst_factor(matrix), worst_factor(matrix[np.ix_(order, order)])
    assert after.value == pytest.approx(before.value, rel=1e-9)
    assert order[after.adversary.target] == before.adversary.target
    assert {order[j] for j in after.adversary.known} == set(before.adversary.known)


@given(sizes, seeds)
def test_flipping_signs_changes_no_unsigned_factor(size, seed):
    matrix = random_covariance(size, seed)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size)
    flipped = matrix * np.outer(signs, signs)
    assert worst_factor(flipped).value == pytest.approx(
        worst_factor(matrix).value, rel=1e-9
    )


@given(sizes, seeds)
def test_more_records_never_lower_the_factor(size, seed):
    matrix = random_covariance(size + 1, seed)
    part, whole = worst_factor(matrix[:-1, :-1]), worst_factor(matrix)
    assert part.value <= whole.value + part.margin + 1e-9


@given(sizes, seeds)
def test_saturated_is_at_most_plain_and_the_group_and_signed_at_most_plain(size, seed):
    matrix = random_covariance(size, seed, spread=1.0)
    plain = worst_factor(matrix)
    capped = worst_factor(matrix, saturation=Saturation(((1.0, 1.0),)))
    signed = worst_factor(matrix, signed=True)
    slack = 2 * plain.margin + 1e-9
    assert 1 <= capped.value <= min(plain.value, size) + slack
    assert 1 <= signed.value <= plain.value + slack


@given(st.integers(2, 60), st.floats(0.0, 0.98), st.floats(1e-3, 0.02))
def test_closed_forms_grow_with_correlation_and_group(group, share, step):
    limit = 1 / max(group - 1, 1)
    low, high = share * limit, min((share + step) * limit, limit * 0.9999)
    for variant in ("sharp", "intermediate", "thesis"):
        assert gaussian_factor(group, low, variant=variant) <= gaussian_factor(
            group, max(low, high), variant=variant
        )
        assert gaussian_factor(group, low, variant=variant) <= gaussian_factor(
            group + 1, low, variant=variant
        )


@given(st.integers(3, 200), st.floats(0.01, 0.999))
def test_theorem_6_14_beats_the_general_bound_below_the_crossover_only(group, share):
    crossover = gaussian_crossover(group)
    below = gaussian_factor(group, share * crossover, variant="thesis")
    assert below <= group
    above = crossover + (1 - share) * (1 / (group - 2) - crossover) * 0.99
    try:
        assert gaussian_factor(group, min(above, 0.999), variant="thesis") >= group
    except NotApplicable:
        assert min(above, 0.999) * (group - 2) >= 1


@settings(max_examples=40)
@given(
    st.floats(-0.95, 0.95),
    st.floats(0.3, 3.0),
    st.floats(-5, 15),
    st.floats(-5, 15),
    st.floats(-20, 30),
    st.floats(-20, 30),
    st.floats(0.05, 4.0),
)
def test_two_clipped_records_never_leak_more_than_the_bound(
    rho, ratio, mean, other, x, y, epsilon
):
    if abs(x - y) < 1e-3:
        return
    covariance = np.array([[1.0, rho * ratio], [rho * ratio, ratio**2]])
    model = Gaussian(covariance, mean=[mean, other])
    attained = clipped_output_leakage(
        model, epsilon, clip=(0, 10), pair=(x, y), points=501
    )
    bound = pair_leakage(model, ClippedRelease(epsilon, (0, 10)), pair=(x, y))
    # the bound is over both targets; the grid aims at the first record
    assert attained <= bound.value + 1e-9
    assert bound.value <= 2 * epsilon * (1 + 1e-12)


@given(st.floats(0.0, 0.999), st.integers(1, 400))
def test_the_autoregressive_factor_stays_below_its_limit(phi, length):
    from undertow.correlation.gaussian import autoregressive_factor

    found = autoregressive_factor(phi, length).value
    assert 1.0 <= found <= (1 + phi) / (1 - phi) * (1 + 1e-12)
    by_sum = max(
        sum(phi ** abs(i - j) for j in range(length)) for i in {(length - 1) // 2}
    )
    assert found == pytest.approx(by_sum, rel=1e-9)
    assert math.isfinite(found)

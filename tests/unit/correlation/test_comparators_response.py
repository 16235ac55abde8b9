"""Randomized response as printed, and the accuracy of its count."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from undertow_studies.comparators import scale as module
from undertow_studies.comparators.scale import (
    printed_response,
    response_accuracy,
    response_accuracy_normal,
    response_confidence,
    response_law,
)

GRID = list(itertools.product((0.05, 0.2, 0.4, 0.7, 1.0), (0.0, 0.5, 2.0, 8.0, 30.0)))


@pytest.mark.parametrize(("r", "B"), GRID)
def test_printed_flip_is_the_smaller_root_of_its_equation(r, B):
    rho = printed_response(B, r).flip
    growth = math.exp(B)
    left, right = (1 - (2 - r) * rho) ** 2, r * r * growth * rho * (1 - rho)
    assert left == pytest.approx(right, rel=1e-9)
    total = (2 * (2 - r) + r * r * growth) / ((2 - r) ** 2 + r * r * growth)
    assert rho <= total - rho + 1e-12


@pytest.mark.parametrize(("r", "B"), GRID)
def test_printed_flip_equals_the_formula_as_printed(r, B):
    E = math.exp(B)
    top = 4 + r * (r * E - 2) - math.sqrt(r * r * E * (4 + r * (r * E - 4)))
    printed = top / (8 + 2 * r * (r * E + r - 4))
    # The printed difference cancels: its error is absolute.
    assert printed_response(B, r).flip == pytest.approx(printed, rel=1e-6, abs=1e-7)


def test_independent_bits_give_the_usual_randomized_response():
    for B in (0.0, 1.0, 5.0, 100.0, 800.0):
        expected = math.exp(-B) / (1 + math.exp(-B))
        assert printed_response(B, 1.0).flip == pytest.approx(expected, rel=1e-12)


def test_printed_flip_is_labelled_as_no_guarantee():
    found = printed_response(2.0, 0.4)
    assert found.is_guarantee is False
    assert found.level == pytest.approx(math.log((1 - found.flip) / found.flip))
    assert printed_response(5000.0, 0.4).level == math.inf


def test_law_of_reports_equals_enumeration_of_flips():
    ones, zeros, flip = 3, 2, 0.2
    expected = np.zeros(6)
    for flips in itertools.product((0, 1), repeat=5):
        bits = [b ^ f for b, f in zip((1, 1, 1, 0, 0), flips, strict=True)]
        expected[sum(bits)] += flip ** sum(flips) * (1 - flip) ** (5 - sum(flips))
    np.testing.assert_allclose(response_law(ones, zeros, flip=flip), expected)


def test_law_of_reports_by_transform_agrees_with_the_direct_sum(monkeypatch):
    direct = response_law(900, 700, flip=0.3)
    monkeypatch.setattr(module, "_DIRECT", 10)
    np.testing.assert_allclose(
        response_law(900, 700, flip=0.3), direct, rtol=0, atol=1e-14
    )


def test_law_of_many_reports_is_close_to_normal():
    law = response_law(12_000, 8_000, flip=0.25)
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-9)
    k = np.arange(law.size)
    mean = 12_000 * 0.75 + 8_000 * 0.25
    assert law @ k == pytest.approx(mean, rel=1e-9)
    assert law @ (k - mean) ** 2 == pytest.approx(20_000 * 0.25 * 0.75, rel=1e-6)


@pytest.mark.parametrize("ones", [0, 1, 137, 350, 700])
def test_accuracy_is_where_the_confidence_steps_past_beta(ones):
    for beta in (0.001, 0.05, 0.5):
        alpha = response_accuracy(beta, records=700, ones=ones, flip=0.2)
        above = np.nextafter(alpha, math.inf)
        assert response_confidence(above, records=700, ones=ones, flip=0.2) <= beta
        assert response_confidence(alpha, records=700, ones=ones, flip=0.2) > beta


def test_confidence_equals_two_binomial_tails():
    n, ones, flip, alpha = 60, 25, 0.3, 7.3
    kept = stats.binom.pmf(np.arange(ones + 1), ones, 1 - flip)
    raised = stats.binom.pmf(np.arange(n - ones + 1), n - ones, flip)
    law = np.convolve(kept, raised)
    mean, reach = ones * 0.4 + n * 0.3, alpha * 0.4
    below = law[: math.floor(mean - reach) + 1].sum()
    over = law[math.ceil(mean + reach) :].sum()
    found = response_confidence(alpha, records=n, ones=ones, flip=flip)
    assert found == pytest.approx(below + over, rel=1e-12)


def test_accuracy_at_the_ends():
    assert response_confidence(0.0, records=50, ones=20, flip=0.3) == 1.0
    assert response_confidence(1e-9, records=50, ones=20, flip=0.0) == 0.0
    assert response_accuracy(0.05, records=50, ones=20, flip=0.0) == 0.0
    assert response_accuracy(1.0, records=50, ones=20, flip=0.3) == 0.0


def test_normal_approximation_is_close_for_many_records():
    exact = response_accuracy(0.05, records=5000, ones=2500, flip=0.3)
    approximate = response_accuracy_normal(0.05, records=5000, flip=0.3)
    assert approximate == pytest.approx(exact, rel=0.02)


def test_arguments_out_of_range_are_refused():
    with pytest.raises(ValueError, match="switch must be positive"):
        printed_response(1.0, 0.0)
    with pytest.raises(ValueError, match="flip must be below 1/2"):
        response_confidence(1.0, records=5, ones=1, flip=0.5)
    with pytest.raises(ValueError, match="ones must be at most records"):
        response_confidence(1.0, records=5, ones=6, flip=0.1)
    with pytest.raises(ValueError, match="beta must be positive"):
        response_accuracy(0.0, records=5, ones=1, flip=0.1)


def test_tiny_flip_probabilities_are_not_lost():
    law = response_law(2, 0, flip=1e-18)
    np.testing.assert_allclose(law, [1e-36, 2e-18, 1.0], rtol=1e-12)

"""Laplace mixtures told apart: closed forms against quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from undertow.correlation.attack.laplace_laws import (
    laplace_masses,
    laplace_variation,
    positive_intervals,
)


def random_case(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 7))
    support = np.sort(rng.uniform(-3, 3, size))
    weights = rng.dirichlet(np.full(size, 0.5), size=2)
    return support, weights[0], weights[1], float(rng.uniform(0.2, 3))


def density(y: float, support, weights, scale: float) -> float:
    return float((weights * np.exp(-np.abs(y - support) / scale)).sum() / (2 * scale))


def integrate(function, support, scale: float) -> float:
    ends = [-math.inf, *support.tolist(), math.inf]
    return sum(
        quad(function, low, high, limit=200, epsabs=1e-12)[0]
        for low, high in itertools.pairwise(ends)
    )


@pytest.mark.parametrize("seed", range(25))
def test_total_variation_equals_quadrature(seed: int):
    support, p, q, scale = random_case(seed)
    by_quadrature = integrate(
        lambda y: abs(density(y, support, p, scale) - density(y, support, q, scale)),
        support,
        scale,
    )
    found = laplace_variation(support, (p - q)[None, :], scale=scale)[0]
    assert found == pytest.approx(by_quadrature / 2, abs=1e-6)


@pytest.mark.parametrize("seed", range(25))
def test_variation_is_the_mass_difference_on_the_positive_intervals(seed: int):
    support, p, q, scale = random_case(seed)
    where = positive_intervals(support, p - q, scale=scale)
    gained = laplace_masses(support, p, scale=scale, intervals=where)
    lost = laplace_masses(support, q, scale=scale, intervals=where)
    found = laplace_variation(support, (p - q)[None, :], scale=scale)[0]
    assert found == pytest.approx(gained - lost, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_first_law_is_denser_exactly_inside_the_intervals(seed: int):
    support, p, q, scale = random_case(seed)
    where = positive_intervals(support, p - q, scale=scale)
    for y in np.linspace(-6, 6, 241):
        gap = density(y, support, p, scale) - density(y, support, q, scale)
        inside = any(low < y <= high for low, high in where)
        if abs(gap) > 1e-12:
            assert inside == (gap > 0)


def test_two_point_masses_have_the_laplace_variation():
    found = laplace_variation(np.array([0.0, 2.0]), np.array([[1.0, -1.0]]), scale=1.0)
    assert found[0] == pytest.approx(1 - math.exp(-1))


def test_equal_laws_are_not_told_apart():
    zero = np.zeros((1, 3))
    assert laplace_variation(np.array([0.0, 1.0, 5.0]), zero, scale=1.0)[0] == 0
    assert positive_intervals(np.array([0.0, 1.0, 5.0]), zero[0], scale=1.0) == []


def test_masses_far_in_the_tail_do_not_cancel():
    tail = laplace_masses(
        np.zeros(1), np.ones(1), scale=1.0, intervals=[(50.0, math.inf)]
    )
    assert tail == pytest.approx(math.exp(-50) / 2, rel=1e-12)

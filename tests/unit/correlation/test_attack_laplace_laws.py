"""Laplace mixtures told apart: closed forms against quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from undertow.correlation.attack import (
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


def lattice_case(seed: int):
    """Answers on a lattice, two laws of them, and noise of any size."""
    rng = np.random.default_rng(seed)
    step = 2.0 ** rng.integers(-3, 4)
    size = int(rng.integers(2, 7))
    support = np.sort(rng.choice(np.arange(-20, 21), size, replace=False)) * step
    p, q = rng.dirichlet(np.full(size, 0.4), size=2)
    return support, p, q, float(step * 10 ** rng.uniform(-1.5, 1.5)), float(step)


def enumerated(support, weights, scale: float, step: float) -> np.ndarray:
    reach = int(60 * scale / step) + 50
    points = np.arange(-reach - 20, reach + 21) * step
    kernel = np.exp(-np.abs(points[:, None] - support) / scale)
    return kernel @ weights * math.tanh(step / scale / 2)


@pytest.mark.parametrize("seed", range(60))
def test_on_a_lattice_the_total_variation_is_that_of_all_points(seed: int):
    support, p, q, scale, step = lattice_case(seed)
    found = laplace_variation(support, (p - q)[None, :], scale=scale, step=step)[0]
    truth = np.abs(enumerated(support, p - q, scale, step)).sum() / 2
    assert found == pytest.approx(truth, rel=1e-11, abs=1e-13)
    where = positive_intervals(support, p - q, scale=scale)
    hits, alarms = (
        laplace_masses(support, law, scale=scale, intervals=where, step=step)
        for law in (p, q)
    )
    assert hits - alarms == pytest.approx(truth, abs=1e-13)


@pytest.mark.parametrize("seed", range(60))
def test_noise_on_a_finer_lattice_never_tells_more(seed: int):
    support, p, q, scale, step = lattice_case(seed)
    found = [
        laplace_variation(support, (p - q)[None, :], scale=scale, step=s)[0]
        for s in (step, step / 2, step / 64, step / 2**40, 0.0)
    ]
    assert (np.diff(found) <= 1e-13).all()
    assert found[-2] == pytest.approx(found[-1], rel=1e-9, abs=1e-15)

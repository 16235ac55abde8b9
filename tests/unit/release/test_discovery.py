"""Partition selection: exact privacy by enumeration on small instances."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from undertow.release.plan.noise import (
    IntegerNoise,
    kept_cells,
    key_threshold,
    published_intervals,
)

REACH = 80


def cell_law(count, noise, threshold):
    """Return the law of one cell's output: index 0 is absent, then the values."""
    if count == 0:
        return np.array([1.0] + [0.0] * REACH)
    k = np.arange(threshold, threshold + REACH) - count
    scale = float(noise.parameter)
    all_k = np.arange(-2000, 2001)

    def weight(x):
        x = np.abs(x)
        return np.exp(-x / scale if noise.law == "laplace" else -(x**2) / 2 / scale)

    seen = weight(k) / weight(all_k).sum()
    return np.concatenate([[1.0 - seen.sum()], seen])


def delta_of(first, second, epsilon, noise, threshold):
    """Return the least delta of two tables at `epsilon`, cells independent."""
    p, q = np.array([1.0]), np.array([1.0])
    for mine, theirs in zip(first, second, strict=True):
        p = np.outer(p, cell_law(mine, noise, threshold)).ravel()
        q = np.outer(q, cell_law(theirs, noise, threshold)).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("scale", ["1", "5/2"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("delta", ["0.05", "0.001"])
def test_the_threshold_keeps_epsilon_and_delta_on_every_pair_of_neighbours(
    scale, groups, delta
):
    noise = IntegerNoise("laplace", Fraction(scale))
    threshold = key_threshold(noise, groups=groups, delta=Fraction(delta))
    epsilon = groups / float(Fraction(scale))
    worst = 0.0
    for table in product(range(3), repeat=2):
        for moved in product(range(2), repeat=2):
            if sum(moved) > groups:
                continue
            larger = [x + y for x, y in zip(table, moved, strict=True)]
            for pair in ((table, larger), (larger, table)):
                worst = max(worst, delta_of(*pair, epsilon + 1e-12, noise, threshold))
    assert worst <= float(Fraction(delta)) + 1e-12


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_a_threshold_one_lower_breaks_the_promise(law, groups):
    noise, delta = IntegerNoise(law, Fraction(2)), Fraction(1, 100)
    threshold = key_threshold(noise, groups=groups, delta=delta)

    def shown(at):
        seen = 1.0 - cell_law(1, noise, at)[0]
        return groups * seen  # the union over the new cells

    assert shown(threshold) <= float(delta) * (1 + 1e-9)
    assert shown(threshold - 1) > float(delta)


def test_thresholds_grow_with_groups_and_fall_with_delta():
    noise = IntegerNoise("laplace", Fraction(3))
    found = [
        key_threshold(noise, groups=g, delta=Fraction(1, d))
        for g, d in [(1, 10), (1, 10**6), (20, 10**6), (20, 10**300)]
    ]
    assert found == sorted(found)
    assert len(set(found)) == 4


def test_cells_at_the_threshold_are_kept():
    assert kept_cells(np.array([3, 7, 8, -1], dtype=np.object_), 7) == [1, 2]


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1, 3), Fraction(2)])
@pytest.mark.parametrize("units", [1, 2, 3, 5, 20, 25, 28, 30, 33, 40, 60, 100])
def test_intervals_cover_given_that_the_key_is_published(units, scale):
    noise, beta = IntegerNoise("laplace", scale), 0.05
    threshold = key_threshold(noise, groups=2, delta=Fraction(1, 10**6))
    steps = np.arange(-400, 401)
    mass = np.exp(-np.abs(steps) / float(scale))
    seen = [(units + int(k), float(p)) for k, p in zip(steps, mass, strict=True)]
    published = [(x, p) for x, p in seen if x >= threshold]
    found = published_intervals(
        [x for x, _ in published], noise=noise, threshold=threshold, beta=beta
    )
    total = sum(p for _, p in published)
    covered = sum(
        p
        for (_, p), (_, low, high) in zip(published, found, strict=True)
        if low <= units <= high
    )
    assert covered >= (1 - beta) * total

"""Intervals of shares: the radii of the exact laws, and every share that they leave."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.release.plan.noise import (
    _SHARE_PARTS as _PARTS,
)
from undertow.release.plan.noise import (
    IntegerNoise,
    _radii,
    ratio_interval,
    share_interval,
    share_radius,
)

NOISES = [
    IntegerNoise("laplace", Fraction(300)),
    IntegerNoise("laplace", Fraction(12)),
    IntegerNoise("gaussian", Fraction(300**2)),
    IntegerNoise("gaussian", Fraction(17**2)),
]


def law(noise):
    """Return whole numbers and their probabilities, from the definition."""
    scale = float(noise.parameter)
    laplace = noise.law == "laplace"
    reach = int(60 * scale if laplace else 14 * scale**0.5)
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(k) / scale if laplace else -(k**2) / 2 / scale)
    return k, weight / weight.sum()


def chance(noise, theta, radius):
    """Return the exact probability that the noise at a share passes a radius."""
    k, pmf = law(noise)
    below = np.concatenate([[0.0], np.cumsum(pmf)])
    # |(1 - theta) k - theta j| <= radius for j from first to last.
    first = np.ceil(((1 - theta) * k - radius) / theta)
    last = np.floor(((1 - theta) * k + radius) / theta)
    place = [np.clip(x + len(k) // 2, 0, len(k)).astype(int) for x in (first, last + 1)]
    inside = below[np.maximum(place[1], place[0])] - below[place[0]]
    return 1 - float((pmf * inside).sum())


@pytest.mark.parametrize("noise", NOISES, ids=str)
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-4])
def test_the_radius_of_a_part_covers_at_all_its_shares_and_hardly_more(noise, beta):
    radii = _radii(noise, beta)
    assert radii == pytest.approx(radii[::-1])
    for theta in (1e-4, 0.003, 0.1, 0.25, 0.4, 0.499, 0.5, 0.501, 0.77, 0.9999):
        t = radii[min(int(theta * _PARTS), _PARTS - 1)]
        assert chance(noise, theta, t) <= beta
        # One whole number and the width of a part are what it gives away.
        assert chance(noise, theta, 0.97 * t - 2) > beta


def test_a_radius_is_never_above_that_of_two_intervals_but_for_a_whole_number():
    for noise in NOISES:
        for beta in (0.5, 0.05, 1e-4, 1e-30, 1e-200):
            assert share_radius(noise, beta=beta) <= noise.radius(beta / 4) * 1.05 + 2
            assert share_radius(noise, beta=beta) >= _radii(noise, beta).min()


numbers = st.integers(-2000, 20_000)


@given(st.sampled_from(NOISES), numbers, numbers, st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_every_share_that_the_noise_allows_lies_in_the_interval(noise, a, b, theta):
    radii = _radii(noise, 0.05)
    low, high = share_interval(
        np.array([a], dtype=float), np.array([b], dtype=float), noise=noise, beta=0.05
    )
    assert 0 <= low[0] <= high[0] <= 1
    t = radii[min(int(theta * _PARTS), _PARTS - 1)]
    if abs((1 - theta) * a - theta * b) <= t:
        assert low[0] - 1e-12 <= theta <= high[0] + 1e-12


def test_the_ends_are_shares_that_the_noise_just_allows():
    noise = NOISES[0]
    a, b = np.array([9e3, 5e4, 2e5]), np.array([2.1e4, 5e4, 3e3])
    for end in share_interval(a, b, noise=noise, beta=0.05):
        t = _radii(noise, 0.05)[(end * _PARTS).astype(int)]
        assert np.abs((1 - end) * a - end * b) == pytest.approx(t, rel=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "ends"),
    [
        (0, 0, (0, 1)),
        (5000, -5000, (0, 1)),  # the total looks empty
        (-9000, -9000, (0, 1)),
        (10**6, 0, (0.999, 1)),
        (0, 10**6, (0, 0.001)),
    ],
)
def test_numbers_that_no_table_has_give_an_interval_all_the_same(a, b, ends):
    found = share_interval(
        np.array([a], float), np.array([b], float), noise=NOISES[0], beta=0.05
    )
    assert [end[0] for end in found] == pytest.approx(ends, abs=1e-3)


def test_many_answers_are_those_of_each_alone():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 10**5, (2, 20_000)).astype(float)
    low, high = share_interval(a, b, noise=NOISES[2], beta=0.1)
    for at in (0, 8191, 8192, 19_999):
        one = [end[at : at + 1] for end in (a, b)]
        alone = share_interval(*one, noise=NOISES[2], beta=0.1)
        assert (low[at], high[at]) == (alone[0][0], alone[1][0])


def test_noise_of_a_few_whole_numbers_has_the_box_of_two_intervals():
    noise = IntegerNoise("laplace", Fraction(1))
    a, b = np.array([30.0]), np.array([70.0])
    t = noise.radius(0.025)
    box = ratio_interval((a - t, a + t), (b - t, b + t))
    assert share_interval(a, b, noise=noise, beta=0.05) == box
    assert share_radius(noise, beta=0.05) == t

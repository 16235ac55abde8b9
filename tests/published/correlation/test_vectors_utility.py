"""Mean squared errors of the utility experiments of the master's thesis, by id."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.correlation import (
    CountQuery,
    LimitedGaussian,
    LinearQuery,
    MarkovChain,
    calibrate,
)

HEIGHTS = LinearQuery(clip=(60, 80))
ACTIVITY = [[0.882, 0.118], [0.305, 0.695]]


def mean_square(scale: float) -> float:
    """Return the expected squared error of Laplace noise."""
    return 2 * scale**2


@pytest.mark.parametrize(
    ("method", "expected"),
    [("general", 7200.0), ("thesis", 2748.2164), ("sharp", 1922.0)],
)
def test_U1_figure_18_squared_error_of_heights(method, expected):
    trio = LimitedGaussian(0.275, 3)
    scale = calibrate(trio, 1.0, query=HEIGHTS, method=method).noise_scale
    assert mean_square(scale) == pytest.approx(expected, rel=1e-7)


@pytest.mark.statistical
@pytest.mark.parametrize(("method", "expected"), [("general", 7200), ("thesis", 2748)])
def test_U1_figure_18_simulated_on_897_data_sets(method, expected):
    """Four standard errors, sqrt(5/897) each: a false alarm once in 16 000."""
    trio = LimitedGaussian(0.275, 3)
    scale = calibrate(trio, 1.0, query=HEIGHTS, method=method).noise_scale
    noise = np.random.default_rng(18).laplace(scale=scale, size=897)
    assert np.mean(noise**2) == pytest.approx(expected, rel=4 * math.sqrt(5 / 897))


@pytest.mark.parametrize(
    ("method", "expected"),
    [("gamma", 0.127927), ("zhao", 1.080303), ("general", 1152.0)],
)
def test_U2_figure_19_squared_error_of_daily_activity(method, expected):
    day = MarkovChain(ACTIVITY, length=288)
    scale = calibrate(day, 12.0, query=CountQuery(), method=method).noise_scale
    assert mean_square(scale) == pytest.approx(expected, rel=1e-5)


def test_U2_figure_19_exact_calibration_needs_a_quarter_of_the_published_error():
    day = MarkovChain(ACTIVITY, length=288)
    found = calibrate(day, 12.0, query=CountQuery())
    assert found.epsilon == pytest.approx(7.425589, abs=1e-6)
    assert mean_square(found.noise_scale) == pytest.approx(0.036272, abs=1e-6)

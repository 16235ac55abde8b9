"""Real records: the two sides enclose, and fine finite records agree."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.errors import NotApplicable
from undertow.mechanisms import (
    ClampedMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TruncatedMechanism,
)
from undertow.risk.exact import advantage
from undertow.risk.scalar import ContinuousPrior, continuous_advantage
from undertow.risk.scalar.uniform import _read_law, _Window
from undertow.risk.success import Success
from undertow.risk.threat import Prior, Threat

UNIT = ContinuousPrior.uniform(0, 1)


def fine(mechanism, eta, cells):
    """The advantage on midpoints of equal cells.

    A guess at an edge hits the midpoints of just the cells within `eta` of it.
    """
    middles = ((np.arange(cells) + 0.5) / cells).round(9).tolist()
    edges = tuple((np.arange(cells + 1) / cells).round(9).tolist())
    rule = Success.within("absolute", round(eta - 0.5 / cells, 9), guesses=edges)
    return advantage(mechanism, Threat(Prior.uniform(middles), rule)).value


@pytest.mark.parametrize("noise", [LaplaceMechanism(1), LaplaceMechanism("0.2")])
@pytest.mark.parametrize("eta", [0.1, 0.25, 0.5, 0.7])
def test_fine_finite_records_come_near(noise, eta):
    risk = continuous_advantage(noise, UNIT, eta=eta)
    # Guesses at midpoints hit one cell less, which can pay: an error of order 1/cells.
    coarse, close = fine(noise, eta, 50), fine(noise, eta, 100)
    assert risk.value == pytest.approx(2 * close - coarse, abs=2e-4)
    assert risk.witness.details["gap"] <= 1e-7


def test_gaussian_noise_on_fine_records_comes_near():
    noise = GaussianMechanism("0.3")
    risk = continuous_advantage(noise, UNIT, eta=0.1)
    assert risk.value == pytest.approx(fine(noise, 0.1, 200), abs=1e-4)


@pytest.mark.parametrize("noise", [LaplaceMechanism("0.3"), GaussianMechanism("0.3")])
@pytest.mark.parametrize("eta", [0.05, 0.3, 0.55, 0.9])
def test_the_best_window_beats_every_guess_on_a_grid_and_is_one_of_them(noise, eta):
    law = _read_law(noise)
    window = _Window(law, 1 / law.scale, eta / law.scale, known=False)
    theta = np.linspace(-1, 2, 61) / law.scale
    mean = (law.cdf(theta) - law.cdf(theta - window.width)) / window.width
    guesses = np.linspace(0, 1, 4001)[:, None] / law.scale
    gains = window._gain(theta, mean, guesses - window.eta, guesses + window.eta)
    best = window.best(theta)
    assert (gains.max(axis=0) <= best + 1e-15).all()
    assert np.abs(gains.max(axis=0) - best).max() < 1e-6


@pytest.mark.parametrize("noise", [LaplaceMechanism("0.3"), GaussianMechanism("0.3")])
def test_the_bound_on_curvature_holds(noise):
    law = _read_law(noise)
    window = _Window(law, 1 / law.scale, 0.2 / law.scale, known=False)
    theta, h = np.linspace(-2, 5, 4001), 1e-3
    start, stop = 0.3 / law.scale, 0.7 / law.scale

    def gain(t):
        mean = (law.cdf(t) - law.cdf(t - window.width)) / window.width
        return window._gain(t, mean, np.full_like(t, start), np.full_like(t, stop))

    second = (gain(theta + h) - 2 * gain(theta) + gain(theta - h)) / h**2
    assert np.abs(second).max() <= window.steepest


def test_the_tolerance_bounds_the_gap_and_the_sides_are_nested():
    noise = LaplaceMechanism("0.25")
    rough = continuous_advantage(noise, UNIT, eta=0.25, tolerance=1e-4)
    close = continuous_advantage(noise, UNIT, eta=0.25, tolerance=1e-9)
    assert rough.witness.details["gap"] <= 1e-4
    assert close.witness.details["gap"] <= 1e-9
    assert rough.value - rough.witness.details["gap"] <= close.value <= rough.value


def test_a_shift_and_a_common_unit_change_nothing():
    moved = ContinuousPrior.uniform(40, 50)
    value = continuous_advantage(LaplaceMechanism(10), moved, eta=1).value
    unit = continuous_advantage(LaplaceMechanism(1), UNIT, eta=0.1).value
    assert value == pytest.approx(unit, abs=1e-9)


def test_extreme_scales_stay_within_the_cap():
    small = continuous_advantage(LaplaceMechanism("1e9"), UNIT, eta=0.1)
    assert 0 <= small.value <= 1e-9
    large = continuous_advantage(LaplaceMechanism("0.01"), UNIT, eta=0.1)
    assert 0.8 < large.value < 0.9


def test_exact_guesses_and_guesses_that_always_hit_gain_nothing():
    exact = continuous_advantage(LaplaceMechanism(1), UNIT, eta=0)
    always = continuous_advantage(LaplaceMechanism(1), UNIT, eta=1)
    assert exact.value == always.value == 0
    assert "without atoms" in exact.witness.summary
    assert "every guess is right" in always.witness.summary


def test_a_known_record_has_the_risk_of_fine_membership():
    value = continuous_advantage(LaplaceMechanism(1), UNIT, eta=0, known=True).value
    cells = ((np.arange(300) + 0.5) / 300).tolist()
    fine_value = advantage(LaplaceMechanism(1), Threat.membership(Prior.uniform(cells)))
    assert value == pytest.approx(fine_value.value, abs=1e-5)
    assert value <= math.tanh(1 / 4)


def test_what_cannot_be_done_is_refused_in_one_sentence():
    noise = ClampedMechanism(LaplaceMechanism(1), 0, 1)
    with pytest.raises(NotApplicable, match="clamping only lowers the risk"):
        continuous_advantage(noise, UNIT, eta=0.1)
    with pytest.raises(NotApplicable, match="below half the width"):
        continuous_advantage(LaplaceMechanism(1), UNIT, eta=0.5, known=True)
    with pytest.raises(ValueError, match="low must be below high"):
        ContinuousPrior.uniform(1, 1)
    with pytest.raises(ValueError, match="eta must be non-negative"):
        continuous_advantage(LaplaceMechanism(1), UNIT, eta=-1)


def test_a_record_wider_than_the_engine_resolves_is_refused():
    wide = ContinuousPrior.uniform(0, 1e300)
    with pytest.raises(NotApplicable, match="scales of the noise wide"):
        continuous_advantage(LaplaceMechanism("1e-149"), wide, eta=1)
    assert continuous_advantage(LaplaceMechanism("1e-149"), wide, eta=0).value == 0


def test_truncated_noise_is_not_said_to_be_bounded_by_plain_noise():
    unit = ContinuousPrior.uniform(0, 1)
    cut = TruncatedMechanism(LaplaceMechanism(1), 0, 1)
    with pytest.raises(NotApplicable) as refused:
        continuous_advantage(cut, unit, eta=0.1)
    assert "bounds it" not in str(refused.value)
    kept = ClampedMechanism(LaplaceMechanism(1), 0, 1)
    with pytest.raises(NotApplicable, match="the plain value bounds it"):
        continuous_advantage(kept, unit, eta=0.1)


def test_a_wide_enclosure_is_not_called_tight():
    wide = ContinuousPrior.uniform(0, 1e6)
    loose = continuous_advantage(LaplaceMechanism(1), wide, eta=0.1)
    assert loose.witness.details["gap"] > 1e-2
    assert not loose.tight
    unit = ContinuousPrior.uniform(0, 1)
    assert continuous_advantage(LaplaceMechanism(1), unit, eta=0.1).tight

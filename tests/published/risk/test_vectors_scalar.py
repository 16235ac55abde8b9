"""Published and derived numbers of a noisy number: Laplace and Gaussian.

T: derived vectors on the exact engine (6), the catalogue (8) and the experiments (12);
RE: errata of chapter 5 of the thesis; trap_r: traps in using it.
"""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from undertow.mechanisms import ClampedMechanism, GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.local import oue_advantage
from undertow.risk.exact import advantage, success_rate
from undertow.risk.scalar import (
    ContinuousPrior,
    ScalarChannel,
    advantage_curve,
    calibrate_gaussian_scale,
    calibrate_laplace_level,
    continuous_advantage,
    gaussian_advantage,
    gaussian_placement_advantage,
    laplace_advantage,
    laplace_pair_advantage,
    laplace_placement_advantage,
    scalar_advantage,
)
from undertow.risk.success import Success
from undertow.risk.threat import Prior, Threat

HERE = os.environ.get("UNDERTOW_DATA")
HOURS = tuple(range(101))
UNIT = ContinuousPrior.uniform(0, 1)
LEVELS = (0.5, 1, 2, 4, 8, 16)


def near(value, tolerance=1e-6):
    return pytest.approx(value, abs=tolerance)


def even(m):
    return np.linspace(0, 1, m)


def uniform_risk(mechanism, answers, **kinds):
    make = Threat.membership if kinds.get("known") else Threat
    channel = ScalarChannel(mechanism, answers)
    return advantage(channel, make(Prior.uniform(len(answers)))).value


def hours_curve(prior, eta):
    threat = Threat(prior, Success.within("absolute", eta))
    noise = [LaplaceMechanism(100 / level) for level in LEVELS]
    channels = [ScalarChannel(one, HOURS) for one in noise]
    return [risk.value for risk in advantage_curve(channels, threat)]


@pytest.fixture(scope="module")
def adult():
    assert HERE is not None
    with (Path(HERE) / "adult" / "hours_per_week_counts.csv").open() as file:
        counts = {
            int(r["hours_per_week"]): int(r["count"]) for r in csv.DictReader(file)
        }
    masses = np.array([counts.get(h, 0) for h in HOURS], dtype=float)
    return Prior(HOURS, masses / masses.sum())


def test_T_6_2_clamping_outside_the_answers_changes_nothing():
    line = tuple(range(0, 101, 10))
    prior = Prior(line, np.random.default_rng(3).dirichlet(np.ones(11)))
    threat, noise = (
        Threat(prior, Success.within("absolute", 20)),
        LaplaceMechanism(25),
    )
    assert advantage(noise, threat).value == near(0.2926462, 1e-7)
    kept = advantage(ClampedMechanism(noise, 0, 100), threat).value
    assert kept == near(0.2926462, 1e-7)
    narrow = advantage(ClampedMechanism(noise, 30, 70), threat).value
    assert narrow == near(0.2922326, 1e-7)


@pytest.mark.parametrize(
    ("epsilon", "eta", "value"),
    [
        (1, 0.1, 0.076130),
        (1, 0.25, 0.111183),
        (4, 0.1, 0.263744),
        (4, 0.25, 0.331024),
        (1, 0.5, 0.108673),
        (1, 1, 0.0),
    ],
)
def test_T_6_3_uniform_real_record_with_laplace_noise(epsilon, eta, value):
    noise = LaplaceMechanism.calibrate(1, epsilon)
    assert continuous_advantage(noise, UNIT, eta=eta).value == near(value, 1e-5)


def test_T_6_3_the_best_guess_in_the_middle_is_not_the_output():
    theta, mean = 0.5, 1 - math.exp(-0.5)  # of uniform records with b = 1, at 0.5

    def gain(guess):
        a, b = max(0.0, guess - 0.5), min(1.0, guess + 0.5)
        inner = ndtr_laplace(theta - a) - ndtr_laplace(theta - b)
        return inner - (b - a) * mean

    guesses = np.linspace(0, 0.5, 50_001)
    best = guesses[np.argmax([gain(g) for g in guesses])]
    assert best == near(0.2396, 2e-5)
    assert gain(best) > gain(theta) + 0.01


def ndtr_laplace(z):
    return math.exp(z) / 2 if z < 0 else 1 - math.exp(-z) / 2


@pytest.mark.parametrize(
    ("answers", "epsilon", "value"),
    [
        (even(11), 1, 0.044337),
        (even(11), 5, 0.201090),
        (even(11), 14, 0.457650),
        (even(5), 2, 0.176959),
        ([0, 0.1, 0.5, 0.55, 1], 2, 0.167197),
        (even(101), 1, 0.004938),
    ],
    ids=["11-1", "11-5", "11-14", "5-2", "gaps", "101-1"],
)
def test_T_8_5_laplace_uniform(answers, epsilon, value):
    assert laplace_advantage(answers, 1 / epsilon) == near(value)
    assert uniform_risk(LaplaceMechanism.calibrate(1, epsilon), answers) == near(value)


@pytest.mark.parametrize(
    ("epsilon", "value"), [(1, 0.121313), (2, 0.217321), (4, 0.355030)]
)
def test_T_8_5_laplace_membership(epsilon, value):
    noise = LaplaceMechanism.calibrate(1, epsilon)
    assert uniform_risk(noise, even(10), known=True) == near(value)


def test_T_8_5_two_points_for_every_threshold_below_their_distance():
    prior = Prior.two_point(HOURS, (0, 100))
    for eta in (0, 40, 99):
        threat = Threat(prior, Success.within("absolute", eta))
        value = advantage(LaplaceMechanism(50), threat).value
        assert value == near(laplace_pair_advantage(100, 50), 1e-11)


def test_T_8_5_laplace_calibration():
    found = calibrate_laplace_level(0.1, records=10)
    assert found.value == near(-18 * math.log(8 / 9), 1e-9)
    assert found.value == near(2.12, 1e-3)


@pytest.mark.parametrize(
    ("m", "sigma", "value"),
    [(11, 0.7, 0.051767), (5, 0.7, 0.113381), (10, 1, 0.039874), (11, 1, 0.036252374)],
)
def test_T_8_6_gaussian_uniform(m, sigma, value):
    assert gaussian_advantage(even(m), sigma) == near(value)
    assert gaussian_placement_advantage(m, 1 / sigma) == near(value)
    assert uniform_risk(GaussianMechanism(sigma), even(m)) == near(value)


def test_T_8_6_gaussian_calibration():
    assert calibrate_gaussian_scale(0.2, records=10).value == near(0.196855)


@pytest.mark.parametrize(
    ("epsilon", "laplace", "gaussian", "sigma"),
    [
        (0.5, 0.022446, 0.005158, 7.0318),
        (1, 0.044337, 0.009721, 3.7306),
        (2, 0.086511, 0.018188, 1.9938),
        (3, 0.126629, 0.026075, 1.3906),
        (5, 0.201090, 0.040643, 0.8919),
        (8, 0.299709, 0.060353, 0.6002),
        (10, 0.357699, 0.072430, 0.4999),
        (14, 0.457650, 0.094667, 0.3820),
    ],
)
def test_T_12_1_figure_5_1(epsilon, laplace, gaussian, sigma):
    def delta(s):  # Equation 2.1
        tail = ndtr(-0.5 / s - epsilon * s)
        return ndtr(0.5 / s - epsilon * s) - math.exp(epsilon) * tail

    s = brentq(lambda s: delta(s) - 1e-5, 0.05, 50, xtol=1e-12)
    assert s == near(sigma, 6e-5)
    noise = LaplaceMechanism.calibrate(1, epsilon)
    assert uniform_risk(noise, even(11)) == near(laplace)
    assert uniform_risk(GaussianMechanism(s), even(11)) == near(gaussian)
    assert gaussian < laplace <= -math.expm1(-epsilon / 2) * 10 / 11


SKEWED = (0.1106, 0.19673, 0.31606, 0.43233, 0.49084, 0.49983)
UNIFORM = {
    0: (0.00247, 0.00494, 0.00985, 0.01961, 0.03882, 0.07612),
    40: (0.0589, 0.11028, 0.19502, 0.31247, 0.43021, 0.50894),
    80: (0.03623, 0.06573, 0.10934, 0.15778, 0.18941, 0.19757),
    100: (0, 0, 0, 0, 0, 0),
}
EMPIRICAL = {
    0: (0.00465, 0.01012, 0.02267, 0.05056, 0.10666, 0.2017),
    40: (0.01836, 0.03554, 0.06655, 0.11724, 0.1881, 0.26968),
    80: (0.00429, 0.00803, 0.01423, 0.02318, 0.03372, 0.04258),
    100: (0, 0, 0, 0, 0, 0),
}


@pytest.mark.parametrize("eta", UNIFORM)
def test_T_12_6_hours_uniform(eta):
    assert hours_curve(Prior.uniform(HOURS), eta) == near(UNIFORM[eta], 6e-6)


@pytest.mark.parametrize("eta", [0, 40, 80])
def test_T_12_6_hours_skewed(eta):
    prior = Prior.two_point(HOURS, (0, 100))
    assert hours_curve(prior, eta) == near(SKEWED, 6e-6)


@pytest.mark.data
@pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder")
@pytest.mark.parametrize("eta", EMPIRICAL)
def test_T_12_6_hours_empirical(adult, eta):
    assert hours_curve(adult, eta) == near(EMPIRICAL[eta], 6e-6)


@pytest.mark.data
@pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder")
def test_RE24_the_empirical_prior_is_not_the_best_case_for_exact_guesses(adult):
    uniform = Prior.uniform(HOURS)
    assert hours_curve(adult, 0)[1] > 2 * hours_curve(uniform, 0)[1]
    assert hours_curve(adult, 40)[1] < hours_curve(uniform, 40)[1]


def test_T_12_6_success_is_certain_where_the_advantage_is_nil():
    threat = Threat(Prior.uniform(HOURS), Success.within("absolute", 100))
    assert success_rate(LaplaceMechanism(100), threat).value == near(1, 1e-12)
    assert advantage(LaplaceMechanism(100), threat).value == 0


def test_T_12_6_the_skewed_prior_is_not_the_worst_at_large_levels():
    uniform = hours_curve(Prior.uniform(HOURS), 40)
    assert uniform[:5] < list(SKEWED[:5])
    assert uniform[5] > SKEWED[5]


def test_RE10_the_law_of_an_interior_cell_subtracts_both_exponentials():
    gaps, b = (0.3, 0.8), 0.5
    inside = ndtr_laplace(gaps[1] / 2 / b) - ndtr_laplace(-gaps[0] / 2 / b)
    left, right = (math.exp(-gap / (2 * b)) / 2 for gap in gaps)
    assert inside == near(1 - right - left, 1e-15)
    assert abs(inside - (1 - right + left)) > 0.5  # as printed


def test_RE21_laplace_passes_unary_encoding_at_both_ends_of_the_range():
    def apart(epsilon):
        return laplace_placement_advantage(11, epsilon) - oue_advantage(11, epsilon)

    assert brentq(apart, 13, 14, xtol=1e-12) == near(13.862820, 1e-5)
    assert brentq(apart, 1e-3, 3e-3, xtol=1e-15) == near(0.001878, 2e-6)
    assert apart(0.001) > 0 > apart(1)
    assert apart(14) > 0


def test_RE23_exact_guesses_of_real_records_fail_unless_the_record_is_known():
    noise = LaplaceMechanism(1)
    assert continuous_advantage(noise, UNIT, eta=0).value == 0
    assert continuous_advantage(noise, UNIT, eta=0, known=True).value > 0.1


def three_points(epsilon, make):
    noise = LaplaceMechanism.calibrate(1, epsilon)

    def risk(w):
        return advantage(noise, make(Prior([0, 0.5, 1], [w, 1 - 2 * w, w]))).value

    return max(risk(w) for w in np.linspace(0.3, 0.5, 101))


@pytest.mark.parametrize(
    ("epsilon", "blind", "known", "pair"),
    [(5, 0.4810, 0.4919, 0.4590), (8, 0.5774, 0.5827, 0.4908)],
)
def test_trap_r06_three_points_beat_two(epsilon, blind, known, pair):
    assert three_points(epsilon, Threat) == near(blind, 6e-5)
    assert three_points(epsilon, Threat.membership) == near(known, 6e-5)
    assert laplace_pair_advantage(1, 1 / epsilon) == near(pair, 6e-5)


@pytest.mark.parametrize(("make", "level"), [(Threat, 4.04), (Threat.membership, 3.11)])
def test_trap_r06_two_points_are_worst_only_up_to_a_level(make, level):
    below, above = level - 0.05, level + 0.05
    assert three_points(below, make) == near(laplace_pair_advantage(1, 1 / below), 1e-9)
    assert three_points(above, make) > laplace_pair_advantage(1, 1 / above) + 1e-6


def test_trap_r06_a_middle_record_adds_risk_within_forty():
    masses = np.zeros(11)
    masses[[0, 5, 10]] = 0.408, 0.184, 0.408
    threat = Threat(Prior(range(0, 101, 10), masses), Success.within("absolute", 40))
    assert advantage(LaplaceMechanism(25), threat).value == near(0.4448, 5e-5)
    assert laplace_pair_advantage(100, 25) == near(0.4323, 5e-5)


def test_trap_r08_a_known_real_record_is_at_risk_without_any_threshold():
    value = continuous_advantage(LaplaceMechanism(1), UNIT, eta=0, known=True).value
    assert 0.11 < value < math.tanh(1 / 4)


@pytest.mark.statistical
def test_trap_r16_guess_grids_are_low_and_nested_simulation_is_high():
    # Seeded; each side is 6 standard errors away, a false alarm has less than 1e-8.
    eta, trials = 0.05, 4000
    exact = continuous_advantage(LaplaceMechanism(1), UNIT, eta=eta).value
    rng = np.random.default_rng(6)
    outputs = rng.random(trials) + rng.laplace(size=trials)
    mean = np.array([ndtr_laplace(t) - ndtr_laplace(t - 1) for t in outputs])

    def best(guesses, records):
        gains = np.exp(-np.abs(outputs - records)) / 2 / mean - 1
        hits = np.abs(guesses[:, None, None] - records) <= eta
        return (hits * gains).mean(axis=1).max(axis=0)

    def apart(values):
        return (values.mean() - exact) / (values.std() / math.sqrt(trials))

    records = ((np.arange(200) + 0.5) / 200)[:, None]
    assert apart(best(np.array([0.2, 0.5, 0.8]), records)) < -6
    assert apart(best(np.linspace(0, 1, 11), rng.random((30, trials)))) > 6


def test_trap_r20_clamping_lowers_this_risk_and_not_that_of_another_prior():
    noise = LaplaceMechanism(25)
    clamped = ClampedMechanism(noise, 30, 70)
    ends = Threat(Prior.two_point(range(0, 101, 10), (0, 100)))
    inner = Threat(Prior.two_point(range(0, 101, 10), (30, 70)))
    assert advantage(clamped, inner).value == near(advantage(noise, inner).value, 1e-11)
    assert advantage(clamped, ends).value == near(advantage(noise, ends).value, 1e-11)
    three = Threat(Prior([0, 10, 100], [0.3, 0.4, 0.3]))
    assert advantage(clamped, three).value < advantage(noise, three).value - 1e-3


def test_a_bare_mechanism_takes_the_records_as_answers():
    threat = Threat(Prior.uniform(HOURS), Success.within("absolute", 40))
    direct = advantage(LaplaceMechanism(100), threat).value
    channel = ScalarChannel(LaplaceMechanism(100), HOURS)
    assert direct == scalar_advantage(channel, threat).value

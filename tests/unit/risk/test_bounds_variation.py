"""Bounds for any knowledge: total variation, its sharpenings and their inverses."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from undertow.errors import InfeasibleTarget
from undertow.privacy import GDP, ZCDP, Approx, LaplaceTradeOff, Pure
from undertow.risk.bounds import (
    Baselines,
    calibrate_variation,
    exact_guess_bound,
    pairwise_variation_bound,
    prior_free_bound,
    program_bound,
    projected_variation_bound,
    uniform_guess_epsilon_bound,
    uniform_prior_bound,
    variation_bound,
    variation_epsilon_bound,
    variation_matrix,
)
from undertow.risk.threat import Prior, Threat


def randomized_response(m, epsilon):
    channel = np.full((m, m), 1.0)
    np.fill_diagonal(channel, math.exp(epsilon))
    return channel / channel.sum(axis=1, keepdims=True)


def membership_advantage(channel, prior):
    gain = prior[:, None] * (channel - prior @ channel)
    return float(np.maximum(0, gain).sum())


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.0, 40.0])
def test_randomized_response_on_two_records_attains_theorem_5_2(epsilon):
    prior = np.array([0.5, 0.5])
    exact = membership_advantage(randomized_response(2, epsilon), prior)
    bound = variation_bound(Pure(epsilon), collision=0.5, sharpen=False)
    assert bound.theorem == "Theorem 5.2"
    assert bound.value == pytest.approx(exact, rel=1e-6 if epsilon < 1e-6 else 1e-12)
    assert bound.value >= math.tanh(epsilon / 2) / 2


@pytest.mark.parametrize("root", [2, 3, 7])
def test_randomized_response_attains_the_prior_free_cap_where_m_is_whole(root):
    epsilon, m = 2 * math.log(root), root + 1
    exact = membership_advantage(randomized_response(m, epsilon), np.full(m, 1 / m))
    assert prior_free_bound(epsilon).value == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.5, 0.1244), (1, 0.2449), (3, 0.6351)]
)
def test_prior_free_cap_has_its_printed_values(epsilon, expected):
    assert prior_free_bound(epsilon).value == pytest.approx(expected, abs=5e-5)


def test_the_cap_is_not_used_when_delta_is_positive():
    with_delta = variation_bound(Approx(1, "1e-9"), collision=0.0)
    assert with_delta.value > math.tanh(0.5)
    assert variation_bound(Pure(1), collision=0.0).value < math.tanh(0.5)


@pytest.mark.parametrize("m", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 9.0, 800.0, math.inf])
def test_uniform_prior_cap_is_the_maximum_over_all_k(m, epsilon):
    decay = math.exp(-epsilon)
    brute = max(
        (k * (m - k) * (1 - decay) / (m * (k + (m - k) * decay)) for k in range(1, m)),
        default=0.0,
    )
    value = uniform_prior_bound(epsilon, m).value
    assert value == pytest.approx(brute, rel=1e-12)
    assert value <= prior_free_bound(epsilon).value * (1 + 1e-12)


def test_pairwise_bound_is_never_above_the_largest_pair():
    rng = np.random.default_rng(1)
    channel, prior = rng.dirichlet(np.ones(5), size=4), rng.dirichlet(np.ones(4))
    totals = variation_matrix(channel)
    brute = max(
        np.abs(channel[i] - channel[j]).sum() / 2 for i in range(4) for j in range(i)
    )
    assert totals.max() == pytest.approx(brute, abs=1e-14)
    pairwise = pairwise_variation_bound(totals, prior).value
    assert pairwise <= variation_bound(brute, collision=float(prior @ prior)).value


def test_projected_bound_equals_theorem_5_2_for_different_labels():
    prior = [0.5, 0.3, 0.2]
    split = projected_variation_bound(Approx(1, 0), prior, labels=[0, 1, 2]).value
    assert split == pytest.approx(variation_bound(Approx(1, 0), collision=0.38).value)
    merged = projected_variation_bound(Pure(1), prior, labels=[0, 0, 0])
    assert merged.value == 0


@pytest.mark.parametrize("guarantee", [GDP(1), ZCDP("0.1"), LaplaceTradeOff(1.0), 0.3])
def test_every_kind_of_guarantee_gives_its_total_variation(guarantee):
    expected = {
        GDP: math.erf(1 / math.sqrt(8)),
        ZCDP: math.sqrt(0.05),
        LaplaceTradeOff: 1 - math.exp(-0.5),
        float: 0.3,
    }[type(guarantee)]
    value = variation_bound(guarantee, collision=0.25).value
    assert value == pytest.approx(0.75 * expected, rel=1e-12)
    assert value >= 0.75 * expected


def test_a_point_mass_has_no_advantage_and_infinity_discloses_everything():
    assert variation_bound(Pure(3), collision=1.0).value == 0
    assert variation_bound(Pure(math.inf), collision=0.25).value == 0.75
    assert variation_bound(Pure(0)).value == 0


@pytest.mark.parametrize("exponent", range(-9, 0))
@pytest.mark.parametrize("delta", [0.0, 1e-12])
def test_calibration_inverts_theorem_5_2_over_ten_decades(exponent, delta):
    target = 0.7 * 10.0**exponent
    g = target / 0.9
    answer = calibrate_variation(target, delta=delta, collision=0.1, sharpen=False)
    closed = math.log1p(2 * (g - delta) / (1 - g))
    assert answer.value == pytest.approx(closed, rel=1e-9)
    assert answer.value <= closed * (1 + 1e-13)
    assert answer.achieves.value <= target


def test_sharpened_calibration_takes_the_larger_epsilon():
    assert calibrate_variation(0.1).value == pytest.approx(4 * math.atanh(0.1))
    assert calibrate_variation(0.1, collision=0.5).value == pytest.approx(
        2 * math.atanh(0.2)
    )


def test_calibration_refuses_what_delta_alone_exceeds():
    with pytest.raises(InfeasibleTarget, match=r"greater than 0\.0005") as refused:
        calibrate_variation(0.0004, delta=0.001, collision=0.5)
    assert refused.value.least == pytest.approx(0.0005)


def test_calibration_says_when_the_target_never_binds():
    answer = calibrate_variation(0.5, collision=0.5)
    assert answer.value == math.inf
    assert answer.achieves.value <= 0.5
    assert "never binding" in answer.method


def test_observed_advantage_bounds_epsilon_from_below():
    found = variation_epsilon_bound(0.2, delta=0.01, collision=0.5).value
    assert found == pytest.approx(math.log((1 + 0.4 - 0.02) / 0.6), rel=1e-12)
    assert variation_epsilon_bound(0.001, delta=0.5).value == 0
    assert variation_epsilon_bound(0.5, collision=0.5).value == math.inf
    assert variation_epsilon_bound(1.0, delta=1.0).value == 0
    assert variation_epsilon_bound(0.1).value == pytest.approx(4 * math.atanh(0.1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: variation_bound(1.5), "guarantee"),
        (lambda: variation_bound(Pure(1), collision=1.1), "collision"),
        (lambda: pairwise_variation_bound([[0, 1]], [0.5, 0.5]), "shape"),
        (lambda: pairwise_variation_bound([[0, 2], [2, 0]], [0.5, 0.5]), "distances"),
        (lambda: variation_matrix([0.5, 0.5]), "matrix"),
        (lambda: variation_matrix([[0.5, 0.6]]), "sum to 1"),
        (lambda: projected_variation_bound(Pure(1), [1.0], labels=[0, 1]), "labels"),
        (lambda: pairwise_variation_bound([[0]], [-1.0]), "non-negative"),
        (lambda: calibrate_variation(0.0), "positive"),
        (lambda: variation_epsilon_bound(0.6, collision=0.5), "at most"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_channel_too_large_is_refused_with_the_bound_that_can(monkeypatch):
    monkeypatch.setattr("undertow.risk.bounds.variation._PAIRS", 3)
    with pytest.raises(ValueError, match="variation_bound"):
        variation_matrix([[0.5, 0.5], [0.5, 0.5]])


def test_a_prior_can_be_given_as_its_object_or_its_numbers():
    numbers = [0.5, 0.3, 0.2]
    prior = Prior(3, numbers)
    for bound in (
        lambda law: exact_guess_bound(Pure(1), law),
        lambda law: program_bound(1.0, law),
        lambda law: projected_variation_bound(Pure(1), law, labels=[0, 0, 1]),
        lambda law: pairwise_variation_bound(np.full((3, 3), 0.2), law),
    ):
        assert bound(prior).value == bound(numbers).value


@pytest.mark.parametrize(
    "size", [3, 7, 49, 1000, pytest.param(10**5, marks=pytest.mark.slow)]
)
def test_baselines_never_round_the_collision_probability_up(size):
    rng = np.random.default_rng(size)
    for masses in (np.full(size, 1 / size), rng.dirichlet(np.ones(size))):
        prior = Prior(size, masses)
        known = Baselines.of(Threat(prior))
        exact = [Fraction(float(mass)) for mass in prior.pmf]
        truth = sum(p * p for p in exact) / sum(exact) ** 2
        assert truth * (1 - Fraction(1, 10**12)) <= Fraction(known.collision) <= truth
        assert Fraction(variation_bound(1.0, collision=known.collision).value) >= (
            1 - truth
        )


@pytest.mark.parametrize("collision", [0.0, 0.1, 0.38, 0.5])
def test_an_observed_advantage_close_to_the_ceiling_gives_no_excess(collision):
    room = Fraction(1) - Fraction(collision)
    observed = math.nextafter(float(room), 0.0)
    for _ in range(40):
        observed = math.nextafter(observed, 0.0)
        g = mpmath.mpf(observed) / (1 - mpmath.mpf(collision))
        with mpmath.workdps(60):
            g = mpmath.mpf(observed) / (1 - mpmath.mpf(collision))
            truth = mpmath.log((1 + g) / (1 - g))
            truth = max(truth, 4 * mpmath.atanh(observed))
        found = variation_epsilon_bound(observed, collision=collision).value
        assert truth * (1 - mpmath.mpf(10) ** -12) <= found <= truth


@pytest.mark.parametrize("size", [2, 3, 10, 99_999])
def test_a_nearly_certain_guess_gives_no_excess_of_epsilon(size):
    observed = math.nextafter(1.0 - 1.0 / size, 0.0)
    for _ in range(40):
        observed = math.nextafter(observed, 0.0)
        with mpmath.workdps(60):
            gamma = mpmath.mpf(observed)
            top, left = 1 + gamma * size, 1 - gamma * size / (size - 1)
            truth = mpmath.log(top / left)
        found = uniform_guess_epsilon_bound(observed, size).value
        assert truth * (1 - mpmath.mpf(10) ** -12) <= found <= truth


@pytest.mark.parametrize("observed", [0.0, -0.2, -1.0])
def test_an_audit_that_saw_no_advantage_bounds_epsilon_by_zero(observed):
    assert variation_epsilon_bound(observed).value == 0.0
    assert variation_epsilon_bound(observed, collision=1.0).value == 0.0
    assert uniform_guess_epsilon_bound(observed, 5, delta=0.1).value == 0.0

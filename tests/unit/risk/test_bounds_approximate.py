"""Bounds from epsilon and delta without knowledge, against small linear programs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.privacy import GDP, Approx, GaussianTradeOff, Pure, total_variation
from undertow.risk.bounds import (
    baseline_bound,
    calibrate_baseline,
    calibrate_exact_guess,
    calibrate_uniform_guess,
    exact_guess_bound,
    region_capacity,
    uniform_guess_bound,
    uniform_guess_epsilon_bound,
    variation_bound,
)


def knapsack(prior, total, room):
    """Solve Theorem 5.15 as the linear program it is."""
    sizes = [(0, total * (1 - p)) for p in prior]
    done = optimize.linprog(
        -np.asarray(prior), A_ub=np.ones((1, len(prior))), b_ub=[room], bounds=sizes
    )
    return -done.fun


@pytest.mark.parametrize("seed", range(12))
def test_theorem_5_15_is_the_optimum_of_its_linear_program(seed):
    rng = np.random.default_rng(seed)
    m, epsilon = int(rng.integers(2, 9)), rng.uniform(0.05, 6)
    prior, delta = rng.dirichlet(np.ones(m)), rng.choice([0.0, 1e-3])
    e = math.exp(epsilon)
    room = (m - 1) * (e - 1 + delta * m) / (e + m - 1)
    expected = knapsack(prior, (e - 1 + 2 * delta) / (e + 1), room)
    value = exact_guess_bound(Approx(epsilon, delta), prior).value
    assert value == pytest.approx(expected, abs=1e-9)


def test_order_of_the_prior_does_not_matter():
    prior = np.array([0.1, 0.4, 0.2, 0.3])
    assert (
        exact_guess_bound(Pure(1), prior).value
        == exact_guess_bound(Pure(1), np.sort(prior)).value
    )


def test_impossible_records_are_dropped():
    with_zeros = exact_guess_bound(Pure(1), [0.5, 0.5, 0.0, 0.0]).value
    assert with_zeros == exact_guess_bound(Pure(1), [0.5, 0.5]).value
    assert with_zeros == pytest.approx(math.tanh(0.5) / 2, rel=1e-12)


def test_a_point_mass_has_no_advantage():
    assert exact_guess_bound(Pure(5), [1.0, 0.0]).value == 0
    assert uniform_guess_bound(Pure(5), 1).value == 0
    assert baseline_bound(Pure(5), best_guess=1, collision=1).value == 0


def test_a_uniform_prior_gives_corollary_5_16():
    for m in (2, 5, 40):
        for loss in (Pure(0.3), Approx(2, "1e-4")):
            flat = uniform_guess_bound(loss, m).value
            assert exact_guess_bound(loss, np.full(m, 1 / m)).value == pytest.approx(
                flat, rel=1e-11
            )


def test_randomized_response_attains_corollary_5_16():
    m, e = 6, math.exp(1.7)
    exact = e / (e + m - 1) - 1 / m
    bound = uniform_guess_bound(Pure(1.7), m)
    assert bound.tight
    assert bound.value == pytest.approx(exact, rel=1e-12)
    assert bound.value >= exact


def test_gaussian_capacity_is_the_least_along_the_curve():
    curve = region_capacity(GDP(1), 10)
    points = [
        region_capacity(Approx(e, GaussianTradeOff(1.0).delta(e)), 10)
        for e in np.linspace(0, 5, 501)
    ]
    assert curve <= min(points) * (1 + 1e-12)
    assert curve == pytest.approx(min(points), rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0, 50.0, 800.0])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_proposition_5_13_is_the_least_of_its_three_terms(epsilon, delta):
    loss = Approx(epsilon, delta)
    high, low, kappa = 0.3, 0.1, 0.2
    terms = [
        high * math.expm1(min(epsilon, 300)) + (1 - kappa) * delta,
        ((1 - low) * -math.expm1(-epsilon)) + delta * math.exp(-epsilon),
        total_variation(loss) * (1 - kappa),
    ]
    value = baseline_bound(
        loss, best_guess=high, worst_guess=low, collision=kappa
    ).value
    assert value == pytest.approx(min(terms), rel=1e-12)
    assert value >= min(terms)


def test_printed_first_term_keeps_delta_whole():
    known = {"best_guess": 0.01, "worst_guess": 0.0, "collision": 0.5}
    sharp = baseline_bound(Approx(1, 0.1), **known).value
    printed = baseline_bound(Approx(1, 0.1), **known, sharpen=False).value
    assert printed - sharp == pytest.approx(0.05, abs=1e-12)


@pytest.mark.parametrize("exponent", range(-9, 0))
def test_calibration_inverts_corollary_5_16_over_ten_decades(exponent):
    gamma, m, delta = 0.5 * 10.0**exponent, 100, 1e-12
    closed = math.log1p(m * (gamma * m / (m - 1) - delta) / (1 - gamma * m / (m - 1)))
    answer = calibrate_uniform_guess(gamma, m, delta=delta)
    assert answer.value == pytest.approx(closed, rel=1e-9)
    assert answer.value <= closed * (1 + 1e-13)
    found = uniform_guess_epsilon_bound(gamma, m, delta=delta).value
    assert found == pytest.approx(closed, rel=1e-9)
    assert found <= closed


def test_calibration_of_proposition_5_13_takes_the_best_of_three_inverses():
    gamma, delta = 0.3, 1e-4
    known = {"best_guess": 0.5, "worst_guess": 0.2, "collision": 0.4}
    inverses = [
        math.log1p((gamma - 0.6 * delta) / 0.5),
        -math.log((0.8 - gamma) / (0.8 - delta)),
        math.log((1 + 0.5 - 2 * delta) / (1 - 0.5)),
    ]
    answer = calibrate_baseline(gamma, **known, delta=delta)
    assert answer.value == pytest.approx(max(inverses), rel=1e-9)


def test_calibration_of_theorem_5_15_round_trips():
    prior = [0.4, 0.3, 0.2, 0.1]
    for epsilon in (1e-6, 0.1, 1.0, 4.0):
        target = exact_guess_bound(Pure(epsilon), prior).value
        answer = calibrate_exact_guess(target, prior)
        assert answer.value == pytest.approx(epsilon, rel=1e-9)
        assert answer.achieves.value <= target


def test_targets_that_delta_alone_exceeds_are_infeasible():
    with pytest.raises(InfeasibleTarget) as refused:
        calibrate_uniform_guess(0.0005, 10, delta=0.001)
    assert refused.value.least == pytest.approx(0.0009)
    with pytest.raises(InfeasibleTarget):
        calibrate_exact_guess(1e-6, [0.5, 0.5], delta=0.01)
    with pytest.raises(InfeasibleTarget):
        calibrate_baseline(1e-6, best_guess=0.1, delta=0.01)


def test_an_audit_says_zero_where_calibration_refuses():
    assert uniform_guess_epsilon_bound(0.0005, 10, delta=0.001).value == 0
    assert uniform_guess_epsilon_bound(0.9, 10, delta=1.0).value == 0


def test_targets_that_never_bind_are_infinite():
    for answer in (
        calibrate_uniform_guess(0.9, 10),
        calibrate_exact_guess(0.51, [0.5, 0.5]),
        calibrate_baseline(0.8, best_guess=0.5, collision=0.2),
    ):
        assert answer.value == math.inf


def test_other_losses_are_refused_with_the_way_out():
    with pytest.raises(AssumptionError, match="trade-off"):
        uniform_guess_bound(GDP(1), 4)
    with pytest.raises(AssumptionError, match="trade-off"):
        baseline_bound(GDP(1), best_guess=0.1)
    with pytest.raises(ValueError, match="worst_guess"):
        baseline_bound(Pure(1), best_guess=0.1, worst_guess=0.2)
    with pytest.raises(ValueError, match="at most"):
        uniform_guess_epsilon_bound(0.95, 10)


def test_theorem_5_15_reads_a_trade_off_function():
    prior = [0.4, 0.3, 0.2, 0.1]
    by_loss = exact_guess_bound(GDP(1), prior).value
    by_function = exact_guess_bound(GaussianTradeOff(1.0), prior).value
    assert by_loss == pytest.approx(by_function, rel=1e-12)
    assert by_loss <= variation_bound(GDP(1), collision=0.3).value * (1 + 1e-12)

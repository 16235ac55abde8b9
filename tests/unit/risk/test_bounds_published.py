"""Superseded bounds, the uniform interval, symmetrised channels, subsampled steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from undertow.errors import AssumptionError
from undertow.privacy import (
    GDP,
    ZCDP,
    Approx,
    GaussianTradeOff,
    PrivacyLossDistribution,
    Pure,
    PureTradeOff,
)
from undertow.risk.bounds import (
    SubsampledTradeOff,
    baseline_bound,
    estimate_sgd_success,
    sgd_success_bound,
    subsampled_distribution,
    subsampled_tradeoff,
    superseded_bound,
    symmetrised_channel,
    uniform_guess_bound,
    uniform_interval,
    uniform_interval_bound,
    zero_out_bound,
)

THREE = {"size": 3, "best_guess": 0.5, "worst_guess": 0.2}


def test_a_superseded_bound_says_so():
    bound = superseded_bound(Pure(1), **THREE)
    assert bound.theorem == "Sauer, Theorem 5, corrected"
    assert any("superseded" in text for text in bound.unchecked)
    assert "only the exact record counts" in bound.unchecked
    fourth = superseded_bound(Pure(1), **THREE, statement="theorem-4")
    assert "only the exact record counts" not in fourth.unchecked


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 40.0, 800.0])
@pytest.mark.parametrize("delta", ["0", "0.001", "0.3"])
def test_newer_bounds_are_never_larger(epsilon, delta):
    loss = Approx(epsilon, delta)
    new = baseline_bound(loss, best_guess=0.5, worst_guess=0.2, collision=0.38).value
    for statement in ("theorem-4", "theorem-5"):
        old = superseded_bound(loss, **THREE, statement=statement, clip=False)
        assert new <= old.value * (1 + 1e-12)
        assert superseded_bound(loss, **THREE, statement=statement).value <= 1


def test_bad_arguments_of_a_superseded_bound():
    with pytest.raises(AssumptionError, match="Pure or Approx"):
        superseded_bound(GDP(1), **THREE)
    with pytest.raises(ValueError, match="at most best_guess"):
        superseded_bound(Pure(1), size=3, best_guess=0.2, worst_guess=0.5)
    with pytest.raises(ValueError, match="statement"):
        superseded_bound(Pure(1), **THREE, statement="theorem-6")


def test_the_interval_without_a_guarantee_is_the_widest():
    assert uniform_interval(2) == (0.0, 1.0)
    low, high = uniform_interval(5)
    assert (low, high) == (0.0, pytest.approx(0.25))
    narrow = uniform_interval(5, loss=Pure(1))
    assert low < narrow[0] < 0.2 < narrow[1] < high
    assert uniform_interval(5, loss=Pure(0)) == pytest.approx((0.2, 0.2))
    assert uniform_interval(5, loss=Pure(math.inf)) == pytest.approx((0.0, 0.25))


def test_a_guarantee_besides_never_hurts():
    for mu, epsilon in ((1.0, 0.5), (1.0, 3.0), (4.0, 1.0)):
        loss = Pure(epsilon)
        plain = uniform_interval_bound(GDP(mu), 10).value
        both = uniform_interval_bound(GDP(mu), 10, loss=loss)
        assert both.value <= plain
        assert both.value <= uniform_guess_bound(loss, 10).value
    assert both.theorem == "Corollary 5.16"


def test_functions_without_a_curve_are_refused():
    with pytest.raises(AssumptionError, match="trade-off function"):
        uniform_interval_bound(ZCDP("0.1"), 10)
    with pytest.raises(AssumptionError, match="uniform_guess_bound"):
        uniform_interval_bound(PureTradeOff(1.0), 10)


def test_symmetrising_is_the_average_over_all_relabellings():
    from itertools import permutations

    C = np.random.default_rng(0).dirichlet(np.ones(4), size=4)
    orders = [list(p) for p in permutations(range(4))]
    average = np.mean([C[np.ix_(p, p)] for p in orders], axis=0)
    assert symmetrised_channel(C) == pytest.approx(average)


@pytest.mark.parametrize(
    "channel", [[[1.0]], [[0.5, 0.5]], [[0.5, 0.6], [0.5, 0.5]], [[1.5, -0.5], [0, 1]]]
)
def test_only_square_channels_are_symmetrised(channel):
    with pytest.raises(ValueError, match="channel must"):
        symmetrised_channel(channel)


# Subsampled steps


def test_a_full_batch_is_gaussian_and_an_empty_one_says_nothing():
    assert isinstance(subsampled_tradeoff(2.0, 9, sampling_rate=1.0), GaussianTradeOff)
    empty = subsampled_tradeoff(2.0, 9, sampling_rate=0.0)
    assert float(empty(0.3)) == pytest.approx(0.7)
    assert subsampled_distribution(2.0, 9, sampling_rate=0.0).delta(0.0) == 0.0
    full = subsampled_distribution(2.0, 9, sampling_rate=1.0)
    assert full.delta(0.0) == pytest.approx(GaussianTradeOff(1.5).total_variation())
    assert SubsampledTradeOff(1.0, 1.0)(0.1) == pytest.approx(
        GaussianTradeOff(1.0)(0.1)
    )


def test_one_step_is_the_mixture_tested_by_its_likelihood_ratio():
    mu, q = 0.7, 0.3
    f = SubsampledTradeOff(mu, q)
    for cut in (-1.0, 0.2, 1.5, 3.0):
        alpha = norm.sf(cut)
        beta = (1 - q) * norm.cdf(cut) + q * norm.cdf(cut - mu)
        assert float(f(alpha)) == pytest.approx(beta, abs=1e-14)
        assert float(f.inverse()(beta)) == pytest.approx(alpha, abs=1e-14)
    assert f.inverse().inverse()(0.2) == f(0.2)
    assert "reverse" in repr(f.inverse())
    assert "reverse" not in repr(f)


def test_reversed_losses_end_at_the_chance_of_staying_out():
    f = SubsampledTradeOff(1.0, 0.2).inverse()
    assert f.delta(-math.log1p(-0.2) + 1e-6) == 0.0
    assert f.delta(-math.log1p(-0.2) - 1e-3) > 0.0
    assert f.delta(800.0) == 0.0
    assert SubsampledTradeOff(1.0, 0.2).delta(800.0) < 1e-300


def test_two_steps_are_never_overstated():
    # Against quadrature over both outputs: the test of the product of ratios.
    mu, q = 1.0, 0.3
    x = np.linspace(-8, 9, 1201)
    weight = norm.pdf(x) * (x[1] - x[0])
    ratio = (1 - q) + q * np.exp(mu * x - mu * mu / 2)
    null = np.multiply.outer(weight, weight).ravel()
    loss = np.multiply.outer(ratio, ratio).ravel()
    f = subsampled_tradeoff(1 / mu, 2, sampling_rate=q, knots=256)
    pld = subsampled_distribution(1 / mu, 2, sampling_rate=q)
    for epsilon in (0.0, 0.5, 1.5):
        exact = float(np.sum(null * np.maximum(0, loss - math.exp(epsilon))))
        other = float(np.sum(null * np.maximum(0, 1 - math.exp(epsilon) * loss)))
        assert exact - 1e-9 <= f.delta(epsilon) <= exact + 5e-4
        assert other - 1e-9 <= f.inverse().delta(epsilon) <= other + 5e-4
        assert max(exact, other) - 1e-9 <= pld.delta(epsilon) <= exact + 1e-4
    assert isinstance(pld, PrivacyLossDistribution)


def test_replacing_a_record_is_covered_by_a_group_of_two():
    # Opposite gradients of full norm on one Poisson batch.
    q, x = 0.3, np.linspace(-9, 9, 20_001)
    step = x[1] - x[0]
    plus = (1 - q) * norm.pdf(x) + q * norm.pdf(x - 1)
    minus = (1 - q) * norm.pdf(x) + q * norm.pdf(x + 1)
    f = SubsampledTradeOff(1.0, q).symmetrised().group(2)
    for epsilon in (0.0, 0.2, 0.6):
        exact = float(np.maximum(0, plus - math.exp(epsilon) * minus).sum() * step)
        assert exact - 1e-9 <= f.delta(epsilon) <= 3 * exact
    once = SubsampledTradeOff(1.0, q).symmetrised().total_variation()
    assert once < float(np.maximum(0, plus - minus).sum() * step)


def test_success_of_full_batches_is_the_zero_out_reference():
    success = sgd_success_bound(5.0, 25, best_guess=0.2).value
    gain = zero_out_bound(5.0, 25, best_guess=0.2, worst_guess=0.2).value
    assert success - 0.2 == pytest.approx(gain, abs=1e-12)


def test_success_grows_with_rate_and_steps():
    run = {"best_guess": 0.1, "knots": 256}
    rates = [
        sgd_success_bound(1.0, 4, **run, sampling_rate=q).value
        for q in (0.0, 0.1, 0.5, 1.0)
    ]
    assert rates[0] == pytest.approx(0.1)
    assert rates == sorted(rates)


def test_bad_rates_are_refused():
    with pytest.raises(ValueError, match="sampling_rate must be"):
        SubsampledTradeOff(1.0, 0.0)
    with pytest.raises(ValueError, match="sampling_rate"):
        subsampled_tradeoff(1.0, 3, sampling_rate=1.2)


@pytest.mark.statistical
def test_simulated_limits_hold_the_closed_form():
    # 40 intervals of 99%: more than four misses have chance below 1e-4; seeded.
    rng = np.random.default_rng(3)
    exact = 0.2445718458
    run = {"best_guess": 0.1, "sampling_rate": 0.5, "trials": 2000}
    answers = [estimate_sgd_success(1.0, 1, **run, rng=rng) for _ in range(40)]
    assert sum(not a.low <= exact <= a.high for a in answers) <= 4
    assert np.mean([a.value for a in answers]) == pytest.approx(exact, abs=0.01)


def test_a_few_trials_promise_nothing():
    rng = np.random.default_rng(0)
    run = {"best_guess": 0.1, "sampling_rate": 0.5}
    answer = estimate_sgd_success(1.0, 2, **run, trials=3, rng=rng)
    assert (answer.low, answer.high) == (0.0, 1.0)

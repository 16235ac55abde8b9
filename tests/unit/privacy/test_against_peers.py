"""The same numbers from dp-accounting and riskcal, within their own error.

Their privacy loss distributions are discretised pessimistically, so that their delta
may exceed the truth by about the grid step; ours may exceed it by rounding only.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from riskcal import analysis

from undertow.privacy.conversion import zcdp_to_approx
from undertow.privacy.gaussian import gaussian_sigma, gdp_delta, gdp_epsilon
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.privacy.tradeoff import (
    ApproxTradeOff,
    GaussianTradeOff,
    LaplaceTradeOff,
    PureTradeOff,
)
from undertow.privacy.variation import total_variation

STEP = 1e-3
ALPHAS = np.linspace(0.01, 0.99, 25)


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_gaussian_epsilon_agrees_with_the_loss_distribution(mu, delta):
    peer = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=STEP)
    ours, theirs = gdp_epsilon(mu, delta), peer.get_epsilon_for_delta(delta)
    assert ours <= theirs + 1e-9
    assert theirs - ours <= 2 * STEP


@pytest.mark.parametrize("mu", [0.5, 1.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_gaussian_delta_agrees_with_the_loss_distribution(mu, epsilon):
    peer = pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=STEP)
    ours, theirs = gdp_delta(mu, epsilon), peer.get_delta_for_epsilon(epsilon)
    assert ours <= theirs + 1e-9
    assert theirs == pytest.approx(ours, abs=STEP)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_laplace_delta_agrees_with_the_loss_distribution(mu):
    peer = pld.from_laplace_mechanism(1 / mu, value_discretization_interval=STEP)
    for epsilon in (0.0, 0.2, 0.9 * mu):
        ours = LaplaceTradeOff(mu).delta(epsilon)
        theirs = peer.get_delta_for_epsilon(epsilon)
        assert ours <= theirs + 1e-9
        assert theirs == pytest.approx(ours, abs=STEP)


def test_ten_laplace_releases_agree_with_the_composed_loss_distribution():
    peer = pld.from_laplace_mechanism(5.0, value_discretization_interval=1e-4)
    composed = peer.self_compose(10)
    ours = LaplaceTradeOff(0.2).power(10, knots=400)
    for epsilon in (0.0, 0.3, 1.0):
        theirs = composed.get_delta_for_epsilon(epsilon)
        assert ours.delta(epsilon) == pytest.approx(theirs, rel=5e-3, abs=1e-6)


def test_twenty_randomized_responses_agree_with_the_composed_loss_distribution():
    epsilon = 0.4
    # The library's parameter is the probability of answering at random.
    noise = 2 / (1 + math.exp(epsilon))
    peer = pld.from_randomized_response(noise, 2, value_discretization_interval=1e-4)
    composed, ours = peer.self_compose(20), PureTradeOff(epsilon).power(20)
    for target in (0.0, 1.0, 4.0):
        theirs = composed.get_delta_for_epsilon(target)
        assert ours.delta(target) <= theirs + 1e-9
        assert theirs == pytest.approx(ours.delta(target), abs=20 * 1e-4)


@pytest.mark.parametrize(("mu", "n"), [(0.5, 1), (0.3, 20)])
def test_the_renyi_accountant_is_never_below_the_exact_curve(mu, n):
    accountant = rdp_privacy_accountant.RdpAccountant(
        orders=[1 + x / 10 for x in range(1, 100)] + list(range(12, 256))
    )
    accountant.compose(dp_event.GaussianDpEvent(1 / mu), n)
    theirs = accountant.get_epsilon(1e-5)
    total = mu * math.sqrt(n)
    exact = gdp_epsilon(total, 1e-5)
    optimal = zcdp_to_approx(ZCDP(total**2 / 2), delta=1e-5, method="optimal").epsilon
    assert exact < theirs
    assert theirs == pytest.approx(optimal, rel=2e-3)
    assert optimal <= theirs + 1e-9


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_gaussian_trade_off_and_advantage_agree_with_riskcal(mu):
    theirs = analysis.get_beta_from_gdp(mu=mu, alpha=ALPHAS)
    assert GaussianTradeOff(mu)(ALPHAS) == pytest.approx(theirs, abs=1e-12)
    advantage = float(analysis.get_advantage_from_gdp(mu))
    assert total_variation(GDP(mu)) == pytest.approx(advantage, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 0.1), (3.0, 1e-5)])
def test_approximate_trade_off_and_advantage_agree_with_riskcal(epsilon, delta):
    theirs = analysis.get_beta_from_adp(epsilon=epsilon, delta=delta, alpha=ALPHAS)
    assert ApproxTradeOff(epsilon, delta)(ALPHAS) == pytest.approx(theirs, abs=1e-12)
    advantage = float(analysis.get_advantage_from_adp(epsilon=epsilon, delta=delta))
    loss = Approx(epsilon, delta) if delta else Pure(epsilon)
    assert total_variation(loss) == pytest.approx(advantage, abs=1e-12)


def test_the_trade_off_function_of_a_loss_distribution_is_close_and_below():
    peer = pld.from_gaussian_mechanism(1.0, value_discretization_interval=STEP)
    theirs = analysis.get_beta_from_pld(peer, alpha=ALPHAS)
    ours = GaussianTradeOff(1.0)(ALPHAS)
    assert np.all(theirs <= ours + 1e-9)
    assert theirs == pytest.approx(ours, abs=2 * STEP)


def test_sigma_agrees_with_the_analytic_calibration_of_a_loss_distribution():
    sigma = gaussian_sigma(1.0, 1.0, delta=1e-5)
    peer = pld.from_gaussian_mechanism(sigma, value_discretization_interval=1e-4)
    assert peer.get_delta_for_epsilon(1.0) == pytest.approx(1e-5, rel=1e-2)

"""The same curves, advantages and noise as riskcal, within its own error.

Its loss distributions are discretised pessimistically, so that its advantage may exceed
the truth by about the grid step.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from undertow.errors import AssumptionError
from undertow.privacy import GDP, gdp_mu, total_variation
from undertow.risk.bounds import (
    divergence_variation,
    sgd_mu,
    subsampled_distribution,
    tradeoff_from_callable,
    tradeoff_from_pld,
    tradeoff_from_rdp,
    uniform_tradeoff_bound,
)

pytestmark = pytest.mark.extra

pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    analysis = pytest.importorskip("riskcal.analysis")
    calibration = pytest.importorskip("riskcal.calibration")

STEP = 1e-3
ALPHAS = np.array([0.001, 0.01, 0.1, 0.3, 0.6, 0.9])


def peer(sigma, rate, steps):
    return pld.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=STEP
    ).self_compose(steps)


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_gaussian_advantage_and_errors_agree(mu):
    assert analysis.get_advantage_from_gdp(mu) == pytest.approx(
        total_variation(GDP(mu)), abs=1e-12
    )
    f = tradeoff_from_callable(lambda a: analysis.get_beta_from_gdp(mu, a), knots=2000)
    theirs = analysis.get_beta_from_gdp(mu, ALPHAS)
    assert np.all(f(ALPHAS) <= theirs)
    assert f(ALPHAS) == pytest.approx(theirs, abs=3e-4)


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(1.0, 0.1, 10), (0.8, 0.01, 300)])
def test_subsampled_compositions_agree(sigma, rate, steps):
    theirs = peer(sigma, rate, steps)
    ours = subsampled_distribution(sigma, steps, sampling_rate=rate)
    advantage = analysis.get_advantage_from_pld(theirs)
    assert ours.delta(0.0) == pytest.approx(advantage, rel=5e-3)
    beta = analysis.get_beta_from_pld(theirs, alpha=ALPHAS)
    f = tradeoff_from_pld(ours, knots=64)
    assert f(ALPHAS) == pytest.approx(beta, abs=1e-3)
    bridge = tradeoff_from_pld(theirs)
    assert bridge.source == "dp-accounting"
    assert bridge.total_variation() == pytest.approx(advantage, abs=1e-9)
    assert bridge(ALPHAS) == pytest.approx(beta, abs=1e-3)


def test_its_functions_are_accepted_and_not_overstated():
    theirs = peer(1.0, 0.1, 10)

    def beta(alpha):
        return analysis.get_beta_from_pld(theirs, alpha=alpha)

    with pytest.raises(AssumptionError, match="convex"):
        tradeoff_from_callable(beta)  # it carries a numerical error of about 1e-9
    f = tradeoff_from_callable(beta, slack=1e-9)
    assert np.all(f(ALPHAS) <= beta(ALPHAS))
    assert f.total_variation() == pytest.approx(0.14201, abs=1e-4)
    assert 0 < uniform_tradeoff_bound(f, 10).value < 0.1


def test_optimistic_estimates_are_refused():
    hopeful = pld.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, value_discretization_interval=STEP
    )
    with pytest.raises(AssumptionError, match="pessimistic"):
        tradeoff_from_pld(hopeful)


def test_noise_for_an_advantage_agrees():
    # Full batches: ours in closed form, theirs by search to its tolerance.
    target, steps = 0.2, 10
    sigma = calibration.find_noise_multiplier_for_advantage_dpsgd(
        target, 1.0, steps, grid_step=1e-2, advantage_tol=1e-3
    )
    found = total_variation(GDP(sgd_mu(sigma, steps, adjacency="add_remove")))
    assert found == pytest.approx(target, abs=2e-3)
    rate = 0.1
    sigma = calibration.find_noise_multiplier_for_advantage_dpsgd(
        target, rate, steps, grid_step=1e-2, advantage_tol=1e-3
    )
    pld_of = subsampled_distribution(sigma, steps, sampling_rate=rate)
    assert pld_of.delta(0.0) == pytest.approx(target, abs=3e-3)


def test_renyi_curves_agree_in_direction():
    # Theirs is the exact region of one order, ours its lines at finitely many points.
    levels = np.array([0.1])
    ours = tradeoff_from_rdp(0.5, order=5.0)(levels)
    theirs = analysis.get_beta_from_rdp(0.5, levels, 5.0)
    assert np.all(ours <= theirs + 1e-6)
    assert ours == pytest.approx(theirs, abs=5e-3)
    for rho in (0.01, 0.1, 1.0):
        assert analysis.get_advantage_from_zcdp(rho) <= divergence_variation(rho) + 1e-6


def test_privacy_parameters_agree_with_its_error_rates():
    mu = gdp_mu(2.0, 1e-5)
    f = tradeoff_from_callable(lambda a: analysis.get_beta_from_gdp(mu, a), knots=2000)
    assert f.delta(2.0) == pytest.approx(1e-5, abs=2e-6)

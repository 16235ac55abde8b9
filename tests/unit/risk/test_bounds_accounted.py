"""Trade-off functions from accountants lie on the private side."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.errors import AssumptionError
from undertow.privacy import (
    ApproxTradeOff,
    GaussianTradeOff,
    PrivacyLossDistribution,
    is_tradeoff,
    renyi_divergence,
    total_variation,
)
from undertow.privacy.loss import ZCDP
from undertow.risk.bounds import (
    AccountedTradeOff,
    divergence_variation,
    success_bound,
    tradeoff_bound,
    tradeoff_from_callable,
    tradeoff_from_channel,
    tradeoff_from_curve,
    tradeoff_from_pld,
    tradeoff_from_rdp,
)
from undertow.risk.selector import best_bound
from undertow.risk.threat import Prior, Threat

GRID = np.linspace(0, 1, 501)


def test_a_gaussian_distribution_gives_a_function_just_below_its_own():
    exact = GaussianTradeOff(1.0)
    f = tradeoff_from_pld(PrivacyLossDistribution.from_gaussian(1.0))
    gap = exact(GRID) - f(GRID)
    assert gap.min() >= -1e-15
    assert gap.max() <= 1e-4
    assert is_tradeoff(f, GRID)
    assert f.source == "privacy-loss distribution"
    assert "corners" in repr(f)


def test_a_composition_enters_the_selector_with_its_hypotheses():
    pld = PrivacyLossDistribution.from_laplace("0.2").self_compose(10)
    f = tradeoff_from_pld(pld, knots=48)
    report = best_bound(f, Threat(Prior.uniform(10)))
    plain = best_bound(f.total_variation(), Threat(Prior.uniform(10)))
    assert report.value < plain.value
    assert report.name == "uniform trade-off"
    told = f.explain(report.best)
    assert set(f.unchecked) <= set(told.unchecked)
    assert told.value == report.value
    assert f.explain(told) == told


def test_a_sharp_curve_gives_back_the_bounds_of_its_closed_form():
    exact, known = GaussianTradeOff(1.0), {"best_guess": 0.1, "worst_guess": 0.1}
    f = tradeoff_from_pld(PrivacyLossDistribution.from_gaussian(1.0), knots=2000)
    for bound in (tradeoff_bound, lambda g, **k: success_bound(g, best_guess=0.1)):
        ours, closed = bound(f, **known).value, bound(exact, **known).value
        assert closed <= ours <= closed + 1e-5


def test_lines_of_a_pure_guarantee_give_back_its_function():
    exact = ApproxTradeOff(1.0, 0.01)

    def deltas(levels):
        return [exact.delta(float(e)) for e in levels]

    f = tradeoff_from_curve(deltas, reach=1.0, knots=2)
    assert np.abs(f(GRID) - exact(GRID)).max() < 1e-11
    assert np.all(f(GRID) <= exact(GRID) + 1e-16)


@pytest.mark.parametrize(
    ("deltas", "reach"),
    [(lambda e: [0.1], 1.0), (lambda e: 2.0 + 0 * e, 1.0), (lambda e: e, 900.0)],
    ids=["shape", "range", "reach"],
)
def test_bad_curves_are_refused(deltas, reach):
    with pytest.raises(ValueError, match="must"):
        tradeoff_from_curve(deltas, reach=reach)


def test_useless_curves_promise_nothing():
    f = tradeoff_from_curve(lambda levels: np.ones_like(levels), reach=5.0)
    assert np.all(f(GRID) == 0)
    assert f.total_variation() == 1.0


def test_a_callable_lists_what_must_be_trusted():
    f = tradeoff_from_callable(GaussianTradeOff(1.0), source="closed form")
    assert f.source == "closed form"
    assert sum("function given" in text for text in f.unchecked) == 2
    lowered = tradeoff_from_callable(GaussianTradeOff(1.0), slack=1e-3)
    assert lowered.total_variation() >= f.total_variation() + 0.009


@pytest.mark.parametrize(
    ("beta", "fault"),
    [
        (lambda a: 1 - a**2, "at most 1 - alpha"),
        (lambda a: 0.2 * a, "non-increasing"),
        (lambda a: np.where(a < 0.5, 0.5, 0.0) * (1 - a), "convex"),
        (lambda a: 0 * a - 1, "values in"),
    ],
)
def test_functions_that_are_no_trade_off_are_refused(beta, fault):
    with pytest.raises(AssumptionError, match=fault):
        tradeoff_from_callable(beta)


def test_a_callable_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="one value"):
        tradeoff_from_callable(lambda a: 0.5)


def test_noise_within_the_slack_is_never_turned_into_privacy():
    exact, rng = GaussianTradeOff(1.0), np.random.default_rng(0)

    def noisy(alpha):
        noise = 1e-6 * rng.uniform(-1, 1, size=alpha.shape)
        return np.clip(np.sort(exact(alpha) + noise)[::-1], 0, 1 - alpha)

    f = tradeoff_from_callable(noisy, slack=1e-6)
    assert np.all(f(GRID) <= exact(GRID))


def test_rubbish_is_no_distribution():
    with pytest.raises(TypeError, match="PrivacyLossDistribution"):
        tradeoff_from_pld(3.0)


def test_the_function_of_a_channel_reads_every_pair():
    C = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    f = tradeoff_from_channel(C)
    assert isinstance(f, AccountedTradeOff)
    assert f.total_variation() == pytest.approx(0.6)
    assert f.delta(math.log(7)) == pytest.approx(0, abs=1e-12)
    sure = tradeoff_from_channel([[1.0, 0.0], [0.0, 1.0]])
    assert sure.total_variation() == 1.0
    with pytest.raises(ValueError, match="at least 2 rows"):
        tradeoff_from_channel([[1.0]])


# Rényi


def test_divergences_bound_the_total_variation():
    rng = np.random.default_rng(1)
    for _ in range(50):
        p, q = rng.dirichlet(np.ones(4), size=2)
        total = 0.5 * np.abs(p - q).sum()
        for order in (1.0, 2.0, 8.0):
            assert total <= divergence_variation(renyi_divergence(p, q, alpha=order))
    assert divergence_variation(0.3) == total_variation(ZCDP("0.3"))
    assert divergence_variation(0.0) == 0.0
    assert divergence_variation(math.inf) == 1.0


@pytest.mark.parametrize("order", [1.5, 4.0, 30.0])
def test_a_renyi_guarantee_never_overstates_the_gaussian(order):
    mu = 0.8
    f = tradeoff_from_rdp(order * mu * mu / 2, order=order)
    exact = GaussianTradeOff(mu)
    assert np.all(f(GRID) <= exact(GRID) + 1e-15)
    assert f.total_variation() < 1


def test_no_divergence_means_no_distinction():
    f = tradeoff_from_rdp(0.0, order=2.0)
    assert f(GRID) == pytest.approx(1 - GRID, abs=1e-11)


def test_bad_orders_are_refused():
    with pytest.raises(ValueError, match="above 1"):
        tradeoff_from_rdp(0.5, order=1.0)
    with pytest.raises(ValueError, match="divergence"):
        tradeoff_from_rdp(-0.5, order=2.0)

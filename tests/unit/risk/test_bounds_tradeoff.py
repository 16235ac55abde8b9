"""Bounds from trade-off functions against quantiles, roots and dense grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from undertow.errors import AssumptionError, NotApplicable
from undertow.privacy import (
    GDP,
    ZCDP,
    Approx,
    ApproxTradeOff,
    GaussianTradeOff,
    LaplaceTradeOff,
    PiecewiseLinearTradeOff,
    Pure,
    PureTradeOff,
    tradeoff_from_pmfs,
)
from undertow.risk.bounds import (
    calibrate_gaussian,
    calibrate_uniform_gaussian,
    gaussian_bound,
    tradeoff_bound,
    tradeoff_from_channel,
    tradeoff_from_pld,
    uniform_gaussian_bound,
    uniform_guess_bound,
    uniform_tradeoff_bound,
)
from undertow.risk.bounds.tradeoff import AccountedTradeOff

FUNCTIONS = [
    GaussianTradeOff(0.3),
    GaussianTradeOff(2.0),
    LaplaceTradeOff(0.5),
    LaplaceTradeOff(3.0),
    PureTradeOff(1.0),
    ApproxTradeOff(1.0, 0.1),
    tradeoff_from_pmfs([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
]
INTERVALS = [(0.0, 0.05), (0.1, 0.1), (0.05, 0.6), (0.6, 0.9), (0.0, 1.0), (1.0, 1.0)]


def grid_gain(f, low, high):
    alphas = np.linspace(low, high, 20001)
    return float((1 - f(alphas) - alphas).max())


@pytest.mark.parametrize("f", FUNCTIONS, ids=repr)
@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_tangents_give_the_largest_gain_of_a_dense_grid(f, low, high):
    value = tradeoff_bound(f, best_guess=high, worst_guess=low).value
    # Without a prior form (b) is the interval from 0.
    expected = min(grid_gain(f, low, high), grid_gain(f, 0.0, high))
    assert value >= expected - 1e-15
    assert value == pytest.approx(expected, abs=1e-4)  # the grid misses a corner


@pytest.mark.parametrize("f", FUNCTIONS, ids=repr)
@pytest.mark.parametrize("m", [2, 3, 10, 1000])
def test_uniform_form_is_the_root_of_f_against_a_line(f, m):
    q = optimize.brentq(lambda a: float(f(a)) - (m - 1) * a, 0.0, 1.0, xtol=1e-16)
    value = uniform_tradeoff_bound(f, m).value
    assert value == pytest.approx((m - 1) / m * (1 - m * q), abs=1e-9)


@pytest.mark.parametrize("mu", [1e-8, 1e-3, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.3])
def test_gaussian_gain_keeps_its_digits_where_quantiles_lose_them(mu, alpha):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha))
        at = mpmath.ncdf(mpmath.mpf(mu) - quantile) - mpmath.mpf(alpha)
        peak = mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8))
        expected = at if alpha < mpmath.ncdf(-mpmath.mpf(mu) / 2) else peak
    value = gaussian_bound(mu, best_guess=alpha).value
    assert value >= expected
    assert value == pytest.approx(float(expected), rel=1e-9)


def test_corollary_5_16_is_the_uniform_form_of_its_trade_off_function():
    for epsilon in (0.1, 1.0, 5.0):
        for delta in (0.0, 1e-3):
            flat = uniform_guess_bound(Approx(epsilon, delta), 7).value
            curve = uniform_tradeoff_bound(ApproxTradeOff(epsilon, delta), 7).value
            assert curve == pytest.approx(flat, rel=1e-12)


def test_the_switch_of_regimes_for_ten_records_is_exactly_at_seven_tenths():
    mu = 2 * stats.norm.ppf(8 / 9)
    assert mu == pytest.approx(2.441281, abs=1e-6)
    assert uniform_gaussian_bound(mu, 10, sharpen=False).value == pytest.approx(0.7)


def test_two_records_give_half_of_the_total_variation():
    for mu in (0.1, 1.0, 4.0):
        expected = (2 * stats.norm.cdf(mu / 2) - 1) / 2
        assert uniform_gaussian_bound(mu, 2).value == pytest.approx(expected)
        assert uniform_gaussian_bound(mu, 2, sharpen=False).value == pytest.approx(
            expected
        )


@pytest.mark.parametrize("sharpen", [True, False])
def test_limits_of_the_uniform_bound(sharpen):
    assert uniform_gaussian_bound(0.0, 10, sharpen=sharpen).value == 0
    assert uniform_gaussian_bound(math.inf, 10, sharpen=sharpen).value == 0.9
    assert uniform_gaussian_bound(3.0, 1, sharpen=sharpen).value == 0


def test_a_point_mass_has_no_advantage():
    assert gaussian_bound(2.0, best_guess=1.0, collision=1.0).value == 0


def test_the_theorem_names_the_form_that_gave_the_value():
    sure = {"best_guess": 0.9, "worst_guess": 0.9, "collision": 0.2}
    assert tradeoff_bound(Pure(1), **sure).theorem == "Theorem 5.11(a)"
    flat = {"best_guess": 0.1, "worst_guess": 0.1, "collision": 0.1}
    assert tradeoff_bound(GDP(1), **flat).theorem == "Theorem 5.11(b)"


@pytest.mark.parametrize("target", [1e-6, 0.01, 0.3, 0.8])
def test_calibrated_mu_has_its_closed_form(target):
    m, p = 10, target + 0.1
    q = (1 - p) / (m - 1)
    closed = stats.norm.isf(q) - stats.norm.isf(p)
    assert calibrate_uniform_gaussian(target, m).value == pytest.approx(
        closed, rel=1e-8
    )
    answer = calibrate_gaussian(target, best_guess=0.1, worst_guess=0.1, collision=0.1)
    assert answer.achieves.value <= target
    assert answer.parameter == "mu"


def test_zcdp_has_no_trade_off_function():
    with pytest.raises(AssumptionError, match="convert"):
        tradeoff_bound(ZCDP(1), best_guess=0.1)


def test_baselines_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match="worst_guess"):
        tradeoff_bound(Pure(1), best_guess=0.1, worst_guess=0.2)


def test_an_asymmetric_function_is_read_in_both_directions():
    f = PiecewiseLinearTradeOff([0, 0.1, 1], [1, 0.6, 0])
    for low, high in INTERVALS:
        value = tradeoff_bound(f, best_guess=high, worst_guess=low).value
        assert value == pytest.approx(grid_gain(f, low, high), abs=1e-4)
        assert value >= grid_gain(f, low, high) - 1e-12


GRID = np.concatenate([[0.0], 10.0 ** np.linspace(-18, 0, 200), np.linspace(0, 1, 201)])


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 2), (4, 6), (3, 900)])
def test_a_channel_has_a_function_below_that_of_every_pair(inputs, outputs):
    rng = np.random.default_rng(outputs)
    laws = rng.dirichlet(np.full(outputs, 0.4), inputs)
    laws[rng.random(laws.shape) < 0.2] = 0.0
    laws[:, 0] += 0.01
    laws /= laws.sum(axis=1, keepdims=True)
    f = tradeoff_from_channel(laws)
    pairs = [tradeoff_from_pmfs(p, q) for p, q in itertools.permutations(laws, 2)]
    assert (f(GRID) <= np.min([g(GRID) for g in pairs], axis=0)).all()
    for epsilon in (0.0, 0.3, 2.0, 20.0):
        worst = max(g.delta(epsilon) for g in pairs)
        assert worst <= f.delta(epsilon) <= worst + 1e-11


def test_the_rounding_of_many_outputs_is_taken_off():
    outputs = 1 << 17
    laws = np.stack([np.full(outputs, 1.0), np.linspace(0.999, 1.001, outputs)])
    laws /= laws.sum(axis=1, keepdims=True)
    f = tradeoff_from_channel(laws)
    exact = math.fsum(np.maximum(0.0, laws[1] - laws[0]).tolist())
    # All that adding up that many chances one by one may lose.
    assert f.total_variation() - exact >= 2 * outputs * 2.0**-53


def test_a_channel_too_large_is_refused_at_once():
    with pytest.raises(NotApplicable, match=r"outputs of ordered pairs.*merge"):
        tradeoff_from_channel(np.full((1001, 200), 1 / 200))


@pytest.mark.parametrize(
    "laws",
    [[[np.nan, 1.0], [0.0, 1.0]], [[0.5, 0.4], [0.5, 0.5]], [[-0.5, 1.5], [0.5, 0.5]]],
    ids=["nan", "short", "negative"],
)
def test_rows_that_are_no_laws_are_refused(laws):
    with pytest.raises(ValueError, match="row-stochastic"):
        tradeoff_from_channel(laws)


class _Accountant:
    """Deltas as a convolution leaves them: some a little below 0."""

    class _Law:
        _pessimistic_estimate = True

    _pmf_remove = _pmf_add = _Law()

    def get_delta_for_epsilon(self, levels):
        return np.maximum(0.3 - 0.1 * np.asarray(levels), -1e-18)


def test_a_delta_rounded_below_zero_is_read_as_zero():
    f = tradeoff_from_pld(_Accountant())
    assert isinstance(f, AccountedTradeOff)
    assert f.total_variation() >= 0.3
    assert f.delta(4.0) <= 1e-11

"""The Gaussian curve against 80-digit arithmetic, quadrature and its own inverse."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from undertow.privacy.gaussian import (
    gaussian_sigma,
    gdp_delta,
    gdp_epsilon,
    gdp_log_delta,
    gdp_mu,
)

MUS = [1e-8, 1e-5, 1e-3, 0.1, 0.49, 0.51, 1.0, 3.0, 10.0, 100.0, 1e3]


def true_log_delta(mu, epsilon):
    """Return log(delta) from the defining formula with 80 digits and more."""
    with mpmath.workdps(80 + max(0, int(-mpmath.log10(mu)))):
        m, e, root = mpmath.mpf(mu), mpmath.mpf(epsilon), mpmath.sqrt(2)
        upper = mpmath.erfc((e / m - m / 2) / root) / 2
        lower = mpmath.erfc((e / m + m / 2) / root) / 2
        return mpmath.log(upper - mpmath.exp(e) * lower)


def epsilons_for(mu):
    """Return epsilons that carry delta from its start down to about 1e-300."""
    shifts = [
        -0.4 * mu,
        -0.1 * mu,
        0.0,
        1e-6,
        0.01,
        0.4,
        1.0,
        1.9,
        2.1,
        5.0,
        20.0,
        36.8,
    ]
    points = [mu * (x + mu / 2) for x in shifts]
    return [0.0, *[epsilon for epsilon in points if epsilon > 0]]


@pytest.mark.parametrize("mu", MUS)
def test_delta_is_never_below_the_truth_and_within_1e_9_of_it(mu):
    for epsilon in epsilons_for(mu):
        truth = true_log_delta(mu, epsilon)
        excess = float(mpmath.expm1(mpmath.log(gdp_delta(mu, epsilon)) - truth))
        assert 0 <= excess <= 1e-9, (mu, epsilon, excess)


@given(st.floats(-8, 3), st.floats(-0.5, 37))
def test_log_delta_is_a_close_upper_bound_everywhere(log_mu, shift):
    mu = 10.0**log_mu
    epsilon = max(0.0, mu * (max(shift, -mu / 2) + mu / 2))
    truth = true_log_delta(mu, epsilon)
    gap = float(gdp_log_delta(mu, epsilon) - truth)
    assert 0 <= gap <= 2e-14 * (1 + abs(float(truth)))


@pytest.mark.parametrize("mu", [0.02, 0.7, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 1.0])
def test_delta_is_the_hockey_stick_integral_of_two_normal_laws(mu, epsilon):
    def excess(t):
        return stats.norm.pdf(t - mu) - math.exp(epsilon) * stats.norm.pdf(t)

    start = epsilon / mu + mu / 2
    area, _ = integrate.quad(excess, start, start + 40, epsabs=1e-15)
    assert gdp_delta(mu, epsilon) == pytest.approx(area, rel=1e-7, abs=1e-13)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-12, 1e-100, 1e-300])
def test_epsilon_is_safe_and_a_billionth_less_is_not(mu, delta):
    epsilon = gdp_epsilon(mu, delta)
    if epsilon == 0:
        assert true_log_delta(mu, 0.0) <= mpmath.log(delta)
        return
    assert true_log_delta(mu, epsilon) <= mpmath.log(delta)
    assert true_log_delta(mu, epsilon * (1 - 1e-9)) > mpmath.log(delta)


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.1, 1.0, 30.0, 5e5])
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-300])
def test_mu_is_safe_and_a_billionth_more_is_not(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert true_log_delta(mu, epsilon) <= mpmath.log(delta)
    assert true_log_delta(mu * (1 + 1e-9), epsilon) > mpmath.log(delta)


@pytest.mark.parametrize("sensitivity", [1e-6, 1.0, 3.0, 1e6])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-5), (20.0, 1e-300)]
)
def test_sigma_recomputes_to_at_most_the_requested_delta(sensitivity, epsilon, delta):
    sigma = gaussian_sigma(sensitivity, epsilon, delta=delta)
    assert gdp_delta(sensitivity / sigma, epsilon) <= delta
    with mpmath.workdps(60):
        mu = mpmath.mpf(sensitivity) / mpmath.mpf(sigma)
        assert true_log_delta(mu, epsilon) <= mpmath.log(delta)
        assert true_log_delta(mu * (1 + mpmath.mpf("1e-9")), epsilon) > mpmath.log(
            delta
        )


def test_a_delta_no_float_can_hold_is_given_by_its_logarithm():
    epsilon = gdp_epsilon(1.0, log_delta=-1e5)
    assert true_log_delta(1.0, epsilon) <= -1e5
    assert true_log_delta(1.0, epsilon * (1 - 1e-9)) > -1e5
    mu = gdp_mu(1.0, log_delta=-1e5)
    assert true_log_delta(mu, 1.0) <= -1e5
    assert gaussian_sigma(1.0, 1.0, log_delta=-1e5) >= 1 / mu


def test_delta_and_its_logarithm_ask_for_the_same_epsilon():
    by_delta = gdp_epsilon(0.7, 1e-200)
    by_logarithm = gdp_epsilon(0.7, log_delta=math.log(1e-200))
    assert by_delta == pytest.approx(by_logarithm, rel=1e-12)


@given(st.floats(1e-6, 50), st.floats(0, 50), st.floats(1.001, 3))
def test_delta_falls_with_epsilon_and_grows_with_mu(mu, epsilon, factor):
    here = gdp_log_delta(mu, epsilon)
    assert gdp_log_delta(mu, epsilon * factor) <= here
    assert gdp_log_delta(mu * factor, epsilon) >= here


@pytest.mark.parametrize("mu", [10.0**k for k in range(-8, 4)])
def test_epsilon_and_mu_invert_one_another_over_twelve_decades(mu):
    delta = min(1e-5, gdp_delta(mu, 0.0) / 2)
    assert gdp_mu(gdp_epsilon(mu, delta), delta) == pytest.approx(mu, rel=1e-9)


def test_the_ends_of_the_scale():
    assert gdp_delta(0.0, 0.0) == 0.0
    assert gdp_delta(math.inf, 3.0) == gdp_delta(math.inf, math.inf) == 1.0
    assert gdp_delta(2.0, math.inf) == 0.0
    assert gdp_delta(1.0, 1e6) == 5e-324
    assert gdp_log_delta(1e-300, 1e300) < -1e300
    assert gdp_epsilon(0.0, 1e-5) == 0.0
    assert gdp_epsilon(math.inf, 1e-5) == math.inf
    assert gdp_epsilon(1.0, 0.5) == 0.0
    assert gdp_mu(math.inf, 1e-5) == math.inf
    assert gaussian_sigma(0.0, 1.0, delta=1e-5) == 0.0
    assert gaussian_sigma(1.0, math.inf, delta=1e-5) == 0.0


def test_delta_at_epsilon_zero_is_the_total_variation():
    for mu in MUS:
        assert gdp_delta(mu, 0.0) == pytest.approx(
            math.erf(mu / math.sqrt(8)), rel=1e-12
        )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: gdp_delta(-1.0, 0.0), ValueError),
        (lambda: gdp_delta(math.nan, 0.0), ValueError),
        (lambda: gdp_delta(1.0, -0.1), ValueError),
        (lambda: gdp_delta("1", 0.0), TypeError),
        (lambda: gdp_epsilon(1.0), ValueError),
        (lambda: gdp_epsilon(1.0, 1e-5, log_delta=-3.0), ValueError),
        (lambda: gdp_epsilon(1.0, 0.0), ValueError),
        (lambda: gdp_epsilon(1.0, 1.0), ValueError),
        (lambda: gdp_epsilon(1.0, log_delta=0.0), ValueError),
        (lambda: gdp_mu(1.0, math.nan), ValueError),
        (lambda: gaussian_sigma(math.inf, 1.0, delta=1e-5), ValueError),
    ],
)
def test_what_is_not_a_parameter_is_refused(call, error):
    with pytest.raises(error, match=r"must be|must lie"):
        call()


def test_the_naive_formula_would_lose_its_digits_where_this_one_does_not():
    mu, epsilon = 1e-8, 1e-8
    a, b = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    naive = stats.norm.cdf(a) - math.exp(epsilon) * stats.norm.cdf(b)
    truth = float(mpmath.exp(true_log_delta(mu, epsilon)))
    assert abs(naive / truth - 1) > 1e-9
    assert abs(gdp_delta(mu, epsilon) / truth - 1) < 1e-12


def test_values_are_plain_floats():
    values = (gdp_delta(1, 1), gdp_epsilon(1, 1e-5), gdp_mu(1, 1e-5))
    assert all(type(value) is float for value in values)
    assert not isinstance(values[0], np.floating)


@pytest.mark.parametrize("mu", [5e-324, 1e-322, 1e-320, 1e-310, 1e-300, 1e-40, 1e-31])
def test_the_curve_of_a_tiny_mu_is_its_slope_at_zero_rounded_up(mu):
    # delta(0; mu) = erf(mu / sqrt 8) is mu / sqrt(2 pi) to sixty digits here.
    truth = Fraction(mu) * Fraction("0.39894228040143267793994605993438186847585863116")
    assert Fraction(gdp_delta(mu, 0.0)) >= truth
    expected = math.log(mu) - math.log(2 * math.pi) / 2
    assert 0 <= gdp_log_delta(mu, 0.0) - expected < 2e-11

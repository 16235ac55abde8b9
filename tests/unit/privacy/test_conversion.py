"""Conversions: valid, rounded up, as small as promised; invalid ones refused."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import AssumptionError
from undertow.privacy.conversion import (
    convert,
    gdp_to_approx,
    gdp_to_zcdp,
    pure_to_gdp,
    pure_to_zcdp,
    zcdp_to_approx,
)
from undertow.privacy.divergence import renyi_divergence
from undertow.privacy.gaussian import gdp_delta, gdp_epsilon
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.privacy.tradeoff import (
    ApproxTradeOff,
    GaussianTradeOff,
    PureTradeOff,
)

GRID = np.linspace(0, 1, 200_001)


def mp(value):
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize(
    "epsilon", [1e-9, 0.01, 0.1, 0.99, 1.0, 3.0, 20.0, 200.0, 699.0]
)
def test_pure_to_gdp_is_safe_and_a_billionth_less_is_not(epsilon):
    (square,) = pure_to_gdp(Pure(epsilon)).exact_parameters()
    with mpmath.workdps(700):
        mu = mpmath.sqrt(mp(square))
        kink = 1 / (1 + mpmath.exp(mp(Fraction(str(epsilon)))))

        def gaussian_at_fixed_point(m):
            return mpmath.erfc(m / 2 / mpmath.sqrt(2)) / 2

        assert gaussian_at_fixed_point(mu) <= kink
        assert gaussian_at_fixed_point(mu * (1 - mpmath.mpf("1e-9"))) > kink


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_gaussian_function_lies_below_the_pure_one_everywhere(epsilon):
    mu = pure_to_gdp(Pure(epsilon)).mu
    assert np.all(GaussianTradeOff(mu)(GRID) <= PureTradeOff(epsilon)(GRID) + 1e-15)
    less = GaussianTradeOff(0.99 * mu)(GRID) > PureTradeOff(epsilon)(GRID)
    assert less.any()


@given(st.floats(0.01, 8), st.floats(1.0001, 200))
def test_pure_to_zcdp_covers_every_renyi_order_of_randomized_response(epsilon, alpha):
    keep = 1 / (1 + math.exp(-epsilon))
    divergence = renyi_divergence([keep, 1 - keep], [1 - keep, keep], alpha=alpha)
    assert divergence <= pure_to_zcdp(Pure(epsilon)).rho * alpha + 1e-12


def test_zcdp_of_pure_and_gdp_is_exact():
    assert pure_to_zcdp(Pure("0.3")) == ZCDP("0.045")
    assert gdp_to_zcdp(GDP("0.3")) == ZCDP("0.045")
    assert gdp_to_zcdp(GDP.from_square(3)) == ZCDP("1.5")
    assert pure_to_zcdp(Pure(math.inf)) == ZCDP(math.inf) == gdp_to_zcdp(GDP(math.inf))


@given(st.floats(0.05, 5), st.floats(1.1, 50))
def test_zcdp_of_gdp_is_the_renyi_divergence_of_two_normal_laws(mu, alpha):
    x = np.arange(-12, 12 + alpha * mu, 0.01)
    exponents = alpha * -((x - mu) ** 2) / 2 + (1 - alpha) * -(x**2) / 2
    peak = exponents.max()
    total = math.log(np.exp(exponents - peak).sum() * 0.01 / math.sqrt(2 * math.pi))
    divergence = (peak + total) / (alpha - 1)
    assert divergence == pytest.approx(alpha * gdp_to_zcdp(GDP(mu)).rho, rel=1e-6)


@given(st.floats(0.01, 5), st.sampled_from(["1e-5", "1e-12", "1e-250", "1e-350"]))
def test_gdp_to_approx_keeps_delta_as_given_and_epsilon_safe(mu, delta):
    converted = gdp_to_approx(GDP(mu), delta=delta)
    assert converted.exact_parameters()[1] == Fraction(delta)
    if delta != "1e-350":
        assert gdp_delta(GDP(mu).mu, converted.epsilon) <= float(delta)
    else:
        longer = gdp_epsilon(GDP(mu).mu, log_delta=-350 * math.log(10))
        assert converted.epsilon == pytest.approx(longer, rel=1e-12)


def test_gdp_to_approx_reads_the_curve_in_either_direction():
    there = gdp_to_approx(GDP(1), epsilon="1.5")
    back = gdp_to_approx(GDP(1), delta=there.exact_parameters()[1])
    assert there.exact_parameters()[0] == Fraction(3, 2)
    assert back.epsilon == pytest.approx(1.5, rel=1e-12)
    assert gdp_to_approx(GDP(math.inf), delta="0.1").is_infinite
    assert gdp_to_approx(GDP(0), delta="0.1").epsilon == 0
    assert gdp_to_approx(GDP(math.inf), epsilon=1).no_guarantee


@given(st.floats(1e-6, 50), st.floats(-300, -0.1))
def test_the_standard_zcdp_conversion_is_its_formula_rounded_up(rho, log10_delta):
    delta = Fraction(10.0**log10_delta)
    result = zcdp_to_approx(ZCDP(rho), delta=delta)
    with mpmath.workdps(60):
        r = mp(Fraction(str(rho)))
        truth = r + 2 * mpmath.sqrt(r * mpmath.log(1 / mp(delta)))
        value = mp(result.exact_parameters()[0])
        assert truth <= value <= truth * (1 + mpmath.mpf("1e-13"))


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 3.0, 100.0])
@pytest.mark.parametrize("delta", [0.2, 1e-5, 1e-20])
def test_the_optimal_zcdp_conversion_is_the_infimum_over_all_orders(rho, delta):
    optimal = zcdp_to_approx(ZCDP(rho), delta=delta, method="optimal").epsilon
    alpha = 1 + np.exp(np.linspace(-20, 15, 400_001))
    values = alpha * rho + np.log1p(-1 / alpha)
    values += (math.log(1 / delta) - np.log(alpha)) / (alpha - 1)
    assert optimal == pytest.approx(max(0.0, values.min()), rel=1e-6, abs=1e-9)
    # Every order is valid, so the result may only be above the infimum.
    assert optimal >= values.min() * (1 - 1e-6)


@given(st.floats(1e-4, 30), st.sampled_from([1e-3, 1e-6, 1e-12]))
def test_exact_gaussian_curve_below_optimal_below_standard(rho, delta):
    exact_curve = gdp_to_approx(GDP.from_square(2 * Fraction(str(rho))), delta=delta)
    optimal = zcdp_to_approx(ZCDP(rho), delta=delta, method="optimal")
    standard = zcdp_to_approx(ZCDP(rho), delta=delta)
    assert exact_curve.epsilon <= optimal.epsilon * (1 + 1e-9) + 1e-12
    assert optimal.epsilon <= standard.epsilon


def test_zcdp_conversions_at_their_ends():
    for method in ("standard", "optimal"):
        assert zcdp_to_approx(ZCDP(0), delta="0.1", method=method) == Approx(0, "0.1")
        assert zcdp_to_approx(ZCDP(math.inf), delta="0.1", method=method).is_infinite
    assert zcdp_to_approx(ZCDP("1e-9"), delta="0.5", method="optimal").epsilon == 0
    tiny = zcdp_to_approx(ZCDP("1e-390"), delta="1e-390", method="optimal")
    assert 0 <= tiny.epsilon < 1e-190


@pytest.mark.parametrize(
    ("loss", "to", "expected"),
    [
        (Pure(1), Pure, Pure(1)),
        (Pure("0.1"), Approx, Approx("0.1", 0)),
        (Pure(math.inf), Approx, Approx(math.inf, 0)),
        (Pure(2), ZCDP, ZCDP(2)),
        (Pure(0), GDP, GDP(0)),
        (Pure(math.inf), GDP, GDP(math.inf)),
        (Approx(1, 0), Pure, Pure(1)),
        (Approx(2, 0), ZCDP, ZCDP(2)),
        (Approx(1, "0.1"), Approx, Approx(1, "0.1")),
        (GDP(2), ZCDP, ZCDP(2)),
    ],
)
def test_convert_follows_the_table(loss, to, expected):
    assert convert(loss, to) == expected
    assert convert(loss, to, delta="1e-6") == expected


def test_convert_delegates_what_needs_a_delta():
    assert convert(GDP(1), Approx, delta=1e-5) == gdp_to_approx(GDP(1), delta=1e-5)
    assert convert(ZCDP(1), Approx, delta=1e-5) == zcdp_to_approx(ZCDP(1), delta=1e-5)
    assert convert(Pure(1), GDP) == pure_to_gdp(Pure(1))


@pytest.mark.parametrize(
    ("loss", "to"),
    [
        (Approx(1, "1e-5"), Pure),
        (Approx(1, "1e-5"), GDP),
        (Approx(1, "1e-5"), ZCDP),
        (ZCDP(1), GDP),
        (ZCDP(1), Pure),
        (GDP(1), Pure),
    ],
)
def test_a_conversion_that_is_no_theorem_is_refused_with_its_reason(loss, to):
    with pytest.raises(
        AssumptionError, match=f"convertible to {to.notion}.*: .*; state"
    ):
        convert(loss, to, delta=1e-5)


def test_positive_delta_excludes_every_finite_mu():
    for mu in (0.1, 5.0, 30.0):
        assert GaussianTradeOff(mu)(0.0) > ApproxTradeOff(1.0, 1e-5)(0.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: convert(GDP(1), Approx),
        lambda: convert(ZCDP(1), Approx, delta=0),
        lambda: convert(ZCDP(1), Approx, delta=1),
        lambda: gdp_to_approx(GDP(1)),
        lambda: gdp_to_approx(GDP(1), delta=0.1, epsilon=1),
        lambda: zcdp_to_approx(ZCDP(1), delta=0.1, method="best"),
    ],
)
def test_missing_or_impossible_arguments_are_refused(call):
    with pytest.raises(ValueError, match=r"must (be|lie)"):
        call()


def test_only_losses_and_loss_classes_are_accepted():
    with pytest.raises(TypeError, match="loss must be a Loss"):
        convert(1.0, Pure)
    with pytest.raises(TypeError, match="to must be Pure, Approx, ZCDP or GDP"):
        convert(Pure(1), float)


@pytest.mark.parametrize("rho", ["1e-9", "1e-14", "3e-20", "1e-26"])
@pytest.mark.parametrize("delta", ["1e-10", "1e-5", "0.1"])
def test_the_optimal_conversion_keeps_its_digits_at_tiny_rho(rho, delta):
    with mpmath.workdps(60):
        r, surprise = mpmath.mpf(rho), -mpmath.log(mpmath.mpf(delta))

        def bound(t):
            x = mpmath.exp(t)
            return r * (1 + x) + (surprise - mpmath.log1p(x)) / x - mpmath.log1p(1 / x)

        low, high, golden = mpmath.mpf(-40), mpmath.mpf(80), (mpmath.sqrt(5) - 1) / 2
        for _ in range(200):
            left, right = high - golden * (high - low), low + golden * (high - low)
            low, high = (low, right) if bound(left) <= bound(right) else (left, high)
        truth = max(bound((low + high) / 2), mpmath.mpf(0))
    (epsilon, _) = zcdp_to_approx(
        ZCDP(rho), delta=delta, method="optimal"
    ).exact_parameters()
    got = mpmath.mpf(epsilon.numerator) / epsilon.denominator
    assert truth <= got <= truth * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(10) ** -30


def test_losses_beyond_the_floats_convert_to_no_promise():
    for method in ("standard", "optimal"):
        assert zcdp_to_approx(ZCDP("1e350"), delta="1e-5", method=method).is_infinite
    assert convert(GDP("1e380"), Approx, delta="1e-5").is_infinite


@pytest.mark.parametrize("epsilon", ["1e-400", "5e-324", "1e-310", "1e-9"])
def test_pure_to_gdp_of_a_tiny_epsilon_is_its_slope_at_zero_rounded_up(epsilon):
    square = pure_to_gdp(Pure(epsilon)).exact_parameters()[0]
    exact_slope = mpmath.sqrt(mpmath.pi / 2) * mpmath.mpf(epsilon)
    mu = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
    assert exact_slope <= mu <= exact_slope * (1 + mpmath.mpf(10) ** -14)


def test_the_gaussian_price_of_a_pure_loss_is_convex():
    """Several changes at once are priced at a corner, which needs convexity."""
    with mpmath.workdps(60):
        for x in [mpmath.mpf(10) ** k for k in range(-6, 3)] + list(range(1, 60)):
            p = 1 / (1 + mpmath.exp(-x))
            tail = 1 - p
            root = mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
            density = mpmath.npdf(root)
            slope = p * tail / density
            assert (1 + root**2) * slope >= root * (p - tail)
            # The tail bound the proof rests on.
            assert tail >= root * density / (1 + root**2)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "0.3", "1", "4", "20"])
def test_the_middle_of_two_pure_losses_costs_at_most_their_mean_in_gdp(epsilon):
    low, high = Fraction(epsilon), 3 * Fraction(epsilon)
    square = [
        pure_to_gdp(Pure(value)).exact_parameters()[0]
        for value in (low, (low + high) / 2, high)
    ]
    # Conversions are rounded up, by far less than this.
    assert square[1] <= (square[0] + square[2]) / 2 * (1 + Fraction(1, 10**12))

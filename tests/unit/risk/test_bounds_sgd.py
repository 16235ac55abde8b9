"""DP-SGD: adjacency, the zero-out reference and the calibrated noise."""

from __future__ import annotations

import math

import pytest
from scipy import integrate, stats

from undertow.risk.bounds import (
    calibrate_sgd,
    sgd_bound,
    sgd_mu,
    uniform_gaussian_bound,
    zero_out_bound,
)


def orthogonal_advantage(mu, m):
    """Name one of m orthogonal gradients of full norm, by quadrature."""
    success, _ = integrate.quad(
        lambda t: stats.norm.pdf(t - mu) * stats.norm.cdf(t) ** (m - 1), -12, 12 + mu
    )
    return success - 1 / m


def opposite_advantage(mu):
    """Tell two opposite gradients of full norm apart."""
    return stats.norm.cdf(mu) - 0.5


@pytest.mark.parametrize("m", [2, 3, 10])
@pytest.mark.parametrize("sigma", [3.0, 10.0, 40.0])
def test_orthogonal_gradients_never_beat_the_guarantee(m, sigma):
    exact = orthogonal_advantage(10 / sigma, m)
    assert exact <= sgd_bound(sigma, 100, size=m).value + 1e-9
    known = zero_out_bound(sigma, 100, best_guess=1 / m, worst_guess=1 / m)
    assert exact <= known.value + 1e-9


@pytest.mark.parametrize("sigma", [3.0, 10.0, 40.0])
def test_opposite_gradients_attain_the_zero_out_reference_on_two_records(sigma):
    bound = sgd_bound(sigma, 100, size=2)
    assert bound.value == pytest.approx(opposite_advantage(10 / sigma), rel=1e-9)


def test_replacing_counts_twice():
    assert sgd_mu(7.0, 9) == pytest.approx(6 / 7, rel=1e-14)
    assert sgd_mu(7.0, 9, adjacency="add_remove") == pytest.approx(3 / 7, rel=1e-14)
    assert sgd_mu(7.0, 9) >= 6 / 7


def test_the_guarantee_is_the_smaller_of_two():
    for sigma in (0.5, 5.0, 50.0):
        sharp = uniform_gaussian_bound(sgd_mu(sigma, 100), 10).value
        zero = zero_out_bound(sigma, 100, best_guess=0.1, worst_guess=0.1).value
        value = sgd_bound(sigma, 100, size=10).value
        assert value == pytest.approx(min(sharp, zero, 0.9), rel=1e-9)


def test_zero_out_pays_for_the_gap_between_the_guesses():
    flat = zero_out_bound(30.0, 100, best_guess=0.3, worst_guess=0.3).value
    skew = zero_out_bound(30.0, 100, best_guess=0.3, worst_guess=0.1).value
    assert skew - flat == pytest.approx(0.2, abs=1e-9)
    with pytest.raises(ValueError, match="worst_guess"):
        zero_out_bound(30.0, 100, best_guess=0.1, worst_guess=0.2)


@pytest.mark.parametrize("knowledge", ["none", "any"])
@pytest.mark.parametrize("adjacency", ["replace", "add_remove"])
@pytest.mark.parametrize("target", [1e-4, 0.2, 0.85])
def test_calibrated_noise_is_safe_and_cannot_be_lowered(knowledge, adjacency, target):
    options = {"size": 10, "knowledge": knowledge, "adjacency": adjacency}
    answer = calibrate_sgd(target, 100, **options)
    assert answer.achieves.value <= target
    assert sgd_bound(answer.value * (1 - 1e-9), 100, **options).value > target


def test_other_routes_are_named_with_the_noise_they_ask_for():
    answer = calibrate_sgd(0.1, 100, size=10)
    others = {a.name: a for a in answer.alternatives}
    expected = {
        "Theorem 5.11(c), uniform prior": 39.5251,
        "Theorem 5.11, uniform prior": 43.8663,
        "Theorem 5.2": 71.5767,
        "Example 5.17 as printed": 21.9332,
    }
    assert {name: a.parameter for name, a in others.items()} == pytest.approx(
        expected, abs=1e-4
    )
    for name, other in others.items():
        printed = name == "Example 5.17 as printed"
        assert other.reason.startswith("not a guarantee") == printed
        assert printed or other.parameter >= answer.value
    known = calibrate_sgd(0.1, 100, size=10, knowledge="any").alternatives
    assert [a.name for a in known] == ["Example 5.17 as printed"]
    source = calibrate_sgd(0.1, 100, size=10, adjacency="add_remove").alternatives
    assert source[0].name == "zero-out reference"
    assert source[0].parameter == answer.value
    assert not any("not a guarantee" in a.reason for a in source)


def test_a_route_that_rounding_alone_closes_says_so():
    answer = calibrate_sgd(5e-17, 1, size=2)
    (closed,) = (a for a in answer.alternatives if a.parameter is None)
    assert closed.name == "zero-out reference"
    assert "not reachable" in closed.reason


def test_a_target_that_never_binds_needs_no_noise():
    answer = calibrate_sgd(0.9, 100, size=10)
    assert answer.value == 0
    assert answer.achieves.value <= 0.9
    assert sgd_bound(1e-3, 100, size=1).value == 0


def test_the_printed_example_says_that_it_is_no_guarantee():
    for knowledge in ("none", "any"):
        bound = sgd_bound(
            22.0, 100, size=10, knowledge=knowledge, adjacency="add_remove"
        )
        assert "not a guarantee" in bound.theorem
        assert any("not a guarantee" in text for text in bound.unchecked)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sgd_mu(0.0, 1), "noise_multiplier"),
        (lambda: sgd_mu(1.0, 0), "steps"),
        (lambda: sgd_mu(1.0, 1, adjacency="swap"), "adjacency"),
        (lambda: sgd_bound(1.0, 1, size=2, knowledge="label"), "knowledge"),
        (lambda: calibrate_sgd(0.0, 1, size=2), "target"),
        (lambda: sgd_mu(math.nan, 1), "noise_multiplier"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

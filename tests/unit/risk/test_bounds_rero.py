"""Bounds on reconstruction success."""

from __future__ import annotations

import math

import pytest

from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.privacy import GDP, Approx, Pure, PureTradeOff
from undertow.risk.bounds import (
    calibrate_success,
    success_advantage_bound,
    success_bound,
)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 30.0, 900.0])
@pytest.mark.parametrize("guess", [0.0, 0.01, 0.5, 1.0])
def test_pure_success_is_the_smaller_of_ratio_and_trade_off(epsilon, guess):
    ratio = guess * math.exp(min(epsilon, 600))
    curve = 1 - float(PureTradeOff(epsilon)(guess))
    value = success_bound(Pure(epsilon), best_guess=guess).value
    assert value == pytest.approx(min(1.0, ratio, curve), abs=1e-12)


def test_randomized_response_attains_the_ratio():
    m, e = 5, math.exp(0.2)
    success = e / (e + m - 1)
    assert success_bound(Pure(0.2), best_guess=1 / m).value >= success


def test_success_with_knowledge_is_refused():
    with pytest.raises(AssumptionError, match="variation_bound"):
        success_bound(Pure(1), best_guess=0.1, knowledge=True)


def test_advantage_is_success_less_the_worst_guess():
    bound = success_advantage_bound(0.6, worst_guess=0.25)
    assert bound.value == pytest.approx(0.35)
    assert success_advantage_bound(0.1, worst_guess=0.2).value == 0
    named = success_advantage_bound(
        success_bound(Approx(1, 0.01), best_guess=0.1), worst_guess=0.1
    )
    assert "Equation 2.6" in named.theorem


@pytest.mark.parametrize("target", [0.1001, 0.3, 0.9, 0.9999])
def test_calibration_inverts_the_bound(target):
    answer = calibrate_success(target, best_guess=0.1)
    assert answer.achieves.value <= target
    above = success_bound(Pure(answer.value * (1 + 1e-9)), best_guess=0.1)
    assert above.value > target


def test_calibration_knows_its_limits():
    assert calibrate_success(1.0, best_guess=0.1).value == math.inf
    with pytest.raises(InfeasibleTarget, match="without any output") as refused:
        calibrate_success(0.05, best_guess=0.1)
    assert refused.value.least == pytest.approx(0.1)


def test_gaussian_success_follows_its_curve():
    value = success_bound(GDP("0.924931"), best_guess=0.125).value
    assert value == pytest.approx(0.410827, abs=1e-6)

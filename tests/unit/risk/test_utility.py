"""Utility of a parameter and at equal risk, against formulas written out here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from undertow.risk.calibration import calibrate
from undertow.risk.channel import Channel
from undertow.risk.families import (
    blh,
    finite,
    gaussian,
    grr,
    laplace,
    olh,
    oue,
    she,
    ss,
    the,
)
from undertow.risk.threat import Prior, Threat
from undertow.risk.utility import utility_at, utility_at_equal_risk


def test_noise_is_worth_its_error_at_the_confidence():
    found = utility_at(laplace(range(11)), 2.0)
    assert found.kind == "error"
    assert found.value == pytest.approx(math.log(20) * 10 / 2, rel=1e-12)
    noise = utility_at(gaussian(range(11)), 3.0, confidence=0.9)
    assert noise.value == pytest.approx(3 * norm.ppf(0.95), rel=1e-12)
    assert "0.9 of answers" in noise.summary


def test_reports_are_worth_the_spread_of_a_share():
    found = utility_at(oue(10), 1.0, users=1000)
    p, q = 0.5, 1 / (math.e + 1)
    variance = (0.1 * p * (1 - p) + 0.9 * q * (1 - q)) / (1000 * (p - q) ** 2)
    assert found.kind == "deviation"
    assert found.value == pytest.approx(math.sqrt(variance), rel=1e-9)
    assert utility_at(she(10), 1.0).value > 0
    larger = utility_at(ss(10), 1.0, structure=4)
    assert larger.value != utility_at(ss(10), 1.0).value


def test_what_has_no_utility_says_none():
    assert utility_at(grr(3), 20_000.0) is None
    assert utility_at(gaussian(range(3)), math.inf) is None
    assert utility_at(finite(lambda e: Channel(np.eye(2)), 2), math.inf) is None
    assert utility_at(finite(lambda e: Channel(np.eye(2)), 2), 1.0) is None
    with pytest.raises(ValueError, match="confidence must be in"):
        utility_at(grr(3), 1.0, confidence=1.0)
    with pytest.raises(ValueError, match="users must be"):
        utility_at(grr(3), 1.0, users=0)


@pytest.mark.parametrize(
    ("make", "keep", "false"),
    [(grr, 1, 0), (oue, 0.5, 0), (the, 2 / 3, 0), (blh, 1, 0.5), (olh, 0.5, 0)],
    ids=["grr", "oue", "the", "blh", "olh"],
)
def test_the_limit_is_what_large_levels_approach(make, keep, false):
    found = utility_at(make(10), math.inf, users=400)
    variance = 0.1 * keep * (1 - keep) + 0.9 * false * (1 - false)
    expected = math.sqrt(variance / 400) / (keep - false)
    assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert utility_at(make(10), 15.0, users=400).value >= found.value
    assert "in the limit" in found.summary
    assert utility_at(gaussian(range(3)), 0.0).value == 0.0


@pytest.mark.parametrize("size", [2, 10, 37])
def test_equal_risk_is_equal_risk(size):
    targets = np.linspace(0.02, 0.98 * (1 - 1 / size), 9)
    table = utility_at_equal_risk(targets, size, sensitivity=3.0)
    family = laplace(np.linspace(0, 3, size))
    threat = Threat(Prior.uniform(size))
    for k, target in enumerate(targets):
        risk = family.risk(float(table.epsilon[k]), threat).value
        assert risk == pytest.approx(target, rel=1e-9)
        assert table.error[k] == pytest.approx(3 * math.log(20) / table.epsilon[k])
        if target > 1 / size:
            e = table.success_epsilon[k]
            top = min(math.exp(e) / size, 1 - math.exp(-e) * (1 - 1 / size))
            assert top == pytest.approx(target, rel=1e-9)


def test_the_trade_off_of_laplace_allows_no_less_than_that_of_pure_dp():
    table = utility_at_equal_risk(np.linspace(0.15, 0.89, 20), 10)
    assert (table.laplace_epsilon >= table.success_epsilon * (1 - 1e-12)).all()
    # 1 - f(1/10) by the most powerful test between two shifted Laplace laws
    for e, target in zip(table.laplace_epsilon, table.targets, strict=True):
        if math.exp(e) / 10 > 0.5:
            assert 1 - math.exp(-e) / (4 * 0.1) == pytest.approx(target, rel=1e-9)
        else:
            assert math.exp(e) / 10 == pytest.approx(target, rel=1e-9)


def test_targets_below_the_blind_guess_have_no_success_level():
    table = utility_at_equal_risk([0.05, 0.1], 10)
    assert np.isnan(table.success_epsilon[0])
    assert table.success_error.tolist() == [math.inf, math.inf]
    plain = table.to_dict()
    assert plain["success_epsilon"][0] is None
    assert plain["success_error"][0] == "inf"
    with pytest.raises(ValueError, match="must be positive"):
        utility_at_equal_risk(0.0, 10)


TEN = Threat(Prior.uniform(10))


def chosen(family, threat, target, **options):
    return calibrate(family, threat, advantage=target, alternatives=False, **options)


@pytest.mark.parametrize("make", [grr, oue, ss, blh])
def test_a_vanishing_target_has_no_utility_left(make):
    found = chosen(make(10), TEN, 1e-300)
    assert 0 < found.value < 1e-290
    assert found.utility.value == math.inf
    assert utility_at(gaussian(range(10)), 1e300).value > 1e299

"""Targets of a calibration: tiny ones, touching ones, and those that do not bind."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from undertow.errors import InfeasibleTarget
from undertow.numeric.search import greatest_level, raise_level
from undertow.risk.calibration import RiskCalibration, _scanned, calibrate, compare
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.families import (
    FAMILIES,
    blh,
    finite,
    gaussian,
    grr,
    laplace,
    she,
    ss,
)
from undertow.risk.families.base import answers_advantage
from undertow.risk.families.local import bit_sums
from undertow.risk.finite import Risk
from undertow.risk.success import Success
from undertow.risk.threat import Prior, Threat

TEN = Threat(Prior.uniform(10))


def chosen(family, threat, target, **options):
    return calibrate(family, threat, advantage=target, alternatives=False, **options)


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
@pytest.mark.parametrize("target", [1e-15, 1e-9, 1e-4, 0.2])
def test_epsilon_of_a_gaussian_never_stands_for_too_little_noise(delta, target):
    answers = np.arange(1001.0)
    family = gaussian(answers, parameter="epsilon", delta=delta)
    threat = Threat(Prior.uniform(1001))
    if target < family.least(family.curve(threat)):
        with pytest.raises(InfeasibleTarget):
            chosen(family, threat, target)
        return
    found = chosen(family, threat, target)
    with mpmath.workdps(40):
        gap = 1 / (mpmath.mpf(family.noise(found.value)) * mpmath.sqrt(8))
        risk = mpmath.mpf(1000) / 1001 * mpmath.erf(gap)
        assert risk <= mpmath.mpf(target)


def test_running_sums_over_a_million_records_do_not_drift():
    # Half of the records are three times as likely: a plain running sum is 1e-11 low.
    size = 1_000_000
    weights = np.ones(size)
    weights[: size // 2] = 3.0
    prior = Prior(size, weights / weights.sum())
    pi = np.sort(prior.pmf)
    # With q = 1/2 only the last places count: sum of 2^-(m-i-1) pi_i (above + below/2).
    exact = Fraction(0)
    below = Fraction(math.fsum(pi[:-120]))
    above = [Fraction(0)]
    for p in pi[:-121:-1]:
        above.append(above[-1] + Fraction(p))
    for back, p in enumerate(pi[-120:]):
        place = 119 - back
        term = above[place] + below / 2
        exact += Fraction(2) ** (1 - place) * Fraction(p) * term
        below += Fraction(p)
    found = float(bit_sums(Threat(prior), np.array([0.5]), full=False)[0])
    assert found == pytest.approx(float(exact), rel=5e-13)
    target = 1e-7
    level = chosen(blh(size), Threat(prior), target).value
    assert math.tanh(level / 2) / 2 * float(exact) <= target


def test_a_scan_never_returns_a_level_beyond_one_that_fails():
    def drop(epsilon):  # large at every level below a half, small after it
        gap = 0.5 if epsilon < 0.5 else 0.05
        return Channel([[0.5 + gap / 2, 0.5 - gap / 2], [0.5 - gap / 2, 0.5 + gap / 2]])

    two = Threat(Prior.uniform(2))
    with pytest.raises(InfeasibleTarget, match=r"greater than 0\.25"):
        chosen(finite(drop, 2), two, 0.1)
    late = chosen(finite(drop, 2), two, 0.1, choose="largest")
    assert late.value > 0.5
    assert "not proved monotone" in " ".join(late.warnings)
    assert _scanned(lambda level: 1.0 if level < 0.1 else 0.0, 0.5, last=False) == 0.0


def test_a_safe_size_holds_where_the_floor_rule_keeps_the_size_before():
    # Four records: below 1e-9 the rule still says two, whose membership risk is larger.
    threat = Threat.membership(Prior.uniform(4))
    found = chosen(ss(4), threat, 1.9e-10)
    below = np.linspace(1e-12, found.value, 500)
    assert ss(4).curve(threat).values(below, None).max() <= 1.9e-10


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "the", "ss"])
def test_what_a_family_never_reaches_does_not_bind(name):
    family, prior = FAMILIES[name](4), Prior.uniform(4)
    parity = Threat(prior, Success.attribute(lambda record: record % 2))
    most = {"grr": 0.5, "sue": 0.5, "ss": 0.5, "oue": 0.25, "the": 1 / 3}[name]
    above = chosen(family, parity, most + 1e-3)
    assert (above.value, above.binding, above.shown) == (math.inf, False, "any")
    assert f"{name.upper()} has at most" in above.method
    below = chosen(family, parity, most - 1e-3)
    assert below.binding
    assert most - 2e-3 < family.risk(below.value, parity).value <= most - 1e-3
    blind = chosen(family, Threat(prior, Success.within("absolute", 9)), 0.1)
    assert not blind.binding


def test_equal_answers_limit_what_noise_can_leave():
    threat = Threat(Prior(4, [0.4, 0.3, 0.2, 0.1]))
    family = laplace([0.0, 0.0, 1.0, 1.0])
    plain = Channel([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    most = advantage(plain, threat).value
    assert answers_advantage(family.answers, threat) == pytest.approx(most, rel=1e-12)
    assert not chosen(family, threat, most + 1e-6).binding
    assert chosen(family, threat, most - 1e-6).binding


@pytest.mark.parametrize("target", [0.95, 1.0, 3.0, math.inf])
def test_a_target_beyond_every_risk_is_met_with_all_alternatives(target):
    found = calibrate(grr(10), TEN, advantage=target)
    assert found.value == math.inf
    assert all(a.parameter == math.inf for a in found.alternatives[:2])


def test_a_table_has_no_structure_where_nothing_binds():
    table = calibrate(ss(10), TEN, advantage=[0.1, 0.95])
    assert table.structure.tolist() == [2, 0]


def test_response_on_a_line_of_many_records_is_exact():
    threat = Threat(Prior.uniform(range(30_000)), Success.within("absolute", 3))
    found = chosen(grr(30_000), threat, 0.1)
    assert found.exact
    # A guess near an end that holds the truth hits least; inside, seven records.
    inner = 1 - 7 / 30_000
    assert found.achieves.value == pytest.approx(0.1, rel=1e-9)
    assert grr(30_000).curve(threat).limit == pytest.approx(inner, rel=1e-6)


def test_one_safe_level_of_a_large_skew_prior_needs_few_sizes():
    weights = np.arange(1.0, 20_001.0)
    threat = Threat(Prior(20_000, weights / weights.sum()))
    found = chosen(ss(20_000), threat, 0.1)
    size = found.structure["subset"]
    assert ss(20_000).risk(found.value, threat, structure=size).value <= 0.1
    above = ss(20_000).risk(found.value * (1 + 1e-6), threat).value
    assert above > 0.1


def test_the_engine_is_asked_a_dozen_times():
    calls = []

    def risk(level):
        calls.append(level)
        return 0.9 * -math.expm1(-level / 3.0)

    level = greatest_level(risk, 0.2, least=1e-9, largest=1e4, start=0.05)
    assert len(calls) <= 16
    assert 0.2 * (1 - 1.1e-10) <= 0.9 * -math.expm1(-level / 3.0) <= 0.2

    def jump(level):
        return 0.1 if level < 2.0 else 0.6

    assert raise_level(jump, 0.2, 1.0, 3.0) == pytest.approx(2.0, rel=1e-11)
    assert greatest_level(lambda level: 0.0, 0.2, least=1e-9, largest=50.0) == 50.0


@pytest.mark.parametrize(
    ("parameter", "value", "shown"),
    [
        ("epsilon", 4.72059999, "4.7205"),
        ("epsilon", math.nextafter(0.8109, 0), "0.8108"),
        ("sigma", math.nextafter(1.7717, 2), "1.7718"),
        ("sigma", 1.77161, "1.7717"),
        ("epsilon", 1.23456e-7, "1.2345e-7"),
        ("sigma", 1.23451e14, "1.2346e+14"),
        ("scale", 2e-5, "2.0001e-5"),
    ],
)
def test_what_is_shown_lies_on_the_private_side(parameter, value, shown):
    found = RiskCalibration(parameter, value, Risk(0.1, "none"), "none")
    assert found.shown == shown
    exact = Fraction(found.shown)
    assert exact <= Fraction(value) if parameter == "epsilon" else exact >= value


@pytest.mark.parametrize(
    "target", [True, np.True_, "0.1", None, ["a"], np.array([True]), 0.1j]
)
def test_a_target_must_be_a_number(target):
    with pytest.raises(TypeError, match="must be a number or a list of numbers"):
        calibrate(grr(10), TEN, advantage=target)
    with pytest.raises(TypeError, match="advantage must be"):
        compare([grr(10)], TEN, advantage=target)


def test_a_comparison_has_one_target():
    with pytest.raises(TypeError, match="must be one number"):
        compare([grr(10)], TEN, advantage=[0.1])


def test_refusals_name_a_way_out_that_exists():
    with pytest.raises(InfeasibleTarget, match="raise the target"):
        chosen(she(10), TEN, 1e-15)
    noisy = gaussian(range(10), parameter="epsilon", delta=0.1)
    with pytest.raises(InfeasibleTarget, match="lower delta"):
        chosen(noisy, TEN, 1e-4)
    with pytest.raises(ValueError, match="structure must be None for grr"):
        grr(10).risk(1.0, TEN, structure=3)
    with pytest.raises(ValueError, match="subset must be"):
        ss(10).risk(1.0, TEN, structure=10)

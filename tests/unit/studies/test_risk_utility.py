"""Figure 5.2: levels and errors by advantage and by success."""

from __future__ import annotations

import math
from functools import cache

import pytest

from undertow_studies import Curve, Inputs
from undertow_studies.risk_theory import FIGURE_5_2

# Risk: error by RAD, by ReRo, by ReRo with the curve of the Laplace mechanism.
ERRORS = {
    0.05: (2.9117, math.inf, math.inf),
    0.15: (0.9128, 7.3884, 7.3884),
    0.2: (0.6622, 4.3219, 4.3219),
    0.3: (0.4105, 2.7268, 2.7268),
    0.5: (0.2052, 1.8614, 1.8614),
    0.7: (0.1107, 1.5395, 1.4129),
    0.8: (0.0757, 1.4406, 1.1861),
}


@cache
def curves() -> dict[str, Curve]:
    result = FIGURE_5_2.run(Inputs({}))
    assert {c.status for c in result.checks} == {"match"}
    return {c.label: c for panel in result.panels for c in panel.curves}


def at(label: str, x: float) -> float:
    curve = curves()[label]
    return next(b for a, b in zip(curve.x, curve.y, strict=True) if abs(a - x) < 1e-9)


@pytest.mark.parametrize("risk", ERRORS)
def test_AT_2_the_errors_at_equal_risk(risk):
    labels = ("RAD", "ReRo", "ReRo, Laplace curve")
    for label, value in zip(labels, ERRORS[risk], strict=True):
        assert at(label, risk) == pytest.approx(value, abs=6e-5), label


def test_AT_2_calibration_by_advantage_is_always_more_accurate():
    for label in ("ReRo", "ReRo, Laplace curve"):
        pairs = zip(curves()["RAD"].y, curves()[label].y, strict=True)
        assert all(ours < theirs for ours, theirs in pairs)


def test_trap_r05_the_level_for_ten_records_does_not_protect_two():
    assert at("two records", 0.1) == pytest.approx(0.3268, abs=5e-5)
    assert at("two records", 0.1) > 3 * at("target", 0.1)

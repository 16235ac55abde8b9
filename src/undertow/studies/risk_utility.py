"""Figure 5.2 of the thesis: the error of a query calibrated by its risk."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from undertow.errors import InfeasibleTarget
from undertow.mechanisms import laplace_accuracy, laplace_scale
from undertow.privacy.tradeoff import LaplaceTradeOff
from undertow.risk.bounds import calibrate_success, success_bound
from undertow.risk.scalar import calibrate_laplace_level, laplace_pair_advantage
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow.studies.risk_theory import ADVANTAGE_LABEL
from undertow.studies.thesis_bounds import finished, stated

__all__ = ["RISK_UTILITY"]

_RECORDS, _BETA = 10, 0.05
_TARGETS = tuple(float(g) for g in np.arange(0.01, 0.8901, 0.01))


def _error(epsilon: float) -> float:
    """Return the 95 % error bound of a query of sensitivity 1; infinite without level.

    A level that is not positive, or nan, is none.
    """
    if not epsilon > 0:
        return math.inf
    return laplace_accuracy(laplace_scale(1, epsilon), _BETA)


def _by_advantage(target: float) -> float:
    return calibrate_laplace_level(target, records=_RECORDS).value


def _by_success(target: float) -> float:
    """Return the level at which reconstruction succeeds that often, or nan."""
    try:
        return calibrate_success(target, best_guess=1 / _RECORDS).value
    except InfeasibleTarget:
        return math.nan


def _by_laplace_curve(target: float) -> float:
    from scipy.optimize import brentq

    def excess(epsilon: float) -> float:
        curve = LaplaceTradeOff(epsilon)
        return success_bound(curve, best_guess=1 / _RECORDS).value - target

    return float(brentq(excess, 1e-9, 50.0)) if excess(1e-9) < 0 else math.nan


def _figure_5_2(inputs: Inputs) -> StudyResult:
    rules: dict[str, Callable[[float], float]] = {
        "RAD": _by_advantage,
        "ReRo": _by_success,
        "ReRo, Laplace curve": _by_laplace_curve,
    }
    levels = {name: [rule(g) for g in _TARGETS] for name, rule in rules.items()}
    errors = tuple(
        Curve(name, _TARGETS, tuple(_error(e) for e in found))
        for name, found in levels.items()
    )
    twins = tuple(laplace_pair_advantage(1, 1 / e) for e in levels["RAD"])
    panels = [
        Panel("ten records, Δ = 1", errors, "risk γ", "error α at 95 %", y_log=True),
        Panel(
            "the level for ten records, on two",
            (
                Curve("two records", _TARGETS, twins),
                Curve("target", _TARGETS, _TARGETS, kind="baseline"),
            ),
            "risk γ aimed at",
            ADVANTAGE_LABEL,
        ),
    ]
    return finished(FIGURE_5_2, panels, _utility_checks(errors))


def _utility_checks(errors: tuple[Curve, ...]) -> list[Check]:
    ours, *theirs = errors
    better = all(
        a < b
        for curve in theirs
        for g, a, b in zip(_TARGETS, ours.y, curve.y, strict=True)
        if 0.105 < g < 0.9
    )
    none = all(math.isnan(_by_success(g)) for g in (0.05, 0.09))
    twin = _by_advantage(0.1)
    return [
        stated(
            "calibrating by RAD has the smaller error for every risk",
            better and none,
            "from 0.11 to 0.89; below κ⁺ = 0.1 no noise satisfies ReRo",
        ),
        *(
            compare(
                f"error at risk {g:g}, by RAD",
                math.log(20) / (-18 * math.log(1 - g * 10 / 9)),
                _error(_by_advantage(g)),
                note="published: Example 5.7, solved for ε",
            )
            for g in (0.1, 0.2, 0.5)
        ),
        *(
            compare(
                f"error at risk {g:g}, by ReRo",
                math.log(20) / math.log(10 * g),
                _error(_by_success(g)),
                note="published: Equation 2.6 at κ⁺ = 0.1, solved for ε",
            )
            for g in (0.2, 0.5)
        ),
        compare(
            "advantage on two records at the level for risk 0.1 on ten",
            0.5 * -math.expm1(-twin / 2),
            laplace_pair_advantage(1, 1 / twin),
            note="published: Example 5.7 for two records, evaluated; the gain holds "
            "for the prior and the threshold that were declared, and no others",
        ),
    ]


FIGURE_5_2 = Study(
    "figure-5.2",
    "error of the Laplace mechanism calibrated by RAD and by ReRo",
    "Guerra-Balboa (2026), Figure 5.2",
    _figure_5_2,
)
RISK_UTILITY = (FIGURE_5_2,)

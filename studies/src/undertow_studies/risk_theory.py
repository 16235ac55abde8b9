"""Chapter 5 of the thesis: five mechanisms at the same level, and at the same risk.

Figures 5.1 and 5.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np

from undertow.errors import InfeasibleTarget
from undertow.mechanisms import laplace_accuracy, laplace_scale
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedUnary,
    SubsetSelection,
    grr_level,
    oue_advantage,
    oue_variation,
)
from undertow.privacy import GDP, Loss, Pure, gdp_mu
from undertow.privacy.tradeoff import LaplaceTradeOff, TradeOff
from undertow.risk.bounds import calibrate_success, success_bound, variation_bound
from undertow.risk.scalar import (
    calibrate_laplace_level,
    gaussian_placement_advantage,
    laplace_pair_advantage,
    laplace_placement_advantage,
)
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow_studies.thesis_bound import finished, stated

EPSILON_LABEL = "privacy parameter ε"
ADVANTAGE_LABEL = "advantage RAD"

# The delta of Figure 5.3, taken for the Gaussian of Figure 5.1, which prints none.
_DELTA = 1e-5
_RECORDS = 11
_GRID = tuple(float(e) for e in (0.01, *np.arange(0.1, 14.05, 0.1)))
_ORDER = ("Gaussian", "Laplace", "OUE", "SS", "GRR")

Risk = Callable[[float], float]


def _exact() -> Mapping[str, Risk]:
    m = _RECORDS
    return {
        "GRR": lambda e: GeneralizedResponse(m, e).advantage_bound().value,
        "SS": lambda e: SubsetSelection(m, e).advantage_bound().value,
        "OUE": lambda e: OptimizedUnary(m, e).advantage_bound().value,
        "Laplace": lambda e: laplace_placement_advantage(m, e),
        "Gaussian": lambda e: gaussian_placement_advantage(m, gdp_mu(e, _DELTA)),
    }


def _by_variation() -> Mapping[str, Risk]:
    m = _RECORDS

    def bound(guarantee: Loss | TradeOff | float) -> float:
        return variation_bound(guarantee, collision=1 / m).value

    return {
        "GRR": lambda e: bound(GeneralizedResponse(m, e).total_variation()),
        "SS": lambda e: bound(SubsetSelection(m, e).total_variation()),
        "OUE": lambda e: bound(OptimizedUnary(m, e).total_variation()),
        "Laplace": lambda e: bound(LaplaceTradeOff(e)),
        "Gaussian": lambda e: bound(GDP(gdp_mu(e, _DELTA))),
    }


def _by_level(epsilon: float) -> float:
    return variation_bound(Pure(epsilon), collision=1 / _RECORDS, sharpen=False).value


def _figure_5_1(inputs: Inputs) -> StudyResult:
    exact, worst = _exact(), _by_variation()
    table = {name: tuple(risk(e) for e in _GRID) for name, risk in exact.items()}
    above = {name: tuple(risk(e) for e in _GRID) for name, risk in worst.items()}
    level = tuple(_by_level(e) for e in _GRID)
    alone = Curve("ε alone", _GRID, level, kind="baseline")
    panels = [
        Panel(name, curves, EPSILON_LABEL, ADVANTAGE_LABEL)
        for name, curves in (
            ("no knowledge, exact (Theorem 5.3)", _curves(table)),
            ("any knowledge (Theorem 5.2)", (*_curves(above), alone)),
        )
    ]
    checks = [
        *_order_checks(table, above, level),
        *_crossing_checks(exact),
        *_example_checks(exact),
        *_grr_checks(),
    ]
    return finished(FIGURE_5_1, panels, checks)


def _curves(values: Mapping[str, tuple[float, ...]]) -> tuple[Curve, ...]:
    return tuple(Curve(name, _GRID, y) for name, y in values.items())


def _order_checks(
    table: Mapping[str, tuple[float, ...]],
    above: Mapping[str, tuple[float, ...]],
    level: tuple[float, ...],
) -> list[Check]:
    slack = 1 + 1e-9
    small = [j for j, e in enumerate(_GRID) if e <= 13.8]
    ordered = all(
        table[less][j] <= table[more][j] * slack
        for less, more in itertools.pairwise(_ORDER)
        for j in small
    )
    below = all(
        table[name][j] <= above[name][j] * slack <= level[j] * slack * slack
        for name in _ORDER
        for j in range(len(_GRID))
    )
    equal = max(abs(a / b - 1) for a, b in zip(table["GRR"], above["GRR"], strict=True))
    return [
        stated(
            "Theorem 5.3 is never above Theorem 5.2 with the total variation, nor that "
            "above Theorem 5.2 with ε alone",
            below,
            f"for GRR the first two are equal, to {equal:.0e}",
        ),
        stated(
            "Gaussian below Laplace below OUE below SS below GRR up to ε = 13.8",
            ordered,
            "without knowledge, under a uniform prior; SS jumps where its subsets "
            "shrink, and is GRR from ε = ln 4.5 on",
        ),
    ]


def _crossing_checks(exact: Mapping[str, Risk]) -> list[Check]:
    from scipy.optimize import brentq

    def gap(epsilon: float) -> float:
        return exact["OUE"](epsilon) - exact["Laplace"](epsilon)

    low, high = brentq(gap, 1e-3, 1e-2), brentq(gap, 13, 14, xtol=1e-12)
    inside = all(gap(e) >= 0 for e in _GRID if low < e < high)
    return [
        Check(
            "where Laplace is below OUE, 11 records",
            "all ε in [0, 14]",
            f"ε from {low:.4g} to {high:.6f}",
            "erratum" if inside and gap(14.0) < 0 else "differs",
            f"at ε = 14 Laplace is above, {exact['Laplace'](14):.6f} to "
            f"{exact['OUE'](14):.6f}",
            "RE21" if inside and gap(14.0) < 0 else "",
        ),
        compare(
            "limit of OUE for ε → ∞, no knowledge, 11 records",
            5 / 11,
            oue_advantage(_RECORDS, math.inf),
            note="published: (m - 1)/(2m), evaluated",
        ),
        compare(
            "limit of the total variation of OUE",
            0.5,
            oue_variation(math.inf),
        ),
    ]


def _example_checks(exact: Mapping[str, Risk]) -> list[Check]:
    m, checks = _RECORDS, []
    for e in (1.0, 5.0):
        share, sigma = (m - 1) / m, 1 / gdp_mu(e, _DELTA)
        printed = {
            "GRR": ("5.4", share * math.expm1(e) / (math.exp(e) + m - 1)),
            "OUE": ("5.5", printed_oue(e, m)),
            "Laplace": ("5.7", share * -math.expm1(-e / (2 * (m - 1)))),
            "Gaussian": ("5.8", share * math.erf(1 / (2 * math.sqrt(2) * sigma * 10))),
        }
        checks += [
            compare(
                f"{name} at ε = {e:g}",
                value,
                exact[name](e),
                note=f"published: Example {example}, evaluated",
            )
            for name, (example, value) in printed.items()
        ]
    return checks


def printed_oue(epsilon: float, m: int) -> float:
    """Return the advantage against OUE as printed: uniform prior, no knowledge."""
    odds = math.exp(epsilon)
    return (odds - 1) / (2 * m) * (1 - (odds / (1 + odds)) ** (m - 1))


def _grr_checks() -> list[Check]:
    wrong = "the printed number divides by 1 - γ(1 - κ) instead of 1 - γ/(1 - κ)"
    two, hundred = grr_level(2, 0.1), grr_level(100, 0.1)
    return [
        compare("e^ε of GRR for RAD 0.1, m = 2", 1.5, math.exp(two)),
        compare("ε of GRR for RAD 0.1, m = 2", "0.405", two),
        compare(
            "e^ε of GRR for RAD 0.1, m = 100",
            "12.2087",
            math.exp(hundred),
            erratum="RE1",
            why=wrong,
        ),
        compare(
            "ε of GRR for RAD 0.1, m = 100",
            "2.503",
            hundred,
            erratum="RE1",
            why=wrong,
        ),
        compare(
            "corrected level of GRR for RAD 0.1, 100 records",
            math.log((1 + 99 * 10 / 99) / (1 - 10 / 99)),
            hundred,
            note="published: Example 5.4, evaluated at γ/(1 - κ) = 10/99",
        ),
    ]


FIGURE_5_1 = Study(
    "figure-5.1",
    "reconstruction advantage of five mechanisms at the same level",
    "Guerra-Balboa (2026), Figure 5.1 and Examples 5.4 to 5.8",
    _figure_5_1,
)
RISK_THEORY = (FIGURE_5_1,)


# Figure 5.2 of the thesis: the error of a query calibrated by its risk.

_UTILITY_RECORDS, _BETA = 10, 0.05
_TARGETS = tuple(float(g) for g in np.arange(0.01, 0.8901, 0.01))


def _error(epsilon: float) -> float:
    """Return the 95 % error bound of a query of sensitivity 1; infinite without level.

    A level that is not positive, or nan, is none.
    """
    if not epsilon > 0:
        return math.inf
    return laplace_accuracy(laplace_scale(1, epsilon), _BETA)


def _by_advantage(target: float) -> float:
    return calibrate_laplace_level(target, records=_UTILITY_RECORDS).value


def _by_success(target: float) -> float:
    """Return the level at which reconstruction succeeds that often, or nan."""
    try:
        return calibrate_success(target, best_guess=1 / _UTILITY_RECORDS).value
    except InfeasibleTarget:
        return math.nan


def _by_laplace_curve(target: float) -> float:
    from scipy.optimize import brentq

    def excess(epsilon: float) -> float:
        curve = LaplaceTradeOff(epsilon)
        return success_bound(curve, best_guess=1 / _UTILITY_RECORDS).value - target

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

"""Chapter 6 of the thesis before any data: its bounds, Laplace noise and response.

Figures 6.1 to 6.5, Table 6.1, and what all studies say of theorems and misprints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from undertow.correlation.finite.exact import exact_leakage
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.gaussian.method import gaussian_crossover, gaussian_factor
from undertow.correlation.group import (
    general_budget,
    tightness_law,
    tightness_lower_bound,
    tightness_pearson,
)
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.published import gamma_budget, ratio_threshold
from undertow.correlation.markov.two_state import TwoStateTheorem
from undertow.correlation.query import AnyQuery
from undertow.errors import InfeasibleTarget
from undertow.mechanisms import RandomizedResponse, laplace_accuracy, laplace_scale
from undertow_studies.comparators.scale import (
    printed_response,
    response_accuracy,
    response_confidence,
)
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
    table_of,
)

_RHO = "largest correlation ρ"
_FACTOR = "leakage over DP level"


def finished(
    study: Study, panels: list[Panel], checks: list[Check], *, data: str = "none needed"
) -> StudyResult:
    """Return a result whose table is that of its points, or else of its checks."""
    header, rows = table_of(panels)
    if not panels:
        records = [check.to_dict() for check in checks]
        header, rows = tuple(records[0]), tuple(tuple(r.values()) for r in records)
    return StudyResult(
        study.name,
        study.title,
        study.source,
        tuple(panels),
        header,
        rows,
        tuple(checks),
        data,
    )


def stated(quantity: str, holds: bool, note: str = "") -> Check:
    """Return the check of a statement that a source makes in words."""
    answer = "yes" if holds else "no"
    return Check(quantity, "yes", answer, "match" if holds else "differs", note)


def _gaussian_curves(m: int) -> tuple[Curve, ...]:
    limit = 1 / (m - 2) if m > 2 else 1.0
    rhos = tuple(np.linspace(0, 0.98 * limit, 60))
    thesis = tuple(gaussian_factor(m, rho, variant="thesis") for rho in rhos)
    sharp = tuple(min(gaussian_factor(m, rho), float(m)) for rho in rhos)
    general = tuple(float(m) for _ in rhos)
    return (
        Curve("thesis", rhos, thesis),
        Curve("closed form", rhos, sharp),
        Curve("general", rhos, general),
    )


def _figure_6_1(inputs: Inputs) -> StudyResult:
    panels = [
        Panel(f"m = {m}", _gaussian_curves(m), _RHO, _FACTOR, y_log=m > 5)
        for m in (3, 5, 10)
    ]
    checks = [
        compare(
            f"correlation at which the bounds cross, m = {m}",
            4 * (m - 1) / (5 * m * m - 12 * m + 8),
            gaussian_crossover(m),
            note="published: Equation 6.43, evaluated",
        )
        for m in (3, 4, 10, 100)
    ]
    return finished(FIGURE_6_1, panels, checks)


def _figure_6_2(inputs: Inputs) -> StudyResult:
    curves = []
    for m in (2, 3, 5, 10, 100):
        limit = 1 / (m - 2) if m > 2 else 1.0
        rhos = tuple(np.geomspace(1e-4, 0.95 * limit, 60))
        values = tuple(gaussian_factor(m, rho, variant="thesis") for rho in rhos)
        curves.append(Curve(f"m = {m}", rhos, values))
    panel = Panel(
        "Theorem 6.14",
        tuple(curves),
        _RHO,
        "error over DP error, h",
        x_log=True,
        y_log=True,
    )
    checks = [
        compare(
            f"h at m = {m}, ρ = {rho:g}",
            1 + m * m / (4 * (1 / rho - m + 2)),
            gaussian_factor(m, rho, variant="thesis"),
            note="published: Corollary 6.15, evaluated; the sharper closed form gives "
            f"{gaussian_factor(m, rho):.6g}",
        )
        for m, rho in ((10, 0.05), (100, 0.005))
    ]
    return finished(FIGURE_6_2, [panel], checks)


def border_panel(levels: Sequence[float]) -> Panel:
    """Return where the additive Markov bound stays below n times the level."""
    sizes = tuple(float(n) for n in range(2, 101))
    curves = tuple(
        Curve(
            f"ε = {epsilon:g}",
            sizes,
            tuple(ratio_threshold(epsilon, int(n)) for n in sizes),
            kind="region",
        )
        for epsilon in levels
    )
    return Panel(
        "Markov bound below n ε",
        curves,
        "number of records n",
        "largest ratio γ",
        y_log=True,
    )


def border_checks() -> list[Check]:
    """Return the two points that both sources name."""
    high, low = ratio_threshold(0.5, 80), ratio_threshold(0.5, 20)
    return [
        stated(
            "γ = 10 000 still wins at ε = 0.5, n = 80",
            high > 10_000,
            f"the border is {high:.6g}",
        ),
        stated(
            "γ = 100 loses at ε = 0.5, n = 20",
            low < 100,
            f"the border is {low:.6g}",
        ),
    ]


def _figure_6_3(inputs: Inputs) -> StudyResult:
    return finished(FIGURE_6_3, [border_panel((0.1, 0.5, 1.0))], border_checks())


def _table_6_1(inputs: Inputs) -> StudyResult:
    rs = (2.0, 3.0, 10.0, 100.0, 1000.0)
    bound = tuple(tightness_lower_bound(r, 1.0) for r in rs)
    exact = tuple(
        exact_leakage(JointTable(tightness_law(r)), RandomizedResponse(2, 1)).value
        for r in rs
    )
    pearson = tuple(tightness_pearson(r) for r in rs)
    panels = [
        Panel(
            "leakage at ε = 1",
            (
                Curve("thesis", rs, tuple(float(b) for b in bound)),
                Curve("exact", rs, exact),
                Curve("general", rs, (2.0,) * len(rs)),
            ),
            "r",
            "leakage",
            x_log=True,
        ),
        Panel(
            "Pearson correlation",
            (Curve("correlation", rs, pearson),),
            "r",
            "correlation ρ",
            x_log=True,
        ),
    ]
    checks = [
        compare(
            "limit of the leakage for r → ∞ at ε = 1",
            2.0,
            exact[-1],
            margin=0.005,
            note="at r = 1000; the printed display moves factors into exponents, "
            "which would give ln((e²+1)/2) = 1.433",
        ),
        Check(
            "event of Example 6.4",
            "{(1, 1)}",
            "{(0, 0)}",
            "erratum",
            "the displayed chain of equalities needs the output (0, 0)",
            "CE3",
        ),
    ]
    return finished(TABLE_6_1, panels, checks)


def _talk_few_records(inputs: Inputs) -> StudyResult:
    groups = tuple(float(m) for m in range(1, 21))
    curves = []
    for beta in (0.1, 0.05, 0.01):
        values = tuple(
            laplace_accuracy(laplace_scale(1, general_budget(1.0, int(m))), beta)
            for m in groups
        )
        curves.append(Curve(f"{1 - beta:.0%} confidence", groups, values))
    panel = Panel(
        "count query, leakage 1",
        tuple(curves),
        "correlated records m",
        "error α",
    )
    five = dict(zip(groups, curves[1].y, strict=True))
    checks = [
        compare(
            f"error at m = {m}, 95 %",
            m * math.log(20),
            five[float(m)],
            note="published: a straight line, m log(1/β) at leakage 1",
        )
        for m in (1, 2, 5, 10)
    ]
    return finished(TALK_FEW_RECORDS, [panel], checks)


_THESIS = "Guerra-Balboa (2026)"
FIGURE_6_1 = Study(
    "figure-6.1",
    "Gaussian bound and general bound over the correlation",
    f"{_THESIS}, Figure 6.1",
    _figure_6_1,
)
FIGURE_6_2 = Study(
    "figure-6.2",
    "error under the Gaussian bound relative to DP",
    f"{_THESIS}, Figure 6.2",
    _figure_6_2,
)
FIGURE_6_3 = Study(
    "figure-6.3",
    "where the Markov bound beats the general bound",
    f"{_THESIS}, Figure 6.3",
    _figure_6_3,
)
TABLE_6_1 = Study(
    "table-6.1",
    "a law on which the general bound is tight though the correlation vanishes",
    f"{_THESIS}, Table 6.1 and Example 6.4",
    _table_6_1,
)
TALK_FEW_RECORDS = Study(
    "talk-few-records",
    "error over the number of correlated records",
    "Guerra-Balboa, talk (2025), few correlated records",
    _talk_few_records,
)
THESIS_BOUNDS = (FIGURE_6_1, FIGURE_6_2, FIGURE_6_3, TABLE_6_1, TALK_FEW_RECORDS)


# Chapter 6 of the thesis: Laplace noise against randomized response on a chain.

_CASES = ((0.4, 2.0), (0.4, 3.0), (0.3, 4.0), (0.45, 2.0))
_LOG20 = math.log(20)


def _lazy(switch: float) -> MarkovChain:
    return MarkovChain([[1 - switch, switch], [switch, 1 - switch]])


@cache
def _exact_level(switch: float, target: float) -> float:
    return TwoStateTheorem().invert(_lazy(switch), target, query=AnyQuery())


def _thesis_level(switch: float, target: float) -> float:
    try:
        return gamma_budget(target, (1 - switch) / switch)
    except InfeasibleTarget:
        return math.nan


def _figure_6_4(inputs: Inputs) -> StudyResult:
    alphas = tuple(float(a) for a in np.arange(1, 41))
    panels = []
    for switch, target in _CASES:
        flip = printed_response(target, switch).flip
        level = _thesis_level(switch, target)
        exact = _exact_level(switch, target)
        response = tuple(
            response_confidence(a, records=500, ones=250, flip=flip) for a in alphas
        )
        panels.append(
            Panel(
                f"flip {switch:g}, leakage {target:g}",
                (
                    Curve("randomized response", alphas, response),
                    Curve("thesis", alphas, tuple(_tail(a, level) for a in alphas)),
                    Curve("exact", alphas, tuple(_tail(a, exact) for a in alphas)),
                ),
                "error α",
                "chance of a larger error β",
                y_log=True,
            )
        )
    checks = [_consistently_better(panel) for panel in panels]
    return finished(FIGURE_6_4, panels, checks)


def _tail(alpha: float, level: float) -> float:
    return max(math.exp(-alpha * level), 1e-12) if level == level else math.nan


def _figure_6_5(inputs: Inputs) -> StudyResult:
    targets = tuple(float(t) for t in np.arange(0.5, 10.01, 0.5))
    panels = []
    for switch in (0.2, 0.3, 0.4):
        response = tuple(
            response_accuracy(
                0.05, records=700, ones=350, flip=printed_response(t, switch).flip
            )
            for t in targets
        )
        thesis = tuple(_LOG20 / _thesis_level(switch, t) for t in targets)
        exact = tuple(_LOG20 / _exact_level(switch, t) for t in targets)
        panels.append(
            Panel(
                f"flip {switch:g}",
                (
                    Curve("randomized response", targets, response),
                    Curve("thesis", targets, thesis),
                    Curve("exact", targets, exact),
                ),
                "leakage B",
                "error α at 95 %",
                y_log=True,
            )
        )
    checks = [_consistently_better(panel) for panel in panels] + [_just_above()]
    return finished(FIGURE_6_5, panels, checks)


def _consistently_better(panel: Panel) -> Check:
    response, thesis = panel.curves[0].y, panel.curves[1].y
    feasible = [(r, t) for r, t in zip(response, thesis, strict=True) if t == t]
    better = all(t <= r for r, t in feasible)
    return Check(
        f"Laplace noise does better throughout, {panel.name}",
        "yes",
        "yes" if better else "no",
        "match" if better else "differs",
        "at the plotted points; the parameters of the printed curves are not given",
    )


def _just_above() -> Check:
    """Just above the least leakage the thesis' noise is worse than the response."""
    target = 1.65
    flip = printed_response(target, 0.4).flip
    response = response_accuracy(0.05, records=700, ones=350, flip=flip)
    laplace = _LOG20 / _thesis_level(0.4, target)
    return Check(
        "Laplace noise has the smaller error for all leakages (flip 0.4)",
        "yes",
        "yes" if laplace < response else "no",
        "match" if laplace < response else "erratum",
        f"at leakage {target}: {laplace:.4g} against {response:.4g}; it fails just "
        "above 4 log γ",
        "" if laplace < response else "CE18",
    )


FIGURE_6_4 = Study(
    "figure-6.4",
    "chance of an error: Laplace noise and randomized response, 500 records",
    f"{_THESIS}, Figure 6.4",
    _figure_6_4,
)
FIGURE_6_5 = Study(
    "figure-6.5",
    "error at 95 %: Laplace noise and randomized response, 700 records",
    f"{_THESIS}, Figure 6.5",
    _figure_6_5,
)
THESIS_RESPONSE = (FIGURE_6_4, FIGURE_6_5)

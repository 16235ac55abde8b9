"""Chapter 6 of the thesis: Laplace noise against randomized response on a chain."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from undertow.correlation.comparators.scale import (
    printed_response,
    response_accuracy,
    response_confidence,
)
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.published import gamma_budget
from undertow.correlation.markov.two_state import TwoStateMethod
from undertow.correlation.query import AnyQuery
from undertow.errors import InfeasibleTarget
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
)
from undertow.studies.thesis_bounds import finished

__all__ = ["THESIS_RESPONSE"]

_CASES = ((0.4, 2.0), (0.4, 3.0), (0.3, 4.0), (0.45, 2.0))
_LOG20 = math.log(20)


def _lazy(switch: float) -> MarkovChain:
    return MarkovChain([[1 - switch, switch], [switch, 1 - switch]])


@cache
def _exact_level(switch: float, target: float) -> float:
    return TwoStateMethod().budget(_lazy(switch), target, query=AnyQuery())


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


_THESIS = "Guerra-Balboa (2026)"
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

"""Errors of Laplace noise over a range of promises: lines, markers, percentages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from undertow.errors import AssumptionError
from undertow.studies.base import Curve, Panel, count

__all__ = [
    "GRID",
    "Level",
    "error_panel",
    "level_or_nan",
    "percent_panel",
    "releases_drawn",
]

GRID = (0.05, 0.1, *(float(b) for b in np.arange(0.25, 20.01, 0.25)))
"""Promises from 0.05 to 20."""

Level = Callable[[float], float]
"""From a promise to a DP level; nan where a method cannot keep it."""

_BETA = 0.05
_MARKED = 8


def releases_drawn(runs: int) -> str:
    """Say how many releases the source drew at a point, and how many are drawn here."""
    return f"source: 1 000 releases a point; here: {count(runs)}"


def level_or_nan(budget: Callable[[float], float]) -> Level:
    """Return a level function that is nan where the method refuses."""

    def level(target: float) -> float:
        try:
            return budget(target)
        except AssumptionError:
            return math.nan

    return level


def error_panel(
    name: str,
    levels: Mapping[str, Level],
    *,
    sensitivity: float,
    unit: str,
    runs: int,
    rng: np.random.Generator,
) -> Panel:
    """Return the error at 95 % over the promise: theory lines, simulated markers."""
    curves = []
    for label, level in levels.items():
        scales = [sensitivity / level(b) for b in GRID]
        theory = tuple(-math.log(_BETA) * scale for scale in scales)
        curves.append(Curve(label, GRID, theory, kind=_kind(label)))
        feasible = [(b, s) for b, s in zip(GRID, scales, strict=True) if s == s]
        marked = feasible[::_MARKED]
        measured = tuple(
            float(np.quantile(np.abs(rng.laplace(scale=s, size=runs)), 1 - _BETA))
            for _, s in marked
        )
        places = tuple(b for b, _ in marked)
        curves.append(Curve(f"{label}, measured", places, measured, kind="measured"))
    return Panel(
        name, tuple(curves), "leakage B", f"error at 95 % ({unit})", y_log=True
    )


def percent_panel(
    name: str, levels: Mapping[str, Level], *, sensitivity: float, truth: float
) -> Panel:
    """Return the mean absolute percentage error over the promise."""
    curves = []
    for label, level in levels.items():
        values = tuple(100 * sensitivity / level(b) / truth for b in GRID)
        curves.append(Curve(label, GRID, values, kind=_kind(label)))
    return Panel(name, tuple(curves), "leakage B", "mean error (%)", y_log=True)


def _kind(label: str) -> Literal["baseline", "theory"]:
    """Return how a method is drawn: DP is a baseline, it does not keep the promise."""
    return "baseline" if label == "DP" else "theory"

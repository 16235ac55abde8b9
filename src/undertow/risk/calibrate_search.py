"""The search behind calibration: one curve, many targets, always on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.errors import InfeasibleTarget, SearchError
from undertow.risk.exact import advantage
from undertow.risk.families.base import (
    LEAST_LEVEL,
    MARGIN,
    Curve,
    Family,
    Structure,
    greatest_levels,
)
from undertow.risk.threat import Threat

__all__ = ["Solved", "engine_curve", "solve"]

Floats = NDArray[np.float64]

# The target is lowered by this share, which covers the margins of curve and inverse.
_SLACK = 4.0 * MARGIN
# Targets this close to the limit of a curve do not bind: the limit is rounded up.
_TOUCH = 4e-15
_STEPS, _CLOSE = 240, 1e-12
_SHRINKS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The answer for each target, and the curve it was read from."""

    values: Floats
    achieved: Floats
    binding: NDArray[np.bool_]
    structure: Structure | None
    reasons: tuple[str, ...]
    curve: Curve


def engine_curve(family: Family, threat: Threat) -> Curve | None:
    """Return the curve that the exact engine gives, one evaluation per level."""
    if family.source(1.0, threat) is None:
        return None

    def values(levels: Floats, structure: Structure | None) -> Floats:
        return np.array(
            [advantage(family.source(float(x), threat), threat).value for x in levels]
        )

    return Curve(
        values,
        threat.ceiling,
        "thesis, Theorem 5.3",
        reason="the exact engine",
        searched=True,
    )


def solve(
    family: Family, threat: Threat, targets: Floats, *, largest: bool = False
) -> Solved:
    """Return the parameter of each target and the risk at it.

    Notes
    -----
    Explicit inverse where there is one, else a scan between the steps of the structure,
    else bisection of a curve that is proved to grow, else a scan over a grid. Whatever
    the route, the risk is evaluated at the answer, which is lowered until it fits.
    """
    curve = family.curve(threat)
    engine = None if curve is not None else engine_curve(family, threat)
    curve = curve or engine or family.fallback(threat)
    limit = min(curve.limit, threat.ceiling)
    binding = targets < limit * (1.0 - _TOUCH)
    values = np.full(targets.shape, np.inf if family.rises else 0.0)
    achieved, structure, method = np.minimum(targets, limit), None, ""
    if binding.any():
        wanted = targets[binding]
        lowered = wanted / (1.0 + _SLACK) - curve.slack
        found, method, steps = _search(family, curve, lowered, largest, engine)
        levels, achieved[binding] = _settled(family, curve, found, wanted, steps)
        values[binding] = family.parameters(levels)
        _require_reached(family, curve, values[binding], wanted)
        if steps is not None:
            structure = np.ones(targets.shape, dtype=np.int64)
            structure[binding] = steps
    reasons = tuple(
        method if bound else _never(target, limit, threat, family)
        for bound, target in zip(binding.tolist(), targets.tolist(), strict=True)
    )
    return Solved(values, achieved, binding, structure, reasons, curve)


def _search(
    family: Family, curve: Curve, targets: Floats, largest: bool, engine: Curve | None
) -> tuple[Floats, str, Structure | None]:
    if curve.solve is not None:
        levels, structure = curve.solve(targets, largest)
        return levels, curve.reason, structure
    if curve.inverse is not None:
        return np.minimum(curve.inverse(targets), family.largest), "closed form", None
    if engine is None:
        levels = greatest_levels(curve, targets, largest=family.largest)
        return levels, f"bisection of a {'curve' if curve.exact else 'bound'}", None
    memory: dict[float, float] = {}

    def risk(level: float) -> float:
        if level not in memory:
            memory[level] = float(curve.raised(np.array([level]))[0])
        return memory[level]

    if family.monotone:
        found = [_bisected(risk, t, largest=family.largest) for t in targets.tolist()]
        return np.array(found), "bisection of the exact engine", None
    found = [_scanned(risk, t, last=largest) for t in targets.tolist()]
    return np.array(found), "scan of the exact engine", None


def _bisected(
    risk: Callable[[float], float], target: float, *, largest: float
) -> float:
    """Return a level at which the risk is within the target, close to the largest."""
    low, high = 0.0, 1.0
    while risk(high) <= target:
        low, high = high, 2.0 * high
        if high > largest:
            return low
    while low == 0.0:
        if risk(middle := high / 2.0) <= target:
            low = middle
        elif (high := middle) < LEAST_LEVEL:
            return 0.0
    while high - low > _CLOSE * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if risk(middle) <= target else (low, middle)
    return low


def _scanned(risk: Callable[[float], float], target: float, *, last: bool) -> float:
    """Return the level before the first (or the last) grid level past the target."""
    grid = np.geomspace(1e-3, 100.0, _STEPS)
    fits = np.array([risk(float(level)) <= target for level in grid])
    if fits.all():
        return float(grid[-1])
    stop = int(len(fits) - np.argmax(fits[::-1]) if last else np.argmin(fits))
    if stop == 0 or not fits[stop - 1]:
        return _bisected(risk, target, largest=float(grid[0]))
    low = float(grid[stop - 1])
    if stop == len(grid):
        return low
    high = float(grid[stop])
    while high - low > _CLOSE * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if risk(middle) <= target else (low, middle)
    return low


def _settled(
    family: Family,
    curve: Curve,
    levels: Floats,
    targets: Floats,
    structure: Structure | None,
) -> tuple[Floats, Floats]:
    """Lower each level until its risk, evaluated, is within its target."""
    share = MARGIN
    for _ in range(_SHRINKS):
        kept = curve.raised(np.where(levels > 0, levels, LEAST_LEVEL), structure)
        kept = np.where(levels > 0, kept, 0.0)  # a level of 0 is refused later
        over = kept > targets
        if not over.any():
            return levels, kept
        levels = np.where(over, levels * (1.0 - share), levels)
        share = min(2.0 * share, 0.5)
    raise SearchError(
        f"the search for {family.parameter} of {family.name} must settle below its "
        f"target, got a risk of {kept.max():.6g}; raise the target."
    )


def _require_reached(
    family: Family, curve: Curve, values: Floats, targets: Floats
) -> None:
    """Refuse targets that no positive epsilon, or no finite noise, meets."""
    missed = values <= 0.0 if family.rises else values == math.inf
    if missed.any():
        least = family.least(curve)
        raise InfeasibleTarget(
            f"advantage must be greater than {least:.3g}, what {family.name} has at "
            f"the smallest {family.parameter}, got {targets[missed].min():.3g}; lower "
            "delta or choose another family.",
            least=least,
        )


def _never(target: float, limit: float, threat: Threat, family: Family) -> str:
    if target >= threat.ceiling * (1.0 - _TOUCH):
        return (
            "the target never binds: no attack under this threat has a larger "
            f"advantage than {threat.ceiling:.6g}, so any {family.parameter} meets it"
        )
    return (
        f"the target never binds: {family.name} has at most {limit:.6g} under this "
        f"threat, whatever {family.parameter} is"
    )

"""The search behind calibration: one curve, many targets, always on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import InfeasibleTarget, NotApplicable, SearchError
from undertow.risk.exact import advantage
from undertow.risk.families.base import (
    LEAST_LEVEL,
    MARGIN,
    Curve,
    Family,
    Structure,
)
from undertow.risk.families.levels import false_position, greatest_levels
from undertow.risk.threat import Threat

__all__ = ["Solved", "engine_curve", "solve"]

Floats = NDArray[np.float64]

# The target is lowered by this share, which covers the margins of curve and inverse.
_SLACK = 4.0 * MARGIN
# Targets this close to the limit of a curve do not bind: the limit is rounded up.
_TOUCH = 4e-15
_STEPS, _CLOSE, _NEAR = 240, 1e-12, 5e-11
# Levels of a scan, and the largest of them.
_LAST = 100.0
_GRID = np.geomspace(1e-3, _LAST, _STEPS)
_SHRINKS = 60
# Targets from which one table of the engine is shared, its levels for each, at most.
_MANY, _EACH, _SHARED = 8, 2, 256


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
    """Return the curve that the exact engine gives, many levels at a time."""
    if family.source(1.0, threat) is None:
        return None

    def values(levels: Floats, structure: Structure | None) -> Floats:
        sources = [family.source(float(x), threat) for x in levels]
        return np.array(_engine_values(sources, threat))

    return Curve(
        values,
        family.supremum(threat),
        "thesis, Theorem 5.3",
        reason="the exact engine",
        searched=True,
    )


def _engine_values(sources: Sequence[Any], threat: Threat) -> list[float]:
    """Evaluate noisy numbers together, in halves where that is too much at once."""
    from undertow.risk.scalar import ScalarChannel, advantage_curve

    if len(sources) < 2 or not all(isinstance(x, ScalarChannel) for x in sources):
        return [advantage(x, threat).value for x in sources]
    try:
        return [risk.value for risk in advantage_curve(sources, threat)]
    except NotApplicable:
        half = len(sources) // 2
        parts = (sources[:half], sources[half:])
        return [value for part in parts for value in _engine_values(part, threat)]


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
    bound = None
    if curve is None:
        bound, curve = family.fallback(threat), engine_curve(family, threat)
        bound, curve = (bound, curve) if curve is not None else (None, bound)
    limit = min(curve.limit, threat.ceiling)
    binding = targets < limit * (1.0 - _TOUCH)
    values = np.full(targets.shape, np.inf if family.rises else 0.0)
    achieved, structure, method = np.minimum(targets, limit), None, ""
    if binding.any():
        wanted = targets[binding]
        lowered = wanted / (1.0 + _SLACK) - curve.slack
        found, method, steps = _search(family, curve, lowered, largest, bound)
        levels, achieved[binding] = _settled(family, curve, found, wanted, steps)
        values[binding] = family.parameters(levels)
        _require_reached(family, curve, values[binding], wanted)
        if steps is not None:
            structure = np.zeros(targets.shape, dtype=np.int64)
            structure[binding] = steps
    reasons = [
        method if bound else _never(target, limit, threat, family)
        for bound, target in zip(binding.tolist(), targets.tolist(), strict=True)
    ]
    if curve.searched and family.rises:
        last = family.largest if family.monotone else _LAST
        for k in np.flatnonzero(binding & (values >= last)).tolist():
            end = last, float(achieved[k])
            if family.monotone or (curve.raised(_GRID) <= targets[k]).all():
                binding[k] = False
                values[k], achieved[k], reasons[k] = _unlimited(
                    family, threat, float(targets[k]), end
                )
    return Solved(values, achieved, binding, structure, tuple(reasons), curve)


def _unlimited(
    family: Family, threat: Threat, target: float, end: tuple[float, float]
) -> tuple[float, float, str]:
    """Return parameter, risk and reason where no level that was tried is too large."""
    limit = family.limit_within(threat, target)
    if limit is not None:
        why = (
            f"the target never binds, as {family.called} stays within it under this "
            f"threat, whatever {family.parameter} is, with {limit:.6g} in the limit"
        )
        return math.inf, limit, why
    why = (
        f"the target does not bind up to {family.parameter} {end[0]:g}, the largest "
        "that was tried; nothing is said of larger ones"
    )
    return (*end, why)


def _search(
    family: Family,
    curve: Curve,
    targets: Floats,
    largest: bool,
    bound: Curve | None,
) -> tuple[Floats, str, Structure | None]:
    if curve.solve is not None:
        levels, structure = curve.solve(targets, largest)
        return levels, curve.reason, structure
    if curve.inverse is not None:
        return np.minimum(curve.inverse(targets), family.largest), "closed form", None
    if bound is None:
        levels = greatest_levels(curve, targets, largest=family.largest)
        return levels, f"bisection of a {'curve' if curve.exact else 'bound'}", None
    # The bound by total variation never allows more: the search starts where it ends.
    starts = greatest_levels(bound, targets, largest=family.largest)
    starts = np.where(starts >= LEAST_LEVEL, starts, 1.0)
    memory: dict[float, float] = {}

    def risk(level: float) -> float:
        if level not in memory:
            memory[level] = float(curve.raised(np.array([level]))[0])
        return memory[level]

    if family.monotone:
        levels, left = np.empty(targets.shape), np.ones(targets.shape, dtype=bool)
        if len(targets) >= _MANY:
            levels, left = _together(curve, targets, starts, largest=family.largest)
        for k in np.flatnonzero(left).tolist():
            goal, start = float(targets[k]), float(starts[k])
            levels[k] = _bisected(risk, goal, largest=family.largest, start=start)
        return levels, "bisection of the exact engine", None
    found = [_scanned(risk, t, last=largest) for t in targets.tolist()]
    return np.array(found), "scan of the exact engine", None


def _together(
    curve: Curve, targets: Floats, starts: Floats, *, largest: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """Bracket all targets by one table, then narrow all brackets at the same time.

    Also says which targets lie outside the table.
    """
    top, most = float(starts.max()), float(targets.max())
    while top < largest and float(curve.raised(np.array([top]))[0]) <= most:
        top = min(4.0 * top, largest)
    grid = np.geomspace(float(starts.min()), top, min(_EACH * len(targets), _SHARED))
    risks = np.maximum.accumulate(curve.raised(grid))
    place = np.searchsorted(risks, targets, side="right")
    inner = (place > 0) & (place < len(grid)) & (risks[place - 1] > 0.0)
    ends = grid[place[inner] - 1], grid[place[inner]]
    levels = np.zeros(targets.shape)
    levels[inner] = false_position(
        curve, targets[inner], ends, near=2.0 * _NEAR, width=_CLOSE
    )
    return levels, ~inner


def _bisected(
    risk: Callable[[float], float], target: float, *, largest: float, start: float = 1.0
) -> float:
    """Return a level at which the risk is within the target, close to the largest."""
    low, high = 0.0, min(start, largest)
    while (found := risk(high)) <= target:
        if (low := high) >= largest:
            return low
        reach = target / found if found > 0 else np.inf
        high = min(largest, high * min(max(1.25 * reach, 1.25), 16.0))
    while low == 0.0:
        if risk(middle := high / 2.0) <= target:
            low = middle
        elif (high := middle) < LEAST_LEVEL:
            return 0.0
    return _narrowed(risk, target, low, high)


def _narrowed(
    risk: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Raise `low`, which fits, towards `high`, which does not, by Brent's method.

    In logarithms, ending as soon as the risk is a little below the target; the greatest
    level that was seen to fit is returned.
    """
    from scipy.optimize import brentq

    best = low

    def miss(place: float) -> float:
        nonlocal best
        level = high if place == 1.0 else low * (high / low) ** place
        found = _excess(risk(level), target)
        if found <= 0.0:
            best = max(best, level)
        return 0.0 if -2.0 * _NEAR <= found <= 0.0 else found + _NEAR

    brentq(miss, 0.0, 1.0, xtol=_CLOSE)
    return best


def _excess(risk: float, target: float) -> float:
    return math.log(max(risk / target, 1e-300))


def _scanned(risk: Callable[[float], float], target: float, *, last: bool) -> float:
    """Return the level before the first (or the last) grid level past the target."""
    fits = np.array([risk(level) <= target for level in _GRID.tolist()])
    if fits.all():
        return _LAST
    stop = int(len(fits) - np.argmax(fits[::-1]) if last else np.argmin(fits))
    if stop == 0 or not fits[stop - 1]:
        # Nothing on the grid fits, or its first level does not: look below it only.
        first = float(_GRID[0])
        return _bisected(risk, target, largest=first, start=first)
    low = float(_GRID[stop - 1])
    if stop == len(_GRID):
        return low
    return _narrowed(risk, target, low, float(_GRID[stop]))


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
        noise = "smallest" if family.rises else "largest"
        out = "lower delta" if family.delta else "raise the target"
        raise InfeasibleTarget(
            f"advantage must be greater than {least:.3g}, what {family.called} has at "
            f"the {noise} {family.parameter} that is evaluated, got "
            f"{targets[missed].min():.3g}; {out} or choose another family.",
            least=least,
        )


def _never(target: float, limit: float, threat: Threat, family: Family) -> str:
    if target >= threat.ceiling * (1.0 - _TOUCH):
        return (
            "the target never binds, as no attack under this threat has a larger "
            f"advantage than {threat.ceiling:.6g}; any {family.parameter} meets it"
        )
    return (
        f"the target never binds, as {family.called} has at most {limit:.6g} under "
        f"this threat, whatever {family.parameter} is"
    )

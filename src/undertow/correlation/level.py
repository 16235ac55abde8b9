"""The largest DP level whose leakage stays within a target: every search for it.

Whatever the search, the level that is returned was evaluated and found within the
target, so that no rounding can break a promise. The searches differ in what they know
of the leakage as a function of the level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from undertow._validate import check_non_negative, check_positive
from undertow.errors import InfeasibleTarget
from undertow.numeric.exact import exact
from undertow.numeric.rounding import nudge_down, nudge_up
from undertow.numeric.search import bisect, greatest_float

# Bisection on the logarithm of epsilon stops at this relative width, below the
# tolerance to which conversions are asked to round-trip.
_RELATIVE_WIDTH = 1e-13
_SMALLEST = 1e-300
# Final widths of the searches for leakages that are costly, by how costly they are.
_CLOSE = 1e-9
_ATTAINED = 1e-10


def check_level(epsilon: float) -> float:
    """Return `epsilon` as a finite, non-negative DP level."""
    number = check_non_negative(epsilon, "epsilon")
    if number == math.inf:
        raise ValueError("epsilon must be finite, got inf.")
    return number


def scaled_down(target: float, factor: float | Fraction) -> float:
    """Return ``target / factor`` rounded so that `factor` times it stays within.

    Examples
    --------
    >>> scaled_down(1.0, 5)
    0.2
    """
    multiple = Fraction(factor)
    # Counts divide exactly; other factors are near their floats.
    whole = isinstance(factor, int)
    level = float(exact(target) / multiple) if whole else target / float(factor)
    while exact(level) * multiple > exact(target):
        level = nudge_down(level)
    return level


def largest_level(
    leakage_at: Callable[[float], float], target: float, *, name: str = "this method"
) -> float:
    """Return the greatest DP level, to 1e-13, at which `leakage_at` is within `target`.

    Parameters
    ----------
    leakage_at : callable
        Leakage as a non-decreasing function of epsilon, at least epsilon itself.
    target : float
        Positive and finite.
    name : str
        What to call the method in a refusal.

    Returns
    -------
    float
        A level at which `leakage_at` was evaluated and found at most `target`.

    Examples
    --------
    >>> round(largest_level(lambda epsilon: 3 * epsilon, 1.0), 12)
    0.333333333333
    """
    target = check_positive(target, "target")
    high = target  # no release leaks less than its DP level
    if leakage_at(high) <= target:
        return high
    low, step = high / 2, 2.0
    while leakage_at(low) > target:
        # Small targets need small levels: the step grows, but stays a step.
        high, step = low, min(step * step, 2.0**64)
        low = low / step
        if low < _SMALLEST:
            raise InfeasibleTarget(
                f"target must be above what {name} can reach, got {target}; use the "
                "general bound, which reaches every target.",
                least=target,
            )
    while high - low > _RELATIVE_WIDTH * high:
        middle = (
            math.sqrt(low) * math.sqrt(high) if high > 4 * low else (low + high) / 2
        )
        if not low < middle < high:
            break
        if leakage_at(middle) <= target:
            low = middle
        else:
            high = middle
    return low


def last_level(
    holds: Callable[[float], bool],
    target: float,
    *,
    refusal: InfeasibleTarget | None = None,
) -> float:
    """Return the greatest DP level up to `target` at which `holds` is still true.

    Halves the number of floats between the ends, so that no greater float holds.

    Parameters
    ----------
    holds : callable
        Whether a level keeps the target: true, then false, as the level grows.
    target : float
        Positive and finite.
    refusal : InfeasibleTarget, optional
        What to raise where no positive level holds.
    """
    level = 0.0
    if holds(0.0):
        level = greatest_float(holds, low=0.0, high=nudge_up(target))
    if level == 0:
        raise refusal or InfeasibleTarget(
            f"target must be met by a positive DP level, got {target:g} and a level "
            "below the range of floats; use method 'general' with a length.",
            least=target,
        )
    return level


def smooth_level(
    leakage_at: Callable[[float], float], target: float, *, low: float
) -> float:
    """Return a level within a share 1e-9 of the largest one that keeps the target.

    Parameters
    ----------
    leakage_at : callable
        Leakage as a function of epsilon, nearly non-decreasing; it may be 0.
    target : float
        Positive.
    low : float
        A level that keeps the target.

    Notes
    -----
    The Illinois rule on ``log(leakage / target)``, a dozen evaluations. Besides `low`
    only levels at which `leakage_at` was found at most `target` are returned.
    """

    def miss(level: float) -> float:
        return math.log(max(leakage_at(level) / target, _SMALLEST))

    top = miss(target)
    if top <= 0:
        return target
    return crossing(miss, (low, miss(low)), (target, top))[0]


def crossing(
    value: Callable[[float], float],
    below: tuple[float, float],
    above: tuple[float, float],
) -> tuple[float, float]:
    """Return the ends of a bracket of the zero of a rising function.

    The Illinois rule, between points with a value of at most 0 and of at least 0;
    evaluated points keep to their side.
    """
    (low, bottom), (high, top) = below, above
    rose = None
    while high - low > _CLOSE * high and bottom < 0 < top:
        share = min(max(bottom / (bottom - top), 1e-4), 1 - 1e-4)
        middle = low * (high / low) ** share
        if not low < middle < high:
            break
        here = value(middle)
        if here <= 0:
            low, bottom = middle, here
            top = top / 2 if rose is True else top
            rose = True
        else:
            high, top = middle, here
            bottom = bottom / 2 if rose is False else bottom
            rose = False
    return low, high


def attained_level(
    rising: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Return a level, to 1e-10 the largest, at which `rising` is at most `target`.

    Parameters
    ----------
    rising : callable
        Leakage as a non-decreasing function of epsilon, costly to evaluate.
    target : float
        Positive.
    low, high : float
        A level within the target, and the largest that is tried.

    Notes
    -----
    False position with halved weights (the Illinois rule) and a small overshoot, so
    that both ends move; every fourth step halves, so that it ends.
    """
    above, below = rising(high) - target, rising(low) - target
    if above <= 0:
        return high
    for step in itertools.count(1):
        share = 0.5 if step % 4 == 0 else below / (below - above)
        middle = low + share * (high - low)
        middle = min(
            max(middle, low + 0.3 * _ATTAINED * high), high - 0.3 * _ATTAINED * high
        )
        if high - low <= _ATTAINED * high or not low < middle < high:
            break
        gap = rising(middle) - target
        if gap <= 0:
            low, below, above = middle, gap, above / 2
        else:
            high, above, below = middle, gap, below / 2
    return low


def level_above(
    holds: Callable[[float], bool], low: float, *, most: float = math.inf
) -> float:
    """Return the largest level, to 1e-13, at which `holds` is still true.

    Parameters
    ----------
    holds : callable
        Whether a level keeps the target: true, then false, as the level grows.
    low : float
        A positive level at which it holds; doubled until one is found at which it does
        not.
    most : float
        Level above which none is tried.
    """
    high = 2 * low
    while holds(high):
        low, high = high, 2 * high
        if high > most:
            return low
    return bisect(holds, inside=low, outside=high, width=_RELATIVE_WIDTH)


# Many levels at a time, where one pass of arrays costs as much as one level.

_TRIED = 16
_HALVED = 64


def level_by_batches(
    leaks: Callable[[list[float]], list[float]], target: float, *, name: str
) -> float:
    """Return the greatest DP level, to 1e-13, evaluating several levels at a time.

    Parameters
    ----------
    leaks : callable
        Leakages at a list of levels; a level may round differently when alone.
    target : float
        Positive and finite.
    name : str
        What to call the method in a refusal.

    Notes
    -----
    The level that is returned was found within the target when evaluated alone.
    """
    low, high = _halve(leaks, target, name)
    while high.level - low.level > _RELATIVE_WIDTH * high.level:
        tried = _near_crossing(low, high, target)
        for point in map(_Point, tried, leaks(tried)):
            if point.leak > target:
                high = point
                break
            low = point
    level = low.level
    while not leaks([level])[0] <= target:  # alone, a level may round differently
        level = nudge_down(level, 8)
    return level


class _Point(NamedTuple):
    level: float
    leak: float


def _near_crossing(low: _Point, high: _Point, target: float) -> list[float]:
    """Return levels between two, most of them near where the line crosses the target.

    The leakage is smooth almost everywhere, so that the crossing of the line is wrong
    by about the square of the distance, and each round doubles the digits.
    """
    width = high.level - low.level
    share = 0.5
    if high.leak < math.inf:
        share = (target - low.leak) / (high.leak - low.leak)
    guess = low.level + share * width
    offsets = [width * 8.0**-k for k in range(1, _TRIED // 2)]
    near = {guess, *(guess + x for x in offsets), *(guess - x for x in offsets)}
    middle = low.level + width / 2
    return sorted(x for x in {middle, *near} if low.level < x < high.level) or [middle]


def _halve(
    leaks: Callable[[list[float]], list[float]], target: float, name: str
) -> tuple[_Point, _Point]:
    """Return neighbouring powers of a half of the target, the lower one within it."""
    high, levels = _Point(target, math.inf), [target]
    while high.level > _SMALLEST:
        levels += [high.level * 2.0**-k for k in range(1, _HALVED + 1)]
        for point in map(_Point, levels, leaks(levels)):
            if point.leak <= target:  # the target itself where nothing depends
                return point, point if point.level == target else high
            high = point
        levels = []
    raise InfeasibleTarget(
        f"target must be above what {name} can reach, got {target}; use method "
        "'general' with a length.",
        least=target,
    )

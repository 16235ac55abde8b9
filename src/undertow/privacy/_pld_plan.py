"""Where to look for a composed privacy loss: the tilt, the grid and its window.

A plan decides how tight an answer is, never whether it is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from undertow.privacy._pld_grid import Composition

__all__ = ["Plan", "plan_for_delta", "plan_for_epsilon"]

_LOG_OUTSIDE = 33.0  # the window leaves about e^-33 of the tilted law outside
_FEWEST_ALONE, _FEWEST, _MOST, _MOST_LATTICE = 1 << 15, 1 << 13, 1 << 22, 1 << 18
_ROW = 1 << 19
_SMALLEST_TILT, _LARGEST_TILT = 1e-5, 1e10


@dataclass(frozen=True, slots=True)
class Plan:
    """Where to look: the tilt, the grid, and the tilts that bound the two tails.

    The choice decides how tight the answer is, never whether it is an upper bound, as
    long as ``low_tilt < tilt`` and ``high_tilt >= 0``.
    """

    tilt: float
    low_tilt: float
    high_tilt: float
    step: float
    first: int
    size: int


def plan_for_epsilon(
    composition: Composition, epsilon: float, *, tolerance: float, step: float | None
) -> Plan:
    """Choose tilt and grid for delta at `epsilon`; about 60 cumulants, O(60 atoms)."""
    tilt = _minimiser(
        lambda t: composition.total_cumulant(t) - t * epsilon + _log_payoff(t)
    )
    return _plan(composition, tilt, epsilon, tolerance=tolerance, step=step)


def plan_for_delta(
    composition: Composition, delta: float, *, tolerance: float, step: float | None
) -> tuple[Plan, float]:
    """Choose tilt and grid for epsilon at `delta`, and return a first guess of it."""

    def epsilon_at(tilt: float) -> float:
        cost = composition.total_cumulant(tilt) - math.log(delta) + _log_payoff(tilt)
        return cost / tilt

    tilt = _minimiser(epsilon_at)
    guess = max(epsilon_at(tilt), 0.0)
    return _plan(composition, tilt, guess, tolerance=tolerance, step=step), guess


def _log_payoff(tilt: float) -> float:
    # The largest value of e^{-t x} (1 - e^{-x}), x > 0.
    return tilt * math.log(tilt) - (1 + tilt) * math.log1p(tilt)


def _minimiser(
    objective: Callable[[float], float],
    low: float = _SMALLEST_TILT,
    high: float = _LARGEST_TILT,
) -> float:
    """Return the minimiser over [low, high] of a quasi-convex function, to 5 %."""
    shrink = (math.sqrt(5) - 1) / 2
    a, b = math.log(low), math.log(high)
    left, right = b - shrink * (b - a), a + shrink * (b - a)
    at_left, at_right = objective(math.exp(left)), objective(math.exp(right))
    while b - a > 0.05:
        if at_left <= at_right:
            b, right, at_right = right, left, at_left
            left = b - shrink * (b - a)
            at_left = objective(math.exp(left))
        else:
            a, left, at_left = left, right, at_right
            right = a + shrink * (b - a)
            at_right = objective(math.exp(right))
    return math.exp((a + b) / 2)


def _plan(
    composition: Composition,
    tilt: float,
    epsilon: float,
    *,
    tolerance: float,
    step: float | None,
) -> Plan:
    from scipy.fft import next_fast_len  # slow to import

    if not composition.on_grid:
        return Plan(tilt, low_tilt=0.0, high_tilt=tilt, step=1.0, first=0, size=1)
    (low, less), (high, more) = _window(composition, tilt)
    if step is None:
        excess = tolerance * max(epsilon, 1 / tilt)
        step = _step_for(composition, tilt, excess, width=high - low)
    step = max(step, (high - low) / _MOST, composition.laplace.max(initial=0) / _ROW)
    step = _short(step, max(composition.reach(), abs(low), abs(high)))
    spare = 2 + int(min(composition.size, 64))  # a part may move by one node
    first, last = math.floor(low / step) - spare, math.ceil(high / step) + spare
    size = int(next_fast_len(last - first + 1, real=True))
    low_tilt, high_tilt = tilt - min(less, 1 / step), tilt + min(more, 1 / step)
    return Plan(tilt, low_tilt, high_tilt, step=step, first=first, size=size)


def _window(
    composition: Composition, tilt: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends of an interval that holds nearly all of the tilted law.

    With each end comes the change of tilt whose Chernoff bound shows it.
    """
    here = composition.cumulant(tilt)

    def above(more: float) -> float:
        there = composition.cumulant(tilt + more)
        return (there - here + _LOG_OUTSIDE) / more

    def below(less: float) -> float:
        there = composition.cumulant(tilt - less)
        return (there - here + _LOG_OUTSIDE) / less

    lowest, highest = composition.bounds()
    less, more = _minimiser(below), _minimiser(above)
    low, high = max(lowest, -below(less)), min(highest, above(more))
    # A law of one atom still needs a window.
    low = min(low, high - max(1e-4 * composition.reach(), 1e-12))
    return (low, less), (high, more)


def _step_for(
    composition: Composition, tilt: float, excess: float, *, width: float
) -> float:
    if lattice := composition.lattice():
        step = lattice / math.ceil(lattice * tilt)
        if width <= step * _MOST_LATTICE:
            return step
    # Connecting the dots acts like one more Gaussian whose variance v is the spread;
    # at a fixed delta it costs (1 + t) v / 2 of epsilon.
    most = 2 * excess / (1 + tilt)
    low, high = -80.0, 10.0
    for _ in range(40):
        middle = (low + high) / 2
        if composition.spread(math.exp(middle)) <= most:
            low = middle
        else:
            high = middle
    different = composition.laplace.size + composition.counts.size
    fewest = max(_FEWEST, _FEWEST_ALONE // different)
    return min(math.exp(low), width / fewest, 1 / tilt)


def _short(step: float, reach: float) -> float:
    """Round a step so that its multiples up to twice the reach are exact floats."""
    bits = 50 - math.ceil(math.log2(reach / step + 8))
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.ceil(math.ldexp(mantissa, bits)), exponent - bits)

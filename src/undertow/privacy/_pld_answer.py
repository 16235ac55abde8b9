"""Certified delta and epsilon of one direction of a composition."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from undertow._numeric import log_down
from undertow.errors import SearchError
from undertow.privacy._pld_fft import (
    plan_for_delta,
    plan_for_epsilon,
    smallest_epsilon,
    tilted_law,
)
from undertow.privacy._pld_grid import Composition
from undertow.privacy.exact import Exact, format_up, round_down, round_up
from undertow.privacy.gaussian import gdp_delta, gdp_epsilon

__all__ = ["certified_delta", "certified_epsilon", "largest_loss"]


def largest_loss(side: Composition) -> Exact:
    """Return the epsilon at which delta falls to the mass of infinite loss."""
    return math.inf if side.mu or side.infinity >= 1 else side.largest


def certified_delta(
    side: Composition, epsilon: Exact, *, tolerance: float, step: float | None
) -> float:
    """Return an upper bound of delta at `epsilon`."""
    if side.infinity >= 1 or epsilon >= largest_loss(side):
        return round_up(side.infinity)
    value = round_down(epsilon)
    if not side.on_grid:
        return gdp_delta(side.mu, value)
    plan = plan_for_epsilon(side, value, tolerance=tolerance, step=step)
    return tilted_law(side, plan).delta(value)


def certified_epsilon(
    side: Composition, delta: Fraction, *, tolerance: float, step: float | None
) -> float:
    """Return an epsilon whose certified delta is at most `delta`."""
    most = max(round_up(largest_loss(side)), 0.0)
    if delta >= 1 or most == 0:
        return 0.0 if delta >= side.infinity else math.inf
    if delta <= side.infinity:
        return most if delta == side.infinity else math.inf
    if not side.on_grid:
        return gdp_epsilon(side.mu, log_delta=log_down(delta))
    target = round_down(delta)
    if target < sys.float_info.min:  # the least delta a law certifies
        return _beyond_floats(delta, most)
    plan, guess = plan_for_delta(side, target, tolerance=tolerance, step=step)
    law = tilted_law(side, plan)
    return smallest_epsilon(law, target, guess=guess, most=most)


def _beyond_floats(delta: Fraction, most: float) -> float:
    if most == math.inf:
        raise SearchError(
            f"delta must be at least {sys.float_info.min:.3g} where Gaussian noise is "
            f"composed with other, got {format_up(delta, 3)}; give a larger delta."
        )
    return most

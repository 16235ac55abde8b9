"""Where does a condition turn? Searches that end on the side at which it holds.

Each returns a place at which the condition was evaluated and holds, never the middle of
a bracket, so that a search that ends early costs sharpness and not safety. Only the
golden section returns a bracket: whatever slope or order it ends at, a bound holds.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from undertow.errors import SearchError
from undertow.numeric.array import Bools, Floats
from undertow.numeric.rounding import nudge_up


def least_float(holds: Callable[[float], bool], *, low: float, high: float) -> float:
    """Return the least float in ``(low, high]`` at which `holds` turns true.

    Parameters
    ----------
    holds : callable
        False, then true, as its argument grows.
    low, high : float
        Non-negative ends of the search.

    Returns
    -------
    float
        A float at which `holds` was evaluated and is true, and whose predecessor was
        found false (or is `low`).

    Raises
    ------
    SearchError
        If `holds` is false at `high`.

    Notes
    -----
    Halves the number of floats between the ends, so at most 64 evaluations reach full
    precision whatever the magnitude of the root.

    Examples
    --------
    >>> least_float(lambda x: x * x >= 2, low=0.0, high=2.0)
    1.4142135623730951
    """
    if not holds(high):
        raise SearchError(
            f"the search needs a condition that holds at its upper end, got {high}; "
            "widen the bracket."
        )
    lower, upper = _ordinal(low), _ordinal(high)
    while upper - lower > 1:
        middle = (lower + upper) // 2
        if holds(_from_ordinal(middle)):
            upper = middle
        else:
            lower = middle
    return _from_ordinal(upper)


def greatest_float(holds: Callable[[float], bool], *, low: float, high: float) -> float:
    """Return the greatest float in ``[low, high)`` at which `holds` is still true.

    The mirror image of :func:`least_float`: `holds` is true, then false, and must be
    true at `low`.
    """
    if not holds(low):
        raise SearchError(
            f"the search needs a condition that holds at its lower end, got {low}; "
            "widen the bracket."
        )
    lower, upper = _ordinal(low), _ordinal(high)
    while upper - lower > 1:
        middle = (lower + upper) // 2
        if holds(_from_ordinal(middle)):
            lower = middle
        else:
            upper = middle
    return _from_ordinal(lower)


def greatest_int(holds: Callable[[int], bool]) -> int:
    """Return the greatest non-negative integer at which `holds` is still true.

    `holds` is true at 0 and turns false somewhere; doubling finds where.

    Examples
    --------
    >>> greatest_int(lambda n: n * n <= 50)
    7
    """
    upper = 1
    while holds(upper):
        upper *= 2
    lower = upper // 2
    while upper - lower > 1:
        middle = (lower + upper) // 2
        lower, upper = (middle, upper) if holds(middle) else (lower, middle)
    return lower


def bisect(
    holds: Callable[[float], bool],
    *,
    inside: float,
    outside: float,
    rounds: int = 2000,
    width: float = 0.0,
) -> float:
    """Return a place at which `holds` is true, near where it turns false.

    Parameters
    ----------
    holds : callable
        True at `inside`, false at `outside`, and turning once between them; `inside`
        may be the larger of the two.
    inside, outside : float
        Ends of the bracket; neither is evaluated.
    rounds : int, optional
        Halvings at most; by default until the ends are neighbouring floats.
    width : float, optional
        Width of the bracket, as a share of its larger end, at which to stop.

    Notes
    -----
    A middle replaces the end whose answer it shares, so that the end returned is
    `inside` itself or was evaluated and holds. Every round halves the bracket: after k
    of them the turn is within ``|inside - outside| / 2**k``.

    Examples
    --------
    >>> bisect(lambda x: x * x <= 2, inside=0.0, outside=2.0)
    1.414213562373095
    """
    for _ in range(rounds):
        if abs(outside - inside) <= width * max(inside, outside):
            break
        middle = (inside + outside) / 2.0
        if middle in (inside, outside):
            break
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return inside


def bisect_each(
    holds: Callable[[Floats], Bools], *, inside: Floats, outside: Floats, rounds: int
) -> Floats:
    """Bisect many brackets at a time, as :func:`bisect` does one.

    Parameters
    ----------
    holds : callable
        From one place in each bracket to whether its condition holds there.
    inside, outside : ndarray
        Ends of the brackets.
    rounds : int
        Halvings.

    Examples
    --------
    >>> squares, ends = np.array([1.0, 2.0]), np.array([3.0, 3.0])
    >>> bisect_each(
    ...     lambda x: x * x <= squares, inside=np.zeros(2), outside=ends, rounds=60
    ... ).tolist()
    [1.0, 1.414213562373095]
    """
    for _ in range(rounds):
        middle = (inside + outside) / 2.0
        kept = holds(middle)
        inside, outside = (
            np.where(kept, middle, inside),
            np.where(kept, outside, middle),
        )
    return inside


# The least value of a function that falls and then rises.

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
"""Share of a bracket that a golden section keeps."""


class GoldenSection(NamedTuple):
    """Where a golden section ended, and the least value it has seen.

    Attributes
    ----------
    low, high : float
        Ends of the last bracket.
    least : float
        Least of the values at inner places; the ends are not evaluated.
    """

    low: float
    high: float
    least: float


def golden_section(
    value: Callable[[float], float],
    low: float,
    high: float,
    *,
    rounds: int = 2000,
    width: float = -math.inf,
) -> GoldenSection:
    """Close in on the least value of a function that falls and then rises.

    Parameters
    ----------
    value : callable
        Quasi-convex; where it is not, what is returned was seen all the same.
    low, high : float
        Ends of the bracket.
    rounds : int, optional
        Places at most, besides the first two.
    width : float, optional
        Width of the bracket at which to stop; none by default.

    Notes
    -----
    Of two inner places the one with the greater value has no minimiser beyond it, so
    that its end is dropped; the other is an inner place of what is left, as
    ``GOLDEN**2 == 1 - GOLDEN``, and each round needs one value. Ties go to the left:
    the far end may be flat, where everything is disclosed.

    Examples
    --------
    >>> found = golden_section(lambda x: (x - 1) ** 2, 0.0, 3.0, width=1e-6)
    >>> found.low <= 1 <= found.high, found.least < 1e-12
    (True, True)
    """
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    least = min(at_left, at_right)
    for _ in range(rounds):
        if high - low <= width:
            break
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = value(right)
        least = min(least, at_left, at_right)
    return GoldenSection(low, high, least)


# The inverse of a growing curve whose values are expensive: one target, and many.

# Shares of a target below which a value is close enough, and of a bracket.
NEAR, CLOSE = 5e-11, 1e-12
# Targets from which a shared table pays, its size and first level.
_TABLE_FROM, _TABLE_SIZE, _TABLE_FIRST = 32, 256, 1e-9
# False position: rounds, and the share below a target that is near enough.
_TRIES, _BELOW = 80, 1e-12


def greatest_level(
    value: Callable[[float], float],
    target: float,
    *,
    least: float,
    largest: float,
    start: float = 1.0,
) -> float:
    """Return a level at which a growing value is within the target, near the largest.

    Parameters
    ----------
    value : callable
        Non-negative, and growing with its argument.
    target : float
        What the value may be.
    least, largest : float
        Ends of the levels; 0.0 is returned where none above `least` fits.
    start : float, optional
        The level to try first.

    Notes
    -----
    Steps up in proportion to the room that is left, or halves, until the target is
    bracketed, and goes on with :func:`raise_level`. What is returned was evaluated.

    Examples
    --------
    >>> round(greatest_level(lambda x: x * x, 2.0, least=1e-9, largest=100.0), 9)
    1.414213562
    """
    low, high = 0.0, min(start, largest)
    while (found := value(high)) <= target:
        if (low := high) >= largest:
            return low
        reach = target / found if found > 0 else np.inf
        high = min(largest, high * min(max(1.25 * reach, 1.25), 16.0))
    while low == 0.0:
        if value(middle := high / 2.0) <= target:
            low = middle
        elif (high := middle) < least:
            return 0.0
    return raise_level(value, target, low, high)


def raise_level(
    value: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Raise `low`, which fits, towards `high`, which does not, by Brent's method.

    In logarithms, ending as soon as the value is a little below the target; the
    greatest level that was seen to fit is returned, so that neither the tolerance of
    the method nor a curve that is not smooth can pass the target.
    """
    from scipy.optimize import brentq

    best = low

    def miss(place: float) -> float:
        nonlocal best
        level = high if place == 1.0 else low * (high / low) ** place
        found = math.log(max(value(level) / target, 1e-300))
        if found <= 0.0:
            best = max(best, level)
        return 0.0 if -2.0 * NEAR <= found <= 0.0 else found + NEAR

    brentq(miss, 0.0, 1.0, xtol=CLOSE)
    return best


def greatest_levels(
    value: Callable[[Floats], Floats], targets: Floats, *, largest: float
) -> Floats:
    """Return the greatest level at which a growing curve stays within each target.

    Parameters
    ----------
    value : callable
        From levels to values, elementwise; growing.
    targets : ndarray
        What the values may be.
    largest : float
        Largest level; one that fits everywhere ends there.

    Notes
    -----
    Few targets are bisected over the floats, 62 evaluations each. Many share a table of
    the curve, and from its brackets go on by false position; they end within a relative
    1e-11 below the target. A level of 0 says that no positive float fits. Non-negative
    floats are in the order of their bits, so that halving between bits ends at
    neighbours.

    Examples
    --------
    >>> greatest_levels(np.square, np.array([2.0, 9.0]), largest=2.0).tolist()
    [1.414213562373095, 2.0]
    """
    low, high = np.zeros(targets.shape), np.full(targets.shape, nudge_up(largest))
    if len(targets) >= _TABLE_FROM:
        grid = np.geomspace(_TABLE_FIRST, largest, _TABLE_SIZE)
        place = np.searchsorted(value(grid), targets, side="right")
        inner = (place > 0) & (place < _TABLE_SIZE)
        low[inner], high[inner] = grid[place[inner] - 1], grid[place[inner]]
        ends = (low[inner], high[inner])
        low[inner] = false_position(value, targets[inner], ends)
        high[inner] = np.nextafter(low[inner], np.inf)
    first, last = low.view(np.int64), high.view(np.int64)
    while (open_ := last - first > 1).any():
        middle = first[open_] + (last[open_] - first[open_]) // 2
        fits = value(middle.view(np.float64)) <= targets[open_]
        first[open_] = np.where(fits, middle, first[open_])
        last[open_] = np.where(fits, last[open_], middle)
    return low


def false_position(
    value: Callable[[Floats], Floats],
    targets: Floats,
    ends: tuple[Floats, Floats],
    *,
    near: float = _BELOW,
    width: float = 1e-15,
) -> Floats:
    """Raise the low ends to the targets within brackets, on logarithmic scales.

    By the Illinois rule, all brackets at a time, until the value is within a share
    `near` below its target or the bracket within a share `width`. The low ends returned
    were evaluated and fit, less the rounding of their logarithms.
    """
    (low, high), goal = ends, np.log(targets)
    below, above = (np.log(value(x)) - goal for x in (low, high))
    low, high, side = np.log(low), np.log(high), np.zeros(low.shape)
    for _ in range(_TRIES):
        todo = np.flatnonzero((below < -near) & (high - low > width))
        if not todo.size:
            break
        a, b, f, g = low[todo], high[todo], below[todo], above[todo]
        middle = np.where(g > f, (f * b - g * a) / np.where(g > f, f - g, 1.0), a)
        outside = ~((middle > a) & (middle < b))
        middle = np.where(outside, (a + b) / 2.0, middle)
        level = np.exp(middle)
        here = np.log(value(level)) - goal[todo]
        fits = here <= 0.0
        # An end that stays twice counts half, so that it moves next time.
        above[todo] = np.where(fits & (side[todo] > 0), g / 2.0, g)
        below[todo] = np.where(~fits & (side[todo] < 0), f / 2.0, f)
        low[todo] = np.where(fits, middle, a)
        below[todo] = np.where(fits, here, below[todo])
        high[todo] = np.where(fits, b, middle)
        above[todo] = np.where(fits, above[todo], here)
        side[todo] = np.where(fits, 1.0, -1.0)
    return np.asarray(np.exp(low) * (1.0 - 4e-16))


def _ordinal(value: float) -> int:
    """Return the rank of a non-negative float among the non-negative floats."""
    return int.from_bytes(struct.pack(">d", value + 0.0), "big")


def _from_ordinal(rank: int) -> float:
    return float(struct.unpack(">d", rank.to_bytes(8, "big"))[0])

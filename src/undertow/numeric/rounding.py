"""Numbers that end up on the asked-for side: directed rounding and safe bisection.

The C library's ``exp``, ``expm1`` and ``log`` are accurate to about one unit in the
last place (ulp); the directed versions here move a result `LIBM_ULPS` further, so that
they enclose the exact value. Where no float may enter, `exp_bracket` encloses an
exponential between integers. The searches end at neighbouring floats, on the side at
which their condition holds.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

from undertow.errors import SearchError

Exact = int | Fraction | float

LIBM_ULPS = 4
"""Units in the last place by which a directed elementary function is moved."""


def nudge_up(value: float, ulps: int = 1) -> float:
    """Return the float `ulps` steps above `value`.

    Examples
    --------
    >>> nudge_up(1.0) - 1.0 == 2.0**-52
    True
    """
    for _ in range(ulps):
        value = math.nextafter(value, math.inf)
    return value


def nudge_down(value: float, ulps: int = 1) -> float:
    """Return the float `ulps` steps below `value`."""
    for _ in range(ulps):
        value = math.nextafter(value, -math.inf)
    return value


def inflate(value: float, margin: float) -> float:
    """Return a non-negative `value` raised by the relative `margin`; zero stays zero.

    Examples
    --------
    >>> inflate(0.0, 1e-12), inflate(1.0, 0.5)
    (0.0, 1.5000000000000002)
    """
    return nudge_up(value * (1.0 + margin)) if value > 0 else value


def keep_exact(value: Exact) -> Fraction | float:
    """Return a Fraction, or ``inf``: a float would be read through its decimal form."""
    return math.inf if value == math.inf else Fraction(value)


def exp_up(exponent: Exact) -> float:
    """Return a float at least ``exp(exponent)``; infinite on overflow.

    Examples
    --------
    >>> exp_up(0), exp_up(10**6)
    (1.0, inf)
    """
    if exponent == 0:
        return 1.0
    try:
        return nudge_up(math.exp(_float_above(exponent)), LIBM_ULPS)
    except OverflowError:
        return math.inf


def expm1_up(exponent: Exact) -> float:
    """Return a float at least ``exp(exponent) - 1``; infinite on overflow."""
    if exponent == 0:
        return 0.0
    try:
        return nudge_up(math.expm1(_float_above(exponent)), LIBM_ULPS)
    except OverflowError:
        return math.inf


def expm1_down(exponent: Exact) -> float:
    """Return a float at most ``exp(exponent) - 1``."""
    if exponent in (0, math.inf):
        return float(exponent)
    try:
        return nudge_down(math.expm1(_float_below(exponent)), LIBM_ULPS)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)


def log_down(value: Exact) -> float:
    """Return a float at most ``log(value)`` for a positive `value`.

    Numbers too small or too large for a float are read through their integers.

    Examples
    --------
    >>> log_down(1), log_down(Fraction(1, 10**400)) < -921.03
    (0.0, True)
    """
    if value == 1 or value == math.inf:
        return 0.0 if value == 1 else math.inf
    ratio = Fraction(value)
    if Fraction(1, 2) < ratio < 2:
        return nudge_down(math.log1p(_float_below(ratio - 1)), LIBM_ULPS)
    if 1e-300 < ratio < 1e300:
        return nudge_down(math.log(float(ratio)), LIBM_ULPS)
    above, below = math.log(ratio.numerator), math.log(ratio.denominator)
    # Two rounded logarithms: their errors are relative to the larger of them.
    error = LIBM_ULPS * math.ulp(max(above, below))
    return nudge_down(above - below - error, LIBM_ULPS)


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


def _float_above(value: Exact) -> float:
    nearest = float(value)
    return nearest if nearest >= value else nudge_up(nearest)


def _float_below(value: Exact) -> float:
    nearest = float(value)
    return nearest if nearest <= value else nudge_down(nearest)


def _ordinal(value: float) -> int:
    """Return the rank of a non-negative float among the non-negative floats."""
    return int.from_bytes(struct.pack(">d", value + 0.0), "big")


def _from_ordinal(rank: int) -> float:
    return float(struct.unpack(">d", rank.to_bytes(8, "big"))[0])


_GUARD = 16


def exp_bracket(x: Fraction, precision: int) -> tuple[int, int]:
    r"""Enclose :math:`2^p e^{-x}` between two integers.

    Parameters
    ----------
    x : Fraction
        Non-negative.
    precision : int
        The exponent p.

    Returns
    -------
    tuple of int
        ``(lower, upper)`` with :math:`\text{lower} \le 2^p e^{-x} \le \text{upper}`,
        and ``upper - lower`` at most 2.

    Notes
    -----
    Halve x until it is at most 1/16, sum the alternating series of
    :math:`e^{-y}` with every term rounded outwards, square back, rounding outwards.
    The width is at most :math:`2^{t}\cdot(2N+3)` units of the working precision after
    t squarings and N terms; the guard bits keep that below one unit of `precision`.

    Examples
    --------
    >>> exp_bracket(Fraction(0), 10), exp_bracket(Fraction(1), 20)
    ((1024, 1024), (385749, 385750))
    """
    if x == 0:
        return 1 << precision, 1 << precision
    if x >= precision + 1:  # e > 2, so 2^p e^-x < 1
        return 0, 1
    halvings = max(0, (16 * x.numerator // x.denominator).bit_length())
    working = precision + halvings + _GUARD
    lower, upper = _small_bracket(x / (1 << halvings), working)
    for _ in range(halvings):
        lower = lower * lower >> working
        upper = -(-upper * upper >> working)
    upper = min(upper, 1 << working)  # e^-x is at most 1
    return lower >> (working - precision), -(-upper >> (working - precision))


def _small_bracket(y: Fraction, working: int) -> tuple[int, int]:
    """Enclose ``2**working * exp(-y)`` for y at most 1/16."""
    Y = (y.numerator << working) // y.denominator  # Y <= 2^w y < Y + 1
    low_term = high_term = low_sum = high_sum = 1 << working
    k = 0
    while high_term > 1:
        k += 1
        low_term = low_term * Y // (k << working)
        high_term = -(-high_term * Y // (k << working))
        if k % 2:
            low_sum, high_sum = low_sum - high_term, high_sum - low_term
        else:
            low_sum, high_sum = low_sum + low_term, high_sum + high_term
    # What the series leaves out is below its last term, at most one unit; replacing
    # y by Y / 2^w moved the value by less than one unit, downwards only.
    return max(0, low_sum - 2), high_sum + 1

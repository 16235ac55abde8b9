"""Numbers that end up on the asked-for side: directed rounding.

The C library's ``exp``, ``expm1`` and ``log`` are accurate to about one unit in the
last place (ulp); the directed versions here move a result `LIBM_ULPS` further, so that
they enclose the exact value. Where no float may enter, `exp_bracket` encloses an
exponential between integers.
"""

from __future__ import annotations

import math
from fractions import Fraction

from undertow.numeric.exact import Exact, round_down, round_up

LIBM_ULPS = 4
"""Units in the last place by which a directed elementary function is moved."""

# Shares by which a value is raised, or lowered, to cover its own rounding. They hold
# where nothing cancels: sums of terms of one sign, products, quotients, and functions
# that do not magnify the relative error of their argument. Then relative errors add.

UNIT = 2.0**-53
"""Largest relative error of one rounded operation: half a unit in the last place."""

HANDFUL = 32 * UNIT
"""Covers a handful of operations: three elementary functions that err by `LIBM_ULPS`
units in the last place, of at most two `UNIT` each, and eight rounded operations."""

DOZENS = 512 * UNIT
"""Covers a few dozen operations, as many as 32 elementary functions among them."""

CLOSED_FORM = 1e-12
"""Covers a closed form with special functions, which err by less than 1e-14, or with a
sum of up to 4000 positive terms that are good to a `UNIT` each. As an absolute margin
it covers the same for values of at most 1, such as differences of probabilities."""


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
        return nudge_up(math.exp(round_up(exponent)), LIBM_ULPS)
    except OverflowError:
        return math.inf


def expm1_up(exponent: Exact) -> float:
    """Return a float at least ``exp(exponent) - 1``; infinite on overflow."""
    if exponent == 0:
        return 0.0
    try:
        return nudge_up(math.expm1(round_up(exponent)), LIBM_ULPS)
    except OverflowError:
        return math.inf


def expm1_down(exponent: Exact) -> float:
    """Return a float at most ``exp(exponent) - 1``."""
    if exponent in (0, math.inf):
        return float(exponent)
    try:
        return nudge_down(math.expm1(round_down(exponent)), LIBM_ULPS)
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
        return nudge_down(math.log1p(round_down(ratio - 1)), LIBM_ULPS)
    if 1e-300 < ratio < 1e300:
        return nudge_down(math.log(float(ratio)), LIBM_ULPS)
    above, below = math.log(ratio.numerator), math.log(ratio.denominator)
    # Two rounded logarithms: their errors are relative to the larger of them.
    error = LIBM_ULPS * math.ulp(max(above, below))
    return nudge_down(above - below - error, LIBM_ULPS)


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

r"""Integers that enclose :math:`2^p e^{-x}`, without floating point."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["exp_bracket"]

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

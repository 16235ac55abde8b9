"""Numbers as a person reads them: few digits, and none that promises too much."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_DIGITS = 4


def shown_down(value: float, digits: int = _DIGITS) -> str:
    """Return a number with so many decimals, or digits if it is small, cut down.

    Parameters
    ----------
    value : float
        Read as the decimal that it is written as; not nan.
    digits : int, optional
        Decimals of a number that is at least 1, digits of a smaller one.

    Examples
    --------
    >>> shown_down(2.504379), shown_down(0.00123456), shown_down(1.0)
    ('2.5043', '0.001234', '1')
    """
    return _shown(value, digits, ROUND_FLOOR)


def shown_up(value: float, digits: int = _DIGITS) -> str:
    """Return a number with so many decimals, or digits if it is small, rounded up.

    Parameters as in :func:`shown_down`.

    Examples
    --------
    >>> shown_up(31.00001), shown_up(0.1), shown_up(0.0123456, 3)
    ('31.0001', '0.1', '0.0124')
    """
    return _shown(value, digits, ROUND_CEILING)


def _shown(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    exact = Decimal(repr(value))
    if exact == 0:
        return "0"
    if exact.adjusted() > 15:  # such a float has no decimals
        return f"{value:.17g}"
    place = min(-digits, exact.adjusted() - digits + 1)
    return _plain(exact.quantize(Decimal(1).scaleb(place), rounding=rounding))


def _plain(number: Decimal) -> str:
    if number != 0 and number.adjusted() < -6:
        return f"{number.normalize():e}"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

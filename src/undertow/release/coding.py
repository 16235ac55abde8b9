"""Numbers of rows as whole numbers: codes on a public lattice, and bins.

Integers and decimals are coded exactly as ``floor((x - low) / step + 1/2)``; floating
point follows the same formula in 64-bit arithmetic, one rounding per operation. The
three engines agree on every code.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.engine_sql import double, truth, type_name
from undertow.release.job import Value

__all__ = ["MOST_CODE", "bin_number", "code", "decimal_places", "present"]

ibis = load("ibis")

MOST_CODE = 2**48
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_DIGITS = 38  # of a decimal
_EXACT = 2**51  # whole doubles below it survive a multiplication by a power of ten


def present(column: Any) -> Any:
    """Tell whether a row has this number: not missing and not NaN."""
    if column.type().is_floating():
        return column.notnull() & ~column.isnan()
    if column.type().is_decimal() and column.get_backend().name == "postgres":
        # Its decimals hold NaN, whatever their scale, above all numbers.
        return column.notnull() & (column != ibis.literal("NaN").cast("decimal"))
    return column.notnull()


def code(column: Any, value: Value) -> Any:
    """Return the code of a number, from 0 to the largest; missing if it is or is NaN.

    Raises
    ------
    PlanError
        If the column holds no numbers, or the lattice is too fine for exact sums.
    """
    kind = column.type()
    if value.most > MOST_CODE:
        raise PlanError(
            f"the lattice of {value.column!r} must have at most 2^48 points, got "
            f"{value.most}; use a coarser step."
        )
    if kind.is_boolean():
        number = column.isnull().ifelse(ibis.null("int64"), truth(column))
        return _integer_code(number, value)
    if kind.is_integer() and not kind.is_uint64():
        return _integer_code(column.cast("int64"), value)
    if kind.is_floating():
        return _float_code(column.cast("float64"), value)
    if kind.is_uint64():
        return _decimal_code(column.cast("decimal(20, 0)"), value)
    if kind.is_decimal():
        return _decimal_code(_unlimited(column), value)
    raise PlanError(
        f"column {value.column!r} must hold numbers, got {type_name(kind)}; state the "
        "types of a CSV file in source.types."
    )


def _unlimited(column: Any) -> Any:
    """Return a decimal of more digits than others have, on PostgreSQL, without scale.

    What its scale leaves room for could not be written as a decimal of 38.
    """
    precision = column.type().precision
    long = precision is not None and precision > _DIGITS
    return column.cast("decimal").name(column.get_name()) if long else column


def _int(value: int) -> Any:
    return ibis.literal(value, type="int64").cast("int64")


def _clipped(number: Any, least: int, greatest: int) -> Any:
    low, high = _int(least), _int(greatest)
    return (number < low).ifelse(low, (number > high).ifelse(high, number))


def _between(
    number: Any, least: int, greatest: int, *, most: int, inner: Any, whole: bool
) -> Any:
    """Return 0 below the range, `most` above it, and `inner` of the number inside.

    If the ends are `whole`, `inner` of the clipped number says all of that.
    """
    if least > greatest or least > _GREATEST or greatest < _LEAST:
        # No whole number lies inside: everything is at one of the two ends.
        cut = min(max(least, _LEAST), _GREATEST)
        end = (number >= _int(cut)).ifelse(_int(most), _int(0))
        if least > _GREATEST:
            end = _int(0)
        return number.isnull().ifelse(ibis.null("int64"), end)
    least, greatest = max(least, _LEAST), min(greatest, _GREATEST)
    inside = inner(_clipped(number, least, greatest))
    if whole:
        return inside
    above = (number > _int(greatest)).ifelse(_int(most), inside)
    return (number < _int(least)).ifelse(_int(0), above)


def _integer_code(number: Any, value: Value) -> Any:
    start, last = math.ceil(value.low), math.floor(value.high)
    exponent = value.exponent
    offset = start - value.low

    def fine(x: Any) -> Any:
        # (x - low) / step is a whole number and a public remainder.
        rest = math.floor(offset / value.step + Fraction(1, 2))
        # Where one number lies inside, nothing is multiplied, and steps may be any.
        steps = 2**-exponent if start < last else 1
        return (x - _int(start)) * _int(steps) + _int(rest)

    def coarse(x: Any) -> Any:
        # floor((x + constant) / 2^exponent), carry by carry: no sum can overflow.
        constant = 2 ** (exponent - 1) - start
        mask = 2**exponent - 1
        low_bits = (x & _int(mask)) + _int(constant & mask)
        return (x >> exponent) + _int(constant >> exponent) + (low_bits >> exponent)

    if exponent > 61:
        raise PlanError(
            f"the step of {value.column!r} must be below 2^62, got 2^{exponent}."
        )
    inner = fine if exponent <= 0 else coarse
    whole = start == value.low and last == value.high
    return _between(number, start, last, most=value.most, inner=inner, whole=whole)


def _float_code(number: Any, value: Value) -> Any:
    low, high = float(value.low), float(value.high)
    if not math.isfinite(high - low):
        raise PlanError(
            f"the range of {value.column!r} must be finite in 64 bits, got an overflow."
        )
    number = number.isnan().ifelse(ibis.null("float64"), number)
    above = (number > double(high)).ifelse(double(high), number)
    inside = (number < double(low)).ifelse(double(low), above)
    scaled = (inside - double(low)) * double(2.0**-value.exponent)
    rounded = (scaled + double(0.5)).floor().cast("int64")
    return (rounded > _int(value.most)).ifelse(_int(value.most), rounded)


def decimal_places(scale: int | None, value: Value) -> int:
    """Return to how many decimal places a decimal is read before it is coded.

    All of them unless the range is so wide, or the places so many, that 64 bits could
    not hold the products; then as many as fit, rounding half away from zero.
    """
    bound = max(abs(value.low), abs(value.high)) + 1
    for places in range(12 if scale is None else min(scale, 12), -1, -1):
        factor, constant, _ = _division(value, places)
        span = math.ceil((value.high - value.low) * 10**places)
        if bound * 10**places < _EXACT and factor * span + constant < 2**62:
            return places
    raise PlanError(
        f"the bounds of {value.column!r} must be below 2^51 for a decimal column, got "
        "wider ones; cast the column to an integer or floating point in the table."
    )


def _division(value: Value, places: int) -> tuple[int, int, int]:
    """Return (A, B, C) with code = floor((A d + B) / C), d whole units past the start.

    With M = 10^places * step = u / v in lowest terms and r the distance from low to the
    first unit, code = floor((d + r) / M + 1/2), whose fraction 2 r v may be floored:
    floor((2 v d + floor(2 r v) + u) / 2 u).
    """
    M = Fraction(10) ** places * value.step
    u, v = M.numerator, M.denominator
    low = value.low * 10**places
    r = math.ceil(low) - low
    return 2 * v, math.floor(2 * r * v) + u, 2 * u


def _decimal_code(column: Any, value: Value) -> Any:
    scale = column.type().scale if column.type().is_decimal() else 0
    places = decimal_places(scale, value)
    number = _unscaled(column, math.ceil(max(abs(value.low), abs(value.high))), places)
    start = math.ceil(value.low * 10**places)
    last = math.floor(value.high * 10**places)
    A, B, C = _division(value, places)

    def inner(x: Any) -> Any:
        return _floor_divide((x - _int(start)) * _int(A) + _int(B), C)

    code = _between(number, start, last, most=value.most, inner=inner, whole=False)
    return present(column).ifelse(code, ibis.null("int64"))


def _unscaled(column: Any, bound: int, places: int) -> Any:
    """Return a decimal in units of its last place, clipped to one beyond the bound."""
    kind, scale = f"decimal(18, {places})", column.type().scale
    inside = column.cast(kind)
    if scale is None or bound + 1 < 10 ** (_DIGITS - scale):  # else none is beyond
        low, high = ibis.literal(-bound - 1), ibis.literal(bound + 1)
        above = (column > high).ifelse(high.cast(kind), inside)
        inside = (column < low).ifelse(low.cast(kind), above)
    # Both the conversion and the product are within one rounding of a whole number.
    real = inside.cast("float64") * double(10.0**places)
    return (real + double(0.5)).floor().cast("int64")


def _floor_divide(number: Any, divisor: int) -> Any:
    """Divide a whole number >= 0; rounding restores a quotient below 2^50."""
    exact = number - number % _int(divisor)
    real = exact.cast("float64") / double(float(divisor))
    return (real + double(0.5)).floor().cast("int64")


def bin_number(column: Any, cuts: Sequence[Fraction]) -> Any:
    """Return the number of inner cut points that a number has reached.

    Parameters
    ----------
    column : Ibis column
        A number; the bin is missing if it is or is NaN.
    cuts : sequence of Fraction
        Increasing; the first and the last only name the ends.

    Raises
    ------
    PlanError
        If the column holds no numbers, or decimals that no cut point can be written as.
    """
    kind, there = column.type(), present(column)
    if kind.is_boolean():
        column = truth(column)
    elif kind.is_decimal():
        column = _unlimited(column)
    elif not kind.is_numeric():
        raise PlanError(
            f"column {column.get_name()!r} must hold numbers, got {type_name(kind)}."
        )
    found = [_mark(column, cut) for cut in cuts[1:-1]]
    marks = [mark for mark in found if not isinstance(mark, bool)]
    always = sum(mark is True for mark in found)  # these come first

    def count(first: int, last: int) -> Any:
        # Between `first` and `last` cut points are reached.
        if first == last:
            return _int(always + first)
        middle = (first + last + 1) // 2
        upper, lower = count(middle, last), count(first, middle - 1)
        return (column >= marks[middle - 1]).ifelse(upper, lower)

    return there.ifelse(count(0, len(marks)), ibis.null("int64"))


def _mark(column: Any, cut: Fraction) -> Any:
    """Return the least value of the column's type that is not below the cut.

    Instead True where every value reaches the cut, and False where none does.
    """
    kind = column.type()
    if kind.is_floating():
        return double(_float_mark(cut))
    if kind.is_decimal():
        return _decimal_mark(column, cut)
    whole, most = math.ceil(cut), 2**64 - 1 if kind.is_uint64() else _GREATEST
    least = 0 if kind.is_unsigned_integer() else _LEAST
    if not least < whole <= most:
        return whole <= least
    if whole <= _GREATEST:
        return ibis.literal(whole)
    return ibis.literal(Decimal(whole), type=f"decimal({_DIGITS}, 0)")


def _float_mark(cut: Fraction) -> float:
    try:
        nearest = float(cut)
    except OverflowError:
        return math.inf if cut > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= cut else math.nextafter(nearest, math.inf)


def _decimal_mark(column: Any, cut: Fraction) -> Any:
    scale = column.type().scale
    places = 12 if scale is None else scale
    whole = math.ceil(cut * 10**places)
    if abs(whole) < 10**_DIGITS:
        # Digits by digits, which are not rounded to those of a context.
        written = (int(whole < 0), tuple(map(int, str(abs(whole)))), -places)
        return ibis.literal(Decimal(written), type=f"decimal({_DIGITS}, {places})")
    if scale:
        return whole < 0
    # Whole numbers of 128 bits, and decimals of PostgreSQL without scale, go further.
    raise PlanError(
        f"the bins of {column.get_name()!r} must be below 10^{_DIGITS - places} for a "
        "decimal column, got a cut point beyond; use nearer ones, or cast the column "
        "to floating point in the table."
    )

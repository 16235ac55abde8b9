"""Exact numbers: what a user types is what is added, and reports round up.

Binary floats lose budgets (``0.1 + 0.1 + 0.1 > 0.3``). Every budget is therefore read
as the decimal its author wrote, kept as a :class:`fractions.Fraction`, and turned into
a float only for a report, in the direction that does not overstate privacy.

Losses and distances live on the extended non-negative reals, where infinity means "no
promise for this pair". The rules differ from IEEE arithmetic in one place that matters:
zero times an infinite distance is infinite, because a guarantee of zero per step says
nothing about pairs that no chain of steps connects.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from fractions import Fraction

Number = int | float | str | Decimal | Fraction
"""What a user may give as a budget."""

Exact = int | Fraction | float
"""A Fraction or int, or the float ``inf``."""

# A decimal exponent past this cannot be meant as a budget, and would make the exact
# integers that represent it exhaust the memory.
_LARGEST_EXPONENT = 400
_LONGEST_TEXT = 1000


def exact(value: Number, name: str = "value", *, at_most: int | None = None) -> Exact:
    """Read a non-negative budget exactly.

    Parameters
    ----------
    value : int, float, str, Decimal or Fraction
        A float is read through its shortest decimal form, so ``0.1`` is one tenth.
        ``"inf"`` and ``math.inf`` are infinite; ``"1/3"`` is a third.
    name : str
        The argument's name, for the error message.
    at_most : int, optional
        Largest permitted value.

    Returns
    -------
    Fraction or float
        A Fraction, or ``math.inf``.

    Raises
    ------
    ValueError
        If the value is negative, not a number, or above `at_most`.

    Examples
    --------
    >>> exact(0.1) + exact("0.2") == exact("3/10")
    True
    """
    number = _parse(value, name)
    if number < 0:
        raise ValueError(f"{name} must be non-negative, got {_shown(value)}.")
    if at_most is not None and number > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {_shown(value)}.")
    return number


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _parse(value: Number, name: str) -> Exact:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(
        value, int | float | str | Decimal | numbers.Real
    ):
        raise TypeError(
            f"{name} must be an int, float, str, Decimal or Fraction, "
            f"got {type(value).__name__}."
        )
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, str):
        return _parse_text(value, name)
    if isinstance(value, Decimal):
        return _from_decimal(value, name)
    return _from_decimal(Decimal(repr(float(value))), name)


def _parse_text(text: str, name: str) -> Exact:
    if len(text) > _LONGEST_TEXT:
        raise ValueError(
            f"{name} must be a number of at most {_LONGEST_TEXT} characters, "
            f"got {len(text)}."
        )
    numerator, slash, denominator = text.partition("/")
    try:
        if slash:
            return Fraction(int(numerator), int(denominator))
        return _from_decimal(Decimal(text.strip()), name)
    except (ValueError, ZeroDivisionError, InvalidOperation) as fault:
        if type(fault) is ValueError and str(fault).startswith(name):
            raise
        raise ValueError(
            f"{name} must be a number such as 0.5 or 1/3, got {_shown(text)!r}."
        ) from None


def _from_decimal(value: Decimal, name: str) -> Exact:
    if value.is_nan():
        raise ValueError(f"{name} must be a number, got nan.")
    if value.is_infinite():
        return math.inf if value > 0 else -math.inf
    if value and abs(value.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError(
            f"{name} must lie between 1e-{_LARGEST_EXPONENT} and "
            f"1e{_LARGEST_EXPONENT}, got {_shown(value)}; use inf for an unlimited one."
        )
    return Fraction(value)


def round_up(value: Exact) -> float:
    """Return the smallest float that is at least `value`.

    Examples
    --------
    >>> round_up(Fraction(3, 10)) >= Fraction(3, 10)
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    if math.isfinite(nearest) and Fraction(nearest) < value:
        return math.nextafter(nearest, math.inf)
    return nearest


def round_up_decimal(value: Exact) -> float:
    """Return the smallest float whose shortest decimal form is at least `value`.

    Budgets are read as the decimals their authors wrote; so are these floats, and a
    level that was divided by a factor and multiplied again does not pass its target.

    Examples
    --------
    >>> round_up_decimal(exact("1.025") * 2)
    2.05
    """
    nearest = round_down(value)
    while exact(nearest) < value:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def round_down(value: Exact) -> float:
    """Return the largest float that is at most `value`."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)
    if math.isfinite(nearest) and Fraction(nearest) > value:
        return math.nextafter(nearest, -math.inf)
    return nearest


def sqrt_up(value: Exact) -> float:
    """Return the smallest float whose exact square is at least `value`."""
    if value == math.inf:
        return math.inf
    value = Fraction(value)
    root = sqrt_down(value)
    return root if Fraction(root) ** 2 == value else math.nextafter(root, math.inf)


def sqrt_down(value: Exact) -> float:
    """Return the largest float whose exact square is at most `value`."""
    if value == math.inf:
        return math.inf
    value = Fraction(value)
    if value == 0:
        return 0.0
    # Scale so that the integer root carries at least 64 significant bits; dropping the
    # rest can then only lose what the final rounding would lose.
    bits = value.denominator.bit_length() - value.numerator.bit_length()
    shift = max(0, (bits + 132) // 2)
    scaled = (value.numerator << (2 * shift)) // value.denominator
    root = round_down(Fraction(math.isqrt(scaled), 1 << shift))
    above = math.nextafter(root, math.inf)
    if above == math.inf:
        return root
    return above if Fraction(above) ** 2 <= value else root


def format_up(value: Exact, digits: int = 12) -> str:
    """Write `value` as a decimal of at most `digits` digits, rounded up.

    Examples
    --------
    >>> format_up(Fraction(9, 5)), format_up(Fraction(1, 3), 3), format_up(math.inf)
    ('1.8', '0.334', 'inf')
    >>> format_up(100), format_up(Fraction(1, 10**9))
    ('100', '1e-9')
    """
    if value == math.inf:
        return "inf"
    context = Context(prec=digits, rounding=ROUND_CEILING)
    value = Fraction(value)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    if not quotient:
        return "0"
    short = quotient.normalize(context)
    written_out = -7 < short.adjusted() < 16
    return f"{short:f}" if written_out else f"{short:e}".replace("e+", "e")


def ext_scale(factor: Exact, distance: Exact) -> Exact:
    """Return `factor` times `distance`; infinite whenever the distance is.

    Exact inputs give an exact product.

    Examples
    --------
    >>> ext_scale(0.0, math.inf), ext_scale(math.inf, 0), ext_scale(0, 3)
    (inf, 0, 0)
    """
    _refuse_nan_and_negative(factor, distance)
    if distance == 0:
        return 0
    if distance == math.inf or factor == math.inf:
        return math.inf
    if isinstance(factor, float) or isinstance(distance, float):
        return float(factor) * float(distance)
    return factor * distance


def ext_sum(values: Iterable[Exact]) -> Exact:
    """Return the sum; exact for fractions, correctly rounded for floats.

    Examples
    --------
    >>> ext_sum([1, math.inf]), ext_sum([Fraction(1, 10)] * 3)
    (inf, Fraction(3, 10))
    """
    terms = list(values)
    _refuse_nan_and_negative(*terms)
    if any(term == math.inf for term in terms):
        return math.inf
    if any(isinstance(term, float) for term in terms):
        return math.fsum(terms)
    return sum(terms, start=Fraction(0))


def ext_l2(values: Iterable[Exact]) -> float:
    """Return the Euclidean norm without overflow in the squares.

    Examples
    --------
    >>> ext_l2([3, 4])
    5.0
    """
    terms = [float(term) for term in values]
    _refuse_nan_and_negative(*terms)
    return math.hypot(*terms)


def ext_max(values: Iterable[Exact]) -> Exact:
    """Return the maximum over releases; an empty set costs nothing."""
    terms = list(values)
    _refuse_nan_and_negative(*terms)
    return max(terms, default=0)


def _refuse_nan_and_negative(*values: Exact) -> None:
    for value in values:
        if not value >= 0:
            raise ValueError(
                f"an extended non-negative real must be in [0, inf], got {value}."
            )

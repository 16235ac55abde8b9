r"""A keyed order of rows: which of a unit's rows are kept, the same on every engine.

Each column becomes a whole number :math:`x = x_0 + 2^{31} x_1 + 2^{62} x_2`; text
becomes two numbers of 28 bits from its MD5 digest after a secret. With
:math:`p = 2^{31} - 1` and secret coefficients,

.. math:: h = \sum_c (a_{c0} x_{c0} + a_{c1} x_{c1} + a_{c2} x_{c2}) \bmod p, \qquad
   g = b_3 h^3 + b_2 h^2 + b_1 h + b_0 \bmod p,

and rows are ordered by :math:`g`, then by their values. Two distinct rows collide in
:math:`h` with probability about :math:`2^{-31}`; the values :math:`g` of any four rows
that do not are independent and uniform up to about :math:`2^{-31}`. Of several rows of
a unit at one place, mostly copies of each other, number j goes to

.. math:: g(h'), \qquad h' = c g + d j \bmod p, \quad j \ge 1,

by another such polynomial, so that every row is kept with the same probability, however
many are alike. Only 64-bit sums, products below :math:`2^{63}` and remainders are used,
which all engines compute alike.

Which rows of a unit are kept is no secret and needs none: every promise holds for every
fixed key, because what is kept of a unit depends on its own rows and the key alone.
The key makes the choice one that the data cannot have been arranged for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import shake_256
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.engine_sql import (
    Backend,
    double,
    enclosed,
    epoch_days,
    epoch_us,
    long,
    numbers_of_text,
    truth,
    type_name,
)

__all__ = ["PRIME", "KeyedOrder", "coefficients", "text_secret"]

ibis = load("ibis")

PRIME = 2**31 - 1
_LIMB = 2**31 - 1
_MOST_LIMBS = 3
_MOST = 2**63 - 1
_SHORT_BYTES = 4
_FLOAT_LIMIT = 2.0**42
_FLOAT_SCALE = 2.0**20
_DECIMAL_LIMIT = 10**11
_DECIMAL_LEAST = Decimal("1e-30")
_DECIMAL_PLACES = 6


def coefficients(key: bytes, label: str) -> Iterator[int]:
    """Yield secret numbers below the prime, expanded from the key."""
    counter = 0
    while True:
        block = shake_256(key + f"|{label}|{counter}".encode()).digest(8)
        yield 1 + int.from_bytes(block, "big") % (PRIME - 1)
        counter += 1


def text_secret(key: bytes) -> str:
    """Return the secret that goes before texts, expanded from the key."""
    return shake_256(key + b"|text").hexdigest(16)


@dataclass(frozen=True, slots=True)
class KeyedOrder:
    """The keyed order of the rows of a table.

    Parameters
    ----------
    columns : tuple of str
        What the order depends on, in an agreed order.
    key : bytes
        The secret of this run.
    backend : Backend
        The engine.
    label : str
        Orders of different labels are independent.
    distinct : bool
        Whether no two rows are alike in all columns.
    """

    columns: tuple[str, ...]
    key: bytes
    backend: Backend
    label: str
    distinct: bool = False

    def placed(self, table: Any, name: str) -> Any:
        """Return the table with the place of each row, a whole number below 2^31 - 1.

        It knows floating point to 2^-20 and decimals to six places.

        Raises
        ------
        PlanError
            If a column is of a type that has no order.
        """
        source = coefficients(self.key, self.label)
        mix = coefficients(self.key, f"{self.label}/mix")
        parts = [_parts(table[n], self.key, self.backend) for n in self.columns]
        # In two steps: a polynomial would write its argument out three times.
        summed = table.mutate(**{name: _sum(parts, source)})
        return summed.mutate(**{name: _mixed(summed[name], mix)})

    def place_of_copy(self, place: Any, copy: Any) -> Any:
        """Return the place of the copy of this number, from 0, of rows at a place."""
        source = coefficients(self.key, f"{self.label}/copies")
        c, d = _literals(source, 2)
        copy = long(copy, self.backend)
        x = (place * c + copy * d) % _big(PRIME)
        return (copy == _big(0)).ifelse(place, _mixed(x, source))

    def ties(self, table: Any) -> list[Any]:
        """Return the columns that order rows of one place, text last."""
        columns = [table[name] for name in self.columns]
        return sorted(columns, key=lambda column: column.type().is_string())


def _mixed(h: Any, source: Iterator[int]) -> Any:
    """Return a secret polynomial of a number: any four values are independent."""
    b0, b1, b2, b3 = _literals(source, 4)
    p = _big(PRIME)
    return (((h * b3 + b2) % p * h + b1) % p * h + b0) % p


def _big(value: int) -> Any:
    return ibis.literal(value, type="int64").cast("int64")


def _literals(source: Iterator[int], count: int) -> list[Any]:
    return [_big(next(source)) for _ in range(count)]


def _sum(parts: list[_Parts], source: Iterator[int]) -> Any:
    """Return the keyed sum; a missing or very large number has a place of its own.

    No term is written twice: engines find what an expression repeats, but not inside of
    the conditions here.
    """
    total, room = _big(next(source)), _MOST - PRIME
    remainders = []
    for part in parts:
        missing, large, *factors = (next(source) for _ in range(2 + _MOST_LIMBS))
        value, most = part.weighed(factors)
        otherwise = missing
        if part.regular is not None:
            value = part.regular.ifelse(value, _big(large))
            value = part.missing.ifelse(_big(missing), value)
            otherwise = large
        if most > room:
            remainders.append(total % _big(PRIME))
            total, room = _big(0), _MOST
        # A row without a place would escape every limit; no type of column gives one.
        value = value.fill_null(_big(otherwise))
        total, room = total + value, room - max(most, PRIME)
    return sum(remainders, total) % _big(PRIME)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Numbers of 31 bits, whether there are any, and whether they say all there is.

    The upper ones of a number that fits 32 bits are those of its sign, and `short`.
    """

    limbs: list[Any]
    missing: Any
    regular: Any = None
    short: bool = False

    def weighed(self, factors: Sequence[int]) -> tuple[Any, int]:
        """Return the sum of limbs times factors, and the most it can be."""
        if self.short:
            low, sign = self.limbs
            upper = (_LIMB * factors[1] + 3 * factors[2]) % PRIME
            return low * _big(factors[0]) + (sign & _big(upper)), _LIMB * PRIME
        terms = list(zip(self.limbs, factors, strict=False))
        value = sum((limb * _big(factor) for limb, factor in terms), _big(0))
        return value, (min(len(terms), 2) * _LIMB + 3) * PRIME


def _parts(column: Any, key: bytes, backend: Backend) -> _Parts:
    kind, missing = column.type(), column.isnull()
    if kind.is_boolean():
        return _Parts([truth(column)], missing)
    if kind.is_string() or kind.is_uuid():
        text = column if kind.is_string() else column.cast("string")
        return _Parts(numbers_of_text(text, text_secret(key), backend), missing)
    if kind.is_date():
        days = epoch_days(column)
        return _Parts(_limbs(days)[:1], missing, days.notnull())
    if kind.is_timestamp():
        number = epoch_us(column, backend)
        return _Parts(_limbs(number)[:2], missing, number.notnull())
    if kind.is_floating():
        number, regular = _float_number(column.cast("float64"))
        # Spark would call NaN missing, by the question that Ibis asks it.
        return _Parts(_limbs(number), enclosed(regular).isnull(), regular)
    if kind.is_decimal() or kind.is_uint64():
        number, regular = _decimal_number(column, backend)
        return _Parts(_limbs(number), missing, regular)
    if kind.is_integer():
        number = column.cast("int64")
        if kind.nbytes <= _SHORT_BYTES and not kind.is_uint32():
            return _Parts([number & _big(_LIMB), number >> 31], missing, short=True)
        return _Parts(_limbs(number), missing)
    raise PlanError(
        f"column {column.get_name()!r} must hold numbers, text, times or truth values, "
        f"got {type_name(kind)}; leave it out or cast it in the table."
    )


def _limbs(number: Any) -> list[Any]:
    low, middle = number & _big(_LIMB), (number >> 31) & _big(_LIMB)
    return [low, middle, (number >> 62) & _big(3)]


def _float_number(column: Any) -> tuple[Any, Any]:
    regular = column.abs() < double(_FLOAT_LIMIT)
    safe = regular.ifelse(column, double(0.0))
    number = (safe * double(_FLOAT_SCALE)).floor().cast("int64")
    return number, regular


def _decimal_number(column: Any, backend: Backend) -> tuple[Any, Any]:
    scale = column.type().scale if column.type().is_decimal() else 0
    places = _DECIMAL_PLACES if scale is None else min(scale, _DECIMAL_PLACES)
    # Compared as doubles, which every scale can be cast to; there are 11 + 6 digits at
    # most then. DuckDB multiplies in the type of the decimal, which needs room.
    size = near = column
    if backend == "postgres":  # whose numbers may be beyond a double, or below
        size = column.abs()
        near = (size < ibis.literal(_DECIMAL_LEAST)).ifelse(ibis.literal(0), column)
    regular = near.cast("float64").abs() < double(float(_DECIMAL_LIMIT))
    if backend == "postgres":
        below = size < ibis.literal(10 * _DECIMAL_LIMIT)
        regular = below.ifelse(regular, ibis.literal(False))
    safe = regular.ifelse(column, ibis.null(column.type()))
    safe = safe.cast(f"decimal(38, {places})")
    number = (safe * ibis.literal(10**places)).cast("int64")
    return number, regular

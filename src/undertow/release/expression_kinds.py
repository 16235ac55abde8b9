"""What an expression means, engine by engine the same: kinds, guards and plain steps.

Engines differ in what they do on overflow, on division by zero, with NaN, and with the
order of text. An expression is therefore turned into steps that cannot fail on any row:
a row on which a query fails would be an answer that nobody accounted for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from undertow.release.expression_nodes import Plain

__all__ = ["Kind", "Step", "arithmetic", "as_number", "constant", "floored", "operand"]

WHOLE_BITS = 53
"""Whole numbers from columns count in arithmetic if they are below 2^53 in size."""
NUMBER_BITS = 100
"""Numbers count in arithmetic if they are below 2^100; below 2^-100 they are 0."""
# Whole results are kept whole while they fit in 64 bits for certain; numbers stay this
# far from the ends of the double-precision range, where engines differ.
_LARGEST_WHOLE, _NUMBER_LIMIT = 2**62, 1000
_GUARDED_GRAIN = NUMBER_BITS + 52


class Kind(StrEnum):
    """The kinds of values that expressions tell apart."""

    WHOLE = "whole number"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"

    @property
    def numeric(self) -> bool:
        """Whether it is a whole number or a number."""
        return self in (Kind.WHOLE, Kind.NUMBER)


@dataclass(frozen=True, slots=True)
class Step:
    """An operation that every engine does in the same way.

    Parameters
    ----------
    operation : str
        Its name.
    kind : Kind
        What it gives.
    operands : tuple of Step
        What it is done to.
    value : object
        The constant, the name of the column, or a parameter.
    most, grain : int
        Of numbers: at most `most` in size, and multiples of ``2**-grain``.
    raw : bool
        Whether the numbers may lie outside the range of arithmetic.
    cost : int
        The size of the query that results.
    """

    operation: str
    kind: Kind
    operands: tuple[Step, ...] = ()
    value: Any = None
    most: int = 0
    grain: int = 0
    raw: bool = False
    cost: int = 1


def constant(value: Plain) -> Step:
    """Return a constant of the language."""
    match value:
        case bool():
            return Step("constant", Kind.BOOLEAN, value=value)
        case int():
            return Step("constant", Kind.WHOLE, value=value, most=abs(value))
        case Decimal():
            number = float(value)
            return Step(
                "constant",
                Kind.NUMBER,
                value=number,
                most=math.ceil(abs(number)),
                grain=number.as_integer_ratio()[1].bit_length() - 1,
            )
        case str():
            return Step("constant", Kind.TEXT, value=value)
        case datetime():
            return Step("constant", Kind.TIME, value=value)
        case date():
            return Step("constant", Kind.DATE, value=value)


def as_number(step: Step) -> Step:
    """Return a whole number in double precision; numbers stay as they are."""
    if step.kind is not Kind.WHOLE:
        return step
    return Step(
        "number",
        Kind.NUMBER,
        (step,),
        most=step.most,
        raw=step.raw,
        cost=step.cost + 1,
    )


def operand(step: Step) -> Step:
    """Return a number fit for arithmetic: missing where it lies out of range."""
    if not step.raw:
        return step
    return _guarded(step)


def _guarded(step: Step) -> Step:
    if step.kind is Kind.WHOLE:
        cost = 2 * step.cost + 2
        return Step("whole-range", step.kind, (step,), most=2**WHOLE_BITS, cost=cost)
    return Step(
        "number-range",
        step.kind,
        (step,),
        most=2**NUMBER_BITS,
        grain=_GUARDED_GRAIN,
        cost=3 * step.cost + 4,
    )


def arithmetic(operator: str, left: Step, right: Step) -> Step:
    """Return a sum, difference, product, quotient or remainder of guarded operands.

    Whole operands give a whole number as long as it fits in 64 bits whatever the row
    holds; all else is in double precision.
    """
    if operator == "%":
        value, cost = int(right.value), left.cost + 4
        return Step("%", Kind.WHOLE, (left,), value=value, most=value, cost=cost)
    whole = left.kind is right.kind is Kind.WHOLE and operator != "/"
    most, grain = _extent(operator, left, right)
    if whole and most <= _LARGEST_WHOLE:
        cost = left.cost + right.cost + 1
        return Step(operator, Kind.WHOLE, (left, right), most=most, cost=cost)
    left, right = as_number(left), as_number(right)
    if max(most.bit_length(), grain) > _NUMBER_LIMIT:
        left, right = _narrowed(left), _narrowed(right)
        most, grain = _extent(operator, left, right)
    cost = left.cost + right.cost + 2
    return Step(operator, Kind.NUMBER, (left, right), most=most, grain=grain, cost=cost)


def _extent(operator: str, left: Step, right: Step) -> tuple[int, int]:
    """Bound the size of a result, and the grid it lies on.

    A sum of multiples of a power of two is one, and so is its rounding; a non-zero
    quotient a / b is at least ``2**-grain_a / most_b``, and has 53 bits from there.
    Rounding up adds less than one part in 2**52 an operation, which the distance of
    the limits from the ends of the range covers many times.
    """
    if operator == "*":
        return left.most * right.most, left.grain + right.grain
    if operator == "/":
        return (
            left.most << right.grain,
            left.grain + right.most.bit_length() + 53,
        )
    return left.most + right.most, max(left.grain, right.grain)


def _narrowed(step: Step) -> Step:
    if step.most <= 2**NUMBER_BITS and step.grain <= _GUARDED_GRAIN:
        return step
    return _guarded(step)


def floored(step: Step) -> Step:
    """Return the largest whole number not above: missing from 2^53 on."""
    if step.kind is Kind.WHOLE:
        return step
    if step.raw or step.most >= 2**WHOLE_BITS:
        cost, most = 2 * step.cost + 4, 2**WHOLE_BITS
        return Step("floor-range", Kind.WHOLE, (step,), most=most, cost=cost)
    cost, most = step.cost + 2, step.most + 1
    return Step("floor", Kind.WHOLE, (step,), most=most, cost=cost)


Kinds = Mapping[str, Kind]
"""The kind of each column of a table."""

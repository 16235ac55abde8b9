"""Expressions in plain Python, one row at a time: what the engines must agree with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from undertow.release.expression import Expression
from undertow.release.expression_kinds import NUMBER_BITS, WHOLE_BITS, Kind, Step
from undertow.release.expression_steps import steps
from undertow.release.moments import in_utc

__all__ = ["evaluate"]

_LOWER = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}
_UPPER = {small: large for large, small in _LOWER.items()}


def evaluate(
    expression: Expression,
    row: Mapping[str, Any],
    *,
    kinds: Mapping[str, Kind],
    derived: Mapping[str, Expression] | None = None,
) -> Any:
    """Return the value of an expression on one row; None is missing.

    Parameters
    ----------
    expression : Expression
        What is asked for.
    row : mapping
        The value of each column, None where it is missing.
    kinds : mapping of str to Kind
        The kind of each column.
    derived : mapping of str to Expression, optional
        Derived columns.

    Raises
    ------
    PlanError
        If a column is unknown or kinds do not fit.

    Examples
    --------
    >>> from undertow.release.expression import parse_expression
    >>> kinds = {"steps": Kind.WHOLE}
    >>> evaluate(parse_expression("floor(steps / 10)"), {"steps": 47}, kinds=kinds)
    4
    >>> evaluate(parse_expression("steps > 0"), {"steps": None}, kinds=kinds) is None
    True
    """
    return _value(steps(expression, kinds, derived or {}), row)


def _value(step: Step, row: Mapping[str, Any]) -> Any:
    if step.operation == "constant":
        return step.value
    if step.operation == "column":
        return _read(row[step.value], step.kind)
    values = [_value(operand, row) for operand in step.operands]
    if step.operation in _WITH_MISSING:
        return _WITH_MISSING[step.operation](values)
    if step.operation == "%":
        return None if values[0] is None else values[0] % step.value
    if step.operation in ("between", "in"):
        return _compared(step.operation, values)
    if any(value is None for value in values):
        return None
    return _PLAIN[step.operation](*values)


def _read(value: Any, kind: Kind) -> Any:
    """Read a cell as the engines do: NaN and what has no room are missing."""
    if value is None:
        return None
    if kind is Kind.WHOLE:
        return int(value) if -(2**63) <= value < 2**63 else None
    if kind is Kind.NUMBER:
        return _read_number(value)
    return in_utc(value) if isinstance(value, datetime) else value


def _read_number(value: float | Decimal) -> float | None:
    if math.isnan(value):
        return None
    if isinstance(value, Decimal) and not abs(value) < 10**38:
        return None
    if isinstance(value, Decimal) and abs(value) < Decimal("1e-36"):
        return 0.0
    return float(value)


def _compared(operation: str, values: list[Any]) -> bool | None:
    subject, *others = values
    if operation == "in":
        return None if subject is None else subject in others
    low, high = others
    ends = [
        None if subject is None or low is None else subject >= low,
        None if subject is None or high is None else subject <= high,
    ]
    return _every(ends)


def _every(values: list[Any]) -> bool | None:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _some(values: list[Any]) -> bool | None:
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def _whole_range(value: int) -> int | None:
    return value if abs(value) < 2**WHOLE_BITS else None


def _number_range(value: float) -> float | None:
    if not abs(value) < 2.0**NUMBER_BITS:
        return None
    return value if abs(value) >= 2.0**-NUMBER_BITS else 0.0


def _floor_range(value: float) -> int | None:
    return math.floor(value) if abs(value) < 2.0**WHOLE_BITS else None


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


_WITH_MISSING: dict[str, Callable[[list[Any]], Any]] = {
    "and": _every,
    "or": _some,
    "missing": lambda values: values[0] is None,
    "coalesce": lambda values: next((v for v in values if v is not None), None),
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else None,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "not": lambda a: not a,
    "negate": lambda a: -a,
    "abs": abs,
    "number": float,
    "whole-range": _whole_range,
    "number-range": _number_range,
    "floor": math.floor,
    "floor-range": _floor_range,
    "midnight": _midnight,
    "date": lambda moment: moment.date(),
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "month": lambda moment: moment.month,
    "weekday": lambda moment: moment.weekday(),
    "year": lambda moment: moment.year,
    "lower": lambda text: text.translate(_LOWER),
    "upper": lambda text: text.translate(_UPPER),
    "length": len,
}

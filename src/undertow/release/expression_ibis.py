"""Expressions as Ibis values: the same meaning on DuckDB, PostgreSQL and Spark."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import reduce
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.engine_sql import enclosed, midnight, written
from undertow.release.expression import Expression
from undertow.release.expression_kinds import NUMBER_BITS, WHOLE_BITS, Kind, Step
from undertow.release.expression_steps import steps

__all__ = ["column_kinds", "kind_of", "to_ibis"]

# Decimals of this many digits are exact in 53 bits, and so is the power of ten.
_EXACT_DIGITS = 15
_MOST_DIGITS = 38
# Operations whose operands Ibis writes in parentheses where they need them.
_PARENTHESISED = ("and", "or", "not")


def to_ibis(
    expression: Expression,
    table: Any,
    derived: Mapping[str, Expression] | None = None,
    *,
    name: str = "expression",
    kind: Kind | None = None,
) -> Any:
    """Return the Ibis value of an expression over a table.

    Parameters
    ----------
    expression : Expression
        What is asked for.
    table : ibis.expr.types.Table
        Whose columns are read. Sessions must be in UTC.
    derived : mapping of str to Expression, optional
        Derived columns; their names come before those of the table.
    name : str
        What errors call the expression.
    kind : Kind, optional
        What it must give: ``Kind.BOOLEAN`` for a condition.

    Returns
    -------
    ibis.expr.types.Value
        That cannot fail on any row: what has no value is NULL. A truth value can be an
        operand of anything; with `kind`, it is for a filter, which is its outermost
        operation, so that engines can skip what it leaves out.

    Raises
    ------
    PlanError
        If a column is unknown, or kinds do not fit.

    Notes
    -----
    Constants reach the engine as typed literals and columns as quoted names of the
    table; no text of the expression becomes a part of the query.
    """
    step = steps(expression, column_kinds(table), derived or {}, name=name)
    if kind is not None and step.kind is not kind:
        raise PlanError(f"{name} must give a {kind.value}, got a {step.kind.value}.")
    value = _value(step, table)
    return value if kind is Kind.BOOLEAN else enclosed(value)


def kind_of(
    expression: Expression,
    table: Any,
    derived: Mapping[str, Expression] | None = None,
    *,
    name: str = "expression",
) -> Kind:
    """Return what kind of value an expression gives over a table."""
    return steps(expression, column_kinds(table), derived or {}, name=name).kind


def column_kinds(table: Any) -> dict[str, Kind]:
    """Return the kind of each column of an Ibis table that an expression can read."""
    found = {}
    for name, dtype in table.schema().items():
        kind = _kind(dtype)
        if kind is not None:
            found[name] = kind
    return found


def _kind(dtype: Any) -> Kind | None:
    if dtype.is_boolean():
        return Kind.BOOLEAN
    if dtype.is_integer():
        return Kind.WHOLE
    if dtype.is_floating() or dtype.is_decimal():
        return Kind.NUMBER
    if dtype.is_string():
        return Kind.TEXT
    if dtype.is_date():
        return Kind.DATE
    return Kind.TIME if dtype.is_timestamp() else None


def _value(step: Step, table: Any) -> Any:
    if step.operation == "constant":
        return _literal(step)
    if step.operation == "column":
        return _read(table[step.value])
    values = [_value(operand, table) for operand in step.operands]
    if step.operation not in _PARENTHESISED:
        values = [enclosed(value) for value in values]
    if step.operation == "%":
        modulus = _literal(Step("constant", Kind.WHOLE, value=step.value))
        return (values[0] % modulus + modulus) % modulus
    if step.operation in ("and", "or"):
        return _joined(step.operation, values)
    return _PLAIN[step.operation](*values)


def _literal(step: Step) -> Any:
    ibis = load("ibis")
    # A bare number in a query has a type of the engine's choice: 32 bits, or decimal.
    if step.kind is Kind.WHOLE:
        return ibis.literal(str(step.value), "string").cast("int64")
    if step.kind is Kind.NUMBER:
        return ibis.literal(repr(step.value), "string").cast("float64")
    if step.kind is Kind.TEXT:
        return _text(step.value)
    types = {
        Kind.BOOLEAN: "boolean",
        Kind.DATE: "date",
        Kind.TIME: "timestamp",
    }
    return ibis.literal(step.value, types[step.kind])


def _text(words: str) -> Any:
    """Write a text so that Spark replaces no ``${...}`` in it by a setting."""
    ibis = load("ibis")
    first, *rest = words.replace("${", "$\0{").split("\0")
    value = ibis.literal(first, "string")
    for part in rest:
        value = value + ibis.literal(part, "string")
    return value


def _read(column: Any) -> Any:
    """Read a column in the one type that its kind has."""
    dtype = column.type()
    if dtype.is_integer():
        return _whole(column, dtype)
    if dtype.is_decimal():  # which are NaN as well on PostgreSQL
        return _decimal(column, dtype).nullif(_number(math.nan))
    if dtype.is_floating():
        return column.cast("float64").nullif(_number(math.nan))
    if dtype.is_timestamp() and dtype.timezone is not None:
        return column.cast("timestamp")
    return column


def _number(value: float) -> Any:
    return _literal(Step("constant", Kind.NUMBER, value=value))


def _decimal(column: Any, dtype: Any) -> Any:
    """Read decimals in double precision, correctly rounded on every engine.

    Decimals without a limit, or of more than 38 digits (PostgreSQL), are missing from
    10^38 on and 0 below 10^-36, where the conversion could fail.
    """
    ibis = load("ibis")
    if dtype.precision is not None and dtype.precision <= _EXACT_DIGITS:
        return column.cast("float64")
    if dtype.precision is None or dtype.precision > _MOST_DIGITS:
        column = column.cast("decimal")
        most = ibis.literal(Decimal("9" * _MOST_DIGITS), "decimal(38, 0)")
        least = ibis.literal(Decimal("1e-36"), "decimal(38, 37)")
        small = ibis.ifelse(column.abs() >= least, column, ibis.literal(0))
        column = ibis.ifelse(column.abs() <= most, small, ibis.null())
        return column.cast("float64")
    return column.cast("string").cast("float64")


def _whole(column: Any, dtype: Any) -> Any:
    ibis = load("ibis")
    if dtype.is_unsigned_integer() and dtype.nbytes == 8:
        column = ibis.ifelse(column <= 2**63 - 1, column, ibis.null())
    return column.cast("int64")


def _in_range(value: Any) -> Any:
    ibis = load("ibis")
    size = value.abs()
    small = ibis.ifelse(size >= _number(2.0**-NUMBER_BITS), value, _number(0.0))
    return ibis.ifelse(size < _number(2.0**NUMBER_BITS), small, ibis.null())


def _below(value: Any, bits: int) -> Any:
    ibis = load("ibis")
    kind = Kind.WHOLE if value.type().is_integer() else Kind.NUMBER
    ends = [2**bits, -(2**bits)]
    most, least = (
        _literal(
            Step("constant", kind, value=end if kind is Kind.WHOLE else float(end))
        )
        for end in ends
    )
    return ibis.ifelse((value < most) & (value > least), value, ibis.null())


def _joined(operation: str, values: list[Any]) -> Any:
    """Join in pairs, so that long chains do not nest deeply."""
    while len(values) > 1:
        pairs = [values[at : at + 2] for at in range(0, len(values), 2)]
        values = [
            reduce(lambda a, b: a & b if operation == "and" else a | b, pair)
            for pair in pairs
        ]
    return values[0]


def _translated(text: Any, old: str, new: str) -> Any:
    return text.translate(old, new)


def _coalesced(*values: Any) -> Any:
    ibis = load("ibis")
    return ibis.coalesce(*values)


_PLAIN: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b.nullif(_number(0.0)),
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda value, *others: value.isin(others),
    "between": lambda value, low, high: value.between(low, high),
    "missing": lambda value: value.isnull(),
    "not": lambda value: ~value,
    "negate": lambda value: -value,
    "abs": lambda value: value.abs(),
    "number": lambda value: value.cast("float64"),
    "coalesce": _coalesced,
    "whole-range": lambda value: _below(value, WHOLE_BITS),
    "number-range": _in_range,
    "floor": lambda value: value.floor().cast("int64"),
    "floor-range": lambda value: _below(value, WHOLE_BITS).floor().cast("int64"),
    "midnight": midnight,
    "date": lambda moment: written(moment).date(),
    "hour": lambda moment: moment.hour().cast("int64"),
    "minute": lambda moment: moment.minute().cast("int64"),
    "month": lambda moment: moment.month().cast("int64"),
    "weekday": lambda moment: moment.day_of_week.index().cast("int64"),
    "year": lambda moment: written(moment).year().cast("int64"),
    "lower": lambda text: _translated(
        text, string.ascii_uppercase, string.ascii_lowercase
    ),
    "upper": lambda text: _translated(
        text, string.ascii_lowercase, string.ascii_uppercase
    ),
    "length": lambda text: text.length().cast("int64"),
}

"""What an expression means: steps that cannot fail, in Python and on every engine.

Engines differ in what they do on overflow, on division by zero, with NaN, and with the
order of text. An expression is therefore turned into steps that cannot fail on any row:
a row on which a query fails would be an answer that nobody accounted for. Names are
resolved and kinds are checked on the way. The steps in plain Python, one row at a time,
are what Ibis values on DuckDB, PostgreSQL and Spark must agree with.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from typing import Any, NoReturn

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.document._error import nearest, types_entry
from undertow.release.document.time import in_utc
from undertow.release.engine._dialect import enclosed, midnight, written
from undertow.release.language.expression import (
    Arithmetic,
    Between,
    Call,
    Column,
    Comparison,
    Constant,
    Expression,
    Logic,
    Membership,
    Missing,
    Negate,
    Node,
    Not,
    Plain,
)

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


# From the nodes of an expression to steps: names resolved, kinds checked.

_MOST_COST, _MOST_LEVELS, _MOST_DEPTH = 5_000, 120, 150
# How deep an operation nests in the query; others count 2.
_DEPTHS = {
    "%": 5,
    "/": 3,
    "floor-range": 5,
    "number-range": 4,
    "whole-range": 4,
}
_MOMENTS = {"hour": 23, "minute": 59, "month": 12, "weekday": 6, "year": 9999}
_TYPES = {
    Kind.WHOLE: "int",
    Kind.NUMBER: "float",
    Kind.BOOLEAN: "bool",
    Kind.DATE: "date",
    Kind.TIME: "timestamp",
}
_MODULUS = "a whole number above 0 and below 2^53, written out, to the right of %"


def steps(
    expression: Expression,
    kinds: Mapping[str, Kind],
    derived: Mapping[str, Expression],
    *,
    name: str = "expression",
) -> Step:
    """Resolve the names of an expression and check the kinds of its operands.

    Parameters
    ----------
    expression : Expression
        What is asked for.
    kinds : mapping of str to Kind
        The kind of each column of the table.
    derived : mapping of str to Expression
        Derived columns; their names come before those of the table.
    name : str
        What errors call the expression.

    Raises
    ------
    PlanError
        If a column is unknown, kinds do not fit, or the query would be too large.
    """
    step = _Builder(kinds, derived, name).build(expression.root)
    if _depth(step) > _MOST_DEPTH:
        raise PlanError(f"{name} must nest fewer operations, got too many.")
    return step


class _Builder:
    """Kinds, derived columns, and those being built at the moment."""

    def __init__(
        self, kinds: Mapping[str, Kind], derived: Mapping[str, Expression], name: str
    ) -> None:
        self.kinds, self.derived, self.name = kinds, derived, name
        self.open: list[str] = []
        self.level = 0
        self.done: dict[str, Step] = {}

    def refuse(self, rest: str) -> NoReturn:
        raise PlanError(f"{self.name} must {rest}.")

    def build(self, node: Node) -> Step:
        self.level += 1
        if self.level > _MOST_LEVELS:
            self.refuse(
                f"nest at most {_MOST_LEVELS} operations, derived columns included, "
                "got more"
            )
        step = self.step(node)
        self.level -= 1
        if step.cost > _MOST_COST:
            self.refuse(
                f"be simpler, got a query of size {step.cost} where {_MOST_COST} is "
                "the most; split it or limit its numbers with %"
            )
        return step

    def step(self, node: Node) -> Step:
        match node:
            case Constant(value):
                return constant(value)
            case Column(name):
                return self.column(name)
            case Arithmetic(operator, left, right):
                return self.arithmetic(operator, self.build(left), self.build(right))
            case Comparison(operator, left, right):
                return self.comparison(operator, (self.build(left), self.build(right)))
            case Negate(inner):
                return self.same("negate", self.number(self.build(inner), "-"))
            case Call(function, operands):
                return self.call(function, tuple(map(self.build, operands)))
        return self.predicate(node)

    def predicate(self, node: Between | Membership | Missing | Not | Logic) -> Step:
        match node:
            case Not(inner):
                return _boolean("not", self.truth(self.build(inner), "not"))
            case Logic(operator, operands):
                parts = (self.truth(self.build(o), operator) for o in operands)
                return _boolean(operator, *parts)
            case Missing(inner, negated):
                step = _boolean("missing", self.build(inner))
            case Between(inner, low, high, negated):
                three = (self.build(inner), self.build(low), self.build(high))
                step = self.comparison("between", three)
            case Membership(inner, values, negated):
                listed = (self.build(inner), *map(constant, (v.value for v in values)))
                step = self.comparison("in", listed)
        return _boolean("not", step) if negated else step

    def column(self, name: str) -> Step:
        if name in self.derived:
            if name not in self.done:
                self.done[name] = self.derive(name)
            return self.done[name]
        if name not in self.kinds:
            near = nearest(name, {*self.kinds, *self.derived})
            text = "" if near else "; text is written in single quotes"
            self.refuse(f"name columns of the table, got {name[:60]!r}{near}{text}")
        kind = self.kinds[name]
        return Step("column", kind, value=name, most=2**64, raw=kind.numeric)

    def derive(self, name: str) -> Step:
        if name in self.open:
            self.refuse(f"not depend on itself, got the derived column {name[:60]!r}")
        self.open.append(name)
        step = self.build(self.derived[name].root)
        self.open.pop()
        return step

    def number(self, step: Step, what: str) -> Step:
        if not step.kind.numeric:
            way = _stated(step, Kind.NUMBER)
            self.refuse(f"give {what} numbers, got {_a(step.kind)}{way}")
        return operand(step)

    def truth(self, step: Step, what: str) -> Step:
        if step.kind is not Kind.BOOLEAN:
            self.refuse(f"give {what} conditions, got {_a(step.kind)}")
        return step

    def same(self, operation: str, step: Step) -> Step:
        return replace(
            step,
            operation=operation,
            operands=(step,),
            value=None,
            cost=step.cost + 1,
        )

    def arithmetic(self, operator: str, left: Step, right: Step) -> Step:
        left, right = self.number(left, operator), self.number(right, operator)
        if operator == "%":
            literal = right.operation == "constant" and right.kind is Kind.WHOLE
            if not (literal and 0 < right.value < 2**53):
                self.refuse(f"have {_MODULUS}, got something else")
            if left.kind is not Kind.WHOLE:
                self.refuse("have a whole number to the left of %; use floor")
        return arithmetic(operator, left, right)

    def comparison(self, operator: str, operands: tuple[Step, ...]) -> Step:
        kinds = {step.kind for step in operands}
        if kinds <= {Kind.WHOLE, Kind.NUMBER} and len(kinds) == 2:
            operands = tuple(map(as_number, operands))
        elif kinds == {Kind.DATE, Kind.TIME}:
            operands = tuple(map(_midnight_step, operands))
        elif len(kinds) > 1:
            first, second = sorted(kinds)[:2]
            ways = (_stated(a, b.kind) for a in operands for b in operands)
            way = next(filter(None, ways), "")
            self.refuse(
                f"compare like with like, got {_a(first)} and {_a(second)}{way}"
            )
        unordered = operands[0].kind in (Kind.TEXT, Kind.BOOLEAN)
        if unordered and operator not in ("=", "!=", "in"):
            self.refuse(
                f"compare {_a(operands[0].kind)} with =, != or in only, "
                f"got {operator}; engines order text differently"
            )
        return _boolean(operator, *operands)

    def call(self, function: str, operands: tuple[Step, ...]) -> Step:
        first = operands[0]
        if function == "coalesce":
            return self.coalesce(operands)
        if function == "floor":
            return floored(self.numeric(first, function))
        if function == "abs":
            return self.same("abs", self.number(first, function))
        if function in ("lower", "upper", "length"):
            self.require(first, function, Kind.TEXT)
            kind = Kind.WHOLE if function == "length" else Kind.TEXT
            return _done(function, kind, first, most=2**40)
        if function == "date":
            self.require(first, function, Kind.TIME, Kind.DATE)
            return first if first.kind is Kind.DATE else _done("date", Kind.DATE, first)
        times = (Kind.TIME,) if function in ("hour", "minute") else ()
        self.require(first, function, *(times or (Kind.TIME, Kind.DATE)))
        return _done(function, Kind.WHOLE, first, most=_MOMENTS[function])

    def numeric(self, step: Step, what: str) -> Step:
        if not step.kind.numeric:
            way = _stated(step, Kind.NUMBER)
            self.refuse(f"give {what} numbers, got {_a(step.kind)}{way}")
        return step

    def require(self, step: Step, function: str, *kinds: Kind) -> None:
        if step.kind not in kinds:
            way = _stated(step, kinds[0])
            self.refuse(f"give {function} {_a(kinds[0])}, got {_a(step.kind)}{way}")

    def coalesce(self, operands: tuple[Step, ...]) -> Step:
        kinds = {step.kind for step in operands}
        if kinds == {Kind.WHOLE, Kind.NUMBER}:
            operands = tuple(map(as_number, operands))
        elif len(kinds) > 1:
            first, second = sorted(kinds)[:2]
            self.refuse(f"give coalesce one kind, got {_a(first)} and {_a(second)}")
        return Step(
            "coalesce",
            operands[0].kind,
            operands,
            most=max(step.most for step in operands),
            grain=max(step.grain for step in operands),
            raw=any(step.raw for step in operands),
            cost=1 + sum(step.cost for step in operands),
        )


def _depth(step: Step) -> int:
    """Return how deeply the query nests, without recursion."""
    most, stack = 0, [(step, 0)]
    while stack:
        top, above = stack.pop()
        depth = above + _DEPTHS.get(top.operation, 2)
        most = max(most, depth)
        stack += [(operand, depth) for operand in top.operands]
    return most


def _done(function: str, kind: Kind, step: Step, *, most: int = 0) -> Step:
    return Step(function, kind, (step,), most=most, cost=2 * step.cost + 2)


def _boolean(operation: str, *operands: Step) -> Step:
    cost = 1 + sum(step.cost for step in operands)
    return Step(operation, Kind.BOOLEAN, operands, cost=cost)


def _midnight_step(step: Step) -> Step:
    if step.kind is Kind.TIME:
        return step
    if step.operation == "constant":
        day = step.value
        return constant(datetime(day.year, day.month, day.day))
    return Step("midnight", Kind.TIME, (step,), cost=step.cost + 1)


def _stated(step: Step, kind: Kind) -> str:
    """Say how a column of text is stated to hold another kind, if it is one."""
    if step.operation != "column" or step.kind is not Kind.TEXT or kind is Kind.TEXT:
        return ""
    entry = types_entry(step.value, _TYPES[kind])
    place = "" if kind in (Kind.DATE, Kind.TIME) else " of a CSV file"
    return f"; state what the column{place} holds in source.types, such as {entry}"


def _a(kind: Kind) -> str:
    return kind.value if kind is Kind.TEXT else f"a {kind.value}"


# Expressions in plain Python, one row at a time: what the engines must agree with.

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
    >>> from undertow.release.language.expression import parse_expression
    >>> kinds = {"steps": Kind.WHOLE}
    >>> evaluate(parse_expression("floor(steps / 10)"), {"steps": 47}, kinds=kinds)
    4
    >>> evaluate(parse_expression("steps > 0"), {"steps": None}, kinds=kinds) is None
    True
    """
    return _row_value(steps(expression, kinds, derived or {}), row)


def _row_value(step: Step, row: Mapping[str, Any]) -> Any:
    if step.operation == "constant":
        return step.value
    if step.operation == "column":
        return _read_cell(row[step.value], step.kind)
    values = [_row_value(operand, row) for operand in step.operands]
    if step.operation in _WITH_MISSING:
        return _WITH_MISSING[step.operation](values)
    if step.operation == "%":
        return None if values[0] is None else values[0] % step.value
    if step.operation in ("between", "in"):
        return _compared(step.operation, values)
    if any(value is None for value in values):
        return None
    return _IN_PYTHON[step.operation](*values)


def _read_cell(value: Any, kind: Kind) -> Any:
    """Read a cell as the engines do: NaN and what has no room are missing."""
    if value is None:
        return None
    if kind is Kind.WHOLE:
        return int(value) if -(2**63) <= value < 2**63 else None
    if kind is Kind.NUMBER:
        return _read_number_cell(value)
    return in_utc(value) if isinstance(value, datetime) else value


def _read_number_cell(value: float | Decimal) -> float | None:
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


def _midnight_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


_WITH_MISSING: dict[str, Callable[[list[Any]], Any]] = {
    "and": _every,
    "or": _some,
    "missing": lambda values: values[0] is None,
    "coalesce": lambda values: next((v for v in values if v is not None), None),
}
_IN_PYTHON: dict[str, Callable[..., Any]] = {
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
    "midnight": _midnight_of,
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


# Expressions as Ibis values: the same meaning on DuckDB, PostgreSQL and Spark.

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
    value = _ibis_value(step, table)
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
        kind = _ibis_kind(dtype)
        if kind is not None:
            found[name] = kind
    return found


def _ibis_kind(dtype: Any) -> Kind | None:
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


def _ibis_value(step: Step, table: Any) -> Any:
    if step.operation == "constant":
        return _ibis_literal(step)
    if step.operation == "column":
        return _read_column(table[step.value])
    values = [_ibis_value(operand, table) for operand in step.operands]
    if step.operation not in _PARENTHESISED:
        values = [enclosed(value) for value in values]
    if step.operation == "%":
        modulus = _ibis_literal(Step("constant", Kind.WHOLE, value=step.value))
        return (values[0] % modulus + modulus) % modulus
    if step.operation in ("and", "or"):
        return _joined(step.operation, values)
    return _IN_IBIS[step.operation](*values)


def _ibis_literal(step: Step) -> Any:
    ibis = load("ibis")
    # A bare number in a query has a type of the engine's choice: 32 bits, or decimal.
    if step.kind is Kind.WHOLE:
        return ibis.literal(str(step.value), "string").cast("int64")
    if step.kind is Kind.NUMBER:
        return ibis.literal(repr(step.value), "string").cast("float64")
    if step.kind is Kind.TEXT:
        return _ibis_text(step.value)
    types = {
        Kind.BOOLEAN: "boolean",
        Kind.DATE: "date",
        Kind.TIME: "timestamp",
    }
    return ibis.literal(step.value, types[step.kind])


def _ibis_text(words: str) -> Any:
    """Write a text so that Spark replaces no ``${...}`` in it by a setting."""
    ibis = load("ibis")
    first, *rest = words.replace("${", "$\0{").split("\0")
    value = ibis.literal(first, "string")
    for part in rest:
        value = value + ibis.literal(part, "string")
    return value


def _read_column(column: Any) -> Any:
    """Read a column in the one type that its kind has."""
    dtype = column.type()
    if dtype.is_integer():
        return _whole_column(column, dtype)
    if dtype.is_decimal():  # which are NaN as well on PostgreSQL
        return _decimal_column(column, dtype).nullif(_ibis_number(math.nan))
    if dtype.is_floating():
        return column.cast("float64").nullif(_ibis_number(math.nan))
    if dtype.is_timestamp() and dtype.timezone is not None:
        return column.cast("timestamp")
    return column


def _ibis_number(value: float) -> Any:
    return _ibis_literal(Step("constant", Kind.NUMBER, value=value))


def _decimal_column(column: Any, dtype: Any) -> Any:
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


def _whole_column(column: Any, dtype: Any) -> Any:
    ibis = load("ibis")
    if dtype.is_unsigned_integer() and dtype.nbytes == 8:
        column = ibis.ifelse(column <= 2**63 - 1, column, ibis.null())
    return column.cast("int64")


def _in_range(value: Any) -> Any:
    ibis = load("ibis")
    size = value.abs()
    small = ibis.ifelse(
        size >= _ibis_number(2.0**-NUMBER_BITS), value, _ibis_number(0.0)
    )
    return ibis.ifelse(size < _ibis_number(2.0**NUMBER_BITS), small, ibis.null())


def _below(value: Any, bits: int) -> Any:
    ibis = load("ibis")
    kind = Kind.WHOLE if value.type().is_integer() else Kind.NUMBER
    ends = [2**bits, -(2**bits)]
    most, least = (
        _ibis_literal(
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


_IN_IBIS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b.nullif(_ibis_number(0.0)),
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

"""From the nodes of an expression to steps: names resolved, kinds checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import NoReturn

from undertow.errors import PlanError
from undertow.release.document_errors import nearest
from undertow.release.expression import Expression
from undertow.release.expression_kinds import (
    Kind,
    Step,
    arithmetic,
    as_number,
    constant,
    floored,
    operand,
)
from undertow.release.expression_nodes import (
    Arithmetic,
    Between,
    Call,
    Column,
    Comparison,
    Constant,
    Logic,
    Membership,
    Missing,
    Negate,
    Node,
    Not,
)
from undertow.release.source_names import types_entry

__all__ = ["steps"]

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
            operands = tuple(map(_midnight, operands))
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


def _midnight(step: Step) -> Step:
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

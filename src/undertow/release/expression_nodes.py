"""The nodes of an expression over the columns of one row, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

__all__ = [
    "Arithmetic",
    "Between",
    "Call",
    "Column",
    "Comparison",
    "Constant",
    "Logic",
    "Membership",
    "Missing",
    "Negate",
    "Node",
    "Not",
    "Plain",
    "children",
    "height",
    "walk",
    "written",
]

Plain = bool | int | Decimal | str | date | datetime
"""The Python values of constants; times carry no zone and are in UTC."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that stands in the expression itself."""

    value: Plain


@dataclass(frozen=True, slots=True)
class Column:
    """The value of a column."""

    name: str


@dataclass(frozen=True, slots=True)
class Negate:
    """Minus the operand."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One of ``+ - * / %``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of ``= != < <= > >=``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Between:
    """The operand lies between two others, both included."""

    operand: Node
    low: Node
    high: Node
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Membership:
    """The operand is one of some constants."""

    operand: Node
    values: tuple[Constant, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """The operand is missing; never missing itself."""

    operand: Node
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    """The operand does not hold."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Logic:
    """Two or more operands joined by ``and``, or by ``or``."""

    operator: str
    operands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the language applied to its operands."""

    function: str
    operands: tuple[Node, ...]


Node = (
    Constant
    | Column
    | Negate
    | Arithmetic
    | Comparison
    | Between
    | Membership
    | Missing
    | Not
    | Logic
    | Call
)
"""Any node."""


def children(node: Node) -> tuple[Node, ...]:
    """Return the operands of a node, in the order they are written."""
    match node:
        case Constant() | Column():
            return ()
        case Negate(operand) | Not(operand) | Missing(operand, _):
            return (operand,)
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return left, right
        case Between(operand, low, high, _):
            return operand, low, high
        case Membership(operand, values, _):
            return operand, *values
        case Logic(_, operands) | Call(_, operands):
            return operands


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, without recursion, in the order written."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack += reversed(children(top))


def height(node: Node) -> int:
    """Return the number of nodes on the longest way down, without recursion."""
    most, stack = 0, [(node, 1)]
    while stack:
        top, level = stack.pop()
        most = max(most, level)
        stack += [(child, level + 1) for child in children(top)]
    return most


def written(node: Node) -> str:
    """Return text that parses to the node, every name and text quoted.

    Examples
    --------
    >>> written(Comparison(">", Column("steps"), Constant(0)))
    '"steps" > 0'
    """
    match node:
        case Constant(value):
            return _constant(value)
        case Column(name):
            return '"' + name.replace('"', '""') + '"'
        case Call(function, operands):
            return f"{function}({', '.join(map(written, operands))})"
        case Negate(Constant() as operand):  # else it would be read as a constant
            return f"- ({written(operand)})"
        case Negate(operand):
            return f"- {_inner(operand)}"
        case Not(operand):
            return f"not {_inner(operand)}"
        case Arithmetic(operator, left, right) | Comparison(operator, left, right):
            return f"{_inner(left)} {operator} {_inner(right)}"
        case Logic(operator, operands):
            return f" {operator} ".join(map(_inner, operands))
    return _predicate(node)


def _predicate(node: Between | Membership | Missing) -> str:
    no = "not " if node.negated else ""
    subject = _inner(node.operand)
    match node:
        case Between(_, low, high, _):
            return f"{subject} {no}between {_inner(low)} and {_inner(high)}"
        case Membership(_, values, _):
            return f"{subject} {no}in ({', '.join(map(written, values))})"
    return f"{subject} is {no}null"


def _inner(node: Node) -> str:
    bare = isinstance(node, Column | Call) or (
        isinstance(node, Constant) and not written(node).startswith("-")
    )
    return written(node) if bare else f"({written(node)})"


def _constant(value: Plain) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return f"timestamp('{value.isoformat(timespec='microseconds')}')"
        case date():
            return f"date('{value.isoformat()}')"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case int():
            return str(value)
    text = format(value, "f") if abs(value.adjusted()) < 20 else format(value, "e")
    return text if set(text) & set(".e") else text + ".0"

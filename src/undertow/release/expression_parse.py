"""Read expressions by recursive descent; what is no word of the language is refused.

::

    either     = both ("or" both)*
    both       = negation ("and" negation)*
    negation   = "not" negation | predicate
    predicate  = sum [compare sum | ["not"] "between" sum "and" sum
                      | ["not"] "in" "(" constant ("," constant)* ")"
                      | "is" ["not"] "null"]
    sum        = product (("+" | "-") product)*
    product    = signed (("*" | "/" | "%") signed)*
    signed     = "-" signed | "+" signed | atom
    atom       = constant | column | function "(" [either ("," either)*] ")"
                 | "(" either ")"
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

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
    height,
)
from undertow.release.expression_tokens import Token, refuse, tokens
from undertow.release.moments import read_date, read_moment

__all__ = ["FUNCTIONS", "LARGEST_NUMBER", "LARGEST_WHOLE", "SMALLEST_NUMBER", "parse"]

FUNCTIONS: dict[str, tuple[int, int]] = {
    "abs": (1, 1),
    "coalesce": (2, 20),
    "date": (1, 1),
    "floor": (1, 1),
    "hour": (1, 1),
    "length": (1, 1),
    "lower": (1, 1),
    "minute": (1, 1),
    "month": (1, 1),
    "timestamp": (1, 1),
    "upper": (1, 1),
    "weekday": (1, 1),
    "year": (1, 1),
}
"""The functions with the fewest and most operands."""

LARGEST_WHOLE = 2**63 - 1
LARGEST_NUMBER = 2**100
SMALLEST_NUMBER = Decimal(2) ** -100
_DEEPEST = 50
_HIGHEST = 100
_MOST_VALUES = 1000
_KEYWORDS = {"and", "between", "false", "in", "is", "not", "null", "or", "true"}
_COMPARE = {"=": "=", "==": "=", "!=": "!=", "<>": "!="} | {
    symbol: symbol for symbol in ("<", "<=", ">", ">=")
}


def parse(text: str, name: str) -> Node:
    """Read an expression; `name` says in errors which one it is.

    Raises
    ------
    PlanError
        With one sentence that names the character where reading stopped.
    """
    reader = _Reader(tokens(text, name), name)
    node = reader.either()
    if reader.token.kind != "end":
        reader.refuse("end or go on with an operator")
    if height(node) > _HIGHEST:
        refuse(name, f"nest at most {_HIGHEST} operations, got more")
    return node


class _Reader:
    """Tokens and the place reached in them."""

    def __init__(self, words: list[Token], name: str) -> None:
        self.words, self.name = words, name
        self.place = self.depth = 0

    @property
    def token(self) -> Token:
        return self.words[self.place]

    def refuse(self, requirement: str) -> None:
        word = self.token
        got = "the end" if word.kind == "end" else repr(word.value[:40])
        refuse(self.name, f"{requirement}, got {got}", at=word.at)

    def next(self) -> Token:
        self.place += 1
        return self.words[self.place - 1]

    def keyword(self, *words: str) -> str | None:
        """Step over one of some keywords and return it."""
        word = self.token
        if word.kind == "name" and word.value.lower() in words:
            return self.next().value.lower()
        return None

    def symbol(self, *symbols: str) -> str | None:
        """Step over one of some symbols and return it."""
        if self.token.kind == "symbol" and self.token.value in symbols:
            return self.next().value
        return None

    def expect(self, symbol: str) -> None:
        if self.symbol(symbol) is None:
            self.refuse(f"have {symbol!r} here")

    def deeper(self, read: Callable[[], Node]) -> Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            refuse(self.name, f"nest at most {_DEEPEST} parentheses or signs, got more")
        node = read()
        self.depth -= 1
        return node

    def either(self) -> Node:
        return self.joined("or", self.both)

    def both(self) -> Node:
        return self.joined("and", self.negation)

    def joined(self, word: str, read: Callable[[], Node]) -> Node:
        operands = [read()]
        while self.keyword(word):
            operands.append(read())
        return operands[0] if len(operands) == 1 else Logic(word, tuple(operands))

    def negation(self) -> Node:
        if self.keyword("not"):
            return Not(self.deeper(self.negation))
        return self.predicate()

    def predicate(self) -> Node:
        left = self.sum()
        operator = self.symbol(*_COMPARE)
        if operator is not None:
            return Comparison(_COMPARE[operator], left, self.sum())
        if self.keyword("is"):
            negated = self.keyword("not") is not None
            if self.keyword("null") is None:
                self.refuse("have null after is")
            return Missing(left, negated)
        negated = self.keyword("not") is not None
        if self.keyword("between"):
            low = self.sum()
            if self.keyword("and") is None:
                self.refuse("have and after the lower end of between")
            return Between(left, low, self.sum(), negated)
        if self.keyword("in"):
            return Membership(left, self.values(), negated)
        if negated:
            self.refuse("have in or between after not")
        return left

    def values(self) -> tuple[Constant, ...]:
        self.expect("(")
        found = [self.value()]
        while self.symbol(","):
            found.append(self.value())
            if len(found) > _MOST_VALUES:
                refuse(
                    self.name, f"list at most {_MOST_VALUES} values after in, got more"
                )
        self.expect(")")
        return tuple(found)

    def value(self) -> Constant:
        at = self.token.at
        node = self.signed()
        if not isinstance(node, Constant):
            refuse(self.name, "list constants after in (text is written 'so')", at=at)
        return node

    def sum(self) -> Node:
        return self.chained(("+", "-"), self.product)

    def product(self) -> Node:
        return self.chained(("*", "/", "%"), self.signed)

    def chained(self, symbols: tuple[str, ...], read: Callable[[], Node]) -> Node:
        node = read()
        while (operator := self.symbol(*symbols)) is not None:
            node = Arithmetic(operator, node, read())
        return node

    def signed(self) -> Node:
        sign = self.symbol("-", "+")
        if sign is None:
            return self.atom()
        if self.token.kind == "number":
            return Constant(_number(self.next(), self.name, minus=sign == "-"))
        operand = self.deeper(self.signed)
        return Negate(operand) if sign == "-" else operand

    def atom(self) -> Node:
        word = self.token
        if word.kind == "number":
            return Constant(_number(self.next(), self.name))
        if word.kind == "text":
            return Constant(self.next().value)
        if word.kind == "quoted":
            return Column(self.next().value)
        if word.kind == "name":
            return self.named()
        if self.symbol("("):
            node = self.deeper(self.either)
            self.expect(")")
            return node
        self.refuse("have a value, a column or a function here")
        raise AssertionError

    def named(self) -> Node:
        word = self.next()
        lower = word.value.lower()
        if lower in ("true", "false"):
            return Constant(lower == "true")
        if lower in _KEYWORDS:
            self.place -= 1
            self.refuse("have a value, a column or a function here")
        if self.symbol("("):
            return self.call(lower, word)
        return Column(word.value)

    def call(self, function: str, word: Token) -> Node:
        if function not in FUNCTIONS:
            near = difflib.get_close_matches(function, FUNCTIONS, 1)
            hint = (
                f"did you mean {near[0]}?" if near else f"known: {', '.join(FUNCTIONS)}"
            )
            got = f"got {word.value[:40]!r} ({hint})"
            refuse(self.name, f"use the functions of the language, {got}", at=word.at)
        operands: list[Node] = []
        if self.symbol(")") is None:
            operands.append(self.deeper(self.either))
            while self.symbol(","):
                operands.append(self.deeper(self.either))
            self.expect(")")
        fewest, most = FUNCTIONS[function]
        if not fewest <= len(operands) <= most:
            want = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            got = f"got {len(operands)}"
            refuse(self.name, f"give {function} {want} operands, {got}", at=word.at)
        return _folded(function, tuple(operands), word, self.name)


def _folded(function: str, operands: tuple[Node, ...], word: Token, name: str) -> Node:
    """Turn ``date('2026-01-31')`` and ``timestamp('...')`` into constants."""
    first = operands[0]
    if function in ("date", "timestamp") and isinstance(first, Constant):
        if isinstance(first.value, str):
            read: Callable[[str], date | datetime | None]
            read = read_date if function == "date" else read_moment
            value = read(first.value)
            if value is None:
                form = {"date": "2026-01-31", "timestamp": "2026-01-31T12:00:00"}
                refuse(
                    name,
                    f"write {function}s as {function}('{form[function]}'), "
                    f"got {first.value[:40]!r}",
                    at=word.at,
                )
            return Constant(value)
    if function == "timestamp":
        refuse(name, "give timestamp a text such as '2026-01-31T12:00:00'", at=word.at)
    return Call(function, operands)


def _number(word: Token, name: str, *, minus: bool = False) -> int | Decimal:
    if len(word.value) > 60:
        refuse(name, "have numbers of at most 60 digits, got a longer one", at=word.at)
    if word.value.isdigit():
        whole = int(word.value)
        if whole > LARGEST_WHOLE:
            refuse(name, "have whole numbers below 2^63, got a larger one", at=word.at)
        return -whole if minus else whole
    number = Decimal(word.value)
    if number and not SMALLEST_NUMBER <= number < LARGEST_NUMBER:
        refuse(name, "have numbers between 2^-100 and 2^100 in size", at=word.at)
    return -number if minus else number

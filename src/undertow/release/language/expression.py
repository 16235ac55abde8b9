"""The small language of `where` and of derived columns: no SQL passes through it.

A text is cut into words, read by recursive descent and kept as nodes, which are written
as text that reads to the same nodes; what is no word of the language is refused::

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
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NoReturn

from undertow.errors import PlanError
from undertow.release.document.time import read_date, read_moment


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over the columns of one row.

    Parameters
    ----------
    root : Node
        The outermost operation; :func:`parse_expression` makes it from text.

    Notes
    -----
    ``str`` writes the expression so that it parses to an equal one.
    """

    root: Node

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns read, those of derived columns among them."""
        return frozenset(n.name for n in walk(self.root) if isinstance(n, Column))

    def __repr__(self) -> str:
        return f"parse_expression({str(self)!r})"

    def __str__(self) -> str:
        return written(self.root)


def parse_expression(text: str, *, name: str = "expression") -> Expression:
    """Read an expression from text.

    Parameters
    ----------
    text : str
        Comparisons, ``and``, ``or``, ``not``, ``in``, ``between``, ``is null``,
        arithmetic and the functions of the language over columns and constants.
    name : str
        What errors call the expression.

    Raises
    ------
    PlanError
        With one sentence, if the text is no expression of the language.

    Examples
    --------
    >>> expression = parse_expression("steps > 0 and zone in ('A', 'B')")
    >>> sorted(expression.columns)
    ['steps', 'zone']
    >>> print(expression)
    ("steps" > 0) and ("zone" in ('A', 'B'))
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text, got {type(text).__name__}.")
    return Expression(parse(text, name))


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


LONGEST_TEXT = 20_000
LONGEST_NAME = 128
_MOST_TOKENS = 4_000

Kind = Literal["number", "text", "name", "quoted", "symbol", "end"]

_PATTERN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    | (?P<name>[^\W\d]\w*)
    | (?P<comment>--|/\*)
    | (?P<symbol><=|>=|!=|<>|==|[-+*/%(),<>=])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word: its kind, its value without quotes, and the character it starts at."""

    kind: Kind
    value: str
    at: int


def refuse(name: str, requirement: str, *, at: int | None = None) -> NoReturn:
    """Raise one sentence about the expression that `name` stands for."""
    place = "" if at is None else f" at character {at + 1}"
    raise PlanError(f"{name} must {requirement}{place}.")


def tokens(text: str, name: str) -> list[Token]:
    """Cut an expression into words, the last of which is the end.

    Raises
    ------
    PlanError
        If the text is too long, holds a character the language has no use for, or a
        quote that is not closed.
    """
    _check_text(text, name)
    found: list[Token] = []
    at, stop = 0, len(text.rstrip())
    while at < stop:
        match = _PATTERN.match(text, at)
        if match is None:
            _refuse_character(text, at, name)
        found.append(_token(match, text, name))
        at = match.end()
        if len(found) > _MOST_TOKENS:
            refuse(name, f"have at most {_MOST_TOKENS} words, got more")
    return [*found, Token("end", "", stop)]


def _check_text(text: str, name: str) -> None:
    if len(text) > LONGEST_TEXT:
        refuse(
            name, f"have at most {LONGEST_TEXT} characters, got {len(text)} characters"
        )
    if not text.strip():
        refuse(name, "be an expression such as steps > 0, got empty text")
    if "\0" in text:
        refuse(name, "hold no NUL character, got one", at=text.index("\0"))
    if any("\ud800" <= character <= "\udfff" for character in text):
        refuse(name, "be Unicode text, got half of a surrogate pair")


def _token(match: re.Match[str], text: str, name: str) -> Token:
    kind, value = match.lastgroup or "", match[match.lastgroup or 0]
    at = match.end() - len(value)
    if kind == "comment":
        refuse(name, f"hold no comments, got {value!r}", at=at)
    if kind == "number" and re.match(r"\w", text[match.end() : match.end() + 1]):
        refuse(
            name, "separate a number from what follows, got a letter", at=match.end()
        )
    if kind in ("text", "quoted"):
        quote = value[0]
        value = value[1:-1].replace(quote * 2, quote)
    if kind in ("name", "quoted") and not 1 <= len(value) <= LONGEST_NAME:
        refuse(
            name,
            f"name columns of 1 to {LONGEST_NAME} characters, "
            f"got {len(value)} characters",
            at=at,
        )
    return Token(kind, value, at)  # type: ignore[arg-type]  # a group of the pattern


def _refuse_character(text: str, at: int, name: str) -> NoReturn:
    at += len(text[at:]) - len(text[at:].lstrip())
    character = text[at]
    if character in "'\"`":
        refuse(name, f"close every quote, got an open {character}", at=at)
    way = " (text is written 'so', columns are written so or \"so\")"
    refuse(name, f"be an expression{way}, got {character!r}", at=at)

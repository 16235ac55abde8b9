"""From the text of an expression to its words, bounded in length and number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from undertow.errors import PlanError

__all__ = ["LONGEST_NAME", "LONGEST_TEXT", "Token", "refuse", "tokens"]

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

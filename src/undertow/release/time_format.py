"""Times and dates written in a stated format, read alike on every engine.

A format is a text with directives such as ``%d/%m/%Y %H:%M``. It is read by one regular
expression and by the calendar, in the engine: what is not written in the format, or is
no day of the calendar, is missing, and no row can make a query fail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from undertow.release._extras import load
from undertow.release.document_errors import shown
from undertow.release.engine_sql import Backend, held

__all__ = ["DIRECTIVES", "TimeFormat", "read_time"]

DIRECTIVES: Mapping[str, str] = {
    "%Y": "the year in four digits",
    "%y": "the year in two digits, 1969 to 2068",
    "%m": "the month as a number",
    "%b": "the month as Jan, Feb, ...",
    "%B": "the month as January, February, ...",
    "%d": "the day of the month",
    "%H": "the hour, 0 to 23",
    "%I": "the hour, 1 to 12",
    "%p": "AM or PM",
    "%M": "the minute",
    "%S": "the second",
    "%f": "digits of the second after the point, at most six",
    "%%": "a percent sign",
}
"""What a format may be made of, and what each part stands for."""

_LONGEST = 100
_DIGITS = {"Y": (4, 4), "y": (2, 2), "f": (1, 6)}  # fewest and most; others 1 and 2
_NUMBERS = "YymdHIMSf"
_PARTS = ("year", "month", "day", "hour", "half", "minute", "second", "fraction")
_PART_OF = dict(zip("YymbBdHIpMSf", [0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 6, 7], strict=True))
_MONTHS = (
    "January February March April May June July August September October November "
    "December"
).split()
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PLAIN = "".join(f"[{mark}]" for mark in " ,-/:_.;")  # what a class may hold as it is


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How a column of text writes its times.

    Parameters
    ----------
    kind : {"date", "timestamp"}
        What the column holds.
    text : str
        The format, with the directives of `DIRECTIVES`.

    Raises
    ------
    ValueError
        If a directive is not known, is written twice, or what is written is no time.

    Examples
    --------
    >>> TimeFormat("date", "%d.%m.%Y").pattern
    '([0-9]{1,2})[.]([0-9]{1,2})[.]([0-9]{4})'
    """

    kind: Literal["date", "timestamp"]
    text: str

    def __post_init__(self) -> None:
        _require_parts(self.kind, [letter for letter, _ in _words(self.text) if letter])

    @property
    def written(self) -> dict[str, str]:
        """The format as a release file writes it."""
        return {self.kind: self.text}

    def __str__(self) -> str:
        return f"{self.kind} as {self.text}"

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters of the directives, in the order of their groups."""
        return tuple(letter for letter, _ in _words(self.text) if letter)

    @property
    def pattern(self) -> str:
        """A regular expression of the whole text, one group for each directive."""
        words = _words(self.text)
        around = [("", ""), *words, ("", "")]
        near = zip(around, around[2:], strict=False)
        return "".join(
            _piece(word, any(map(_has_digits, sides)))
            for word, sides in zip(words, near, strict=True)
        )


def _words(text: Any) -> list[tuple[str, str]]:
    """Split a format into directives, (letter, ""), and letters, ("", letter)."""
    if not isinstance(text, str) or not 1 <= len(text) <= _LONGEST:
        raise ValueError(
            f"must be a format of 1 to {_LONGEST} characters such as '%d/%m/%Y', got "
            f"{shown(text)}"
        )
    found, places = [], iter(text)
    for letter in places:
        if letter == "%":
            name = "%" + next(places, "")
            if name not in DIRECTIVES:
                raise ValueError(
                    f"must have directives among {' '.join(DIRECTIVES)}, got {name!r}"
                )
            found.append(("", "%") if name == "%%" else (name[1], ""))
        elif letter.isascii() and letter.isprintable():
            found.append(("", letter))
        else:
            raise ValueError(
                f"must be of printable ASCII characters and directives, got {letter!r}"
            )
    return found


def _require_parts(kind: str, letters: list[str]) -> None:
    """Refuse a format that leaves open, or says twice, what a time is."""
    parts = [_PARTS[_PART_OF[letter]] for letter in letters]
    twice = next((part for part in parts if parts.count(part) > 1), None)
    if twice is not None:
        raise ValueError(f"must give the {twice} once, got it twice")
    missing = [part for part in _PARTS[:3] if part not in parts]
    if missing:
        raise ValueError(f"must give the {missing[0]}, got none")
    if kind == "date" and len(parts) > 3:
        raise ValueError(f"must leave the {parts[3]} out of a date, got one")
    if ("I" in letters) != ("p" in letters):
        raise ValueError("must have %I and %p together, got one of them")
    chain = ("hour", "minute", "second", "fraction")
    for coarse, fine in pairwise(chain):
        if fine in parts and coarse not in parts:
            raise ValueError(f"must give the {coarse} with the {fine}, got none")


def _has_digits(word: tuple[str, str]) -> bool:
    return word[1].isdigit() or (word[0] != "" and word[0] in _NUMBERS)


def _piece(word: tuple[str, str], beside: bool) -> str:
    """Return the pattern of a directive or a letter, which may be beside digits."""
    letter, plain = word
    if plain:
        return _literal(plain)
    if letter == "p":
        return "([AaPp][Mm])"
    if letter in "bB":
        names = _MONTHS if letter == "B" else [name[:3] for name in _MONTHS]
        return "(" + "|".join("".join(map(_literal, name)) for name in names) + ")"
    least, most = _DIGITS.get(letter, (1, 2))
    least = most if beside else least  # nothing else would tell where it ends
    return f"([0-9]{{{least}}})" if least == most else f"([0-9]{{{least},{most}}})"


def _literal(letter: str) -> str:
    """Return a pattern of one character; letters in either case."""
    if letter.isalpha():
        return f"[{letter.upper()}{letter.lower()}]"
    if letter.isdigit() or f"[{letter}]" in _PLAIN:
        return letter if letter.isdigit() else f"[{letter}]"
    return "\\" + letter


def read_time(
    text: Any, form: TimeFormat, backend: Backend, *, collated: bool = False
) -> Any:
    """Return a column of text as times or dates; what is not of the format is missing.

    Parameters
    ----------
    text : Ibis column
        Of text.
    form : TimeFormat
        How it writes its times.
    backend : Backend
        The engine.
    collated : bool
        Whether text may compare as equal without being the same.

    Notes
    -----
    The parts of the text are put together again in the one form that every engine
    reads, and only where they are a day of the calendar: nothing is left for an engine
    to refuse. A number is of at most six digits wherever it becomes one.
    """
    ibis = load("ibis")
    text = held(text, backend, collated=collated)
    pattern = form.pattern
    # Engines disagree on what ends a text: the whole of it has to be found.
    fits = text.re_extract(f"^(?:{pattern})", 0) == text
    groups = _groups(pattern, form.letters)
    found = {
        _PARTS[_PART_OF[letter]]: (letter, text.re_extract(f"^(?:{pattern})", at))
        for letter, at in groups.items()
    }

    def number(part: str) -> Any:
        # A zero in front, so that nothing is no number either.
        return ibis.literal("0").concat(found[part][1]).cast("int32")

    year, month = _year(found["year"]), _month(found["month"])
    day, zero = number("day"), ibis.literal(0).cast("int32")
    hour, minute, second = (
        number(part) if part in found else zero for part in ("hour", "minute", "second")
    )
    whole = ibis.literal("0").concat(year).cast("int32")
    leap = (whole % 4 == 0) & ((whole % 100 != 0) | (whole % 400 == 0))
    length = ibis.literal(0).cast("int32")
    for at, days in enumerate(_LENGTHS, start=1):
        length = (month == f"{at:02}").ifelse(days, length)
    length = ((month == "02") & leap).ifelse(29, length)
    valid = fits & (whole >= 1) & (day >= 1) & (day <= length)
    valid &= (minute <= 59) & (second <= 59)
    if "half" in found:
        valid &= (hour >= 1) & (hour <= 12)
        late = found["half"][1].left(1).isin(["P", "p"])
        hour = hour % 12 + late.ifelse(12, 0)
    else:
        valid &= hour <= 23
    written = year.concat("-", month, "-", _two(day))
    if form.kind == "timestamp":
        fraction = ibis.literal("")
        if "fraction" in found:
            fraction = found["fraction"][1]
        written = written.concat(
            " ", _two(hour), ":", _two(minute), ":", _two(second), "."
        ).concat(fraction.concat("000000").left(6))
    safe = valid.ifelse(written, ibis.null("string"))
    return safe.try_cast(form.kind) if backend == "duckdb" else safe.cast(form.kind)


def _groups(pattern: str, letters: tuple[str, ...]) -> dict[str, int]:
    """Return the number of the group of each directive."""
    assert re.compile(pattern).groups == len(letters)
    return {letter: at for at, letter in enumerate(letters, start=1)}


def _two(number: Any) -> Any:
    ibis = load("ibis")
    return ibis.literal("0").concat(number.cast("string")).right(2)


def _year(found: tuple[str, Any]) -> Any:
    letter, digits = found
    ibis = load("ibis")
    if letter == "Y":
        return digits
    old = ibis.literal("0").concat(digits).cast("int32") >= 69
    return old.ifelse("19", "20").concat(digits)


def _month(found: tuple[str, Any]) -> Any:
    letter, name = found
    ibis = load("ibis")
    if letter == "m":
        return ibis.literal("0").concat(name).right(2)
    short = name.left(3).lower()
    month = ibis.literal("")
    for at, known in enumerate(_MONTHS, start=1):
        month = (short == known[:3].lower()).ifelse(f"{at:02}", month)
    return month

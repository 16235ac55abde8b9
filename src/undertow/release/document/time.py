"""Times as a release file writes them: formats of columns, moments, and lengths.

A moment is a date or time in ISO 8601, in UTC unless an offset says otherwise; a length
is ``15m``, ``1h``, ``1d`` or ``2w``. How a column of text writes its times is a format
with directives such as ``%d/%m/%Y %H:%M``. It is read by one regular expression and by
the calendar, in the engine: what is not written in the format, or is no day of the
calendar, is missing, and no row can make a query fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

from undertow.release._extras import load
from undertow.release.document._error import shown
from undertow.release.engine._dialect import Backend, held

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
    if letter == "I":
        return "(1[0-2]|0[1-9])" if beside else "(1[0-2]|0?[1-9])"
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
    A text of the format is rewritten, by replacing alone, in the one way that every
    engine reads; of what comes out, a regular expression of the calendar keeps the days
    and times that there are. So nothing is left for an engine to refuse. Each step uses
    the one before it once: engines compute what stands in two places twice.
    """
    ibis = load("ibis")
    text = held(text, backend, collated=collated)
    pattern = f"^(?:{form.pattern})"
    # Engines disagree on what ends a text: the whole of it has to be found.
    fits = text.re_extract(pattern, 0) == text
    sign = "$" if backend == "pyspark" else "\\"
    iso = text.re_replace(f"{pattern}$", _template(form, sign))
    iso = iso.re_replace("([- :])0([0-9][0-9])", f"{sign}1{sign}2")
    for old, new in _steps(form, sign):
        iso = iso.re_replace(old, new)
    known = iso.re_extract(_valid(form), 0).nullif("")
    safe = fits.ifelse(known, ibis.null("string"))
    return safe.try_cast(form.kind) if backend == "duckdb" else safe.cast(form.kind)


def _template(form: TimeFormat, sign: str) -> str:
    """Return a time as ISO 8601 writes it, of groups, a zero before short numbers."""
    place = {
        _PARTS[_PART_OF[letter]]: f"{sign}{at}"
        for at, letter in enumerate(form.letters, start=1)
    }
    text = f"{place['year']}-0{place['month']}-0{place['day']}"
    if form.kind == "date":
        return text
    text += f" 0{place.get('hour', '0')}"
    text += "".join(f":0{place.get(part, '0')}" for part in ("minute", "second"))
    if "fraction" in place:
        text += f".{place['fraction']}000000"
    return text + place.get("half", "")


def _steps(form: TimeFormat, sign: str) -> Iterator[tuple[str, str]]:
    """Return what is replaced for parts that ISO 8601 writes otherwise."""
    if "y" in form.letters:
        yield "^(69|[7-9][0-9])-", f"19{sign}1-"
        yield "^([0-9][0-9])-", f"20{sign}1-"
    if {"b", "B"} & {*form.letters}:
        for at, name in enumerate(_MONTHS, start=1):
            known = "".join(map(_literal, name[:3]))
            yield f"-0{known}[A-Za-z]*-", f"-{at:02}-"
    if "p" in form.letters:
        yield " 12(.*)[Aa][Mm]$", f" 00{sign}1"
        yield "[Aa][Mm]$", ""
        yield " 12(.*)[Pp][Mm]$", f" 12{sign}1"
        for hour in range(1, 12):
            yield f" {hour:02}(.*)[Pp][Mm]$", f" {hour + 12}{sign}1"
    if "f" in form.letters:
        yield "[.]([0-9]{6})[0-9]*$", f".{sign}1"


def _valid(form: TimeFormat) -> str:
    """Return a pattern of the days and times that there are, in ISO 8601."""
    year = "[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000"
    long = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    short = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rest = "02-(?:0[1-9]|1[0-9]|2[0-8])"
    fours = "0[48]|[2468][048]|[13579][26]"
    leap = f"(?:[0-9]{{2}}(?:{fours})|(?:{fours})00)-02-29"
    day = f"(?:(?:{year})-(?:{long}|{short}|{rest})|{leap})"
    if form.kind == "date":
        return f"^{day}$"
    fraction = "[.][0-9]{6}" if "f" in form.letters else ""
    return f"^{day} (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]{fraction}$"


EPOCH = datetime(1970, 1, 1)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?)?\Z",
    re.ASCII,
)


def read_date(text: str) -> date | None:
    """Read ``2026-01-31``, or return None.

    Examples
    --------
    >>> read_date("2026-01-31"), read_date("2026-02-31")
    (datetime.date(2026, 1, 31), None)
    """
    if not _DATE.match(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_moment(text: str) -> datetime | None:
    """Read an ISO date or time as UTC without a zone, or return None.

    Examples
    --------
    >>> read_moment("2026-01-31T12:00:00+01:00")
    datetime.datetime(2026, 1, 31, 11, 0)
    """
    if not _MOMENT.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return in_utc(moment)
    except (OverflowError, ValueError):
        return None


def in_utc(moment: datetime) -> datetime:
    """Return the same moment in UTC without a zone; naive times are UTC already."""
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(UTC).replace(tzinfo=None)


def epoch_us(moment: datetime) -> int:
    """Return the whole microseconds from the Unix epoch to a moment.

    Examples
    --------
    >>> epoch_us(datetime(1970, 1, 2))
    86400000000
    """
    return (in_utc(moment) - EPOCH) // timedelta(microseconds=1)


MICROSECONDS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
}
"""The microseconds of each unit, the longest first."""

_LONGEST_DURATION = 36_525 * MICROSECONDS["d"]
_DURATION = re.compile(r"([0-9]{1,12})([wdhms])\Z", re.ASCII)


def parse_duration(text: str, *, name: str = "duration") -> int:
    """Read a length of time as whole microseconds.

    Parameters
    ----------
    text : str
        A positive whole number and one of w, d, h, m and s.
    name : str
        What errors call it.

    Returns
    -------
    int
        Microseconds; every day has 24 hours.

    Raises
    ------
    TypeError
        If it is no text.
    ValueError
        If the text has another form, is zero, or is longer than 100 years.

    Examples
    --------
    >>> parse_duration("15m")
    900000000
    """
    if not isinstance(text, str):
        raise TypeError(f"{name} must be text such as '1h', got {type(text).__name__}.")
    found = _DURATION.match(text)
    if found is None or int(found[1]) == 0:
        raise ValueError(
            f"{name} must be a positive whole number and one of w, d, h, m and s, "
            f"such as '15m', got {text[:40]!r}."
        )
    length = int(found[1]) * MICROSECONDS[found[2]]
    if length > _LONGEST_DURATION:
        raise ValueError(f"{name} must be at most 100 years, got {text!r}.")
    return length


def written_duration(length: int) -> str:
    """Write a length in whole microseconds with the longest unit that divides it.

    Examples
    --------
    >>> written_duration(86_400_000_000), written_duration(5_400_000_000)
    ('1d', '90m')
    """
    for unit, size in MICROSECONDS.items():
        if length > 0 and length % size == 0:
            return f"{length // size}{unit}"
    raise ValueError(
        f"length must be a positive whole number of seconds, got {length} microseconds."
    )

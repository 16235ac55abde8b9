"""Texts that are times in some format, or nearly; and what Python reads in them."""

from __future__ import annotations

from datetime import datetime
from random import Random

__all__ = ["FORMATS", "near_misses", "read_by_python"]

FORMATS = (
    "%d/%m/%Y %H:%M",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%d.%m.%Y",
    "%b %d, %Y at %I:%M %p",
    "%d-%B-%Y",
    "%m/%d/%y %H.%M.%S",
    "(%d|%m)^%Y$%%\\'[*]+?{2}",
    "%Y%m%d%H%M%S",
)
"""Formats with every directive, and with what regular expressions are made of."""

_YEARS = (1, 1582, 1900, 1968, 1969, 1999, 2000, 2023, 2024, 2068, 9999)
# No blanks: strptime takes several for one, and a format of ours does not.
_MARKS = "0123456789/:.-TxAPMm%|"


def near_misses(form: str, random: Random, count: int) -> list[str]:
    """Return times in a format, half of them with one character changed."""
    texts = []
    for _ in range(count):
        time = datetime(
            random.choice(_YEARS),
            random.randint(1, 12),
            random.choice([1, 9, 28, random.randint(1, 28)]),
            random.choice([0, 11, 12, 23]),
            random.choice([0, 59, random.randint(0, 59)]),
            random.randint(0, 59),
            random.choice([0, 1, 500000, 999999]),
        )
        text = time.strftime(form.replace("%Y", f"{time.year:04}"))
        kind = random.random()
        at = random.randrange(len(text))
        mark = random.choice(_MARKS)
        if kind < 0.2:
            text = text[:at] + mark + text[at + 1 :]
        elif kind < 0.3:
            text = text[:at] + mark + text[at:]
        elif kind < 0.4:
            text = text[:at] + text[at + 1 :]
        elif kind < 0.6:
            text = text.replace(
                f"{time.day:02}", random.choice(["29", "30", "31", "32"])
            )
        elif kind < 0.7:
            text = random.choice([text.upper(), text.lower(), text.replace("/0", "/")])
        texts.append(text)
    return texts


def read_by_python(text: str, form: str) -> datetime | None:
    """Return what strptime reads; None where it reads nothing.

    Numbers with nothing between them must have all their digits, where it would try
    several ways to divide them; and two blanks, or none, are not one.
    """
    try:
        time = datetime.strptime(text, form)
    except ValueError:
        return None
    marked = form.count("%") * 2 < len(form)
    if not marked and len(text) != len(datetime.max.strftime(form)):
        return None
    return time if text.count(" ") == form.count(" ") else None

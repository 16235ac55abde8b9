"""Public keys: the cells of a table are named before the data is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal

from undertow.release.moments import read_date

__all__ = [
    "DISCOVER",
    "MOST_CELLS",
    "Discover",
    "Key",
    "Keys",
    "parse_all_keys",
    "parse_keys",
]

Key = bool | int | str | date
"""What names a cell."""

MOST_CELLS = 10**6
_LONGEST_KEY = 1000
_FORMS = '"0..23", "2026-01-01..2026-01-31" or a list such as ["A", "B"]'
_KINDS = {bool: "booleans", int: "whole numbers", str: "texts", date: "dates"}


class Discover(Enum):
    """The one value that stands for keys found by partition selection."""

    DISCOVER = "discover"


DISCOVER: Final = Discover.DISCOVER

Keys = dict[str, tuple[Key, ...]] | Literal[Discover.DISCOVER]
"""The keys of each column, or `DISCOVER` for all of them together."""


def parse_all_keys(value: Any, *, name: str = "keys") -> Keys:
    """Read what a query says about its keys.

    Parameters
    ----------
    value : str or mapping
        ``"discover"``, or for each column what :func:`parse_keys` reads.
    name : str
        What errors call it.

    Raises
    ------
    ValueError
        If the keys of a column have no such form, repeat, or are too many.

    Examples
    --------
    >>> parse_all_keys({"hour": "0..2", "zone": ["A", "B"]})
    {'hour': (0, 1, 2), 'zone': ('A', 'B')}
    """
    if value is DISCOVER or value == "discover":
        return DISCOVER
    if not isinstance(value, Mapping):
        raise ValueError(
            f'{name} must be "discover" or a table such as {{ hour = "0..23", zone = '
            f'["A", "B"] }}, got {_shown(value)}.'
        )
    return {
        str(column): parse_keys(keys, name=f"{name}.{str(column)[:60]}")
        for column, keys in value.items()
    }


def parse_keys(value: Any, *, name: str = "keys") -> tuple[Key, ...]:
    """Read the public keys of one column, each once, types as written.

    Parameters
    ----------
    value : str or sequence
        A range of whole numbers or ISO dates with both ends included, or a list of
        whole numbers, texts, dates or booleans, all of one type.
    name : str
        What errors call it.

    Raises
    ------
    ValueError
        If the value has no such form, a key repeats, or there are over a million.

    Examples
    --------
    >>> parse_keys("-1..1")
    (-1, 0, 1)
    >>> parse_keys("2026-02-28..2026-03-01")
    (datetime.date(2026, 2, 28), datetime.date(2026, 3, 1))
    """
    if isinstance(value, str):
        return _range(value, name)
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise ValueError(f"{name} must be {_FORMS}, got {_shown(value)}.")
    if not value:
        raise ValueError(f"{name} must hold at least one key, got none.")
    if len(value) > MOST_CELLS:
        raise ValueError(
            f"{name} must hold at most {MOST_CELLS} keys, got {len(value)}."
        )
    keys = tuple(_key(key, f"{name}[{at}]") for at, key in enumerate(value))
    _one_type(keys, name)
    _each_once(keys, name)
    return keys


def _range(text: str, name: str) -> tuple[Key, ...]:
    if text == "discover":
        raise ValueError(
            f"{name} must be public keys, got 'discover'; discovery is for all columns "
            'of a query together: keys = "discover".'
        )
    first, dots, last = (part.strip() for part in text[:60].partition(".."))
    days = read_date(first), read_date(last)
    if dots and days[0] is not None and days[1] is not None:
        return _dates(days[0], days[1], name)
    low, high = _whole(first), _whole(last)
    if not dots or len(text) > 60 or low is None or high is None:
        raise ValueError(f"{name} must be {_FORMS}, got {_shown(text)}.")
    _check_size(high - low + 1, name)
    return tuple(range(low, high + 1))


def _dates(first: date, last: date, name: str) -> tuple[Key, ...]:
    days = (last - first).days + 1
    _check_size(days, name)
    return tuple(first + timedelta(days=day) for day in range(days))


def _check_size(size: int, name: str) -> None:
    if size < 1:
        raise ValueError(
            f"{name} must run from low to high, got a range that is empty."
        )
    if size > MOST_CELLS:
        raise ValueError(f"{name} must hold at most {MOST_CELLS} keys, got {size}.")


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    return int(text) if abs(int(text)) < 2**63 else None


def _key(key: Any, name: str) -> Key:
    if isinstance(key, bool):
        return key
    if isinstance(key, int):
        if not -(2**63) <= key < 2**63:
            raise ValueError(f"{name} must fit in 64 bits, got {_shown(key)}.")
        return int(key)
    if isinstance(key, datetime):
        raise ValueError(
            f"{name} must be a date without a time, got a time; group by date(...), "
            "hour(...) or minute(...) of it."
        )
    if isinstance(key, date):
        return key
    if isinstance(key, str):
        return _text(key, name)
    out = "; make it whole with floor(...) in [columns]"
    raise ValueError(
        f"{name} must be a whole number, text, date or boolean, got {_shown(key)}"
        f"{out if isinstance(key, float) else ''}."
    )


def _text(key: str, name: str) -> str:
    if len(key) > _LONGEST_KEY:
        raise ValueError(
            f"{name} must have at most {_LONGEST_KEY} characters, got {len(key)}."
        )
    if "\0" in key or any("\ud800" <= letter <= "\udfff" for letter in key):
        raise ValueError(f"{name} must be Unicode text without NUL, got other text.")
    return str(key)


def _one_type(keys: tuple[Key, ...], name: str) -> None:
    kinds = sorted({_KINDS.get(type(key), "dates") for key in keys})
    if len(kinds) > 1:
        raise ValueError(f"{name} must be of one type, got {' and '.join(kinds)}.")


def _each_once(keys: tuple[Key, ...], name: str) -> None:
    seen: set[Key] = set()
    for key in keys:
        if key in seen:
            raise ValueError(
                f"{name} must hold each key once, got {_shown(key)} twice."
            )
        seen.add(key)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else None
    if text is not None:
        return repr(text if len(text) <= 40 else text[:37] + "...")
    if isinstance(value, int | float | date):
        return str(value)[:40]
    return f"a value of type {type(value).__name__}"

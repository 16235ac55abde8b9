"""Lengths of time as a release file writes them: ``15m``, ``1h``, ``1d``, ``2w``."""

from __future__ import annotations

import re

__all__ = ["MICROSECONDS", "parse_duration", "written_duration"]

MICROSECONDS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
}
"""The microseconds of each unit, the longest first."""

_LONGEST = 36_525 * MICROSECONDS["d"]
_FORM = re.compile(r"([0-9]{1,12})([wdhms])\Z", re.ASCII)


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
    found = _FORM.match(text)
    if found is None or int(found[1]) == 0:
        raise ValueError(
            f"{name} must be a positive whole number and one of w, d, h, m and s, "
            f"such as '15m', got {text[:40]!r}."
        )
    length = int(found[1]) * MICROSECONDS[found[2]]
    if length > _LONGEST:
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

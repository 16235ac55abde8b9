"""One function per kind of argument; each says what is required and what came."""

from __future__ import annotations

import math
import operator
from typing import SupportsIndex


def check_count(value: SupportsIndex, name: str, *, minimum: int = 1) -> int:
    """Return `value` as an int that is at least `minimum`."""
    # Truth values of numpy are asked for by name, so that numpy is not imported here.
    truth = isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")
    try:
        number = minimum - 1 if truth else operator.index(value)
    except TypeError:
        number = minimum - 1
    if number < minimum:
        raise ValueError(
            f"{name} must be a whole number of at least {minimum}, got {value!r}."
        )
    return number


def check_index(value: SupportsIndex, name: str, *, size: int) -> int:
    """Return `value` as an int in ``range(size)``."""
    number = check_count(value, name, minimum=0)
    if number >= size:
        raise ValueError(f"{name} must be in 0..{size - 1}, got {value!r}.")
    return number


def check_finite(value: float, name: str) -> float:
    """Return `value` as a finite float."""
    number = _as_float(value, name)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value}.")
    return number


def check_non_negative(value: float, name: str) -> float:
    """Return `value` as a float in ``[0, inf]``."""
    number = _as_float(value, name)
    if not number >= 0:
        raise ValueError(f"{name} must be non-negative, got {value}.")
    return number


def check_positive(value: float, name: str) -> float:
    """Return `value` as a positive, finite float."""
    number = _as_float(value, name)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}.")
    return number


def check_probability(value: float, name: str, *, open_interval: bool = False) -> float:
    """Return `value` as a float in [0, 1], or in (0, 1) if `open_interval`."""
    number = _as_float(value, name)
    inside = 0 < number < 1 if open_interval else 0 <= number <= 1
    if not inside:
        interval = "(0, 1)" if open_interval else "[0, 1]"
        raise ValueError(f"{name} must be in {interval}, got {value}.")
    return number


def check_choice(value: str, name: str, *, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}.")
    return value


def _as_float(value: float, name: str) -> float:
    if isinstance(value, bool | str | bytes):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    try:
        return float(value)
    except OverflowError:  # an exact number beyond the largest float
        return math.inf if value > 0 else -math.inf
    except TypeError:
        raise TypeError(
            f"{name} must be a number, got {type(value).__name__}."
        ) from None

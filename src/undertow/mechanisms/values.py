"""How given values are read, exactly, and how results are handed back."""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import MismatchError
from undertow.mechanisms.noise.draw import read_size
from undertow.privacy.exact import Exact, exact, format_up, sqrt_up

__all__ = [
    "PRECISE",
    "Floats",
    "decimal_up",
    "float_size",
    "plain",
    "read_candidates",
    "read_dimension",
    "read_vector",
    "sqrt_nearest",
    "subtract",
    "to_decimal",
    "total",
]

Floats = float | NDArray[np.float64]
"""A float for one output, an array for an array of outputs."""

# Digits carried where a loss is a logarithm of rationals, and the margins that cover
# what their rounding and cancellation can lose.
PRECISE = Context(prec=80)
_MARGIN = Fraction(1, 10**50)
_RELATIVE = Fraction(1, 10**70)

# Sizes of noise whose law floats can hold, the stated ends included though rounded.
_LEAST_SIZE, _LARGEST_SIZE = Fraction(9, 10**301), 11 * 10**304


def float_size(value: Exact, name: str) -> float:
    """Return the size of some noise as a float, if its law can be worked out in floats.

    Parameters
    ----------
    value : Fraction
        Positive.
    name : str
        What it is, for the error message.

    Raises
    ------
    ValueError
        If it is below 1e-300 or above 1e305.
    """
    if not _LEAST_SIZE <= value <= _LARGEST_SIZE:
        raise ValueError(
            f"{name} must be between 1e-300 and 1e305 for its law to be worked out in "
            f"floats, got {format_up(value, 3)}; give the values in another unit."
        )
    return float(value)


def sqrt_nearest(square: Fraction) -> float:
    """Return a square root as a float where it is one, though the square is not.

    Raises
    ------
    ValueError
        If the root lies outside the range of normal floats.
    """
    if _LEAST_SIZE <= square <= _LARGEST_SIZE:
        return math.sqrt(square)
    root = sqrt_up(square)
    float_size(Fraction(root) if root < math.inf else math.inf, "sigma")
    return root


def read_dimension(dimension: int) -> int:
    """Read the number of coordinates."""
    count = read_size(dimension, "dimension")
    if count == 0:
        raise ValueError("dimension must be at least 1, got 0.")
    return count


def subtract(
    output: ArrayLike, given: ArrayLike, *, dimension: int
) -> NDArray[np.float64]:
    """Return the noise that leads from `given` to each output."""
    outputs, start = np.asarray(output, float), np.asarray(given, float)
    if start.size != dimension or not np.isfinite(start).all():
        raise MismatchError(
            f"given must have {dimension} finite coordinates, got {start.size}."
        )
    if dimension > 1 and outputs.shape[-1:] != (dimension,):
        raise MismatchError(
            f"output must have {dimension} coordinates on its last axis, "
            f"got shape {outputs.shape}."
        )
    return np.asarray(outputs - start.reshape(() if dimension == 1 else dimension))


def total(logs: NDArray[np.float64], *, dimension: int) -> Floats:
    """Add the logs of independent coordinates."""
    return plain(logs if dimension == 1 else logs.sum(axis=-1))


def plain(values: ArrayLike) -> Floats:
    """Return a float for a single number, else the array."""
    array = np.asarray(values, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


def read_candidates(candidates: Sequence[Hashable] | int) -> tuple[Hashable, ...]:
    """Read distinct labels; a whole number n stands for the labels 0, ..., n - 1."""
    if isinstance(candidates, int):
        labels: tuple[Hashable, ...] = tuple(range(candidates))
    else:
        labels = tuple(candidates)
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise ValueError(
            "candidates must be at least two distinct labels, "
            f"got {len(labels)} labels, {len(set(labels))} of them distinct."
        )
    return labels


def read_vector(
    values: Any, dimension: int, name: str, *, binary: bool = False
) -> tuple[Fraction, ...]:
    """Read `dimension` finite numbers exactly.

    Floats are read as the decimals they show, or, if `binary`, as the binary fractions
    they are: a lattice point stays a lattice point.
    """
    array = np.asarray(values, dtype=np.object_).ravel().tolist()
    if len(array) != dimension:
        raise MismatchError(
            f"{name} must have {dimension} coordinates, got {len(array)}."
        )
    return tuple(_signed(value, name, binary) for value in array)


def _signed(value: Any, name: str, binary: bool) -> Fraction:
    if binary and isinstance(value, float | np.floating) and math.isfinite(value):
        return Fraction(float(value))
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return Fraction(int(value))
    text = value.strip() if isinstance(value, str) else ""
    negative = text[:1] == "-" if text else value < 0
    try:
        size = exact((text[1:] if text else -value) if negative else value, name)
    except ValueError:
        size = math.inf
    if size == math.inf:
        # The value may be private, so the message does not show it.
        raise ValueError(f"{name} must be finite numbers.") from None
    return -Fraction(size) if negative else Fraction(size)


def to_decimal(value: Fraction) -> Decimal:
    """Return `value` to 80 digits."""
    return PRECISE.divide(Decimal(value.numerator), Decimal(value.denominator))


def decimal_up(value: Decimal) -> Fraction:
    """Turn a loss computed to 80 digits into one that is at least the true loss.

    Notes
    -----
    Sums, exponentials and logarithms of :class:`decimal.Decimal` are correctly rounded.
    A chain of a few thousand of them loses less than 1e-50, and less than 1e-70 of a
    large result if no intermediate number is larger.
    """
    number = Fraction(value)
    return max(number + _MARGIN + abs(number) * _RELATIVE, Fraction(0))

r"""What each kind of query asks of the engine, and what its noisy numbers say.

An encoding turns the aggregates of a cell into one or several whole numbers, says how
far a row moves them, and reads estimates and intervals off the noisy ones. Noise is
added to the encoded numbers and to nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow.release.intervals import IntegerNoise
from undertow.release.job import Aggregates, Measure, Value
from undertow.release.sensitivity import Contribution, Reach

__all__ = [
    "Encoding",
    "Estimate",
    "Integers",
    "OneNumber",
    "Rows",
    "Sum",
    "Units",
    "short_number",
    "value_lattice",
    "whole_numbers",
]

Integers = NDArray[Any]
Estimate = tuple[float | int, float | int, float | int]
"""An estimate and the two ends of its interval."""

# Codes of a value: two to this power, unless the bounds are a few steps wide.
_RESOLUTION = 20
# Those of a value that is added up: rounded rows add up too, and no interval says so.
# A decimal of twelve places is still coded exactly in 64 bits.
_SUM_RESOLUTION = 32


def value_lattice(
    column: str, *, low: Fraction, high: Fraction, added: bool = False
) -> Value:
    """Return the public lattice of a number between two bounds.

    The step is the least power of two with at most 2**20 steps between the bounds, or
    2**32 where the numbers are `added` up, so that it depends on the bounds alone.

    Examples
    --------
    >>> value = value_lattice("steps", low=Fraction(0), high=Fraction(50))
    >>> value.exponent, value.most
    (-14, 819200)
    >>> value_lattice("steps", low=Fraction(0), high=Fraction(50), added=True).exponent
    -26
    """
    ratio = (high - low) / 2 ** (_SUM_RESOLUTION if added else _RESOLUTION)
    exponent = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    while Fraction(2) ** exponent < ratio:
        exponent += 1
    while Fraction(2) ** (exponent - 1) >= ratio:
        exponent -= 1
    return Value(column, low, high, exponent)


class Encoding(ABC):
    """Whole numbers per cell, how far a unit moves them, and how to read them."""

    __slots__ = ()
    measures: ClassVar[tuple[Measure, ...]]

    @abstractmethod
    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves all numbers of the query together."""

    @abstractmethod
    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the numbers, one row per cell and one column per part."""

    @abstractmethod
    def read(
        self, noisy: Integers, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return an estimate and an interval of confidence 1 - `beta` per cell."""

    @abstractmethod
    def half_width(self, noise: IntegerNoise, beta: float) -> tuple[float, str]:
        """Return the half-width of an interval, and in what unit it is stated."""

    @property
    def row_size(self) -> int:
        """Most that one row moves a number."""
        return 1

    @property
    def note(self) -> str | None:
        """What a reader of the answer must know about the numbers."""
        return None

    @property
    def non_negative(self) -> bool:
        """Whether the truth cannot be negative."""
        return True

    @property
    def whole(self) -> bool:
        """Whether estimates and the ends of intervals are whole numbers."""
        return True

    @property
    def bins(self) -> int:
        """Cells of the engine's answer that make up one cell of the query."""
        return 1

    @property
    def labels(self) -> tuple[tuple[Any, ...], ...]:
        """What distinguishes the answers within one cell."""
        return ((),)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The names of the columns of `labels`."""
        return ()


class OneNumber(Encoding):
    """One whole number per cell, whose interval is a radius around it."""

    __slots__ = ()

    @abstractmethod
    def around(self, noisy: Integers, radius: int) -> list[Estimate]:
        """Return the numbers and the ends of intervals of this radius."""

    @abstractmethod
    def width(self, radius: int) -> tuple[float, str]:
        """Return the half-width of an interval of this radius, and its unit."""

    def read(
        self, noisy: Integers, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return the noisy numbers with the exact quantile of the noise around them."""
        return self.around(noisy, noise.radius(beta))

    def half_width(self, noise: IntegerNoise, beta: float) -> tuple[float, str]:
        """Return the half-width of the interval of one number."""
        return self.width(noise.radius(beta))


@dataclass(frozen=True, slots=True)
class Rows(OneNumber):
    """Count rows."""

    measures: ClassVar[tuple[Measure, ...]] = ("rows",)

    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves the row counts."""
        return contribution.row_reach()

    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the counts."""
        return whole_numbers(aggregates, "rows")

    def around(self, noisy: Integers, radius: int) -> list[Estimate]:
        """Return the noisy counts and the ends of their intervals."""
        return [(k, k - radius, k + radius) for k in _plain(noisy[:, 0])]

    def width(self, radius: int) -> tuple[float, str]:
        """Return the radius of the interval of one count."""
        return float(radius), "rows"


@dataclass(frozen=True, slots=True)
class Units(Rows):
    """Count distinct units."""

    measures: ClassVar[tuple[Measure, ...]] = ("units",)

    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves the numbers of units."""
        return contribution.unit_reach()

    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the numbers of units."""
        return whole_numbers(aggregates, "units")

    def width(self, radius: int) -> tuple[float, str]:
        """Return the radius of the interval of one count."""
        return float(radius), "units"


@dataclass(frozen=True, slots=True)
class Sum(OneNumber):
    r"""Add up numbers, each a whole multiple of the step.

    Notes
    -----
    A code c stands for the multiple :math:`c + k` of the step, where k is the whole
    number nearest to low/step. The released number is
    :math:`\sum (c + k) = S + kN`, and a row moves it by at most
    :math:`\max(|k|, |M + k|)` with M the largest code.
    """

    value: Value
    measures = ("sum", "rows")

    @property
    def non_negative(self) -> bool:
        """Whether the truth cannot be negative."""
        return self.value.low >= 0

    @property
    def whole(self) -> bool:
        """Whether sums are whole numbers, because the step is one."""
        return self.value.step.denominator == 1

    @property
    def shift(self) -> int:
        """The k: which multiple of the step the code 0 stands for."""
        return math.floor(self.value.low / self.value.step + Fraction(1, 2))

    @property
    def row_size(self) -> int:
        """Most that one row moves the sum, in steps."""
        return max(abs(self.shift), abs(self.value.most + self.shift))

    @property
    def note(self) -> str:
        """What was rounded."""
        return (
            f"numbers are clipped to [{self.value.low}, {self.value.high}] and rounded "
            f"to multiples of {short_number(self.value.step)}"
        )

    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves the sums, in steps."""
        reach = contribution.row_reach().times(self.row_size)
        if self.shift < 0 < self.value.most + self.shift:  # rows move it both ways
            return Reach(reach.total, reach.square, reach.touched)
        return reach

    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the sums in steps."""
        codes, rows = (
            whole_numbers(aggregates, "sum"),
            whole_numbers(aggregates, "rows"),
        )
        return np.asarray(codes + self.shift * rows)

    def around(self, noisy: Integers, radius: int) -> list[Estimate]:
        """Return the noisy sums and the ends of their intervals."""
        t, step = radius, self.value.step
        return [
            (_number(k * step), _number((k - t) * step), _number((k + t) * step))
            for k in _plain(noisy[:, 0])
        ]

    def width(self, radius: int) -> tuple[float, str]:
        """Return the half-width of the interval of one sum."""
        return float(radius * self.value.step), f"of {self.value.column}"


def whole_numbers(aggregates: Aggregates, name: str) -> Integers:
    """Return one measure as Python integers in a column."""
    numbers = np.asarray(aggregates.measures[name])
    return np.array([int(k) for k in numbers], dtype=np.object_).reshape(-1, 1)


def _plain(numbers: Integers) -> list[int]:
    return [int(k) for k in numbers]


def _number(value: Fraction | int) -> float | int:
    return int(value) if Fraction(value).denominator == 1 else float(value)


def short_number(step: Fraction) -> str:
    """Write a number with six digits."""
    return f"{float(step):.6g}"

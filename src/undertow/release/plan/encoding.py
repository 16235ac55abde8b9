"""What each kind of query asks of the engine, and what its noisy numbers say.

An encoding turns the aggregates of a cell into one or several whole numbers, says how
far a row moves them, and reads estimates and intervals off the noisy ones. Noise is
added to the encoded numbers and to nothing else.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow.numeric.array import Array
from undertow.release.engine.job import Aggregates, Measure, Value
from undertow.release.plan.noise import (
    Contribution,
    IntegerNoise,
    Reach,
    share_interval,
    share_radius,
    variance_interval,
)

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
    def step(self) -> Fraction:
        """What a whole number stands for: rows, units, or of the column."""
        return Fraction(1)

    def largest(self, rows: int) -> Fraction | float:
        """Return the most that a group of so many rows can show, as `half_width` is."""
        return Fraction(rows)

    @property
    def is_table(self) -> bool:
        """Whether the numbers of all cells add up to those of coarser ones."""
        return False

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

    @property
    def is_table(self) -> bool:
        """Whether the numbers of all cells add up; rows do."""
        return True

    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves the row counts."""
        return contribution.row_reach()

    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the counts."""
        return whole_numbers(aggregates, "rows")

    def around(self, noisy: Integers, radius: int) -> list[Estimate]:
        """Return the noisy counts and the ends of their intervals."""
        return [(k, k - radius, k + radius) for k in _plain_numbers(noisy[:, 0])]

    def width(self, radius: int) -> tuple[float, str]:
        """Return the radius of the interval of one count."""
        return float(radius), "rows"


@dataclass(frozen=True, slots=True)
class Units(Rows):
    """Count distinct units."""

    measures: ClassVar[tuple[Measure, ...]] = ("units",)

    @property
    def is_table(self) -> bool:
        """Whether the numbers of all cells add up; a unit is in several."""
        return False

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
    def step(self) -> Fraction:
        """The step of the lattice."""
        return self.value.step

    def largest(self, rows: int) -> Fraction:
        """Return the largest sum of so many numbers."""
        return rows * max(abs(self.value.low), abs(self.value.high))

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
            for k in _plain_numbers(noisy[:, 0])
        ]

    def width(self, radius: int) -> tuple[float, str]:
        """Return the half-width of the interval of one sum."""
        return float(radius * self.value.step), f"of {self.value.column}"


def whole_numbers(aggregates: Aggregates, name: str) -> Integers:
    """Return one measure as Python integers in a column."""
    numbers = np.asarray(aggregates.measures[name])
    return np.array([int(k) for k in numbers], dtype=np.object_).reshape(-1, 1)


def _plain_numbers(numbers: Integers) -> list[int]:
    return [int(k) for k in numbers]


def _number(value: Fraction | int) -> float | int:
    return int(value) if Fraction(value).denominator == 1 else float(value)


def short_number(step: Fraction) -> str:
    """Write a number with six digits."""
    return f"{float(step):.6g}"


# Means and variances of numbers between public bounds, from sums of one noise.

# Outward, relative to the range of a value: covers the rounding of a few operations.
_OUTWARD = 1e-12


@dataclass(frozen=True, slots=True)
class Mean(Encoding):
    r"""Average numbers between public bounds, from two sums that share one noise level.

    Notes
    -----
    Released are :math:`A = \sum c` and :math:`B = \sum (M - c)` over the codes c. Both
    are non-negative and a row moves them by c and M - c, together by exactly M in
    :math:`\ell_1` and by at most M in :math:`\ell_2`. Then
    :math:`\text{mean} = M A/(A+B)` and the number of rows is (A + B)/M. A sum of
    centred numbers and a count released at half the budget each would both have twice
    the variance under Laplace noise. The interval is that of the share A / (A + B), the
    shares at which the noisy numbers would not be too far off; see
    :func:`~undertow.release.plan.noise.share_interval`.
    """

    value: Value
    measures = ("sum", "rows")

    @property
    def step(self) -> Fraction:
        """The step of the lattice."""
        return self.value.step

    def largest(self, rows: int) -> float:
        """Return the largest difference of two means, times the rows."""
        return rows * float(self.value.high - self.value.low)

    @property
    def non_negative(self) -> bool:
        """Whether the truth cannot be negative."""
        return self.value.low >= 0

    @property
    def whole(self) -> bool:
        """Whether estimates are whole numbers; they are fractions."""
        return False

    @property
    def row_size(self) -> int:
        """Most that one row moves both numbers together."""
        return self.value.most

    @property
    def note(self) -> str:
        """What was clipped."""
        return f"numbers are clipped to [{self.value.low}, {self.value.high}]"

    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves both sums together."""
        reach = contribution.row_reach().times(self.row_size)
        return reach.of_one_sign()

    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the sum of the codes, and that of their distances from the most."""
        codes, rows = (
            whole_numbers(aggregates, "sum"),
            whole_numbers(aggregates, "rows"),
        )
        return np.hstack([codes, self.value.most * rows - codes])

    def read(
        self, noisy: Integers, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return the means with the intervals of their shares of the range."""
        parts = noisy.astype(np.float64).T
        low, high = share_interval(parts[0], parts[1], noise=noise, beta=beta)
        total = parts.sum(axis=0)
        # Nothing is known of a cell that looks empty: the middle of the range.
        share = np.where(total > 0, parts[0] / np.where(total > 0, total, 1.0), 0.5)
        return self._numbers(np.clip(share, 0.0, 1.0), low, high)

    def _numbers(self, share: Array, low: Array, high: Array) -> list[Estimate]:
        """Turn shares of the range into numbers, the ends outward by half a step."""
        value = self.value
        base, width = float(value.low), float(value.most * value.step)
        slack = float(value.step) / 2 + _OUTWARD * width
        found = (share * width, low * width - slack, high * width + slack)
        # The last code may stand for a little more than the upper bound.
        clipped = [np.clip(base + x, base, float(value.high)).tolist() for x in found]
        return list(zip(*clipped, strict=True))

    def half_width(self, noise: IntegerNoise, beta: float) -> tuple[float, str]:
        """Return the largest half-width in a cell of one row; it falls with the rows.

        That of a mean near one of the bounds; means between them have less.
        """
        width = share_radius(noise, beta=beta) * float(self.value.step)
        return width, f"of {self.value.column}, divided by the rows of the cell"


@dataclass(frozen=True, slots=True)
class Variance(Encoding):
    r"""The variance of numbers between public bounds, from three sums.

    Notes
    -----
    Released are the sums of :math:`(M-c)^2`, :math:`2c(M-c)` and :math:`c^2`, which are
    non-negative and add up to :math:`M^2` in every row: a row moves the three together
    by exactly :math:`M^2` in :math:`\ell_1` and by at most that in :math:`\ell_2`.
    Number of rows, mean and mean square are linear in their shares. The interval is an
    enclosure over a box of three intervals, each missed with probability at most
    beta / 3. Rounding moves a number by half a step at most, and so the standard
    deviation, which is a seminorm: the roots of the ends are moved outward by as much.
    """

    value: Value
    measures = ("sum", "squares", "rows")

    @property
    def step(self) -> Fraction:
        """The square of the step of the lattice."""
        return self.value.step**2

    def largest(self, rows: int) -> float:
        """Return the largest variance, times the rows."""
        return rows * float((self.value.high - self.value.low) ** 2 / 4)

    @property
    def whole(self) -> bool:
        """Whether estimates are whole numbers; they are fractions."""
        return False

    @property
    def row_size(self) -> int:
        """Most that one row moves the three numbers together."""
        return self.value.most**2

    @property
    def note(self) -> str:
        """What was clipped and rounded, and by what is divided."""
        return (
            f"numbers are clipped to [{self.value.low}, {self.value.high}] and rounded "
            f"to steps of {short_number(self.value.step)}; the variance divides by the "
            "number of rows"
        )

    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves the three sums together."""
        reach = contribution.row_reach().times(self.row_size)
        return reach.of_one_sign()

    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the three sums."""
        rows, codes = (
            whole_numbers(aggregates, "rows"),
            whole_numbers(aggregates, "sum"),
        )
        squares, most = whole_numbers(aggregates, "squares"), self.value.most
        zero = most**2 * rows - 2 * most * codes + squares
        return np.hstack([zero, 2 * (most * codes - squares), squares])

    def read(
        self, noisy: Integers, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return the variances with an enclosure over a box of three intervals."""
        t, parts = noise.radius(beta / 3), noisy.astype(np.float64).T
        low, high = variance_interval([(part - t, part + t) for part in parts])
        total = parts.sum(axis=0)
        safe = np.where(total > 0, total, 1.0)
        mean, square = (parts[2] + parts[1] / 2) / safe, parts[2] / safe
        share = np.where(total > 0, square - mean**2, (low + high) / 2)
        half = 0.5 / self.value.most  # of a step, in widths of the range
        low = np.maximum(0.0, np.sqrt(low) - half) ** 2 - _OUTWARD
        high = (np.sqrt(high) + half) ** 2 + _OUTWARD
        scale = float(self.value.most * self.value.step) ** 2
        most = float(self.value.high - self.value.low) ** 2 / 4 * (1 + _OUTWARD)
        found = [np.clip(share, low, high), low, high]
        numbers = [np.clip(x * scale, 0.0, most).tolist() for x in found]
        return list(zip(*numbers, strict=True))

    def half_width(self, noise: IntegerNoise, beta: float) -> tuple[float, str]:
        """Return the half-width in a cell of one row, to first order."""
        width = 2 * noise.radius(beta / 3) * self.value.step**2
        unit = f"of the square of {self.value.column}, divided by the rows of the cell"
        return float(width), unit


# Histograms and quantiles from noisy counts of public bins.
#
# Quantiles are read off the noisy cumulative counts of a histogram of public
# candidates: one release answers all of them, every currency has it, and the answer
# comes with an interval of values. The exponential mechanism would choose a single
# quantile with a smaller error in rank, but gives no interval, pays for every further
# quantile, and takes a time that depends on private scores.


@dataclass(frozen=True, slots=True)
class Histogram(Encoding):
    """Count rows in public bins.

    Parameters
    ----------
    cuts : tuple of Fraction
        The ends of the bins, increasing.
    """

    cuts: tuple[Fraction, ...]
    measures = ("rows",)

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.cuts) - 1

    @property
    def labels(self) -> tuple[tuple[Any, ...], ...]:
        """The ends of each bin."""
        ends = [_plain_cut(cut) for cut in self.cuts]
        return tuple(pairwise(ends))

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The names of the two ends."""
        return ("from", "to")

    @property
    def note(self) -> str:
        """Where numbers outside go."""
        return "numbers outside the bins are counted in the first or the last one"

    def reach(self, contribution: Contribution) -> Reach:
        """Return how far one unit moves the counts of all bins."""
        return contribution.row_reach()

    def vector(self, aggregates: Aggregates) -> Integers:
        """Return the counts, one row per cell and one column per bin."""
        counts = [int(k) for k in aggregates.measures["rows"]]
        return np.array(counts, dtype=np.object_).reshape(-1, self.bins)

    def read(
        self, noisy: Integers, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return the noisy counts bin by bin, with the quantile of the noise."""
        t = noise.radius(beta)
        return [(int(k), int(k) - t, int(k) + t) for k in noisy.ravel().tolist()]

    def half_width(self, noise: IntegerNoise, beta: float) -> tuple[float, str]:
        """Return the radius of the interval of one count."""
        return float(noise.radius(beta)), "rows"


@dataclass(frozen=True, slots=True)
class Quantiles(Histogram):
    r"""Quantiles of a number, to the resolution of public candidates.

    Parameters
    ----------
    cuts : tuple of Fraction
        The candidates, increasing.
    quantiles : tuple of Fraction
        Which quantiles, each in (0, 1).

    Notes
    -----
    With the counts :math:`h_k` of the bins, the q-quantile lies in the first bin i with
    :math:`D_i = (1-q)\sum_{k\le i} h_k - q\sum_{k>i} h_k \ge 0`. The hypothesis that it
    lies in bin i is refused if the noisy :math:`D_i` is below :math:`-t_i` or the noisy
    :math:`D_{i-1}` above :math:`t_{i-1}`, where the noise in :math:`D_i` passes
    :math:`t_i` with probability at most beta / 2. The bin of the quantile is refused
    with probability at most beta, so the hull of the bins that are not refused is an
    interval. No union over bins is needed. See the page *Release quantiles*.
    """

    quantiles: tuple[Fraction, ...] = (Fraction(1, 2),)

    @property
    def whole(self) -> bool:
        """Whether estimates are whole numbers; they lie between candidates."""
        return False

    @property
    def non_negative(self) -> bool:
        """Whether the truth cannot be negative."""
        return self.cuts[0] >= 0

    @property
    def labels(self) -> tuple[tuple[Any, ...], ...]:
        """The quantiles."""
        return tuple((float(q),) for q in self.quantiles)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The name of the column that says which quantile."""
        return ("quantile",)

    @property
    def note(self) -> str:
        """To what the answers refer."""
        return (
            "quantiles are found to the bin between two candidates; numbers outside "
            "count in the first or the last bin"
        )

    def read(
        self, noisy: Integers, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return each quantile of each cell with an interval of values."""
        counts = noisy.astype(np.float64)
        columns = [
            self._quantile(counts, q, noise=noise, beta=beta) for q in self.quantiles
        ]
        return [found for cell in zip(*columns, strict=True) for found in cell]

    def half_width(self, noise: IntegerNoise, beta: float) -> tuple[float, str]:
        """Return the largest error in rank."""
        widest = max(
            max(self._radii(q, noise=noise, beta=beta)) for q in self.quantiles
        )
        return widest, "rows of rank"

    def _radii(self, q: Fraction, *, noise: IntegerNoise, beta: float) -> list[float]:
        """Return the t of each bin; its noise has two weights only."""
        up, down, bins = float(1 - q), float(q), self.bins
        return [
            noise.sum_radius([up, down], beta / 2, counts=[at + 1, bins - at - 1])
            for at in range(bins)
        ]

    def _quantile(
        self, counts: Array, q: Fraction, *, noise: IntegerNoise, beta: float
    ) -> list[Estimate]:
        """Return one quantile of every cell."""
        radii = np.array(self._radii(q, noise=noise, beta=beta))
        gaps = np.cumsum(counts, axis=1) - float(q) * counts.sum(axis=1, keepdims=True)
        # The second term covers the rounding of the sums.
        reach = radii + 1e-12 * np.abs(counts).sum(axis=1, keepdims=True)
        kept = gaps >= -reach
        kept[:, 1:] &= gaps[:, :-1] <= reach[:, :-1]
        kept[~kept.any(axis=1)] = True
        first = np.argmax(kept, axis=1)
        last = self.bins - np.argmax(kept[:, ::-1], axis=1)
        cuts = np.array([float(cut) for cut in self.cuts])
        low, high = cuts[first], cuts[last]
        best = np.clip(self._interpolated(counts, gaps), low, high)
        found = (best.tolist(), low.tolist(), high.tolist())
        return list(zip(*found, strict=True))

    def _interpolated(self, counts: Array, gaps: Array) -> Array:
        """Return where the noisy distance in rank first passes zero."""
        cuts, cells = np.array([float(cut) for cut in self.cuts]), np.arange(len(gaps))
        reached = gaps >= 0
        at = np.where(reached.any(axis=1), np.argmax(reached, axis=1), self.bins - 1)
        inside = counts[cells, at]
        before = gaps[cells, at] - inside
        part = np.where(inside > 0, -before / np.where(inside > 0, inside, 1.0), 0.5)
        return np.asarray(
            cuts[at] + (cuts[at + 1] - cuts[at]) * np.clip(part, 0.0, 1.0)
        )


def _plain_cut(cut: Fraction) -> int | float:
    return int(cut) if cut.denominator == 1 else float(cut)

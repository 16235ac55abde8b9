"""Means and variances of numbers between public bounds, from sums of one noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.release.intervals import IntegerNoise, variance_interval
from undertow.release.job import Aggregates, Value
from undertow.release.measure import (
    Encoding,
    Estimate,
    Integers,
    short_number,
    whole_numbers,
)
from undertow.release.sensitivity import Contribution, Reach
from undertow.release.shares import share_interval, share_radius

__all__ = ["Mean", "Variance"]

Array = NDArray[np.float64]
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
    :func:`~undertow.release.shares.share_interval`.
    """

    value: Value
    measures = ("sum", "rows")

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

r"""Many independent bits of one rate: eight at a time, or from one to the next.

A byte of eight bits is one outcome of their joint law. Where ones are rare, the gap to
the next one is an outcome, and the cells in between cost nothing. Both laws are
rational and are inverted exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.noise.bits import BitSource
from undertow.mechanisms.noise.inversion import compile_table, sample_outcomes
from undertow.mechanisms.noise.law import Boundaries

__all__ = ["Gap", "Lanes", "sample_lanes", "sample_ones"]

# Bits of working precision beyond the one asked for: covers 2^15 roundings.
_GUARD = 32
# Cells looked over at a time: enough to find a one nearly always, but not too many
# outcomes for the table.
_REACH, _MEANS = 1 << 12, 14


@dataclass(frozen=True, slots=True)
class Lanes:
    r"""The joint law of `lanes` independent bits, read as a binary number.

    .. math:: \Pr[i] = r^{|i|} (1-r)^{n-|i|}

    where n is the number of lanes and :math:`|i|` counts the ones of i.
    """

    rate: Fraction
    lanes: int = 8

    def boundaries(self, precision: int) -> Boundaries:
        """Enclose the rational boundaries, rounded down and up."""
        one, unit, n = self.rate.numerator, self.rate.denominator, self.lanes
        weight = [one**k * (unit - one) ** (n - k) for k in range(n + 1)]
        masses = (weight[i.bit_count()] for i in range(1 << n))
        sums = [total << precision for total in accumulate(masses, initial=0)]
        whole = unit**n
        return [s // whole for s in sums], [-(-s // whole) for s in sums]


@dataclass(frozen=True, slots=True)
class Gap:
    r"""How many cells to the next one, itself included; 0 if it is beyond `reach`.

    .. math:: \Pr[i] = r (1-r)^{i-1}, \quad \Pr[0] = (1-r)^{\text{reach}}
    """

    rate: Fraction
    reach: int

    def boundaries(self, precision: int) -> Boundaries:
        r"""Enclose the boundaries :math:`(1-r)^{\text{reach}} + 1 - (1-r)^i`."""
        working = precision + _GUARD
        whole, rest = 1 << working, (1 - self.rate) * (1 << working)
        down, up = math.floor(rest), math.ceil(rest)
        low, high = [whole], [whole]
        for _ in range(self.reach):
            low.append(low[-1] * down >> working)
            high.append(-(-high[-1] * up >> working))
        lower = [(low[-1] + whole - value) >> _GUARD for value in high[:-1]]
        upper = [-(-(high[-1] + whole - value) >> _GUARD) for value in low[:-1]]
        one = 1 << precision
        return [0, *lower, one], [0, *(min(value, one) for value in upper), one]


def sample_lanes(
    rate: Fraction, count: int, *, bits: BitSource, lanes: int = 8
) -> NDArray[np.uint8]:
    """Draw `count` numbers of `lanes` independent bits that are 1 with the rate."""
    table = compile_table(Lanes(rate, lanes), bits.width)
    return sample_outcomes(table, count, bits=bits)[0].astype(np.uint8)


def sample_ones(rate: Fraction, cells: int, *, bits: BitSource) -> NDArray[np.int64]:
    """Draw where the ones are among `cells` independent bits, in order.

    Parameters
    ----------
    rate : Fraction
        Probability of a one; positive, below 1.
    cells : int
        Number of bits.
    bits : BitSource
        Where the words come from.

    Notes
    -----
    After a one, and after cells without one, what follows is as at the start; so is
    what lies beyond the last cell, which is therefore thrown away.
    """
    reach = min(_REACH, math.ceil(_MEANS / rate))
    table = compile_table(Gap(rate, reach), bits.width)
    stride = _stride(float(rate), reach)
    found, start = [np.zeros(0, dtype=np.int64)], 0
    while start < cells:
        mean = (cells - start) / stride
        steps, _ = sample_outcomes(table, _enough(mean), bits=bits)
        hops = steps.astype(np.int64)
        beyond = (steps == 0).nonzero()[0]
        hops[beyond] = reach
        ends = np.cumsum(hops, out=hops)
        ends += start
        start = int(ends[-1])
        ends -= 1
        ones = np.delete(ends, beyond) if beyond.size else ends
        found.append(ones[: np.searchsorted(ones, cells)])
    return np.concatenate(found) if len(found) > 2 else found[-1]


def _stride(rate: float, reach: int) -> float:
    """Return the mean number of cells passed at a time."""
    if rate * reach < 1e-6:
        return float(reach)
    return -math.expm1(reach * math.log1p(-rate)) / rate


def _enough(mean: float) -> int:
    """Return a number of steps that nearly always passes so many on average."""
    return math.ceil(mean + 3 * math.sqrt(mean)) + 1

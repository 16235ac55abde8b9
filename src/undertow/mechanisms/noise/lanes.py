r"""Where the ones are among many independent bits of one rate, if they are rare.

The gap to the next one is an outcome, and the cells in between cost nothing. Its law is
rational and is inverted exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.noise.bits import BitSource
from undertow.mechanisms.noise.inversion import compile_table, sample_outcomes
from undertow.mechanisms.noise.law import Boundaries

__all__ = ["Gap", "sample_ones"]

# Bits of working precision beyond the one asked for: covers 2^15 roundings.
_GUARD = 32
# Cells looked over at a time: enough to find a one nearly always, but not too many
# outcomes for the table.
_REACH, _MEANS = 1 << 12, 14


@dataclass(frozen=True, slots=True)
class Gap:
    r"""How many cells to the next one, itself included; 0 if it is beyond `reach`.

    .. math:: \Pr[i] = r (1-r)^{i-1}, \quad \Pr[0] = (1-r)^{\text{reach}}
    """

    rate: Fraction
    reach: int

    def boundaries(self, precision: int) -> Boundaries:
        r"""Enclose the boundaries :math:`(1-r)^{\text{reach}} + 1 - (1-r)^i`."""
        return _enclose_gaps(self.rate, self.reach, precision)


@lru_cache(maxsize=8)
def _enclose_gaps(rate: Fraction, reach: int, precision: int) -> Boundaries:
    working = precision + _GUARD
    whole, rest = 1 << working, (1 - rate) * (1 << working)
    down, up = math.floor(rest), math.ceil(rest)
    low, high = [whole], [whole]
    for _ in range(reach):
        low.append(low[-1] * down >> working)
        high.append(-(-high[-1] * up >> working))
    lower = [(low[-1] + whole - value) >> _GUARD for value in high[:-1]]
    upper = [-(-(high[-1] + whole - value) >> _GUARD) for value in low[:-1]]
    one = 1 << precision
    return [0, *lower, one], [0, *(min(value, one) for value in upper), one]


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
        hit = steps != 0
        steps[~hit] = reach
        ends = np.cumsum(steps, dtype=np.int64)
        ends += start
        start = int(ends[-1])
        ones = ends[hit]
        found.append(ones[: np.searchsorted(ones, cells, side="right")] - 1)
    return np.concatenate(found) if len(found) > 2 else found[-1]


def _stride(rate: float, reach: int) -> float:
    """Return the mean number of cells passed at a time."""
    if rate * reach < 1e-6:
        return float(reach)
    return -math.expm1(reach * math.log1p(-rate)) / rate


def _enough(mean: float) -> int:
    """Return a number of steps that nearly always passes so many on average."""
    return math.ceil(mean + 3 * math.sqrt(mean)) + 1

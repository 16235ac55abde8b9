r"""Multinomial probabilities to the last digit, whatever the number of trials.

Through logarithms an entry :math:`\frac{T!}{\prod n_k!} \prod_k p_k^{n_k}` is off by a
relative error that grows with T, and a risk computed from it may be too low. Here
factorials and powers are tables of a leading double, a correction and an exponent of 2:
about 100 bits, so that only the last rounding counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["multinomial_rows"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Splits a double into two halves whose products are exact.
_SPLIT = 2.0**27 + 1.0
# Entries of the table of powers held at a time.
_ENTRIES = 1 << 20
# Bits kept of the factorials.
_BITS = 160


def multinomial_rows(laws: Floats, counts: Integers) -> Floats:
    r"""Return the probability of each vector of counts under each law.

    Parameters
    ----------
    laws : ndarray of shape (m, K)
        One law on K outputs in each row.
    counts : ndarray of int, of shape (kinds, K)
        Non-negative, each row with the same sum T.

    Returns
    -------
    ndarray of shape (m, kinds)
        Each within 1.01 units of :math:`2^{-53}` of the exact number; below the
        smallest normal float it may be 0.

    Notes
    -----
    A product of pairs has a relative error below :math:`2^{-99}`, and there are at most
    T + 2K of them. O(m K T) for the tables and O(m K) for each vector of counts.

    Examples
    --------
    >>> multinomial_rows(np.array([[0.25, 0.75]]), np.array([[0, 2], [1, 1], [2, 0]]))
    array([[0.5625, 0.375 , 0.0625]])
    """
    times = int(counts[0].sum())
    factorials, inverses = _factorials(times)
    ways = factorials.take(np.full(len(counts), times))
    for column in counts.T:
        ways = ways * inverses.take(column)
    rows = np.empty((len(laws), len(counts)))
    step = max(1, _ENTRIES // ((times + 1) * laws.shape[1]))
    for start in range(0, len(laws), step):
        powers = _powers(laws[start : start + step], times)
        for record in range(start, min(start + step, len(laws))):
            product = ways
            for k, column in enumerate(counts.T):
                product = product * powers.take((column, record - start, k))
            rows[record] = np.ldexp(product.high + product.low, product.exponent)
    return rows


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Numbers (high + low) 2^exponent, with high in [1/2, 1) or 0."""

    high: Floats
    low: Floats
    exponent: NDArray[np.int32]

    def take(self, place: Any) -> _Pairs:
        return _Pairs(self.high[place], self.low[place], self.exponent[place])

    def __mul__(self, other: _Pairs) -> _Pairs:
        product = self.high * other.high
        a, b = _halves(self.high)
        c, d = _halves(other.high)
        low = ((a * c - product) + a * d + b * c) + b * d
        low += self.high * other.low + self.low * other.high
        total = product + low
        low -= total - product
        high, shift = np.frexp(total)
        exponent = self.exponent + other.exponent + shift
        return _Pairs(high, np.ldexp(low, -shift), exponent)


def _halves(numbers: Floats) -> tuple[Floats, Floats]:
    """Split numbers into two parts of 26 bits each."""
    scaled = _SPLIT * numbers
    first = scaled - (scaled - numbers)
    return first, numbers - first


def _powers(laws: Floats, times: int) -> _Pairs:
    """Return the powers 0 to `times` of all probabilities, along the first axis."""
    shape = (times + 1, *laws.shape)
    table = _Pairs(np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.int32))
    high, exponent = np.frexp(laws)
    base = _Pairs(high, np.zeros_like(high), exponent)
    ones = np.ones(laws.shape)
    power = _Pairs(ones / 2, 0 * ones, np.ones(laws.shape, dtype=np.int32))
    for n in range(times + 1):
        table.high[n], table.low[n] = power.high, power.low
        table.exponent[n] = power.exponent
        power = power * base
    return table


def _factorials(times: int) -> tuple[_Pairs, _Pairs]:
    """Return 0!, ..., `times`! and their inverses, from whole numbers."""
    rows, others = [], []
    value, shift = 1, 0
    for n in range(times + 1):
        value *= max(n, 1)
        extra = max(0, value.bit_length() - _BITS)
        value, shift = value >> extra, shift + extra
        rows.append(_pair(value, shift))
        size = value.bit_length() + _BITS
        others.append(_pair((1 << size) // value, -size - shift))
    return _join(rows), _join(others)


def _pair(value: int, shift: int) -> tuple[float, float, int]:
    """Read value 2^shift, the value positive."""
    size = value.bit_length()
    high = float(value >> (size - 53) if size > 53 else value)
    rest = value - (int(high) << (size - 53) if size > 53 else int(high))
    scale = min(size, 53)
    return high / 2.0**scale, rest / (1 << size), size + shift


def _join(rows: list[tuple[float, float, int]]) -> _Pairs:
    high, low, exponent = zip(*rows, strict=True)
    return _Pairs(np.array(high), np.array(low), np.array(exponent, dtype=np.int32))

r"""Bit vectors, 32 to a word, and exact coins drawn a word at a time.

Bit j of a report lies in word ``j // 32`` at place ``j % 32``. A million reports of
3052 bits take 384 MB.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import MismatchError
from undertow.mechanisms.local.base import UniformSource

__all__ = [
    "Words",
    "bernoulli",
    "bernoulli_words",
    "bits_at",
    "clear_bits",
    "column_counts",
    "count_bits",
    "read_words",
    "sample_rows",
    "set_bits",
    "unpack",
    "width",
]

Words = NDArray[np.uint32]
"""Packed bits: one row of little-endian 32-bit words per report."""

_WORD = 32
_ALL = np.uint32(0xFFFFFFFF)
# Words looked at, and words drawn at a time, to stay in the cache.
_BLOCK, _DRAWN = 1 << 20, 1 << 16
# Up to this probability most words are empty, and the others have few ones; from this
# many words on it pays to work out the law of their number.
_RARE, _MANY = Fraction(1, 32), 1 << 10
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(
    axis=1, dtype=np.uint8
)


def width(length: int) -> int:
    """Return how many words hold `length` bits."""
    return -(-length // _WORD)


def bernoulli_words(
    probability: Fraction, count: int, *, source: UniformSource
) -> Words:
    r"""Draw words whose 32 bits are independent and 1 with the exact probability.

    Notes
    -----
    Bit for bit, a uniform number U is compared with the binary digits of the
    probability; a lane is decided at the first digit that differs, so that it is 1
    exactly if U is below. A word needs about seven draws whatever the probability. For
    many words and up to 1/32 the number of ones of a word is drawn first, in the same
    way, from the binomial law, and then their places: little more than one draw.
    """
    if probability == 1:
        return np.full(count, _ALL, dtype="<u4")
    result = np.zeros(count, dtype="<u4")
    rare = probability <= _RARE and count >= _MANY
    draw = _scatter if rare else _compare
    for start in range(0, count, _DRAWN):
        draw(probability, result[start : start + _DRAWN], source)
    return result


def _scatter(probability: Fraction, result: Words, source: UniformSource) -> None:
    """Draw into zeros how many ones each word has, then where, no place twice."""
    cuts = np.array(_cuts(probability, _WORD), dtype=np.int64)
    u = source.uniform(1 << _WORD, result.size).values
    words = np.flatnonzero(u >= cuts[0])
    u = u[words]
    missing = np.searchsorted(cuts, u)
    # Past the last cut there is none to be equal to.
    ties = cuts[np.minimum(missing, _WORD - 1)] == u
    for at in np.flatnonzero(ties).tolist():
        missing[at] = _refine(probability, int(u[at]), source)
    lanes = np.zeros(words.size, dtype=np.uint32)
    pending = np.flatnonzero(missing)
    while pending.size:
        place = source.uniform(_WORD, pending.size).values
        mask = np.uint32(1) << place.astype(np.uint32)
        missing[pending] -= (lanes[pending] & mask) == 0
        lanes[pending] |= mask
        pending = pending[missing[pending] > 0]
    result[words] = lanes


@lru_cache(maxsize=64)
def _cuts(probability: Fraction, digits: int) -> tuple[int, ...]:
    """Return P(K <= k) for k = 0, ..., 31 in units of 2^-digits, rounded down."""
    one, unit = probability.numerator, probability.denominator
    law = [
        math.comb(_WORD, k) * one**k * (unit - one) ** (_WORD - k) for k in range(_WORD)
    ]
    return tuple((total << digits) // unit**_WORD for total in accumulate(law))


def _refine(probability: Fraction, u: int, source: UniformSource) -> int:
    """Draw further digits of a number that begins like one of the cuts."""
    digits = _WORD
    while u in (cuts := _cuts(probability, digits)):
        u = (u << _WORD) + int(source.uniform(1 << _WORD, 1).values[0])
        digits += _WORD
    return bisect_left(cuts, u)


def _compare(probability: Fraction, result: Words, source: UniformSource) -> None:
    """Draw into zeros by comparing digits, all lanes of a word at once."""
    rest, unit = probability.numerator, probability.denominator
    count = result.size
    pending, open_lanes = np.arange(count), np.full(count, _ALL)
    while pending.size and rest:
        rest *= 2
        digit = rest >= unit
        rest -= unit if digit else 0
        u = source.uniform(1 << _WORD, pending.size).values.astype(np.uint32)
        if digit and pending.size == count:
            result |= open_lanes & ~u
        elif digit:
            result[pending] |= open_lanes & ~u
        open_lanes &= u if digit else ~u
        left = np.flatnonzero(open_lanes)
        if 2 * left.size < pending.size:
            pending, open_lanes = pending[left], open_lanes[left]


def bernoulli(
    probability: Fraction, count: int, *, source: UniformSource
) -> NDArray[np.bool_]:
    """Draw exact coins, one per place."""
    row = bernoulli_words(probability, width(count), source=source)
    return np.asarray(unpack(row[None, :], count)[0])


def sample_rows(
    probability: Fraction, rows: int, *, length: int, source: UniformSource
) -> Words:
    """Draw `rows` vectors of `length` independent exact bits."""
    words = bernoulli_words(probability, rows * width(length), source=source)
    table = words.reshape(rows, width(length))
    if length % _WORD:
        table[:, -1] &= np.uint32((1 << length % _WORD) - 1)
    return table


def read_words(reports: Any, length: int) -> Words:
    """Read packed reports of `length` bits, with no bit beyond."""
    table = np.asarray(reports)
    if table.ndim != 2 or table.shape[1] != width(length) or table.dtype != np.uint32:
        raise MismatchError(
            f"reports must be packed in rows of {width(length)} 32-bit words, got "
            f"shape {table.shape} of {table.dtype}."
        )
    if length % _WORD and np.any(table[:, -1] >> np.uint32(length % _WORD)):
        raise MismatchError(f"reports must have no bit beyond the first {length}.")
    return table


def _place(table: Words, places: NDArray[np.int64]) -> tuple[Any, Words]:
    index = (np.arange(len(table)), places // _WORD)
    return index, np.uint32(1) << (places % _WORD).astype(np.uint32)


def bits_at(table: Words, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the bit at one place of each row."""
    index, mask = _place(table, places)
    return np.asarray(table[index] & mask, dtype=bool)


def clear_bits(table: Words, places: NDArray[np.int64]) -> None:
    """Set the bit at one place of each row to 0."""
    index, mask = _place(table, places)
    table[index] &= ~mask


def set_bits(table: Words, places: NDArray[np.int64], bits: NDArray[np.bool_]) -> None:
    """Overwrite the bit at one place of each row."""
    index, mask = _place(table, places)
    table[index] = (table[index] & ~mask) | np.where(bits, mask, np.uint32(0))


def count_bits(table: Words) -> NDArray[np.int64]:
    """Return the number of ones of each row."""
    counts = [
        _ONES[np.ascontiguousarray(part, dtype="<u4").view(np.uint8)].sum(
            axis=1, dtype=np.int64
        )
        for part in _blocks(table)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *counts])


def _blocks(table: Words, step: int | None = None) -> list[Words]:
    rows = step or max(1, _BLOCK // table.shape[1])
    return [table[start : start + rows] for start in range(0, len(table), rows)]


def unpack(table: Words, length: int) -> NDArray[np.bool_]:
    """Return the bits as a table of truth values; eight times the memory."""
    octets = np.ascontiguousarray(table, dtype="<u4").view(np.uint8)
    bits = np.unpackbits(octets, axis=1, count=length, bitorder="little")
    return bits.view(np.bool_)


def column_counts(table: Words, length: int) -> NDArray[np.int64]:
    """Return the number of ones at each place."""
    counts = np.zeros(length, dtype=np.int64)
    for part in _blocks(table, 255):  # as many as one octet can count
        octets = np.ascontiguousarray(part, dtype="<u4").view(np.uint8)
        bits = np.unpackbits(octets, axis=1, count=length, bitorder="little")
        counts += bits.sum(axis=0, dtype=np.uint8)
    return counts

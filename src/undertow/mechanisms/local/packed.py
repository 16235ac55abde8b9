r"""Bit vectors, 32 to a word.

Bit j of a report lies in word ``j // 32`` at place ``j % 32``. A million reports of
3052 bits take 384 MB.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import MismatchError

__all__ = [
    "Words",
    "bits_at",
    "clear_bits",
    "column_counts",
    "count_bits",
    "read_words",
    "set_bits",
    "unpack",
    "width",
]

Words = NDArray[np.uint32]
"""Packed bits: one row of little-endian 32-bit words per report."""

_WORD = 32
# Words looked at at a time, to stay in the cache.
_BLOCK = 1 << 17
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(
    axis=1, dtype=np.uint8
)


def width(length: int) -> int:
    """Return how many words hold `length` bits."""
    return -(-length // _WORD)


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
    """Return where the word of one place of each row lies in the table laid flat."""
    index = np.arange(len(table), dtype=np.int64) * table.shape[1]
    index += places >> 5
    return index, np.uint32(1) << (places & (_WORD - 1)).astype(np.uint32)


def bits_at(table: Words, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the bit at one place of each row."""
    index, mask = _place(table, places)
    return np.asarray(table.reshape(-1).take(index) & mask, dtype=bool)


def clear_bits(table: Words, places: NDArray[np.int64]) -> None:
    """Set the bit at one place of each row of a contiguous table to 0."""
    index, mask = _place(table, places)
    flat = table.reshape(-1)
    flat[index] = flat.take(index) & ~mask


def set_bits(table: Words, places: NDArray[np.int64], bits: NDArray[np.bool_]) -> None:
    """Overwrite the bit at one place of each row of a contiguous table."""
    index, mask = _place(table, places)
    flat = table.reshape(-1)
    flat[index] = (flat.take(index) & ~mask) | (mask * bits)


def count_bits(table: Words) -> NDArray[np.int64]:
    """Return the number of ones of each row."""
    counts = [_row_sums(_popcount(part)) for part in _blocks(table)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *counts])


def _popcount(table: Words) -> NDArray[np.uint8]:
    if hasattr(np, "bitwise_count"):  # numpy 2
        pairs = table.shape[1] % 2 == 0 and table.flags.c_contiguous
        return np.asarray(np.bitwise_count(table.view(np.uint64) if pairs else table))
    octets = np.ascontiguousarray(table, dtype="<u4").view(np.uint8)
    return np.asarray(_ONES.take(octets), dtype=np.uint8)


def _row_sums(octets: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Add up rows of small numbers; as a product where floats hold every sum."""
    if octets.shape[1] >= 1 << 18:  # each is at most 64, and 2^24 the limit
        return np.asarray(octets.sum(axis=1, dtype=np.int64))
    ones = np.ones(octets.shape[1], dtype=np.float32)
    return np.asarray((octets.astype(np.float32) @ ones).astype(np.int64))


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

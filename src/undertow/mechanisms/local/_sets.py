r"""Uniform sets of exact sizes, as packed bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.local._coins import fill_rows, sample_rows
from undertow.mechanisms.local.packed import (
    Words,
    clear_bits,
    count_bits,
    set_bits,
    width,
)
from undertow.mechanisms.noise.bits import BitSource, uniform_below

__all__ = ["sample_sets"]

# Sets up to this size are filled from nothing, larger ones from random bits.
_FEW = 96
# Those bits are so many deviations short of the size.
_SHORT = 1.3
# Bits of this rate are drawn quickly, and taken for rates up to so much more.
_QUICK, _NEAR = Fraction(1, 4), Fraction(1, 60)
# Words filled at a time, so that they stay in the cache.
_WORDS = 1 << 19
# Most places drawn at a time, for each set and in all.
_ROUNDS, _PLACES = 32, 1 << 16


def sample_sets(
    avoided: NDArray[np.int64],
    sizes: NDArray[np.int64],
    *,
    categories: int,
    bits: BitSource,
) -> Words:
    """Draw uniform sets of the given sizes, each without one category.

    Notes
    -----
    Independent bits, given their number and that it is not too large, are a uniform set
    of that number; a uniform outsider more keeps that.
    """
    table = np.zeros((len(sizes), width(categories)), dtype="<u4")
    step = max(1, _WORDS // table.shape[1])
    for start in range(0, len(sizes), step):
        part = slice(start, start + step)
        _fill(table[part], avoided[part], sizes[part], categories, bits)
    return table


def _fill(
    table: Words,
    avoided: NDArray[np.int64],
    sizes: NDArray[np.int64],
    categories: int,
    bits: BitSource,
) -> None:
    """Draw sets into rows of zeros."""
    missing = sizes.astype(np.int32)
    most = int(sizes.max())
    if most > _FEW:
        rate = _rate(most, categories)
        missing -= _start(table, avoided, sizes, rate, categories, bits)
    # As a member for the time being the avoided category is not added.
    set_bits(table, avoided, np.ones(len(table), dtype=bool))
    _complete(table, missing, categories=categories, bits=bits)
    clear_bits(table, avoided)


def _rate(size: int, categories: int) -> Fraction:
    """Return the rate of the bits that sets of a size begin with."""
    mean = size - _SHORT * math.sqrt(size * (1 - size / categories))
    if _QUICK * categories <= mean <= (_QUICK + _NEAR) * categories:
        return _QUICK
    return Fraction(math.floor(mean / categories * 4096), 4096)


def _start(
    table: Words,
    avoided: NDArray[np.int64],
    sizes: NDArray[np.int64],
    rate: Fraction,
    categories: int,
    bits: BitSource,
) -> NDArray[np.int32]:
    """Draw sets that are not too large; return their sizes."""
    fill_rows(table, rate, length=categories, bits=bits)
    clear_bits(table, avoided)
    found = count_bits(table).astype(np.int32)
    pending = np.flatnonzero(found > sizes)
    while pending.size:
        rows = sample_rows(rate, pending.size, length=categories, bits=bits)
        clear_bits(rows, avoided[pending])
        table[pending] = rows
        found[pending] = count_bits(rows)
        pending = pending[found[pending] > sizes[pending]]
    return found


def _complete(
    table: Words, missing: NDArray[np.int32], *, categories: int, bits: BitSource
) -> None:
    """Add uniform outsiders until no row misses any."""
    octets = table.view(np.uint8).reshape(-1)
    pending = np.flatnonzero(missing)
    left, base = missing[pending], pending * (4 * table.shape[1])
    while left.size:
        most = min(_ROUNDS, _PLACES // left.size, int(left.mean()))
        rounds = max(1, most)
        where, masks = _draw_places(rounds, left.size, categories, bits)
        where += base
        ends = rounds > int(left.min())  # before the last of these rounds, maybe
        for at, mask in zip(where, masks, strict=True):
            old = octets.take(at)
            mask &= ~old
            if ends:
                mask *= left > 0
            old |= mask
            octets[at] = old
            left -= mask > 0
        unsettled = (left > 0).nonzero()[0]
        if unsettled.size < left.size:
            left, base = left[unsettled], base[unsettled]


def _draw_places(
    rounds: int, rows: int, categories: int, bits: BitSource
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    r"""Draw uniform categories: the octet of each and its bit, or no bit if refused.

    Notes
    -----
    One word x scaled down is :math:`\lfloor xm/2^b \rfloor`; the surplus is refused as
    in :func:`~undertow.mechanisms.noise.bits.uniform_below`, but not drawn again.
    """
    count, shape = rounds * rows, (rounds, rows)
    if categories > 1 << bits.width:
        places = uniform_below(bits, count, bound=categories)
        masks = np.uint8(1) << (places & 7).astype(np.uint8)
        return (places >> 3).reshape(shape), masks.reshape(shape)
    whole, low = 1 << bits.width, np.uint32(7)
    scaled = np.multiply(bits.words(count), np.uint32(categories), dtype=np.uint32)
    kept = (scaled & np.uint32(whole - 1)) >= whole % categories
    scaled >>= np.uint32(bits.width)
    masks = kept.view(np.uint8) << (scaled & low).astype(np.uint8)
    scaled >>= np.uint32(3)
    return scaled.astype(np.int64).reshape(shape), masks.reshape(shape)

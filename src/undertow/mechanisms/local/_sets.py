r"""Uniform sets of exact sizes, as packed bits."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.local._coins import draw_cost, sample_rows
from undertow.mechanisms.local.packed import (
    Words,
    clear_bits,
    count_bits,
    set_bits,
    width,
)
from undertow.mechanisms.noise.bits import BitSource, uniform_below

__all__ = ["sample_sets"]

# Words completed at a time, so that they stay in the cache.
_WORDS = 1 << 19
# Most places drawn at a time, for each set and in all.
_ROUNDS, _PLACES = 255, 1 << 17
# In each part so many of the sets are left, to be completed together.
_LEAVE = 10
# Nanoseconds of a place tried and of 64 bits counted: they choose the bits that sets
# begin with, not the law.
_TRY, _COUNT = 8.0, 3.0
# Bits to begin with are so many quarters of a deviation short of the size on average,
# or have a rate at which they are drawn quickly.
_SHORT, _QUICK = range(4, 16), [Fraction(eighths, 8) for eighths in range(8)]


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
    Independent bits of whatever rate, given their number and that it is not too large,
    are a uniform set of that number; a uniform outsider more keeps that.
    """
    if not len(sizes):
        return np.zeros((0, width(categories)), dtype="<u4")
    missing = sizes.copy()
    rate = _rate(int(sizes.max()), categories, bits.width)
    table = sample_rows(rate, len(sizes), length=categories, bits=bits)
    if rate:
        missing -= _settle(table, avoided, sizes, rate, categories, bits)
    # As a member for the time being the avoided category is not added.
    set_bits(table, avoided, np.ones(len(table), dtype=bool))
    step = max(1, _WORDS // table.shape[1])
    for start in range(0, len(table), step):
        part = slice(start, start + step)
        leave = len(missing[part]) // _LEAVE
        _complete(table[part], missing[part], categories, bits, leave=leave)
    _complete(table, missing, categories, bits)
    clear_bits(table, avoided)
    return table


def _settle(
    table: Words,
    avoided: NDArray[np.int64],
    sizes: NDArray[np.int64],
    rate: Fraction,
    categories: int,
    bits: BitSource,
) -> NDArray[np.int64]:
    """Draw again the rows that are too large; return the sizes they have then."""
    clear_bits(table, avoided)
    found = count_bits(table)
    pending = np.flatnonzero(found > sizes)
    while pending.size:
        rows = sample_rows(rate, pending.size, length=categories, bits=bits)
        clear_bits(rows, avoided[pending])
        table[pending] = rows
        found[pending] = count_bits(rows)
        pending = pending[found[pending] > sizes[pending]]
    return found


@lru_cache(maxsize=64)
def _rate(size: int, categories: int, width: int) -> Fraction:
    """Return the rate of the bits from which sets of a size cost least."""
    deviation = math.sqrt(size * (1 - size / categories))
    means = [size - short * deviation / 4 for short in _SHORT]
    rates = {Fraction(math.floor(4096 * mean / categories), 4096) for mean in means}
    choice = sorted(rate for rate in {*rates, *_QUICK} if rate >= 0)
    return min(choice, key=lambda rate: _cost(rate, size, categories, width))


def _cost(rate: Fraction, size: int, categories: int, width: int) -> float:
    """Return about how many nanoseconds a set takes that begins with bits of a rate.

    Notes
    -----
    Their number is taken for normal, k deviations below the size on average: it is not
    too large with the normal probability of k, on which the mean number of bits missing
    is that probability times k, plus the density, in deviations.
    """
    r, share = float(rate), size / categories
    if rate == 0:
        return size * _TRY
    deviation = math.sqrt(categories * r * (1 - r))
    k = (size - categories * r) / deviation
    if k <= 0:
        return math.inf
    density = math.exp(-(k**2) / 2) / math.sqrt(2 * math.pi)
    kept = (1 + math.erf(k / math.sqrt(2))) / 2
    tries = deviation * (density + k * kept) / (1 - share)
    drawn = categories / 64 * (draw_cost(rate, width) + _COUNT)
    return (tries * _TRY + drawn) / kept


def _complete(
    table: Words,
    missing: NDArray[np.int64],
    categories: int,
    bits: BitSource,
    *,
    leave: int = 0,
) -> None:
    """Add uniform outsiders until no more than `leave` rows miss any.

    What they still miss is left in `missing`.
    """
    octets = table.view(np.uint8).reshape(-1)
    rows = missing.nonzero()[0]
    left, base = missing[rows], rows * (4 * table.shape[1])
    missing[:] = 0
    while left.size > leave:
        rounds = max(1, min(_ROUNDS, _PLACES // left.size, int(left.mean())))
        left -= _add_rounds(octets, base, left, rounds, categories, bits)
        more = left.nonzero()[0]
        if more.size < left.size:
            rows, left, base = rows[more], left[more], base[more]
    missing[rows] = left


def _add_rounds(
    octets: NDArray[np.uint8],
    base: NDArray[np.int64],
    left: NDArray[np.int64],
    rounds: int,
    categories: int,
    bits: BitSource,
) -> NDArray[np.uint8]:
    """Try so many places in each row; return how many were added, not too many."""
    places, masks = _draw_places(rounds * left.size, categories, bits)
    shape, gained = (rounds, left.size), np.zeros(left.size, dtype=np.uint8)
    most = np.minimum(left, rounds).astype(np.uint8)
    ends = rounds > int(left.min())  # before the last of these rounds, maybe
    for at, mask in zip(places.reshape(shape), masks.reshape(shape), strict=True):
        at += base
        old = octets.take(at)
        if ends:
            mask *= (gained < most).view(np.uint8)
        mask |= old
        octets[at] = mask
        gained += (mask != old).view(np.uint8)
    return gained


def _draw_places(
    count: int, categories: int, bits: BitSource
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    r"""Draw uniform categories: the octet of each and its bit, or no bit if refused.

    Notes
    -----
    One word x scaled down is :math:`\lfloor xm/2^b \rfloor`; the surplus is refused as
    in :func:`~undertow.mechanisms.noise.bits.uniform_below`, but not drawn again.
    """
    if categories > 1 << bits.width:
        places = uniform_below(bits, count, bound=categories)
        return places >> 3, np.uint8(1) << (places & 7).astype(np.uint8)
    whole, low = 1 << bits.width, np.uint32(7)
    scaled = np.multiply(bits.words(count), np.uint32(categories), dtype=np.uint32)
    kept = (scaled & np.uint32(whole - 1)) >= whole % categories
    scaled >>= np.uint32(bits.width)
    masks = kept.view(np.uint8) << (scaled & low).astype(np.uint8)
    scaled >>= np.uint32(3)
    return scaled.astype(np.int64), masks

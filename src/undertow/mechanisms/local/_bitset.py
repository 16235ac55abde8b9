"""Bit vectors, 32 to a word: exact coins, drawn many at a time.

Bit j of a report lies in word ``j // 32`` at place ``j % 32``. A million reports of
3052 bits take 384 MB.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import MismatchError
from undertow.mechanisms.noise._inversion import (
    Boundaries,
    Table,
    compile_table,
    sample_outcomes,
)
from undertow.mechanisms.noise.bits import BitSource, uniform_below, uniform_bits

Words = NDArray[np.uint32]
"""Packed bits: one row of little-endian 32-bit words per report."""

_WORD = 32
# Words looked at at a time, to stay in the cache.
_BLOCK = 1 << 17
_ONES_OF_OCTET = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(
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
    return np.asarray(_ONES_OF_OCTET.take(octets), dtype=np.uint8)


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


# Exact coins, drawn many at a time into packed bits.

_ALL = np.uint32(0xFFFFFFFF)
# Words joined and answers drawn at a time, to stay in the cache, and ones; and words
# looked up at a time, of which what is not settled is held.
_DRAWN, _ANSWERS, _ONES, _HELD = 1 << 15, 1 << 15, 1 << 14, 1 << 21
# So few words are compared digit by digit; up to so many a table of gaps is too dear.
_FEW, _SOME = 1 << 5, 1 << 10
# Up to this rate ones are drawn one by one.
_RARE = Fraction(1, 500)
_MASKS = np.uint32(1) << np.arange(_WORD, dtype=np.uint32)
# Rates of few binary digits, to which others can be added, and up to how much.
_BASES, _NEAR = tuple(Fraction(eighths, 8) for eighths in range(5)), Fraction(1, 16)
# Nanoseconds of a digit for 64 bits, of a look-up, of one that settles nothing, and of
# a one drawn by itself: they choose the way of drawing, not the law.
_DIGIT, _LOOK_UP, _OPEN, _ONE = 2.6, 2.0, 60.0, 14.0


def bernoulli_words(probability: Fraction, count: int, *, bits: BitSource) -> Words:
    r"""Draw words whose 32 bits are independent and 1 with the exact probability.

    Notes
    -----
    Few words: bit for bit, a uniform number U is compared with the binary digits of the
    probability; a lane is decided at the first digit that differs, so that it is 1
    exactly if U is below. Many words: up to 1/500 from one to the next
    (:mod:`undertow.mechanisms.local._bitset`), else many lanes at a time
    (:mod:`undertow.mechanisms.local._bitset`), perhaps added to bits whose rate q has
    no more than three binary digits and which cost few random words: if those added
    have the rate :math:`(r-q)/(1-q)`, then a bit is 0 with probability
    :math:`(1-q)(1-r)/(1-q) = 1-r`. Above one half the zeros are drawn.
    """
    rare = min(probability, 1 - probability) <= _RARE
    result = np.zeros(count, dtype="<u4") if rare else np.empty(count, dtype="<u4")
    _fill(result, probability, bits)
    return result


def _fill(result: Words, probability: Fraction, bits: BitSource) -> None:
    """Overwrite words with bits; the words must be zero if ones or zeros are rare."""
    if 2 * probability > 1:
        _fill(result, 1 - probability, bits)
        np.bitwise_not(result, out=result)
    elif probability > 0:
        draw, step = _method(probability, result.size)
        for start in range(0, result.size, step):
            draw(probability, result[start : start + step], bits)


_Method = Callable[[Fraction, Words, BitSource], None]


def _method(probability: Fraction, count: int) -> tuple[_Method, int]:
    """Return how to draw so many words, and how many at a time."""
    if count <= _FEW:
        return _compare, _FEW
    if probability > _RARE or count <= _SOME:
        return _look_up, _HELD
    return _scatter, min(count, math.ceil(_ONES / (_WORD * probability)))


def draw_cost(probability: Fraction, width: int) -> float:
    """Return about how many nanoseconds 64 bits take, if there are many."""
    rate = min(probability, 1 - probability)
    if rate <= _RARE:
        return 64 * float(rate) * _ONE
    return _plan(rate, 64, width)[0]


@lru_cache(maxsize=256)
def _plan(rate: Fraction, most: int, width: int) -> tuple[float, Fraction, int]:
    """Return the cheapest base and number of lanes of a rate, after their cost."""
    return min(
        (_base_cost(base) + _group_cost((rate - base) / (1 - base), n, width), base, n)
        for base in _BASES
        for n in (8, 16, 32, 64)
        if n <= most and (base == 0 or 0 <= rate - base < _NEAR)
    )


def _base_cost(base: Fraction) -> float:
    return _DIGIT * (base.denominator.bit_length() - 1)


def _group_cost(rate: Fraction, lanes: int, width: int) -> float:
    if rate == 0:
        return 0.0
    return 64 / lanes * (_LOOK_UP + _OPEN * open_share(rate, lanes, width))


def _look_up(probability: Fraction, result: Words, bits: BitSource) -> None:
    """Overwrite with bits of few digits, and others added to them."""
    most = _WORD if result.size % 2 else 64
    _, base, lanes = _plan(probability, most, bits.width)
    if base:
        for start in range(0, result.size, _DRAWN):
            _combine(base, result[start : start + _DRAWN], bits)
    if base < probability:
        law = group_law((probability - base) / (1 - base), lanes, bits.width)
        fill_groups(result.view(law.dtype), law, bits=bits, add=base > 0)


def _combine(rate: Fraction, result: Words, bits: BitSource) -> None:
    """Draw bits of a rate of few binary digits from as many random words.

    Notes
    -----
    From the last digit to the first: a union with random bits turns a rate q into
    (1 + q)/2, what is common with them into q/2.
    """
    digits = rate.denominator.bit_length() - 1
    words = bits.words(2 * digits * result.size).view(np.uint32).reshape(digits, -1)
    result[:] = words[0]
    for place, drawn in enumerate(words[1:], start=1):
        join = np.bitwise_or if rate.numerator >> place & 1 else np.bitwise_and
        join(result, drawn, out=result)


def _scatter(probability: Fraction, result: Words, bits: BitSource) -> None:
    """Draw into zeros from one to the next."""
    places = sample_ones(probability, _WORD * result.size, bits=bits)
    masks = _MASKS.take(places & 31)
    places >>= 5
    # No place comes twice: the sum of the masks of a word is their union.
    np.add.at(result, places, masks)


def _compare(probability: Fraction, result: Words, bits: BitSource) -> None:
    """Overwrite by comparing digits, all lanes of a word at once."""
    result.fill(0)
    rest, unit = probability.numerator, probability.denominator
    pending, open_lanes = np.arange(result.size), np.full(result.size, _ALL)
    while pending.size and rest:
        rest *= 2
        digit = rest >= unit
        rest -= unit if digit else 0
        u = bits.words(2 * pending.size).view(np.uint32)
        if digit:
            result[pending] |= open_lanes & ~u
        open_lanes &= u if digit else ~u
        left = open_lanes.nonzero()[0]
        pending, open_lanes = pending[left], open_lanes[left]


def bernoulli(
    probability: Fraction, count: int, *, bits: BitSource
) -> NDArray[np.bool_]:
    """Draw exact coins, one per place."""
    row = bernoulli_words(probability, width(count), bits=bits)
    return np.asarray(unpack(row[None, :], count)[0])


def sample_rows(
    probability: Fraction, rows: int, *, length: int, bits: BitSource
) -> Words:
    """Draw `rows` vectors of `length` independent exact bits."""
    words = bernoulli_words(probability, rows * width(length), bits=bits)
    table = words.reshape(rows, width(length))
    if length % _WORD:
        table[:, -1] &= np.uint32((1 << length % _WORD) - 1)
    return table


def respond(
    truths: NDArray[np.int64], keep: Fraction, *, among: int, bits: BitSource
) -> NDArray[np.int64]:
    """Draw each truth with probability `keep`, else a uniform other of `among`."""
    told = bernoulli(keep, len(truths), bits=bits)
    answers = np.empty(len(truths), dtype=np.int64)
    for start in range(0, len(truths), _ANSWERS):
        part = slice(start, start + _ANSWERS)
        own, lies = truths[part], answers[part]
        lies[:] = uniform_below(bits, len(own), bound=among - 1)
        # Skip the truth in the numbering of the others.
        lies += lies >= own
        np.copyto(lies, own, where=told[part])
    return answers


# Exact bits of one rate, 8 to 64 at a time.
#
# A group of n independent bits is, given the number k of its ones, a uniform set of k
# of its lanes. One random word of b bits is looked up: of the :math:`2^b` words every
# set of k lanes owns
#
# .. math:: c_k = \lfloor 2^b p_k \rfloor, \quad p_k = r^k (1-r)^{n-k}.
#
# If no set owns the word, then with c in all of them owned a set has to be drawn with
# what is left of its probability,
#
# .. math:: p'_k = \frac{2^b p_k - c_k}{2^b - c},
#
# which again depends on k alone: so another word is looked up in another table, and
# after a few of them, which is rare, the number of ones is drawn by exact inversion and
# a uniform set of so many lanes. In all a set has probability :math:`2^{-b} c_k + (1 -
# 2^{-b} c)\, p'_k = p_k`.

Groups = NDArray[Any]
"""Unsigned integers whose bits are the lanes."""

# Words looked up before the number of ones is drawn.
_TABLES = 3
# Groups looked up at a time, to stay in the cache.
_GROUPS_DRAWN = 1 << 15


@dataclass(frozen=True, slots=True)
class LaneSets:
    """A law of sets of lanes in which those of one size are equally likely.

    Parameters
    ----------
    shares : tuple of int
        Of one set of 0, 1, ... lanes, up to all of them, in units of ``1/whole``.
    whole : int
        The sum over all sets.
    """

    shares: tuple[int, ...]
    whole: int

    @classmethod
    def independent(cls, rate: Fraction, lanes: int) -> LaneSets:
        """Return the law of independent bits of one rate."""
        one, unit = rate.numerator, rate.denominator
        shares = (one**k * (unit - one) ** (lanes - k) for k in range(lanes + 1))
        return cls(tuple(shares), unit**lanes)

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return len(self.shares) - 1

    def owned(self, width: int) -> list[int]:
        """Return how many words of `width` bits a set of each size owns."""
        return [(share << width) // self.whole for share in self.shares]

    def left(self, owned: list[int], width: int) -> LaneSets:
        """Return the law of the set given that none owns the word."""
        shares = tuple(
            (share << width) - words * self.whole
            for share, words in zip(self.shares, owned, strict=True)
        )
        return LaneSets(shares, sum(by_size(shares)))

    def boundaries(self, precision: int) -> Boundaries:
        """Enclose the boundaries of the law of the size, rounded down and up."""
        masses, whole = by_size(self.shares), self.whole
        sums = [total << precision for total in accumulate(masses, initial=0)]
        return [s // whole for s in sums], [-(-s // whole) for s in sums]


def by_size(shares: Sequence[int]) -> list[int]:
    """Return the sum over all sets of each size, given the share of one of them."""
    lanes = len(shares) - 1
    return [math.comb(lanes, size) * share for size, share in enumerate(shares)]


@dataclass(frozen=True, slots=True, eq=False)
class GroupLaw:
    """Groups of one rate made ready for words of one width.

    Parameters
    ----------
    tables : tuple of pair
        The owners of words, in order, and how many of the words are owned.
    sizes : Table
        The law of the number of ones of a group that no table settles.
    lanes : int
        Bits of a group.
    """

    tables: tuple[tuple[Groups, int], ...]
    sizes: Table
    lanes: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The unsigned integers that hold the groups."""
        return self.tables[0][0].dtype


def open_share(rate: Fraction, lanes: int, width: int) -> float:
    """Return how often the first word does not settle a group."""
    owned = LaneSets.independent(rate, lanes).owned(width)
    return 1 - sum(by_size(owned)) / (1 << width)


@lru_cache(maxsize=16)
def group_law(rate: Fraction, lanes: int, width: int) -> GroupLaw:
    """Prepare groups of `lanes` bits of a rate for words of `width` bits."""
    law = LaneSets.independent(rate, lanes)
    tables: list[tuple[Groups, int]] = []
    while len(tables) < _TABLES:
        owned = law.owned(width)
        tables.append(_owners(owned, lanes, width))
        if tables[-1][1] == 1 << width:
            break  # every word is owned, and the number of ones never drawn
        law = law.left(owned, width)
    return GroupLaw(tuple(tables), compile_table(law, width), lanes)


def _owners(owned: list[int], lanes: int, width: int) -> tuple[Groups, int]:
    """List the owner of each word, the empty set where there is none."""
    sets = np.zeros(1, dtype=f"<u{max(1, lanes // 8)}")
    table, start = np.zeros(1 << width, dtype=sets.dtype), 0
    largest = max((size for size, words in enumerate(owned) if words), default=0)
    for size, words in enumerate(owned[: largest + 1]):
        if size:
            sets = _one_more(sets, size, lanes)
        end = start + words * sets.size
        table[start:end] = np.repeat(sets, words)
        start = end
    return table, start


def _one_more(sets: Groups, size: int, lanes: int) -> Groups:
    """List the sets of `size` lanes by number, given those of one lane less."""
    parts = [
        sets[: math.comb(top, size - 1)] | sets.dtype.type(1 << top)
        for top in range(size - 1, lanes)
    ]
    return np.concatenate(parts)


def fill_groups(
    groups: Groups, law: GroupLaw, *, bits: BitSource, add: bool = False
) -> None:
    """Overwrite groups with exact bits, or add these: what was one stays one."""
    found = [np.zeros(0, dtype=np.intp)]
    for start in range(0, groups.size, _GROUPS_DRAWN):
        part = groups[start : start + _GROUPS_DRAWN]
        drawn, open_ = _look_up_sets(
            law.tables[0], None if add else part, part.size, bits
        )
        if add:
            part |= drawn
        open_ += start
        found.append(open_)
    where = np.concatenate(found)
    if where.size:
        groups[where] |= _draw_left(law, 1, where.size, bits)


def _look_up_sets(
    table: tuple[Groups, int], out: Groups | None, count: int, bits: BitSource
) -> tuple[Groups, NDArray[np.intp]]:
    """Draw sets, and return where there are none yet."""
    owners, settled = table
    words = bits.words(count)
    # Every word is a number into the table: nothing is wrapped.
    drawn = owners.take(words, out=out, mode="wrap")
    if settled == owners.size:
        return drawn, np.zeros(0, dtype=np.intp)
    return drawn, (words >= np.uint16(settled)).nonzero()[0]


def _draw_left(law: GroupLaw, depth: int, count: int, bits: BitSource) -> Groups:
    """Draw groups that the first tables do not settle."""
    if depth == len(law.tables):
        return _draw_sets(law, count, bits)
    groups, open_ = _look_up_sets(law.tables[depth], None, count, bits)
    if open_.size:
        groups[open_] = _draw_left(law, depth + 1, open_.size, bits)
    return groups


def _draw_sets(law: GroupLaw, count: int, bits: BitSource) -> Groups:
    """Draw the sizes and then uniform sets of lanes, one lane after the other."""
    groups = np.zeros(count, dtype=law.dtype)
    missing, _ = sample_outcomes(law.sizes, count, bits=bits)
    one, length = law.dtype.type(1), law.lanes.bit_length() - 1
    while (pending := missing.nonzero()[0]).size:
        lanes = uniform_bits(bits, pending.size, length=length)
        old = groups[pending]
        new = old | (one << lanes.astype(law.dtype))
        groups[pending] = new
        missing[pending] -= new != old
    return groups


# Where the ones are among many independent bits of one rate, if they are rare.
#
# The gap to the next one is an outcome, and the cells in between cost nothing. Its law
# is rational and is inverted exactly.

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

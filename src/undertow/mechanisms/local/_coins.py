r"""Exact coins, drawn many at a time into packed bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.local._groups import fill_groups, group_law, open_share
from undertow.mechanisms.local.packed import Words, unpack, width
from undertow.mechanisms.noise.bits import BitSource, uniform_below
from undertow.mechanisms.noise.lanes import sample_ones

__all__ = [
    "bernoulli",
    "bernoulli_words",
    "draw_cost",
    "respond",
    "sample_rows",
]

_WORD = 32
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
    (:mod:`undertow.mechanisms.noise.lanes`), else many lanes at a time
    (:mod:`undertow.mechanisms.local._groups`), perhaps added to bits whose rate q has
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

r"""Exact coins, drawn many at a time into packed bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.local._octets import fill_octets
from undertow.mechanisms.local.packed import Words, unpack, width
from undertow.mechanisms.noise.bits import BitSource, uniform_below
from undertow.mechanisms.noise.lanes import sample_ones

__all__ = ["bernoulli", "bernoulli_words", "fill_rows", "respond", "sample_rows"]

_WORD = 32
_ALL = np.uint32(0xFFFFFFFF)
# Words looked up and answers drawn at a time, to stay in the cache, and ones.
_DRAWN, _ANSWERS, _ONES = 1 << 15, 1 << 15, 1 << 14
# So few words are compared digit by digit; up to so many a table of gaps is too dear.
_FEW, _SOME = 1 << 5, 1 << 10
# Up to this rate ones are drawn one by one.
_RARE = Fraction(1, 40)
# These need no more than two random bits each.
_HALVES = (Fraction(1, 2), Fraction(1, 4))
_MASKS = np.uint32(1) << np.arange(_WORD, dtype=np.uint32)


def bernoulli_words(probability: Fraction, count: int, *, bits: BitSource) -> Words:
    r"""Draw words whose 32 bits are independent and 1 with the exact probability.

    Notes
    -----
    Few words: bit for bit, a uniform number U is compared with the binary digits of the
    probability; a lane is decided at the first digit that differs, so that it is 1
    exactly if U is below. Many words: one half and one quarter as the bits that one or
    two random words have in common; up to 1/40 from one to the next, else byte by
    byte, by exact inversion (:mod:`undertow.mechanisms.noise.lanes`). Above one half
    the zeros are drawn.
    """
    result = np.zeros(count, dtype="<u4")
    _fill(result, probability, bits)
    return result


def _fill(result: Words, probability: Fraction, bits: BitSource) -> None:
    """Draw into words that are zero."""
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
    if probability in _HALVES:
        return _conjoin, _DRAWN
    if probability > _RARE or count <= _SOME:
        return _look_up, _DRAWN
    return _scatter, min(count, math.ceil(_ONES / (_WORD * probability)))


def _conjoin(probability: Fraction, result: Words, bits: BitSource) -> None:
    """Draw one half or one quarter: bits that are ones in one or two random words."""
    times = probability.denominator // 2
    words = bits.words(2 * times * result.size).view(np.uint32)
    np.bitwise_and.reduce(words.reshape(times, -1), axis=0, out=result)


def _look_up(probability: Fraction, result: Words, bits: BitSource) -> None:
    """Draw eight bits at a time."""
    fill_octets(result.view(np.uint8), probability, bits=bits)


def _scatter(probability: Fraction, result: Words, bits: BitSource) -> None:
    """Draw into zeros from one to the next."""
    places = sample_ones(probability, _WORD * result.size, bits=bits)
    masks = _MASKS.take(places & 31)
    places >>= 5
    # No place comes twice: the sum of the masks of a word is their union.
    np.add.at(result, places, masks)


def _compare(probability: Fraction, result: Words, bits: BitSource) -> None:
    """Draw into zeros by comparing digits, all lanes of a word at once."""
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
    table = np.zeros((rows, width(length)), dtype="<u4")
    fill_rows(table, probability, length=length, bits=bits)
    return table


def fill_rows(
    table: Words, probability: Fraction, *, length: int, bits: BitSource
) -> None:
    """Draw independent exact bits into the contiguous rows of a table of zeros."""
    _fill(table.reshape(-1), probability, bits)
    if length % _WORD:
        table[:, -1] &= np.uint32((1 << length % _WORD) - 1)


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

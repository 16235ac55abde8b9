"""Rare bits: the number of ones of a word has the binomial law, exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.mechanisms.local import packed
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.simulated import SimulatedSource

RATES = [Fraction(1, 149), Fraction(1, 32), Fraction(3, 10**9), Fraction(7, 4096)]


class Scripted:
    """Give the listed numbers as first draws, and seeded ones afterwards."""

    name, simulated = "script", True

    def __init__(self, numbers):
        self._numbers, self._rest = numbers, SimulatedSource(3)

    def uniform(self, bound, size):
        if bound == 1 << 32 and self._numbers is not None:
            assert size == len(self._numbers)
            numbers, self._numbers = self._numbers, None
            return Draw(np.array(numbers, dtype=np.int64), True, self.name)
        return self._rest.uniform(bound, size)


def at_most(rate, k):
    return sum(
        math.comb(32, j) * rate**j * (1 - rate) ** (32 - j) for j in range(k + 1)
    )


@pytest.mark.parametrize("rate", RATES)
def test_the_cuts_are_the_binomial_law_rounded_down(rate):
    for digits in (32, 64):
        cuts = packed._cuts(rate, digits)
        assert list(cuts) == [
            math.floor(at_most(rate, k) * 2**digits) for k in range(32)
        ]


@pytest.mark.parametrize("rate", RATES)
def test_a_number_beside_a_cut_decides_the_number_of_ones(rate):
    cuts = set(packed._cuts(rate, 32))
    beside = {cut + step for cut in cuts for step in (-1, 1)} | {0, 2**32 - 1}
    numbers = sorted(u for u in beside - cuts if 0 <= u < 2**32)
    words = np.zeros(len(numbers), dtype="<u4")
    packed._scatter(rate, words, Scripted(numbers))
    expected = [
        sum(at_most(rate, k) <= Fraction(u, 2**32) for k in range(32)) for u in numbers
    ]
    assert packed.count_bits(words[:, None]).tolist() == expected


@pytest.mark.statistical
def test_a_number_on_a_cut_is_refined_by_further_digits():
    rate, source = RATES[0], SimulatedSource(4)
    cut = packed._cuts(rate, 32)[0]
    below = float(at_most(rate, 0) * 2**32 - cut)
    drawn = [packed._refine(rate, cut, source) for _ in range(10_000)]
    assert set(drawn) == {0, 1}
    # Five deviations: a false alarm in two million.
    limit = 5 * math.sqrt(below * (1 - below) / 10_000)
    assert abs(drawn.count(0) / 10_000 - below) < limit


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [RATES[0], RATES[1]])
def test_rare_bits_are_independent_and_have_their_rate(rate):
    count, q = 1 << 18, float(rate)
    words = packed.bernoulli_words(rate, count, source=SimulatedSource(5))
    bits = packed.unpack(words[:, None], 32).astype(np.float64)
    # Six deviations over 32 lanes and 496 pairs: a false alarm in a million.
    lanes = bits.sum(axis=0)
    assert np.abs(lanes - count * q).max() < 6 * math.sqrt(count * q)
    pairs = (bits.T @ bits)[np.triu_indices(32, 1)]
    assert np.abs(pairs - count * q * q).max() < 6 * math.sqrt(count * q * q) + 3


def test_few_words_and_frequent_bits_are_compared_digit_by_digit(monkeypatch):
    monkeypatch.setattr(packed, "_scatter", None)
    source = SimulatedSource(6)
    assert len(packed.bernoulli_words(RATES[0], 100, source=source)) == 100
    assert len(packed.bernoulli_words(Fraction(1, 31), 5000, source=source)) == 5000


def test_an_impossible_bit_is_never_set():
    assert not packed.bernoulli_words(
        Fraction(0), 5000, source=SimulatedSource(7)
    ).any()

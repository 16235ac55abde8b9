"""Packed coins: each way of drawing them has exactly the rate it is given."""

import math
from fractions import Fraction

import numpy as np
import pytest

from support.bit_strings import enumerate_law
from undertow.mechanisms.local import _coins
from undertow.mechanisms.local._coins import (
    bernoulli,
    bernoulli_words,
    respond,
    sample_rows,
)
from undertow.mechanisms.local.packed import (
    clear_bits,
    column_counts,
    count_bits,
    unpack,
)
from undertow.mechanisms.noise.simulated import SimulatedSource


class Scripted:
    """Hand out given pairs of words, the same for every word asked for."""

    width = 16

    def __init__(self, numbers):
        self._numbers = iter(numbers)

    def words(self, count):
        return np.full(count // 2, next(self._numbers), np.uint32).view(np.uint16)


def lane_digits(digits):
    """Return words whose lanes see all numbers of so many digits, first digit first."""
    return [
        sum(((u >> place) & 1) << u for u in range(1 << digits))
        for place in reversed(range(digits))
    ]


@pytest.mark.parametrize("numerator", [1, 5, 11, 16, 17, 31])
def test_a_coin_is_exact_over_all_prefixes_of_its_digits(numerator):
    # Thirty-two lanes with all numbers of five digits: exactly so many ones.
    rate = Fraction(numerator, 32)
    word = int(bernoulli_words(rate, 1, bits=Scripted(lane_digits(5)))[0])
    lanes = [word >> u & 1 for u in range(32)]
    below = [int(u < min(numerator, 32 - numerator)) for u in range(32)]
    assert lanes == (below if numerator <= 16 else [1 - bit for bit in below])


def test_certain_coins_need_no_luck():
    bits = Scripted([])
    assert bernoulli(Fraction(1), 40, bits=bits).all()
    assert not bernoulli(Fraction(0), 40, bits=bits).any()
    assert not bernoulli_words(Fraction(0), 5000, bits=bits).any()
    rows = sample_rows(Fraction(1), 3, length=35, bits=bits)
    assert count_bits(rows).tolist() == [35, 35, 35]
    clear_bits(rows, np.array([0, 34, 31]))
    assert count_bits(rows).tolist() == [34, 34, 34]
    counts = unpack(rows, 35).sum(axis=0)
    np.testing.assert_array_equal(column_counts(rows, 35), counts)


def test_ones_are_set_at_their_places(monkeypatch):
    places = [0, 1, 31, 32, 95, 96, 3200 * 32 - 1]
    monkeypatch.setattr(
        _coins, "sample_ones", lambda *_, **__: np.array(places, dtype=np.int64)
    )
    words = bernoulli_words(Fraction(1, 100), 3200, bits=Scripted([]))
    found = np.flatnonzero(unpack(words[None, :], 3200 * 32)[0])
    assert found.tolist() == places


def test_a_half_and_a_quarter_are_the_bits_of_one_and_two_words():
    class Counting:
        width = 16

        def words(self, count):
            return np.arange(count, dtype=np.uint16) * np.uint16(40503)

    drawn = Counting().words(160).view(np.uint32)
    half = bernoulli_words(Fraction(1, 2), 40, bits=Counting())
    np.testing.assert_array_equal(half, drawn[:40])
    quarter = bernoulli_words(Fraction(1, 4), 40, bits=Counting())
    np.testing.assert_array_equal(quarter, drawn[:40] & drawn[40:])


WAYS = {
    "_compare": [(Fraction(1, 149), 32), (Fraction(1, 3), 20)],
    "_conjoin": [(Fraction(1, 4), 33), (Fraction(1, 4), 70_000)],
    "_look_up": [
        (Fraction(1, 149), 1000),
        (Fraction(1, 39), 5000),
        (Fraction(3, 7), 33),
    ],
    "_scatter": [(Fraction(1, 149), 5000), (Fraction(1, 40), 1025)],
}


@pytest.mark.parametrize("way", WAYS)
def test_each_number_and_rate_of_coins_has_its_way(way, monkeypatch):
    for other in set(WAYS) - {way}:
        monkeypatch.setattr(_coins, other, None)
    for rate, count in WAYS[way]:
        words = bernoulli_words(rate, count, bits=SimulatedSource(6).bits)
        assert len(words) == count
        zeros = bernoulli_words(1 - rate, count, bits=SimulatedSource(6).bits)
        np.testing.assert_array_equal(words, ~zeros)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "rate",
    [
        Fraction(1, 149),
        Fraction(1, 40),
        Fraction(119, 1000),
        Fraction(1, 4),
        Fraction(1, 2),
        Fraction(8, 10),
    ],
)
def test_bits_are_independent_and_have_their_rate(rate):
    count, q = (1 << 18) + 5, float(rate)
    words = bernoulli_words(rate, count, bits=SimulatedSource(5).bits)
    bits = unpack(words[:, None], 32).astype(np.float64)
    # Six deviations over 32 lanes and 496 pairs: a false alarm in a million.
    lanes = bits.sum(axis=0)
    assert np.abs(lanes - count * q).max() < 6 * math.sqrt(count * q * (1 - q))
    pairs, both = (bits.T @ bits)[np.triu_indices(32, 1)], q * q
    limit = 6 * math.sqrt(count * both * (1 - both)) + 3
    assert np.abs(pairs - count * both).max() < limit
    # The same for neighbours in neighbouring words.
    met = (bits[1:, 0] * bits[:-1, 31]).sum()
    assert abs(met - count * both) < limit


@pytest.mark.statistical
def test_parts_drawn_apart_have_ones_up_to_their_ends(monkeypatch):
    # Parts of ten words: forty ones each on average.
    monkeypatch.setattr(_coins, "_ONES", 8)
    rate, count = Fraction(1, 40), 20_000
    words = bernoulli_words(rate, count, bits=SimulatedSource(7).bits)
    cells = unpack(words[None, :], 32 * count)[0].reshape(-1, 320).sum(axis=0)
    mean = count / 10 / 40
    # Six deviations over 320 cells: a false alarm in a million.
    assert np.abs(cells - mean).max() < 6 * math.sqrt(mean)


@pytest.mark.parametrize("among", [2, 3, 4])
def test_lies_are_uniform_by_enumeration(among, monkeypatch):
    monkeypatch.setattr(
        _coins, "bernoulli", lambda _, count, **__: np.zeros(count, dtype=bool)
    )

    def sample(bits):
        truth = np.array([1])
        return int(respond(truth, Fraction(1, 3), among=among, bits=bits)[0])

    law, undecided = enumerate_law(sample, width=2, depth=4)
    assert set(law) == set(range(among)) - {1}
    assert len(set(law.values())) == 1
    assert undecided < Fraction(1, 100)


def test_truths_are_told_where_the_coin_says_so(monkeypatch):
    told = np.arange(7) % 2 == 0
    monkeypatch.setattr(_coins, "bernoulli", lambda *_, **__: told)
    monkeypatch.setattr(_coins, "_ANSWERS", 3)
    truths = np.arange(7)
    answers = respond(truths, Fraction(1, 2), among=9, bits=SimulatedSource(2).bits)
    np.testing.assert_array_equal(answers == truths, told)
    assert answers.min() >= 0
    assert answers.max() < 9

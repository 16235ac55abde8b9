"""Packed coins: each way of drawing them has exactly the rate it is given."""

import math
from fractions import Fraction

import numpy as np
import pytest

from support.bit_strings import enumerate_law
from undertow.mechanisms.local import _bitset as _coins
from undertow.mechanisms.local._bitset import (
    bernoulli,
    bernoulli_words,
    clear_bits,
    column_counts,
    count_bits,
    respond,
    sample_rows,
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
    words = bernoulli_words(Fraction(1, 900), 3200, bits=Scripted([]))
    found = np.flatnonzero(unpack(words[None, :], 3200 * 32)[0])
    assert found.tolist() == places


@pytest.mark.parametrize("eighths", [1, 2, 3, 4])
def test_few_digits_are_exact_over_all_random_words(eighths):
    # Thirty-two lanes with all numbers of the digits: exactly so many ones.
    rate = Fraction(eighths, 8)
    digits = lane_digits(5)[-(rate.denominator.bit_length() - 1) :]

    class Listed:
        width = 16

        def words(self, count):
            assert count == 2 * len(digits)
            return np.array(digits, dtype=np.uint32).view(np.uint16)

    result = np.zeros(1, dtype="<u4")
    _coins._combine(rate, result, Listed())
    assert int(result[0]).bit_count() == 32 * rate


@pytest.mark.parametrize(
    ("rate", "base"),
    [("0.2689", Fraction(1, 4)), ("0.381", Fraction(3, 8)), ("0.07", Fraction(0))],
)
def test_bits_are_added_at_the_rate_that_is_wanting(rate, base, monkeypatch):
    rates, law = [], _coins.group_law
    monkeypatch.setattr(
        _coins, "group_law", lambda rate, *rest: rates.append(rate) or law(rate, *rest)
    )
    bernoulli_words(Fraction(rate), 100, bits=SimulatedSource(3).bits)
    (added,) = rates
    assert 1 - (1 - base) * (1 - added) == Fraction(rate)


def test_an_odd_number_of_words_is_drawn_without_groups_of_64():
    rate = Fraction(1, 149)
    assert _coins._plan(rate, 64, 16)[2] == 64
    words = bernoulli_words(rate, 1001, bits=SimulatedSource(3).bits)
    assert len(words) == 1001
    assert abs(count_bits(words[None, :])[0] - 32_032 / 149) < 6 * math.sqrt(215)


@pytest.mark.parametrize("rate", ["0.0001", "0.0019", "0.05", "0.25", "0.5", "0.95"])
def test_the_cost_of_a_rate_is_that_of_its_zeros(rate):
    cost = _coins.draw_cost(Fraction(rate), 16)
    assert cost == _coins.draw_cost(1 - Fraction(rate), 16)
    assert 0 < cost < 20


WAYS = {
    "_compare": [(Fraction(1, 149), 32), (Fraction(1, 3), 20)],
    "_look_up": [
        (Fraction(1, 4), 33),
        (Fraction(1, 4), 70_000),
        (Fraction(1, 600), 1000),
        (Fraction(1, 499), 5000),
        (Fraction(3, 7), 33),
    ],
    "_scatter": [(Fraction(1, 1490), 5000), (Fraction(1, 500), 1025)],
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
        Fraction(1, 700),
        Fraction(1, 149),
        Fraction(1, 40),
        Fraction(119, 1000),
        Fraction(1, 4),
        Fraction(269, 1000),
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
    # Parts of ten words: eight ones each on average.
    monkeypatch.setattr(_coins, "_ONES", 8)
    monkeypatch.setattr(_coins, "_RARE", Fraction(1, 40))
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

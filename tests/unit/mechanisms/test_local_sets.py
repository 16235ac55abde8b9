"""Sets of exact sizes: uniform among the sets without one category."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from support.bit_strings import enumerate_law
from undertow.mechanisms.local import subset as _sets
from undertow.mechanisms.local._bitset import bits_at, count_bits, draw_cost, unpack
from undertow.mechanisms.local.subset import sample_sets
from undertow.mechanisms.noise.simulated import SimulatedSource

FALSE_ALARM = 1e-6
LONG = pytest.param(3, 7, marks=pytest.mark.slow)


@pytest.mark.parametrize(("size", "depth"), [(0, 1), (1, 5), (2, 7), LONG])
def test_sets_are_uniform_by_enumeration(size, depth):
    def sample(bits):
        table = sample_sets(np.array([1]), np.array([size]), categories=4, bits=bits)
        return int(table[0, 0])

    law, undecided = enumerate_law(sample, width=2, depth=depth)
    sets = {
        sum(1 << j for j in chosen)
        for chosen in itertools.combinations([0, 2, 3], size)
    }
    assert set(law) == sets
    assert len(set(law.values())) == 1
    assert undecided < (0.5 if size else 1e-9)


@pytest.mark.slow
def test_a_set_is_completed_by_uniform_outsiders_by_enumeration():
    # Members 0 and 3 of 0..4, category 1 in the way: 2 or 4 is added.
    def sample(bits):
        table = np.array([[0b01011]], dtype="<u4")
        missing = np.array([1])
        _sets._complete(table, missing, 5, bits)
        assert missing.tolist() == [0]
        return int(table[0, 0])

    law, undecided = enumerate_law(sample, width=3, depth=5)
    assert set(law) == {0b01111, 0b11011}
    assert len(set(law.values())) == 1
    assert undecided < 0.25


@pytest.mark.parametrize(
    ("categories", "width"), [(5, 3), (4, 2), (5, 2), (11, 4)], ids=str
)
def test_places_are_uniform_by_enumeration(categories, width):
    def sample(bits):
        (octet,), (mask,) = _sets._draw_places(1, categories, bits)
        if not mask:
            return "refused"
        return 8 * int(octet) + int(mask).bit_length() - 1

    law, _ = enumerate_law(sample, width=width, depth=4)
    refused = law.pop("refused", 0)
    assert refused < Fraction(1, 2)
    assert set(law) == set(range(categories))
    assert len(set(law.values())) == 1


def test_rows_left_to_others_keep_what_they_miss():
    table = np.zeros((40, 2), dtype="<u4")
    missing = np.array([1, 2, 3, 30] * 10)
    bits = SimulatedSource(3).bits
    _sets._complete(table, missing, 64, bits, leave=12)
    assert 0 < np.count_nonzero(missing) <= 12
    assert (missing[3::4] > 0).all()
    np.testing.assert_array_equal(count_bits(table) + missing, [1, 2, 3, 30] * 10)
    _sets._complete(table, missing, 64, bits)
    np.testing.assert_array_equal(count_bits(table), [1, 2, 3, 30] * 10)


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 4), Fraction(2, 5)], ids=str)
@pytest.mark.parametrize("size", [2, 3])
def test_all_sets_are_equally_likely_from_bits_and_from_nothing(
    rate, size, monkeypatch
):
    monkeypatch.setattr(_sets, "_rate", lambda *_: rate)
    n, bits = 40_000, SimulatedSource(12).bits
    rows = sample_sets(np.full(n, 2), np.full(n, size), categories=6, bits=bits)
    found, counts = np.unique(rows[:, 0], return_counts=True)
    sets = [
        sum(1 << j for j in chosen)
        for chosen in itertools.combinations([0, 1, 3, 4, 5], size)
    ]
    assert found.tolist() == sorted(sets)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize("largest", [3, 40, 120, 198, 199])
@pytest.mark.parametrize("words", [100, 1 << 19], ids=["parts", "one part"])
def test_every_set_has_its_size_and_not_the_avoided_category(
    largest, words, monkeypatch
):
    monkeypatch.setattr(_sets, "_WORDS", words)
    monkeypatch.setattr(_sets, "_PLACES", words)
    rng = np.random.default_rng(largest)
    avoided = rng.integers(200, size=500)
    sizes = largest - rng.integers(3, size=500)
    bits = SimulatedSource(rng).bits
    rows = sample_sets(avoided, sizes, categories=200, bits=bits)
    np.testing.assert_array_equal(count_bits(rows), sizes)
    assert not bits_at(rows, avoided).any()
    assert unpack(rows, 224)[:, 200:].sum() == 0


@pytest.mark.parametrize("size", [820, 1500, 2800, 363, 144])
def test_sets_begin_with_bits_that_are_seldom_too_many(size):
    rate = _sets._rate(size, 3052, 16)
    deviation = (3052 * rate * (1 - rate)) ** 0.5
    assert 0.9 * deviation < size - 3052 * rate < 5 * deviation


@pytest.mark.parametrize("size", [0, 1, 7, 20])
def test_small_sets_begin_with_nothing(size):
    assert _sets._rate(size, 3052, 16) == 0


def test_the_cost_of_a_set_counts_its_tries_and_its_bits():
    # A deviation of 24 and 2.4 of them short: 57 missing, each tried 1.37 times.
    quarter = _sets._cost(Fraction(1, 4), 820, 3052, 16)
    drawn = 3052 / 64 * (draw_cost(Fraction(1, 4), 16) + _sets._COUNT)
    assert quarter == pytest.approx(57.1 * 1.367 * _sets._TRY + drawn, rel=0.02)
    assert _sets._cost(Fraction(3, 8), 820, 3052, 16) == np.inf


def test_no_sets_are_an_empty_table():
    none = np.zeros(0, dtype=np.int64)
    bits = SimulatedSource(1).bits
    assert sample_sets(none, none, categories=40, bits=bits).shape == (0, 2)

"""Sets of exact sizes: uniform among the sets without one category."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from support.bit_strings import enumerate_law
from undertow.mechanisms.local import _sets
from undertow.mechanisms.local._sets import sample_sets
from undertow.mechanisms.local.packed import bits_at, count_bits, unpack
from undertow.mechanisms.noise.simulated import SimulatedSource

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(("size", "depth"), [(0, 1), (1, 5), (2, 7), (3, 7)])
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


def test_a_set_is_completed_by_uniform_outsiders_by_enumeration():
    # Members 0 and 3 of 0..4, category 1 in the way: 2 or 4 is added.
    def sample(bits):
        table = np.array([[0b01011]], dtype="<u4")
        missing = np.array([1], dtype=np.int32)
        _sets._complete(table, missing, categories=5, bits=bits)
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
        (octets,), (masks,) = _sets._draw_places(1, 1, categories, bits)
        if not masks[0]:
            return "refused"
        return 8 * int(octets[0]) + int(masks[0]).bit_length() - 1

    law, _ = enumerate_law(sample, width=width, depth=4)
    refused = law.pop("refused", 0)
    assert refused < Fraction(1, 2)
    assert set(law) == set(range(categories))
    assert len(set(law.values())) == 1


@pytest.mark.statistical
@pytest.mark.parametrize("few", [0, 96])
@pytest.mark.parametrize("size", [2, 3])
def test_all_sets_are_equally_likely_from_bits_and_from_nothing(few, size, monkeypatch):
    monkeypatch.setattr(_sets, "_FEW", few)
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


@pytest.mark.parametrize(
    ("size", "quick"), [(763, False), (800, True), (820, True), (860, False)]
)
def test_sets_a_little_over_a_quarter_begin_with_a_quarter(size, quick):
    rate = _sets._rate(size, 3052)
    assert (rate == Fraction(1, 4)) == quick
    # Below the size by at least one deviation and by at most a thirtieth of all.
    deviation = (size * (1 - size / 3052)) ** 0.5
    assert deviation < size - 3052 * rate < deviation + 3052 / 30


def test_no_sets_are_an_empty_table():
    none = np.zeros(0, dtype=np.int64)
    bits = SimulatedSource(1).bits
    assert sample_sets(none, none, categories=40, bits=bits).shape == (0, 2)

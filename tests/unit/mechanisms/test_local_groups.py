"""Groups of exact bits: owned words, what they leave open, and all of it together."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from support.bit_strings import Replay, assert_encloses, enumerate_law
from undertow.mechanisms.local import _bitset as _groups
from undertow.mechanisms.local._bitset import (
    LaneSets,
    by_size,
    fill_groups,
    group_law,
    open_share,
)
from undertow.mechanisms.noise.secure import SecureSource
from undertow.mechanisms.noise.simulated import SimulatedSource

FALSE_ALARM = 1e-6
RATES = [Fraction(1, 3), Fraction(1, 8), Fraction(2, 7)]


def group_probabilities(rate, lanes):
    """Return the probability of every group of independent bits."""
    return {
        group: float(
            rate ** group.bit_count() * (1 - rate) ** (lanes - group.bit_count())
        )
        for group in range(1 << lanes)
    }


@pytest.fixture
def _tables(request, monkeypatch):
    monkeypatch.setattr(_groups, "_TABLES", request.param)
    group_law.cache_clear()
    yield
    group_law.cache_clear()


@pytest.mark.usefixtures("_tables")
@pytest.mark.parametrize("_tables", [1, 2, 3], indirect=True)
@pytest.mark.parametrize(
    ("lanes", "width", "depth", "most"),
    [(2, 2, 6, 0.05), (2, 3, 4, 0.1), (4, 4, 3, 0.5)],
)
@pytest.mark.parametrize("rate", RATES, ids=str)
def test_groups_are_independent_bits_by_enumeration(rate, lanes, width, depth, most):
    def sample(bits):
        groups = np.full(1, 255, dtype=np.uint8)
        fill_groups(groups, group_law(rate, lanes, width), bits=bits)
        return int(groups[0])

    law, undecided = enumerate_law(sample, width=width, depth=depth)
    assert undecided < most
    assert_encloses(law, undecided, group_probabilities(rate, lanes))


def test_bits_are_added_to_those_there_by_enumeration():
    rate = Fraction(1, 3)

    def sample(bits):
        groups = np.array([0b01], dtype=np.uint8)
        fill_groups(groups, group_law(rate, 2, 3), bits=bits, add=True)
        return int(groups[0])

    law, undecided = enumerate_law(sample, width=3, depth=4)
    assert undecided < 0.05
    assert_encloses(law, undecided, {0b01: 2 / 3, 0b11: 1 / 3})


@pytest.mark.parametrize("rate", [*RATES, Fraction(0.2689414213699951)], ids=str)
@pytest.mark.parametrize(("lanes", "width"), [(2, 3), (8, 16), (16, 16), (64, 16)])
def test_what_is_owned_and_what_is_left_make_up_the_probability(rate, lanes, width):
    law = LaneSets.independent(rate, lanes)
    assert sum(by_size(law.shares)) == law.whole
    owned = law.owned(width)
    left, words = law.left(owned, width), 1 << width
    assert sum(by_size(left.shares)) == left.whole
    open_ = 1 - Fraction(sum(by_size(owned)), words)
    assert open_share(rate, lanes, width) == float(open_)
    for size in range(lanes + 1):
        rest = Fraction(left.shares[size], left.whole)
        assert 0 <= rest * open_ * words < 1
        probability = rate**size * (1 - rate) ** (lanes - size)
        assert Fraction(owned[size], words) + open_ * rest == probability


@pytest.mark.parametrize("precision", [9, 40])
def test_the_law_of_the_number_of_ones_is_enclosed(precision):
    law = LaneSets.independent(Fraction(2, 7), 8)
    law = law.left(law.owned(5), 5)
    lower, upper = law.boundaries(precision)
    total = Fraction(0)
    for low, high, mass in zip(lower, upper, [*by_size(law.shares), 0], strict=True):
        assert low <= total * 2**precision <= high <= low + 1
        total += Fraction(mass, law.whole)
    assert total == 1


def test_every_set_of_one_size_owns_as_many_words():
    rate, lanes = Fraction(119, 1000), 16
    (table, settled), *_ = group_law(rate, lanes, 16).tables
    owned = LaneSets.independent(rate, lanes).owned(16)
    found, counts = np.unique(table[:settled], return_counts=True)
    sizes = [int(group).bit_count() for group in found]
    assert counts.tolist() == [owned[size] for size in sizes]
    assert np.bincount(sizes).tolist() == [math.comb(16, k) for k in range(5)]
    assert not table[settled:].any()


def test_sets_are_listed_in_order():
    sets = np.zeros(1, dtype=np.uint8)
    for size in range(1, 6):
        sets = _groups._one_more(sets, size, 6)
        expected = [
            sum(1 << lane for lane in chosen)
            for chosen in itertools.combinations(range(6), size)
        ]
        assert sets.tolist() == sorted(expected)


def test_a_group_whose_words_are_all_owned_costs_one_word():
    law = group_law(Fraction(1, 4), 2, 4)
    groups = np.zeros(16, dtype=np.uint8)
    fill_groups(groups, law, bits=Replay(4, range(16)))
    assert np.bincount(groups).tolist() == [9, 3, 3, 1]
    assert len(law.tables) == 1


@pytest.mark.statistical
@pytest.mark.parametrize("source", [SimulatedSource(4), SecureSource()], ids=repr)
@pytest.mark.parametrize(
    ("rate", "lanes"),
    [("0.269", 8), ("0.119", 16), ("0.025", 32), ("0.3", 32), ("0.012", 64)],
)
def test_the_number_of_ones_is_binomial_and_every_lane_alike(rate, lanes, source):
    law, count = group_law(Fraction(rate), lanes, 16), 200_000
    groups = np.zeros(count, dtype=law.dtype)
    fill_groups(groups, law, bits=source.bits)
    bits = np.unpackbits(groups.view(np.uint8).reshape(count, -1), axis=1)
    ones = bits.sum(axis=1, dtype=np.int64)
    sizes = np.bincount(ones, minlength=lanes + 1)
    expected = count * stats.binom(lanes, float(rate)).pmf(range(lanes + 1))
    rare = expected < 10
    cells = [np.append(x[~rare], x[rare].sum() + 1) for x in (sizes, expected)]
    assert stats.chisquare(*cells).pvalue > FALSE_ALARM
    assert stats.chisquare(bits.sum(axis=0)).pvalue > FALSE_ALARM


def test_no_groups_need_no_words():
    fill_groups(np.zeros(0, np.uint8), group_law(RATES[0], 8, 16), bits=Replay(16, []))

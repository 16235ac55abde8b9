"""Bits of one rate: their laws are enclosed, and drawn exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from support.bit_strings import Replay, assert_encloses, enumerate_law
from undertow.mechanisms.local import _bitset as lanes
from undertow.mechanisms.local._bitset import Gap, sample_ones
from undertow.mechanisms.noise._inversion import compile_table, sample_outcomes
from undertow.mechanisms.noise.secure import SecureSource
from undertow.mechanisms.noise.simulated import SimulatedSource

RATES = [Fraction(1, 149), Fraction(3, 8), Fraction(3, 10**9), Fraction(1, 10**400)]


def product_law(rate, length):
    """Return the probability of every string of independent bits."""
    return {
        bits: float(rate) ** sum(bits) * float(1 - rate) ** (length - sum(bits))
        for bits in itertools.product((0, 1), repeat=length)
    }


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("reach", [1, 5, 60])
@pytest.mark.parametrize("precision", [9, 40])
def test_the_law_of_a_gap_is_enclosed(rate, reach, precision):
    lower, upper = Gap(rate, reach).boundaries(precision)
    law = [(1 - rate) ** reach] + [rate * (1 - rate) ** i for i in range(reach)]
    sums = list(itertools.accumulate(law, initial=Fraction(0)))
    assert sums[-1] == 1
    for low, total, high in zip(lower, sums, upper, strict=True):
        assert low <= total * 2**precision <= high <= low + 2


def test_the_enclosure_of_long_gaps_stays_narrow():
    lower, upper = Gap(Fraction(1, 293), 4096).boundaries(40)
    assert max(map(int.__sub__, upper, lower)) <= 2
    assert upper == sorted(upper)
    far = (1 - Fraction(1, 293)) ** 4096 * 2**40
    assert lower[1] <= far <= upper[1]


def test_an_enclosure_is_computed_once():
    first, again = (Gap(Fraction(1, 293), 4096).boundaries(56) for _ in range(2))
    assert first is again


@pytest.mark.parametrize("reach", [1, 2, 4])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 4), Fraction(1, 3)])
def test_ones_found_by_their_gaps_are_independent_bits_by_enumeration(
    rate, reach, monkeypatch
):
    # One gap at a time, so that all strings can be read.
    monkeypatch.setattr(lanes, "_REACH", reach)
    monkeypatch.setattr(lanes, "_enough", lambda _: 1)

    def sample(bits):
        places = sample_ones(rate, 3, bits=bits).tolist()
        assert places == sorted(set(places))
        return tuple(int(cell in places) for cell in range(3))

    law, undecided = enumerate_law(sample, width=2, depth=7)
    assert undecided < 0.1
    assert_encloses(law, undecided, product_law(rate, 3))


def test_many_gaps_at_once_are_the_gaps_one_by_one(monkeypatch):
    monkeypatch.setattr(lanes, "_REACH", 6)
    rate, words = Fraction(1, 4), np.random.default_rng(5).integers(8, size=4000)
    table = compile_table(Gap(rate, 6), 3)
    count = lanes._enough(900 / lanes._stride(0.25, 6))
    steps, _ = sample_outcomes(table, count, bits=Replay(3, words.tolist()))
    cell, ones = 0, []
    for step in steps.tolist():
        cell += step or 6
        if step and cell <= 900:
            ones.append(cell - 1)
    assert cell >= 900
    assert (steps == 0).any()
    found = sample_ones(rate, 900, bits=Replay(3, words.tolist()))
    assert found.tolist() == ones


def test_few_gaps_are_followed_by_more_until_all_cells_are_passed(monkeypatch):
    monkeypatch.setattr(lanes, "_enough", lambda mean: math.ceil(mean / 3) + 1)
    bits = SimulatedSource(8).bits
    ones = sample_ones(Fraction(1, 10), 50_000, bits=bits)
    assert (np.diff(ones) > 0).all()
    assert ones[-1] < 50_000
    # Six deviations: a false alarm in 10^8.
    assert abs(ones.size - 5000) < 6 * math.sqrt(4500)


class Counted:
    """Seeded words, and how many were read."""

    def __init__(self):
        self._bits, self.read = SimulatedSource(4).bits, 0
        self.width = self._bits.width

    def words(self, count):
        self.read += count
        return self._bits.words(count)


# Seeded: ones of the larger rate come in one run of a thousand.
@pytest.mark.parametrize("rate", [Fraction(1, 10**9), Fraction(1, 10**400)])
def test_hardly_possible_ones_cost_little_and_do_not_come(rate):
    bits = Counted()
    assert sample_ones(rate, 10**6, bits=bits).size == 0
    assert bits.read < 1000


@pytest.mark.statistical
@pytest.mark.parametrize("source", [SimulatedSource(4), SecureSource()], ids=repr)
@pytest.mark.parametrize("rate", [Fraction(1, 8), Fraction(1, 149), Fraction(1, 4000)])
def test_gaps_are_geometric(source, rate):
    ones = sample_ones(rate, math.ceil(40_000 / rate), bits=source.bits)
    gaps = np.diff(ones, prepend=-1)
    for share in (0.1, 0.5, 0.9, 0.999):
        reach = max(1, round(share / float(rate)))
        chance = -math.expm1(reach * math.log1p(-float(rate)))
        off = np.count_nonzero(gaps <= reach) - chance * gaps.size
        # Six deviations at four places: a false alarm in 10^8.
        assert abs(off) < 6 * math.sqrt(gaps.size * chance * (1 - chance)) + 1

"""Octets of exact bits: the law of eight lanes, word for word."""

from fractions import Fraction

import numpy as np
import pytest

from undertow.mechanisms.local._octets import fill_octets
from undertow.mechanisms.noise.lanes import sample_lanes

RATES = [Fraction(1, 2), Fraction(269, 1000), Fraction(1, 3), Fraction(1, 40)]


class Words:
    """Seeded words; those of a few bits settle few octets at once."""

    def __init__(self, width):
        self._rng, self.width = np.random.default_rng(7), width

    def words(self, count):
        return self._rng.integers(1 << self.width, size=count).astype(np.uint16)


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize(("width", "count"), [(5, 400), (9, 400), (16, 200_000)])
def test_octets_are_the_lanes_of_the_same_words(rate, width, count):
    # The lanes have their law by enumeration; these are the same function of the words.
    octets = np.full(count, 77, dtype=np.uint8)
    fill_octets(octets, rate, bits=Words(width))
    expected = sample_lanes(rate, count, bits=Words(width))
    np.testing.assert_array_equal(octets, expected)


def test_eight_ones_are_as_frequent_as_they_should_be():
    # Unsettled words are marked by eight ones: six deviations of their true number.
    octets = np.zeros(400_000, dtype=np.uint8)
    fill_octets(octets, Fraction(1, 2), bits=Words(16))
    found, mean = np.count_nonzero(octets == 255), 400_000 / 256
    assert abs(found - mean) < 6 * mean**0.5


def test_no_octets_need_no_words():
    fill_octets(np.zeros(0, dtype=np.uint8), Fraction(1, 3), bits=Words(16))

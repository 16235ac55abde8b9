"""Quantiles and histograms from noisy counts of bins."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from undertow.release.engine.job import Aggregates
from undertow.release.plan.encoding import Histogram, Quantiles
from undertow.release.plan.noise import Contribution, IntegerNoise

CUTS = tuple(Fraction(c) for c in (0, 1, 2, 5, 10))
SILENT = IntegerNoise("laplace", Fraction(1, 1000))


def bins(*counts):
    cells = tuple((at,) for at in range(len(counts)))
    return Aggregates(cells, {"rows": np.array(counts)})


def test_a_histogram_counts_bins_and_names_their_ends():
    encoding = Histogram(CUTS)
    vector = encoding.vector(bins(3, 1, 0, 2))
    assert [row[0] for row in encoding.read(vector, noise=SILENT, beta=0.05)] == [
        3,
        1,
        0,
        2,
    ]
    assert encoding.labels == ((0, 1), (1, 2), (2, 5), (5, 10))
    assert encoding.reach(Contribution(5, None, None, 4)).total == 5


def test_labels_that_are_no_whole_numbers_are_floats():
    assert Histogram((Fraction(0), Fraction(1, 2), Fraction(1))).labels[0] == (0, 0.5)


@pytest.mark.parametrize("q", ["0.1", "0.5", "0.9"])
@pytest.mark.parametrize(
    "counts", [(3, 1, 0, 2), (0, 0, 7, 0), (1, 9, 9, 1), (5, 0, 0, 0)]
)
def test_without_noise_the_interval_is_the_bin_of_the_quantile(q, counts):
    encoding = Quantiles(CUTS, (Fraction(q),))
    estimate, low, high = encoding.read(
        encoding.vector(bins(*counts)), noise=SILENT, beta=0.05
    )[0]
    rank, sums = Fraction(q) * sum(counts), list(accumulate(counts))
    at = next(k for k, reached in enumerate(sums) if reached >= rank)
    assert low <= CUTS[at] <= CUTS[at + 1] <= high
    assert low <= estimate <= high
    if rank not in sums:  # else the next value is as good an answer
        assert (low, high) == (CUTS[at], CUTS[at + 1])


def test_more_noise_gives_wider_intervals():
    encoding = Quantiles(CUTS, (Fraction(1, 2),))
    vector = encoding.vector(bins(20, 40, 40, 20))
    widths = []
    for scale in (Fraction(1, 2), Fraction(5), Fraction(500)):
        _, low, high = encoding.read(
            vector, noise=IntegerNoise("laplace", scale), beta=0.05
        )[0]
        widths.append(high - low)
    assert widths == sorted(widths)
    assert widths[-1] == 10


def test_one_release_answers_several_quantiles_of_every_cell():
    encoding = Quantiles(CUTS, (Fraction(1, 4), Fraction(3, 4)))
    vector = encoding.vector(bins(10, 0, 0, 10, 0, 20, 0, 0))
    found = encoding.read(vector, noise=SILENT, beta=0.05)
    assert len(found) == 4
    assert [round(row[0], 6) for row in found] == [0.5, 7.5, 1.25, 1.75]
    assert encoding.labels == ((0.25,), (0.75,))
    assert encoding.label_columns == ("quantile",)


def test_noise_that_refuses_every_bin_leaves_the_whole_range():
    encoding = Quantiles(CUTS, (Fraction(1, 2),))
    # Fewer than no rows: every bin has too few up to it.
    noisy = np.array([[-100, 0, 0, 0]], dtype=np.object_)
    _, low, high = encoding.read(noisy, noise=SILENT, beta=0.05)[0]
    assert low == 0
    assert high == 10


def test_the_error_in_rank_is_that_of_the_worst_bin():
    noise = IntegerNoise("gaussian", Fraction(9))
    width, unit = Quantiles(CUTS, (Fraction(1, 2),)).half_width(noise, 0.05)
    assert unit == "rows of rank"
    assert width == pytest.approx(noise.sum_radius([0.5], 0.025, counts=[4]))


def test_a_range_of_negative_numbers_is_not_raised_to_zero():
    assert not Quantiles((Fraction(-1), Fraction(1))).non_negative
    assert Quantiles(CUTS).non_negative

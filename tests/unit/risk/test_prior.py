"""Laws on finitely many records, and how their collisions are estimated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.errors import ModelError
from undertow.risk.threat import Prior, estimate_collision


def test_a_number_stands_for_that_many_records():
    assert Prior.uniform(3).support == (0, 1, 2)


def test_the_uniform_law_has_the_least_collision():
    assert Prior.uniform(8).collision == 0.125
    assert Prior(8, [0.3] + [0.1] * 7).collision > 0.125


def test_frequencies_are_counts_over_their_total():
    prior = Prior.empirical([3, 1, 3, 3], support=[1, 2, 3])
    assert prior.support == (1, 2, 3)
    assert prior.pmf.tolist() == [0.25, 0.0, 0.75]


def test_smoothing_gives_unseen_records_a_share():
    prior = Prior.empirical([3, 1, 3, 3], support=[1, 2, 3], smoothing=2.0)
    assert prior.pmf.tolist() == pytest.approx([0.3, 0.2, 0.5], abs=1e-15)


def test_values_outside_the_support_are_refused_without_being_shown():
    with pytest.raises(ModelError, match="got 1 that do not") as caught:
        Prior.empirical(["secret"], support=["a", "b"])
    assert "secret" not in str(caught.value)


def test_a_two_point_law_has_two_points():
    prior = Prior.two_point("abc", ("c", "a"), weight=0.75)
    assert prior.pmf.tolist() == [0.25, 0.0, 0.75]
    assert prior.collision == 0.625


@pytest.mark.parametrize("pair", [("a", "a"), ("a", "z"), ("z", "a")])
def test_a_two_point_law_needs_two_records_of_the_support(pair):
    with pytest.raises(ModelError, match="two different records"):
        Prior.two_point("abc", pair)


@pytest.mark.parametrize(
    ("support", "pmf"),
    [
        (2, [0.5, 0.6]),
        (2, [1.5, -0.5]),
        (2, [0.5, 0.25, 0.25]),
        (2, [math.nan, 1.0]),
        ("aa", [0.5, 0.5]),
        ([], []),
    ],
)
def test_what_is_no_law_is_refused(support, pmf):
    with pytest.raises(ModelError):
        Prior(support, pmf)


@pytest.mark.parametrize("counts", [{"a": 0}, {"a": -1, "b": 3}, {"a": math.inf}])
def test_counts_that_make_no_law_are_refused(counts):
    with pytest.raises(ModelError, match="counts must be"):
        Prior.from_counts(counts)


def test_a_sum_off_by_rounding_is_put_right():
    prior = Prior(3, [0.1 + 4e-10, 0.2, 0.7])
    assert math.fsum(prior.pmf) == pytest.approx(1.0, abs=2e-16)


def test_a_prior_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        Prior.uniform(2).pmf[0] = 1.0


def test_the_collision_estimate_is_unbiased_over_all_samples():
    pmf, size = np.array([0.6, 0.3, 0.1]), 4
    mean = plug_in = 0.0
    for sample in itertools.product(range(3), repeat=size):
        counts = np.bincount(sample, minlength=3)
        chance = float(np.prod(pmf[list(sample)]))
        mean += chance * estimate_collision(counts).value
        plug_in += chance * float(((counts / size) ** 2).sum())
    kappa = float((pmf**2).sum())
    assert mean == pytest.approx(kappa, abs=1e-12)
    assert plug_in == pytest.approx(kappa + (1 - kappa) / size, abs=1e-12)


def test_the_collision_interval_narrows_with_the_root_of_the_draws():
    few, many = (estimate_collision([n, n]) for n in (1000, 100_000))
    assert (few.value - few.low) / (many.value - many.low) == pytest.approx(10.0)
    assert few.trials == 2000


@pytest.mark.parametrize("counts", [[1], [0, 1], [2.5, 1], [-1, 4], [[1, 2]]])
def test_counts_without_two_whole_draws_are_refused(counts):
    with pytest.raises(ValueError, match="counts must be"):
        estimate_collision(counts)


def test_numpy_integers_number_the_records():
    assert Prior.uniform(np.int64(4)).support == (0, 1, 2, 3)

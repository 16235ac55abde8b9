"""What a release computes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.correlation.group import Blocks
from undertow.correlation.query import (
    AnyQuery,
    CountQuery,
    LinearQuery,
    LipschitzQuery,
)
from undertow.errors import ModelError


class Bits(Blocks):
    """Blocks of records with values 0 to 3."""

    value_range = (0.0, 3.0)


MODEL = Blocks([3])


def test_any_query_knows_only_its_change():
    query = AnyQuery(2.5)
    assert query.name == "any"
    assert query.sensitivity(MODEL) == 2.5
    assert query.clip is None
    assert not query.is_integer
    assert query.scope().is_every_pair


@pytest.mark.parametrize("change", [0, -1, math.inf, math.nan])
def test_the_change_of_any_query_is_positive(change):
    with pytest.raises(ValueError, match=r"change must be positive and finite"):
        AnyQuery(change)


def test_a_count_moves_by_one_in_whole_numbers():
    query = CountQuery([2, 0, 2])
    assert query.name == "count"
    assert query.states == frozenset({0, 2})
    assert query.sensitivity(MODEL) == 1.0
    assert query.is_integer
    assert query.scope().is_every_pair


def test_a_count_counts_something():
    with pytest.raises(ValueError, match=r"states must name at least one state"):
        CountQuery([])
    with pytest.raises(ValueError, match=r"state must be a whole number"):
        CountQuery([-1])
    with pytest.raises(ValueError, match=r"state must be a whole number"):
        CountQuery([0.5])


def test_a_clipped_sum_moves_by_the_width():
    query = LinearQuery(clip=(60, 80))
    assert query.name == "linear"
    assert query.sensitivity(MODEL) == 20.0
    assert query.clip == (60.0, 80.0)
    assert query.scope().interval == (60.0, 80.0)


def test_a_weighted_sum_moves_by_its_largest_weight_times_the_width():
    query = LinearQuery([1, -3, 2], clip=(0, 10))
    assert query.largest_weight == 3.0
    assert query.sensitivity(MODEL) == 30.0
    assert query.weights_for(3) == (1.0, -3.0, 2.0)


def test_one_weight_stands_for_all():
    assert LinearQuery(0.5).weights_for(3) == (0.5, 0.5, 0.5)
    assert LinearQuery(-0.5).largest_weight == 0.5


def test_weights_may_come_as_an_array():
    assert LinearQuery(np.array([1.0, 2.0])) == LinearQuery([1, 2])


def test_there_is_one_weight_for_each_record():
    with pytest.raises(ModelError, match=r"one for each of the 4 records, got 3"):
        LinearQuery([1, 2, 3]).weights_for(4)


def test_an_unclipped_sum_covers_secrets_within_its_gap():
    query = LinearQuery(gap=2)
    assert query.sensitivity(MODEL) == 2.0
    assert query.scope().gap == 2.0
    assert query.clip is None


def test_bounded_records_need_no_clip():
    assert LinearQuery(2.0).sensitivity(Bits([3])) == 6.0
    assert LinearQuery().scope().is_every_pair


def test_unbounded_records_need_a_clip_or_a_gap():
    with pytest.raises(ModelError, match=r"must be given clip=\(low, high\)"):
        LinearQuery().sensitivity(MODEL)


def test_clip_and_gap_exclude_each_other():
    with pytest.raises(ValueError, match=r"gap must be left out when clip is given"):
        LinearQuery(clip=(0, 1), gap=1)


@pytest.mark.parametrize("weights", [0, [0, 0], []])
def test_some_weight_is_not_zero(weights):
    with pytest.raises(ValueError, match=r"must not"):
        LinearQuery(weights)


@pytest.mark.parametrize("weights", [math.nan, [1, math.inf]])
def test_weights_are_finite(weights):
    with pytest.raises(ValueError, match=r"weight must be finite"):
        LinearQuery(weights)


@pytest.mark.parametrize("clip", [(1, 1), (2, 1), (-1e308, 1e308)])
def test_a_clip_interval_has_a_finite_width(clip):
    with pytest.raises(ValueError, match=r"clip must be \(low, high\)"):
        LinearQuery(clip=clip)
    with pytest.raises(ValueError, match=r"clip must be \(low, high\)"):
        LipschitzQuery(clip=clip)


@pytest.mark.parametrize("gap", [0, -2, math.inf])
def test_the_gap_of_a_sum_is_positive(gap):
    with pytest.raises(ValueError, match=r"gap must be positive"):
        LinearQuery(gap=gap)


def test_a_lipschitz_query_moves_by_constant_times_width():
    query = LipschitzQuery(0.5, clip=(0, 10))
    assert query.name == "lipschitz"
    assert query.sensitivity(MODEL) == 5.0
    assert query.clip == (0.0, 10.0)
    assert query.scope().summary == "both secrets in [0, 10]"
    assert not query.is_integer


@pytest.mark.parametrize("constant", [0, -1, math.inf])
def test_a_lipschitz_constant_is_positive(constant):
    with pytest.raises(ValueError, match=r"constant must be positive"):
        LipschitzQuery(constant, clip=(0, 1))


def test_queries_are_values():
    assert CountQuery([1]) == CountQuery()
    assert hash(LinearQuery([1, 2])) == hash(LinearQuery((1.0, 2.0)))
    assert LinearQuery(gap=1) != LinearQuery(clip=(0, 1))


def test_sensitivities_are_rounded_up():
    query = LinearQuery(0.7, clip=(0.1, 1.3))
    exact = Fraction(0.7) * (Fraction(1.3) - Fraction(0.1))
    assert Fraction(query.sensitivity(Blocks([2]))) >= exact
    median = LipschitzQuery(0.7, clip=(0.1, 1.3))
    assert Fraction(median.sensitivity(Blocks([2]))) >= exact

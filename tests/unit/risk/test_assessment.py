"""One release under one threat: no number beside the advantage contradicts it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.mechanisms import RandomizedResponse
from undertow.risk import (
    Channel,
    Prior,
    Threat,
    advantage,
    assess_risk,
    best_bound,
    channel_guarantee,
    success_rate,
)
from undertow.risk.families import exponential, finite, grr, oue

TABLE = Channel([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
laws = st.lists(
    st.lists(st.integers(1, 50), min_size=3, max_size=3), min_size=2, max_size=4
).map(lambda rows: Channel([np.array(row) / sum(row) for row in rows]))


@given(laws)
def test_the_guarantee_of_a_channel_holds_for_every_event_and_no_less_does(channel):
    epsilon, matrix = float(channel_guarantee(channel).epsilon), channel.matrix
    events = np.array([[i >> j & 1 for j in range(3)] for i in range(1, 8)])
    chances = matrix @ events.T
    worst = max(math.log(a / b) for column in chances.T for a in column for b in column)
    assert worst <= epsilon <= worst + 1e-11


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 20.0])
def test_the_guarantee_of_randomised_response_is_its_epsilon(epsilon):
    channel = Channel.from_mechanism(RandomizedResponse("abc", epsilon), "abc")
    known = float(channel_guarantee(channel).epsilon)
    assert known == pytest.approx(epsilon, rel=1e-6, abs=1e-11)


def test_a_channel_that_rules_a_record_out_has_no_pure_guarantee():
    assert channel_guarantee(Channel([[1, 0], [0.5, 0.5]])) is None


def test_an_output_that_no_record_has_is_left_out():
    apart = Channel([[0.75, 0, 0.25], [0.25, 0, 0.75]])
    alone = Channel([[0.75, 0.25], [0.25, 0.75]])
    assert channel_guarantee(apart) == channel_guarantee(alone)


def test_a_channel_that_says_nothing_is_nearly_perfectly_private():
    known = channel_guarantee(Channel([[0.5, 0.5], [0.5, 0.5]]))
    assert 0 <= float(known.epsilon) <= 1e-11


@settings(max_examples=40)
@given(laws)
def test_no_bound_that_applies_is_below_the_exact_advantage(channel):
    threat = Threat(Prior.uniform(channel.size))
    seen = assess_risk(channel, threat)
    assert seen.exact
    assert seen.risk == advantage(channel, threat)
    values = [row.value for row in seen.bounds if row.applies]
    # The exact advantage carries a margin for its rounding; bounds do not need it.
    assert min(values) >= seen.risk.value * (1 - 1e-9) - 1e-12


def test_the_success_is_that_of_the_engine():
    threat = Threat(Prior.uniform(3))
    seen = assess_risk(TABLE, threat)
    assert seen.success_reason == "blind guess plus advantage"
    assert seen.success == pytest.approx(success_rate(TABLE, threat).value, abs=1e-9)
    skewed = Threat(Prior(3, [0.5, 0.3, 0.2]))
    seen = assess_risk(TABLE, skewed)
    assert seen.success_reason == "the exact engine"
    assert seen.success == success_rate(TABLE, skewed).value
    assert seen.baseline == 0.5


def test_the_variation_of_a_channel_is_the_largest_between_two_rows():
    rows = TABLE.matrix
    brute = max(np.abs(a - b).sum() / 2 for a in rows for b in rows)
    seen = assess_risk(TABLE, Threat(Prior.uniform(3)))
    assert brute <= seen.variation <= brute + 1e-12


def test_bounds_of_a_channel_with_zeros_start_from_its_total_variation():
    channel, threat = Channel([[1, 0], [0.5, 0.5]]), Threat(Prior.uniform(2))
    seen = assess_risk(channel, threat)
    rows = {row.name: row.value for row in best_bound(seen.variation, threat).rows}
    for row in seen.bounds[:-2]:
        assert row.value == rows[row.name]


def test_a_family_is_assessed_at_its_parameter():
    threat = Threat(Prior.uniform(10))
    seen = assess_risk(grr(10), threat, parameter=1.0)
    assert seen.risk == grr(10).risk(1.0, threat)
    assert seen.release == "grr with epsilon 1"
    assert seen.bounds[-1].value == seen.risk.value
    larger = assess_risk(grr(10), threat, parameter=2.0)
    assert larger.variation > seen.variation


def test_of_a_family_given_as_a_function_the_table_is_read():
    threat = Threat(Prior.uniform(3))
    scores = [[0, 1], [1, 0], [0.5, 0.5]]
    family = exponential(scores)
    seen = assess_risk(family, threat, parameter=1.0)
    table = assess_risk(family.source(1.0, threat), threat)
    own = assess_risk(finite(lambda epsilon: TABLE, 3), threat, parameter=1.0)
    for one, other in ((seen, table), (own, assess_risk(TABLE, threat))):
        assert one.variation == other.variation
        values = [row.value for row in one.bounds]
        assert values[:-1] == [row.value for row in other.bounds[:-1]]
        # The two engines each have a margin of their own.
        assert values[-1] == pytest.approx(other.bounds[-1].value, rel=1e-9)


def test_outputs_too_many_to_list_leave_the_success_open():
    threat = Threat(Prior(20, np.arange(1, 21) / 210))
    seen = assess_risk(oue(20), threat, parameter=1.0)
    assert seen.success is None
    assert seen.success_reason


def test_a_parameter_belongs_to_a_family_alone():
    threat = Threat(Prior.uniform(3))
    with pytest.raises(TypeError, match="for a family and only then"):
        assess_risk(TABLE, threat, parameter=1.0)
    with pytest.raises(TypeError, match="for a family and only then"):
        assess_risk(grr(3), threat)
    with pytest.raises(TypeError, match="must be a Family or a Channel"):
        assess_risk(RandomizedResponse("abc", 1), threat)

"""What a given mechanism leaks: exact on tables, through its level elsewhere."""

from __future__ import annotations

import pytest

from undertow.correlation.finite.joint import JointTable
from undertow.correlation.group import Blocks
from undertow.correlation.leak import leakage_of, mechanism_level
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.query import CountQuery, LinearQuery
from undertow.errors import NotApplicable
from undertow.mechanisms import (
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])
ACTIVITY = MarkovChain([[0.882, 0.118], [0.305, 0.695]])


@pytest.mark.parametrize(
    "mechanism", [LaplaceMechanism(1), DiscreteLaplaceMechanism(1)]
)
def test_noise_on_a_table_is_computed_exactly(mechanism):
    found = leakage_of(FLATMATES, mechanism, query=CountQuery())
    assert found.value == pytest.approx(1.7761366, abs=1e-7)
    assert found.tight


def test_noise_on_a_chain_leaks_as_its_level_does():
    found = leakage_of(ACTIVITY, LaplaceMechanism(1), query=CountQuery())
    assert found.value == pytest.approx(3.47487338, abs=1e-7)


def test_a_response_of_every_record_has_its_own_level():
    assert mechanism_level(ACTIVITY, RandomizedResponse(2, "0.5")) == 0.5
    found = leakage_of(ACTIVITY, RandomizedResponse(2, "0.5"))
    assert found.value == pytest.approx(1.98584698, abs=1e-7)


def test_the_level_of_noise_is_sensitivity_over_scale():
    query = LinearQuery(2.0, clip=(0, 3))
    assert mechanism_level(Blocks([2]), LaplaceMechanism(12), query=query) == 0.5


def test_trap_c12_noise_that_is_not_purely_dp_is_refused():
    with pytest.raises(NotApplicable, match="without limit"):
        leakage_of(ACTIVITY, GaussianMechanism(1), query=CountQuery())


def test_noise_needs_a_query_and_one_answer():
    with pytest.raises(ValueError, match="query"):
        leakage_of(ACTIVITY, LaplaceMechanism(1))
    with pytest.raises(NotApplicable, match="coordinates"):
        leakage_of(ACTIVITY, LaplaceMechanism(1, dimension=2), query=CountQuery())

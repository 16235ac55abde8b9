"""Independent units with any dependence inside."""

import pytest

from undertow.correlation import (
    AnyQuery,
    Blocks,
    CorrelatedAccountant,
    CountQuery,
    IndependentUnits,
    MarkovChain,
    calibrate,
    leakage,
)
from undertow.errors import ModelError, NotApplicable

CHAIN = MarkovChain([[0.9, 0.1], [0.2, 0.8]], length=24)


@pytest.mark.parametrize("inside", [None, CHAIN, Blocks([7])], ids=["any", "markov", 7])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1, 1.0, 300.0])
def test_the_leakage_is_the_level_whatever_happens_inside(inside, epsilon):
    found = leakage(IndependentUnits(inside), epsilon)
    assert found.value == epsilon
    assert found.is_exact
    assert found.method == "whole-units"
    assert "whole units" in found.theorem
    assert found.unchecked == (
        "units are mutually independent: records depend inside of a unit only",
    )
    assert "all records of a unit" in found.mechanisms
    assert "those of the same unit included" in found.attackers


@pytest.mark.parametrize("target", [1e-9, 0.1, 1.0, 300.0])
def test_a_promise_is_kept_at_its_own_level(target):
    found = calibrate(IndependentUnits(CHAIN), target, query=AnyQuery(50))
    assert found.epsilon == found.achieves.value == target
    assert found.cost == 1
    assert found.noise_scale == pytest.approx(50 / target)


def test_levels_of_several_releases_add_up():
    book = CorrelatedAccountant(IndependentUnits(CHAIN), budget=1.0)
    for epsilon in (0.25, 0.5):
        book.spend(epsilon)
    assert book.spent().value == 0.75


def test_a_query_of_single_records_is_refused():
    # Its sensitivity is that of a record; a unit moves it further.
    for call in (leakage, calibrate):
        with pytest.raises(NotApplicable, match="got a count query of single records"):
            call(IndependentUnits(CHAIN), 1.0, query=CountQuery())


def test_the_model_says_what_is_inside():
    assert IndependentUnits().summary == (
        "independent units with any dependence inside of each"
    )
    assert CHAIN.summary in IndependentUnits(CHAIN).summary
    assert IndependentUnits(CHAIN).inside is CHAIN
    assert repr(IndependentUnits()) == "IndependentUnits()"
    assert "Markov chain" in repr(IndependentUnits(CHAIN))
    assert IndependentUnits().size is None
    with pytest.raises(ModelError, match="inside must be a model, got str"):
        IndependentUnits("markov")


def test_models_of_the_same_inside_are_equal():
    assert IndependentUnits(CHAIN) == IndependentUnits(CHAIN)
    assert len({IndependentUnits(), IndependentUnits(), IndependentUnits(CHAIN)}) == 2
    assert IndependentUnits() != IndependentUnits(CHAIN)
    assert IndependentUnits() != CHAIN

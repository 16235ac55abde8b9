import math

import numpy as np
import pytest

from support.markov_oracle import random_rows
from undertow.correlation.calibrate import what_if
from undertow.correlation.leak import leakage
from undertow.correlation.markov.chain import MarkovFamily
from undertow.correlation.markov.projective import (
    column_ratio,
    projective_diameter,
    projective_leakage,
    transition_ratio,
)
from undertow.errors import ModelError, NotApplicable


def test_every_description_covers_the_chains_it_describes():
    rng = np.random.default_rng(0)
    for _ in range(20):
        P = random_rows(rng, 3)
        exact = projective_diameter(P)
        for family in (
            MarkovFamily(gamma=transition_ratio(P)),
            MarkovFamily(omega=column_ratio(P)),
            MarkovFamily(diameter=exact),
            MarkovFamily(lower=P * 0.99, upper=P * 1.01),
        ):
            assert family.diameter >= exact - 1e-14


def test_the_leakage_of_a_class_is_the_closed_form_at_its_diameter():
    found = leakage(MarkovFamily(gamma=7.5, length=288), 0.1)
    expected = projective_leakage(0.1, 2 * math.log(7.5)).value
    assert found.value == pytest.approx(expected, rel=1e-14)
    assert found.method == "projective"
    assert leakage(MarkovFamily(gamma=7.5, length=2), 0.1).value == pytest.approx(0.2)


def test_a_class_without_a_length_has_no_general_bound_but_a_closed_one():
    found = leakage(MarkovFamily(omega=3.0), 0.1)
    assert found.method == "projective"
    assert [other.name for other in found.alternatives] == ["general"]


def test_a_class_is_described_in_words():
    family = MarkovFamily(gamma=7.5, length=731)
    assert family.summary == (
        "every Markov chain of 731 records with transition ratios up to 7.5"
    )
    assert "not fitted" in family.assumptions().unchecked[1]
    assert "column ratios" in repr(MarkovFamily(omega=2.0))
    assert "any number of" in MarkovFamily(diameter=1.0).summary
    assert family.largest_group == family.size == 731


def test_a_class_cannot_be_sampled():
    rng = np.random.default_rng(0)
    family = MarkovFamily(gamma=2.0, length=3)
    with pytest.raises(NotApplicable, match="needs one chain"):
        family.sample(1, rng=rng)
    with pytest.raises(NotApplicable, match="needs one chain"):
        family.sample_given({}, 1, rng=rng)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "exactly one"),
        ({"gamma": 2.0, "omega": 2.0}, "got 2 of them"),
        ({"lower": np.full((2, 2), 0.5)}, "given together"),
        ({"gamma": 0.5}, "at least 1"),
        ({"diameter": -1.0}, "non-negative"),
    ],
)
def test_a_class_is_described_once(given, words):
    with pytest.raises(ValueError, match=words):
        MarkovFamily(**given)


def test_an_interval_with_a_zero_is_refused():
    with pytest.raises(ModelError, match="lower must have positive entries"):
        MarkovFamily(lower=np.zeros((2, 2)), upper=np.ones((2, 2)))


def test_a_larger_ratio_than_assumed_asks_for_less_and_leaks_more():
    models = {"7.5": MarkovFamily(gamma=7.5), "10": MarkovFamily(gamma=10.0)}
    assumed, instead = what_if(1.0, models)
    assert instead.epsilon < assumed.epsilon
    assert leakage(models["7.5"], assumed.epsilon).value == pytest.approx(1.0)
    assert leakage(models["10"], assumed.epsilon).value > 1.3

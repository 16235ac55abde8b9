"""Pedigrees as models: reading, refusing, probabilities, sampling."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from undertow.correlation.model import Model
from undertow.correlation.pedigree import Pedigree
from undertow.correlation.pedigree.model import draw_rows
from undertow.errors import ModelError

RNG = np.random.default_rng(20240)


def all_databases(size: int) -> np.ndarray:
    return np.array(list(itertools.product(range(3), repeat=size)))


# A founder couple, two children, a spouse, a half-recorded child, an inbred one.
TANGLED = [None, None, (0, 1), (1, 0), (2, None), (2, 3)]


def test_probabilities_of_all_databases_sum_to_one():
    pedigree = Pedigree(TANGLED, founder=(0.2, 0.3, 0.5))
    total = np.exp(pedigree.log_prob(all_databases(6))).sum()
    assert total == pytest.approx(1, abs=1e-12)


def test_log_prob_is_the_product_of_the_laws():
    pedigree = Pedigree.nuclear(2, frequency=0.25)
    expected = 0.0625 * 0.375 * 0.5 * 0.5  # BB, Bb; two children Bb of BB and Bb
    assert float(pedigree.log_prob([2, 1, 1, 1])) == pytest.approx(math.log(expected))
    assert float(pedigree.log_prob([2, 2, 1, 2])) == -math.inf


def test_half_siblings_with_an_unrecorded_parent_do_not_share_it():
    pedigree = Pedigree([None, (0,), (0,)], frequency=0.5)
    pair = np.zeros((3, 3))
    for row in all_databases(3):
        pair[row[1], row[2]] += np.exp(pedigree.log_prob(row))
    # Given one parent the children are independent: sum over it of p(a) q(x|a) q(y|a).
    law, given = pedigree.founder_law, pedigree.inheritance(1)
    np.testing.assert_allclose(pair, np.einsum("a,ax,ay->xy", law, given, given))


def test_families_are_the_connected_components():
    pedigree = Pedigree.nuclear(2, frequency=0.5, families=2, unrelated=1)
    assert pedigree.families == ((0, 1, 2, 3), (4, 5, 6, 7), (8,))
    assert pedigree.largest_group == 4
    assert pedigree.size == 9
    assert pedigree.value_range == (0.0, 2.0)
    assert isinstance(pedigree, Model)


def test_parents_may_be_listed_after_their_children():
    pedigree = Pedigree([(1, 2), None, None], frequency=0.5)
    assert set(pedigree.order[:2]) == {1, 2}
    assert (pedigree.sample(50, rng=RNG)[:, 0] <= 2).all()


def test_equal_pedigrees_are_equal_and_survive_pickling():
    pedigree = Pedigree.nuclear(1, frequency=0.5)
    assert pickle.loads(pickle.dumps(pedigree)) == pedigree
    assert pedigree == Pedigree([None, (None, None), (0, 1)], frequency=0.5)
    assert pedigree != Pedigree.nuclear(1, frequency=0.25)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([], "at least one person"),
        ([(1, None), (0, None)], "acyclic, got person"),
        ([None, (0, 3), (1, None), (2, None)], "acyclic"),
        ([None, (1, 0)], "person 1 must not be their own parent"),
        ([None, (0, 7)], "among the 2 people, got 7; use None"),
        ([None, (0, 0)], "two people, got 0 twice"),
        ([None, None, None, (0, 1, 2)], "at most two, got 3"),
    ],
)
def test_what_is_no_pedigree_is_refused(parents, message):
    with pytest.raises(ModelError, match=message):
        Pedigree(parents, frequency=0.5)


def test_a_parent_that_is_no_index_is_refused():
    with pytest.raises(ValueError, match="parent must be a whole number"):
        Pedigree([None, (0, -1)], frequency=0.5)


def test_a_cycle_is_named_by_the_person_on_it():
    # Persons 0 and 1 are each other's parent; 2 only descends from them.
    with pytest.raises(ModelError, match=r"'ann'|'bob'"):
        Pedigree([(1,), (0,), (0,)], frequency=0.5, names=("ann", "bob", "eve"))


def test_the_founder_law_is_given_once():
    with pytest.raises(ModelError, match="left out when frequency"):
        Pedigree([None], frequency=0.5, founder=(1, 0, 0))
    with pytest.raises(ModelError, match="one for each of the 1"):
        Pedigree([None], frequency=0.5, names=("a", "b"))


def test_without_a_founder_law_nothing_can_be_sampled():
    pedigree = Pedigree.nuclear(2)
    assert "founder law not given" in pedigree.summary
    with pytest.raises(ModelError, match="give it frequency= or founder="):
        pedigree.sample(1, rng=RNG)


def test_summary_and_assumptions_say_what_is_trusted():
    given = Pedigree.nuclear(1, founder=(0.5, 0.25, 0.25))
    assert "founder law (0.5, 0.25, 0.25)" in given.summary
    assert "founders follow the given law" in given.assumptions().unchecked
    common = Pedigree.nuclear(1, frequency=0.3)
    assert "allele frequency 0.3" in common.summary
    assert "nobody is their own ancestor" in common.assumptions().checked
    assert len(Pedigree.nuclear(1).assumptions().unchecked) == 2


def test_samples_obey_mendel():
    rows = Pedigree(TANGLED, frequency=0.4).sample(300, rng=RNG)
    assert rows.shape == (300, 6)
    assert np.isfinite(Pedigree(TANGLED, frequency=0.4).log_prob(rows)).all()
    assert Pedigree(TANGLED, frequency=0.4).sample(0, rng=RNG).shape == (0, 6)


def test_conditional_samples_keep_what_is_known_and_obey_mendel():
    pedigree = Pedigree.nuclear(2, frequency=0.5, families=2)
    rows = pedigree.sample_given({2: 0, 5: 2}, 300, rng=RNG)
    assert (rows[:, 2] == 0).all()
    assert (rows[:, 5] == 2).all()
    assert (rows[:, :2] < 2).all()  # no parent of a bb child is BB
    assert np.isfinite(pedigree.log_prob(rows)).all()


def test_the_model_conditions_on_itself():
    drawn = Pedigree.nuclear(1, frequency=0.5).given({0: 2, 1: 2}).sample(5, rng=RNG)
    assert (drawn == 2).all()


def test_impossible_knowledge_is_refused():
    trio = Pedigree.nuclear(1, frequency=0.5)
    with pytest.raises(ModelError, match="able to occur together"):
        trio.sample_given({0: 2, 2: 0}, 3, rng=RNG)
    with pytest.raises(ValueError, match="genotype must be 0, 1 or 2"):
        trio.sample_given({0: 3}, 3, rng=RNG)
    with pytest.raises(ValueError, match="known record must be in"):
        trio.sample_given({5: 1}, 3, rng=RNG)


def test_a_long_line_is_conditioned_without_underflow():
    line = Pedigree([None] + [(i,) for i in range(799)], frequency=0.5)
    known = {i: 1 for i in range(0, 800, 2)}
    rows = line.sample_given(known, 3, rng=RNG)
    assert np.isfinite(line.log_prob(rows)).all()


def test_draws_never_land_on_weight_zero():
    weights = np.tile([[0.0, 1.0, 0.0]], (1000, 1))
    assert (draw_rows(weights, rng=RNG) == 1).all()


class TopDraw:
    """A generator whose draws are as large as rounding allows."""

    def random(self, size: int) -> np.ndarray:
        return np.full(size, np.nextafter(1.0, 0.0))


def test_the_largest_draw_stays_on_a_possible_value():
    weights = np.array([[0.1, 0.2, 0.0], [0.7, 0.1, 1e-320]])
    assert draw_rows(weights, rng=TopDraw())[0] == 1

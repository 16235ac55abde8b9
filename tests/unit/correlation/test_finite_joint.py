"""The joint table: reading, groups, conditioning and sampling."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.correlation.finite.joint import (
    JointTable,
    independent_groups,
    two_point_law,
)
from undertow.correlation.finite.laplace import LaplaceJointTheorem
from undertow.correlation.leak import leakage
from undertow.correlation.query import AnyQuery, CountQuery
from undertow.errors import ModelError

FLATMATES = [[0.45, 0.05], [0.05, 0.45]]


def xor_law() -> np.ndarray:
    pmf = np.zeros((2, 2, 2))
    for a in (0, 1):
        for b in (0, 1):
            pmf[a, b, a ^ b] = 0.25
    return pmf


def test_a_table_says_its_size_shape_and_range():
    joint = JointTable(FLATMATES, values=[10, 30])
    assert (joint.size, joint.shape, joint.value_range) == (2, (2, 2), (10, 30))
    assert joint.summary == "joint table of 2 records, 4 databases"


@pytest.mark.parametrize(
    "pmf", [[0.5, 0.4], [1.5, -0.5], [], 1.0, [np.nan, 1.0], [0.5, 0.5 + 1e-8]]
)
def test_what_is_no_law_is_refused(pmf):
    with pytest.raises(ModelError, match="pmf must"):
        JointTable(pmf)


def test_a_sum_within_1e_9_of_one_is_divided_out_and_said():
    joint = JointTable([0.5, 0.5 + 4e-10])
    assert joint.pmf.sum() == pytest.approx(1.0, abs=1e-15)
    assert "divided by their sum 1.0000000004" in joint.assumptions().checked[0]
    assert "divided" not in JointTable([0.5, 0.5]).assumptions().checked[0]


def test_a_table_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        JointTable(FLATMATES).pmf[0, 0] = 1.0


def test_too_many_cells_are_refused_with_models_that_can():
    with pytest.raises(ModelError, match="MarkovChain"):
        JointTable(np.broadcast_to(2.0**-25, (2,) * 25))


@pytest.mark.parametrize("values", [[[0, 1]], [0, 1, 2], [[0, 1], [0, np.inf]]])
def test_values_must_be_one_finite_number_per_state(values):
    with pytest.raises(ModelError, match="values must"):
        JointTable(FLATMATES, values)


def test_a_mapping_of_databases_becomes_a_table_with_its_numbers_as_values():
    joint = JointTable.from_mapping({(5, 0): 0.25, (3, 0): 0.25, (5, 2): 0.5})
    assert joint.values == ((3.0, 5.0), (0.0, 2.0))
    assert joint.pmf.tolist() == [[0.25, 0.0], [0.25, 0.5]]


@pytest.mark.parametrize("law", [{}, {(0,): 0.5, (0, 1): 0.5}, {(): 1.0}])
def test_a_mapping_needs_databases_of_one_length(law):
    with pytest.raises(ModelError, match="law must map"):
        JointTable.from_mapping(law)


def test_xor_is_one_group_although_pairs_are_independent():
    assert JointTable(xor_law()).independent_groups() == ((0, 1, 2),)


def test_interleaved_groups_are_found():
    pair, xor = np.array(FLATMATES), xor_law()
    pmf = np.einsum("ad,bce->abcde", pair, xor)
    joint = JointTable(pmf)
    assert joint.independent_groups() == ((0, 3), (1, 2, 4))
    assert joint.largest_group == 3


def test_independent_marginals_are_groups_of_one():
    joint = JointTable.independent([[0.3, 0.7], [0.2, 0.5, 0.3], [1.0]])
    assert joint.independent_groups() == ((0,), (1,), (2,))
    assert joint.shape == (2, 3, 1)


def test_a_weak_dependence_above_the_tolerance_is_not_missed():
    pmf = np.full((2, 2), 0.25) + 1e-10 * np.array([[1, -1], [-1, 1]])
    assert JointTable(pmf).independent_groups() == ((0, 1),)


def test_a_search_cut_short_keeps_records_together_and_says_so(monkeypatch):
    monkeypatch.setattr("undertow.correlation.finite.joint._CELLS_READ", 10)
    assert independent_groups(xor_law()) == (((0, 1, 2),), False)
    assert "cut short" in JointTable(xor_law()).assumptions().checked[1]


def test_conditioning_gives_the_law_of_the_others():
    joint = JointTable(np.arange(12).reshape(2, 3, 2) / 66)
    given = joint.given({1: 2})
    assert given.unknown == (0, 2)
    assert given.pmf == pytest.approx(np.array([[4, 5], [10, 11]]) / 30)


def test_conditioning_on_the_impossible_is_refused():
    joint = JointTable([[0.5, 0.5], [0.0, 0.0]])
    with pytest.raises(ModelError, match="positive probability"):
        joint.given({0: 1})
    with pytest.raises(ValueError, match=r"in 0\.\.1, got 2"):
        joint.given({0: 2})
    with pytest.raises(ValueError, match=r"in 0\.\.1, got 2"):
        joint.given({2: 0})


def test_a_margin_sums_the_others_out():
    joint = JointTable(np.arange(12).reshape(2, 3, 2) / 66, [[0, 1], [5, 6, 7], [0, 1]])
    margin = joint.margin([1])
    assert margin.values == ((5.0, 6.0, 7.0),)
    assert margin.pmf == pytest.approx(np.array([14, 22, 30]) / 66)


def test_samples_are_states_and_keep_what_is_known():
    joint = JointTable(FLATMATES, values=[10, 30])
    rng = np.random.default_rng(1)
    drawn = joint.sample(20_000, rng=rng)
    assert drawn.shape == (20_000, 2)
    # Four standard deviations: false alarm below 1e-4.
    assert np.mean(drawn[:, 0] == drawn[:, 1]) == pytest.approx(0.9, abs=0.0085)
    given = joint.sample_given({1: 0}, 20_000, rng=rng)
    assert (given[:, 1] == 0).all()
    assert np.mean(given[:, 0] == 0) == pytest.approx(0.9, abs=0.0085)
    assert joint.given({0: 1, 1: 1}).sample(3, rng=rng).tolist() == [[1, 1]] * 3


def test_two_point_laws_have_the_two_databases():
    joint = two_point_law((0, 0, 7), (1, 2, 7))
    assert joint.pmf[0, 0, 0] == joint.pmf[1, 1, 0] == 0.5
    assert joint.independent_groups() == ((0, 1), (2,))
    assert two_point_law((1, 2), (1, 2)).pmf.item() == 1.0
    with pytest.raises(ModelError, match="as many records"):
        two_point_law((0,), (0, 1))


def test_the_best_method_is_found_through_the_frame():
    joint = JointTable(FLATMATES)
    any_release = leakage(joint, 1.0, query=AnyQuery())
    assert any_release.method == "program"
    assert any_release.value == pytest.approx(1.7761365852607769, abs=1e-9)
    assert {other.name for other in any_release.alternatives} == {
        "laplace-exact",
        "general",
    }
    count = leakage(joint, 1.0, query=CountQuery(), method="laplace-exact")
    assert count.value == pytest.approx(1.7761365852607769, abs=1e-9)
    assert LaplaceJointTheorem.name == count.method


LIKELY_ALIKE = JointTable([[0.45, 0.05], [0.05, 0.45]])


@pytest.mark.parametrize("state", [True, np.True_, 1.0, 2, -1, "1"])
def test_known_states_are_whole_numbers_in_range(state):
    with pytest.raises(ValueError, match=r"must have a state in 0\.\.1"):
        LIKELY_ALIKE.given({0: state})
    assert LIKELY_ALIKE.given({0: np.int64(1)}).pmf.tolist() == pytest.approx(
        [0.1, 0.9]
    )

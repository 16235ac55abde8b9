import itertools
import math

import numpy as np
import pytest

from support.markov_oracle import random_rows
from undertow.correlation.markov.projective import (
    mixing_time,
    projective_diameter,
    projective_leakage,
    stationary_law,
    window_leakage,
)
from undertow.errors import ModelError, NotApplicable

ACTIVITY = [[0.882, 0.118], [0.305, 0.695]]


def distance(P, law, t):
    return np.abs(np.linalg.matrix_power(P, t) - law).sum(axis=1).max() / 2


@pytest.mark.parametrize("states", [2, 3, 6])
def test_the_stationary_law_is_the_left_eigenvector(states):
    P = random_rows(np.random.default_rng(states), states)
    values, vectors = np.linalg.eig(P.T)
    expected = np.real(vectors[:, np.argmax(np.real(values))])
    assert np.allclose(stationary_law(P), expected / expected.sum(), atol=1e-12)


def test_small_stationary_probabilities_keep_their_digits():
    up, down = 1e-150, 0.25
    law = stationary_law([[1 - up, up], [down, 1 - down]])
    assert law[1] == pytest.approx(up / down, rel=1e-14)


def test_rows_within_the_tolerance_have_a_stationary_law():
    law = stationary_law([[0.5, 0.5 - 8e-10], [0.25, 0.75 + 8e-10]])
    assert law.tolist() == pytest.approx([1 / 3, 2 / 3], abs=1e-8)


def test_a_law_that_floats_cannot_hold_is_refused():
    with pytest.raises(ModelError, match="that floats can hold, got transitions down"):
        stationary_law([[0.5, 0.5], [5e-324, 1.0]])
    with pytest.raises(ModelError, match="one square matrix"):
        stationary_law([np.eye(2)])


def test_transient_states_have_stationary_probability_zero():
    P = [[0.5, 0.5, 0.0], [0.0, 0.2, 0.8], [0.0, 0.6, 0.4]]
    assert stationary_law(P).tolist() == pytest.approx([0.0, 3 / 7, 4 / 7])
    assert stationary_law([[0.0, 1.0], [1.0, 0.0]]).tolist() == [0.5, 0.5]


def test_two_closed_classes_have_no_single_law():
    P = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]]
    with pytest.raises(ModelError, match="2 classes"):
        stationary_law(P)


@pytest.mark.parametrize("tolerance", [0.3, 0.01, 1e-6])
def test_the_mixing_time_is_the_first_step_within_tolerance(tolerance):
    rng = np.random.default_rng(1)
    for _ in range(10):
        P = random_rows(rng, int(rng.integers(2, 5)))
        law, time = stationary_law(P), mixing_time(P, tolerance)
        assert distance(P, law, time) <= tolerance
        assert time == 1 or distance(P, law, time - 1) > tolerance


def test_independent_records_mix_in_one_step():
    assert mixing_time([[0.2, 0.8], [0.2, 0.8]]) == 1


def test_slow_chains_are_done_by_doubling():
    flip = 1e-9
    time = mixing_time([[1 - flip, flip], [flip, 1 - flip]])
    assert time == pytest.approx(math.log(0.02) / math.log1p(-2 * flip), rel=1e-4)


def test_a_periodic_chain_never_mixes():
    with pytest.raises(NotApplicable, match="aperiodic"):
        mixing_time([[0.0, 1.0], [1.0, 0.0]])


def test_longer_windows_leak_more_up_to_the_closed_form():
    found = window_leakage(ACTIVITY, 0.5, lengths=range(1, 40))
    values = [bound.value for bound in found.values()]
    assert all(a <= b for a, b in itertools.pairwise(values))
    assert values[0] == pytest.approx(0.5)
    closed = projective_leakage(0.5, projective_diameter(ACTIVITY)).value
    assert values[-1] == pytest.approx(closed, rel=1e-3)
    assert values[-1] <= closed


def test_trap_c11a_the_mixing_time_does_not_end_the_growth_of_leakage():
    # Rows of P^25 agree to 1e-12, yet the bound still grows by much after it.
    P = [[1 - 1.4354e-12, 1.4354e-12], [0.671346, 1 - 0.671346]]
    time = mixing_time(P, 1e-12)
    assert time <= 26
    found = window_leakage(P, 1.596151, lengths=(time, 4 * time))
    assert found[4 * time].value > found[time].value + 1


def test_windows_take_time_varying_kernels_and_refuse_zeros():
    other = [[0.6, 0.4], [0.5, 0.5]]
    assert window_leakage([ACTIVITY, other], 0.5, lengths=[3]) == window_leakage(
        ACTIVITY, 0.5, lengths=[3]
    )
    with pytest.raises(NotApplicable, match="got a zero"):
        window_leakage([[0.5, 0.5], [1.0, 0.0]], 0.5, lengths=[3])

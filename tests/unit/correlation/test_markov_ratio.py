import itertools
import math

import numpy as np
import pytest

from support.markov_oracle import random_rows
from undertow.correlation.markov.projective import (
    column_ratio,
    log_diameter,
    projective_diameter,
    transition_ratio,
)
from undertow.errors import ModelError


def brute_diameter(P):
    s = len(P)
    return max(
        math.log(P[x, y] * P[z, t] / (P[x, t] * P[z, y]))
        for x, y, z, t in itertools.product(range(s), repeat=4)
    )


@pytest.mark.parametrize("states", [2, 3, 5])
def test_the_diameter_is_the_largest_cross_ratio(states):
    P = random_rows(np.random.default_rng(states), states)
    assert projective_diameter(P) == pytest.approx(brute_diameter(P), abs=1e-12)
    assert projective_diameter(P) >= brute_diameter(P) - 1e-15


def test_diameter_omega_and_gamma_are_ordered():
    rng = np.random.default_rng(0)
    for _ in range(50):
        P = random_rows(rng, int(rng.integers(2, 6)))
        omega, gamma = column_ratio(P), transition_ratio(P)
        assert 1 <= omega <= gamma
        assert projective_diameter(P) <= 2 * math.log(omega) + 1e-12


def test_the_diameter_ignores_scaling_transposition_and_labels():
    rng = np.random.default_rng(1)
    P = random_rows(rng, 4)
    scaled = P * rng.random(4) * rng.random(4)[:, None]
    logs = np.log(scaled)
    expected = projective_diameter(P)
    assert log_diameter(logs) == pytest.approx(expected, abs=1e-12)
    assert log_diameter(logs.T) == pytest.approx(expected, abs=1e-12)
    order = rng.permutation(4)
    assert projective_diameter(P[np.ix_(order, order)]) == pytest.approx(expected)


def test_equal_rows_have_diameter_zero_and_column_ratio_one():
    P = [[0.2, 0.3, 0.5]] * 3
    assert projective_diameter(P) == 0.0
    assert column_ratio(P) == 1.0
    assert transition_ratio(P) == pytest.approx(2.5)


def test_a_state_that_is_never_entered_plays_no_part():
    P = [[0.2, 0.8, 0.0], [0.4, 0.6, 0.0], [0.5, 0.5, 0.0]]
    assert projective_diameter(P) == pytest.approx(math.log(4.0))
    assert column_ratio(P) == pytest.approx(2.5)
    assert transition_ratio(P) == math.inf


def test_a_zero_makes_all_three_infinite():
    P = [[0.5, 0.5], [1.0, 0.0]]
    assert transition_ratio(P) == column_ratio(P) == projective_diameter(P) == math.inf


def test_ratios_are_rounded_up():
    from fractions import Fraction

    P = random_rows(np.random.default_rng(3), 3)
    exact = Fraction(float(P.max())) / Fraction(float(P.min()))
    assert Fraction(transition_ratio(P)) >= exact
    assert transition_ratio(P) == pytest.approx(float(exact), rel=1e-15)


def test_an_interval_matrix_covers_every_matrix_inside_it():
    rng = np.random.default_rng(4)
    P = random_rows(rng, 3, skew=0.2)
    low, high = P * 0.9, P * 1.1
    limit = projective_diameter(lower=low, upper=high)
    assert limit == pytest.approx(projective_diameter(P) + 2 * math.log(1.1 / 0.9))
    for _ in range(50):
        inside = rng.uniform(low, high)
        assert log_diameter(np.log(inside)) <= limit


def test_an_interval_of_width_zero_is_the_matrix():
    P = random_rows(np.random.default_rng(5), 4)
    assert projective_diameter(lower=P, upper=P) == pytest.approx(
        projective_diameter(P), abs=1e-12
    )


def test_an_interval_matrix_that_is_wide_everywhere_takes_different_columns():
    low, high = np.full((2, 2), 0.2), np.full((2, 2), 0.8)
    assert projective_diameter(lower=low, upper=high) == pytest.approx(2 * math.log(4))


def test_an_interval_with_a_zero_is_infinite():
    low, high = np.zeros((2, 2)), np.ones((2, 2))
    assert projective_diameter(lower=low, upper=high) == math.inf


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (np.full((2, 2), 0.6), np.full((2, 2), 0.7)),
        (np.full((2, 2), 0.3), np.full((2, 2), 0.4)),
        (np.full((2, 2), 0.5), np.array([[0.5, 0.5], [0.5, 0.4]])),
        (np.full((2, 2), 0.5), np.ones((3, 3))),
        (np.full((2, 2), -0.5), np.ones((2, 2))),
    ],
)
def test_intervals_that_enclose_no_transition_matrix_are_refused(low, high):
    with pytest.raises(ModelError, match=r"lower"):
        projective_diameter(lower=low, upper=high)


def test_a_diameter_needs_one_matrix_or_one_interval():
    for wrong in ({}, {"lower": np.eye(2)}, {"transition": np.eye(2), "lower": 1}):
        with pytest.raises(ValueError, match="transition, or both lower and upper"):
            projective_diameter(**wrong)
    with pytest.raises(ModelError, match="one square matrix"):
        projective_diameter([np.eye(2)])


def test_many_states_are_done_in_blocks(monkeypatch):
    from undertow.correlation.markov import projective as ratio

    P = random_rows(np.random.default_rng(6), 7)
    whole = projective_diameter(P)
    interval = projective_diameter(lower=P * 0.9, upper=P * 1.1)
    monkeypatch.setattr(ratio, "_BLOCK", 1)
    assert projective_diameter(P) == whole
    assert projective_diameter(lower=P * 0.9, upper=P * 1.1) == interval

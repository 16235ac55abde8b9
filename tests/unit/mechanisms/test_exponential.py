"""The exponential mechanism: law, exact pair loss, monotone scores, refusals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import log_softmax

from undertow.errors import MismatchError
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.mechanisms.selection import ExponentialMechanism
from undertow.privacy.loss import Pure
from undertow.spaces.metric import AbsoluteDifference, LpNorm, Scaled


@pytest.mark.parametrize("scores", [[0, 0, 0], [0, 1, 5], [-3.5, 1000, 999.5]])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_law_is_the_softmax_of_the_rated_scores(scores, monotone):
    mechanism = ExponentialMechanism(3, epsilon=2, sensitivity=4, monotone=monotone)
    rate = 0.5 if monotone else 0.25
    assert mechanism.rate == Fraction(rate)
    expected = log_softmax(rate * np.array(scores))
    assert mechanism.log_probabilities(scores) == pytest.approx(expected)
    assert mechanism.pmf(scores).sum() == pytest.approx(1)
    assert mechanism.cdf(2, scores) == pytest.approx(1)


def test_the_pair_loss_is_the_largest_log_ratio():
    mechanism = ExponentialMechanism(3, epsilon=2)
    grid = list(itertools.product([0, 1, 2], repeat=3))
    for x, y in itertools.product(grid, repeat=2):
        gaps = mechanism.log_probabilities(x) - mechanism.log_probabilities(y)
        claimed = mechanism.pair_loss(x, y).epsilon
        assert claimed == pytest.approx(np.abs(gaps).max(), abs=1e-12)


def test_the_pair_loss_stays_within_epsilon_at_the_sensitivity():
    mechanism = ExponentialMechanism(4, epsilon=1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = rng.normal(size=4)
        y = x + rng.uniform(-1, 1, size=4)
        assert mechanism.pair_loss(x, y).epsilon <= 1


def test_epsilon_is_the_supremum_over_score_vectors():
    # One hopeless candidate rises while the others fall.
    mechanism = ExponentialMechanism(3, epsilon=1)
    losses = [
        mechanism.pair_loss([-low, 0, 0], [-low - 1, 1, 1]).epsilon
        for low in (0, 10, 40, 100)
    ]
    assert losses == sorted(losses)
    assert 1 - 1e-15 < losses[-1] <= 1
    assert mechanism.loss() == Pure(1)


def test_monotone_scores_get_twice_the_rate_for_the_same_loss():
    mechanism = ExponentialMechanism(3, epsilon=1, monotone=True)
    losses = [
        mechanism.pair_loss([-low, 0, 0], [-low, 1, 1]).epsilon for low in (5, 50)
    ]
    assert losses[0] < losses[1] <= 1
    assert losses[1] == pytest.approx(1)
    with pytest.raises(MismatchError, match="use monotone=False"):
        mechanism.pair_loss([0, 0, 0], [1, -1, 0])


def test_a_common_shift_of_all_scores_costs_nothing():
    mechanism = ExponentialMechanism(3, epsilon=5)
    assert mechanism.pair_loss([0, 1, 2], [7, 8, 9]) == Pure(0)


@pytest.mark.parametrize(
    ("metric", "epsilon"),
    [
        (None, "1/2"),
        (LpNorm("inf"), "1/2"),
        (LpNorm(1), "1/2"),
        (Scaled(LpNorm(2), 2), "1/4"),
    ],
)
def test_the_loss_is_stated_per_unit_of_score(metric, epsilon):
    mechanism = ExponentialMechanism(3, epsilon=1, sensitivity=2)
    assert mechanism.loss(metric) == Pure(epsilon)


def test_a_metric_on_single_numbers_is_refused():
    with pytest.raises(MismatchError, match="vectors of 3 numbers"):
        ExponentialMechanism(3, epsilon=1).loss(AbsoluteDifference())


def test_one_draw_per_row_of_scores():
    mechanism = ExponentialMechanism("ab", epsilon=200)
    scores = [[0, 5], [5, 0], [0, 5]]
    draw = mechanism.sample(scores, source=SimulatedSource(2))
    assert draw.values.tolist() == ["b", "a", "b"]
    assert draw.simulated
    single = mechanism.sample([0, 5])
    assert single.values.tolist() == ["b"]
    assert not single.simulated


@pytest.mark.parametrize(
    "options", [{"epsilon": 0}, {"epsilon": 1, "sensitivity": 0}, {"epsilon": "inf"}]
)
def test_bad_budgets_are_refused(options):
    with pytest.raises(ValueError, match="must be positive and finite"):
        ExponentialMechanism(3, **options)


def test_bad_scores_are_refused():
    mechanism = ExponentialMechanism(3, epsilon=1)
    with pytest.raises(MismatchError, match="scores must have 3 coordinates"):
        mechanism.pmf([0, 1])
    with pytest.raises(ValueError, match="scores must be finite"):
        mechanism.pmf([0, 1, math.inf])
    with pytest.raises(ValueError, match="scores must be finite"):
        mechanism.pmf([0, 1, math.nan])

"""Report noisy max: three laws against independent routes, and their losses."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.mechanisms.selection import ExponentialMechanism, NoisyMax
from undertow.privacy.loss import Pure

NOISES = ["exponential", "gumbel", "laplace"]
SCORES = [[0, 0, 0, 0], [0, 1, 2.5, 2], [5, 0, 0, 4.75], [-20, 0, 3, 3]]


# Densities and distribution functions, written out.
EXPONENTIAL = (
    lambda z: math.exp(-z) if z >= 0 else 0.0,
    lambda z: -math.expm1(-z) if z >= 0 else 0.0,
)
LAPLACE = (
    lambda z: math.exp(-abs(z)) / 2,
    lambda z: math.exp(z) / 2 if z < 0 else 1 - math.exp(-z) / 2,
)
GUMBEL = (
    lambda z: math.exp(-z - math.exp(-z)),
    lambda z: math.exp(-math.exp(-z)),
)


def visiting_law(p):
    """Return the permute-and-flip law by going through all orders."""
    law = np.zeros(len(p))
    orders = list(itertools.permutations(range(len(p))))
    for order in orders:
        left = 1 / len(orders)
        for i in order:
            law[i] += left * p[i]
            left *= 1 - p[i]
    return law


def noisy_law(scores, noise):
    """Return the probability that each noisy score is largest, by quadrature."""
    law = []
    for i, score in enumerate(scores):
        others = [s for j, s in enumerate(scores) if j != i]

        def integrand(y, score=score, others=others):
            pdf, cdf = noise
            return pdf(y - score) * math.prod(cdf(y - s) for s in others)

        cuts = sorted({*scores, min(scores) - 30, max(scores) + 40})
        parts = [
            integrate.quad(integrand, a, b)[0] for a, b in itertools.pairwise(cuts)
        ]
        law.append(sum(parts))
    return np.array(law)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("noise", NOISES)
def test_the_law_sums_to_one(scores, noise):
    law = NoisyMax(4, epsilon=2, noise=noise).pmf(scores)
    assert law.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scores", SCORES)
def test_exponential_noise_is_permute_and_flip(scores):
    law = NoisyMax(4, epsilon=2).pmf(scores)
    p = np.exp(np.array(scores) - max(scores))
    assert law == pytest.approx(visiting_law(p), rel=1e-12)
    assert law == pytest.approx(noisy_law(scores, EXPONENTIAL), abs=1e-7)


@pytest.mark.parametrize("scores", SCORES)
def test_laplace_noise_has_the_law_of_an_independent_quadrature(scores):
    law = NoisyMax(4, epsilon=2, noise="laplace").pmf(scores)
    assert law == pytest.approx(noisy_law(scores, LAPLACE), abs=1e-7)


def test_two_candidates_under_laplace_noise_have_the_closed_form():
    # P[the one that is g behind wins] = e^-g (2 + g) / 4.
    for gap in (0.0, 0.5, 3.0, 50.0, 900.0):
        logs = NoisyMax(2, epsilon=2, noise="laplace").log_probabilities([0, gap])
        assert logs[0] == pytest.approx(math.log((2 + gap) / 4) - gap, rel=1e-12)


@pytest.mark.parametrize("scores", SCORES)
def test_gumbel_noise_is_the_exponential_mechanism(scores):
    law = NoisyMax(4, epsilon=2, noise="gumbel").pmf(scores)
    softmax = ExponentialMechanism(4, epsilon=2).pmf(scores)
    assert law.tolist() == softmax.tolist()
    assert law == pytest.approx(noisy_law(scores, GUMBEL), abs=1e-7)


@pytest.mark.parametrize("scores", SCORES)
def test_permute_and_flip_regrets_no_more_than_the_exponential_mechanism(scores):
    regret = max(scores) - np.array(scores)
    flip = NoisyMax(4, epsilon=2).pmf(scores) @ regret
    assert flip <= ExponentialMechanism(4, epsilon=2).pmf(scores) @ regret + 1e-12


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("size", [129, 300])
def test_many_candidates_keep_a_proper_law(noise, size):
    mechanism = NoisyMax(size, epsilon=2, noise=noise)
    even = mechanism.pmf(np.zeros(size))
    assert even == pytest.approx(np.full(size, 1 / size), rel=1e-10)
    assert mechanism.pmf(np.arange(size) / 7).sum() == pytest.approx(1, abs=1e-11)


def test_the_composite_rule_agrees_with_the_exact_one():
    # A hopeless candidate turns 128 candidates, integrated exactly, into 129.
    scores = np.linspace(0, 4, 128)
    exact = NoisyMax(128, epsilon=2).pmf(scores)
    composite = NoisyMax(129, epsilon=2).pmf([*scores, -700])
    assert composite[:128] == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("noise", NOISES)
def test_the_pair_loss_is_the_largest_log_ratio_and_within_epsilon(noise):
    mechanism = NoisyMax(3, epsilon=2, noise=noise)
    grid = list(itertools.product([0, 1, 2], repeat=3))
    for x, y in itertools.product(grid[::3], grid[::2]):
        gaps = mechanism.log_probabilities(x) - mechanism.log_probabilities(y)
        claimed = mechanism.pair_loss(x, y).epsilon
        assert claimed == pytest.approx(np.abs(gaps).max(), abs=1e-8)
        reach = max(abs(a - b) for a, b in zip(x, y, strict=True))
        assert claimed <= 2 * reach + 1e-8


@pytest.mark.parametrize("noise", NOISES)
def test_epsilon_is_the_supremum_over_score_vectors(noise):
    mechanism = NoisyMax(3, epsilon=1, noise=noise)
    far = mechanism.pair_loss([-300, 0, 0], [-301, 1, 1]).epsilon
    assert 0.98 < far <= 1 + 1e-6
    assert mechanism.loss() == Pure(1)


@pytest.mark.parametrize("noise", NOISES)
def test_monotone_scores_get_twice_the_rate_for_the_same_loss(noise):
    mechanism = NoisyMax(3, epsilon=1, noise=noise, monotone=True)
    assert mechanism.rate == 1
    grid = list(itertools.product([0, 1], repeat=3))
    base = (-4, 0, 1)
    for move in grid:
        moved = [a + b for a, b in zip(base, move, strict=True)]
        assert mechanism.pair_loss(base, moved).epsilon <= 1 + 1e-8


@pytest.mark.parametrize("noise", NOISES)
def test_a_clear_winner_is_drawn(noise):
    mechanism = NoisyMax("abc", epsilon=2, noise=noise)
    draw = mechanism.sample([[0, 900, 1], [900, 1, 0]], source=SimulatedSource(1))
    assert draw.values.tolist() == ["b", "a"]
    assert mechanism.pair_loss([0, 1, 2], [4, 5, 6]) == Pure(0)


def test_an_unknown_noise_is_refused():
    with pytest.raises(ValueError, match="noise must be one of"):
        NoisyMax(2, epsilon=1, noise="cauchy")

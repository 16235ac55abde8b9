"""No channel beats a bound: measured guarantees, the advantage by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from undertow.privacy import GDP, Approx, Pure, TradeOff, tradeoff_from_pmfs
from undertow.risk.bounds import (
    baseline_bound,
    calibrate_uniform_gaussian,
    calibrate_uniform_guess,
    calibrate_variation,
    composed_variation,
    exact_guess_bound,
    pairwise_variation_bound,
    prior_free_bound,
    program_bound,
    projected_variation_bound,
    success_bound,
    tradeoff_bound,
    uniform_gaussian_bound,
    uniform_guess_bound,
    uniform_guess_epsilon_bound,
    uniform_prior_bound,
    uniform_tradeoff_bound,
    variation_bound,
    variation_epsilon_bound,
    variation_matrix,
)

SLACK = 1e-13
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=60, deadline=None)


class MeasuredTradeOff(TradeOff):
    """The greatest trade-off function that a channel keeps, by its delta curve."""

    def __init__(self, channel):
        m = len(channel)
        self.pairs = [
            (channel[i], channel[j]) for i in range(m) for j in range(m) if i != j
        ]

    def __call__(self, alpha):
        values = [tradeoff_from_pmfs(p, q)(alpha) for p, q in self.pairs]
        return np.min(values, axis=0)

    def delta(self, epsilon):
        e = math.exp(epsilon)
        return max(float(np.maximum(0, q - e * p).sum()) for p, q in self.pairs)

    def inverse(self):
        return self


def random_case(seed):
    """Return channel, prior, hit sets and what is known, of every shape."""
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(2, 6)), int(rng.integers(2, 7))
    channel = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), size=m) + 1e-4
    if rng.random() < 0.3:  # randomized response, which attains several bounds
        keep = rng.uniform(1 / m, 1)
        channel = np.full((m, m), (1 - keep) / (m - 1))
        np.fill_diagonal(channel, keep)
    channel /= channel.sum(axis=1, keepdims=True)
    prior = rng.dirichlet(np.full(m, rng.choice([0.5, 2.0, 50.0])))
    if rng.random() < 0.3:
        prior = np.full(m, 1 / m)
    hits = np.eye(m, dtype=bool) | (rng.random((m, m)) < rng.choice([0.0, 0.4]))
    labels = rng.integers(0, m, size=m)
    return channel, prior / prior.sum(), hits, labels


def brute_advantage(channel, prior, hits, labels):
    gain = prior[:, None] * (channel - prior @ channel)
    return sum(
        max(gain[(labels == z) & row, theta].sum() for row in hits)
        for theta in range(channel.shape[1])
        for z in set(labels.tolist())
    )


def pure_epsilon(channel):
    logs = np.log(channel)
    return float((logs.max(axis=0) - logs.min(axis=0)).max()) * (1 + 1e-14)


def guarantees(channel, share):
    """Return the channel's pure, approximate and trade-off guarantees."""
    f, epsilon = MeasuredTradeOff(channel), pure_epsilon(channel)
    level = share * epsilon
    delta = min(1.0, f.delta(level) * (1 + 1e-14))
    return Pure(epsilon), Approx(level, delta), f


@few
@given(seeds, st.floats(0, 1))
def test_no_channel_beats_a_bound_for_any_knowledge(seed, share):
    channel, prior, hits, labels = random_case(seed)
    exact = brute_advantage(channel, prior, hits, labels) - SLACK
    pure, approx, f = guarantees(channel, share)
    kappa = float(prior @ prior)
    for guarantee in (pure, approx, f):
        bound = variation_bound(guarantee, collision=kappa)
        assert exact <= bound.value
    assert exact <= prior_free_bound(pure.epsilon).value
    assert exact <= pairwise_variation_bound(variation_matrix(channel), prior).value
    assert exact <= program_bound(pure.epsilon, prior, hits=hits, labels=labels).value
    if np.ptp(prior) == 0:
        assert exact <= uniform_prior_bound(pure.epsilon, len(prior)).value


@few
@given(seeds, st.floats(0, 1), st.booleans())
def test_no_channel_beats_a_bound_without_knowledge(seed, share, abstain):
    channel, prior, hits, _ = random_case(seed)
    if abstain:
        hits = np.vstack([hits, np.zeros(len(prior), dtype=bool)])
    exact = brute_advantage(channel, prior, hits, np.zeros(len(prior))) - SLACK
    pure, approx, f = guarantees(channel, share)
    masses = hits @ prior
    known = {
        "best_guess": min(1.0, masses.max()),
        "worst_guess": min(1.0, masses.min()),
        "collision": float(prior @ prior),
    }
    for guarantee in (pure, approx, f):
        assert exact <= tradeoff_bound(guarantee, **known).value
    for loss in (pure, approx):
        assert exact <= baseline_bound(loss, **known).value
    joint = prior[:, None] * channel
    success = sum(
        max(joint[row, theta].sum() for row in hits) for theta in range(len(channel.T))
    )
    for guarantee in (pure, approx, f):
        bound = success_bound(guarantee, best_guess=known["best_guess"])
        assert success - 1e-12 <= bound.value


@few
@given(seeds, st.floats(0, 1), st.booleans())
def test_no_channel_beats_a_bound_on_the_exact_record(seed, share, unlikely):
    channel, prior, _, _ = random_case(seed)
    if unlikely and len(prior) > 2:
        prior = np.append(prior[:-1] / prior[:-1].sum(), 0.0)
    m = len(prior)
    exact = brute_advantage(channel, prior, np.eye(m, dtype=bool), np.zeros(m)) - SLACK
    for guarantee in guarantees(channel, share):
        assert exact <= exact_guess_bound(guarantee, prior).value
    uniform = np.full(m, 1 / m)
    flat = brute_advantage(channel, uniform, np.eye(m, dtype=bool), np.zeros(m)) - SLACK
    pure, approx, f = guarantees(channel, share)
    assert flat <= uniform_tradeoff_bound(f, m).value
    for loss in (pure, approx):
        assert flat <= uniform_guess_bound(loss, m).value
        if flat > 0:
            delta = getattr(loss, "delta", 0.0)
            found = uniform_guess_epsilon_bound(flat, m, delta=delta).value
            assert found <= loss.epsilon
            found = variation_epsilon_bound(flat, delta=delta, collision=1 / m).value
            assert found <= loss.epsilon


@few
@given(seeds)
def test_binned_gaussian_noise_keeps_the_gaussian_bounds(seed):
    rng = np.random.default_rng(seed)
    m, mu = int(rng.integers(2, 6)), rng.uniform(0.1, 4)
    places = np.append([0.0, mu], rng.uniform(0, mu, size=m - 2))
    edges = np.linspace(-3, mu + 3, 24)
    cdf = np.hstack([np.zeros((m, 1)), ndtr(edges - places[:, None]), np.ones((m, 1))])
    channel, hits = np.diff(cdf), np.eye(m, dtype=bool)
    prior = rng.dirichlet(np.full(m, 2.0))
    exact = brute_advantage(channel, prior, hits, np.zeros(m)) - SLACK
    known = {"best_guess": prior.max(), "worst_guess": prior.min()}
    bound = tradeoff_bound(GDP(mu), **known, collision=float(prior @ prior))
    assert exact <= bound.value
    assert exact <= exact_guess_bound(GDP(mu), prior).value
    flat = brute_advantage(channel, np.full(m, 1 / m), hits, np.zeros(m)) - SLACK
    assert flat <= uniform_gaussian_bound(mu, m).value


@few
@given(seeds)
def test_a_mechanism_that_reads_a_label_keeps_the_projected_bound(seed):
    channel, prior, hits, labels = random_case(seed)
    read = np.random.default_rng(seed).integers(0, 2, size=len(prior))
    pure = Pure(pure_epsilon(channel))
    exact = brute_advantage(channel[read], prior, hits, labels) - SLACK
    assert exact <= projected_variation_bound(pure, prior, labels=read).value


@few
@given(st.floats(0.01, 8), st.lists(st.floats(0.01, 1), min_size=2, max_size=6))
def test_program_is_below_theorem_5_15_and_that_below_theorem_5_2(epsilon, weights):
    prior = np.array(weights) / sum(weights)
    program = program_bound(epsilon, prior).value
    knapsack = exact_guess_bound(Pure(epsilon), prior).value
    plain = variation_bound(Pure(epsilon), collision=prior @ prior, sharpen=False).value
    assert program <= knapsack + 1e-9
    assert knapsack <= plain + 1e-12


@few
@given(st.floats(0.01, 6), st.integers(2, 50))
def test_the_uniform_form_is_never_above_the_other_forms(mu, m):
    sharp = uniform_gaussian_bound(mu, m).value
    assert sharp <= uniform_gaussian_bound(mu, m, sharpen=False).value * (1 + 1e-12)
    known = {"best_guess": 1 / m, "worst_guess": 1 / m, "collision": 1 / m}
    assert sharp <= tradeoff_bound(GDP(mu), **known).value * (1 + 1e-12)


@few
@given(st.floats(1e-9, 0.99), st.integers(2, 10**6), st.floats(0, 0.5))
def test_calibrated_epsilon_is_safe_and_cannot_be_raised(target, m, collision):
    flat = calibrate_uniform_guess(target, m)
    if flat.value < math.inf:
        assert flat.achieves.value <= target
        raised = Pure(flat.value * (1 + 1e-9) + 1e-12)
        assert uniform_guess_bound(raised, m).value > target or flat.value > 20
    wide = calibrate_variation(target, collision=collision)
    if wide.value < math.inf:
        assert wide.achieves.value <= target
        raised = Pure(wide.value * (1 + 1e-9) + 1e-12)
        bound = variation_bound(raised, collision=collision)
        assert bound.value > target or wide.value > 20


@settings(max_examples=15, deadline=None)
@given(st.floats(1e-6, 0.89), st.integers(2, 100))
@pytest.mark.slow
def test_calibrated_mu_inverts_its_bound(target, m):
    answer = calibrate_uniform_gaussian(target, m)
    if answer.value < math.inf:
        assert answer.achieves.value <= target
        assert answer.achieves.value == pytest.approx(target, rel=1e-9)


@few
@given(st.floats(0, 10), st.floats(0.001, 2), st.integers(2, 40), st.floats(0, 0.2))
def test_every_bound_grows_with_epsilon(epsilon, step, m, delta):
    low, high = Approx(epsilon, delta), Approx(epsilon + step, delta)
    prior = np.arange(1, m + 1) / (m * (m + 1) / 2)
    known = {"best_guess": 0.4, "worst_guess": 0.1, "collision": 0.3}
    for bound in (
        lambda loss: variation_bound(loss, collision=0.3),
        lambda loss: baseline_bound(loss, **known),
        lambda loss: tradeoff_bound(loss, **known),
        lambda loss: exact_guess_bound(loss, prior),
        lambda loss: uniform_guess_bound(loss, m),
    ):
        assert bound(low).value <= bound(high).value * (1 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_adaptive_releases_keep_the_composed_total_variation(seed):
    rng = np.random.default_rng(seed)
    epsilon, steps = rng.uniform(0.1, 1.5), int(rng.integers(2, 5))
    laws = [np.ones(1), np.ones(1)]
    for _ in range(steps):  # each history picks its own epsilon-DP binary release
        free = rng.uniform(0.05, 0.95, size=len(laws[0]))
        low = np.maximum(free * math.exp(-epsilon), 1 - (1 - free) * math.exp(epsilon))
        high = np.minimum(free * math.exp(epsilon), 1 - (1 - free) * math.exp(-epsilon))
        other = np.where(rng.random(len(free)) < 0.5, low, high)
        chances = [free, other]
        laws = [
            np.concatenate([p * c, p * (1 - c)])
            for p, c in zip(laws, chances, strict=True)
        ]
    total = np.abs(laws[0] - laws[1]).sum() / 2
    assert total <= composed_variation([Pure(epsilon)] * steps) + 1e-12

"""Earlier bounds hold against the worst mechanism; conjectures are not refuted here."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from undertow.privacy import Approx, GaussianTradeOff, Pure, TradeOff
from undertow.risk.bounds import (
    SubsampledTradeOff,
    black_box_conjecture,
    curve_conjecture,
    exact_guess_bound,
    pair_knapsack,
    success_advantage_bound,
    success_bound,
    superseded_bound,
    symmetrised_channel,
    tradeoff_bound,
    tradeoff_from_callable,
    tradeoff_from_channel,
    tradeoff_from_curve,
    uniform_interval,
    uniform_interval_bound,
    uniform_tradeoff_bound,
    variation_bound,
)
from undertow.risk.selector import best_bound
from undertow.risk.threat import Prior, Threat

SLACK = 1e-9
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def worst_advantage(prior, epsilon, delta):
    """Return the largest advantage over all (epsilon, delta)-DP channels, exact guess.

    Variables: the chance of guess j on record x, and the excess of each ordered pair
    of records at each guess.
    """
    m, e = len(prior), math.exp(epsilon)
    pairs = [(x, y) for x in range(m) for y in range(m) if x != y]
    size = m * m + len(pairs) * m
    gain = np.zeros(size)
    for x in range(m):
        for j in range(m):
            gain[x * m + j] = prior[x] * ((x == j) - prior[j])
    rows = lil_matrix((len(pairs) * m + len(pairs), size))
    limits = np.zeros(len(pairs) * m + len(pairs))
    for number, (x, y) in enumerate(pairs):
        for j in range(m):
            row, excess = number * m + j, m * m + number * m + j
            rows[row, x * m + j], rows[row, y * m + j] = 1.0, -e
            rows[row, excess] = -1.0
            rows[len(pairs) * m + number, excess] = 1.0
        limits[len(pairs) * m + number] = delta
    stochastic = lil_matrix((m, size))
    for x in range(m):
        stochastic[x, x * m : (x + 1) * m] = 1.0
    answer = linprog(
        -gain, rows.tocsr(), limits, stochastic.tocsr(), np.ones(m), method="highs"
    )
    return -answer.fun


def random_prior(rng, m):
    return rng.dirichlet(np.full(m, rng.choice([0.5, 2.0, 50.0])))


def random_channel(rng):
    m, k = int(rng.integers(2, 6)), int(rng.integers(2, 7))
    channel = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), size=m) + 1e-4
    return channel / channel.sum(axis=1, keepdims=True)


def best_advantage(channel, prior):
    """Return the advantage of the best attack on the exact record."""
    mean = prior @ channel
    return float((prior[:, None] * (channel - mean)).max(axis=0).sum())


def test_the_program_gives_the_closed_form_for_a_uniform_prior():
    value = worst_advantage(np.full(3, 1 / 3), 0.5, 0.02)
    assert value == pytest.approx(0.1294921733, abs=1e-8)


@pytest.mark.parametrize(
    ("prior", "epsilon", "delta", "worst"),
    [
        ([0.35, 0.35] + [0.05] * 6, 1.0, 0.01, 0.1840614512),
        ([0.4829, 0.5171], 1.0, 0.05, 0.2442196661),
        ([0.2186, 0.1918, 0.1804, 0.2212, 0.188], 0.1, 0.05, 0.055560),
        ([0.4949, 0.5051], 0.1, 0.05, 0.048725),
    ],
    ids=["T-5.7", "T-5.8", "theorem 4", "theorem 5"],
)
def test_the_program_gives_the_worst_mechanisms_with_a_delta(
    prior, epsilon, delta, worst
):
    value = worst_advantage(np.array(prior), epsilon, delta)
    assert value == pytest.approx(worst, abs=2e-6)
    loss = Approx(epsilon, delta)
    assert value <= exact_guess_bound(loss, prior).value + SLACK
    assert value <= black_box_conjecture(loss, prior).value + SLACK


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_corrected_statements_hold_against_the_worst_mechanism(seed):
    rng = np.random.default_rng(seed)
    prior = random_prior(rng, int(rng.integers(2, 5)))
    epsilon = float(rng.choice([0.05, 0.3, 1.0, 3.0]))
    delta = float(rng.choice([0.0, 1e-3, 0.05, 0.15]))
    worst, loss = worst_advantage(prior, epsilon, delta), Approx(epsilon, delta)
    known = {
        "size": len(prior),
        "best_guess": float(prior.max()),
        "worst_guess": float(prior.min()),
        "collision": float(prior @ prior) * (1 - 1e-12),
    }
    for statement in ("theorem-4", "theorem-5"):
        bound = superseded_bound(loss, **known, statement=statement)
        assert worst <= bound.value + SLACK
    assert worst <= variation_bound(loss, collision=float(prior @ prior)).value + SLACK
    assert worst <= exact_guess_bound(loss, prior).value + SLACK
    assert worst <= black_box_conjecture(loss, prior).value + SLACK


def test_the_printed_theorem_7_is_exceeded_often():
    rng = np.random.default_rng(1)
    exceeded = 0
    for _ in range(12):
        prior = random_prior(rng, 3)
        worst = worst_advantage(prior, 0.5, 0.01)
        claim = black_box_conjecture(Approx(0.5, "0.01"), prior, printed=True).value
        exceeded += worst > claim + 1e-7
    assert exceeded >= 3


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_bounds_from_the_curve_of_a_channel_are_never_beaten(seed):
    rng = np.random.default_rng(seed)
    channel = random_channel(rng)
    m = len(channel)
    prior = random_prior(rng, m)
    f, attained = tradeoff_from_channel(channel), best_advantage(channel, prior)
    kappa = float(prior @ prior) * (1 - 1e-12)
    known = {"best_guess": float(prior.max()), "worst_guess": float(prior.min())}
    assert attained <= tradeoff_bound(f, **known, collision=kappa).value + 1e-12
    success = success_bound(f, best_guess=known["best_guess"])
    by_success = success_advantage_bound(success, worst_guess=known["worst_guess"])
    assert attained <= by_success.value + 1e-12
    assert attained <= exact_guess_bound(f, prior).value + 1e-12
    assert attained <= curve_conjecture(f, prior).value + 1e-12
    report = best_bound(f, Threat(Prior(m, prior.tolist())))
    assert attained <= report.value + 1e-12


@few
@given(seeds)
def test_the_uniform_curve_bound_is_never_beaten_and_never_below_the_fixed_point(seed):
    rng = np.random.default_rng(seed)
    channel = random_channel(rng)
    m = len(channel)
    f = tradeoff_from_channel(channel)
    attained = best_advantage(channel, np.full(m, 1 / m))
    with np.errstate(divide="ignore"):
        ratio = np.log(channel[:, None] / channel[None])
    loss = Pure(float(ratio.max()) * (1 + 1e-12))
    plain = uniform_interval_bound(f, m)
    narrow = uniform_interval_bound(f, m, loss=loss)
    assert attained <= narrow.value + 1e-12 <= plain.value + 2e-12
    assert uniform_tradeoff_bound(f, m).value <= plain.value + 1e-12


@few
@given(seeds)
def test_lemma_3_holds_the_false_positive_rate_of_a_symmetric_channel(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 6))
    channel = rng.dirichlet(np.ones(m), size=m) + 1e-3
    channel /= channel.sum(axis=1, keepdims=True)
    level = float(rng.uniform(0, np.log(channel[:, None] / channel[None]).max()))
    excess = np.maximum(0, channel[:, None] - math.exp(level) * channel[None])
    loss = Approx(level, min(1.0, float(excess.sum(axis=2).max()) * (1 + 1e-12)))
    rate = symmetrised_channel(channel)[0, 1]
    low, high = uniform_interval(m, loss=loss)
    assert low <= rate <= high


@few
@given(seeds)
def test_the_fast_knapsack_is_the_greedy_one(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 9))
    prior = random_prior(rng, m)
    if rng.random() < 0.3:
        prior = np.full(m, 1 / m)
    capacity = float(rng.uniform(0, 1))
    total = float(rng.uniform(0, 1.2)) * m * (m - 1) * capacity
    products = sorted((prior[i] * prior[j] for i, j in combinations(range(m), 2)))
    value, room = 0.0, total
    for product in reversed(products):
        taken = min(room, 2 * capacity)
        value, room = value + taken * product, room - taken
    fast = pair_knapsack(prior, capacity=capacity, total=total)
    assert fast == pytest.approx(value, rel=1e-11, abs=1e-14)
    assert fast >= value * (1 - 1e-15)


@few
@given(seeds)
def test_lines_of_a_privacy_curve_stay_below_it(seed):
    rng = np.random.default_rng(seed)
    f = tradeoff_from_channel(random_channel(rng))
    grid, reach = np.linspace(0, 1, 301), float(rng.uniform(0.1, 9))

    def deltas(levels):
        orders = (f, f.inverse())
        return [max(g.delta(float(e)) for g in orders) for e in levels]

    below = tradeoff_from_curve(deltas, reach=reach, knots=int(rng.integers(2, 30)))
    assert np.all(below(grid) <= f(grid) + 1e-15)
    assert np.all(below(grid) <= f.inverse()(grid) + 1e-15)
    assert below.total_variation() >= f.total_variation()


@few
@given(st.floats(0.05, 6), st.integers(8, 200))
def test_a_callable_is_never_overstated(mu, knots):
    f, grid = GaussianTradeOff(mu), np.linspace(0, 1, 1001)
    below = tradeoff_from_callable(f, knots=knots)
    assert np.all(below(grid) <= f(grid) + 1e-15)
    assert below.total_variation() >= f.total_variation() - 1e-15


@settings(max_examples=20, deadline=None)
@given(st.floats(0.2, 4), st.floats(0.01, 1), st.floats(0, 3))
def test_the_curve_of_one_subsampled_step_is_its_supremum(mu, rate, epsilon):
    f = SubsampledTradeOff(mu, rate)
    grid = np.concatenate([np.geomspace(1e-12, 0.5, 2000), np.linspace(0.5, 1, 1000)])
    for side in (f, f.inverse()):
        assert isinstance(side, TradeOff)
        found = float(np.max(1 - side(grid) - math.exp(epsilon) * grid))
        assert side.delta(epsilon) >= found - 1e-14
        assert side.delta(epsilon) == pytest.approx(max(0.0, found), abs=5e-5)

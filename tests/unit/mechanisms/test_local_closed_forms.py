"""Closed forms of the local protocols against the sum over every output."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.mechanisms.local import (
    calibrate_grr,
    calibrate_subset,
    grr_advantage,
    grr_level,
    grr_success,
    grr_variation,
    hash_buckets,
    hashing_advantage,
    hashing_success,
    hashing_variation,
    oue_advantage,
    oue_variation,
    she_advantage,
    she_success,
    she_variation,
    subset_advantage,
    subset_breakpoints,
    subset_level,
    subset_size,
    subset_success,
    subset_variation,
    sue_advantage,
    sue_variation,
    the_advantage,
    the_threshold,
    the_variation,
    unary_advantage,
    unary_success,
)

PRIORS = {
    "uniform": None,
    "skew": np.array([0.4, 0.05, 0.25, 0.1, 0.2]),
    "with a zero": np.array([0.0, 0.5, 0.3, 0.2, 0.0]),
    "ties": np.array([0.1, 0.1, 0.3, 0.3, 0.2]),
}
M = 5


def brute_advantage(channel, prior, knowledge="none", success=None):
    """Maximise the advantage output by output, straight from its definition."""
    m = len(channel)
    pi = np.full(m, 1 / m) if prior is None else np.asarray(prior)
    gain = pi[:, None] * (channel - pi @ channel)  # [truth, output]
    if knowledge == "full":
        return float(np.maximum(gain, 0).sum())
    wins = np.eye(m) if success is None else np.asarray(success, float)
    return float((wins @ gain).max(axis=0).sum())


def grr_channel(m, epsilon):
    weights = np.ones((m, m)) + np.diag([math.expm1(epsilon)] * m)
    return weights / weights.sum(axis=1, keepdims=True)


def unary_channel(m, p, q):
    outputs = np.array(list(itertools.product([0, 1], repeat=m)))
    base = np.where(outputs, q, 1 - q)
    rows = []
    for x in range(m):
        bits = base.copy()
        bits[:, x] = np.where(outputs[:, x], p, 1 - p)
        rows.append(bits.prod(axis=1))
    return np.array(rows)


def subset_channel(m, epsilon, size):
    sets = list(itertools.combinations(range(m), size))
    weights = np.array(
        [[math.exp(epsilon) if x in s else 1.0 for s in sets] for x in range(m)]
    )
    return weights / weights.sum(axis=1, keepdims=True)


def hashing_channel(m, epsilon, g):
    inner = grr_channel(g, epsilon)
    hashes = list(itertools.product(range(g), repeat=m))
    return np.array(
        [np.concatenate([inner[h[x]] for h in hashes]) / len(hashes) for x in range(m)]
    )


def largest_variation(channel):
    return 0.5 * np.abs(channel[:, None] - channel[None, :]).sum(axis=2).max()


@pytest.mark.parametrize("knowledge", ["none", "full"])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_closed_forms_equal_the_sum_over_all_outputs(epsilon, prior, knowledge):
    known = {"prior": prior, "knowledge": knowledge}
    expected = brute_advantage(grr_channel(M, epsilon), prior, knowledge)
    assert grr_advantage(M, epsilon, prior=prior) == pytest.approx(expected, abs=1e-11)
    q = 1 / (1 + math.exp(epsilon))
    expected = brute_advantage(unary_channel(M, 0.5, q), prior, knowledge)
    assert oue_advantage(M, epsilon, **known) == pytest.approx(expected, abs=1e-11)
    p = 1 / (1 + math.exp(-epsilon / 2))
    expected = brute_advantage(unary_channel(M, p, 1 - p), prior, knowledge)
    assert sue_advantage(M, epsilon, **known) == pytest.approx(expected, abs=1e-11)
    for size in range(1, M):
        expected = brute_advantage(subset_channel(M, epsilon, size), prior, knowledge)
        found = subset_advantage(M, epsilon, subset=size, **known)
        assert found == pytest.approx(expected, abs=1e-11)
    for g in (2, 3):
        expected = brute_advantage(hashing_channel(M, epsilon, g), prior, knowledge)
        found = hashing_advantage(M, epsilon, buckets=g, **known)
        assert found == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("knowledge", ["none", "full"])
def test_general_unary_and_threshold_bits_equal_the_sum_over_outputs(knowledge):
    prior = PRIORS["skew"]
    for p, q in [(0.9, 0.0), (1.0, 0.3), (0.6, 0.6), (0.7, 0.55)]:
        expected = brute_advantage(unary_channel(M, p, q), prior, knowledge)
        found = unary_advantage(M, keep=p, noise=q, prior=prior, knowledge=knowledge)
        assert found == pytest.approx(expected, abs=1e-11)
    p, q = 1 - math.exp(2 * (0.7 - 1) / 2) / 2, math.exp(-2 * 0.7 / 2) / 2
    expected = brute_advantage(unary_channel(M, p, q), prior, knowledge)
    found = the_advantage(M, 2.0, threshold=0.7, prior=prior, knowledge=knowledge)
    assert found == pytest.approx(expected, abs=1e-11)


@given(
    st.lists(st.integers(0, 9), min_size=3, max_size=5).filter(any),
    st.floats(0.01, 6.0),
    st.sampled_from(["none", "full"]),
)
@settings(max_examples=40, deadline=None)
def test_closed_forms_hold_for_any_prior(weights, epsilon, knowledge):
    prior = np.array(weights) / sum(weights)
    m = len(prior)
    known = {"prior": prior, "knowledge": knowledge}
    size = subset_size(m, epsilon)
    cases = [
        (grr_channel(m, epsilon), grr_advantage(m, epsilon, prior=prior)),
        (subset_channel(m, epsilon, size), subset_advantage(m, epsilon, **known)),
        (
            unary_channel(m, 0.5, 1 / (1 + math.exp(epsilon))),
            oue_advantage(m, epsilon, **known),
        ),
    ]
    for channel, found in cases:
        assert found == pytest.approx(
            brute_advantage(channel, prior, knowledge), abs=1e-11
        )


@pytest.mark.parametrize("seed", range(40))
def test_grr_advantage_holds_for_any_success_sets(seed):
    rng = np.random.default_rng(seed)
    m, epsilon = int(rng.integers(2, 7)), float(rng.uniform(0.1, 5.0))
    wins = (rng.random((m, m)) < 0.4) | np.eye(m, dtype=bool)
    prior = rng.dirichlet(np.ones(m))
    expected = brute_advantage(grr_channel(m, epsilon), prior, success=wins)
    found = grr_advantage(m, epsilon, prior=prior, success=wins)
    assert found == pytest.approx(expected, abs=1e-11)


def test_success_sets_that_never_win_on_a_truth_are_refused():
    with pytest.raises(ValueError, match="some guess wins on each truth"):
        grr_advantage(2, 1.0, success=[[1, 0], [1, 0]])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_total_variations_equal_the_largest_over_pairs(epsilon):
    q, p = 1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon / 2))
    t = the_threshold(epsilon)
    bits = 1 - math.exp(epsilon * (t - 1) / 2) / 2, math.exp(-epsilon * t / 2) / 2
    cases = [
        (grr_channel(M, epsilon), grr_variation(M, epsilon)),
        (unary_channel(M, 0.5, q), oue_variation(epsilon)),
        (unary_channel(M, p, 1 - p), sue_variation(epsilon)),
        (unary_channel(M, *bits), the_variation(epsilon)),
        (subset_channel(M, epsilon, 2), subset_variation(M, epsilon, subset=2)),
        (hashing_channel(M, epsilon, 3), hashing_variation(epsilon, buckets=3)),
    ]
    for channel, found in cases:
        assert found == pytest.approx(largest_variation(channel), abs=1e-11)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 6.0])
def test_the_variation_of_real_histograms_equals_the_integral(epsilon):
    b = 2 / epsilon
    nodes, weights = np.polynomial.legendre.leggauss(40)
    nodes, weights = (nodes + 1) / 2, weights / 2

    def excess(y, z):
        first = np.exp(-(np.abs(y - 1) + np.abs(z)) / b)
        second = np.exp(-(np.abs(y) + np.abs(z - 1)) / b)
        return (first - second) / (4 * b * b)

    # The excess is positive where y > z; both are as good as their cut to [0, 1], and
    # the density beyond an end adds up to b times its value there.
    y, v = np.meshgrid(nodes, nodes, indexing="ij")
    inner = (weights @ (excess(y, y * v) * y)) @ weights
    sides = b * (excess(1.0, nodes) + excess(nodes, 0.0)) @ weights
    corner = b * b * excess(1.0, 0.0)
    assert she_variation(epsilon) == pytest.approx(inner + sides + corner, abs=1e-11)


@pytest.mark.parametrize("m", [2, 3, 10, 300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
def test_the_success_on_real_histograms_equals_the_integral(m, epsilon):
    with mpmath.workdps(30):
        b, a = mpmath.mpf(2) / epsilon, mpmath.exp(-mpmath.mpf(epsilon) / 2) / 2
        cuts = [0, *(mpmath.mpf(k) / 16 for k in range(1, 16)), 1]
        middle = mpmath.quad(
            lambda t: (
                mpmath.exp(-(1 - t) / b)
                / (2 * b)
                * (1 - mpmath.exp(-t / b) / 2) ** (m - 1)
            ),
            cuts,
        )
        ends = (1 - (1 - a) ** m) / (2 * m * a) + a * mpmath.mpf(2) ** (1 - m) / m
    assert she_success(m, epsilon) == pytest.approx(float(middle + ends), abs=3e-12)


def test_two_categories_have_half_the_total_variation():
    for epsilon in (0.2, 1.0, 7.0):
        assert 2 * she_advantage(2, epsilon) == pytest.approx(she_variation(epsilon))
        assert 2 * oue_advantage(2, epsilon) == pytest.approx(oue_variation(epsilon))
        assert 2 * sue_advantage(2, epsilon) == pytest.approx(sue_variation(epsilon))
        assert grr_advantage(2, epsilon) == pytest.approx(math.tanh(epsilon / 2) / 2)


@pytest.mark.parametrize("m", [2, 7, 3052])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0, 9.0])
def test_the_simple_attack_is_optimal_under_the_uniform_prior(m, epsilon):
    g, t = hash_buckets(epsilon), the_threshold(epsilon)
    p, q = 1 - math.exp(epsilon * (t - 1) / 2) / 2, math.exp(-epsilon * t / 2) / 2
    low = 1 / (1 + math.exp(epsilon))
    pairs = [
        (grr_success(m, epsilon), grr_advantage(m, epsilon)),
        (subset_success(m, epsilon), subset_advantage(m, epsilon)),
        (unary_success(m, keep=0.5, noise=low), oue_advantage(m, epsilon)),
        (unary_success(m, keep=p, noise=q), the_advantage(m, epsilon)),
        (
            hashing_success(m, epsilon, buckets=g),
            hashing_advantage(m, epsilon, buckets=g),
        ),
    ]
    for success, advantage in pairs:
        assert success - 1 / m == pytest.approx(advantage, abs=1e-11)


def test_size_one_is_generalised_response_and_order_does_not_matter():
    prior = PRIORS["skew"]
    for epsilon in (0.5, 3.0):
        assert subset_advantage(M, epsilon, subset=1, prior=prior) == pytest.approx(
            grr_advantage(M, epsilon, prior=prior)
        )
        assert oue_advantage(M, epsilon, prior=prior[::-1]) == pytest.approx(
            oue_advantage(M, epsilon, prior=prior)
        )


@pytest.mark.parametrize("m", [2, 3052, 10**6])
def test_nothing_overflows_at_enormous_or_tiny_levels(m):
    for epsilon in (0.0, 1e-12, 700.0, 710.0, 1e4, math.inf):
        far = epsilon >= 700
        assert grr_advantage(m, epsilon) == pytest.approx((1 - 1 / m) * far, abs=1e-9)
        assert oue_advantage(m, epsilon) == pytest.approx(
            (m - 1) / (2 * m) * far, abs=1e-9
        )
        assert sue_advantage(m, epsilon) == pytest.approx((1 - 1 / m) * far, abs=1e-9)
        assert subset_advantage(m, epsilon) == pytest.approx(
            (1 - 1 / m) * far, abs=1e-9
        )
        assert she_advantage(m, epsilon) == pytest.approx(
            (1 - 1 / m) * far, abs=2e-15 * m + 1e-12
        )
        if epsilon < math.inf:
            g = hash_buckets(epsilon)
            found = hashing_advantage(m, epsilon, buckets=g)
            assert found == pytest.approx((m - 1) / (2 * m) * far, abs=1e-9)
        if 0 < epsilon < math.inf:
            assert the_advantage(m, epsilon) <= 1.0


def test_small_levels_keep_their_digits():
    for formula in (grr_advantage, oue_advantage, sue_advantage, subset_advantage):
        small, double = formula(50, 1e-9), formula(50, 2e-9)
        assert double == pytest.approx(2 * small, rel=1e-8)
        assert small > 0


@given(st.integers(2, 60), st.floats(1e-6, 30.0), st.floats(1.0, 1.5))
@settings(max_examples=60, deadline=None)
def test_monotone_families_never_lose_advantage(m, epsilon, factor):
    for formula in (grr_advantage, oue_advantage, sue_advantage):
        assert formula(m, epsilon * factor) >= formula(m, epsilon) * (1 - 1e-11)
    assert she_success(m, epsilon * factor) >= she_success(m, epsilon) - 1e-12
    # Without knowledge and with the uniform prior the jumps of the subset go upwards.
    assert subset_advantage(m, epsilon * factor) >= subset_advantage(m, epsilon) * (
        1 - 1e-11
    )


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("m", [2, 10, 3052])
@pytest.mark.parametrize("prior", [None, "skew"])
def test_calibrated_response_returns_the_level_it_started_from(m, epsilon, prior):
    masses = None
    if prior:
        masses = np.arange(1.0, m + 1)
        masses /= masses.sum()
    target = grr_advantage(m, epsilon, prior=masses)
    found = calibrate_grr(m, target, prior=masses)
    slack = max(1e-9, 1e-11 * math.exp(epsilon))
    assert found.value == pytest.approx(epsilon, rel=slack)
    assert found.achieves.value <= target


@given(st.integers(2, 500), st.floats(0.0, 1.0))
@settings(max_examples=150, deadline=None)
def test_calibrated_response_never_passes_its_target(m, target):
    found = calibrate_grr(m, target)
    assert found.achieves.value <= target or found.value == 0.0
    assert (found.value == math.inf) == (Fraction(target) >= Fraction(m - 1, m))


@given(
    st.integers(2, 200),
    st.floats(0.0, 1.0),
    st.sampled_from(["none", "full"]),
    st.sampled_from(["safe", "largest"]),
)
@settings(max_examples=200, deadline=None)
def test_calibrated_subsets_never_pass_their_target(m, target, knowledge, choose):
    found = calibrate_subset(m, target, knowledge=knowledge, choose=choose)
    assert found.achieves.value <= target or found.value == 0.0
    # Within the guard of a breakpoint the size of the rule may differ by one.
    if 0.01 < found.value < math.inf:
        assert subset_size(m, found.value) == found.subset


@pytest.mark.parametrize("m", [7, 10, 101])
@pytest.mark.parametrize("target", [0.02, 0.11, 0.25, 0.31, 0.6])
@pytest.mark.parametrize("knowledge", ["none", "full"])
def test_calibrated_subsets_agree_with_a_fine_scan(m, target, knowledge):
    grid = np.arange(1, 9000) / 1000
    risk = np.array([subset_advantage(m, e, knowledge=knowledge) for e in grid])
    above = np.flatnonzero(risk > target)
    safe = calibrate_subset(m, target, knowledge=knowledge).value
    largest = calibrate_subset(m, target, knowledge=knowledge, choose="largest").value
    assert grid[above[0]] - 0.001 <= safe + 1e-6 <= grid[above[0]] + 1e-5
    assert abs(grid[np.flatnonzero(risk <= target)[-1]] - largest) <= 0.0011
    assert safe <= largest


def test_a_prior_without_a_closed_inverse_is_refused():
    with pytest.raises(ValueError, match="no closed inverse"):
        calibrate_subset(3, 0.1, prior=[0.5, 0.3, 0.2])
    found = calibrate_subset(3, 0.1, prior=[0.5, 0.3, 0.2], knowledge="full")
    assert found.achieves.value == pytest.approx(0.1, rel=1e-6)


def test_breakpoints_are_where_the_size_drops():
    for m in (9, 10, 1000):
        for level, size in zip(
            subset_breakpoints(m), range(m // 2, 1, -1), strict=True
        ):
            assert subset_size(m, float(level)) == size
            assert subset_size(m, float(level) + 1e-6) == size - 1


def test_buckets_and_sizes_follow_their_rule():
    assert [hash_buckets(math.log(k)) for k in (2, 3, 7, 20)] == [3, 4, 8, 21]
    assert hash_buckets(1.0, rule="nearest") == 4
    assert hash_buckets(1e4) > 10**4342
    assert subset_size(3052, 6.0) == 7
    assert subset_size(3052, 6.0, rule="nearest") == 8
    with pytest.raises(ValueError, match="must be finite"):
        hash_buckets(math.inf)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0, 50.0])
def test_the_threshold_has_the_least_variance(epsilon):
    def variance(t):
        p, q = (
            1 - mpmath.exp(epsilon * (t - 1) / 2) / 2,
            mpmath.exp(-epsilon * t / 2) / 2,
        )
        return q * (1 - q) / (p - q) ** 2

    best = the_threshold(epsilon)
    assert variance(best) < min(variance(best - 1e-3), variance(best + 1e-3))
    with pytest.raises(ValueError, match="positive and finite"):
        the_threshold(0.0)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="categories"):
        grr_advantage(1, 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        oue_advantage(3, -1.0)
    with pytest.raises(ValueError, match="sum to 1"):
        oue_advantage(2, 1.0, prior=[0.5, 0.6])
    with pytest.raises(ValueError, match="one entry per category"):
        grr_advantage(3, 1.0, prior=[0.5, 0.5])
    with pytest.raises(ValueError, match="knowledge must be one of"):
        sue_advantage(3, 1.0, knowledge="some")
    with pytest.raises(ValueError, match="keep must be at least noise"):
        unary_advantage(3, keep=0.2, noise=0.3)
    with pytest.raises(ValueError, match="subset must be below"):
        subset_advantage(3, 1.0, subset=3)
    with pytest.raises(ValueError, match="buckets"):
        hashing_advantage(3, 1.0, buckets=1)


def test_closed_forms_are_never_below_the_exact_value():
    E = Fraction(5, 2)  # e^epsilon
    epsilon = math.log(2.5)
    m, size = 12, 3
    exact = Fraction(m - size) * (E - 1) / (m * (size * E + m - size))
    assert Fraction(subset_advantage(m, epsilon, subset=size)) >= exact
    exact = (E - 1) / (E + m - 1) * Fraction(m - 1, m)
    assert Fraction(grr_advantage(m, epsilon)) >= exact
    exact = (E - 1) / (2 * m) * (1 - (E / (1 + E)) ** (m - 1))
    assert Fraction(oue_advantage(m, epsilon)) >= exact


@pytest.mark.parametrize("seed", range(60))
def test_closed_forms_are_rounded_up_by_two_parts_in_a_trillion_at_most(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.choice([2, 3, 10, 100, 3052, 10**6]))
    epsilon = float(10 ** rng.uniform(-9, 2.4))
    with mpmath.workdps(200):
        E, half = mpmath.exp(epsilon), mpmath.exp(mpmath.mpf(epsilon) / 2)
        size, g, t = (
            subset_size(m, epsilon),
            hash_buckets(epsilon),
            the_threshold(epsilon),
        )
        p = size * E / (size * E + m - size)
        miss, noise = half ** (mpmath.mpf(t) - 1) / 2, half ** (-mpmath.mpf(t)) / 2

        def unary(p, q):
            return (p - q) * (1 - (1 - q) ** (m - 1)) / (m * q)

        pairs = [
            ((E - 1) / (E + m - 1) * (m - 1) / m, grr_advantage(m, epsilon)),
            (unary(mpmath.mpf(1) / 2, 1 / (1 + E)), oue_advantage(m, epsilon)),
            (unary(half / (1 + half), 1 / (1 + half)), sue_advantage(m, epsilon)),
            (unary(1 - miss, noise), the_advantage(m, epsilon)),
            (p / size - mpmath.mpf(1) / m, subset_advantage(m, epsilon)),
            (
                unary(E / (E + g - 1), mpmath.mpf(1) / g),
                hashing_advantage(m, epsilon, buckets=g),
            ),
            (1 - (1 + mpmath.mpf(epsilon) / 4) / half, she_variation(epsilon)),
        ]
        for exact, found in pairs:
            assert 0 <= found / exact - 1 < 2.1e-12


@pytest.mark.parametrize("m", [2, 10, 3052])
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 4.0, 10.0])
def test_levels_invert_the_advantage(m, epsilon):
    # The advantage saturates, so its upward rounding of 2e-12 grows on the way back.
    near = {"rel": max(1e-9, 4e-12 * math.exp(epsilon))}
    assert grr_level(m, grr_advantage(m, epsilon)) == pytest.approx(epsilon, **near)
    size = subset_size(m, epsilon)
    found = subset_level(m, subset_advantage(m, epsilon), subset=size)
    assert found == pytest.approx(epsilon, **near)
    assert subset_level(m, (m - size) / (m * size), subset=size) == math.inf
    assert grr_level(m, 1.0) == math.inf


def test_ends_of_the_scale():
    assert she_variation(math.inf) == 1.0
    assert unary_success(3, keep=1.0, noise=1.0) == pytest.approx(1 / 3)


@given(
    st.lists(st.integers(0, 20), min_size=2, max_size=40).filter(any),
    st.floats(1e-3, 40.0),
)
@settings(max_examples=60, deadline=None)
def test_knowledge_helps_and_the_level_caps_everything(weights, epsilon):
    prior = np.array(weights) / sum(weights)
    m = len(prior)
    cap = math.tanh(epsilon / 2) * (1 - (prior**2).sum())
    for formula in (oue_advantage, sue_advantage, subset_advantage, the_advantage):
        none, full = (
            formula(m, epsilon, prior=prior, knowledge=knowledge)
            for knowledge in ("none", "full")
        )
        assert none <= full * (1 + 1e-11) + 1e-15
        assert full <= cap * (1 + 1e-11) + 1e-15
    assert grr_advantage(m, epsilon, prior=prior) <= cap * (1 + 1e-11) + 1e-15

"""The Markov quilt mechanism, against its definition and against attackers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.errors import InfeasibleTarget, ModelError, NotApplicable
from undertow_studies.comparators.pufferfish import (
    ConversionCurve,
    approximate_quilt_scale,
    best_quilt,
    quilt_curve,
    quilt_influence,
    quilt_scale,
)

ACTIVITY = [[9713 / 11008, 1295 / 11008], [1295 / 4250, 2955 / 4250]]
RNG = np.random.default_rng(20)


def random_chain(states, rng):
    return rng.dirichlet(np.full(states, 0.8), size=states)


def stationary(P):
    values, vectors = np.linalg.eig(np.asarray(P).T)
    law = np.real(vectors[:, np.argmax(np.real(values))])
    return law / law.sum()


def paths(P, n):
    """Every path of the chain at equilibrium, with its probability."""
    P, w = np.asarray(P), stationary(P)
    for path in itertools.product(range(len(P)), repeat=n):
        weight = w[path[0]] * math.prod(P[a, b] for a, b in itertools.pairwise(path))
        yield path, weight


def influence_by_enumeration(P, n, i, quilt):
    """Max-influence of the records `quilt` on record i, straight from the joint law."""
    table = {}
    for path, weight in paths(P, n):
        key = path[i], tuple(path[j] for j in quilt)
        table[key] = table.get(key, 0.0) + weight
    states = range(len(P))
    mass = {x: sum(p for (a, _), p in table.items() if a == x) for x in states}
    ends = {end for _, end in table}
    return max(
        math.log((table[x, e] / mass[x]) / (table[z, e] / mass[z]))
        for e in ends
        for x, z in itertools.permutations(states, 2)
    )


def scale_by_definition(P, n, target):
    """Largest over records of the smallest over all quilts, quilt by quilt."""
    worst = 0.0
    for i in range(n):
        options = [n / target]
        lefts, rights = range(i), range(i + 1, n)
        choices = [(j, None) for j in lefts] + [(None, k) for k in rights]
        choices += list(itertools.product(lefts, rights))
        for j, k in choices:
            quilt = [z for z in (j, k) if z is not None]
            width = (n if k is None else k) - (-1 if j is None else j) - 1
            e = influence_by_enumeration(P, n, i, quilt)
            if e < target:
                options.append(width / (target - e))
        worst = max(worst, min(options))
    return worst


def leakage_of_count(P, n, scale, *, known_allowed=True):
    """Exact leakage of a count of ones with Laplace noise, over all attackers."""
    weights = dict(paths(P, n))
    outputs = np.arange(n + 1)
    kernel = np.exp(-np.abs(outputs[:, None] - outputs[None, :]) / scale)
    worst = 0.0
    for i in range(n):
        others = [j for j in range(n) if j != i]
        sizes = range(n) if known_allowed else [0]
        for K in itertools.chain(*(itertools.combinations(others, k) for k in sizes)):
            laws = {}
            for path, weight in weights.items():
                key = tuple(path[j] for j in K), path[i]
                laws.setdefault(key, np.zeros(n + 1))[sum(path)] += weight
            for (seen, x), law in laws.items():
                other = laws[seen, 1 - x]
                ratio = (kernel @ law / law.sum()) / (kernel @ other / other.sum())
                worst = max(worst, math.log(ratio.max()))
    return worst


@pytest.mark.parametrize("states", [2, 3])
def test_influence_equals_enumeration_of_the_joint_law(states):
    for seed in range(4):
        P = random_chain(states, np.random.default_rng(seed))
        for left, right in ((1, 1), (2, 1), (1, 3)):
            n = left + right + 1
            expected = influence_by_enumeration(P, n, left, [0, n - 1])
            found = quilt_influence(P, left=left, right=right)
            assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("states", "n"), [(2, 5), (2, 6), (3, 4)])
@pytest.mark.parametrize("target", [0.7, 2.5, 8.0])
def test_scale_equals_the_definition_quilt_by_quilt(states, n, target):
    for seed in range(3):
        P = random_chain(states, np.random.default_rng(100 + seed))
        expected = scale_by_definition(P, n, target)
        found = quilt_scale(P, target, length=n).noise_scale
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("target", [0.3, 1.0, 4.0])
def test_endless_chain_is_the_limit_of_long_ones_and_never_below_them(target):
    endless = quilt_scale(ACTIVITY, target).noise_scale
    scales = [
        quilt_scale(ACTIVITY, target, length=n).noise_scale
        for n in (2, 5, 10, 30, 100, 300, 17568)
    ]
    assert scales == sorted(scales)
    assert scales[-1] == endless


def test_short_chains_use_the_trivial_quilt_of_all_records():
    quilt = best_quilt(ACTIVITY, 1.0, length=5)
    assert (quilt.left, quilt.right, quilt.width, quilt.influence) == (None, None, 5, 0)


def test_one_sided_quilt_is_chosen_where_it_is_best():
    """Two records: knowing one side only, the width is one."""
    P = [[0.6, 0.4], [0.45, 0.55]]
    quilt = best_quilt(P, 1.0, length=2)
    assert {quilt.left, quilt.right} == {None, 1}
    assert quilt.width == 1


def test_scale_keeps_its_promise_against_someone_who_knows_nothing():
    for target in (0.5, 2.0, 6.0):
        scale = quilt_scale(ACTIVITY, target, length=6).noise_scale
        assert leakage_of_count(ACTIVITY, 6, scale, known_allowed=False) <= target


def test_scale_breaks_the_promise_against_someone_who_knows_records():
    """Hence no guarantee: known records raise what the neighbours tell."""
    P = [[0.9, 0.1], [0.1, 0.9]]
    row = quilt_scale(P, 20.0, length=5)
    assert leakage_of_count(P, 5, row.noise_scale, known_allowed=False) <= 20.0
    assert leakage_of_count(P, 5, row.noise_scale) > 22.0
    assert not row.is_guarantee
    assert row.attackers == "someone who knows no other record"


def test_scale_falls_with_the_target_and_scales_with_the_sensitivity():
    grid = np.linspace(0.1, 20, 40)
    scales = [quilt_scale(ACTIVITY, b).noise_scale for b in grid]
    assert all(a > b for a, b in itertools.pairwise(scales))
    twice = quilt_scale(ACTIVITY, 1.0, sensitivity=2.0).noise_scale
    assert twice == pytest.approx(2 * quilt_scale(ACTIVITY, 1.0).noise_scale)


def test_independent_records_need_no_more_than_their_own_noise():
    row = quilt_scale([[0.3, 0.7], [0.3, 0.7]], 0.5)
    assert row.noise_scale == pytest.approx(2.0)


def test_approximate_scale_is_never_below_the_exact_one():
    for seed in range(12):
        P = random_chain(2 + seed % 3, np.random.default_rng(seed)) * 0.9 + 0.1 / (
            2 + seed % 3
        )
        for target in (0.5, 2.0):
            exact = quilt_scale(P, target, length=400).noise_scale
            loose = approximate_quilt_scale(P, target, length=400).noise_scale
            assert exact <= loose * (1 + 1e-9)


def test_approximate_influence_holds_for_every_start():
    """The factor two on the left pays for the marginal of the record."""
    P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
    law = stationary(P)
    back = (law[:, None] * P).T / law[:, None]
    gap = (1 - np.sort(np.abs(np.linalg.eigvals(P @ back)))[-2]) / 2
    for seed in range(5):
        start = np.random.default_rng(seed).dirichlet([0.3] * 3)
        for a, b in ((12, 12), (15, 10)):
            delta = np.exp(-gap * np.array([a, b])) / law.min()
            assert delta.max() < 1
            bound = 2 * math.log((1 + delta[0]) / (1 - delta[0])) + math.log(
                (1 + delta[1]) / (1 - delta[1])
            )
            left, right = (np.linalg.matrix_power(P, d) for d in (a, b))
            marginal = start @ left
            backward = (start[:, None] * left) / marginal[None, :]
            ratios = [
                math.log((backward[:, x] / backward[:, z]).max())
                + math.log((right[x] / right[z]).max())
                for x, z in itertools.permutations(range(3), 2)
            ]
            assert max(ratios) <= bound


def test_a_chain_that_never_mixes_is_refused_with_a_way_out():
    swap = [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(NotApplicable, match="window of at most 4096"):
        quilt_scale(swap, 1.0)
    assert quilt_scale(swap, 1.0, length=7).noise_scale == pytest.approx(7.0)
    with pytest.raises(NotApplicable, match="spectral gap"):
        approximate_quilt_scale(swap, 1.0)


def test_long_chains_with_windows_as_wide_are_refused():
    slow = [[0.9999, 0.0001], [0.0001, 0.9999]]
    with pytest.raises(NotApplicable, match="at most 1000 records"):
        quilt_scale(slow, 0.5, length=1500)


def test_malformed_matrices_are_refused():
    with pytest.raises(ModelError):
        quilt_scale([[0.5, 0.4], [0.5, 0.5]], 1.0)
    with pytest.raises(ModelError, match="one transition matrix"):
        quilt_scale([ACTIVITY, ACTIVITY], 1.0)
    with pytest.raises(ModelError, match="visit every state"):
        quilt_scale([[1.0, 0.0], [0.5, 0.5]], 1.0)


def test_zero_entries_give_infinite_influence_until_the_powers_are_positive():
    P = [[0.5, 0.5], [1.0, 0.0]]
    assert quilt_influence(P, left=1, right=1) == math.inf
    assert quilt_influence(P, left=3, right=3) < math.inf
    assert quilt_scale(P, 1.0).is_feasible


def test_curve_of_quilts_gives_the_scale_of_the_mechanism():
    for target in (0.5, 1.0, 5.0, 20.0):
        curve = quilt_curve(ACTIVITY, reach=128).scale(target).noise_scale
        assert curve == pytest.approx(quilt_scale(ACTIVITY, target).noise_scale)


def test_curve_calibrates_back_to_its_own_leakage():
    curve = ConversionCurve([(1, 5.0), (3, 1.0), (9, 0.1)], "s", "a", True)
    for target in (0.2, 1.0, 3.0, 30.0):
        scale = curve.scale(target).noise_scale
        assert curve.leakage(1 / scale) <= target
        assert curve.leakage(1.001 / scale) > target
    with pytest.raises(InfeasibleTarget, match=r"above 0\.1") as refused:
        curve.scale(0.1)
    assert refused.value.least == 0.1


def test_curve_needs_sensible_pairs():
    with pytest.raises(ValueError, match="at least one pair"):
        ConversionCurve([], "s", "a", True)
    with pytest.raises(ValueError, match="at least 1"):
        ConversionCurve([(0.5, 1.0)], "s", "a", True)
    with pytest.raises(NotApplicable, match="finite influence"):
        quilt_curve([[0.0, 1.0], [1.0, 0.0]], reach=5)

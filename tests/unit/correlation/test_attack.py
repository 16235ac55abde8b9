"""The best inference attack: advantage, rule, curve, and noise calibrated to it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.attack import (
    calibrate_advantage,
    finite_attack,
    laplace_attack,
    leakage_advantage,
    leakage_for_advantage,
    leakage_tradeoff,
    optimal_attack,
    strongest_attack,
)
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.group import Blocks
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])


def random_joint(seed: int, shape: tuple[int, ...] = (2, 2, 2)) -> JointTable:
    rng = np.random.default_rng(seed)
    pmf = rng.dirichlet(np.full(math.prod(shape), 0.4)).reshape(shape)
    return JointTable(pmf / pmf.sum())


@pytest.mark.parametrize("advantage", [0.0, 1e-9, 0.1, 0.5, 0.999])
def test_advantage_and_leakage_are_inverse(advantage: float):
    leakage = leakage_for_advantage(advantage)
    assert leakage_advantage(leakage) == pytest.approx(advantage, rel=1e-9, abs=1e-300)


def test_certainty_needs_infinite_leakage():
    assert leakage_for_advantage(1) == math.inf
    assert leakage_advantage(math.inf) == 1


def test_tradeoff_has_the_two_lines_of_indistinguishability():
    curve = leakage_tradeoff(1.0)
    assert float(curve(0.0)) == 1
    assert float(curve(0.9)) == pytest.approx(math.exp(-1) * 0.1)


def test_a_finite_test_has_half_the_l1_distance():
    found = finite_attack(
        [0.5, 0.3, 0.2], [0.1, 0.3, 0.6], adversary=Adversary(0), pair=("a", "b")
    )
    assert found.advantage == pytest.approx(0.4)
    assert found.outputs == frozenset({0})
    assert found.says_first([0, 1, 2]).tolist() == [True, False, False]
    assert "say a" in found.rule


def test_a_finite_curve_runs_from_corner_to_corner_and_is_concave():
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(8), size=2)
    found = finite_attack(p, q, adversary=Adversary(0), pair=(1, 0))
    x, y = found.false_positive, found.true_positive
    assert (x[0], y[0]) == (0, 0)
    assert (x[-1], y[-1]) == (pytest.approx(1), pytest.approx(1))
    slopes = np.diff(y) / np.diff(x)
    assert (np.diff(slopes) <= 1e-9).all()
    assert (y - x).max() == pytest.approx(found.advantage)


def test_outputs_of_a_certain_secret_come_first_on_the_curve():
    found = finite_attack([0.5, 0.5], [0.0, 1.0], adversary=Adversary(0), pair=(1, 0))
    assert found.true_positive.tolist() == [0, 0.5, 1]
    assert found.false_positive.tolist() == [0, 0, 1]


def test_laws_of_different_length_are_refused():
    with pytest.raises(ModelError, match="one length"):
        finite_attack([1.0], [0.5, 0.5], adversary=Adversary(0), pair=(1, 0))


def test_a_laplace_curve_dominates_every_threshold_test():
    support = np.array([0.0, 1.0, 2.0])
    p, q = np.array([0.1, 0.2, 0.7]), np.array([0.6, 0.3, 0.1])
    found = laplace_attack(
        support, p, q, scale=0.7, adversary=Adversary(0), pair=(1, 0)
    )
    draws = np.random.default_rng(5).laplace(scale=0.7, size=(2, 200_000))
    first = np.random.default_rng(6).choice(support, p=p, size=200_000) + draws[0]
    second = np.random.default_rng(7).choice(support, p=q, size=200_000) + draws[1]
    for cut in (-1.0, 0.5, 1.0, 1.7, 3.0):
        hits, alarms = (first > cut).mean(), (second > cut).mean()
        best = np.interp(alarms, found.false_positive, found.true_positive)
        assert hits <= best + 0.006
    measured = found.says_first(first).mean() - found.says_first(second).mean()
    assert measured == pytest.approx(found.advantage, abs=0.006)


@pytest.mark.parametrize("seed", range(8))
def test_the_strongest_attack_is_that_of_literal_enumeration(seed: int):
    joint = random_joint(seed)
    found = strongest_attack(joint, 0.8)
    best = 0.0
    for target in range(3):
        others = [j for j in range(3) if j != target]
        for states in itertools.product((0, 1, None), repeat=2):
            values = {
                j: z for j, z in zip(others, states, strict=True) if z is not None
            }
            try:
                one = optimal_attack(
                    joint, 0.8, adversary=Adversary(target, values, values), pair=(1, 0)
                )
            except NotApplicable:
                continue
            best = max(best, one.advantage)
    assert found.advantage == pytest.approx(best, abs=1e-12)


def test_independent_records_leave_only_the_dp_advantage():
    joint = JointTable.independent([[0.3, 0.7], [0.6, 0.4]])
    found = strongest_attack(joint, 1.0, query=CountQuery())
    assert found.advantage == pytest.approx(1 - math.exp(-0.5))
    assert found.adversary.known  # knowing the rest is what helps here


def test_an_attacker_must_say_what_is_known():
    with pytest.raises(ValueError, match="every known record"):
        optimal_attack(FLATMATES, 1.0, adversary=Adversary(0, {1}), pair=(1, 0))


def test_an_impossible_secret_is_refused():
    joint = JointTable([[0.5, 0.0], [0.0, 0.5]])
    attacker = Adversary(0, {1}, {1: 0})
    with pytest.raises(NotApplicable, match="possible"):
        optimal_attack(joint, 1.0, adversary=attacker, pair=(1, 0))


@pytest.mark.parametrize("advantage", [0.05, 0.3, 0.6, 0.95])
def test_the_calibrated_attack_attains_the_promise_and_no_more(advantage: float):
    found = calibrate_advantage(FLATMATES, advantage)
    attained = strongest_attack(FLATMATES, found.epsilon, step=1).advantage
    assert attained <= advantage
    assert attained == pytest.approx(advantage, rel=1e-9)
    assert found.epsilon > found.through_leakage
    assert found.method == "exact"
    assert found.noise_scale == pytest.approx(1 / found.epsilon)


def test_other_models_are_calibrated_through_the_leakage():
    found = calibrate_advantage(Blocks.of_size(2, groups=5), 0.5, query=AnyQuery())
    assert found.method == "leakage"
    assert found.epsilon == pytest.approx(math.log(3) / 2)


def test_more_noise_never_helps_the_attacker():
    for seed in range(5):
        joint = random_joint(seed)
        values = [strongest_attack(joint, e).advantage for e in (0.1, 0.5, 1, 2, 5)]
        assert (np.diff(values) >= -1e-12).all()


def test_a_weighted_query_uses_its_sensitivity():
    query = LinearQuery((1.0, 2.0))
    found = optimal_attack(
        FLATMATES, 1.0, adversary=Adversary(1), pair=(1, 0), query=query
    )
    assert 0 < found.advantage < 1
    assert found.tradeoff().total_variation() == pytest.approx(
        found.advantage, abs=2e-3
    )

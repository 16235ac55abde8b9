"""The best inference attack: advantage, rule, curve, and noise calibrated to it."""

from __future__ import annotations

import itertools
import math

import mpmath
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
from undertow.correlation.gaussian.model import Gaussian
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


POINT = JointTable([[1.0, 0.0], [0.0, 0.0]])


def test_attack_states_are_checked():
    with pytest.raises(ValueError, match=r"state must be in 0\.\.1, got 2"):
        optimal_attack(FLATMATES, 1.0, adversary=Adversary(0), pair=(2, 0))
    known = Adversary(0, {1}, {1: 2})
    with pytest.raises(ValueError, match=r"known state must be in 0\.\.1"):
        optimal_attack(FLATMATES, 1.0, adversary=known, pair=(1, 0))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1.0, 30.0, 1e3, 1e4])
@pytest.mark.parametrize("small", [1.0, 1e-4])
def test_the_strongest_attack_on_two_independent_bits_is_known(epsilon, small):
    joint = JointTable(np.full((2, 2), 0.25))
    found = strongest_attack(joint, epsilon, query=LinearQuery((1.0, small)))
    assert found.advantage == pytest.approx(-math.expm1(-epsilon / 2), rel=1e-12)


@pytest.mark.parametrize("advantage", [1e-14, 1e-9, 0.01, 0.5, 0.95, 1 - 1e-9])
def test_a_calibrated_advantage_is_kept_with_many_digits(advantage):
    found = calibrate_advantage(JointTable(np.full((2, 2), 0.25)), advantage)
    with mpmath.workdps(40):
        kept = mpmath.tanh(1 / (2 * mpmath.mpf(found.noise_scale)))
    assert kept <= advantage
    assert kept >= advantage * (1 - 1e-9)


def test_an_advantage_says_which_secrets_it_covers():
    query = LinearQuery(clip=(0, 1))
    found = calibrate_advantage(Gaussian([[1, 0.2], [0.2, 1]]), 0.5, query=query)
    assert found.scope.summary == "both secrets in [0, 1]"
    assert calibrate_advantage(FLATMATES, 0.5).scope.is_every_pair


def test_nothing_secret_is_no_attack():
    for table in (POINT, JointTable([[1.0]])):
        with pytest.raises(NotApplicable, match=r"two possible states"):
            strongest_attack(table, 1.0, query=CountQuery())


def test_trade_off_curves_are_convex_where_secrets_have_different_supports():
    who = {"adversary": Adversary(0), "pair": (0, 1)}
    for p, q in itertools.permutations(([0, 0.3, 0.7], [0.5, 0.5, 0], [0, 0, 1]), 2):
        for found in (
            finite_attack(p, q, **who),
            laplace_attack([0, 1, 3], p, q, scale=0.01, **who),
            laplace_attack([0, 1, 3], p, q, scale=5.0, **who),
        ):
            curve = found.tradeoff()
            assert curve.total_variation() == pytest.approx(found.advantage, abs=1e-3)


def test_attacks_are_between_laws():
    who = {"adversary": Adversary(0), "pair": (0, 1)}
    with pytest.raises(ModelError, match=r"sum to one"):
        finite_attack([0.5, 0.4], [0.5, 0.5], **who)
    with pytest.raises(ModelError, match=r"support must be increasing"):
        laplace_attack([1, 0], [0.5, 0.5], [0.1, 0.9], scale=1.0, **who)

"""A calibrated advantage against every attack on what its result says it covers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from undertow.correlation.attack import calibrate_advantage, strongest_attack
from undertow.correlation.calibrate import calibrate
from undertow.correlation.finite.joint import JointTable, local_kernel
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.errors import NotApplicable
from undertow.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)
from undertow.privacy.loss import Pure

QUERIES = (CountQuery(), LinearQuery(), LinearQuery(0.5), LinearQuery((2.0, 1.0, 3.0)))


def random_case(seed: int):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 4))
    table = rng.dirichlet(np.full(2**size, 0.5)).reshape((2,) * size)
    query = QUERIES[seed % 4] if size == 3 else QUERIES[seed % 3]
    return JointTable(table), query, float(rng.uniform(0.05, 0.95))


def conditional_pairs(joint: JointTable):
    """Yield the laws of the database under two secrets, for every attacker."""
    for target, *known in itertools.product(range(joint.size), *[(0, 1, None)] * 3):
        given = [known[j] if j != target else None for j in range(joint.size)]
        masks = []
        for secret in (0, 1):
            law = joint.pmf.copy()
            for axis, state in enumerate([*given]):
                wanted = secret if axis == target else state
                if wanted is not None:
                    index = [slice(None)] * joint.size
                    index[axis] = 1 - wanted
                    law[tuple(index)] = 0.0
            masks.append(law)
        if all(law.sum() > 0 for law in masks):
            yield tuple((law / law.sum()).ravel() for law in masks)


def best_advantage(joint: JointTable, kernel: np.ndarray) -> float:
    """Return the best attack on a mechanism, by enumeration."""
    return max(
        float(np.abs((p - q) @ kernel).sum()) / 2 for p, q in conditional_pairs(joint)
    )


def discrete_laplace(answers: np.ndarray, scale: float, step: float) -> np.ndarray:
    reach = math.ceil(45 * scale / step)
    low, high = round(answers.min() / step), round(answers.max() / step)
    points = np.arange(low - reach, high + reach + 1) * step
    kernel = np.exp(-np.abs(points - answers.reshape(-1, 1)) / scale)
    return kernel * math.tanh(step / scale / 2)


def answers_of(joint: JointTable, query) -> np.ndarray:
    weights = np.ones(joint.size)
    if isinstance(query, LinearQuery):
        weights = np.array(query.weights_for(joint.size))
    return np.array(list(itertools.product((0, 1), repeat=joint.size))) @ weights


def worst_advantage(joint: JointTable, epsilon: float) -> float:
    """Return the best attack on the worst mechanism of a level, by linear program."""
    cells, rows = joint.pmf.size, []
    bits = list(itertools.product((0, 1), repeat=joint.size))
    for a, b in itertools.permutations(range(cells), 2):
        if sum(x != y for x, y in zip(bits[a], bits[b], strict=True)) == 1:
            row = np.zeros(cells)
            row[a], row[b] = 1.0, -math.exp(epsilon)
            rows.append((row, 0.0))
            rows.append((-row, math.exp(epsilon) - 1))  # the same of the complement
    limits, most = np.array([r for r, _ in rows]), [m for _, m in rows]
    return max(
        -linprog(q - p, A_ub=limits, b_ub=most, bounds=(0, 1), method="highs").fun
        for p, q in conditional_pairs(joint)
    )


@pytest.mark.parametrize("seed", range(20))
def test_no_attack_on_noise_that_is_drawn_passes_the_advantage(seed):
    joint, query, advantage = random_case(seed)
    found = calibrate_advantage(joint, advantage, query=query)
    answers = answers_of(joint, query)
    for steps in (1.0, 0.5, 0.25):
        exponent = int(math.log2(steps))
        mechanism = DiscreteLaplaceMechanism(found.noise_scale, exponent=exponent)
        try:
            found.covers.require(mechanism)
        except NotApplicable:
            assert (answers % steps).any() or found.covers.every
            continue
        kernel = discrete_laplace(answers, found.noise_scale, steps)
        assert best_advantage(joint, kernel) <= advantage + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_search_attains_the_advantage(seed):
    joint, query, advantage = random_case(seed)
    found = calibrate_advantage(joint, advantage, query=query)
    step = found.covers.step
    if found.method == "exact":
        best = strongest_attack(joint, found.epsilon, query=query, step=step)
        assert best.advantage <= advantage
        assert best.advantage == pytest.approx(advantage, rel=1e-9) or (
            found.epsilon > 5e3
        )


@pytest.mark.parametrize("seed", range(8))
def test_a_promise_about_every_mechanism_holds_for_the_worst(seed):
    joint, _, advantage = random_case(seed)
    found = calibrate_advantage(joint, advantage, query=AnyQuery())
    assert found.covers.every
    assert worst_advantage(joint, found.epsilon) <= advantage + 1e-9
    response = RandomizedResponse(2, found.epsilon)
    found.covers.require(response)
    kernel = local_kernel(joint, response).reshape(joint.pmf.size, -1)
    assert best_advantage(joint, kernel) <= advantage + 1e-12


def test_what_is_not_searched_goes_through_the_leakage_and_says_why():
    large = JointTable(
        np.random.default_rng(1).dirichlet(np.ones(2**14)).reshape((2,) * 14)
    )
    found = calibrate_advantage(large, 0.3)
    assert found.method == "leakage"
    assert "extended table" in found.note
    assert found.covers.every
    assert found.epsilon == found.through_leakage


def test_one_bit_gets_the_level_that_whole_noise_needs():
    found = calibrate_advantage(JointTable([0.5, 0.5]), 0.4, query=CountQuery())
    assert math.tanh(found.epsilon / 2) <= 0.4
    assert found.epsilon == pytest.approx(2 * math.atanh(0.4), rel=1e-9)
    assert math.tanh(1 / found.noise_scale / 2) <= 0.4


CHAIN = MarkovChain([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]], length=4)
OTHERS = [
    RandomizedResponse(2, "0.01"),
    GaussianMechanism(100),
    DiscreteGaussianMechanism(100),
    DiscreteLaplaceMechanism(100, exponent=1),
    DiscreteLaplaceMechanism("0.1"),
    LaplaceMechanism("0.1"),
    Pure("0.01"),
    "laplace",
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda each: type(each).__name__)
def test_a_promise_about_noise_refuses_what_is_not_that_noise(other):
    for found in (
        calibrate_advantage(JointTable([[0.45, 0.05], [0.05, 0.45]]), 0.4),
        calibrate(CHAIN, 1.0, query=CountQuery(), method="count"),
    ):
        assert not found.covers.every
        found.covers.require(DiscreteLaplaceMechanism(found.noise_scale))
        found.covers.require(LaplaceMechanism(found.noise_scale))
        with pytest.raises(NotApplicable, match="mechanism must be Laplace noise"):
            found.covers.require(other)


@pytest.mark.parametrize("change", [1.0, 0.1, 0.3, 7.7, 1e-5, 123456.789])
@pytest.mark.parametrize("target", [1e-7, 0.01, 1.0, 3.3])
def test_the_scale_named_for_releases_keeps_the_level_when_answers_are_rounded(
    change, target
):
    found = calibrate(JointTable([0.5, 0.5]), target, query=AnyQuery(change))
    scale = found.covers.released_scale
    found.covers.require(LaplaceMechanism(scale))
    share = 2.0**-22 / min(1.0, target)
    assert found.noise_scale <= scale <= found.noise_scale * (1 + share)


def test_a_promise_about_every_mechanism_refuses_a_higher_level():
    found = calibrate(JointTable(np.full((2, 2), 0.25)), 0.5, query=AnyQuery())
    assert found.covers.every
    found.covers.require(Pure("0.5"))
    found.covers.require(DiscreteLaplaceMechanism(found.noise_scale))
    refused = (Pure("0.51"), RandomizedResponse(2, "0.51"), GaussianMechanism(9))
    for other in (*refused, DiscreteLaplaceMechanism("1.9")):
        with pytest.raises(NotApplicable, match=r"mechanism must be 0\.5-DP"):
            found.covers.require(other)


@pytest.mark.parametrize("seed", range(12))
def test_the_error_stated_holds_for_noise_on_the_answers_and_finer(seed):
    joint, query, target = random_case(seed)
    beta = float(np.random.default_rng(seed).uniform(0.001, 0.5))
    found = calibrate(joint, 4 * target, query=query, beta=beta)
    step = found.covers.step
    for finer in (1, 2, 64):
        mechanism = DiscreteLaplaceMechanism(
            found.noise_scale, exponent=int(math.log2(step / finer))
        )
        assert mechanism.confidence(found.accuracy.alpha) <= beta
    assert LaplaceMechanism(found.noise_scale).confidence(found.accuracy.alpha) <= beta
    if found.accuracy.alpha > 0:  # one step less would be too little
        coarse = DiscreteLaplaceMechanism(
            found.noise_scale, exponent=int(math.log2(step))
        )
        assert coarse.confidence(found.accuracy.alpha - float(step)) > beta


@pytest.mark.parametrize("step", [0.001, 0.3, 1.0, 7.0])
def test_real_answers_err_by_one_step_more_on_a_lattice(step):
    found = calibrate(JointTable(np.full((2, 2), 0.25)), 0.8, query=AnyQuery())
    q = math.exp(-step / found.noise_scale)
    # Rounding moves an answer by half a step at most.
    count = math.ceil((found.accuracy.alpha + step - step / 2) / step - 1e-9)
    assert 2 * q**count / (1 + q) <= found.accuracy.beta

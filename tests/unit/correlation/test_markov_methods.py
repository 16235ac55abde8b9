"""Every bound for Markov chains: never below an attained leakage, or a refusal."""

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.leak import leakage
from undertow.correlation.markov.chain import MarkovChain, MarkovFamily
from undertow.correlation.markov.steps import HigherOrderChain
from undertow.correlation.markov.tree import TreeModel
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.errors import ModelError, NotApplicable

ANY = AnyQuery()


TWO = np.array([[0.7, 0.3], [0.4, 0.6]])


THREE = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])


def joint_law(start, kernels):
    joint = np.array(start, dtype=float)
    for kernel in kernels:
        joint = joint[..., None] * kernel
    return joint


def attained_leakage(joint, epsilon):
    """Search all attackers and all products of two-valued responses."""
    n, s = joint.ndim, joint.shape[0]
    picks = [p for p in itertools.product((0, 1), repeat=s) if 0 < sum(p) < s]
    factors = np.exp(epsilon * np.array(picks))
    best = 0.0
    for target in range(n):
        rest = [j for j in range(n) if j != target]
        for mask in itertools.product((False, True), repeat=n - 1):
            known = [j for j, is_known in zip(rest, mask, strict=True) if is_known]
            unknown = [j for j in rest if j not in known]
            turned = joint.transpose(*known, target, *unknown)
            for values in itertools.product(range(s), repeat=len(known)):
                table = turned[values]
                total = table.reshape(s, -1).sum(axis=1)
                possible = np.flatnonzero(total > 0)
                if len(possible) < 2:
                    continue
                mixed = table[possible] / total[possible].reshape(
                    -1, *[1] * len(unknown)
                )
                for _ in unknown:
                    mixed = np.tensordot(mixed, factors, axes=(1, 1))
                logs = np.log(mixed).reshape(len(possible), -1)
                spread = (logs[:, None] - logs[None]).max()
                best = max(best, epsilon + float(spread))
    return best


def random_kernel(rng, states):
    kind = rng.integers(4)
    rows = rng.dirichlet(np.full(states, 0.6), states) + 1e-6
    if kind == 1:
        rows = np.full((states, states), 1e-12)
        rows[np.arange(states), rng.integers(states, size=states)] = 1.0
    if kind == 2:
        rows[rng.random((states, states)) < 0.3] = 0.0
        rows[rows.sum(axis=1) == 0] = 1.0
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_no_method_is_below_what_some_mechanism_attains(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        states = int(rng.integers(2, 4))
        size = int(rng.integers(2, 5 if states == 2 else 4))
        kernels = [random_kernel(rng, states) for _ in range(size - 1)]
        start = rng.dirichlet(np.ones(states))
        if rng.random() < 0.5:
            kernels = kernels[:1] * (size - 1)
            chain = MarkovChain(kernels[0], start, size)
        else:
            chain = MarkovChain(kernels, start)
        epsilon = float(rng.choice([1e-3, 0.1, 1.0, 4.0]))
        attained = attained_leakage(joint_law(start, kernels), epsilon)
        for method in chain.methods():
            try:
                found = method.bound(chain, epsilon, query=ANY)
            except NotApplicable:
                continue
            assert found.value >= attained * (1 - 1e-11), method.name
            if method.name == "two-state" and found.tight:
                assert found.value == pytest.approx(attained, rel=1e-9)


def transient_leakage(stay, size, epsilon):
    """What an attacker without knowledge learns about the last record.

    State 0 is left for good, each time with probability ``1 - stay``; the start is
    even. Randomized response reports 0 for every record.
    """
    zeros = np.arange(size)
    logs = np.where(zeros == 0, 0.0, (zeros - 1) * math.log(stay) + math.log1p(-stay))
    weights = np.exp(logs)
    average = (weights * np.exp(epsilon * zeros)).sum() / weights.sum()
    return size * epsilon - math.log(average)


@pytest.mark.parametrize(
    ("stay", "size"), [(1e-10, 12), (1e-10, 40), (1e-3, 120), (0.5, 1200)]
)
@pytest.mark.parametrize("query", [ANY, CountQuery(), CountQuery([0])])
def test_a_state_left_for_good_leaks_however_unlikely_it_is(stay, size, query):
    chain = MarkovChain([[stay, 1 - stay], [0.0, 1.0]], [0.5, 0.5], size)
    found = leakage(chain, 0.5, query=query)
    assert found.value >= transient_leakage(stay, size, 0.5)


def test_probabilities_below_the_range_of_floats_are_refused_not_dropped():
    chain = MarkovChain([[1e-10, 1 - 1e-10], [0.0, 1.0]], [0.5, 0.5], 40)
    with pytest.raises(NotApplicable, match="conditional probabilities of at least"):
        leakage(chain, 0.5, method="two-state")
    leaving = [[1e-10, 1 - 2e-10, 1e-10], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]]
    chain = MarkovChain(leaving, [0.4, 0.3, 0.3], 40)
    with pytest.raises(NotApplicable, match="conditional probabilities of at least"):
        leakage(chain, 0.5, query=CountQuery([0]), method="count")
    assert leakage(chain, 0.5, query=CountQuery([0])).value == 20.0


@pytest.mark.parametrize(
    "model",
    [
        MarkovChain(TWO, length=4),
        MarkovChain(THREE, length=4),
        MarkovFamily(gamma=3.0, length=4),
        TreeModel([None, 0, 0], TWO),
        HigherOrderChain(np.full((2, 2, 2), 0.5), order=2, length=4),
    ],
    ids=repr,
)
def test_an_unclipped_release_is_refused_by_every_method(model):
    query = LinearQuery(gap=0.1)
    for method in model.methods():
        with pytest.raises(NotApplicable):
            method.bound(model, 0.5, query=query)
        with pytest.raises(NotApplicable):
            method.invert(model, 0.5, query=query)


def test_a_time_varying_chain_without_a_start_is_still_bounded():
    chain = MarkovChain([TWO, [[0.6, 0.4], [0.2, 0.8]]])
    for query in (ANY, CountQuery()):
        found = leakage(chain, 0.5, query=query)
        assert found.method == "projective"
        assert calibrate(chain, 1.0, query=query).achieves.value <= 1.0
    with pytest.raises(NotApplicable, match="law of the first record"):
        leakage(chain, 0.5, method="two-state")


@pytest.mark.parametrize("states", [2, 3])
def test_a_chain_with_several_stationary_laws_falls_back_to_its_length(states):
    frozen = MarkovChain(np.eye(states), length=5)
    for query in (ANY, CountQuery()):
        assert leakage(frozen, 0.5, query=query).value == 2.5


@pytest.mark.parametrize(
    "build",
    [
        lambda: MarkovChain(TWO, [0.5, "half"], 3),
        lambda: MarkovChain(TWO, length=3, values=[0.0, [1.0]]),
        lambda: TreeModel.from_edges([(0, 1)], [[0.5, 0.5], [1.0]]),
        lambda: HigherOrderChain([[0.5, 0.5], [1.0]], order=1),
    ],
)
def test_what_is_not_an_array_of_numbers_is_a_model_error(build):
    with pytest.raises(ModelError, match="must be numbers in rows of one length"):
        build()

"""What must hold for every data model, whatever it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.correlation import (
    AnyQuery,
    Blocks,
    CountQuery,
    Gaussian,
    HigherOrderChain,
    Independent,
    JointTable,
    LinearQuery,
    MarkovChain,
    MarkovFamily,
    Model,
    Pedigree,
    Query,
    TreeModel,
    calibrate,
    leakage,
)

KINDS = (
    "independent",
    "blocks",
    "joint",
    "joint-count",
    "chain",
    "chain-count",
    "three-state",
    "family",
    "higher-order",
    "tree",
    "gaussian",
    "limited",
    "autoregressive",
    "pedigree",
)


def rows(rng: np.random.Generator, *shape: int) -> np.ndarray:
    drawn = rng.dirichlet(np.full(shape[-1], 0.8), size=shape[:-1]) + 1e-3
    return drawn / drawn.sum(axis=-1, keepdims=True)


def draw(kind: str, seed: int) -> tuple[Model, Query]:
    """Return a random small model with a query that suits it."""
    rng = np.random.default_rng(seed)
    clipped = LinearQuery(clip=(0.0, 10.0))
    if kind == "independent":
        return Independent(5), AnyQuery()
    if kind == "blocks":
        return Blocks(rng.integers(1, 5, size=4).tolist()), AnyQuery()
    if kind.startswith("joint"):
        pmf = rng.dirichlet(np.full(8, 0.7)).reshape(2, 2, 2) + 1e-4
        query = CountQuery() if kind.endswith("count") else AnyQuery()
        return JointTable(pmf / pmf.sum()), query
    if kind.startswith("chain"):
        query = CountQuery() if kind.endswith("count") else AnyQuery()
        return MarkovChain(rows(rng, 2, 2), length=int(rng.integers(1, 30))), query
    if kind == "three-state":
        return MarkovChain(rows(rng, 3, 3), length=4), AnyQuery()
    if kind == "family":
        return MarkovFamily(gamma=float(rng.uniform(1, 20)), length=50), AnyQuery()
    if kind == "higher-order":
        return HigherOrderChain(rows(rng, 2, 2, 2), order=2, length=9), AnyQuery()
    if kind == "tree":
        return TreeModel([None, 0, 0, 1], rows(rng, 3, 2, 2)), AnyQuery()
    if kind == "gaussian":
        root = rng.normal(size=(3, 3))
        return Gaussian(root @ root.T + 0.3 * np.eye(3)), clipped
    if kind == "limited":
        return Gaussian.limited(float(rng.uniform(0, 0.45)), 4), clipped
    if kind == "autoregressive":
        return Gaussian.autoregressive(float(rng.uniform(-0.9, 0.9)), 40), clipped
    return Pedigree.nuclear(2, frequency=float(rng.uniform(0.1, 0.9))), CountQuery([2])


seeds = st.integers(0, 10_000)
levels = st.floats(0.01, 4.0)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(seed=seeds, epsilon=levels)
def test_no_model_leaks_less_than_a_fully_informed_attacker_learns(kind, seed, epsilon):
    model, query = draw(kind, seed)
    found = leakage(model, epsilon, query=query)
    assert found.value >= epsilon * (1 - 1e-9)
    assert found.model == model.summary
    assert found.unchecked


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(seed=seeds, epsilon=levels, more=st.floats(1.05, 3.0))
def test_more_noise_never_leaks_more(kind, seed, epsilon, more):
    model, query = draw(kind, seed)
    small = leakage(model, epsilon, query=query).value
    assert small <= leakage(model, epsilon * more, query=query).value * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4, deadline=None)
@given(seed=seeds, target=st.floats(0.05, 6.0))
def test_calibration_keeps_the_promise_and_spends_it(kind, seed, target):
    model, query = draw(kind, seed)
    found = calibrate(model, target, query=query)
    attained = leakage(model, found.epsilon, query=query, method=found.method).value
    assert attained <= target
    assert attained == pytest.approx(target, rel=1e-7)
    assert found.noise_scale >= query.sensitivity(model) / found.epsilon * (1 - 1e-15)
    least = max((a.parameter or 0.0 for a in found.alternatives), default=0.0)
    assert found.epsilon >= least


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, deadline=None)
@given(seed=seeds)
def test_every_alternative_is_a_larger_bound_or_says_why_not(kind, seed):
    model, query = draw(kind, seed)
    found = leakage(model, 0.7, query=query)
    for other in found.alternatives:
        assert other.reason
        if other.parameter is not None:
            assert other.parameter >= found.value

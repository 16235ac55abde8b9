"""Samplers of chains and trees against the laws that brute force gives.

Each test compares counts with a joint law by a chi-square test at 1e-9, so that a
sound sampler fails one in a billion times; seeds are fixed. A second law, close to the
right one, must be rejected, which shows that the test can fail.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from support.markov_oracle import chain_law, tree_law
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.steps import HigherOrderChain
from undertow.correlation.markov.tree import TreeModel

DRAWS = 60_000
LEVEL = 1e-9
P = np.array([[0.6, 0.3, 0.1], [0.0, 0.5, 0.5], [0.4, 0.0, 0.6]])
START = np.array([0.2, 0.5, 0.3])


def p_value(drawn, law):
    """Return the chi-square p-value of draws of all records; 0 if one is impossible."""
    counts = np.zeros(law.shape)
    np.add.at(counts, tuple(drawn.T), 1)
    if counts[law == 0].any():
        return 0.0
    met = law > 0
    expected = law[met] * len(drawn)
    rare = expected < 5
    pooled = np.append(counts[met][~rare], counts[met][rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    keep = wanted > 0
    return float(stats.chisquare(pooled[keep], wanted[keep]).pvalue)


def condition(law, known):
    kept = np.zeros_like(law)
    index = tuple(known.get(j, slice(None)) for j in range(law.ndim))
    kept[index] = law[index]
    return kept / kept.sum()


def nearby(law):
    """Return a law with up to 15 % more or less on each cell of the support."""
    spread = np.zeros_like(law)
    spread[law > 0] = np.linspace(0.85, 1.15, int((law > 0).sum()))
    tilted = law * spread
    return tilted / tilted.sum()


def assert_drawn_from(drawn, law):
    assert p_value(drawn, law) > LEVEL
    assert p_value(drawn, nearby(law)) < LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("known", [{}, {2: 1}, {0: 0, 3: 2}, {1: 2}])
def test_chain_draws_have_the_conditional_law(known):
    chain = MarkovChain(P, START, 4)
    rng = np.random.default_rng(11)
    law = chain_law(START, [P] * 3)
    drawn = (
        chain.given(known).sample(DRAWS, rng=rng)
        if known
        else chain.sample(DRAWS, rng=rng)
    )
    assert_drawn_from(drawn, condition(law, known))


@pytest.mark.statistical
def test_time_varying_draws_follow_their_own_kernels():
    steps = [P, P.T / P.T.sum(axis=1, keepdims=True), P @ P]
    chain = MarkovChain(steps, START)
    law = condition(chain_law(START, steps), {3: 0})
    drawn = chain.sample_given({3: 0}, DRAWS, rng=np.random.default_rng(12))
    assert_drawn_from(drawn, law)


@pytest.mark.statistical
@pytest.mark.parametrize("known", [{}, {3: 2}, {0: 1, 2: 0}])
def test_tree_draws_have_the_conditional_law(known):
    parents = [None, 0, 0, 1]
    kernels = [P, P @ P, P]
    tree = TreeModel(parents, kernels, root_law=START)
    law = condition(tree_law(parents, kernels, START), known)
    drawn = tree.sample_given(known, DRAWS, rng=np.random.default_rng(13))
    assert_drawn_from(drawn, law)


@pytest.mark.statistical
@pytest.mark.parametrize("known", [{}, {0: 1}, {1: 0, 4: 1}])
def test_higher_order_draws_have_the_conditional_law(known):
    laws = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.5, 0.5], [0.1, 0.9]]])
    start = np.array([[0.1, 0.4], [0.3, 0.2]])
    chain = HigherOrderChain(laws, order=2, length=5, initial=start)
    law = np.empty((2,) * 5)
    for x in itertools.product((0, 1), repeat=5):
        law[x] = start[x[:2]] * np.prod([laws[x[t - 2 : t + 1]] for t in (2, 3, 4)])
    drawn = chain.sample_given(known, DRAWS, rng=np.random.default_rng(14))
    assert_drawn_from(drawn, condition(law, known))

"""Bounds for chains and trees against every mechanism, by linear programs."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.markov_oracle import chain_law, largest_leakage, random_rows, tree_law
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.program import worst_case_leakage
from undertow.correlation.group import general_leakage
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import (
    OmegaTheorem,
    ProjectiveTheorem,
    finite_leakage,
    projective_budget,
    projective_leakage,
    ratio_diameter,
)
from undertow.correlation.markov.published import (
    GammaTheorem,
    RatioTheorem,
    ZhaoTheorem,
    largest_log_ratio,
)
from undertow.correlation.markov.steps import (
    StepTheorem,
    WindowTheorem,
    step_diameters,
)
from undertow.correlation.markov.tree import TreeModel, TreeTheorem, tree_leakages
from undertow.correlation.query import AnyQuery

ANY = AnyQuery()
SLACK = 1 + 1e-9  # of the linear programs
levels = st.floats(0.01, 4.0)
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)
many = settings(max_examples=150, deadline=None)


def random_chain(seed, *, homogeneous, zeros=False, stationary=False):
    """Return a chain of 2 or 3 states and 2 to 4 records, and its joint law."""
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 4))
    size = int(rng.integers(2, 5 if states == 2 else 4))
    count = 1 if homogeneous else size - 1
    kernels = [_random_kernel(rng, states, zeros) for _ in range(count)]
    steps = kernels * (size - 1) if homogeneous else kernels
    start = None if stationary else rng.dirichlet(np.ones(states))
    chain = (
        MarkovChain(kernels[0], start, size)
        if homogeneous
        else MarkovChain(steps, start)
    )
    return chain, chain_law(chain.initial_law(), steps)


def _random_kernel(rng, states, zeros):
    P = random_rows(rng, states, skew=rng.uniform(0, 1.5))
    if zeros:
        P[rng.random(P.shape) < 0.3] = 0.0
        P[:, 0] += 0.01  # one state can always be entered: one closed class
        P /= P.sum(axis=1, keepdims=True)
    return P


def every_mechanism(law, epsilon):
    return worst_case_leakage(JointTable(law), epsilon).value


@few
@given(seeds, levels, st.booleans(), st.booleans())
def test_no_mechanism_leaks_more_than_any_bound(seed, epsilon, homogeneous, stationary):
    chain, law = random_chain(
        seed, homogeneous=homogeneous, stationary=homogeneous and stationary
    )
    exact = every_mechanism(law, epsilon)
    for method in (
        ProjectiveTheorem(),
        StepTheorem(),
        WindowTheorem(),
        RatioTheorem(),
        OmegaTheorem(),
        GammaTheorem(),
        ZhaoTheorem(),
    ):
        assert exact <= method.bound(chain, epsilon, query=ANY).value * SLACK
    finite = finite_leakage(epsilon, chain.diameter, size=chain.size).value
    assert exact <= finite * SLACK


@few
@given(seeds, levels, st.booleans())
@pytest.mark.slow
def test_no_mechanism_leaks_more_than_the_step_bounds_of_a_chain_with_zeros(
    seed, epsilon, homogeneous
):
    chain, law = random_chain(seed, homogeneous=homogeneous, zeros=True)
    assume(step_diameters(chain))
    exact = every_mechanism(law, epsilon)
    for method in (StepTheorem(), WindowTheorem()):
        assert exact <= method.bound(chain, epsilon, query=ANY).value * SLACK


@few
@given(
    seeds, levels, st.sampled_from([(0, 0, 0), (0, 1, 2), (0, 1, 1), (0, 0), (0, 1)])
)
@pytest.mark.slow
def test_no_mechanism_leaks_more_than_the_tree_bound(seed, epsilon, shape):
    rng = np.random.default_rng(seed)
    states = 3 if len(shape) == 2 else 2
    parents = [None, *shape]
    kernels = [_random_kernel(rng, states, False) for _ in shape]
    root = rng.dirichlet(np.ones(states))
    tree = TreeModel(parents, kernels, root_law=root)
    exact = every_mechanism(tree_law(parents, kernels, root), epsilon)
    assert exact <= TreeTheorem().bound(tree, epsilon, query=ANY).value * SLACK


@pytest.mark.parametrize("seed", [3, 4])
def test_the_two_linear_programs_agree(seed):
    chain, law = random_chain(seed, homogeneous=True)
    assert chain.size is not None
    assert every_mechanism(law, 0.7) == pytest.approx(
        largest_leakage(law, 0.7), rel=1e-7
    )


@many
@given(levels, st.floats(0, 8), st.floats(0, 2), st.floats(0, 3))
def test_the_closed_form_grows_with_epsilon_and_diameter(epsilon, delta, more, wider):
    value = projective_leakage(epsilon, delta).value
    assert value >= epsilon
    assert projective_leakage(epsilon + more, delta).value >= value
    assert projective_leakage(epsilon, delta + wider).value >= value
    assert projective_leakage(epsilon, delta).value <= (epsilon + 2 * delta) * (
        1 + 1e-15
    )


@many
@given(levels, st.floats(1, 100), st.floats(0, 100))
def test_the_bound_from_gamma_grows_with_gamma(epsilon, gamma, more):
    one = projective_leakage(epsilon, ratio_diameter(gamma)).value
    other = projective_leakage(epsilon, ratio_diameter(gamma + more)).value
    assert one <= other
    assert one <= (epsilon + 4 * math.log(gamma)) * (1 + 1e-12)


@many
@given(st.floats(-5, 5), st.floats(0, 12))
def test_calibration_round_trips_over_ten_decades(exponent, delta):
    target = 10.0**exponent
    level = projective_budget(target, delta)
    achieved = projective_leakage(level, delta).value
    assert achieved <= target
    assert achieved == pytest.approx(target, rel=1e-9)


@many
@given(seeds, levels)
def test_reported_bounds_stay_below_the_published_ones(seed, epsilon):
    chain, _ = random_chain(seed, homogeneous=True)
    found = ProjectiveTheorem().bound(chain, epsilon, query=ANY).value
    published = GammaTheorem().bound(chain, epsilon, query=ANY).value
    assert found <= published * (1 + 1e-12)
    assert found <= general_leakage(epsilon, chain.size).value
    assert found <= OmegaTheorem().bound(chain, epsilon, query=ANY).value * (1 + 1e-12)
    ratio = RatioTheorem().bound(chain, epsilon, query=ANY).value
    assert ratio <= (epsilon + 4 * math.log(chain.omega)) * (1 + 1e-12)


@many
@given(seeds, levels)
def test_relabelling_the_states_changes_nothing(seed, epsilon):
    chain, _ = random_chain(seed, homogeneous=True)
    order = np.random.default_rng(seed).permutation(chain.states)
    other = MarkovChain(
        chain.transition[np.ix_(order, order)], chain.initial[order], chain.size
    )
    for method in (ProjectiveTheorem(), StepTheorem(), GammaTheorem(), RatioTheorem()):
        assert method.bound(other, epsilon, query=ANY).value == pytest.approx(
            method.bound(chain, epsilon, query=ANY).value, rel=1e-9
        )


@many
@given(seeds, levels)
def test_reversing_a_stationary_chain_changes_nothing(seed, epsilon):
    chain, _ = random_chain(seed, homogeneous=True, stationary=True)
    law = chain.stationary()
    reversed_matrix = (law[:, None] * chain.transition).T / law[:, None]
    other = MarkovChain(reversed_matrix, length=chain.size, renormalise=True)
    for method in (ProjectiveTheorem(), StepTheorem()):
        assert method.bound(other, epsilon, query=ANY).value == pytest.approx(
            method.bound(chain, epsilon, query=ANY).value, rel=1e-9
        )
    assert largest_log_ratio(other) == pytest.approx(largest_log_ratio(chain), rel=1e-9)


@many
@given(seeds, levels, st.floats(0, 2))
def test_trees_grow_with_epsilon_and_with_every_edge(seed, epsilon, more):
    rng = np.random.default_rng(seed)
    parents = [None, *(int(rng.integers(0, v)) for v in range(1, 8))]
    kernels = [random_rows(rng, 2) for _ in range(7)]
    tree = TreeModel(parents, kernels)
    bounds = tree_leakages(tree, epsilon)
    assert (tree_leakages(tree, epsilon + more) >= bounds).all()
    cut = TreeModel(parents, [np.full((2, 2), 0.5), *kernels[1:]])
    assert (tree_leakages(cut, epsilon) <= bounds).all()
    assert (bounds >= epsilon).all()

"""Properties of the exact engines on random small tables, against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.correlation.finite.exact import exact_leakage, pair_leakage
from undertow.correlation.finite.joint import JointTable, local_kernel
from undertow.correlation.finite.laplace import laplace_leakage
from undertow.correlation.finite.program import worst_case_leakage
from undertow.correlation.query import CountQuery
from undertow.mechanisms import RandomizedResponse

QUICK = settings(max_examples=60, deadline=None)
FEW = settings(max_examples=20, deadline=None)

shapes = st.lists(st.integers(2, 3), min_size=2, max_size=3).map(tuple)
epsilons = st.floats(0.05, 3.0)


@st.composite
def tables(draw, shape=shapes):
    """Draw a joint law in which some databases may be impossible."""
    sizes = draw(shape)
    weights = draw(
        st.lists(
            st.one_of(st.just(0), st.integers(1, 100)),
            min_size=math.prod(sizes),
            max_size=math.prod(sizes),
        ).filter(any)
    )
    return JointTable(np.reshape(np.array(weights) / sum(weights), sizes))


@st.composite
def tables_with_kernels(draw):
    joint = draw(tables())
    outputs = draw(st.integers(1, 3))
    cells = joint.pmf.size * outputs
    raw = draw(st.lists(st.integers(0, 5), min_size=cells, max_size=cells))
    kernel = np.reshape(raw, (*joint.shape, outputs)).astype(float)
    empty = kernel.sum(axis=-1) == 0
    kernel[empty] = 1.0
    return joint, kernel / kernel.sum(axis=-1, keepdims=True)


def enumerate_leakage(joint: JointTable, kernel: np.ndarray) -> float:
    """Follow Definitions 2.26 and 2.27 literally, one conditional at a time."""
    n, best = joint.size, 0.0
    databases = [d for d in np.ndindex(*joint.shape) if joint.pmf[d] > 0]
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            for known in itertools.combinations(others, size):
                laws: dict = {}
                for d in databases:
                    key = tuple(d[j] for j in known)
                    mass, law = laws.setdefault(key, {}).get(d[i], (0.0, 0.0))
                    laws[key][d[i]] = (
                        mass + joint.pmf[d],
                        law + joint.pmf[d] * kernel[d],
                    )
                for group in laws.values():
                    for one, other in itertools.permutations(group.values(), 2):
                        best = max(best, log_ratio(one, other))
    return best


def log_ratio(one, other) -> float:
    best = 0.0
    for p, q in zip(one[1] / one[0], other[1] / other[0], strict=True):
        if p > 0:
            best = max(best, math.inf if q == 0 else math.log(p / q))
    return best


@QUICK
@given(tables_with_kernels())
def test_the_exact_engine_is_the_literal_enumeration(case):
    joint, kernel = case
    found, expected = exact_leakage(joint, kernel), enumerate_leakage(joint, kernel)
    assert found.value == pytest.approx(expected, abs=1e-10)
    assert found.value >= expected - 1e-15


@QUICK
@given(tables(), st.floats(0.2, 5.0))
def test_the_laplace_engine_is_the_literal_enumeration(joint, scale):
    counts = sum(np.indices(joint.shape) == 1)
    outputs = np.arange(joint.size + 1)
    density = np.exp(-np.abs(outputs - counts[..., None]) / scale)
    expected = enumerate_leakage(joint, density)
    found = laplace_leakage(joint, scale, query=CountQuery())
    assert found.value == pytest.approx(expected, abs=1e-10)


@QUICK
@given(tables(), epsilons)
def test_the_pair_matrix_has_the_total_as_its_maximum(joint, epsilon):
    response = RandomizedResponse(3, epsilon)
    total = exact_leakage(joint, response).value
    pairs = [pair_leakage(joint, response, target=i).max() for i in range(joint.size)]
    assert max(pairs) == pytest.approx(total, abs=1e-12)


@FEW
@given(tables(), epsilons)
def test_the_program_lies_between_mechanisms_and_the_general_bound(joint, epsilon):
    worst = worst_case_leakage(joint, epsilon)
    response = exact_leakage(joint, RandomizedResponse(3, epsilon))
    count = laplace_leakage(joint, 1 / epsilon, query=CountQuery())
    assert response.value <= worst.value + 1e-10
    assert count.value <= worst.value + 1e-10
    assert worst.value <= joint.largest_group * epsilon * (1 + 1e-10)
    assert worst.tight


@FEW
@given(tables(), epsilons, st.floats(1.05, 3.0))
def test_the_program_grows_with_epsilon(joint, epsilon, factor):
    low = worst_case_leakage(joint, epsilon).value
    assert low <= worst_case_leakage(joint, epsilon * factor).value + 1e-9


@QUICK
@given(
    st.lists(
        st.lists(st.integers(1, 50), min_size=2, max_size=3), min_size=1, max_size=3
    ),
    epsilons,
)
def test_independent_records_leak_epsilon(marginals, epsilon):
    joint = JointTable.independent([np.array(m) / sum(m) for m in marginals])
    assert joint.largest_group == 1
    response = RandomizedResponse(3, epsilon)
    assert exact_leakage(joint, response).value == pytest.approx(epsilon, abs=1e-10)
    assert worst_case_leakage(joint, epsilon).value == pytest.approx(epsilon, rel=1e-9)
    count = laplace_leakage(joint, 1 / epsilon, query=CountQuery())
    assert count.value == pytest.approx(epsilon, abs=1e-10)


@QUICK
@given(tables(), st.floats(0.1, 5.0), st.floats(1.0, 4.0))
def test_more_noise_never_leaks_more(joint, scale, factor):
    near = laplace_leakage(joint, scale, query=CountQuery()).value
    assert laplace_leakage(joint, scale * factor, query=CountQuery()).value <= (
        near + 1e-11
    )


@QUICK
@given(tables_with_kernels(), st.integers(0, 2**32 - 1))
def test_post_processing_never_leaks_more(case, seed):
    joint, kernel = case
    merge = np.random.default_rng(seed).dirichlet(np.ones(2), size=kernel.shape[-1])
    before = exact_leakage(joint, kernel).value
    assert exact_leakage(joint, kernel @ merge).value <= before + 1e-10


@QUICK
@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_one_record_leaks_the_dp_loss(weights, seed):
    joint = JointTable(np.array(weights) / sum(weights))
    kernel = np.random.default_rng(seed).dirichlet(np.ones(3), size=len(weights))
    loss = np.log(kernel.max(axis=0) / kernel.min(axis=0)).max()
    assert exact_leakage(joint, kernel).value == pytest.approx(loss, abs=1e-11)


@QUICK
@given(tables(), st.randoms(use_true_random=False))
@pytest.mark.slow
def test_the_order_of_records_and_states_does_not_matter(joint, random):
    axes = list(range(joint.size))
    random.shuffle(axes)
    kernel = local_kernel(joint, RandomizedResponse(3, 1))
    moved = JointTable(joint.pmf.transpose(axes)[::-1])
    moved_kernel = kernel.transpose([*axes, joint.size])[::-1]
    here = exact_leakage(joint, kernel).value
    assert exact_leakage(moved, moved_kernel).value == pytest.approx(here, abs=1e-11)
    there = worst_case_leakage(moved, 1.0).value
    assert there == pytest.approx(worst_case_leakage(joint, 1.0).value, rel=1e-8)


@QUICK
@given(tables(), tables())
def test_groups_of_a_product_are_the_groups_of_its_factors(first, second):
    product = JointTable(np.multiply.outer(first.pmf, second.pmf))
    shifted = [
        tuple(j + first.size for j in group) for group in second.independent_groups()
    ]
    assert product.independent_groups() == (*first.independent_groups(), *shifted)

import itertools

import numpy as np
import pytest

from support.markov_oracle import parity_attack, parity_laws
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.program import worst_case_leakage
from undertow.correlation.leak import leakage
from undertow.correlation.markov.projective import (
    projective_diameter,
    projective_leakage,
)
from undertow.correlation.markov.steps import BlockTheorem, HigherOrderChain
from undertow.correlation.query import AnyQuery
from undertow.errors import ModelError, NotApplicable

ANY = AnyQuery()


def test_the_block_rule_covers_what_the_k_step_bound_does_not():
    chain = HigherOrderChain(parity_laws(), order=2)
    found = leakage(chain, 0.5)
    assert found.method == "block"
    assert found.value > parity_attack(11, 5, 0.5)
    assert [method.name for method in chain.methods()] == ["block", "general"]


def random_order_two(seed, length):
    rng = np.random.default_rng(seed)
    laws = rng.random((2, 2, 2)) ** 2 + 1e-3
    laws /= laws.sum(axis=-1, keepdims=True)
    start = rng.dirichlet(np.ones(4)).reshape(2, 2)
    table = start
    for _ in range(length - 2):
        table = table[..., None] * laws.reshape((1,) * (table.ndim - 2) + laws.shape)
    return HigherOrderChain(laws, order=2, length=length, initial=start), table


@pytest.mark.parametrize("seed", range(6))
def test_the_block_bound_covers_all_mechanisms(seed):
    chain, table = random_order_two(seed, 3 + seed % 3)
    for epsilon in (0.1, 1.5):
        exact = worst_case_leakage(JointTable(table), epsilon).value
        assert exact <= BlockTheorem().bound(chain, epsilon, query=ANY).value * (
            1 + 1e-9
        )


def test_order_one_is_the_projective_bound():
    P = [[0.882, 0.118], [0.305, 0.695]]
    chain = HigherOrderChain(P, order=1)
    found = BlockTheorem().bound(chain, 0.7, query=ANY)
    expected = projective_leakage(0.7, projective_diameter(P)).value
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert BlockTheorem().bound(chain, 0.0, query=ANY).value == 0.0


def test_calibrating_and_bounding_cancel():
    for length in (None, 7):
        chain = HigherOrderChain(np.full((2, 2, 2), 0.5), order=2, length=length)
        laws = random_order_two(3, 5)[0]
        for model in (chain, laws):
            for target in (0.01, 1.0, 20.0):
                level = BlockTheorem().invert(model, target, query=ANY)
                achieved = BlockTheorem().bound(model, level, query=ANY).value
                assert achieved <= target
                assert achieved == pytest.approx(target, rel=1e-9)


def test_a_block_that_cannot_follow_is_refused():
    laws = np.zeros((2, 2, 2))
    laws[..., 0] = 0.5
    laws[..., 1] = 0.5
    laws[1, 1] = [1.0, 0.0]
    chain = HigherOrderChain(laws, order=2, length=9)
    with pytest.raises(NotApplicable, match="use 'general' with a length"):
        BlockTheorem().bound(chain, 1.0, query=ANY)
    assert leakage(chain, 1.0).method == "general"


def test_a_chain_describes_itself():
    chain = HigherOrderChain(
        np.full((3, 3, 3), 1 / 3), order=2, length=5, values=[1, 2, 5]
    )
    assert (chain.order, chain.states, chain.size, chain.largest_group) == (2, 3, 5, 5)
    assert chain.value_range == (1.0, 5.0)
    assert chain.values.tolist() == [1.0, 2.0, 5.0]
    assert "order 2" in repr(chain)
    assert "order 2" in chain.assumptions().unchecked[0]
    assert "any number of" in HigherOrderChain(np.full((2, 2), 0.5), order=1).summary


@pytest.mark.parametrize(
    ("laws", "options", "words"),
    [
        (np.full((2, 2), 0.5), {"order": 2}, "3 axes"),
        (np.full((2, 3, 2), 0.5), {"order": 2}, "3 axes of one length"),
        (np.full((2, 2, 2), 0.4), {"order": 2}, "sum to 1"),
        (np.full((2, 2, 2), 0.5), {"order": 2, "length": 1}, "at least the order 2"),
        (np.full((17,) * 4, 1 / 17), {"order": 3}, "at most 4096 blocks"),
        (0.5, {"order": 1}, "2 axes"),
    ],
)
def test_malformed_chains_are_refused(laws, options, words):
    with pytest.raises(ModelError, match=words):
        HigherOrderChain(laws, **options)


def test_laws_can_be_renormalised():
    chain = HigherOrderChain(np.ones((2, 2, 2)), order=2, renormalise=True)
    assert chain.block_diameter == pytest.approx(0.0, abs=1e-12)


def test_evidence_is_kept_and_impossible_evidence_refused():
    laws = np.zeros((2, 2, 2))
    for a, b in itertools.product(range(2), repeat=2):
        laws[a, b] = [0.8, 0.2] if a ^ b else [1.0, 0.0]
    chain = HigherOrderChain(laws, order=2, length=5, initial=np.full((2, 2), 0.25))
    rng = np.random.default_rng(0)
    drawn = chain.sample_given({1: 1, 3: 1}, 20, rng=rng)
    assert drawn.shape == (20, 5)
    assert (drawn[:, [1, 3]] == 1).all()
    assert chain.sample(3, rng=rng).shape == (3, 5)
    with pytest.raises(ModelError, match="occur together"):
        chain.sample_given({0: 0, 1: 0, 2: 1}, 1, rng=rng)


def test_without_a_start_the_blocks_are_stationary():
    chain = HigherOrderChain(np.full((2, 2, 2), 0.5), order=2, length=3)
    assert chain.initial_law().tolist() == pytest.approx([0.25] * 4)

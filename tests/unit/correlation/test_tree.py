import itertools

import numpy as np
import pytest

from support import markov_oracle
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.program import worst_case_leakage
from undertow.correlation.leak import leakage
from undertow.correlation.markov.projective import (
    finite_leakage,
    influence,
    log_diameter,
    projective_diameter,
)
from undertow.correlation.markov.tree import TreeModel, TreeTheorem, tree_leakages
from undertow.correlation.query import AnyQuery
from undertow.errors import ModelError, NotApplicable

ANY = AnyQuery()
P = np.array([[0.8, 0.2], [0.3, 0.7]])
SHAPES = {
    "path": [None, 0, 1, 2],
    "star": [None, 0, 0, 0],
    "fork": [None, 0, 1, 1],
    "middle": [1, None, 1, 2],
}


def brute_recursion(tree, epsilon):
    """Root the tree at each record in turn."""
    near = {v: [] for v in range(tree.size)}
    for v, p in enumerate(tree.parents):
        if p is not None:
            near[v].append((p, tree.diameters[v]))
            near[p].append((v, tree.diameters[v]))

    def gathered(v, source):
        return epsilon + sum(
            influence(gathered(u, v), diameter)
            for u, diameter in near[v]
            if u != source
        )

    return [gathered(v, None) for v in range(tree.size)]


@pytest.mark.parametrize("shape", SHAPES)
def test_rerooting_gives_what_rooting_at_each_record_gives(shape):
    rng = np.random.default_rng(1)
    kernels = [markov_oracle.random_rows(rng, 3) for _ in range(3)]
    tree = TreeModel(SHAPES[shape], kernels)
    for epsilon in (0.0, 0.01, 1.0, 20.0):
        assert tree_leakages(tree, epsilon).tolist() == pytest.approx(
            brute_recursion(tree, epsilon), rel=1e-11
        )


@pytest.mark.parametrize("shape", ["path", "star", "fork"])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_covers_all_mechanisms(shape, seed):
    rng = np.random.default_rng(seed)
    kernels = [markov_oracle.random_rows(rng, 2) for _ in range(3)]
    root = rng.dirichlet([1.0, 1.0])
    tree = TreeModel(SHAPES[shape], kernels, root_law=root)
    law = markov_oracle.tree_law(SHAPES[shape], kernels, root)
    for epsilon in (0.1, 2.0):
        exact = worst_case_leakage(JointTable(law), epsilon).value
        bound = TreeTheorem().bound(tree, epsilon, query=ANY).value
        assert exact <= bound * (1 + 1e-9)
        assert exact >= 0.3 * bound


def test_a_path_is_a_chain():
    tree = TreeModel([None, *range(8)], P)
    for epsilon in (0.1, 1.0, 5.0):
        found = TreeTheorem().bound(tree, epsilon, query=ANY).value
        chain = finite_leakage(epsilon, projective_diameter(P), size=9).value
        assert found == pytest.approx(chain, rel=1e-11)


def test_the_diameter_of_an_edge_is_that_of_both_its_directed_kernels():
    rng = np.random.default_rng(3)
    kernel, root = markov_oracle.random_rows(rng, 3), rng.dirichlet(np.ones(3))
    backward = (root[:, None] * kernel).T
    backward /= backward.sum(axis=1, keepdims=True)
    assert log_diameter(np.log(backward)) == pytest.approx(
        projective_diameter(kernel), abs=1e-12
    )
    there = TreeModel([None, 0], kernel)
    back = TreeModel([1, None], backward)
    assert tree_leakages(there, 0.7) == pytest.approx(tree_leakages(back, 0.7))


def test_the_root_does_not_matter():
    symmetric = np.array([[0.7, 0.3], [0.3, 0.7]])
    one = tree_leakages(TreeModel([None, 0, 1, 1], symmetric), 0.5)
    other = tree_leakages(TreeModel([1, 3, 1, None], symmetric), 0.5)
    assert one.tolist() == pytest.approx(other.tolist())


def test_a_strong_branch_does_not_spoil_the_digits_of_a_weak_one():
    strong = np.array([[1 - 1e-12, 1e-12], [1e-12, 1 - 1e-12]])
    tree = TreeModel([None, 0, *range(1, 40)], [strong] * 40)
    assert tree_leakages(tree, 1e-9).tolist() == pytest.approx(
        brute_recursion(tree, 1e-9), rel=1e-11
    )


def test_one_record_leaks_its_level():
    tree = TreeModel([None], P, root_law=[0.5, 0.5])
    assert leakage(tree, 0.4).value == pytest.approx(0.4, rel=1e-11)
    assert tree.sample(2, rng=np.random.default_rng(0)).shape == (2, 1)


def test_the_bound_is_capped_and_falls_back_to_the_general_one():
    tree = TreeModel([None, 0, 0], np.array([[1 - 1e-12, 1e-12], [1e-12, 1 - 1e-12]]))
    assert leakage(tree, 0.1).value == pytest.approx(0.3, rel=1e-11)
    zero = TreeModel([None, 0, 0], [P, [[1.0, 0.0], [0.5, 0.5]]])
    with pytest.raises(NotApplicable, match="edge to record 2; use method 'general'"):
        TreeTheorem().bound(zero, 0.1, query=ANY)
    assert leakage(zero, 0.1).method == "general"


def test_calibrating_and_bounding_cancel():
    tree = TreeModel(SHAPES["fork"], P)
    for target in (1e-6, 0.1, 1.0, 30.0):
        level = TreeTheorem().invert(tree, target, query=ANY)
        achieved = TreeTheorem().bound(tree, level, query=ANY).value
        assert achieved <= target
        assert achieved == pytest.approx(target, rel=1e-9)


def test_edges_and_parents_describe_the_same_tree():
    kernels = [markov_oracle.random_rows(np.random.default_rng(k), 2) for k in range(3)]
    by_parents = TreeModel([None, 0, 1, 1], kernels)
    order = [2, 0, 1]
    edges = [(0, 1), (1, 2), (1, 3)]
    by_edges = TreeModel.from_edges(
        [edges[k] for k in order], [kernels[k] for k in order]
    )
    assert by_edges.parents == by_parents.parents
    assert by_edges.diameters == by_parents.diameters
    with pytest.raises(ModelError, match="got two for 1"):
        TreeModel.from_edges([(0, 1), (2, 1)], P)


@pytest.mark.parametrize(
    ("parents", "kernels", "words"),
    [
        ([0, 0], P, "one None, the root, got 0"),
        ([None, None], P, "got 2"),
        ([None, 2, 1], P, "cycle at 1"),
        ([None, 0], [P, P], "1 edges, got 2"),
        ([None, 0], [[0.5, 0.4], [0.5, 0.5]], "renormalise it"),
    ],
)
def test_malformed_trees_are_refused(parents, kernels, words):
    with pytest.raises(ModelError, match=words):
        TreeModel(parents, kernels)


def test_a_tree_describes_itself():
    tree = TreeModel(SHAPES["fork"], P * 2, renormalise=True, values=[-1, 1])
    assert (tree.size, tree.largest_group, tree.states) == (4, 4, 2)
    assert tree.children == ((1,), (2, 3), (), ())
    assert tree.value_range == (-1.0, 1.0)
    assert tree.values.tolist() == [-1.0, 1.0]
    assert "tree of 4 records" in repr(tree)
    assert any("renormalised" in text for text in tree.assumptions().checked)
    with pytest.raises(ValueError, match="got the root 0"):
        tree.kernel(0)


def test_conditional_draws_have_the_conditional_law_in_the_limit_of_certainty():
    sure = np.array([[0.0, 1.0], [1.0, 0.0]])
    tree = TreeModel(SHAPES["fork"], sure, root_law=[0.5, 0.5])
    drawn = tree.sample_given({3: 1}, 10, rng=np.random.default_rng(0))
    assert (drawn == [1, 0, 1, 1]).all()
    with pytest.raises(ModelError, match="occur together"):
        tree.sample_given({2: 0, 3: 1}, 1, rng=np.random.default_rng(0))
    with pytest.raises(ModelError, match="needs root_law"):
        TreeModel([None, 0], P).sample(1, rng=np.random.default_rng(0))


def test_long_trees_do_not_underflow():
    tree = TreeModel([None, *range(3000)], P, root_law=[0.5, 0.5])
    known = {j: 1 for j in range(1, 3001)}
    drawn = tree.sample_given(known, 2, rng=np.random.default_rng(0))
    assert (drawn[:, 1:] == 1).all()


def test_the_worst_record_is_named():
    found = TreeTheorem().bound(TreeModel(SHAPES["star"], P), 0.3, query=ANY)
    assert found.witness.details["target"] == 0
    bounds = tree_leakages(TreeModel(SHAPES["star"], P), 0.3)
    assert all(bounds[0] >= b for b in itertools.islice(bounds, 1, None))


TWO = np.array([[0.7, 0.3], [0.4, 0.6]])


@pytest.mark.parametrize("size", [1, 2, 6])
def test_a_path_leaks_as_the_chain_does(size):
    path = TreeModel([None, *range(size - 1)], TWO)
    chain = finite_leakage(0.7, projective_diameter(TWO), size=size)
    found = TreeTheorem().bound(path, 0.7, query=ANY)
    assert found.value == pytest.approx(chain.value, rel=1e-12)

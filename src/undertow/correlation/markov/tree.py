"""Records on the vertices of a tree, and what a release leaks about them.

A chain is a path. Unlike a pedigree, no record has two parents. The leakage follows
the edges inwards: each one lets the influence behind it through as one kernel does.
The theorem and its proof are on the theory page *Records on a tree*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_index
from undertow.correlation.group import general_leakage
from undertow.correlation.level import check_level, last_level
from undertow.correlation.markov.chain import (
    draw_states,
    read_law,
    read_values,
    state_masks,
)
from undertow.correlation.markov.projective import (
    MARGIN,
    influence,
    projective_diameter,
    read_kernels,
    read_numbers,
    require_dp,
)
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.query import Query
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem, LeakageTheorem
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.rounding import inflate


class TreeModel(Model):
    r"""A Markov field on a tree: given a record, its branches are independent.

    Parameters
    ----------
    parents : sequence of int or None
        Parent of each record, None for the root.
    kernels : array_like of shape (s, s), or sequence of n - 1 such
        Law of each record given its parent, ``P[parent, record]``: one for all, or one
        for each record but the root, by rising index.
    root_law : array_like of shape (s,), optional
        Law of the root; needed to sample, not to bound leakage.
    values : array_like of shape (s,), optional
        Number each state stands for.
    renormalise : bool
        Divide laws by their sums.

    Raises
    ------
    ModelError
        If `parents` is no tree, or a kernel is malformed.

    Examples
    --------
    >>> star = TreeModel([None, 0, 0, 0], [[0.8, 0.2], [0.2, 0.8]])
    >>> star.summary
    'tree of 4 records on 2 states'
    """

    def __init__(
        self,
        parents: Sequence[int | None],
        kernels: ArrayLike | Sequence[ArrayLike],
        *,
        root_law: ArrayLike | None = None,
        values: ArrayLike | None = None,
        renormalise: bool = False,
    ) -> None:
        self._parents, self._children, self._order = _read_tree(parents)
        read, self._correction = read_kernels(kernels, renormalise=renormalise)
        edges = len(self._parents) - 1
        if read.ndim == 3 and len(read) != edges:
            raise ModelError(
                f"kernels must be one for each of the {edges} edges, got {len(read)}."
            )
        states = read.shape[-1]
        self._kernels = read
        # Row of the kernels that belongs to each record; the root has none.
        self._edge = np.cumsum([parent is not None for parent in self._parents]) - 1
        self._root_law = (
            None
            if root_law is None
            else read_law(root_law, states, name="root_law", renormalise=renormalise)
        )
        self._values = read_values(values, states)

    @classmethod
    def from_edges(
        cls,
        edges: Sequence[tuple[int, int]],
        kernels: ArrayLike | Sequence[ArrayLike],
        *,
        root_law: ArrayLike | None = None,
        values: ArrayLike | None = None,
        renormalise: bool = False,
    ) -> TreeModel:
        """Return the tree with the edges ``(parent, record)``, kernels in their order.

        Examples
        --------
        >>> TreeModel.from_edges([(0, 2), (0, 1)], [[0.8, 0.2], [0.2, 0.8]]).parents
        (None, 0, 0)
        """
        parents: list[int | None] = [None] * (len(edges) + 1)
        for parent, record in edges:
            place = check_index(record, "record", size=len(parents))
            if parents[place] is not None:
                raise ModelError(
                    f"edges must give each record one parent, got two for {record}."
                )
            parents[place] = check_index(parent, "parent", size=len(parents))
        matrices = read_numbers(kernels, "kernels")
        if matrices.ndim == 3 and len(matrices) == len(edges):
            matrices = matrices[np.argsort([record for _, record in edges])]
        return cls(
            parents,
            matrices,
            root_law=root_law,
            values=values,
            renormalise=renormalise,
        )

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    @property
    def parents(self) -> tuple[int | None, ...]:
        """Parent of each record, None for the root."""
        return self._parents

    @property
    def states(self) -> int:
        """Number of states of a record."""
        return int(self._kernels.shape[-1])

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self._parents)

    @property
    def largest_group(self) -> int:
        """The number of records: every one depends on every other."""
        return len(self._parents)

    @property
    def values(self) -> Array:
        """The number each state stands for."""
        return self._values

    @property
    def value_range(self) -> tuple[float, float]:
        """Least and greatest value of a state."""
        return float(self._values.min()), float(self._values.max())

    @property
    def summary(self) -> str:
        """The tree in one line."""
        return f"tree of {self.size} records on {self.states} states"

    @property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Children of each record."""
        return self._children

    @property
    def order(self) -> tuple[int, ...]:
        """The records, parents before children."""
        return self._order

    @cached_property
    def diameters(self) -> tuple[float, ...]:
        """Projective diameter of the edge to each record's parent; 0 at the root."""
        if self._kernels.ndim == 2:
            one = projective_diameter(self._kernels)
            return tuple(0.0 if p is None else one for p in self._parents)
        each = [projective_diameter(kernel) for kernel in self._kernels]
        return tuple(
            0.0 if parent is None else each[self._edge[record]]
            for record, parent in enumerate(self._parents)
        )

    def kernel(self, record: int) -> Array:
        """Return the law of `record` given its parent."""
        record = check_index(record, "record", size=self.size)
        if self._parents[record] is None:
            raise ValueError(f"record must have a parent, got the root {record}.")
        return (
            self._kernels
            if self._kernels.ndim == 2
            else (self._kernels[self._edge[record]])
        )

    def assumptions(self) -> Assumptions:
        """Return what was checked of the tree, and what must be trusted."""
        checked = ["the parents form a tree", "kernel rows are probability laws"]
        if self._correction is not None:
            checked.append(self._correction)
        return Assumptions(
            checked=tuple(checked),
            unchecked=(
                "the records follow this tree-structured law",
                "the law is public knowledge, not fitted to the protected records",
            ),
        )

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the tree recursion and the general bound."""
        from undertow.correlation.group import GeneralTheorem

        return TreeTheorem(), GeneralTheorem()

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `count` sets of state indices; one row each."""
        return self.sample_given({}, count, rng=rng)

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw `count` sets given the states of the `known` records.

        Messages go from the leaves to the root, draws from the root to the leaves.

        Raises
        ------
        ModelError
            If the root has no law, or the known states cannot occur together.
        """
        evidence = self.check_known(known)
        count = check_count(count, "count", minimum=0)
        if self._root_law is None:
            raise ModelError("sampling a tree needs root_law, got None.")
        weights = self._evidence_weights(evidence)
        root = self._order[0]
        start = self._root_law * weights[root]
        if not start.any():
            raise ModelError(
                "known records must be able to occur together, got states of "
                "probability zero."
            )
        drawn = np.zeros((count, self.size), dtype=np.int64)
        drawn[:, root] = draw_states(start[None], drawn[:, root], rng=rng)
        for record in self._order[1:]:
            rows = drawn[:, _parent(self._parents, record)]
            table = self.kernel(record) * weights[record]
            drawn[:, record] = draw_states(table, rows, rng=rng)
        return drawn

    def _evidence_weights(self, evidence: dict[int, Any]) -> Array:
        """Return the scaled weight of the evidence at and below each record's state."""
        weights = state_masks(evidence, self.size, states=self.states)
        for record in self._order[:0:-1]:
            message = self.kernel(record) @ weights[record]
            parent = _parent(self._parents, record)
            weights[parent] *= message / (message.max() or 1.0)
            weights[parent] /= weights[parent].max() or 1.0
        return weights


def _parent(parents: tuple[int | None, ...], record: int) -> int:
    parent = parents[record]
    assert parent is not None
    return parent


def _read_tree(
    parents: Sequence[int | None],
) -> tuple[tuple[int | None, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Return checked parents, children, and the records from the root outwards."""
    listed = tuple(
        None if p is None else check_index(p, "parent", size=len(parents))
        for p in parents
    )
    roots = [record for record, parent in enumerate(listed) if parent is None]
    if len(roots) != 1:
        raise ModelError(f"parents must have one None, the root, got {len(roots)}.")
    children: list[list[int]] = [[] for _ in listed]
    for record, parent in enumerate(listed):
        if parent is not None:
            children[parent].append(record)
    order = list(roots)
    for record in order:
        order.extend(children[record])
    if len(order) != len(listed):
        lost = min(set(range(len(listed))) - set(order))
        raise ModelError(f"parents must lead to the root, got a cycle at {lost}.")
    return listed, tuple(map(tuple, children)), tuple(order)


# What a release leaks about records on a tree.
#
# The leakage follows the edges inwards: each one lets the influence behind it through
# as one kernel does. The theorem and its proof are on the theory page *Records on a
# tree*.


def tree_leakages(tree: TreeModel, epsilon: float) -> Array:
    r"""Bound the leakage about each record of a tree.

    .. math::
        B_v = \varepsilon + \sum_{u \sim v} d_{u \to v}, \qquad
        d_{u \to v} = d\Big(\varepsilon + \sum_{w \sim u,\, w \ne v} d_{w \to u},\;
        \Delta_{uv}\Big)

    with :func:`~undertow.correlation.markov.projective.influence` as d. Each direction
    of each edge is visited once: cost n.

    Returns
    -------
    ndarray of shape (n,)
        Raised by a relative margin that covers the rounding.

    Raises
    ------
    NotApplicable
        If a kernel has a zero.

    Examples
    --------
    >>> from undertow.correlation.markov.tree import TreeModel
    >>> star = TreeModel([None, 0, 0, 0], [[0.8, 0.2], [0.2, 0.8]])
    >>> tree_leakages(star, 0.1).round(4).tolist()
    [0.28, 0.2319, 0.2319, 0.2319]
    """
    epsilon = check_level(epsilon)
    diameters = tree.diameters
    if max(diameters) == math.inf:
        record = diameters.index(math.inf)
        raise NotApplicable(
            "method 'tree' needs edge kernels without zeros, got one on the edge to "
            f"record {record}; use method 'general'."
        )
    upward = _upward(tree, epsilon)
    totals = np.full(tree.size, epsilon)
    above = [0.0] * tree.size  # what comes from the parent's side
    for record in tree.order:
        branches = tree.children[record]
        others = _sums_but_one([above[record], *(upward[c] for c in branches)])
        totals[record] += others[0] + above[record]
        for child, rest in zip(branches, others[1:], strict=True):
            above[child] = influence(epsilon + rest, diameters[child])
    margin = MARGIN + 2e-15 * tree.size
    return np.array([inflate(total, margin) for total in totals.tolist()])


def _upward(tree: TreeModel, epsilon: float) -> list[float]:
    """Return what each record's subtree lets through to its parent."""
    passed = [0.0] * tree.size
    for record in tree.order[:0:-1]:
        gathered = epsilon + sum(passed[child] for child in tree.children[record])
        passed[record] = influence(gathered, tree.diameters[record])
    return passed


def _sums_but_one(terms: list[float]) -> list[float]:
    """Return for each term the sum of the others, without subtractions."""
    before = [0.0, *accumulate(terms[:-1])]
    after = [0.0, *accumulate(terms[:0:-1])][::-1]
    return [left + right for left, right in zip(before, after, strict=True)]


class TreeTheorem(FormulaTheorem):
    """The recursion along the edges of a tree."""

    name = "tree"
    source = "projective bound for Markov trees"
    published = False
    checked = ("every edge kernel is positive",)

    def read(self, model: Any, query: Query) -> Any:
        """Return the tree, for a DP release."""
        require_dp(query, self.name)
        return model

    def at(self, given: Any, epsilon: float) -> Leakage:
        """Return the largest bound over records, for any mechanism."""
        bounds = tree_leakages(given, epsilon)
        worst = int(bounds.argmax())
        cap = general_leakage(epsilon, given.size).value
        witness = adversary_witness(Adversary(worst))
        return self.stated(min(float(bounds[worst]), cap), witness=witness)

    def within(self, given: Any, target: float) -> float:
        """Return the largest level whose bound is within `target`."""

        def holds(epsilon: float) -> bool:
            return self.at(given, epsilon).value <= target

        return last_level(holds, target)

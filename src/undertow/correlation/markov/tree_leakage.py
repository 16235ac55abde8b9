r"""What a release leaks about records on a tree.

The leakage follows the edges inwards: each one lets the influence behind it through as
one kernel does. The theorem and its proof are on the theory page *Records on a tree*.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import inflate
from undertow._validate import check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.general import general_leakage
from undertow.correlation.markov.closed import (
    MARGIN,
    influence,
    positive_level,
    require_dp,
)
from undertow.correlation.markov.tree import TreeModel
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable

__all__ = ["TreeMethod", "tree_leakages"]

Array = NDArray[np.float64]


def tree_leakages(tree: TreeModel, epsilon: float) -> Array:
    r"""Bound the leakage about each record of a tree.

    .. math::
        B_v = \varepsilon + \sum_{u \sim v} d_{u \to v}, \qquad
        d_{u \to v} = d\Big(\varepsilon + \sum_{w \sim u,\, w \ne v} d_{w \to u},\;
        \Delta_{uv}\Big)

    with :func:`~undertow.correlation.markov.closed.influence` as d. Each direction
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


class TreeMethod(Method):
    """The recursion along the edges of a tree."""

    name: ClassVar[str] = "tree"
    theorem: ClassVar[str] = "projective bound for Markov trees"
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the largest bound over records, for any mechanism."""
        require_dp(query, self.name)
        bounds = tree_leakages(model, epsilon)
        worst = int(bounds.argmax())
        cap = general_leakage(epsilon, model.size).value
        return Leakage(
            min(float(bounds[worst]), cap),
            self.theorem,
            checked=("every edge kernel is positive",),
            witness=adversary_witness(Adversary(worst)),
            method=self.name,
        )

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return the largest level whose bound is within `target`."""
        target = check_positive(target, "target")

        def holds(epsilon: float) -> bool:
            return self.leakage(model, epsilon, query=query).value <= target

        return positive_level(holds, target)

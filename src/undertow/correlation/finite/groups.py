"""The finest partition of records into mutually independent groups.

Pairwise tests do not find it: with X3 = X1 xor X2 every two of three fair bits are
independent, and the three are one group.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["FACTOR_TOLERANCE", "independent_groups", "is_independent"]

Floats = NDArray[np.float64]

FACTOR_TOLERANCE = 1e-12
"""Relative difference up to which a table counts as the product of two margins.

Rounding leaves about 1e-15. A dependence this weak moves a leakage by at most four
times as much for every split; the exact engines add that, the general bound reads the
groups as independent.
"""

# Cells that a search for a split may read before the records left stay together.
_CELLS_READ = 2**28


def independent_groups(pmf: Floats) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return the finest mutually independent groups of the axes of a table.

    Parameters
    ----------
    pmf : array of shape (s_1, ..., s_n)
        A probability table.

    Returns
    -------
    groups : tuple of tuple of int
        Sorted groups; their margins multiply to the table.
    complete : bool
        False if the search was cut short. The groups are then independent of each
        other, but one of them may split further.

    Notes
    -----
    The sets that are independent of their complement are closed under intersection
    and complement, so the finest partition is unique and its group around a record is
    the smallest such set that contains it. Two dependent records share a group, so
    sets of such clusters are tried by size: ``2**(c-1)`` factorisation tests for c
    clusters at worst. Definition 6.2 of Guerra-Balboa (2026).

    Examples
    --------
    >>> xor = np.array([[[0.25, 0], [0, 0.25]], [[0, 0.25], [0.25, 0]]])
    >>> independent_groups(xor)
    (((0, 1, 2),), True)
    """
    left = tuple(range(pmf.ndim))
    groups: list[tuple[int, ...]] = []
    budget, complete = _CELLS_READ, True
    while left:
        margin = _margin(pmf, left)
        places, spent = _group_of_first(margin, budget)
        complete, budget = complete and spent < budget, budget - spent
        group = tuple(left[place] for place in places)
        groups.append(group)
        left = tuple(record for record in left if record not in group)
    return tuple(sorted(groups)), complete


def is_independent(pmf: Floats, part: Sequence[int]) -> bool:
    """Return whether the axes in `part` are jointly independent of all others."""
    inside = set(part)
    outer = tuple(axis for axis in range(pmf.ndim) if axis not in inside)
    own = pmf.sum(axis=outer, keepdims=True)
    others = pmf.sum(axis=tuple(sorted(inside)), keepdims=True)
    product = own * others
    return bool(np.all(np.abs(pmf - product) <= FACTOR_TOLERANCE * product))


def _group_of_first(pmf: Floats, budget: int) -> tuple[tuple[int, ...], int]:
    """Return the group around axis 0 and the number of cells read to find it."""
    first, *others = _dependent_clusters(pmf)
    spent = 0
    for number in range(len(others)):
        for chosen in itertools.combinations(others, number):
            part = tuple(sorted(itertools.chain(first, *chosen)))
            spent += pmf.size
            if is_independent(pmf, part):
                return part, spent
            if spent >= budget:
                return tuple(range(pmf.ndim)), spent
    return tuple(range(pmf.ndim)), spent


def _dependent_clusters(pmf: Floats) -> list[tuple[int, ...]]:
    """Return the axes clustered by pairwise dependence, the cluster of axis 0 first."""
    cluster = list(range(pmf.ndim))
    for a, b in itertools.combinations(range(pmf.ndim), 2):
        if cluster[a] != cluster[b] and not is_independent(_margin(pmf, (a, b)), (0,)):
            old, new = max(cluster[a], cluster[b]), min(cluster[a], cluster[b])
            cluster = [new if label == old else label for label in cluster]
    labels = sorted(set(cluster))
    return [tuple(a for a, of in enumerate(cluster) if of == label) for label in labels]


def _margin(pmf: Floats, axes: Sequence[int]) -> Floats:
    kept = set(axes)
    summed = tuple(axis for axis in range(pmf.ndim) if axis not in kept)
    return np.asarray(pmf.sum(axis=summed), dtype=np.float64)

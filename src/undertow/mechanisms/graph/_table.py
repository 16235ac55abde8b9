"""Tables of distances: reading them and checking that they are ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import AssumptionError, ModelError, NotApplicable
from undertow.mechanisms.graph.hops import adjacency, hop_distances

__all__ = ["read_distances", "read_numbers", "require_triangles"]

# Largest table whose triangle inequality is checked point by point.
_CHECKED = 1000


def read_distances(distances: ArrayLike) -> NDArray[Any]:
    """Read a square table of distances: zero to oneself, positive to others."""
    try:
        table = np.array(distances)
    except ValueError:
        raise ModelError(
            "distances must be a table, got rows of all lengths."
        ) from None
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.size == 0:
        raise ModelError(f"distances must be a square table, got shape {table.shape}.")
    if table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise ModelError("distances must be finite numbers.")
    away = ~np.eye(len(table), dtype=bool)
    if np.diagonal(table).any() or (table[away] <= 0).any():
        raise ModelError(
            "distances must be zero from a node to itself and positive to others."
        )
    return table


def require_triangles(table: NDArray[Any]) -> None:
    """Refuse a table in which some detour is shorter than the way.

    A table that counts hops over its own entries of 1 passes in O(m) per arc; others
    are checked in O(m^3), to a relative 1e-12.
    """
    if _are_hops(table):
        return
    if len(table) > _CHECKED:
        raise NotApplicable(
            f"distances that are no hops must be of at most {_CHECKED} nodes, got "
            f"{len(table)}, for the triangle inequality to be checked; use from_graph."
        )
    slack = 1e-12 * float(table.max())
    for v, row in enumerate(table):
        if (row > (row[:, None] + table).min(axis=0) + slack).any():
            raise AssumptionError(
                "distances must obey the triangle inequality, got a detour that is "
                f"shorter than the way from node {v}; use the lengths of shortest ways."
            )


def _are_hops(table: NDArray[Any]) -> bool:
    """Say whether the table counts the hops over its own entries of 1."""
    arcs = np.argwhere(table == 1)
    if len(arcs) == 0:
        return False
    try:
        return bool((hop_distances(adjacency(arcs, size=len(table))) == table).all())
    except AssumptionError:
        return False


def read_numbers(truths: ArrayLike, size: int) -> NDArray[np.intp]:
    """Read numbers of nodes; the message never shows one."""
    array = np.asarray(truths)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError("truths must be a one-dimensional array of integers.")
    if array.size and not (array.min() >= 0 and array.max() < size):
        raise ValueError(f"truths must be numbers of nodes in 0..{size - 1}.")
    return array.astype(np.intp)

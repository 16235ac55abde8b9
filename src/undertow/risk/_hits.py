"""Tables of errors and of hits, read once: ``[guess, truth]``, each record a hit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import ModelError

__all__ = ["read_distances", "read_truth_values", "reflexive"]


def read_distances(table: ArrayLike) -> NDArray[Any]:
    """Read errors; nan would pass for a miss, and a lost hit understates the risk."""
    given = _numbers(table)
    try:
        proper = given.dtype.kind in "biufO" and bool(np.all(given >= 0))
    except TypeError:
        proper = False
    if not proper:
        raise ModelError(
            "distances must be a table of non-negative numbers or infinite, got other "
            "entries or uneven rows."
        )
    return given


def read_truth_values(hits: ArrayLike) -> NDArray[np.bool_]:
    """Read a table of truth values, also written as 0 and 1."""
    table = _numbers(hits)
    if table.dtype != np.bool_ and not np.isin(table, (0, 1)).all():
        raise ModelError("hits must be truth values, got other numbers.")
    return table.astype(np.bool_)


def reflexive(hits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the table, frozen, if it has a row per record and each hits itself."""
    if hits.ndim != 2 or hits.shape[0] < hits.shape[1] or hits.shape[1] == 0:
        raise ModelError(
            "hits must have a row for each record, then one for each other guess, got "
            f"shape {hits.shape}."
        )
    wrong = np.flatnonzero(~np.diagonal(hits))
    if wrong.size:
        raise ModelError(
            "a record must hit itself (its error is zero), got a miss on the diagonal "
            f"at {wrong[0]}; index the matrix by [guess, truth]."
        )
    hits.setflags(write=False)
    return hits


def _numbers(table: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(table)
    except ValueError:  # uneven rows
        return np.array([""])

"""Tables of errors and of hits, read once: ``[guess, truth]``, each record a hit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import ModelError, NotApplicable

__all__ = ["hits_by_calls", "read_distances", "read_truth_values", "reflexive"]

# Calls of an error function that is given as a Python callable.
_PAIRS = 4_000_000


def hits_by_calls(
    guesses: Sequence[Any],
    truths: Sequence[Any],
    *,
    distance: Callable[[Any, Any], float],
    eta: float,
) -> NDArray[np.bool_]:
    """Say of each guess and truth whether the error is at most `eta`."""
    if len(guesses) * len(truths) > _PAIRS:
        raise NotApplicable(
            f"a callable distance must have at most {_PAIRS} pairs, got "
            f"{len(guesses) * len(truths)}; use Success.hops with a table of "
            "distances."
        )
    errors = read_distances([[distance(g, x) for x in truths] for g in guesses])
    return np.asarray(errors <= eta, dtype=np.bool_)


def read_distances(table: ArrayLike, name: str = "distances") -> NDArray[Any]:
    """Read errors; nan would pass for a miss, and a lost hit understates the risk."""
    given = _numbers(table)
    try:
        proper = given.dtype.kind in "biufO" and bool(np.all(given >= 0))
    except TypeError:
        proper = False
    if not proper:
        raise ModelError(
            f"{name} must be a table of non-negative numbers or infinite, got other "
            "entries or rows of unequal length."
        )
    return given


def read_truth_values(hits: ArrayLike) -> NDArray[np.bool_]:
    """Read a table of truth values, also written as 0 and 1."""
    table = _numbers(hits)
    if table.dtype != np.bool_ and not np.isin(table, (0, 1)).all():
        raise ModelError("hits must be truth values, got other numbers.")
    return table.astype(np.bool_)


def reflexive(hits: NDArray[np.bool_], name: str = "hits") -> NDArray[np.bool_]:
    """Return the table, frozen, if it has a row per record and each hits itself."""
    if hits.ndim != 2 or hits.shape[0] < hits.shape[1] or hits.shape[1] == 0:
        raise ModelError(
            f"{name} must have a row for each record, then one for each other guess, "
            f"got shape {hits.shape}."
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
    except ValueError:  # rows of unequal length
        return np.array([""])

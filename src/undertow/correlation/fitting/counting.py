"""Transition counts of observed series: missing is missing, gaps are not joined."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import ModelError

__all__ = ["MISSING", "code_series", "count_transitions", "count_triples"]

MISSING = -1
"""Code of a missing record."""


def code_series(
    series: Sequence[Any],
    *,
    states: Sequence[Hashable] | None = None,
    missing: Iterable[Hashable] = (),
) -> tuple[list[NDArray[np.int64]], tuple[Hashable, ...]]:
    """Return series as arrays of state codes, and the states in order.

    Parameters
    ----------
    series : sequence
        One series of states, or a sequence of series. None and nan are missing.
    states : sequence, optional
        All states, in order; by default those that occur, sorted.
    missing : iterable, optional
        Further marks of a missing record.

    Raises
    ------
    ModelError
        If fewer than two states occur or are named, or a state is not among them.

    Examples
    --------
    >>> code_series(["a", "b", None, "a"])
    ([array([ 0,  1, -1,  0])], ('a', 'b'))
    """
    runs = [list(run) for run in series] if _is_nested(series) else [list(series)]
    marks = set(missing)
    seen = {_plain(x) for run in runs for x in run if not _is_missing(x, marks)}
    listed = tuple(states) if states is not None else tuple(_sorted(seen))
    if len(set(listed)) != len(listed):
        raise ModelError("states must be distinct, got one twice.")
    if len(listed) < 2:
        found = f"only {listed[0]!r}" if listed else "none"
        raise ModelError(
            f"a chain must have at least two states, got {found}; name all states "
            "if others can occur."
        )
    stray = seen - set(listed)
    if stray:
        # Which one is a private record.
        raise ModelError(
            f"every record must be one of the {len(listed)} states or missing, got "
            "another value; name all states."
        )
    codes = {state: code for code, state in enumerate(listed)}
    coded = [
        np.array([MISSING if _is_missing(x, marks) else codes[_plain(x)] for x in run])
        for run in runs
    ]
    return [run.astype(np.int64) for run in coded], listed


def count_transitions(
    runs: Sequence[NDArray[np.int64]], states: int
) -> NDArray[np.int64]:
    """Return how often each state followed each; pairs with a missing one dropped.

    Examples
    --------
    >>> count_transitions([np.array([0, 1, -1, 1, 1])], 2).tolist()
    [[0, 1], [0, 1]]
    """
    counts = np.zeros((states, states), dtype=np.int64)
    for run in runs:
        kept = (run[:-1] != MISSING) & (run[1:] != MISSING)
        np.add.at(counts, (run[:-1][kept], run[1:][kept]), 1)
    return counts


def count_triples(runs: Sequence[NDArray[np.int64]], states: int) -> NDArray[np.int64]:
    """Return how often each state followed each pair of states."""
    counts = np.zeros((states, states, states), dtype=np.int64)
    for run in runs:
        now = run[:-2], run[1:-1], run[2:]
        kept = (now[0] != MISSING) & (now[1] != MISSING) & (now[2] != MISSING)
        np.add.at(counts, tuple(part[kept] for part in now), 1)
    return counts


def _is_nested(series: Sequence[Any]) -> bool:
    if isinstance(series, np.ndarray):
        return series.ndim > 1
    return any(isinstance(item, list | tuple | np.ndarray) for item in series)


def _is_missing(value: Any, marks: set[Hashable]) -> bool:
    plain = _plain(value)
    if plain is None or type(plain).__name__ in ("NAType", "NaTType"):
        return True
    return (isinstance(plain, float) and math.isnan(plain)) or plain in marks


def _plain(value: Any) -> Hashable:
    plain: Hashable = value.item() if isinstance(value, np.generic) else value
    return plain


def _sorted(values: set[Hashable]) -> list[Hashable]:
    try:
        return sorted(values)  # type: ignore[type-var]  # falls back where not ordered
    except TypeError:
        return sorted(values, key=repr)

"""Draws from chains, with and without known records.

Everything is vectorised over draws: one step of all draws costs a table lookup. A
state of probability zero is never drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index
from undertow.correlation.markov.ratio import read_numbers
from undertow.errors import ModelError

__all__ = [
    "draw_states",
    "read_law",
    "read_values",
    "sample_masked_path",
    "sample_path",
    "sample_path_given",
    "state_masks",
]

Array = NDArray[np.float64]
States = NDArray[np.int64]

_TOLERANCE = 1e-9


def read_law(
    law: ArrayLike, states: int, *, name: str = "initial", renormalise: bool = False
) -> Array:
    """Return `law` as a checked probability law on `states` states.

    Raises
    ------
    ModelError
        If it has another length, a negative entry, or does not sum to one.
    """
    weights = read_numbers(law, name)
    if weights.shape != (states,):
        raise ModelError(
            f"{name} must have one probability for each of the {states} states, got "
            f"shape {weights.shape}."
        )
    if not (weights >= 0).all() or not np.isfinite(weights).all():
        raise ModelError(f"{name} must have finite, non-negative entries, got {law!r}.")
    total = float(weights.sum())
    if renormalise and total > 0:
        weights, total = weights / total, 1.0
    if abs(total - 1) > _TOLERANCE:
        raise ModelError(
            f"{name} must sum to 1 within {_TOLERANCE:g}, got {total:.12g}; pass "
            "renormalise=True to divide it by its sum."
        )
    weights.setflags(write=False)
    return weights


def read_values(values: ArrayLike | None, states: int) -> Array:
    """Return the number each state stands for; ``0, ..., states - 1`` by default."""
    numbers = (
        np.arange(states, dtype=np.float64)
        if values is None
        else read_numbers(values, "values")
    )
    if numbers.shape != (states,) or not np.isfinite(numbers).all():
        raise ModelError(
            f"values must be one finite number for each of the {states} states, got "
            f"{values!r}."
        )
    if (numbers == numbers[0]).all():
        raise ModelError(f"values must not all be equal, got {values!r}.")
    numbers.setflags(write=False)
    return numbers


def draw_states(table: Array, rows: States, *, rng: np.random.Generator) -> States:
    """Draw one state for each entry of `rows`, from that row of `table`.

    Parameters
    ----------
    table : ndarray of shape (r, s)
        Non-negative weights; rows that are asked for have a positive sum.
    rows : ndarray of int
        Which row each draw takes.
    rng : numpy.random.Generator
        Source of randomness.
    """
    heaped = np.cumsum(table, axis=1)
    totals = heaped[:, -1:]
    # The last level is exactly one, above every uniform draw; levels of states of
    # weight zero coincide with the one before and are never chosen.
    heaped = np.divide(heaped, totals, out=np.ones_like(heaped), where=totals > 0)
    draws = rng.random(rows.shape)
    chosen = np.empty(rows.shape, dtype=np.int64)
    for row in range(len(table)):
        mine = rows == row
        chosen[mine] = np.searchsorted(heaped[row], draws[mine], side="right")
    return chosen


def sample_path(
    initial: Array, steps: Array, count: int, *, rng: np.random.Generator
) -> States:
    """Draw `count` paths of the chain with law `initial` and kernels `steps`.

    Parameters
    ----------
    initial : ndarray of shape (s,)
        Law of the first record.
    steps : ndarray of shape (n - 1, s, s)
        Kernels.
    count : int
        Number of paths.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int, shape (count, n)

    Examples
    --------
    >>> steps = np.array([[[0.0, 1.0], [1.0, 0.0]]] * 3)
    >>> sample_path(np.array([1.0, 0.0]), steps, 1, rng=np.random.default_rng(1))
    array([[0, 1, 0, 1]])
    """
    paths = np.empty((count, len(steps) + 1), dtype=np.int64)
    first = np.zeros(count, dtype=np.int64)
    paths[:, 0] = draw_states(initial[None], first, rng=rng)
    for t, kernel in enumerate(steps):
        paths[:, t + 1] = draw_states(kernel, paths[:, t], rng=rng)
    return paths


def sample_path_given(
    initial: Array,
    steps: Array,
    known: Mapping[int, Any],
    count: int,
    *,
    rng: np.random.Generator,
) -> States:
    """Draw `count` paths given the states of the `known` records.

    Raises
    ------
    ModelError
        If the known states have probability zero together.

    Notes
    -----
    Backward messages, forward draws: cost ``n s^2`` once and ``n`` lookups a draw.

    Examples
    --------
    >>> steps = np.array([[[0.5, 0.5], [0.0, 1.0]]] * 4)
    >>> law = np.array([1.0, 0.0])
    >>> sample_path_given(law, steps, {3: 0}, 1, rng=np.random.default_rng(1))[:, :4]
    array([[0, 0, 0, 0]])
    """
    masks = state_masks(known, len(steps) + 1, states=len(initial))
    return sample_masked_path(initial, steps, masks, count, rng=rng)


def state_masks(known: Mapping[int, Any], size: int, *, states: int) -> Array:
    """Return 0/1 weights of shape (size, states): which states the evidence allows."""
    masks = np.ones((size, states))
    for record, state in known.items():
        chosen = check_index(state, f"state of record {record}", size=states)
        masks[record] = 0.0
        masks[record, chosen] = 1.0
    return masks


def sample_masked_path(
    initial: Array,
    steps: Array,
    masks: Array,
    count: int,
    *,
    rng: np.random.Generator,
) -> States:
    """Draw paths from the chain weighted by `masks`, a factor for each record's state.

    Raises
    ------
    ModelError
        If every path has weight zero.
    """
    messages = masks.astype(np.float64)  # weight of the evidence from t on, scaled
    for t in range(len(steps) - 1, -1, -1):
        messages[t] *= steps[t] @ messages[t + 1]
        messages[t] /= messages[t].max() or 1.0
    start = initial * messages[0]
    if not start.any():
        raise ModelError(
            "known records must be able to occur together, got states of probability "
            "zero."
        )
    paths = np.empty((count, len(masks)), dtype=np.int64)
    first = np.zeros(count, dtype=np.int64)
    paths[:, 0] = draw_states(start[None], first, rng=rng)
    for t, kernel in enumerate(steps):
        paths[:, t + 1] = draw_states(kernel * messages[t + 1], paths[:, t], rng=rng)
    return paths

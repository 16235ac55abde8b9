r"""Markov models of movement: fitted from trajectories, as threats, checked.

Models are sparse: people move to few places from each one. Row a is the law of the next
place after a, and an empty row is a place from which no step was seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_non_negative
from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.risk.knowledge import Knowledge
from undertow.risk.prior import Prior
from undertow.risk.success import Success
from undertow.risk.threat import Threat

__all__ = ["fit_transitions", "read_transition", "transition_threat"]

# Entries of a smoothed model, which has no empty cell.
_CELLS = 30_000_000
_TOLERANCE = 1e-9


def fit_transitions(
    trajectories: Iterable[ArrayLike],
    size: int,
    *,
    smoothing: float = 0.0,
    collapse: bool = False,
) -> Any:
    """Count the steps of trajectories and divide by rows.

    Parameters
    ----------
    trajectories : iterable of array_like of int
        Places in order, one sequence per trip; steps never lead from one to the next.
    size : int
        Number of places.
    smoothing : float, optional
        Added to every count, seen or not.
    collapse : bool, optional
        Whether to drop steps to the same place first.

    Returns
    -------
    scipy.sparse.csr_array of shape (size, size)
        Rows sum to 1, or are empty where nothing was seen and nothing added.

    Raises
    ------
    NotApplicable
        If a smoothed model would have more than 30 million entries.

    Notes
    -----
    The trips must not be those of the targets: a model that has seen them knows what it
    is asked.

    Examples
    --------
    >>> fit_transitions([[0, 1, 1, 2], [0, 2]], 3).toarray().tolist()
    [[0.0, 0.5, 0.5], [0.0, 0.5, 0.5], [0.0, 0.0, 0.0]]
    """
    places, extra = (
        check_count(size, "size"),
        check_non_negative(smoothing, "smoothing"),
    )
    if not extra < np.inf or (extra > 0 and places**2 > _CELLS):
        raise NotApplicable(
            f"a smoothed model must have at most {_CELLS} entries and a finite count "
            f"added, got {places**2} and {extra}; use smoothing=0."
        )
    trips = [_read_trip(trip, places, collapse) for trip in trajectories]
    empty = np.zeros(0, dtype=np.intp)
    before = np.concatenate([empty, *(trip[:-1] for trip in trips)])
    after = np.concatenate([empty, *(trip[1:] for trip in trips)])
    from scipy import sparse

    ones = np.ones(len(before))
    counts = sparse.csr_array((ones, (before, after)), shape=(places, places))
    if extra > 0:
        counts = sparse.csr_array(counts.toarray() + extra)
    totals: NDArray[np.float64] = np.asarray(counts.sum(axis=1)).reshape(-1)
    counts.data /= np.repeat(totals, np.diff(counts.indptr))
    return counts


def transition_threat(
    transition: Any, previous_law: ArrayLike, *, abstain: bool = False
) -> Threat:
    r"""State the threat of the correlation attack: guess the step, knowing its start.

    Parameters
    ----------
    transition : sparse array or array_like of shape (m, m)
        How people really move: rows sum to 1.
    previous_law : array_like of shape (m,)
        Law of the place before.
    abstain : bool, optional
        Whether the attacker may decline.

    Returns
    -------
    Threat
        Records are pairs (before, now) of positive probability; the first is known, the
        second must be guessed.

    Notes
    -----
    The mechanism reads the second place only, so that the collision probability to use
    with a total variation is that of the second place (``projected_variation_bound``).

    Examples
    --------
    >>> threat = transition_threat([[0, 1], [0.5, 0.5]], [0.4, 0.6])
    >>> threat.support, threat.prior.pmf.tolist()
    (((0, 1), (1, 0), (1, 1)), [0.4, 0.3, 0.3])
    """
    model = read_transition(transition)
    law = Prior(model.shape[0], previous_law).pmf
    steps = model.tocoo()
    masses = law[steps.row] * steps.data
    kept = masses > 0
    if not kept.any() or np.any(law[np.diff(model.indptr) == 0] > 0):
        raise MismatchError(
            "transition must have a row for every place that previous_law may start "
            "from, got an empty one."
        )
    pairs = list(zip(steps.row[kept].tolist(), steps.col[kept].tolist(), strict=True))
    return Threat(
        Prior(pairs, masses[kept]),
        Success.attribute(_now, summary="the next place"),
        Knowledge.attributes(_before, summary="the place before"),
        abstain,
    )


def _before(step: tuple[int, int]) -> int:
    return step[0]


def _now(step: tuple[int, int]) -> int:
    return step[1]


def read_transition(transition: Any) -> Any:
    """Read a model as a sparse array: rows are laws, or empty.

    Raises
    ------
    ModelError
        If it is not square, or a row is neither empty nor a law to within 1e-9.
    """
    from scipy import sparse

    try:
        model: Any = sparse.csr_array(transition, dtype=np.float64, copy=True)
    except (TypeError, ValueError):
        raise ModelError("transition must be a square table of numbers.") from None
    if model.ndim != 2 or model.shape[0] != model.shape[1]:
        raise ModelError(f"transition must be square, got shape {model.shape}.")
    model.sum_duplicates()
    model.eliminate_zeros()
    totals = np.asarray(model.sum(axis=1)).reshape(-1)
    filled = np.diff(model.indptr) > 0
    off = float(np.abs(totals[filled] - 1.0).max()) if filled.any() else 0.0
    least = float(model.data.min()) if model.nnz else 0.0
    if not (least >= 0 and off <= _TOLERANCE):
        raise ModelError(
            "transition must have rows that are empty or non-negative with sum 1, got "
            f"a least entry of {least} and a sum that is off by {off}."
        )
    return model


def _read_trip(trip: ArrayLike, size: int, collapse: bool) -> NDArray[np.intp]:
    places = np.asarray(trip)
    if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
        raise ModelError("a trajectory must be a sequence of numbers of places.")
    if places.size and not (places.min() >= 0 and places.max() < size):
        raise ModelError(f"a trajectory must stay on places in 0..{size - 1}.")
    moves = places[1:] != places[:-1]
    kept = places[np.append(True, moves)] if collapse and places.size else places
    return kept.astype(np.intp)

r"""The exact figures of the correlation attack, by sparse sums instead of trials.

With :math:`k(\theta, a) = 1\{P(\theta \mid a) > \tau\}`, the law :math:`\rho` of the
place before, the real steps T and the mean output law :math:`\bar c`, an attack that
sees the output law c of the target's place b succeeds with probability

.. math:: s_c(a, b) = \sum_\theta k(\theta, a)\, c_\theta\, [\theta \text{ hits } b]
   + \Bigl(1 - \sum_\theta k(\theta, a)\, c_\theta\Bigr)
   \sum_{g} P(g \mid a)\, [g \text{ hits } b] .
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_probability
from undertow.errors import MismatchError
from undertow.mechanisms.base import ChoiceMechanism
from undertow.mechanisms.local.grr import GeneralizedResponse
from undertow.risk.attacks.transition import read_transition
from undertow.risk.channel import Channel, as_channel
from undertow.risk.decision import AttackRisk
from undertow.risk.prior import Prior

__all__ = ["exact_correlation_figures"]

Floats = NDArray[np.float64]

# Rows of places before that are handled at a time.
_ROWS = 256


def exact_correlation_figures(
    source: Any,
    transition: Any,
    *,
    previous_law: ArrayLike,
    threshold: float = 0.0,
    steps: Any = None,
    hits: ArrayLike | None = None,
) -> AttackRisk:
    r"""Compute success, correction and advantage of the correlation attack exactly.

    .. math:: \sum_{a,b} \rho_a T(b \mid a)\, s_{C_b}(a, b) \quad\text{and}\quad
       \sum_{a,b} \rho_a T(b \mid a)\, s_{\bar c}(a, b),
       \qquad \bar c = \sum_{a,b} \rho_a T(b \mid a)\, C_b

    Parameters
    ----------
    source : GeneralizedResponse, Channel or mechanism with finitely many outputs
        Law C of the report for each place; outputs are the places.
    transition : sparse array or array_like of shape (m, m)
        The attacker's model P; an empty row makes the report the guess.
    previous_law : array_like of shape (m,)
        Law of the place before.
    threshold : float, optional
        The :math:`\tau`, strict.
    steps : sparse array or array_like of shape (m, m), optional
        How people really move, T; the model by default.
    hits : array_like of bool, of shape (m, m), optional
        Whether each guess (row) hits each place (column); the exact place by default.

    Returns
    -------
    AttackRisk
        Exact up to rounding.

    Raises
    ------
    MismatchError
        If sizes differ, or somebody starts from a place without a step.

    Notes
    -----
    Proved on the page on practical attacks. Randomised response and exact hits:
    O(nnz). Otherwise O(m nnz), with the channel in memory. The place before is that of
    the target in both terms.

    Examples
    --------
    >>> P = [[0, 0.7, 0.3], [0.5, 0, 0.5], [0.2, 0.8, 0]]
    >>> figures = exact_correlation_figures(
    ...     GeneralizedResponse(3, 3), P, previous_law=[0.5, 0.3, 0.2]
    ... )
    >>> round(figures.success, 9), round(figures.advantage, 9)
    (0.935523415, 0.381442209)
    """
    model = read_transition(transition)
    tau = check_probability(threshold, "threshold")
    joint = _joint(model if steps is None else read_transition(steps), previous_law)
    if joint.shape != model.shape:
        raise MismatchError(
            f"steps must be on the {model.shape[0]} places of the model, got shape "
            f"{joint.shape}."
        )
    trusted = _trusted(model, tau)
    if isinstance(source, GeneralizedResponse) and hits is None:
        terms = _response_terms(source, model, trusted, joint)
    else:
        terms = _channel_terms(source, model, trusted, joint, hits)
    parts = [(w * seen, w * base, w * gain) for w, seen, base, gain in terms]
    success, correction, advantage = (
        math.fsum(np.concatenate(column).tolist())
        for column in zip(*parts, strict=True)
    )
    return AttackRisk(success, correction, advantage)


Terms = Iterator[tuple[Floats, Floats, Floats, Floats]]


def _response_terms(
    source: GeneralizedResponse, model: Any, trusted: Any, joint: Any
) -> Terms:
    """Sum over outputs in closed form: c is q everywhere and p - q more at b."""
    m, spread = source.categories, float(source.keep - source.noise)
    if m != model.shape[0]:
        raise MismatchError(f"source must be on {model.shape[0]} places, got {m}.")
    noise = float(source.noise)
    now = np.asarray(joint.sum(axis=0)).reshape(-1)
    pairs = joint.tocoo()
    kept, drawn = _entries(trusted, pairs), _entries(model, pairs)
    empty = np.diff(model.indptr)[pairs.row] == 0
    kept[empty] = 1.0  # an unseen row trusts every report
    counts = np.asarray(trusted.sum(axis=1)).reshape(-1)[pairs.row]
    believed = np.asarray(trusted @ now).reshape(-1)[pairs.row]
    counts[empty], believed[empty] = m, 1.0
    # With the law c: kept c_b + drawn (1 - sum of kept c).
    level = noise * kept + drawn * (1.0 - noise * counts)
    seen = level + spread * (kept - drawn * kept)
    base = level + spread * (kept * now[pairs.col] - drawn * believed)
    gain = spread * (kept * (1.0 - now[pairs.col]) - drawn * (kept - believed))
    yield pairs.data, seen, base, gain


def _channel_terms(
    source: Any, model: Any, trusted: Any, joint: Any, hits: ArrayLike | None
) -> Terms:
    from scipy import sparse

    m = model.shape[0]
    laws = _matrix(source, m)
    hit = np.eye(m, dtype=np.bool_) if hits is None else _read_hits(hits, m)
    now = np.asarray(joint.sum(axis=0)).reshape(-1)
    overall = now @ laws
    hit_rows = hit.astype(np.float64)
    columns = np.ascontiguousarray(laws.T)
    told = columns * hit_rows  # output, place: probability of a report that hits
    for start in range(0, m, _ROWS):
        rows = slice(start, min(start + _ROWS, m))
        pairs = joint[rows].tocoo()
        if not pairs.nnz:
            continue
        trust = _dense_rows(model, trusted, rows)
        cells = (pairs.row, pairs.col)
        drawn = (model[rows] @ hit_rows)[cells]
        own = (trust @ told)[cells], (trust @ columns)[cells]
        weighed = sparse.csr_array(trust.multiply(overall[None, :]))
        other = (weighed @ hit_rows)[cells], (trust @ overall)[pairs.row]
        seen = own[0] + (1.0 - own[1]) * drawn
        base = other[0] + (1.0 - other[1]) * drawn
        gain = own[0] - other[0] - (own[1] - other[1]) * drawn
        yield pairs.data, seen, base, gain


def _dense_rows(model: Any, trusted: Any, rows: slice) -> Any:
    """Return which reports are trusted: sparse, all of them in an empty row."""
    from scipy import sparse

    empty = np.diff(model.indptr)[rows] == 0
    block = trusted[rows]
    if not empty.any():
        return block
    filled = block.toarray()
    filled[empty] = 1.0
    return sparse.csr_array(filled)


def _joint(steps: Any, previous_law: ArrayLike) -> Any:
    """Return the probability of each step, as a sparse array."""
    from scipy import sparse

    law = Prior(steps.shape[0], previous_law).pmf
    if np.any(law[np.diff(steps.indptr) == 0] > 0):
        raise MismatchError(
            "steps must have a row for every place that previous_law may start from, "
            "got an empty one."
        )
    return sparse.csr_array(steps.multiply(law[:, None]))


def _trusted(model: Any, threshold: float) -> Any:
    kept = model.copy()
    kept.data = (kept.data > threshold).astype(np.float64)
    kept.eliminate_zeros()
    return kept


def _entries(matrix: Any, pairs: Any) -> Floats:
    """Return the entries of a sparse array at given places."""
    found = matrix[pairs.row, pairs.col]
    return np.array(found.toarray() if hasattr(found, "toarray") else found).reshape(-1)


def _matrix(source: Any, size: int) -> Floats:
    if isinstance(source, GeneralizedResponse):
        p, q = float(source.keep), float(source.noise)
        categories = source.categories
        source = Channel(np.where(np.eye(categories, dtype=bool), p, q))
    listed: Any = range(size)
    if isinstance(source, ChoiceMechanism):
        listed = source.candidates
    elif isinstance(source, Channel) and source.support is not None:
        listed = source.support
    channel = as_channel(source, listed)
    if not isinstance(channel, Channel) or channel.matrix.shape != (size, size):
        raise MismatchError(
            f"source must be a channel from {size} places to the same places, got "
            "another."
        )
    return channel.matrix


def _read_hits(hits: ArrayLike, size: int) -> NDArray[np.bool_]:
    table = np.asarray(hits)
    if table.shape != (size, size) or table.dtype != np.bool_:
        raise MismatchError(
            f"hits must be truth values [guess, place] of shape ({size}, {size}), got "
            f"{table.dtype} of shape {table.shape}."
        )
    return table

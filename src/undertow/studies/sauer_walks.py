"""Steps of trips for Sauer's correlation attack: learnt, held out and attacked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms import SimulatedSource
from undertow.mechanisms.local import GeneralizedResponse
from undertow.privacy import Estimate
from undertow.risk.attacks import fit_transitions
from undertow.risk.estimate import AttackEstimate
from undertow.risk.intervals import empirical_bernstein
from undertow.studies.sauer_common import EPSILONS

__all__ = [
    "MEASURED",
    "Moves",
    "Walks",
    "entries_at",
    "estimate_of",
    "measured_response",
    "read_moves",
]

_CONFIDENCE = 0.99999
MEASURED = EPSILONS[1::2]
"""Levels at which an attack is also run."""

# Share of the stays held out, by a multiplicative hash of their number.
_HELD_OUT, _HASH, _WORD = 0.1, 2654435761, 1 << 32

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Walks(Protocol):
    """What is asked of trips: places in order, and which trips are held out."""

    @property
    def nodes(self) -> tuple[NDArray[np.int64], ...]:
        """The places of each trip."""

    @property
    def inside(self) -> tuple[NDArray[np.bool_], ...]:
        """Whether each report lies inside the area."""

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Whether each trip is held out."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Moves:
    """What the attacker has learnt of steps, and how the targets really step.

    Parameters
    ----------
    model : sparse array of shape (m, m)
        Transition matrix of the training trips; empty rows where none was seen.
    steps : sparse array of shape (m, m)
        Transition matrix of the held-out trips.
    before, now : ndarray of shape (m,)
        Law of the place before and of the place now, of held-out steps.
    """

    model: Any
    steps: Any
    before: Floats
    now: Floats

    @property
    def collision(self) -> float:
        """Chance that two targets are at one place now."""
        return float(self.now @ self.now)

    @property
    def joint(self) -> Any:
        """Probability of each step of a target."""
        from scipy import sparse

        return sparse.csr_array(self.steps.multiply(self.before[:, None]))

    @property
    def seen(self) -> float:
        """Share of the targets whose step the model has seen."""
        return float(self.joint.multiply(self.model > 0).sum())


def read_moves(walks: Walks, size: int, *, visits: str = "all") -> Moves:
    """Fit the model on training trips and count the steps of the others.

    Parameters
    ----------
    walks : Walks
        Trips; where none is marked as held out, a tenth is, by a hash.
    size : int
        Number of places.
    visits : {"all", "inside"}
        Whether reports outside the area count, at the nearest place, as in the source.
    """
    held = walks.held_out
    if not held.any():
        order = np.arange(len(walks), dtype=np.uint64) * np.uint64(_HASH)
        held = (order % np.uint64(_WORD)) < _HELD_OUT * _WORD
    parts = [_parts(walks, k, visits) for k in range(len(walks))]
    train = [part for k, trip in enumerate(parts) if not held[k] for part in trip]
    test = [part for k, trip in enumerate(parts) if held[k] for part in trip]
    counts = np.zeros(size)
    for part in test:
        np.add.at(counts, part[:-1], 1.0)
    before = counts / counts.sum()
    steps = fit_transitions(test, size)
    now = np.asarray(before @ steps).reshape(-1)
    return Moves(fit_transitions(train, size), steps, before, now)


def _parts(walks: Walks, number: int, visits: str) -> list[NDArray[np.int64]]:
    """Return a trip whole, or its stretches inside the area."""
    nodes, inside = walks.nodes[number], walks.inside[number]
    if visits == "all":
        return [nodes]
    ends = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(int), [0]])))
    return [nodes[low:high] for low, high in ends.reshape(-1, 2).tolist()]


def measured_response(
    moves: Moves, threshold: float, *, runs: int, rng: np.random.Generator
) -> dict[float, AttackEstimate]:
    """Run the attack on drawn steps, each scored against all other targets."""
    joint, model = moves.joint.tocoo(), moves.model
    trusted = model.copy()
    trusted.data = (trusted.data > threshold).astype(np.float64)
    unseen = np.diff(model.indptr) == 0
    base = _baselines(joint, model, trusted, unseen)
    found = {}
    for e in MEASURED:
        drawn = rng.choice(joint.nnz, size=5 * runs, p=joint.data / joint.data.sum())
        a, b = joint.row[drawn], joint.col[drawn]
        source = SimulatedSource(rng)
        report = GeneralizedResponse(model.shape[0], e).sample(b, source=source).values
        believed = (entries_at(trusted, a, report) > 0) | unseen[a]
        hit = np.where(believed, report == b, entries_at(model, a, b))
        found[e] = estimate_of(hit, base[report])
    return found


def _baselines(joint: Any, model: Any, trusted: Any, unseen: Any) -> Floats:
    """Return the chance to hit an independent target, for each report."""
    drawn = joint.data * entries_at(model, joint.row, joint.col)
    falls = np.bincount(joint.row, drawn, minlength=model.shape[0])
    kept = entries_at(trusted, joint.row, joint.col) > 0
    own = np.where(kept | unseen[joint.row], joint.data, 0.0)
    told = np.bincount(joint.col, own, minlength=model.shape[0])
    return np.asarray(told + falls.sum() - falls @ trusted)


def estimate_of(hit: Any, base: Floats) -> AttackEstimate:
    """Return the self-paired estimate of scored reports of independent targets.

    Parameters
    ----------
    hit : array_like
        Expected hit of each report on its own target.
    base : ndarray
        Chance of each report's guess to hit an independent target.
    """
    hits = np.asarray(hit, dtype=np.float64)
    return AttackEstimate(
        _mean(hits, 0.0),
        _mean(base, 0.0),
        _mean(hits - base, -1.0),
        None,
        "plain",
        "paired",
        len(hits),
        len(hits),
    )


def _mean(values: Floats, lowest: float) -> Estimate:
    # Sums of probabilities may exceed their limits by rounding.
    low, high = empirical_bernstein(
        values, lowest=lowest - 1e-9, highest=1 + 1e-9, confidence=_CONFIDENCE
    )
    value, method = float(values.mean()), "empirical Bernstein"
    return Estimate(value, low, high, _CONFIDENCE, len(values), method=method)


def entries_at(matrix: Any, rows: Any, columns: Any) -> Floats:
    """Return the entries of a sparse array at given places."""
    found = matrix[rows, columns]
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found).ravel()

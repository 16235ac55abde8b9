"""The worst attacker on a Gaussian block: every known set, every target, exactly.

The Schur complement of the known records holds every conditional covariance at once, so
one elimination step serves all targets. The known sets form a binary tree (record j
known or not); its upper levels are walked depth first, its lower levels are eliminated
in one batch. Each Schur complement comes from at most m forward pivots of a fresh
matrix, so rounding errors never accumulate as they do along a Gray code, and no
re-factorisation is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import nudge_up
from undertow._validate import check_count
from undertow.correlation.adversary import Adversary
from undertow.correlation.gaussian.covariance import (
    check_covariance,
    rounding_margin,
    standardised,
)
from undertow.correlation.gaussian.shift import ShiftFactor, check_weights
from undertow.errors import NotApplicable

__all__ = ["MAX_BLOCK", "Saturation", "worst_factor"]

Array = NDArray[np.float64]

MAX_BLOCK = 20
"""Largest block searched by default: 10 million attackers, below a minute."""

# Records eliminated in one batch; 2^8 matrices of 20 x 20 fit in the cache.
_BATCHED = 8
# Attackers this close are the same to rounding; the one who knows least is named.
_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Saturation:
    r"""How much one record can move the release once it is clipped.

    A record that moves by c times the target's move counts for
    :math:`\varphi(c) = \sum_j \min(\text{slope}_j c, \text{ceiling}_j)`; the target
    itself counts for `own`.

    Parameters
    ----------
    pieces : tuple of pairs
        Slope and ceiling of each release; a ceiling may be infinite.
    own : float
        What the target itself counts for.
    """

    pieces: tuple[tuple[float, float], ...] = ((1.0, math.inf),)
    own: float = 1.0

    def __call__(self, shifts: Array) -> Array:
        """Return phi of the absolute `shifts`."""
        total = np.zeros_like(shifts)
        for slope, ceiling in self.pieces:
            total += np.minimum(slope * shifts, ceiling)
        return total

    @property
    def is_linear(self) -> bool:
        """Whether it is the plain sum of absolute shifts."""
        return self.pieces == ((1.0, math.inf),) and self.own == 1.0

    @property
    def slope(self) -> float:
        """The largest slope, at zero."""
        return sum(slope for slope, _ in self.pieces)


def worst_factor(
    covariance: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    signed: bool = False,
    saturation: Saturation | None = None,
    max_block: int = MAX_BLOCK,
) -> ShiftFactor:
    r"""Return the largest factor over all attackers on a block, and who reaches it.

    .. math:: h(\Sigma) = \max_{K, i}\; 1 + \sum_{u \notin K \cup \{i\}} |c_u^{(K)}|

    Parameters
    ----------
    covariance : array_like of shape (m, m)
        Symmetric positive definite; any variances.
    weights : array_like of shape (m,), optional
        Weights a of a linear query; the sum is then of :math:`|a_u c_u|`, over the
        largest weight.
    signed : bool
        Whether shifts may cancel; for *unclipped* linear queries only.
    saturation : Saturation, optional
        Caps on the contribution of one record, for clipped releases.
    max_block : int
        Largest block to search; the cost doubles with each record.

    Returns
    -------
    ShiftFactor
        Rounded up by a margin that grows with the condition number.

    Raises
    ------
    NotApplicable
        If the block is larger than `max_block` or nearly singular.

    Notes
    -----
    Lemma 6.10 of [1]_ for each of the m 2^(m-1) attackers. Time O(2^m m^2), memory
    O(2^8 m^2). Without clipping the factor may pass m. The signed value is exact for
    Laplace noise on the unclipped linear query (theory page "Gaussian leakage").

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> found = worst_factor([[1.0, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 1.0]])
    >>> round(found.value, 9), found.adversary.summary
    (2.0, 'aims at record 1, knows no other record')
    """
    matrix, search = _prepare(covariance, weights, signed, saturation, max_block)
    sds, correlation, spectrum = standardised(matrix)
    spectrum.require_regular()
    search.scale(sds)
    best, adversary = _best(correlation, search)
    stretch = float(np.abs(search.mass).max() / sds.min()) * search.saturation.slope
    margin = rounding_margin(spectrum, stretch) if len(matrix) > 1 else 0.0
    value = nudge_up(best + margin) if margin else best
    return ShiftFactor(value, adversary, margin, "every attacker was tried")


@dataclass(slots=True)
class _Search:
    """The objective: weights a, masses a sd, whether signed, caps."""

    weights: Array
    signed: bool
    saturation: Saturation
    mass: Array
    sds: Array

    def scale(self, sds: Array) -> None:
        self.sds = sds
        self.mass = (self.weights if self.signed else np.abs(self.weights)) * sds

    def scores(self, schur: Array, kept: NDArray[np.intp]) -> Array:
        """Return the objective of every target (last axis); zero where it is known."""
        variances = np.einsum("bii->bi", schur).copy()
        variances[variances == 0] = math.inf
        reach = variances * self.sds[kept]
        if self.signed:
            return np.asarray(np.abs(schur @ self.mass[kept]) / reach)
        if self.saturation.is_linear:
            return np.asarray((np.abs(schur) @ self.mass[kept]) / reach)
        return self._saturated(schur, kept, reach)

    def _saturated(self, schur: Array, kept: NDArray[np.intp], reach: Array) -> Array:
        weights = np.abs(self.weights[kept])
        shifts = np.abs(schur) * self.sds[kept][None, :, None] / reach[:, None, :]
        own = self.saturation.own - float(self.saturation(np.ones(1))[0])
        total = np.einsum("bui,u->bi", self.saturation(shifts), weights)
        return np.where(np.isfinite(reach), total + own * weights, 0.0)


def _prepare(
    covariance: ArrayLike,
    weights: ArrayLike | None,
    signed: bool,
    saturation: Saturation | None,
    max_block: int,
) -> tuple[Array, _Search]:
    shape = np.shape(covariance)
    largest = check_count(max_block, "max_block")
    if shape and shape[0] > largest:
        raise NotApplicable(
            f"the search over attackers needs a block of at most {largest} records, "
            f"got {shape[0]}; use method='structured', 'sharp' or 'general'."
        )
    if signed and saturation is not None:
        raise ValueError(
            "signed must be False for a clipped release, got True; clipping can freeze "
            "the record whose shift cancels."
        )
    matrix = check_covariance(covariance)
    a = check_weights(weights, len(matrix))
    empty = np.empty(0)
    return matrix, _Search(
        a / np.abs(a).max(), signed, saturation or Saturation(), empty, empty
    )


def _best(correlation: Array, search: _Search) -> tuple[float, Adversary]:
    best, adversary = -math.inf, Adversary(0)
    for schur, kept, known in _branches(correlation):
        sets, schurs = _batch(schur, min(_BATCHED, len(kept)))
        scores = search.scores(schurs, kept)
        top = float(scores.max())
        if top > best * (1 + _TIE) or best == -math.inf:
            rows, columns = np.nonzero(scores >= top * (1 - _TIE))
            choice = int(np.argmin([int(s).bit_count() for s in sets[rows]]))
            chosen = int(sets[rows[choice]])
            more = [int(kept[j]) for j in range(_BATCHED) if chosen >> j & 1]
            adversary = Adversary(int(kept[columns[choice]]), [*known, *more])
        best = max(best, top)
    return best, adversary


def _branches(
    correlation: Array,
) -> Iterator[tuple[Array, NDArray[np.intp], tuple[int, ...]]]:
    """Walk the last records, known or not; the first `_BATCHED` are left to a batch."""
    size = len(correlation)
    stack: list[tuple[Array, NDArray[np.intp], tuple[int, ...], int]]
    stack = [(correlation, np.arange(size), (), size - 1)]
    while stack:
        schur, kept, known, record = stack.pop()
        if record < _BATCHED:
            yield schur, kept, known
            continue
        place = int(np.flatnonzero(kept == record)[0])
        rest = np.delete(np.arange(len(kept)), place)
        column = schur[rest, place]
        conditioned = schur[np.ix_(rest, rest)] - np.outer(
            column, column / schur[place, place]
        )
        stack.append((conditioned, kept[rest], (*known, record), record - 1))
        stack.append((schur, kept, known, record - 1))


def _batch(schur: Array, count: int) -> tuple[NDArray[np.int64], Array]:
    """Return every subset of the first `count` records and its Schur complement."""
    sets, matrices = np.zeros(1, dtype=np.int64), schur[None]
    for j in range(count):
        column = matrices[:, :, j]
        pivot = column[:, j, None]
        known = matrices - column[:, :, None] * (column / pivot)[:, None, :]
        known[:, j, :] = 0.0
        known[:, :, j] = 0.0
        sets = np.concatenate([sets, sets | (1 << j)])
        matrices = np.concatenate([matrices, known])
    return sets, matrices

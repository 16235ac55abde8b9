r"""How far the unknown records move when the target does, at worst.

Under a Gaussian law, given the known records, moving the target by one moves the
conditional mean of the unknown record u by

.. math:: c_u = \mathrm{Cov}(X_u, X_i \mid X_K) / \mathrm{Var}(X_i \mid X_K)

and changes nothing else. The leakage of one attacker is governed by these partial
shifts (thesis, Lemma 6.10); over all attackers on a block they are found by one
sweep.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Array, Matrix
from undertow.numeric.rounding import UNIT, nudge_up

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ShiftFactor:
    """How many times the DP level leaks, and to whom.

    Parameters
    ----------
    value : float
        The factor, at least the true one: `margin` is included.
    adversary : Adversary, optional
        The attacker who reaches it, where one is known.
    margin : float
        What was added for rounding.
    reason : str
        Why the factor is the worst over all attackers.
    """

    value: float
    adversary: Adversary | None
    margin: float = 0.0
    reason: str = ""


def partial_shift(
    covariance: ArrayLike, adversary: Adversary
) -> tuple[tuple[int, ...], Vector]:
    r"""Return the unknown records and their shifts per unit of the target.

    .. math:: c = \Sigma_{U;T}\,\Sigma_T^{-1} e_i, \qquad T = K \cup \{i\}

    Parameters
    ----------
    covariance : array_like of shape (m, m)
        Symmetric positive definite.
    adversary : Adversary
        Target i and known records K.

    Returns
    -------
    unknown : tuple of int
        The records U, in order; empty for the fully informed attacker.
    shifts : ndarray
        One coefficient for each of them.

    Notes
    -----
    Lemma 6.10 of [1]_, Proposition 6.1 of [2]_; printed there with the mean in place of
    the other value of the target. One Cholesky solve, no inverse.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> partial_shift([[1.0, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 1.0]],
    ...               Adversary(1, {0}))
    ((2,), array([0.5]))
    """
    matrix = check_covariance(covariance)
    unknown = adversary.unknown(len(matrix))
    told = [*sorted(adversary.known), adversary.target]
    unit = np.zeros(len(told))
    unit[-1] = 1.0
    return unknown, matrix[np.ix_(unknown, told)] @ _solve(matrix, told, unit)


def adversary_factor(
    covariance: ArrayLike,
    adversary: Adversary,
    *,
    weights: ArrayLike | None = None,
    signed: bool = False,
) -> float:
    r"""Return how many times the DP level one attacker learns.

    .. math:: 1 + \sum_u |c_u| \quad\text{or, signed,}\quad
              \Bigl|a_i + \sum_u a_u c_u\Bigr| / \max_j |a_j|

    Parameters
    ----------
    covariance : array_like of shape (m, m)
        Symmetric positive definite.
    adversary : Adversary
        Target and known records.
    weights : array_like of shape (m,), optional
        Weights a of a linear query; ones by default.
    signed : bool
        Whether shifts may cancel. Only for *unclipped* linear queries: clipping can
        freeze the record that cancelled, see the theory page "Gaussian clipping".

    Notes
    -----
    Not rounded up; the guarantee over all attackers is
    :func:`~undertow.correlation.gaussian.worst_factor`.

    Examples
    --------
    >>> adversary_factor([[1.0, 0.5], [0.5, 1.0]], Adversary(0))
    1.5
    """
    unknown, shifts = partial_shift(covariance, adversary)
    a = check_weights(weights, len(unknown) + len(adversary.known) + 1)
    own, moved = a[adversary.target], a[list(unknown)] * shifts
    if signed:
        return float(abs(own + moved.sum()) / np.abs(a).max())
    return float((abs(own) + np.abs(moved).sum()) / np.abs(a).max())


def check_weights(weights: ArrayLike | None, size: int) -> Vector:
    """Return one finite weight for each of `size` records, not all zero."""
    if weights is None:
        return np.ones(size)
    vector = np.array(weights, dtype=float)
    if vector.shape != (size,) or not np.all(np.isfinite(vector)):
        raise ModelError(
            f"weights must be one finite number for each of the {size} records, "
            f"got an array of shape {vector.shape}."
        )
    if not np.any(vector):
        raise ModelError("weights must not all be zero.")
    return vector


def _solve(matrix: Vector, records: list[int], right: Vector) -> Vector:
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(matrix[np.ix_(records, records)], lower=True)
    return np.asarray(cho_solve(factor, right))


# The worst attacker on a Gaussian block: every known set, every target, exactly.
#
# The Schur complement of the known records holds every conditional covariance at once,
# so one elimination step serves all targets. The known sets form a binary tree (record
# j known or not); its upper levels are walked depth first, its lower levels are
# eliminated in one batch. Each Schur complement comes from at most m forward pivots of
# a fresh matrix, so rounding errors never accumulate as they do along a Gray code, and
# no re-factorisation is needed.


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


# Checked covariance matrices: symmetric, positive definite, split into blocks.


NEAR_SINGULAR = 1e-12
"""Conditional variance, as a share of the variance, below which a search is refused."""

# Twice the first-order constant: it also pays for the terms of second order.
_SAFETY = 4.0


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Extreme eigenvalues of a correlation matrix, and its size.

    Parameters
    ----------
    low, high : float
        Least and greatest eigenvalue.
    size : int
        Number of records.
    """

    low: float
    high: float
    size: int

    def require_regular(self) -> Spectrum:
        """Return the spectrum itself, or refuse a near-singular matrix."""
        if self.low < NEAR_SINGULAR * self.size:
            raise NotApplicable(
                "the conditional variances of a Gaussian block must be above "
                f"{NEAR_SINGULAR:g} of the variances, got a least eigenvalue of "
                f"{self.low:.3g} of the correlation matrix; use the general bound "
                "(method='general'), which needs no covariance."
            )
        return self


def check_covariance(covariance: ArrayLike, name: str = "covariance") -> Matrix:
    """Return `covariance` as a read-only symmetric positive definite matrix.

    Raises
    ------
    ModelError
        If it is not square, finite, symmetric to 1e-9 as a correlation, or if its
        Cholesky factorisation fails.

    Examples
    --------
    >>> check_covariance([[2.0, 1.0], [1.0, 2.0]]).shape
    (2, 2)
    """
    matrix = np.array(covariance, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ModelError(
            f"{name} must be a square matrix, got an array of shape {matrix.shape}."
        )
    if not np.all(np.isfinite(matrix)):
        raise ModelError(f"{name} must be finite, got an entry that is not.")
    matrix = _symmetric(matrix, name)
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(matrix)[0])
        raise ModelError(
            f"{name} must be positive definite, got a least eigenvalue of {least:.6g}; "
            "leave out records that others determine."
        ) from None
    matrix.setflags(write=False)
    return matrix


def _symmetric(matrix: Matrix, name: str) -> Matrix:
    skew, sds = np.abs(matrix - matrix.T), np.sqrt(np.abs(np.diag(matrix)))
    excess = skew - 1e-9 * np.outer(sds, sds)
    if np.any(excess > 0):
        i, j = np.unravel_index(int(excess.argmax()), skew.shape)
        raise ModelError(
            f"{name} must be symmetric, got {matrix[i, j]} at [{i}, {j}] and "
            f"{matrix[j, i]} at [{j}, {i}]."
        )
    # A zero on one side only is not structural: the mean of both keeps it non-zero.
    return matrix / 2 + matrix.T / 2


def check_mean(mean: ArrayLike | None, size: int) -> Matrix:
    """Return `mean` as a read-only vector of `size`; zeros if None."""
    vector = np.zeros(size) if mean is None else np.array(mean, dtype=float)
    if vector.ndim == 0:
        vector = np.full(size, float(vector))
    if vector.shape != (size,) or not np.all(np.isfinite(vector)):
        raise ModelError(
            f"mean must be one finite number for each of the {size} records, "
            f"got an array of shape {vector.shape}."
        )
    vector.setflags(write=False)
    return vector


def connected_blocks(matrix: Any) -> tuple[NDArray[np.intp], ...]:
    """Return the records of each independent group: connected through non-zeros.

    Examples
    --------
    >>> [b.tolist() for b in connected_blocks([[1, 0, 0.5], [0, 1, 0], [0.5, 0, 1]])]
    [[0, 2], [1]]
    """
    from scipy.sparse import csr_array, issparse
    from scipy.sparse.csgraph import connected_components

    graph: Any = matrix
    if not issparse(matrix):
        graph = csr_array(np.asarray(matrix) != 0)
    count, labels = connected_components(graph, directed=False)
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=count)
    return tuple(np.split(order, np.cumsum(sizes)[:-1]))


def standardised(covariance: Matrix) -> tuple[Matrix, Matrix, Spectrum]:
    """Return standard deviations, correlation matrix, and its spectrum."""
    sds = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sds, sds)
    np.fill_diagonal(correlation, 1.0)
    values = np.linalg.eigvalsh(correlation)
    return sds, correlation, Spectrum(float(values[0]), float(values[-1]), len(sds))


def inversion_error(spectrum: Spectrum) -> float:
    r"""Bound the error of correlations computed by inverting a precision matrix.

    Notes
    -----
    The inverse is exact for a matrix C + E, C the precision scaled to a unit diagonal,
    :math:`\|E\| \le m(m+2)u`. An entry of the covariance changes by at most
    :math:`\|E\|/\lambda_{\min}(C)` of the two standard deviations, and
    :math:`\lambda_{\min}(C) \ge 1/\kappa` for the condition number of the correlation
    matrix. Four times this is returned.
    """
    size = spectrum.size
    condition = math.inf if spectrum.low <= 0 else spectrum.high / spectrum.low
    return _SAFETY * size * (size + 2) * UNIT * condition


def rounding_margin(spectrum: Spectrum, stretch: float) -> float:
    r"""Bound the rounding error of a sum of partial shifts.

    Parameters
    ----------
    spectrum : Spectrum
        Of the correlation matrix of the block.
    stretch : float
        Largest weight times ratio of standard deviations in the sum.

    Notes
    -----
    Elimination is exact for a matrix within :math:`m^2 u` of the correlation matrix in
    the spectral norm (u the rounding unit), and such a change moves the shifts by at
    most :math:`\sqrt m\,m^2 u\,(1 + \sqrt\kappa)/\lambda_{\min}` in the l1 norm; the
    margin is four times that, see the theory page "Gaussian leakage".
    """
    condition = math.sqrt(spectrum.high / spectrum.low)
    size = spectrum.size
    backward = size**2 * math.sqrt(size) * UNIT
    return _SAFETY * stretch * backward * (1 + condition) / spectrum.low

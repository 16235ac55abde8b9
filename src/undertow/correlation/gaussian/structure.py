r"""Large blocks: when the attacker who knows nothing is the worst.

Two conditions make :math:`h = \max_i \sum_j |\Sigma_{ij}| / \Sigma_{ii}`, without any
search over attackers: the precision matrix is an M-matrix up to signs, or the value
is at most 2 (the covariance is diagonally dominant). Both are proved on the theory
page "Gaussian structure". Sparse precision matrices are factored in a narrow band.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_finite
from undertow.correlation.gaussian.shift import (
    ShiftFactor,
    Spectrum,
    check_covariance,
    rounding_margin,
    standardised,
)
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.rounding import UNIT, inflate

# A margin above this says that the answer is mostly rounding: refuse instead.
_LARGEST_DENSE_MARGIN = 1e-3


def dominant_factor(covariance: ArrayLike) -> ShiftFactor:
    r"""Return the worst factor of a diagonally dominant covariance.

    .. math:: h = \max_i \frac{\sum_j |\Sigma_{ij}|}{\Sigma_{ii}}
              \quad\text{if this is at most } 2

    Parameters
    ----------
    covariance : array_like of shape (n, n)
        Symmetric positive definite; any signs, any variances.

    Raises
    ------
    NotApplicable
        If the value is above 2.

    Notes
    -----
    Proved on the theory page "Gaussian structure"; it contains the sharp closed form
    for correlations of at most 1/(m-1). O(n^2).

    Examples
    --------
    >>> mixed = [[1.0, -0.5, 0.2], [-0.5, 1.0, 0.4], [0.2, 0.4, 1.0]]
    >>> round(dominant_factor(mixed).value, 9)
    1.9
    """
    matrix = check_covariance(covariance)
    ratios = np.abs(matrix).sum(axis=1) / np.diag(matrix)
    target = int(ratios.argmax())
    terms = int(np.count_nonzero(matrix, axis=1).max())
    return _dominant(float(ratios[target]), target, terms)


def _dominant(ratio: float, target: int, terms: int) -> ShiftFactor:
    margin = (terms + 2) * UNIT
    value = inflate(ratio, margin) if terms > 1 else 1.0
    if value > 2:
        raise NotApplicable(
            "a diagonally dominant covariance must have rows whose absolute sum is at "
            f"most twice the variance, got {ratio:.6g} times for record {target}; "
            f"{WAY_OUT}."
        )
    return ShiftFactor(
        value,
        Adversary(target),
        margin=margin * value,
        reason="the covariance is diagonally dominant",
    )


def dense_structured_factor(covariance: ArrayLike) -> ShiftFactor:
    """Return the worst factor of a covariance with either structure, or refuse.

    Dominance is asked first, because it needs no inversion. The signs of a computed
    precision matrix are trusted down to rounding level only, and what rounding may hide
    is added to the factor.

    Raises
    ------
    NotApplicable
        If neither condition holds.

    Examples
    --------
    >>> equal = [[1.0, 0.9, 0.9], [0.9, 1.0, 0.9], [0.9, 0.9, 1.0]]
    >>> round(dense_structured_factor(equal).value, 9)
    2.8
    """
    matrix = check_covariance(covariance)
    try:
        return dominant_factor(matrix)
    except NotApplicable:
        pass
    sds, correlation, spectrum = standardised(matrix)
    precision, level = _trusted_precision(correlation, spectrum.require_regular())
    if signed_colouring(precision) is None:
        raise NotApplicable(
            "the structured method needs a precision matrix that is an M-matrix up to "
            "signs, or rows of absolute sum at most twice the variance, got neither; "
            f"{WAY_OUT}."
        )
    ratios = np.abs(matrix).sum(axis=1) / np.diag(matrix)
    target = int(ratios.argmax())
    stretch = float(sds.max() / sds.min())
    margin = rounding_margin(spectrum, stretch)
    margin += stretch * _hidden(correlation, level)
    if not margin < _LARGEST_DENSE_MARGIN:
        raise near_singular(margin)
    return ShiftFactor(
        float(ratios[target]) + margin,
        Adversary(target),
        margin=margin,
        reason="the precision matrix is an M-matrix up to signs",
    )


def _trusted_precision(correlation: Array, spectrum: Spectrum) -> tuple[Any, float]:
    """Return the inverse without what may be rounding, and the level of that."""
    from scipy.linalg import cho_solve
    from scipy.sparse import csr_array

    size = len(correlation)
    root = np.linalg.cholesky(correlation)
    inverse = cho_solve((root, True), np.eye(size))
    scale = np.sqrt(np.diag(inverse))
    scaled = inverse / np.outer(scale, scale)
    # The inverse is exact for a matrix within (m+2) u |L||L'| of the given one.
    backward = (size + 2) * UNIT * float((np.abs(root) @ np.abs(root).T).sum(1).max())
    level = 4 * backward / spectrum.low
    trusted = csr_array(np.where(np.abs(scaled) <= level, 0.0, scaled))
    return trusted, 2 * level * float(scale.max()) ** 2


def _hidden(correlation: Array, level: float) -> float:
    """Bound what precision entries below `level` can add to a sum of shifts.

    The inverse of an M-matrix is non-negative and grows with the matrix, so an entry
    moves no shift by more than a row sum of the correlations allows.
    """
    sums = float(np.abs(correlation).sum(axis=1).max())
    return 2 * len(correlation) * level * sums**2


def toeplitz_factor(autocovariance: ArrayLike) -> ShiftFactor:
    """Return the worst factor of a stationary series by its row sums.

    Parameters
    ----------
    autocovariance : array_like of shape (n,)
        Covariance at lag 0, 1, ..., n-1 of a positive definite Toeplitz matrix.

    Raises
    ------
    NotApplicable
        If the row sums pass twice the variance and the series is longer than 2000.

    Notes
    -----
    Diagonal dominance, in O(n); short series are also tried as dense matrices.

    Examples
    --------
    >>> round(toeplitz_factor([1.0, 0.3, 0.1, 0.0]).value, 9)
    1.7
    """
    from scipy.linalg import toeplitz

    lags = np.array(autocovariance, dtype=float)
    sums = np.concatenate([[0.0], np.cumsum(np.abs(lags[1:]))])
    ratios = 1 + (sums + sums[::-1]) / lags[0]
    target = int(ratios.argmax())
    try:
        terms = len(lags) if np.any(lags[1:]) else 1
        return _dominant(float(ratios[target]), target, terms)
    except NotApplicable:
        if len(lags) > 2000:
            raise
    return dense_structured_factor(toeplitz(lags))


def autoregressive_factor(phi: float, length: int) -> ShiftFactor:
    r"""Return the worst factor of an AR(1) series in closed form.

    .. math:: h_i = 1 + \frac{p (1 - p^i)}{1-p} + \frac{p (1 - p^{n-1-i})}{1-p},
              \qquad p = |\varphi|

    Parameters
    ----------
    phi : float
        Correlation of neighbours, in (-1, 1).
    length : int
        Number of records n.

    Notes
    -----
    Proved on the theory page "Gaussian structure": the largest is the record in the
    middle, below (1+p)/(1-p) whatever n, whereas the general bound charges n.

    Examples
    --------
    >>> round(autoregressive_factor(0.5, 5).value, 9)
    2.5
    >>> round(autoregressive_factor(-0.9, 1_000_000).value, 9)
    19.0
    """
    p, length = abs(check_finite(phi, "phi")), check_count(length, "length")
    if p >= 1:
        raise ModelError(f"phi must be in (-1, 1), got {phi}.")
    middle = (length - 1) // 2
    value = 1.0 + _one_side(p, middle) + _one_side(p, length - 1 - middle)
    margin = 1e-13
    return ShiftFactor(
        inflate(value, margin) if p > 0 and length > 1 else 1.0,
        Adversary(middle),
        margin=margin * value,
        reason="the precision matrix is an M-matrix up to signs",
    )


def _one_side(p: float, records: int) -> float:
    if records == 0 or p == 0:
        return 0.0
    return -p * math.expm1(records * math.log(p)) / (1 - p)


# Precision matrices that are M-matrices up to signs: row sums, rounded up.
#
# The attacker who knows nothing is then the worst, see the theory page "Gaussian
# structure".

WAY_OUT = "use method='covariance' (small blocks), 'sharp' or 'general'"
"""What a refusal for lack of structure recommends."""


# A margin above this says that the answer is mostly rounding: refuse instead.
_LARGEST_SIGNED_MARGIN = 1e-6


def signed_colouring(precision: Any) -> Array | None:
    """Return signs that make every off-diagonal entry non-positive, if there are any.

    Parameters
    ----------
    precision : scipy.sparse array of shape (n, n)
        Symmetric. A negative entry forces equal signs, a positive one opposite signs.

    Returns
    -------
    ndarray or None
        One sign for each record, or None if no choice of signs does it.

    Notes
    -----
    The colouring exists when no record is connected to its own copy in the graph with
    two copies (one of each sign) of each record; O(n + number of non-zeros).

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> signed_colouring(csr_array([[2.0, 1.0], [1.0, 2.0]])).tolist()
    [1.0, -1.0]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = precision.shape[0]
    graph = coo_array(_doubled(coo_array(precision)), shape=(2 * size,) * 2).tocsr()
    _, labels = connected_components(graph, directed=False)
    if np.any(labels[:size] == labels[size:]):
        return None
    return np.where(labels[:size] < labels[size:], 1.0, -1.0)


def _doubled(entries: Any) -> tuple[Any, tuple[Any, Any]]:
    """Return the links of the graph with two copies of each record."""
    rows, columns = entries.row, entries.col
    above = (rows < columns) & (entries.data != 0)
    rows, columns = rows[above], columns[above]
    size = rows.dtype.type(entries.shape[0])  # keeps the indices in 32 bits
    shift = size * (entries.data[above] > 0)
    heads = np.concatenate([rows, rows + size])
    tails = np.concatenate([columns + shift, columns + size - shift])
    return np.ones(len(heads)), (heads, tails)


def precision_factor(
    precision: Any, *, factored: BandedPrecision | None = None
) -> ShiftFactor:
    r"""Return the worst factor from a precision matrix that is signed-M.

    .. math:: h = \max_i \frac{\sum_j |\Sigma_{ij}|}{\Sigma_{ii}}
              \quad\text{if}\quad s_i s_j \Lambda_{ij} \le 0 \text{ for all } i \ne j

    Parameters
    ----------
    precision : scipy.sparse array of shape (n, n)
        Symmetric positive definite, as supplied by the user.
    factored : BandedPrecision, optional
        Its factorisation, where there is one already.

    Raises
    ------
    NotApplicable
        If no signs exist, or if the matrix is so nearly singular that rounding decides.

    Notes
    -----
    Proved on the theory page "Gaussian structure". The row sums solve one linear
    system; since the inverse of an M-matrix is non-negative, its residual gives a
    proved upper bound on every one of them. Time O(n b^2) for a band b.

    Examples
    --------
    >>> from scipy.sparse import diags
    >>> chain = diags([[-0.4], [1.0], [-0.4]], offsets=[-1, 0, 1], shape=(9, 9))
    >>> round(precision_factor(chain).value, 9)
    2.818181818
    """
    from scipy.sparse import csr_array

    matrix = csr_array(precision)
    signs = signed_colouring(matrix)
    if signs is None:
        raise NotApplicable(
            "the structured method needs a precision matrix whose off-diagonal "
            "entries are non-positive after changing signs of records, got one with "
            f"a cycle of the wrong sign; {WAY_OUT}."
        )
    factored = factored if factored is not None else BandedPrecision(matrix)
    sums = factored.solve(signs) * signs
    relative = _row_sum_error(matrix, signs, sums)
    diagonal = factored.inverse_diagonal()
    relative += _diagonal_error(matrix, factored.width, sums, relative)
    if not relative < _LARGEST_SIGNED_MARGIN:
        raise near_singular(relative)
    ratios = sums / diagonal
    target = int(ratios.argmax())
    value = inflate(float(ratios[target]), 2 * relative)
    return ShiftFactor(
        max(value, 1.0),
        Adversary(target),
        margin=2 * relative * value,
        reason="the precision matrix is an M-matrix up to signs",
    )


def _row_sum_error(matrix: Any, signs: Array, sums: Array) -> float:
    """Bound the relative error of the row sums from their residual, or refuse."""
    if not np.all(sums > 0):
        raise near_singular(math.inf)
    terms = int(np.diff(matrix.indptr).max()) + 2
    residual = np.abs(signs - matrix @ (signs * sums))
    residual += terms * UNIT * (abs(matrix) @ sums + 1)
    worst = float(residual.max())
    # Lambda y >= (1 - worst) 1 and a non-negative inverse: the true sums are at most
    # y / (1 - worst).
    return worst / (1 - worst) if worst < 0.5 else math.inf


def _diagonal_error(matrix: Any, width: int, sums: Array, relative: float) -> float:
    """Bound the relative error of the inverse's diagonal.

    A banded Cholesky factor is exact for a matrix within (2b+1)(b+2)u of the largest
    diagonal entry, and the least eigenvalue of an M-matrix is at least 1 / max y.
    """
    backward = 8.0 * (2 * width + 1) * (width + 2) * UNIT
    return float(backward * matrix.diagonal().max() * sums.max() * (1 + relative))


def near_singular(margin: float) -> NotApplicable:
    """Return the refusal of a matrix whose answer would be rounding."""
    return NotApplicable(
        "the structured method needs a precision matrix away from singularity, got a "
        f"relative rounding error of up to {margin:.3g}; use method='general'."
    )


# Sparse precision matrices of narrow band: factor, solve, diagonal of the inverse.

# Numbers held at once (half a gigabyte), and multiplications of one factorisation.
_LARGEST_STORE = 60_000_000
_LARGEST_WORK = 2e10


class BandedPrecision:
    """A symmetric positive definite matrix, permuted to a narrow band and factored.

    Parameters
    ----------
    matrix : scipy.sparse array of shape (n, n)
        Symmetric; its reverse Cuthill-McKee order must have a narrow band b.

    Raises
    ------
    ModelError
        If it is not positive definite, or if n b^2 operations are too many.

    Notes
    -----
    Factoring takes n b^2 operations and n b numbers of memory; a solve n b. The
    diagonal of the inverse needs no other entry of it: with blocks of size b the
    matrix is block tridiagonal, and the inverse of its k-th diagonal block is the sum
    of the forward and the backward Schur complements less the block itself; both are
    read off banded Cholesky factors, one of the reversed matrix.

    Examples
    --------
    >>> from scipy.sparse import diags
    >>> chain = diags([[-1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0]],
    ...                     offsets=[-1, 0, 1])
    >>> BandedPrecision(chain).inverse_diagonal().round(12).tolist()
    [0.75, 1.0, 0.75]
    """

    def __init__(self, matrix: Any) -> None:
        self.size = int(matrix.shape[0])
        self.order, self.bands = _to_bands(matrix)
        self.factor = _cholesky(self.bands)

    @property
    def width(self) -> int:
        """The band: entries further than this from the diagonal are zero."""
        return len(self.bands) - 1

    def solve(self, right: Array) -> Array:
        """Return the solution of ``matrix @ y = right``; `right` may have columns."""
        from scipy.linalg import cho_solve_banded

        solution = np.empty_like(right, dtype=float)
        solution[self.order] = cho_solve_banded((self.factor, True), right[self.order])
        return solution

    def sample(self, count: int, *, rng: np.random.Generator) -> Array:
        """Draw `count` centred vectors whose precision is the matrix; one row each."""
        from scipy.linalg.lapack import dtbtrs

        noise = rng.standard_normal((self.size, count))
        draws, fault = dtbtrs(self.factor, noise, uplo="L", trans="T")
        assert fault == 0, "the factor has a positive diagonal"
        out = np.empty((count, self.size))
        out[:, self.order] = draws.T
        return out

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of the inverse, in the order of the records."""
        block = max(self.width, 1)
        bands, factor = _padded(self.bands, block), _padded(self.factor, block)
        reversed_factor = _cholesky(_reversed(bands))
        forward = _square(_diagonal_blocks(factor, block))
        backward = _square(_diagonal_blocks(reversed_factor, block))[::-1, ::-1, ::-1]
        own = _diagonal_blocks(bands, block)
        own = own + np.tril(own, -1).transpose(0, 2, 1)
        roots = np.linalg.cholesky(forward + backward - own)
        columns = np.linalg.solve(roots, np.broadcast_to(np.eye(block), roots.shape))
        diagonal = np.empty(self.size)
        diagonal[self.order] = (columns**2).sum(axis=1).ravel()[: self.size]
        return diagonal


def _to_bands(matrix: Any) -> tuple[NDArray[np.intp], Array]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    entries = coo_array(matrix)
    size = entries.shape[0]
    rows, columns = entries.row, entries.col
    order: NDArray[np.intp] = np.arange(size)
    width = int(np.abs(rows - columns).max(initial=0))
    if width > 1:
        other = reverse_cuthill_mckee(matrix.tocsr(), symmetric_mode=True)
        place = np.empty(size, dtype=np.intp)
        place[other] = np.arange(size)
        narrower = int(np.abs(place[rows] - place[columns]).max(initial=0))
        if narrower < width:
            order, width = other.astype(np.intp), narrower
            rows, columns = place[rows], place[columns]
    _require_narrow(size, width)
    bands = np.zeros((width + 1, size))
    low = rows >= columns
    bands[rows[low] - columns[low], columns[low]] = entries.data[low]
    return order, bands


def _require_narrow(size: int, width: int) -> None:
    if size * (width + 1) > _LARGEST_STORE or size * float(width) ** 2 > _LARGEST_WORK:
        raise ModelError(
            f"precision must have a narrow band, got {size} records with a band of "
            f"{width} after reordering; give smaller independent blocks, or the "
            "limits of the correlations with Gaussian.limited."
        )


def _cholesky(bands: Array) -> Array:
    from scipy.linalg import LinAlgError, cholesky_banded

    try:
        return np.asarray(cholesky_banded(bands, lower=True))
    except LinAlgError:
        raise ModelError(
            "precision must be positive definite, got a matrix whose Cholesky "
            "factorisation fails; raise its diagonal or check its signs."
        ) from None


def _padded(bands: Array, block: int) -> Array:
    """Append records of precision one until the blocks fill."""
    missing = -bands.shape[1] % block
    full = np.zeros((block + 1, bands.shape[1] + missing))
    full[: len(bands), : bands.shape[1]] = bands
    full[0, bands.shape[1] :] = 1.0
    return full


def _reversed(bands: Array) -> Array:
    """Return the bands of the matrix with its records in reverse order."""
    out = np.zeros_like(bands)
    size = bands.shape[1]
    for offset, band in enumerate(bands):
        out[offset, : size - offset] = band[: size - offset][::-1]
    return out


def _diagonal_blocks(bands: Array, block: int) -> Array:
    """Return the lower triangles of the diagonal blocks."""
    count = bands.shape[1] // block
    blocks = np.zeros((count, block, block))
    for column in range(block):
        for row in range(column, block):
            blocks[:, row, column] = bands[row - column, column::block]
    return blocks


def _square(roots: Array) -> Array:
    return np.asarray(roots @ roots.transpose(0, 2, 1))

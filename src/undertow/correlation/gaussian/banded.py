"""Sparse precision matrices of narrow band: factor, solve, diagonal of the inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import ModelError

__all__ = ["BandedPrecision"]

Array = NDArray[np.float64]

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

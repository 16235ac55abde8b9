"""Checked covariance matrices: symmetric, positive definite, split into blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import ModelError, NotApplicable

__all__ = [
    "NEAR_SINGULAR",
    "Spectrum",
    "check_covariance",
    "check_mean",
    "connected_blocks",
    "inversion_error",
    "rounding_margin",
    "standardised",
]

Matrix = NDArray[np.float64]

NEAR_SINGULAR = 1e-12
"""Conditional variance, as a share of the variance, below which a search is refused."""

_UNIT = 2.0**-53
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
    return _SAFETY * size * (size + 2) * _UNIT * condition


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
    backward = size**2 * math.sqrt(size) * _UNIT
    return _SAFETY * stretch * backward * (1 + condition) / spectrum.low

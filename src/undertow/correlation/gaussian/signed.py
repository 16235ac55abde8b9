"""Precision matrices that are M-matrices up to signs: row sums, rounded up.

The attacker who knows nothing is then the worst, see the theory page "Gaussian
structure".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import inflate
from undertow.correlation.adversary import Adversary
from undertow.correlation.gaussian.banded import BandedPrecision
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.errors import NotApplicable

__all__ = ["WAY_OUT", "near_singular", "precision_factor", "signed_colouring"]

Array = NDArray[np.float64]

WAY_OUT = "use method='covariance' (small blocks), 'sharp' or 'general'"
"""What a refusal for lack of structure recommends."""

_UNIT = 2.0**-53
# A margin above this says that the answer is mostly rounding: refuse instead.
_LARGEST_MARGIN = 1e-6


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
    if not relative < _LARGEST_MARGIN:
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
    residual += terms * _UNIT * (abs(matrix) @ sums + 1)
    worst = float(residual.max())
    # Lambda y >= (1 - worst) 1 and a non-negative inverse: the true sums are at most
    # y / (1 - worst).
    return worst / (1 - worst) if worst < 0.5 else math.inf


def _diagonal_error(matrix: Any, width: int, sums: Array, relative: float) -> float:
    """Bound the relative error of the inverse's diagonal.

    A banded Cholesky factor is exact for a matrix within (2b+1)(b+2)u of the largest
    diagonal entry, and the least eigenvalue of an M-matrix is at least 1 / max y.
    """
    backward = 8.0 * (2 * width + 1) * (width + 2) * _UNIT
    return float(backward * matrix.diagonal().max() * sums.max() * (1 + relative))


def near_singular(margin: float) -> NotApplicable:
    """Return the refusal of a matrix whose answer would be rounding."""
    return NotApplicable(
        "the structured method needs a precision matrix away from singularity, got a "
        f"relative rounding error of up to {margin:.3g}; use method='general'."
    )

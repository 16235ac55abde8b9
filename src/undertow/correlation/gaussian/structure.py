r"""Large blocks: when the attacker who knows nothing is the worst.

Two conditions make :math:`h = \max_i \sum_j |\Sigma_{ij}| / \Sigma_{ii}`, without any
search over attackers: the precision matrix is an M-matrix up to signs, or the value is
at most 2 (the covariance is diagonally dominant). Both are proved on the theory page
"Gaussian structure".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate
from undertow._validate import check_count, check_finite
from undertow.correlation.adversary import Adversary
from undertow.correlation.gaussian.covariance import (
    Spectrum,
    check_covariance,
    rounding_margin,
    standardised,
)
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.signed import (
    WAY_OUT,
    near_singular,
    signed_colouring,
)
from undertow.errors import ModelError, NotApplicable

__all__ = [
    "autoregressive_factor",
    "dense_structured_factor",
    "dominant_factor",
    "toeplitz_factor",
]

Array = NDArray[np.float64]

_UNIT = 2.0**-53
# A margin above this says that the answer is mostly rounding: refuse instead.
_LARGEST_MARGIN = 1e-3


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
    margin = (terms + 2) * _UNIT
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
    if not margin < _LARGEST_MARGIN:
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
    backward = (size + 2) * _UNIT * float((np.abs(root) @ np.abs(root).T).sum(1).max())
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

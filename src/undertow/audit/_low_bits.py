"""Scores of the last digits of floats, where noise leaves traces of the answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["decimal_residue", "lowest_bit", "negative_zeros", "residue"]

Floats = NDArray[np.float64]

# The lowest bit of zero: above that of every float.
_NO_BIT = 1100.0
# Beyond it a float has no six digits after the point; of residues so many are kept.
_WHOLE, _DECIMALS = 2.0**30, 6


def lowest_bit(outputs: Any) -> Floats:
    r"""Return the exponent of the lowest set bit of each number.

    For :math:`y = m 2^e` with m odd this is e; it is 1100 for zero and infinity.
    Noise added in floating-point arithmetic leaves traces of the true answer there; of
    whole numbers it tells which are odd.

    Notes
    -----
    The rounded sum of a number of size :math:`2^a` and a noise is a multiple of the
    spacing near the larger of the two, so small outputs have more trailing zeros than
    outputs of the input 0 [1]_, [2]_.

    References
    ----------
    .. [1] I. Mironov, *On Significance of the Least Significant Bits for Differential
       Privacy*, CCS, 2012.
    .. [2] S. Haney, D. Desfontaines, L. Hartman, R. Shrestha, M. Hay,
       *Precision-based Attacks and Interval Refining*, 2022.

    Examples
    --------
    >>> lowest_bit([1.0, 0.75, 6.0])
    array([ 0., -2.,  1.])
    >>> lowest_bit(np.array([2**60 + 1, -6]))
    array([0., 1.])
    """
    if np.asarray(outputs).dtype.kind in "iu":
        bits = np.asarray(outputs).astype(np.uint64)  # all of them, beyond 2^53 too
        alone = (bits & (~bits + np.uint64(1))).astype(np.float64)
        return np.where(bits == 0, _NO_BIT, np.log2(np.where(bits == 0, 1.0, alone)))
    values = np.asarray(outputs, dtype=np.float64)
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0.0))
    digits = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.where(digits == 0, 1, digits & -digits)
    place = np.log2(lowest.astype(np.float64)) + exponent - 53
    return np.where(digits == 0, _NO_BIT, place)


def negative_zeros(outputs: Any) -> Floats:
    """Return how many zeros with a negative sign each output has.

    They equal other zeros, and are printed otherwise.

    Examples
    --------
    >>> negative_zeros([0.0, -0.0, -1.0])
    array([0., 1., 0.])
    """
    values = np.asarray(outputs)
    if values.dtype.kind != "f":
        return np.zeros(len(values))
    found = np.signbit(values) & (values == 0.0)
    return np.asarray(found.reshape(len(values), -1).sum(axis=1), dtype=np.float64)


def residue(outputs: Any, *, bits: int) -> Floats:
    r"""Return what is left of each output modulo :math:`2^{-bits}`, as a share.

    Examples
    --------
    >>> residue([0.25, 0.375], bits=2)
    array([0. , 0.5])
    """
    scaled = np.ldexp(np.asarray(outputs, dtype=np.float64), bits)
    return np.asarray(scaled - np.floor(scaled))


def decimal_residue(outputs: Any, *, digits: int) -> Floats:
    r"""Return what is left of each number modulo :math:`10^{-digits}`, as a share.

    From -1/2 to 1/2, so that multiples of that step are near 0 however they were
    rounded; to six decimals, and to none where a float has no such digits: 0.

    Examples
    --------
    >>> decimal_residue([0.25, 1.253, 0.1 + 0.2], digits=2)
    array([0. , 0.3, 0. ])
    """
    values = np.asarray(outputs, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = values * 10.0**digits
        told = np.where(np.abs(scaled) < _WHOLE, scaled, 0.0)
        left = np.round(told - np.round(told), _DECIMALS) + 0.0
    return np.where(np.isnan(values), np.nan, left)

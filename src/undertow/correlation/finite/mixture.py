r"""Where two mixtures of Laplace noise differ most.

Between two neighbouring centres, and beyond the outermost, the ratio of two mixtures of
:math:`e^{-|y-c_j|/b}` is monotone in y; so its supremum is reached at a centre. The
proof is on the page :doc:`/theory/exact-leakage`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_positive
from undertow.correlation.finite.kernel import require_lattice

__all__ = [
    "laplace_log_mixture",
    "laplace_ratio_suprema",
    "laplace_ratio_supremum",
]

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
# Centres at most this many scales apart: no mixture of probabilities underflows.
_SPREAD = 500.0
# Centres at most this many scales apart: a mixture loses less than half of its mass.
_NARROW = 0.5


def laplace_ratio_supremum(
    support: ArrayLike,
    p: ArrayLike,
    q: ArrayLike,
    *,
    scale: float,
    step: Fraction | None = None,
) -> float:
    r"""Return the largest log ratio of two Laplace mixtures over all outputs.

    .. math:: \sup_y \ln\frac{\sum_j p_j e^{-|y-c_j|/b}}{\sum_j q_j e^{-|y-c_j|/b}}
       = \max_k \ln\frac{\sum_j p_j e^{-|c_k-c_j|/b}}{\sum_j q_j e^{-|c_k-c_j|/b}}

    Parameters
    ----------
    support : array_like of shape (N,)
        The centres c, strictly increasing.
    p, q : array_like of shape (N,)
        Probabilities; each sums to one within 1e-9 and is normalised.
    scale : float
        The b of the noise; positive.
    step : Fraction, optional
        For discrete Laplace noise: its step, of which every centre must be a multiple.
        The supremum is then the same.

    Returns
    -------
    float
        Rounded to nearest, not raised; error about ``1e-15 (N + spread/b)``, and times
        ``spread/b`` where that is below a half.

    Notes
    -----
    Proved in full on the page exact-leakage. Time O(N): two recursions, not N^2 sums.

    Examples
    --------
    >>> p, q = [0, 0.1, 0.9], [0.9, 0.1, 0]
    >>> round(laplace_ratio_supremum([0, 1, 2], p, q, scale=1), 6)
    1.776137
    """
    found = laplace_ratio_suprema(
        support, np.asarray([p]), np.asarray([q]), scale=scale, step=step
    )
    return float(found[0])


def laplace_ratio_suprema(
    support: ArrayLike,
    p: ArrayLike,
    q: ArrayLike,
    *,
    scale: float,
    step: Fraction | None = None,
) -> Floats:
    """Return the largest log ratio for each row of many pairs of mixtures.

    Parameters
    ----------
    support, scale, step
        As in :func:`laplace_ratio_supremum`.
    p, q : array_like of shape (R, N)
        One pair of mixtures per row.

    Returns
    -------
    array of shape (R,)

    Examples
    --------
    >>> laplace_ratio_suprema([0, 1], [[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]],
    ...                       scale=0.5)
    array([2., 0.])
    """
    centres, b = _read_support(support), check_positive(scale, "scale")
    if step is not None:
        require_lattice(centres.tolist(), step)
    over, under = (
        laplace_log_mixture(centres, _read_weights(rows, name, centres), scale=b)
        for rows, name in ((p, "p"), (q, "q"))
    )
    return np.asarray((over - under).max(axis=-1), dtype=np.float64)


def laplace_log_mixture(support: Floats, weights: Floats, *, scale: float) -> Floats:
    r"""Return :math:`\ln\sum_j w_j e^{-|c_k-c_j|/b}` at every centre, row by row.

    Parameters
    ----------
    support : array of shape (N,)
        Increasing centres.
    weights : array of shape (..., N)
        Each row sums to one; rows of nan give nan.
    scale : float
        The b of the noise.

    Notes
    -----
    With :math:`A_k=\sum_{j\le k}w_je^{-(c_k-c_j)/b}`, :math:`A_k =
    A_{k-1}e^{-(c_k-c_{k-1})/b}+w_k`, and the same from the right. All terms are
    positive. Supports narrower than the noise sum :math:`e^{-(c_k-c_j)/b}-1` instead,
    so that differences of two results keep their relative accuracy as b grows. Wide
    ones, on which a row could underflow, use logarithms throughout.
    """
    gaps = np.diff(support) / scale
    spread = float(support[-1] - support[0])
    if spread <= _NARROW * scale:
        return _narrow_mixture(weights, gaps)
    if spread <= _SPREAD * scale:
        return _mixture(weights, np.exp(-gaps))
    return _wide_mixture(weights, gaps)


def _narrow_mixture(weights: Floats, gaps: Floats) -> Floats:
    """Sum what each weight loses on the way; both directions lose, none gains."""
    lost, steps = np.zeros_like(weights), np.expm1(-gaps)
    last = weights.shape[-1] - 1
    left, right = np.zeros(weights.shape[:-1]), np.zeros(weights.shape[:-1])
    passed, ahead = left.copy(), right.copy()
    for k in range(1, last + 1):
        passed = passed + weights[..., k - 1]
        left = left + (passed + left) * steps[k - 1]
        lost[..., k] += left
        ahead = ahead + weights[..., last - k + 1]
        right = right + (ahead + right) * steps[last - k]
        lost[..., last - k] += right
    return np.asarray(np.log1p(lost), dtype=np.float64)


def _mixture(weights: Floats, decay: Floats) -> Floats:
    total = weights.copy()
    left, right = np.zeros(weights.shape[:-1]), np.zeros(weights.shape[:-1])
    last = weights.shape[-1] - 1
    for k in range(1, last + 1):
        left = (left + weights[..., k - 1]) * decay[k - 1]
        total[..., k] += left
        right = (right + weights[..., last - k + 1]) * decay[last - k]
        total[..., last - k] += right
    return np.asarray(np.log(total), dtype=np.float64)


def _wide_mixture(weights: Floats, gaps: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    total = logs.copy()
    left, right = np.full(logs.shape[:-1], -np.inf), np.full(logs.shape[:-1], -np.inf)
    last = weights.shape[-1] - 1
    with np.errstate(invalid="ignore"):  # rows of nan
        for k in range(1, last + 1):
            left = np.logaddexp(left, logs[..., k - 1]) - gaps[k - 1]
            total[..., k] = np.logaddexp(total[..., k], left)
            right = np.logaddexp(right, logs[..., last - k + 1]) - gaps[last - k]
            total[..., last - k] = np.logaddexp(total[..., last - k], right)
    return total


def _read_support(support: ArrayLike) -> Floats:
    centres = np.asarray(support, dtype=np.float64)
    if centres.ndim != 1 or centres.size == 0 or not np.isfinite(centres).all():
        raise ValueError("support must be a vector of finite numbers.")
    if not (np.diff(centres) > 0).all():
        raise ValueError("support must be strictly increasing.")
    return centres


def _read_weights(rows: ArrayLike, name: str, centres: Floats) -> Floats:
    weights = np.asarray(rows, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[-1] != centres.size:
        raise ValueError(
            f"{name} must have one weight for each of {centres.size} centres, "
            f"got shape {weights.shape}."
        )
    totals = weights.sum(axis=-1, keepdims=True)
    if not (weights >= 0).all() or not (np.abs(totals - 1) <= _TOLERANCE).all():
        raise ValueError(f"{name} must be non-negative and sum to one.")
    return np.asarray(weights / totals, dtype=np.float64)

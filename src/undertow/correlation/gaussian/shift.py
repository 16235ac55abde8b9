r"""How far the unknown records move when the target does: partial shifts.

Under a Gaussian law, given the known records, moving the target by one moves the
conditional mean of the unknown record u by

.. math:: c_u = \mathrm{Cov}(X_u, X_i \mid X_K) / \mathrm{Var}(X_i \mid X_K)

and changes nothing else. The leakage of one attacker is governed by these numbers
(thesis, Lemma 6.10).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.correlation.adversary import Adversary
from undertow.correlation.gaussian.covariance import check_covariance
from undertow.errors import ModelError

__all__ = ["ShiftFactor", "adversary_factor", "check_weights", "partial_shift"]

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

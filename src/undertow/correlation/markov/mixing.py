r"""Where a chain settles, how fast, and what a window of it leaks.

The thesis (Section 3.3) asks that the window of an event-level guarantee be longer
than the mixing time. :func:`window_leakage` gives the leakage as a function of the
window's length instead, which is what that advice is about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_probability
from undertow.correlation.markov.closed import finite_leakage
from undertow.correlation.markov.ratio import projective_diameter, read_kernels
from undertow.correlation.result import Leakage
from undertow.errors import ModelError, NotApplicable

__all__ = ["mixing_time", "stationary_law", "window_leakage"]

Array = NDArray[np.float64]

# Largest error of wP = w, in total variation, that the elimination may leave.
_RESIDUAL = 1e-10
_LONGEST = 2**40


def stationary_law(transition: ArrayLike) -> Array:
    r"""Return the law w with :math:`w P = w`.

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic; zeros are allowed.

    Returns
    -------
    ndarray of shape (s,)
        Transient states have probability zero.

    Raises
    ------
    ModelError
        If there is more than one such law.

    Notes
    -----
    Elimination of one state after the other without subtractions (Grassmann, Taksar
    and Heyman), so that small probabilities keep their relative accuracy; cost s^3.

    Examples
    --------
    >>> stationary_law([[0.5, 0.5], [1.0, 0.0]]).round(6).tolist()
    [0.666667, 0.333333]
    """
    P = _read_matrix(transition)
    members = _closed_class(P)
    law = np.zeros(len(P))
    law[members] = _eliminate(P[np.ix_(members, members)])
    residual = float(np.abs(law @ P - law).sum()) / 2
    if not residual <= _RESIDUAL:  # catches nan
        raise ModelError(
            "transition must have a stationary law that floats can hold, got "
            f"transitions down to {float(P[P > 0].min()):.3g}; give initial=."
        )
    return law


def mixing_time(transition: ArrayLike, tolerance: float = 0.01) -> int:
    r"""Return the first step after which the start hardly matters.

    .. math:: \min \{t : \max_x \mathrm{TV}(P^t(x, \cdot), w) \le \text{tolerance}\}

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic.
    tolerance : float
        Total variation allowed, in (0, 1).

    Raises
    ------
    ModelError
        If there is more than one stationary law.
    NotApplicable
        If the chain is periodic, so that its start matters for ever.

    Notes
    -----
    Doubling, then bisection on squared powers: cost ``s^3 log(t)``. **Not** a stopping
    rule for leakage: the recursions of leakage contract with the projective diameter,
    not with the second eigenvalue.

    Examples
    --------
    >>> mixing_time([[0.818, 0.182], [0.371, 0.629]])
    6
    """
    P = _read_matrix(transition)
    tolerance = check_probability(tolerance, "tolerance", open_interval=True)
    law = stationary_law(P)

    def is_mixed(power: Array) -> bool:
        return float(np.abs(power - law).sum(axis=1).max()) / 2 <= tolerance

    powers = [P]  # P^(2^k)
    while not is_mixed(powers[-1]):
        powers.append(powers[-1] @ powers[-1])
        if 2 ** len(powers) > _LONGEST:
            raise NotApplicable(
                "mixing_time needs an aperiodic chain, got one that has not mixed "
                f"after {_LONGEST:.3g} steps."
            )
    time, reached = 0, np.eye(len(P))
    for k in range(len(powers) - 2, -1, -1):
        trial = reached @ powers[k]
        if not is_mixed(trial):
            time, reached = time + 2**k, trial
    return time + 1


def window_leakage(
    transition: ArrayLike, epsilon: float, *, lengths: Iterable[int]
) -> dict[int, Leakage]:
    r"""Bound the leakage of a release about a window of w records, for several w.

    Parameters
    ----------
    transition : array_like of shape (s, s), or sequence of such
        Row-stochastic with positive entries.
    epsilon : float
        DP level of the release; non-negative and finite.
    lengths : iterable of int
        Window lengths w.

    Returns
    -------
    dict of int to Leakage
        Non-decreasing in w, from `epsilon` at w = 1 to the closed form.

    Raises
    ------
    NotApplicable
        If an entry is zero.

    Notes
    -----
    :func:`~undertow.correlation.markov.closed.finite_leakage`, proved on the theory
    page *Markov chains: the projective bound*. The release reads the window only;
    its attackers may know any records, inside or outside. A secret outside the window
    leaks less than one at its edge, since it acts through it. Any start.

    Examples
    --------
    >>> P = [[0.882, 0.118], [0.305, 0.695]]
    >>> found = window_leakage(P, 0.1, lengths=(1, 2, 5, 100))
    >>> [round(bound.value, 4) for bound in found.values()]
    [0.1, 0.161, 0.2963, 0.412]
    """
    kernels, _ = read_kernels(transition)
    listed = [check_count(length, "length") for length in lengths]
    each = kernels if kernels.ndim == 3 else kernels[None]
    diameter = max(projective_diameter(kernel) for kernel in each)
    if diameter == math.inf:
        raise NotApplicable(
            "window_leakage needs transitions of positive probability, got a zero; "
            "use the method 'steps' on a chain of each length."
        )
    return {w: finite_leakage(epsilon, diameter, size=w) for w in listed}


def _read_matrix(transition: ArrayLike) -> Array:
    """Return one matrix whose rows sum to one as closely as floats can."""
    kernels, _ = read_kernels(transition)
    if kernels.ndim != 2:
        raise ModelError(
            f"transition must be one square matrix, got shape {kernels.shape}."
        )
    normalised: Array = kernels / kernels.sum(axis=1, keepdims=True)
    return normalised


def _closed_class(P: Array) -> NDArray[np.intp]:
    """Return the states of the only class that is never left."""
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components((P > 0).astype(float), connection="strong")
    leaves = np.zeros(count, dtype=bool)
    sources, targets = np.nonzero(P > 0)
    leaves[labels[sources][labels[sources] != labels[targets]]] = True
    closed = np.flatnonzero(~leaves)
    if len(closed) > 1:
        raise ModelError(
            "transition must have one stationary law, got "
            f"{len(closed)} classes of states that are never left; give initial=."
        )
    return np.flatnonzero(labels == closed[0])


def _eliminate(P: Array) -> Array:
    """Solve wP = w on one class by state reduction without subtraction."""
    A = np.array(P)
    law = np.ones(len(A))
    with np.errstate(all="ignore"):  # what overflows shows in the residual
        for k in range(len(A) - 1, 0, -1):
            A[:k, k] /= A[k, :k].sum()
            A[:k, :k] += np.outer(A[:k, k], A[k, :k])
        for k in range(1, len(A)):
            law[k] = law[:k] @ A[:k, k]
            law[: k + 1] /= law[: k + 1].sum()
    return law

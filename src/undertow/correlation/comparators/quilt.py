"""The Markov quilt mechanism: hide a record behind a window of its neighbours.

A quilt of record i is a pair of records (i - a, i + b). Given them, i is independent of
everything further away, and if they depend little on i, then protecting the a + b - 1
records between them protects i, up to that little. The promise holds against someone
who knows *no* record: a known record inside the window, or just outside, is not in the
argument.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import check_count, check_positive
from undertow.correlation.comparators._chain import (
    Matrix,
    read_transition,
    reversed_kernel,
    visited_law,
)
from undertow.correlation.comparators._quilt_search import (
    Distances,
    MarkovQuilt,
    log_ratios,
    narrowest,
    two_sided,
    worst_target,
)
from undertow.correlation.comparators.scale import (
    NO_KNOWLEDGE,
    ComparatorScale,
    raised,
)
from undertow.errors import NotApplicable

__all__ = [
    "MarkovQuilt",
    "approximate_quilt_scale",
    "best_quilt",
    "quilt_influence",
    "quilt_scale",
]

SOURCE = "Song, Wang and Chaudhuri (2017), Markov quilt mechanism"

# Longest chain searched record by record, where its ends matter.
_LONGEST = 1000


def quilt_influence(transition: ArrayLike, *, left: int, right: int) -> float:
    r"""Return how much the records `left` before and `right` after tell of one between.

    .. math:: e = \max_{x, x', u, v} \ln
        \frac{\Pr[X_{i-a} = u, X_{i+b} = v \mid X_i = x]}
             {\Pr[X_{i-a} = u, X_{i+b} = v \mid X_i = x']}

    for a chain at equilibrium: the same pair (x, x') on both sides.

    Examples
    --------
    >>> P = [[0.8, 0.2], [0.2, 0.8]]
    >>> round(quilt_influence(P, left=1, right=1), 6)  # 2 ln 4
    2.772589
    """
    a, b = check_count(left, "left"), check_count(right, "right")
    P = read_transition(transition)
    ahead = log_ratios(np.linalg.matrix_power(P, b))
    behind = log_ratios(np.linalg.matrix_power(reversed_kernel(P), a))
    return float((ahead + behind).max())


def best_quilt(
    transition: ArrayLike, target: float, *, length: int | None = None
) -> MarkovQuilt:
    """Return the quilt that sets the scale of the mechanism.

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic; the chain is homogeneous and starts at equilibrium.
    target : float
        The promise; positive and finite.
    length : int, optional
        Number of records; None for a chain of any length.

    Returns
    -------
    MarkovQuilt
        Best quilt of the record that needs the most noise.

    Raises
    ------
    NotApplicable
        If no window below the search limit has an influence below `target`.

    Notes
    -----
    A quilt of width w needs at least ``w / target``, so widths are searched upwards
    until that passes the best scale found. Each record's best scale is at most the
    best two-sided one of an endless chain (drop the side that leaves the chain: the
    width and the influence both shrink), so a chain more than twice as long as the
    widest useful window has the scale of the endless one. Shorter chains are searched
    record by record. Time O(L^2 s^2) for the widest useful window L.
    """
    P, target = read_transition(transition), check_positive(target, "target")
    behind, ahead = Distances(reversed_kernel(P)), Distances(P)

    size = None if length is None else check_count(length, "length")
    endless = narrowest(
        lambda width: two_sided(behind, ahead, width), target, size=size
    )
    reach = math.floor(endless.scale(target) * target) + 1  # one more for rounding
    if size is None or size > 2 * reach:
        return endless
    if size > _LONGEST:
        raise NotApplicable(
            f"the Markov quilt search needs at most {_LONGEST} records where windows "
            f"reach the ends of the chain, got {size}; use approximate_quilt_scale."
        )
    return worst_target(behind.up_to(size), ahead.up_to(size), target)


def quilt_scale(
    transition: ArrayLike,
    target: float,
    *,
    length: int | None = None,
    sensitivity: float = 1.0,
) -> ComparatorScale:
    r"""Return the noise scale of the Markov quilt mechanism (MQMExact).

    .. math:: b = \Delta \max_i \min_{\text{quilts of } i}
        \frac{\text{width}}{B - e}, \qquad e < B

    Parameters
    ----------
    transition, target, length
        As in :func:`best_quilt`.
    sensitivity : float
        Most that one record moves the query.

    Returns
    -------
    ComparatorScale
        Not a guarantee in the sense of Bayesian DP: the attacker knows no record.

    Notes
    -----
    Algorithm 3 of [1]_ for one transition matrix and a stationary start: two-sided
    quilts, one-sided ones and the trivial quilt of all `length` records. Checked: the
    matrix is stochastic with one stationary law. Not checkable: the chain starts at
    equilibrium, and the attacker knows no other record.

    References
    ----------
    .. [1] S. Song, Y. Wang and K. Chaudhuri, *Pufferfish Privacy Mechanisms for
       Correlated Data*, SIGMOD 2017.

    Examples
    --------
    >>> P = [[9713 / 11008, 1295 / 11008], [1295 / 4250, 2955 / 4250]]
    >>> round(quilt_scale(P, 1.0).noise_scale, 3)
    14.854
    """
    change = check_positive(sensitivity, "sensitivity")
    quilt = best_quilt(transition, target, length=length)
    return _as_scale("quilt", quilt, target, change)


def approximate_quilt_scale(
    transition: ArrayLike,
    target: float,
    *,
    length: int | None = None,
    sensitivity: float = 1.0,
) -> ComparatorScale:
    r"""Return the noise scale of the quilt mechanism from mixing alone (MQMApprox).

    .. math:: e \le 2\ln\frac{1+\delta_a}{1-\delta_a}
        + \ln\frac{1+\delta_b}{1-\delta_b}, \qquad \delta_d = e^{-gd}/\pi_{\min}

    with the least stationary probability and the gap g of the chain: one minus the
    second largest modulus of an eigenvalue if it is reversible, else half of one minus
    the second eigenvalue of the chain followed by its reverse.

    Parameters
    ----------
    transition, target, length, sensitivity
        As in :func:`quilt_scale`.

    Notes
    -----
    Section 4.4.2 of [1]_. Holds for every initial law, hence the factor 2: the
    marginal of the record enters too. Never below the scale of :func:`quilt_scale`.

    References
    ----------
    .. [1] S. Song, Y. Wang and K. Chaudhuri, *Pufferfish Privacy Mechanisms for
       Correlated Data*, SIGMOD 2017.

    Examples
    --------
    >>> P = [[0.8, 0.2], [0.2, 0.8]]
    >>> exact, approximate = quilt_scale(P, 1.0), approximate_quilt_scale(P, 1.0)
    >>> exact.noise_scale < approximate.noise_scale
    True
    """
    P, target = read_transition(transition), check_positive(target, "target")
    change = check_positive(sensitivity, "sensitivity")
    size = None if length is None else check_count(length, "length")
    least, gap = float(visited_law(P).min()), _spectral_gap(P)

    def influence(width: int) -> Matrix:
        delta = np.exp(-gap * np.arange(1, width + 1)) / least
        mixed = delta < 1
        side = np.full(width, math.inf)
        side[mixed] = np.log1p(delta[mixed]) - np.log1p(-delta[mixed])
        return np.asarray(2 * side + side[::-1])

    quilt = narrowest(influence, target, size=size)
    return _as_scale("quilt-approximate", quilt, target, change)


def _spectral_gap(P: Matrix) -> float:
    back = reversed_kernel(P)
    if np.allclose(P, back, rtol=0, atol=1e-12):
        moduli = np.sort(np.abs(np.linalg.eigvals(P)))
        gap = 1 - float(moduli[-2])
    else:
        moduli = np.sort(np.abs(np.linalg.eigvals(P @ back)))
        gap = (1 - float(moduli[-2])) / 2
    if gap <= 1e-12:
        raise NotApplicable(
            f"the approximate quilt mechanism needs a positive spectral gap, got "
            f"{gap:.3g}: the chain does not mix; use the general bound."
        )
    return gap


def _as_scale(
    name: str, quilt: MarkovQuilt, target: float, change: float
) -> ComparatorScale:
    ends = (
        "all records"
        if quilt.left is None and quilt.right is None
        else f"quilt {quilt.left or 'end'} back, {quilt.right or 'end'} ahead"
    )
    return ComparatorScale(
        name,
        SOURCE,
        target,
        raised(change * quilt.scale(target)),
        NO_KNOWLEDGE,
        False,
        note=f"{ends}; width {quilt.width}, influence {quilt.influence:.6g}",
    )

r"""The Wasserstein mechanism: noise for how far the answer's law moves with a secret.

If the law of the answer given x can be carried to its law given x' without moving any
mass by more than W, then Laplace noise of scale W/B keeps the promise B for that pair,
against the attacker for whom these are the laws. Each attacker has laws of his own: the
mechanism protects against those whose laws are listed, and no others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import check_count, check_index, check_positive
from undertow.correlation.comparators._chain import (
    Matrix,
    read_transition,
    reversed_kernel,
)
from undertow.correlation.comparators.scale import (
    EVERY_ATTACKER,
    NO_KNOWLEDGE,
    ComparatorScale,
    raised,
)
from undertow.correlation.gaussian.covariance import check_covariance
from undertow.correlation.gaussian.shift import check_weights
from undertow.correlation.gaussian.sweep import worst_factor
from undertow.errors import ModelError, NotApplicable

__all__ = [
    "count_wasserstein_scale",
    "gaussian_wasserstein_scale",
    "wasserstein_infinity",
    "wasserstein_scale",
]

SOURCE = "Song, Wang and Chaudhuri (2017), Wasserstein mechanism"

Law = tuple[ArrayLike, ArrayLike]
"""A discrete law on the line: its values and their probabilities."""

# Two levels of a distribution function closer than this are the same level: sums of
# probabilities are not exact.
_LEVEL_TOLERANCE = 1e-12
_MASS_TOLERANCE = 1e-9
_LARGEST_BLOCK = 14
_LONGEST_CHAIN = 1000
_SMALLEST = 1e-290


def wasserstein_infinity(first: Law, second: Law) -> float:
    r"""Return the least distance by which one law can be carried to the other.

    .. math:: W_\infty = \sup_{0<u<1} |F^{-1}(u) - G^{-1}(u)|

    Parameters
    ----------
    first, second : pair of array_like
        Values and probabilities of two discrete laws on the line.

    Raises
    ------
    ModelError
        If the probabilities are negative or do not sum to one.

    Notes
    -----
    On the line the monotone coupling moves mass least. Levels are compared by the
    distribution function below one half and by the survival function above, so that
    small tails keep their relative precision; levels within 1e-12 of each other,
    relatively, are taken as equal.

    Examples
    --------
    >>> wasserstein_infinity(([0, 1], [0.5, 0.5]), ([0, 1, 5], [0.4, 0.5, 0.1]))
    4.0
    """
    (x, p), (y, q) = _read_law(first), _read_law(second)
    lower = _largest_gap(x, p, y, q)
    upper = _largest_gap(-x[::-1], p[::-1], -y[::-1], q[::-1])
    return max(lower, upper)


def wasserstein_scale(
    pairs: Iterable[tuple[Law, Law]], target: float, *, attackers: str
) -> ComparatorScale:
    """Return the scale of the Wasserstein mechanism for the listed pairs of laws.

    Parameters
    ----------
    pairs : iterable of pair of law
        For each attacker and each pair of secrets: the laws of the answer.
    target : float
        The promise; positive and finite.
    attackers : str
        Whose laws these are, in words.

    Raises
    ------
    ValueError
        If no pair of different laws is listed.

    Examples
    --------
    >>> pair = (([0, 1], [0.9, 0.1]), ([1, 2], [0.2, 0.8]))
    >>> round(wasserstein_scale([pair], 0.5, attackers="one").noise_scale, 6)
    4.0
    """
    target = check_positive(target, "target")
    distance = max((wasserstein_infinity(p, q) for p, q in pairs), default=0.0)
    if distance == 0:
        raise ValueError("pairs must hold two different laws, got none.")
    return ComparatorScale(
        "wasserstein",
        SOURCE,
        target,
        raised(distance / target),
        attackers,
        False,
        note=f"protects against the listed laws only; distance {distance:.6g}",
    )


def gaussian_wasserstein_scale(
    covariance: ArrayLike,
    target: float,
    *,
    gap: float,
    weights: ArrayLike | None = None,
) -> ComparatorScale:
    r"""Return the Wasserstein scale of a linear query of Gaussian records.

    .. math:: b = \frac{M}{B}\max_{K, i}\Bigl|w_i + \sum_{u} w_u c_u\Bigr|,
        \qquad c_u = \frac{\mathrm{Cov}(X_u, X_i \mid X_K)}{\mathrm{Var}(X_i \mid X_K)}

    Parameters
    ----------
    covariance : array_like of shape (m, m)
        Positive definite.
    target : float
        The promise; positive and finite.
    gap : float
        Secrets at most this far apart are covered, M.
    weights : array_like of shape (m,), optional
        The query; a plain sum by default.

    Raises
    ------
    ModelError
        If the covariance is not positive definite, or the weights do not fit it.
    NotApplicable
        If there are more than 14 records, or the covariance is nearly singular.

    Notes
    -----
    Given what is known, the answer is Gaussian with a variance that does not depend on
    the secret, so the two laws are shifts of each other and the distance is the shift.
    All attackers are listed, and Laplace noise attains the ratio in the tails: this is
    the exact scale for the *unclipped* query, up to a rounding margin that grows with
    the condition number. It is no DP release, and no bound once records are clipped.

    Examples
    --------
    >>> scale = gaussian_wasserstein_scale([[1, 0.5], [0.5, 1]], 1.0, gap=2.0)
    >>> round(scale.noise_scale, 6)
    3.0
    """
    target, gap = check_positive(target, "target"), check_positive(gap, "gap")
    cov = check_covariance(covariance)
    w = check_weights(weights, len(cov))
    found = worst_factor(cov, weights=w, signed=True, max_block=_LARGEST_BLOCK)
    shift = found.value * float(np.abs(w).max())
    return ComparatorScale(
        "wasserstein",
        SOURCE,
        target,
        raised(gap * shift / target),
        EVERY_ATTACKER,
        True,
        note=f"exact without clipping, for secrets at most {gap:g} apart; not DP",
    )


def count_wasserstein_scale(
    transition: ArrayLike, target: float, *, length: int, states: Iterable[int] = (1,)
) -> ComparatorScale:
    """Return the Wasserstein scale of a count on a Markov chain at equilibrium.

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic.
    target : float
        The promise; positive and finite.
    length : int
        Number of records, at most 1000.
    states : iterable of int
        States counted.

    Raises
    ------
    NotApplicable
        If the chain is longer than the laws can be computed for, or their tails leave
        the range of floats.

    Notes
    -----
    Lists the laws of the attacker who knows no record, for every record and every pair
    of states. Time O(n^3 s), memory O(n^2 s). Laws of attackers who know records are
    as many as these attackers: listing them all is out of reach, which is the known
    limit of the mechanism.

    Examples
    --------
    >>> P = [[0.8, 0.2], [0.2, 0.8]]
    >>> round(count_wasserstein_scale(P, 1.0, length=5).noise_scale, 6)
    4.0
    """
    P, n = read_transition(transition), check_count(length, "length")
    counted = np.zeros(len(P), dtype=bool)
    counted[[check_index(z, "state", size=len(P)) for z in states]] = True
    if n > _LONGEST_CHAIN:
        raise NotApplicable(
            f"the Wasserstein mechanism needs at most {_LONGEST_CHAIN} records, got "
            f"{n}: it lists the law of the count for each of them; use the Markov "
            "methods, whose cost does not grow with the length."
        )
    if counted.all() or not counted.any():
        raise ValueError("states must leave a state out and name one, got all or none.")
    return wasserstein_scale(_count_laws(P, counted, n), target, attackers=NO_KNOWLEDGE)


def _count_laws(P: Matrix, counted: Matrix, n: int) -> Iterable[tuple[Law, Law]]:
    ahead, behind = _beyond(P, counted, n), _beyond(reversed_kernel(P), counted, n)
    values = np.arange(n + 1)
    for i in range(n):
        laws = []
        for x in range(len(P)):
            others = np.convolve(behind[i, x, : i + 1], ahead[n - 1 - i, x, : n - i])
            own = np.array([0.0, 1.0] if counted[x] else [1.0, 0.0])
            if ((others > 0) & (others < _SMALLEST)).any():
                raise NotApplicable(
                    "the Wasserstein mechanism needs the tails of the count's law, got "
                    f"some below {_SMALLEST:g} for {n} records; use a shorter chain."
                )
            laws.append((values, np.convolve(others, own)))
        yield from itertools.combinations(laws, 2)


def _beyond(kernel: Matrix, counted: Matrix, n: int) -> Matrix:
    """Return the law of the count over the next k records, given the state now."""
    size = len(kernel)
    law = np.zeros((n, size, n))
    law[0, :, 0] = 1.0
    for k in range(1, n):
        entered = law[k - 1].copy()
        entered[counted, 1:] = law[k - 1][counted, :-1]
        entered[counted, 0] = 0.0
        law[k] = kernel @ entered
    return law


def _read_law(law: Law) -> tuple[Matrix, Matrix]:
    values, mass = (np.asarray(part, dtype=float) for part in law)
    if values.ndim != 1 or values.shape != mass.shape or not values.size:
        raise ModelError("a law must be two lists of equal length, got other shapes.")
    if not np.all(np.isfinite(values)):
        raise ModelError("a law must have finite values, got one that is not.")
    total = math.fsum(mass)
    if mass.min() < 0 or not abs(total - 1) <= _MASS_TOLERANCE:
        raise ModelError(
            "a law must have non-negative probabilities that sum to 1, got the sum "
            f"{total:.9g}."
        )
    order = np.argsort(values, kind="stable")
    order = order[mass[order] > 0]
    return values[order], mass[order] / total


def _largest_gap(x: Matrix, p: Matrix, y: Matrix, q: Matrix) -> float:
    """Return the largest gap of two quantile functions on levels up to one half."""
    below, other = np.cumsum(p), np.cumsum(q)
    levels = np.concatenate([below, other, [0.5]])
    levels = levels[levels <= 0.5 * (1 + _LEVEL_TOLERANCE)] * (1 - _LEVEL_TOLERANCE)
    at = np.minimum(np.searchsorted(below, levels), x.size - 1)
    there = np.minimum(np.searchsorted(other, levels), y.size - 1)
    return float(np.abs(x[at] - y[there]).max())

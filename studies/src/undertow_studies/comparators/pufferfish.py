"""The mechanisms of Song, Wang and Chaudhuri: Markov quilts, and Wasserstein noise.

A quilt hides a record behind a window of its neighbours; the promise holds against
someone who knows *no* record. The Wasserstein mechanism adds noise for how far the
law of the answer moves with a secret, against those attackers whose laws are listed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import (
    check_count,
    check_index,
    check_non_negative,
    check_positive,
)
from undertow.correlation.gaussian.shift import (
    check_covariance,
    check_weights,
    worst_factor,
)
from undertow.correlation.level import check_level
from undertow.correlation.markov.projective import read_kernels, stationary_law
from undertow.errors import InfeasibleTarget, ModelError, NotApplicable
from undertow.numeric.array import Matrix
from undertow.numeric.exact import exact, round_up_decimal
from undertow.numeric.rounding import inflate
from undertow_studies.comparators.scale import (
    EVERY_ATTACKER,
    NO_KNOWLEDGE,
    ROUNDING_MARGIN,
    ComparatorScale,
    raised,
)

QUILT_SOURCE = "Song, Wang and Chaudhuri (2017), Markov quilt mechanism"

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
    ahead = _log_ratios(np.linalg.matrix_power(P, b))
    behind = _log_ratios(np.linalg.matrix_power(reversed_kernel(P), a))
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
    behind, ahead = _Distances(reversed_kernel(P)), _Distances(P)

    size = None if length is None else check_count(length, "length")
    endless = _narrowest(
        lambda width: _two_sided(behind, ahead, width), target, size=size
    )
    reach = math.floor(endless.scale(target) * target) + 1  # one more for rounding
    if size is None or size > 2 * reach:
        return endless
    if size > _LONGEST:
        raise NotApplicable(
            f"the Markov quilt search needs at most {_LONGEST} records where windows "
            f"reach the ends of the chain, got {size}; use approximate_quilt_scale."
        )
    return _worst_target(behind.up_to(size), ahead.up_to(size), target)


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

    quilt = _narrowest(influence, target, size=size)
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
        QUILT_SOURCE,
        target,
        raised(change * quilt.scale(target)),
        NO_KNOWLEDGE,
        False,
        note=f"{ends}; width {quilt.width}, influence {quilt.influence:.6g}",
    )


# Families of affine conversions: from a DP level to a leakage, many ways at once.
#
# Several theorems about correlated data have the form "an :math:`\varepsilon`-DP
# release leaks at most :math:`a\varepsilon + b`", with a trade-off between the factor
# and the offset. A :class:`ConversionCurve` is a list of such pairs with one source and
# one class of attackers; it knows the best pair for each target. Curves from elsewhere
# are entered through it with their source and attackers named.


@dataclass(frozen=True, slots=True)
class ConversionCurve:
    r"""Proved pairs (a, b): a DP level epsilon leaks at most a epsilon + b.

    Parameters
    ----------
    points : iterable of pair of float
        The pairs; factors at least 1, offsets at least 0.
    source : str
        Where the pairs are proved.
    attackers : str
        The attackers the pairs speak of.
    is_guarantee : bool
        Whether the pairs are proved against every attacker.
    name : str
        Short name, for tables.

    Examples
    --------
    >>> curve = ConversionCurve([(1, 3.0), (4, 0.5)], "a theorem", "everyone", True)
    >>> round(curve.leakage(0.5), 6), round(curve.scale(1.0).noise_scale, 6)
    (2.5, 8.0)
    """

    points: tuple[tuple[float, float], ...]
    source: str
    attackers: str
    is_guarantee: bool
    name: str = "curve"

    def __init__(
        self,
        points: Iterable[tuple[float, float]],
        source: str,
        attackers: str,
        is_guarantee: bool,
        name: str = "curve",
    ) -> None:
        listed = tuple(
            (check_positive(a, "factor"), check_non_negative(b, "offset"))
            for a, b in points
        )
        if not listed:
            raise ValueError("points must hold at least one pair, got none.")
        small = min(a for a, _ in listed)
        if small < 1:
            raise ValueError(
                f"factor must be at least 1 (no release leaks less than its level), "
                f"got {small}."
            )
        for field, value in zip(
            ("points", "source", "attackers", "is_guarantee", "name"),
            (listed, source, attackers, is_guarantee, name),
            strict=True,
        ):
            object.__setattr__(self, field, value)

    def leakage(self, epsilon: float) -> float:
        """Return the least leakage any pair gives at the level `epsilon`."""
        level = exact(check_level(epsilon))
        least = min(exact(a) * level + exact(b) for a, b in self.points)
        return round_up_decimal(least)

    def best_point(self, target: float) -> tuple[float, float]:
        """Return the pair that allows the largest level under `target`.

        Raises
        ------
        InfeasibleTarget
            If every offset is at least the target.
        """
        target = check_positive(target, "target")
        a, b = max(self.points, key=lambda point: (target - point[1]) / point[0])
        if b >= target:
            least = min(offset for _, offset in self.points)
            raise InfeasibleTarget(
                f"target must be above {least:.6g} for {self.name}, got {target}; use "
                "the closed Markov bound or the general bound, which reach every "
                "target.",
                least=least,
            )
        return a, b

    def scale(self, target: float, *, sensitivity: float = 1.0) -> ComparatorScale:
        """Return the Laplace scale ``sensitivity * a / (target - b)`` of the best pair.

        Raises
        ------
        InfeasibleTarget
            If every offset is at least the target.
        """
        change = check_positive(sensitivity, "sensitivity")
        a, b = self.best_point(target)
        return ComparatorScale(
            self.name,
            self.source,
            target,
            raised(change * a / (target - b)),
            self.attackers,
            self.is_guarantee,
            note=f"factor {a:.6g}, offset {b:.6g}",
        )


def quilt_curve(transition: ArrayLike, *, reach: int = 64) -> ConversionCurve:
    r"""Return the Markov quilts of a chain as conversions: its influence by width.

    .. math:: \varepsilon\text{-DP} \implies (a + b - 1)\,\varepsilon + e(a, b)

    for someone who knows no other record, with the least influence e of each width.

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic; the chain is homogeneous and starts at equilibrium.
    reach : int
        Widest window.

    Raises
    ------
    NotApplicable
        If every quilt up to `reach` has infinite influence.

    Notes
    -----
    Stated for Laplace noise by Song, Wang and Chaudhuri (2017); the argument is that
    of any DP mechanism: given the two ends, what is outside the window is independent
    of the record, and what is inside costs the level once for each record. Not a
    guarantee in the sense of Bayesian DP: someone who knows a record is not covered.

    Examples
    --------
    >>> P = [[9713 / 11008, 1295 / 11008], [1295 / 4250, 2955 / 4250]]
    >>> round(quilt_curve(P).scale(1.0).noise_scale, 3)
    14.854
    """
    P, reach = read_transition(transition), check_count(reach, "reach")
    behind, ahead = _Distances(reversed_kernel(P)), _Distances(P)
    points = []
    for width in range(1, reach + 1):
        least = float(_two_sided(behind, ahead, width).min())
        if math.isfinite(least):
            points.append((float(width), inflate(least, ROUNDING_MARGIN)))
    if not points:
        raise NotApplicable(
            f"a quilt curve needs a window of finite influence, got none up to {reach} "
            "records; use the general bound."
        )
    return ConversionCurve(points, QUILT_SOURCE, NO_KNOWLEDGE, False, "quilt")


# The Wasserstein mechanism: noise for how far the answer's law moves with a secret.
#
# If the law of the answer given x can be carried to its law given x' without moving any
# mass by more than W, then Laplace noise of scale W/B keeps the promise B for that
# pair, against the attacker for whom these are the laws. Each attacker has laws of his
# own: the mechanism protects against those whose laws are listed, and no others.

WASSERSTEIN_SOURCE = "Song, Wang and Chaudhuri (2017), Wasserstein mechanism"

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
        WASSERSTEIN_SOURCE,
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
        WASSERSTEIN_SOURCE,
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


# Transition matrices as the comparators read them: homogeneous, at equilibrium.


def read_transition(transition: ArrayLike) -> Matrix:
    """Return one square row-stochastic matrix, or raise ModelError."""
    kernels, _ = read_kernels(transition)
    if kernels.ndim != 2:
        raise ModelError(
            "a comparator needs one transition matrix for all steps, got "
            f"{len(kernels)} of them."
        )
    return kernels


def visited_law(transition: Matrix) -> Matrix:
    """Return the stationary law, or raise ModelError where it leaves a state out."""
    law = stationary_law(transition)
    if law.min() <= 0:
        state = int(np.argmin(law))
        raise ModelError(
            f"transition must visit every state in the long run, got state {state} of "
            "stationary probability 0; leave it out of the model."
        )
    return law


def reversed_kernel(transition: Matrix) -> Matrix:
    """Return the kernel of the chain at equilibrium, run backwards."""
    flow = visited_law(transition)[:, None] * transition
    return np.asarray(flow.T / flow.sum(axis=0)[:, None])


# Markov quilts and the search for the best one.

# Widest window searched; the work grows with its square.
_WIDEST = 4096

_Influence = Callable[[int], Matrix]
"""From a width w to the influence of the quilts (a, w + 1 - a), a = 1..w."""


@dataclass(frozen=True, slots=True)
class MarkovQuilt:
    """A window around a record, and how much its two ends tell of the record.

    Parameters
    ----------
    left, right : int or None
        Distance of the end on each side; None where the window runs to the end of the
        chain.
    width : int
        Records inside the window, the protected one included.
    influence : float
        Largest log-ratio of the ends' law between two values of the record.
    """

    left: int | None
    right: int | None
    width: int
    influence: float

    def scale(self, target: float) -> float:
        """Return ``width / (target - influence)``, infinite where that is no scale."""
        room = target - self.influence
        return self.width / room if room > 0 else math.inf


class _Distances:
    """Log-ratio matrices of the powers of a kernel, computed once, up to a distance."""

    def __init__(self, kernel: Matrix) -> None:
        self._kernel, self._power = kernel, np.eye(len(kernel))
        self._table = np.zeros((0, *kernel.shape))
        self._filled = 0

    def up_to(self, distance: int) -> Matrix:
        if distance > len(self._table):
            grown = np.zeros((2 * distance, *self._kernel.shape))
            grown[: self._filled] = self._table[: self._filled]
            self._table = grown
        while self._filled < distance:
            self._power = self._power @ self._kernel
            self._table[self._filled] = _log_ratios(self._power)
            self._filled += 1
        return self._table[:distance]


def _log_ratios(kernel: Matrix) -> Matrix:
    """Return, for rows x and x', the largest ln kernel[x, y] / kernel[x', y]."""
    with np.errstate(divide="ignore"):
        logs = np.log(kernel)
    possible = np.isfinite(logs)
    above = np.where(possible, logs, -math.inf)[:, None, :]
    below = np.where(possible, logs, -math.inf)[None, :, :]
    with np.errstate(invalid="ignore"):
        ratios = np.where(above == -math.inf, -math.inf, above - below)
    return np.asarray(np.maximum(ratios.max(axis=2), 0.0))


def _two_sided(behind: _Distances, ahead: _Distances, width: int) -> Matrix:
    """Return the influence of the quilts (a, width + 1 - a), a = 1, ..., width."""
    back, forth = behind.up_to(width), ahead.up_to(width)[::-1]
    return np.asarray((back + forth).max(axis=(1, 2)))


def _narrowest(
    influence: _Influence, target: float, *, size: int | None
) -> MarkovQuilt:
    best: MarkovQuilt | None = None
    if size is not None:
        best = MarkovQuilt(None, None, size, 0.0)
    width = 1
    while best is None or width / target < best.scale(target):
        if width > _WIDEST:
            raise NotApplicable(
                f"the Markov quilt mechanism needs a window of at most {_WIDEST} "
                f"records with influence below the target, got none at {target}; use "
                "the general bound."
            )
        values = influence(width)
        a = int(np.argmin(values))
        found = MarkovQuilt(a + 1, width - a, width, float(values[a]))
        if best is None or found.scale(target) < best.scale(target):
            best = found if found.influence < target else best
        width += 1
    return best


def _worst_target(behind: Matrix, ahead: Matrix, target: float) -> MarkovQuilt:
    """Return the best quilt of the record whose best quilt needs the most noise."""
    size = len(ahead)
    reach = np.arange(size, dtype=float)  # distance minus one
    both = _scales(_joint(behind, ahead), np.add.outer(reach, reach) + 1, target)
    nested = np.minimum.accumulate(np.minimum.accumulate(both, axis=0), axis=1)
    back, forth = behind.max(axis=(1, 2)), ahead.max(axis=(1, 2))
    needed = np.full(size, size / target)
    for i in range(size):
        left, right = i, size - 1 - i
        one_sided = (
            _scales(back[:left], right + 1 + reach[:left], target),
            _scales(forth[:right], left + 1 + reach[:right], target),
        )
        options = [side.min() for side in one_sided if side.size]
        if left and right:
            options.append(nested[left - 1, right - 1])
        needed[i] = min([needed[i], *options])
    worst = int(np.argmax(needed))
    return _best_of(worst, behind, ahead, target)


def _best_of(i: int, behind: Matrix, ahead: Matrix, target: float) -> MarkovQuilt:
    """Return the best of all quilts of record i."""
    size = len(ahead)
    right = size - 1 - i
    back, forth = behind.max(axis=(1, 2)), ahead.max(axis=(1, 2))
    quilts = [MarkovQuilt(None, None, size, 0.0)]
    quilts += [
        MarkovQuilt(a + 1, None, right + 1 + a, float(back[a])) for a in range(i)
    ]
    quilts += [
        MarkovQuilt(None, b + 1, i + 1 + b, float(forth[b])) for b in range(right)
    ]
    joint = _joint(behind[:i], ahead[:right])
    quilts += [
        MarkovQuilt(a + 1, b + 1, a + b + 1, float(joint[a, b]))
        for a, b in np.ndindex(joint.shape)
    ]
    return min(quilts, key=lambda quilt: quilt.scale(target))


def _joint(behind: Matrix, ahead: Matrix) -> Matrix:
    """Return the influence of each two-sided quilt: one pair (x, x') on both sides."""
    largest = np.zeros((len(behind), len(ahead)))
    for x, other in np.ndindex(behind.shape[1:]):
        np.maximum(
            largest, np.add.outer(behind[:, x, other], ahead[:, x, other]), out=largest
        )
    return largest


def _scales(influence: Matrix, widths: Matrix, target: float) -> Matrix:
    room = target - influence
    safe = np.where(room > 0, room, 1.0)
    return np.asarray(np.where(room > 0, widths / safe, math.inf))

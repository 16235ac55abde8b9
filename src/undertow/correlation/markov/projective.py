r"""The closed form for Markov chains: every target, every start, every length.

With :math:`\Delta` the projective diameter of the transition matrices, every
epsilon-DP mechanism leaks at most B with

.. math:: \sinh(B/4) = e^{\Delta/2} \sinh(\varepsilon/4).

The theorem and its proof are on the theory page *Markov chains: the projective
bound*. How different the rows of a matrix are, as gamma, omega and the diameter, and
what the bound says of windows of a chain and of mixing, stands here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import (
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from undertow.correlation.group import general_leakage
from undertow.correlation.level import check_level, last_level
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.exact import round_up
from undertow.numeric.rounding import UNIT, inflate, nudge_up

MARGIN = 1e-12
"""Relative margin by which closed forms are raised; it covers their rounding.

An error h in the diameter moves the leakage by at most a share h/2 of it, an error in
the exponential by the same share; both stay below 5e-13 wherever they are used.
"""

_THEOREM = "projective bound for Markov chains"
_LARGE = 700.0  # sinh overflows past this
_SETTLED = 30.0  # asinh(z) is log(2 z) to the last bit for z above exp(30)
_SMALLEST = 1e-290


def projective_leakage(
    epsilon: float, diameter: float, *, size: int | None = None
) -> Leakage:
    r"""Bound the leakage about a Markov chain by its projective diameter.

    .. math:: B = 4 \operatorname{asinh}\left(e^{\Delta/2} \sinh(\varepsilon/4)\right)

    Parameters
    ----------
    epsilon : float
        DP level of the mechanism; non-negative and finite.
    diameter : float
        Largest projective diameter of a transition matrix; non-negative, finite.
    size : int, optional
        Number of records; caps the bound at ``size * epsilon``.

    Returns
    -------
    Leakage
        At most ``epsilon + 2 * diameter``; equal to `epsilon` at diameter 0.

    Raises
    ------
    NotApplicable
        If the diameter is infinite.

    Notes
    -----
    Proved on the theory page. Any initial law, any mechanism, time-varying chains;
    independent of the length. For small epsilon the factor is ``exp(diameter / 2)``.
    Raised by the relative margin `MARGIN`.

    Examples
    --------
    >>> round(projective_leakage(0.1, 2.8351075005).value, 8)
    0.41201528
    """
    given = ClosedForm(check_non_negative(diameter, "diameter"), size)
    return ProjectiveTheorem().at(given, check_level(epsilon))


def projective_budget(
    target: float, diameter: float, *, size: int | None = None
) -> float:
    r"""Return the largest DP level whose projective bound is at most `target`.

    .. math:: \varepsilon = 4 \operatorname{asinh}\left(e^{-\Delta/2} \sinh(B/4)\right)

    Every positive target has one. The level is found on the forward bound itself,
    rounding included, so that the recomputed leakage is at most the target.

    Examples
    --------
    >>> round(projective_budget(1.0, 2.8351075005), 8)
    0.24468533
    """
    given = ClosedForm(check_non_negative(diameter, "diameter"), size)
    return ProjectiveTheorem().within(given, check_positive(target, "target"))


def ratio_diameter(ratio: float) -> float:
    r"""Return :math:`2 \log \gamma`, which no projective diameter passes.

    Parameters
    ----------
    ratio : float
        Largest ratio gamma of two transition probabilities, or omega of two with the
        same next state; at least 1 and finite.

    Examples
    --------
    >>> round(projective_leakage(1.0, ratio_diameter(2.0)).value, 6)
    1.94352
    """
    ratio = check_positive(ratio, "ratio")
    if ratio < 1:
        raise ValueError(f"ratio must be at least 1, got {ratio}.")
    return nudge_up(2 * math.log(ratio), 4) if ratio > 1 else 0.0


def finite_leakage(epsilon: float, diameter: float, *, size: int) -> Leakage:
    r"""Bound the leakage about a chain of `size` records by the recursion itself.

    .. math::
        B_n = \varepsilon + \max_i (d_i + d_{n-1-i}), \quad d_0 = 0, \quad
        \tanh\frac{d_{j+1}}{4} = \tanh\frac{\Delta}{4} \tanh\frac{d_j + \varepsilon}{4}

    Never above :func:`projective_leakage`, whose fixed point it approaches from below.

    Examples
    --------
    >>> P_diameter = 2.8351075005
    >>> [round(finite_leakage(1.0, P_diameter, size=n).value, 4) for n in (1, 2, 9)]
    [1.0, 1.602, 3.4517]
    """
    epsilon, size = check_level(epsilon), check_count(size, "size")
    diameter = check_non_negative(diameter, "diameter")
    require_finite(diameter, "window recursion")
    sides = np.empty(size)
    reached, settled = 0.0, size
    for j in range(size):
        sides[j] = reached
        following = influence(epsilon + reached, diameter)
        if following <= reached and j:
            sides[j:], settled = reached, j
            break
        reached = following
    value = inflate(epsilon + float((sides + sides[::-1]).max()), _margin(settled))
    best = min(value, projective_leakage(epsilon, diameter, size=size).value)
    return Leakage(
        best,
        f"{_THEOREM}, finite length",
        checked=(f"projective diameter {diameter:.6g} is finite",),
        witness=_no_knowledge(size),
        method="projective",
    )


def influence(oscillation: float, diameter: float) -> float:
    r"""Return how far one kernel lets a neighbour's influence through.

    .. math:: d = 4 \operatorname{artanh}\left(\tanh(a/4) \tanh(\Delta/4)\right)

    The largest change of ``log E[f(Y) | X = x]`` in x, over functions whose logarithm
    oscillates by at most a and kernels of projective diameter at most Delta.

    Examples
    --------
    >>> influence(1.0, 0.0), influence(0.7, math.inf)
    (0.0, 0.7)
    """
    product = math.tanh(oscillation / 4) * math.tanh(diameter / 4)
    if product < 0.5:
        return 4 * math.atanh(product)
    if math.isinf(diameter):
        return oscillation
    # The same in exponentials, where artanh would lose its digits near one.
    total = (oscillation + diameter) / 2
    apart = abs(oscillation - diameter) / 2
    gain = math.log1p(math.exp(-total)) - math.log1p(math.exp(-apart))
    return min(oscillation, diameter) + 2 * gain


def closed_value(epsilon: float, diameter: float) -> float:
    """Return the closed form, raised by `MARGIN` and capped at its limit."""
    if epsilon == 0 or diameter == 0:
        return epsilon
    cap = nudge_up(epsilon + 2 * diameter)
    if epsilon / 4 > _LARGE:
        return cap
    small = max(epsilon, _SMALLEST)  # monotone: safe for what is below it
    exponent = diameter / 2 + _log_sinh(small / 4)
    if exponent > _SETTLED:
        return min(inflate(4 * (exponent + math.log(2)), MARGIN), cap)
    return min(inflate(4 * math.asinh(math.exp(exponent)), MARGIN), cap)


def _log_sinh(value: float) -> float:
    return math.log(value if value < 1e-9 else math.sinh(value))


def require_finite(diameter: float, name: str) -> None:
    """Refuse an infinite diameter, naming what works instead."""
    if diameter == math.inf:
        raise NotApplicable(
            f"the {name} bound needs transitions of positive probability, got a zero "
            "and so an infinite projective diameter; use method 'steps', or 'general' "
            "with a length."
        )


def require_dp(query: Query, name: str) -> None:
    """Refuse an unclipped study, whose release is not DP for every pair of states."""
    if isinstance(query, LinearQuery) and query.gap is not None:
        raise NotApplicable(
            f"method {name!r} needs a DP release, got an unclipped linear query for "
            f"secrets at most {query.gap:g} apart; leave gap out."
        )


def _no_knowledge(size: int | None) -> Any:
    middle = 0 if size is None else (size - 1) // 2
    return adversary_witness(
        Adversary(middle), note="a record inside a long stretch of unknown ones"
    )


def _margin(steps: int) -> float:
    return MARGIN + 1e-15 * steps


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """What the closed form needs: a finite diameter, and how many records there are.

    `ratio` is the column ratio that the diameter comes from, where it does.
    """

    diameter: float
    size: int | None = None
    ratio: float | None = None

    def __post_init__(self) -> None:
        require_finite(self.diameter, "projective")
        if self.size is not None:
            check_count(self.size, "size")

    def value(self, epsilon: float) -> float:
        """Return the closed form, capped by the general bound."""
        value = closed_value(epsilon, self.diameter)
        if self.size is None:
            return value
        return min(value, general_leakage(epsilon, self.size).value)


class ProjectiveTheorem(FormulaTheorem):
    """The closed form from the projective diameter of the model."""

    name = "projective"
    source = _THEOREM
    published = False

    def read(self, model: Any, query: Query) -> ClosedForm:
        """Return the diameter and the number of records."""
        require_dp(query, self.name)
        return ClosedForm(model.diameter, model.size)

    def at(self, given: ClosedForm, epsilon: float) -> Leakage:
        """Return the closed form for any mechanism, any start and any length."""
        return self.stated(
            given.value(epsilon),
            checked=(f"projective diameter {given.diameter:.6g} is finite",),
            witness=_no_knowledge(given.size),
        )

    def within(self, given: ClosedForm, target: float) -> float:
        """Return its inverse."""

        def holds(epsilon: float) -> bool:
            return given.value(epsilon) <= target

        return last_level(holds, target)


class OmegaTheorem(ProjectiveTheorem):
    r"""The closed form from omega: :math:`\sinh(B/4) = \omega \sinh(\varepsilon/4)`.

    Weaker than "projective", as ``diameter <= 2 log(omega)``; at most
    ``epsilon + 4 log(omega)``. It needs only the largest ratio within a column.
    """

    name = "omega"
    source = "column-ratio bound for Markov chains"

    def read(self, model: Any, query: Query) -> ClosedForm:
        """Return the diameter that omega allows, and the number of records."""
        require_dp(query, self.name)
        ratio = float(model.omega)
        require_finite(ratio, "omega")
        return ClosedForm(ratio_diameter(ratio), model.size, ratio)

    def at(self, given: ClosedForm, epsilon: float) -> Leakage:
        """Return the bound for any mechanism, any start and any length."""
        words = (f"column ratio {given.ratio:.6g} is finite",)
        return replace(super().at(given, epsilon), checked=words)


# Where a chain settles, how fast, and what a window of it leaks.
#
# The thesis (Section 3.3) asks that the window of an event-level guarantee be longer
# than the mixing time. :func:`window_leakage` gives the leakage as a function of the
# window's length instead, which is what that advice is about.


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
    :func:`~undertow.correlation.markov.projective.finite_leakage`, proved on the theory
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


# How different the rows of a transition matrix are: gamma, omega and the diameter.
#
# ``P[now, next]`` is row-stochastic throughout. Three numbers, each at most twice the
# logarithm of the one before or equal to it:
#
# * :func:`transition_ratio`, gamma: largest over smallest entry;
# * :func:`column_ratio`, omega: the same within one column, at most gamma;
# * :func:`projective_diameter`, Delta: largest logarithm of a cross ratio, at most
#   ``2 log(omega)``. It does not change when rows or columns are scaled or the matrix
#   is
#   transposed, which is why known records, the start and the direction of time do not
#   matter to bounds made of it.
#
# All three are rounded up.

# Rows may miss one by this much; printed matrices miss it by more.
_ROW_TOLERANCE = 1e-9
# Rows times columns of one block of row pairs: about 32 MB of floats.
_BLOCK = 4_000_000


def transition_ratio(transition: ArrayLike) -> float:
    r"""Return gamma, the largest over the smallest transition probability.

    .. math:: \gamma = \max_{x,y} P_{xy} / \min_{x,y} P_{xy}

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic.

    Returns
    -------
    float
        At least 1, rounded up; infinite if an entry is zero.

    Notes
    -----
    Lemma 6.19 of Guerra-Balboa (2026). One exactly when every entry is ``1/s``:
    independent records that are not uniform have a gamma above one.

    Examples
    --------
    >>> round(transition_ratio([[0.818, 0.182], [0.371, 0.629]]), 6)
    4.494505
    """
    P = _read_kernel(transition)
    return _quotient_up(float(P.max()), float(P.min()))


def column_ratio(transition: ArrayLike) -> float:
    r"""Return omega, the largest ratio of two entries with the same next state.

    .. math:: \omega = \max_{x,x',y} P_{xy} / P_{x'y}

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic.

    Returns
    -------
    float
        At least 1, at most gamma, rounded up; infinite if an entry is zero and
        another one in its column is not. One exactly for independent records.

    Examples
    --------
    >>> column_ratio([[0.9, 0.1], [0.8, 0.2]])
    2.0
    """
    P = _read_kernel(transition)
    columns = zip(P.max(axis=0).tolist(), P.min(axis=0).tolist(), strict=True)
    return max(_quotient_up(high, low) for high, low in columns if high > 0)


def projective_diameter(
    transition: ArrayLike | None = None,
    *,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> float:
    r"""Return Delta, the largest logarithm of a cross ratio of a matrix.

    .. math::
        \Delta = \log \max_{x,x',y,y'} \frac{P_{xy}\,P_{x'y'}}{P_{xy'}\,P_{x'y}}

    Parameters
    ----------
    transition : array_like of shape (s, s), optional
        Row-stochastic. Left out if an interval matrix is given.
    lower, upper : array_like of shape (s, s), optional
        Entrywise ends of an interval matrix; the result holds for every matrix
        between them.

    Returns
    -------
    float
        At least 0, rounded up; infinite if an entry is zero and the zeros do not
        fill whole columns. Zero for independent records.

    Notes
    -----
    Birkhoff's projective diameter. Always ``Delta <= 2 log(omega) <= 2 log(gamma)``.
    Cost s^3, in blocks of row pairs.

    Examples
    --------
    >>> round(projective_diameter([[0.882, 0.118], [0.305, 0.695]]), 10)
    2.8351075005
    >>> projective_diameter([[0.3, 0.7], [0.3, 0.7]])
    0.0
    """
    if (lower is None) != (upper is None) or (transition is None) == (lower is None):
        raise ValueError(
            "projective_diameter must be given transition, or both lower and upper."
        )
    if transition is not None:
        P = _read_kernel(transition)
        P = P[:, P.max(axis=0) > 0]  # a state nobody enters plays no part
        if (P == 0).any():
            return math.inf
        return 0.0 if (P == P[0]).all() else log_diameter(np.log(P))
    low, high = _read_interval(lower, upper)
    if (low == 0).any():
        return math.inf
    return log_diameter(np.log(low), np.log(high))


def log_diameter(
    low: Array, high: Array | None = None, *, entry_error: float = 0.0
) -> float:
    """Return the diameter of a matrix given by the logarithms of its entries.

    Parameters
    ----------
    low : ndarray of shape (r, s)
        Logarithms of the entries, or of their lower ends.
    high : ndarray of shape (r, s), optional
        Logarithms of the upper ends, for an interval matrix.
    entry_error : float
        Error of each logarithm beyond its rounding; added four times.
    """
    top = low if high is None else high
    rows, columns = low.shape
    block = max(1, _BLOCK // (rows * columns))
    widest = 0.0
    for start in range(0, rows, block):
        # Of row x over row x': largest at y, smallest at y' other than y.
        most = top[start : start + block, None, :] - low[None]
        least = most if high is None else low[start : start + block, None, :] - top
        widest = max(widest, _widest_gap(most, least, start, high is None))
    largest = float(max(np.abs(low).max(), np.abs(top).max()))
    return nudge_up(widest + 4 * (entry_error + 2 * UNIT * largest), 4)


def read_kernels(
    transition: ArrayLike | Sequence[ArrayLike], *, renormalise: bool = False
) -> tuple[Array, str | None]:
    """Return one (s, s) or several (t, s, s) checked kernels, and what was corrected.

    Raises
    ------
    ModelError
        As :class:`~undertow.correlation.markov.chain.MarkovChain` does.
    """
    kernels = read_numbers(transition, "transition")
    if kernels.ndim not in (2, 3) or kernels.shape[-1] != kernels.shape[-2]:
        raise ModelError(
            "transition must be a square matrix, or a sequence of square matrices of "
            f"one size, got shape {kernels.shape}."
        )
    if kernels.shape[-1] < 2 or not kernels.size:
        raise ModelError(
            f"transition must have at least 2 states, got {kernels.shape[-1]}; a "
            "record with one state holds no secret."
        )
    _require_laws(kernels, "transition")
    sums = kernels.sum(axis=-1)
    off = np.abs(sums - 1)
    worst = np.unravel_index(int(off.argmax()), off.shape)
    where = f"row {worst[-1]}" + (f" of step {worst[0]}" if kernels.ndim == 3 else "")
    note = f"rows of the transition matrix were renormalised ({where} summed to "
    if not renormalise:
        _require_sums(off[worst], where, float(sums[worst]))
        return _frozen(kernels), None
    if (sums <= 0).any():
        raise ModelError(f"transition must have a positive sum in {where}, got 0.")
    return _frozen(kernels / sums[..., None]), f"{note}{float(sums[worst]):.10g})"


def read_length(kernels: Array, length: int | None) -> int | None:
    """Return the number of records, which one kernel for each step determines."""
    given = None if length is None else check_count(length, "length")
    if kernels.ndim == 2:
        return given
    needed = len(kernels) + 1
    if given is not None and given != needed:
        raise ModelError(
            f"length must be {needed}, one more than the {needed - 1} transition "
            f"matrices, got {given}."
        )
    return needed


def _require_sums(off: float, where: str, total: float) -> None:
    if off > _ROW_TOLERANCE:
        raise ModelError(
            f"transition must have rows that sum to 1 within {_ROW_TOLERANCE:g}, got "
            f"{total:.12g} in {where}; renormalise it to divide rows by their "
            "sums."
        )


def _require_laws(kernels: Array, name: str) -> None:
    wrong = ~(kernels >= 0) | np.isinf(kernels)  # catches nan
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ModelError(
            f"{name} must have finite, non-negative entries, got "
            f"{float(kernels[place])} at {place}."
        )


def read_numbers(value: ArrayLike | Sequence[ArrayLike], name: str) -> Array:
    """Return a fresh array of floats, or say that `name` is none."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(
            f"{name} must be numbers in rows of one length, got {type(value).__name__}."
        ) from None


def _read_kernel(transition: ArrayLike) -> Array:
    kernels, _ = read_kernels(transition)
    if kernels.ndim != 2:
        raise ModelError(
            f"transition must be one square matrix, got shape {kernels.shape}."
        )
    return kernels


def _read_interval(
    lower: ArrayLike | None, upper: ArrayLike | None
) -> tuple[Array, Array]:
    assert lower is not None
    assert upper is not None
    low, high = read_numbers(lower, "lower"), read_numbers(upper, "upper")
    if low.shape != high.shape or low.ndim != 2 or low.shape[0] != low.shape[1]:
        raise ModelError(
            "lower and upper must be square matrices of one size, got shapes "
            f"{low.shape} and {high.shape}."
        )
    _require_laws(low, "lower")
    _require_laws(high, "upper")
    # Row sums of floats within the tolerance count as one.
    fits = (low.sum(axis=1) <= 1 + _ROW_TOLERANCE) & (
        high.sum(axis=1) >= 1 - _ROW_TOLERANCE
    )
    if (low > high).any() or not fits.all():
        raise ModelError(
            "lower and upper must enclose a transition matrix: entrywise in order, "
            "rows of lower summing to at most 1 and of upper to at least 1."
        )
    return low, high


def _widest_gap(most: Array, least: Array, start: int, is_exact: bool) -> float:
    """Return max over row pairs, y and y' of ``most[y] - least[y']``, y' not y."""
    if is_exact:
        return float((most.max(axis=2) - most.min(axis=2)).max())
    block, rows, _ = most.shape
    # The same row has the same entries, whatever they are: its cross ratio is one.
    same = (np.arange(start, start + block)[:, None] == np.arange(rows))[:, :, None]
    best, second = _two_largest(np.where(same, -np.inf, most))
    lowest = np.sort(least, axis=2)[:, :, :2]
    arg_most, arg_least = most.argmax(axis=2), least.argmin(axis=2)
    apart = np.where(
        arg_most != arg_least,
        best - lowest[:, :, 0],
        np.maximum(second - lowest[:, :, 0], best - lowest[:, :, 1]),
    )
    return float(max(apart.max(), 0.0))


def _two_largest(values: Array) -> tuple[Array, Array]:
    ordered = np.sort(values, axis=2)
    return ordered[:, :, -1], ordered[:, :, -2]


def _quotient_up(high: float, low: float) -> float:
    return math.inf if low == 0 else round_up(Fraction(high) / Fraction(low))


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array

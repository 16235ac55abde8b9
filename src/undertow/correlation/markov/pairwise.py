"""Several states: bounds close to the exact leakage, from programs of pairs.

The pairwise recursion carries one number for every pair of states, the box recursion
one for all of them, up to 1000 states. The theorems and their proofs are on the
theory page *Markov chains on several states*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.correlation.group import general_leakage
from undertow.correlation.level import crossing, smooth_level
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import (
    closed_value,
    influence,
    projective_budget,
    require_dp,
)
from undertow.correlation.query import Query
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem
from undertow.errors import NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.rounding import inflate
from undertow.results import Witness

_CHECKED = ("every transition has a positive probability",)
_PAIRWISE_MARGIN = 1e-12
# Most unknown records on one side that are followed for every known end, and most for
# which targets are told apart by their distance to the ends of the chain.
_LONGEST_FEW, _LONGEST_MANY = 256, 12
_SHORT_FEW, _SHORT_MANY = 32, 4
_FEW = 16
# Most states tried by method="best", and most records of a time-varying chain.
_CHEAP_PAIRS = 12
_LISTED = 4096
# Above this the exponentials of the pair programs would overflow.
_STEEP = 600.0


def pairwise_leakage(
    transition: ArrayLike,
    epsilon: float,
    *,
    initial: ArrayLike | None = None,
    length: int | None = None,
) -> Leakage:
    r"""Bound the leakage of any `epsilon`-DP mechanism by programs of pairs.

    .. math:: \mathrm{BDPL} \le \varepsilon + \max_{x, x'}
        \left(V_\text{left}[x, x'] + V_\text{right}[x, x']\right)

    Parameters
    ----------
    transition : array_like of shape (s, s), or sequence of such
        Row-stochastic and positive.
    epsilon : float
        DP level; non-negative and finite.
    initial : array_like of shape (s,), optional
        Law of the first record; stationary by default. A time-varying chain is
        bounded for every initial law.
    length : int, optional
        Number of records; left out, the bound holds for all lengths.

    Returns
    -------
    Leakage
        Never above the projective bound; on two states within rounding of the exact
        value.

    Raises
    ------
    NotApplicable
        If a transition is impossible, or a time-varying chain longer than 4096.

    Notes
    -----
    Proved on the theory page. On random chains of three and four states and up to three
    records it was at most 4 % above the exact value, mostly equal to it. Time O(s^5)
    for each window length followed: a tenth of a second for 3 states, a quarter of a
    minute for 50. A time-varying chain is bounded by cross ratios instead, in O(n s^4).

    Examples
    --------
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
    >>> round(pairwise_leakage(P, 1.0).value, 3)
    3.132
    >>> from undertow.correlation.markov.projective import projective_leakage
    >>> from undertow.correlation.markov.projective import projective_diameter
    >>> round(projective_leakage(1.0, projective_diameter(P)).value, 3)
    4.814
    """
    chain = MarkovChain(transition, initial, length)
    return PairwiseTheorem().bound(chain, epsilon)


class PairwiseTheorem(FormulaTheorem):
    """The pairwise recursion, for chains of any number of states."""

    name = "pairwise"
    source = "pairwise recursion for Markov chains"
    published = False
    checked = _CHECKED

    def read(self, model: Any, query: Query) -> MarkovChain:
        """Return the chain, if every transition is possible."""
        require_dp(query, self.name)
        chain: MarkovChain = model
        _require_positive(chain)
        return chain

    def at(self, given: MarkovChain, epsilon: float) -> Leakage:
        """Return the bound for any mechanism."""
        witness = _inside(given)
        return self.stated(_pairwise_value(given, epsilon), witness=witness)

    def within(self, given: MarkovChain, target: float) -> float:
        """Return a level whose bound is within the target, to a share 1e-9."""
        low = projective_budget(target, given.diameter, size=given.size)
        return smooth_level(
            lambda level: _pairwise_value(given, level), target, low=low
        )

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason for more than 12 states, and for two, which are exact."""
        if model.states == 2:
            return "the pairwise recursion adds nothing to the exact two-state method"
        if model.states > _CHEAP_PAIRS:
            return (
                f"the pairwise recursion takes long for more than {_CHEAP_PAIRS} "
                f"states, got {model.states}"
            )
        return None


def _inside(chain: MarkovChain) -> Witness:
    return adversary_witness(
        Adversary(0 if chain.size is None else chain.size // 2),
        note="a record inside a stretch of unknown ones",
    )


def _pairwise_value(chain: MarkovChain, epsilon: float) -> float:
    """Return the bound, raised for rounding and capped by the closed form."""
    cap = closed_value(epsilon, chain.diameter)
    if chain.size is not None:
        cap = min(cap, general_leakage(epsilon, chain.size).value)
    if epsilon == 0 or chain.size == 1 or cap > _STEEP:
        return cap
    if chain.is_homogeneous:
        found = _homogeneous(chain, epsilon)
    else:
        found = _pairwise_time_varying(chain.steps(), epsilon)
    return min(cap, inflate(found, _PAIRWISE_MARGIN))


def _homogeneous(chain: MarkovChain, epsilon: float) -> float:
    P, size = chain.transition, chain.size
    starts = (P, np.ones(len(P))), (np.ascontiguousarray(P.T), chain.initial_law())
    few = len(P) <= _FEW
    if size is not None and size - 1 <= (_SHORT_FEW if few else _SHORT_MANY):
        right, left = (
            pair_windows(kernel, start, epsilon, longest=size - 1, exactly=True)
            for kernel, start in starts
        )
        return epsilon + _by_target(left, right)
    longest = _LONGEST_FEW if few else _LONGEST_MANY
    right, left = (
        pair_windows(kernel, start, epsilon, longest=longest, exactly=False)
        for kernel, start in starts
    )
    if left.every is None or right.every is None:
        return math.inf  # no common bound was found for long windows: the cap holds
    return epsilon + float((left.every + right.every).max())


def _by_target(left: PairWindows, right: PairWindows) -> float:
    """Combine the sides target by target: record i has i records to its left."""
    before, after = _by_room(left), _by_room(right)
    return float((before + after[::-1]).max())


def _by_room(side: PairWindows) -> Array:
    reached = np.maximum.accumulate(side.known, axis=0)
    return np.concatenate((side.edge[:1], np.maximum(reached[:-1], side.edge[1:])))


def _pairwise_time_varying(kernels: Array, epsilon: float) -> float:
    size = len(kernels) + 1
    if size > _LISTED:
        raise NotApplicable(
            f"the pairwise recursion on a time-varying chain needs at most {_LISTED} "
            f"records, got {size}; use method 'projective'."
        )
    right = _swept(kernels[::-1], epsilon)[::-1]
    left = _swept(kernels.transpose(0, 2, 1), epsilon)
    return epsilon + float((left + right).max())


def _swept(kernels: Array, epsilon: float) -> Array:
    apart = ~np.eye(kernels.shape[-1], dtype=bool)
    value = np.zeros(kernels.shape[1:])
    rows = [value]
    for kernel in kernels:
        value = cross_ratio_step(kernel, (value + epsilon) * apart)
        rows.append(value)
    return np.stack(rows)


def _require_positive(chain: MarkovChain) -> None:
    if not chain.is_positive:
        raise NotApplicable(
            "the pairwise recursion needs transitions of positive probability, got a "
            "zero; use method 'steps', or 'general' with a length."
        )


# What the unknown records on one side of a target add, pair of states by pair.
#
# For a window of unknown records, ``V[x, x']`` bounds the change of the log of any
# integrated-out mechanism between the target states x and x'. One more record turns V
# into the pair programs of :mod:`undertow.correlation.markov.pairwise` with costs
# ``epsilon + V``. Short windows are followed one by one, for every state of the known
# record that ends them; long ones see nearly the same weights however they are ended
# and are covered together by a matrix that one step does not raise.

# States up to which many sweeps and a small slack are affordable.

# Long windows are taken together once the logs of their weights oscillate, against
# common ones, by at most this share of epsilon.
_WIDTH_FEW, _WIDTH_MANY = 1e-6, 1e-2
# Fixed points are approached to this share of epsilon, then raised and verified.
_CLOSE_FEW, _CLOSE_MANY = 1e-10, 1e-6
_FIXED_STEPS, _TRIALS = 400, 16
_ROUNDING = 4e-16


@dataclass(frozen=True)
class PairWindows:
    """Bounds for the windows of one side.

    Parameters
    ----------
    known : ndarray of shape (L + 1, s, s)
        For windows of j unknown records ended by a known record.
    edge : ndarray of shape (L + 1, s, s)
        For the window that reaches the end of the chain.
    rest : ndarray of shape (s, s) or None
        For all longer windows; None if none was found or asked for.
    """

    known: Array
    edge: Array
    rest: Array | None

    @property
    def longest(self) -> int:
        """Most unknown records in a window that was followed."""
        return int(self.known.shape[0]) - 1

    @property
    def every(self) -> Array | None:
        """For all windows of this side."""
        if self.rest is None:
            return None
        listed = np.maximum(self.known.max(axis=0), self.edge.max(axis=0))
        return np.asarray(np.maximum(listed, self.rest))


def pair_windows(
    kernel: Array, start: Array, epsilon: float, *, longest: int, exactly: bool
) -> PairWindows:
    """Return bounds for the windows of one side of a homogeneous chain.

    Parameters
    ----------
    kernel : ndarray of shape (s, s)
        The transition matrix for the right side, its transpose for the left one;
        positive.
    start : ndarray of shape (s,)
        Weights at the end of the chain: ones on the right, the initial law on the left.
    epsilon : float
        DP level; positive.
    longest : int
        Most unknown records followed.
    exactly : bool
        Follow windows up to `longest`, and do not bound longer ones.

    Notes
    -----
    Time O(s^5) for each length followed, O(s^4) for each step of the longer ones.
    """
    states = len(kernel)
    few = states <= _FEW
    stages, allowed = (FINE, _WIDTH_FEW) if few else (COARSE, _WIDTH_MANY)
    weights = _normal(np.concatenate((kernel.T, np.asarray(start)[None])))
    value = np.zeros((states + 1, states, states))
    known, edge = [value[:-1].max(axis=0)], [value[-1]]
    for length in range(1, longest + 1):
        if not exactly and _centre(weights)[1] <= allowed * epsilon:
            break
        value = _step(kernel, weights, value + epsilon, stages, length)
        weights = _normal(weights @ kernel.T)
        known.append(value[:-1].max(axis=0))
        edge.append(value[-1])
    centre, width = _centre(weights)
    rest = None
    if not exactly and width < math.inf:
        rest = _longer(kernel, centre, width, value.max(axis=0), epsilon)
    return PairWindows(np.stack(known), np.stack(edge), rest)


def pair_diameters(kernel: Array) -> Array:
    r"""Return the log cross ratio :math:`\Delta_{xx'}` of every two rows.

    Time O(s^3), row by row.

    Examples
    --------
    >>> pair_diameters(np.array([[0.9, 0.1], [0.2, 0.8]])).round(6).tolist()
    [[0.0, 3.583519], [3.583519, 0.0]]
    """
    logs = np.log(kernel)
    most = np.stack([(row - logs).max(axis=1) for row in logs])
    return np.asarray(most + most.T)


def cross_ratio_step(kernel: Array, cost: Array) -> Array:
    r"""Bound one step for *every* known record that may end the window.

    .. math:: V[x, x'] = \max_{y, y'} 4 \operatorname{artanh}\left(
        \tanh\frac{A[y, y']}{4} \tanh\frac{C_{xx'}[y, y']}{4}\right), \quad
        C_{xx'}[y, y'] = \ln\frac{P_{xy} P_{x'y'}}{P_{xy'} P_{x'y}}

    the largest value over all positive weights of the next state. Time O(s^4).
    """
    logs = np.log(kernel)
    value = np.empty_like(kernel)
    for x, row in enumerate(logs):
        ratio = row - logs  # log P(x, y) / P(x', y)
        cross = np.maximum(ratio[:, :, None] - ratio[:, None, :], 0.0)
        value[x] = influences(cost, cross).max(axis=(1, 2))
    np.fill_diagonal(value, 0.0)
    return _closed(value)


def influences(oscillation: ArrayLike, diameter: ArrayLike) -> Array:
    r"""Return :math:`4 \operatorname{artanh}(\tanh(a/4) \tanh(\Delta/4))`, elementwise.

    Raised by a share 1e-12.

    Examples
    --------
    >>> influences([1.0, 400.0], [2.0, 500.0]).round(6).tolist()
    [0.454673, 400.0]
    """
    a, diameter = np.asarray(oscillation, float), np.asarray(diameter, float)
    product = np.tanh(a / 4) * np.tanh(diameter / 4)
    near = 4 * np.arctanh(np.minimum(product, 0.5))
    total, apart = (a + diameter) / 2, np.abs(a - diameter) / 2
    gain = np.log1p(np.exp(-total)) - np.log1p(np.exp(-apart))
    far = np.minimum(a, diameter) + 2 * gain
    return np.asarray(np.where(product < 0.5, near, far) * (1 + 1e-12))


def _step(
    kernel: Array,
    weights: Array,
    costs: Array,
    stages: Sequence[tuple[float, int]],
    length: int,
) -> Array:
    """Take one more record into the window of every lane."""
    bridge = kernel * weights[:, None, :]
    bridge = bridge / bridge.sum(axis=2, keepdims=True)
    apart = ~np.eye(len(kernel), dtype=bool)
    first, second = np.nonzero(apart)
    grown = np.zeros((len(weights), *kernel.shape))
    grown[:, first, second] = transport_bound(
        bridge[:, first],
        bridge[:, second],
        costs * apart,
        stages=stages,
        rounding=_ROUNDING * len(kernel) * length,
    )
    return _closed(grown)


def _longer(
    kernel: Array, centre: Array, width: float, value: Array, epsilon: float
) -> Array | None:
    """Return a matrix above `value` that no further step raises, or None.

    Weights within a factor ``exp(width)`` of the central ones act as if functions
    oscillated by `width` more, and tilt the two laws that are compared.
    """
    few = len(kernel) <= _FEW
    stages, share = (FINE, _CLOSE_FEW) if few else (STEADY, _CLOSE_MANY)
    apart = ~np.eye(len(kernel), dtype=bool)
    flat = np.full((1, *kernel.shape), width)
    tilt = _step(kernel, centre[None], flat, stages, 1)[0].T

    def after(bound: Array) -> Array:
        costs = bound[None] + (epsilon + width)
        return np.asarray(_step(kernel, centre[None], costs, stages, 1)[0] + tilt)

    bound = value
    for _ in range(_FIXED_STEPS):
        raised = np.maximum(value, after(bound))
        settled = float(np.abs(raised - bound).max()) <= share * epsilon
        bound = raised
        if settled:
            break
    for trial in range(_TRIALS):
        share *= 10 if share < 1e-3 else 2
        candidate = bound + share * epsilon * apart
        moved = after(candidate)
        if bool((moved[apart] <= candidate[apart]).all()):
            return np.asarray(candidate)
        if trial >= _TRIALS // 2:  # transports differ: start from the larger ones
            bound = np.maximum(bound, moved)
    return None


def _centre(weights: Array) -> tuple[Array, float]:
    """Return central weights, and how far logs of others oscillate against them."""
    if not (weights > 0).all():
        return np.ones(weights.shape[1]), math.inf
    logs = np.log(weights)
    centre = logs.mean(axis=0)
    apart = logs - centre
    width = float((apart.max(axis=1) - apart.min(axis=1)).max())
    return np.exp(centre - centre.max()), width + 1e-14


def _closed(value: Array) -> Array:
    """Apply the triangle inequality, which the true values obey."""
    for middle in range(value.shape[-1]):
        through = value[..., :, middle, None] + value[..., None, middle, :]
        value = np.minimum(value, through)
    return value


def _normal(weights: Array) -> Array:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


# How far one step of a chain carries a difference: a certified upper bound.
#
# The pair program asks for the largest
#
# .. math:: \ln\frac{\sum_y p(y) f(y)}{\sum_y q(y) f(y)} \quad\text{over } f > 0
#     \text{ with } f(y) \le e^{A[y, z]} f(z).
#
# Every transport of p into q that pays :math:`e^{A[y,z]}` for a unit moved from y to z
# bounds it from above: if :math:`\sum_z \pi(y, z) = p(y)` and :math:`\sum_y \pi(y, z)
# e^{A[y, z]} \le \lambda q(z)`, then :math:`p \cdot f \le \lambda q \cdot f`. So a
# transport need not be optimal to be a proof; here it is improved by a few sweeps of
# multiplicative scaling, for all pairs of states together.

FINE: Sequence[tuple[float, int]] = ((0.0, 2), (10.0, 12), (30.0, 8))
"""How sharply cheap moves are preferred, and for how many sweeps: few states."""

COARSE: Sequence[tuple[float, int]] = ((0.0, 2),)
"""The same where there are many programs: no preference."""

STEADY: Sequence[tuple[float, int]] = ((0.0, 2), (10.0, 14))
"""The same where small changes of the costs must not make the bound jump."""

# Numbers of one block: small enough to stay in the cache.
_BLOCK = 16_000
_TINY = 1e-300


def transport_bound(
    p: Array,
    q: Array,
    cost: Array,
    *,
    stages: Sequence[tuple[float, int]] = FINE,
    rounding: float = 0.0,
) -> Array:
    """Return upper bounds of the pair program, one for each row of `p` and `q`.

    Parameters
    ----------
    p, q : ndarray of shape (W, B, s)
        Laws, with the same zeros.
    cost : ndarray of shape (W, s, s)
        A[y, z] for each of the W groups of rows, non-negative with a zero diagonal.
    stages : sequence of (float, int)
        Sharpness and number of sweeps; the bound is valid whatever they are.
    rounding : float
        Added to each bound, for the error of `p` and `q`.

    Returns
    -------
    ndarray of shape (W, B)
        Raised by ``4e-15 s`` over rounding.

    Notes
    -----
    Time O(W B s^2) for a sweep, in products of matrices.

    Examples
    --------
    >>> p, q = np.array([[[0.8, 0.2]]]), np.array([[[0.3, 0.7]]])
    >>> cost = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> float(transport_bound(p, q, cost)[0, 0].round(9))
    0.449104503
    >>> round(float(np.log((0.8 * np.e + 0.2) / (0.3 * np.e + 0.7))), 9)
    0.449104503
    """
    groups, rows, size = p.shape
    found = np.empty((groups, rows))
    wide = max(1, _BLOCK // (rows * size))
    tall = max(1, _BLOCK // (wide * size))
    for first in range(0, groups, wide):
        some = slice(first, first + wide)
        for start in range(0, rows, tall):
            part = some, slice(start, start + tall)
            found[part] = _bounded(p[part], q[part], cost[some], stages)
    return np.asarray(found + (4e-15 * size + rounding))


def _bounded(
    p: Array, q: Array, cost: Array, stages: Sequence[tuple[float, int]]
) -> Array:
    d = p - q
    limit = np.where(q > 0, d / np.where(q > 0, q, 1.0), -np.inf)
    top, excess = _excess(cost)
    best = np.maximum(np.minimum(limit.max(axis=2), np.expm1(top)), 0.0)
    mu = np.minimum(_box_root(d, q, cost), best)
    share = np.maximum(d - mu[..., None] * q, 0.0)
    if not excess.any():  # every move costs the same: no preference to find
        stages = stages[:1]
    for sharpness, sweeps in stages:
        preference = np.exp(-sharpness * excess)
        paid = (preference * np.exp(-cost)).swapaxes(1, 2)
        for _ in range(sweeps):
            giving = d > mu[..., None] * q  # p above (1 + mu) q: mass to be moved
            share = np.where(giving, share, 0.0)
            claims = share @ preference
            split = np.where(giving, 0.0, 1.0 / np.where(claims > 0, claims, 1.0))
            # At level mu, state y sends `over - mu * under` more than it can place.
            over = d + share * ((split * d) @ paid)
            under = q + share * ((split * q) @ paid)
            best = np.minimum(best, _certified(over, under, giving, limit))
            mu, share = _improved(d, q, over, under, giving, share, best)
    return np.asarray(np.log1p(best))


def _certified(
    over: Array, under: Array, giving: NDArray[np.bool_], limit: Array
) -> Array:
    """Return the least level at which every state can place what it sends."""
    ratio = np.where(giving, over / np.where(under > 0, under, 1.0), limit)
    return np.asarray(np.maximum(ratio.max(axis=2), 0.0))


def _improved(
    d: Array,
    q: Array,
    over: Array,
    under: Array,
    giving: NDArray[np.bool_],
    share: Array,
    best: Array,
) -> tuple[Array, Array]:
    """Return the next level, and shares that favour states which placed too little."""
    sent = np.where(giving, over, 0.0).sum(axis=2)
    room = np.where(giving, under, 0.0).sum(axis=2)
    mu = np.clip(sent / np.maximum(room, _TINY), 0.0, best)
    need = d - mu[..., None] * q
    placed = need - (over - mu[..., None] * under)
    usable = giving & (need > 0) & (placed > 0)
    factor = np.where(usable, need / np.where(placed > 0, placed, 1.0), 1e-3)
    grown = share * np.clip(factor, 1e-4, 1e4)
    grown = grown / np.maximum(grown.max(axis=2, keepdims=True), _TINY)
    return mu, np.where(giving, np.maximum(grown, 1e-25), 0.0)


def _box_root(d: Array, q: Array, cost: Array) -> Array:
    """Return a first guess: the optimum if every move had the average cost."""
    size = cost.shape[-1]
    gain = np.expm1(cost.sum(axis=(1, 2)) / (size * (size - 1)))[:, None]
    mu = np.zeros(d.shape[:2])
    for _ in range(3):
        giving = d > mu[..., None] * q
        mass = np.where(giving, d, 0.0).sum(axis=2)
        mu = gain * mass / (1 + gain * np.where(giving, q, 0.0).sum(axis=2))
    return np.asarray(mu)


def _excess(cost: Array) -> tuple[Array, Array]:
    """Return the largest cost, and where each lies between least (0) and largest."""
    apart = ~np.eye(cost.shape[-1], dtype=bool)
    top = cost.max(axis=(1, 2))[:, None]
    low = np.where(apart, cost, np.inf).min(axis=(1, 2))[:, None]
    width = np.maximum(np.maximum(top - low, 1e-3 * top), _TINY)[..., None]
    return top, np.where(apart, (cost - low[..., None]) / width, 0.0)


# Many states: a bound from hockey-stick divergences of rows, up to 1000 states.
#
# The pairwise recursion with one number for all pairs: functions of the next state that
# oscillate by at most a are, at worst, two-valued, and a step lets through
#
# .. math:: \max_{x, x', T} \ln\frac{1 + (e^a - 1) p_x(T)}{1 + (e^a - 1) p_{x'}(T)}.
#
# The theorem and its proof are on the theory page *Markov chains on several states*.

_BOX_MARGIN = 1e-11
# Most states tried by method="best".
_CHEAP_BOX = 200


def box_leakage(
    transition: ArrayLike,
    epsilon: float,
    *,
    initial: ArrayLike | None = None,
    length: int | None = None,
) -> Leakage:
    r"""Bound the leakage of any `epsilon`-DP mechanism on a chain of many states.

    Parameters
    ----------
    transition : array_like of shape (s, s), or sequence of such
        Row-stochastic and positive.
    epsilon : float
        DP level; non-negative and finite.
    initial : array_like of shape (s,), optional
        Law of the first record; the bound holds for each, this one is not read.
    length : int, optional
        Number of records; caps the bound at ``length * epsilon``.

    Returns
    -------
    Leakage
        Never above the projective bound.

    Raises
    ------
    NotApplicable
        If a transition is impossible.

    Notes
    -----
    Proved on the theory page. An upper bound for every attacker, start and length:
    windows of up to M unknown records are bounded by the projective diameter, longer
    ones by the rows of the matrix with a slack for what ends the window; M is the best.
    Time O(s^3) with a few passes over all pairs of rows: about ten seconds for 1000
    states. A time-varying chain is bounded by its diameters, step by step.

    Examples
    --------
    >>> P = np.full((20, 20), 0.03) + 0.4 * np.eye(20)
    >>> round(box_leakage(P, 0.1).value, 4)
    0.8554
    >>> from undertow.correlation.markov.projective import projective_leakage
    >>> from undertow.correlation.markov.projective import projective_diameter
    >>> round(projective_leakage(0.1, projective_diameter(P)).value, 4)
    1.4044
    """
    chain = MarkovChain(transition, initial, length)
    return BoxTheorem().bound(chain, epsilon)


class BoxTheorem(FormulaTheorem):
    """The box recursion, for chains of up to a thousand states."""

    name = "box"
    source = "box recursion for Markov chains"
    published = False
    checked = _CHECKED

    def read(self, model: Any, query: Query) -> _BoxSides:
        """Return both sides of the chain, prepared once for many levels."""
        require_dp(query, self.name)
        return _BoxSides(model)

    def at(self, given: _BoxSides, epsilon: float) -> Leakage:
        """Return the bound for any mechanism, start and length."""
        witness = _inside(given.chain)
        return self.stated(given.value(epsilon), witness=witness)

    def within(self, given: _BoxSides, target: float) -> float:
        """Return a level whose bound is within the target, to a share 1e-9."""
        chain = given.chain
        low = projective_budget(target, chain.diameter, size=chain.size)
        return smooth_level(given.value, target, low=low)

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason for more than 200 states, and for two, which are exact."""
        if model.states == 2:
            return "the box recursion adds nothing to the exact two-state method"
        if model.states > _CHEAP_BOX:
            return (
                f"the box recursion takes long for more than {_CHEAP_BOX} states, "
                f"got {model.states}"
            )
        return None


class _BoxSides:
    """Both sides of a homogeneous chain, prepared once for many levels."""

    def __init__(self, chain: MarkovChain) -> None:
        if not chain.is_positive:
            raise NotApplicable(
                "the box recursion needs transitions of positive probability, got a "
                "zero; use method 'steps', or 'general' with a length."
            )
        self.chain = chain
        self._sides: tuple[BoxSide, ...] = ()
        if chain.is_homogeneous:
            P = chain.transition
            self._sides = (
                BoxSide(P, np.ones(len(P))),
                BoxSide(np.ascontiguousarray(P.T), chain.stationary()),
            )

    def value(self, epsilon: float) -> float:
        """Return the bound, raised for rounding and capped by the closed form."""
        cap = closed_value(epsilon, self.chain.diameter)
        if self.chain.size is not None:
            cap = min(cap, general_leakage(epsilon, self.chain.size).value)
        if epsilon == 0 or self.chain.size == 1:
            return cap
        if self._sides:
            # epsilon + d of the closed form, which bounds every window on one side
            ceiling = (closed_value(epsilon, self.chain.diameter) + epsilon) / 2
            right, left = (side.bound(epsilon, ceiling) for side in self._sides)
            found = epsilon + float((left + right).max())
        else:
            found = _box_time_varying(self.chain.steps(), epsilon)
        return min(cap, inflate(found, _BOX_MARGIN))


def _box_time_varying(kernels: Array, epsilon: float) -> float:
    """Carry one oscillation for each side along a chain with changing kernels."""
    diameters = [float(pair_diameters(kernel).max()) for kernel in kernels]
    right, left = [0.0], [0.0]
    for back, forth in zip(reversed(diameters), diameters, strict=True):
        right.append(influence(epsilon + right[-1], back))
        left.append(influence(epsilon + left[-1], forth))
    return epsilon + max(a + b for a, b in zip(left, reversed(right), strict=True))


# The least number that one step of a chain of many states does not raise.

# Most unknown records bounded by the diameter before rows are used.
_LONGEST = 64
# Pairs of rows remembered from each pass, and passes to confirm a root.
_REMEMBERED, _ROUNDS = 64, 12
# What a quotient is taken for whose logarithm would leave the floats.
_SMALLEST = 1e-300


class RowDivergence:
    r"""Hockey-stick divergences of the rows of a stochastic matrix.

    .. math:: S_{xx'}(\lambda) = \sum_y \max(p_x(y) - \lambda p_{x'}(y), 0)

    Parameters
    ----------
    rows : ndarray of shape (s, s)
        Row-stochastic.

    Notes
    -----
    A pass over all pairs costs s^3. The pairs that were among the largest in some pass
    are remembered: on them alone a root is cheap to find, and one pass confirms it.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        self._leading: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.variation = self._pass(1.0)

    def largest(self, factor: float) -> float:
        """Return the largest divergence at a factor of at least 1, raised."""
        return self._raised(float(self._pass(factor).max()), factor)

    def leading(self, factor: float) -> float:
        """Return the largest divergence among the remembered pairs, raised."""
        first, second = np.divmod(self._leading, len(self.rows))
        apart = self.rows[first] - factor * self.rows[second]
        found = float(np.maximum(apart, 0.0).sum(axis=1).max())
        return self._raised(found, factor)

    def _raised(self, value: float, factor: float) -> float:
        return value * (1 + 1e-12) + 1e-15 * len(self.rows) * factor

    def _pass(self, factor: float) -> Array:
        from scipy.spatial.distance import cdist

        # The positive part of a difference from its absolute value and its sum.
        apart = cdist(self.rows, factor * self.rows, "cityblock") + (1 - factor)
        found = np.maximum(apart / 2, 0.0)
        flat = found.ravel()
        count = min(_REMEMBERED, len(flat))
        top = np.argpartition(-flat, count - 1)[:count]
        self._leading = np.union1d(self._leading, top)
        return np.asarray(found)


class BoxSide:
    """The windows of one side of a target, bounded pair by pair.

    Parameters
    ----------
    kernel : ndarray of shape (s, s)
        The transition matrix for the right side, its transpose for the left one.
    centre : ndarray of shape (s,)
        Weights that distant ends of a window lead to: ones, or the stationary law.
    """

    def __init__(self, kernel: Array, centre: Array) -> None:
        rows = kernel * centre
        self.diameters = pair_diameters(kernel)
        self.diameter = float(self.diameters.max())
        self._divergence = RowDivergence(rows / rows.sum(axis=1, keepdims=True))
        self._kernel, self._centre = kernel, centre
        self._weights = kernel.T
        self._widths: list[float] = []

    def bound(self, epsilon: float, ceiling: float) -> Array:
        """Return V for all pairs, at most what `ceiling` for the recursion gives.

        Parameters
        ----------
        epsilon : float
            DP level; positive.
        ceiling : float
            A number that bounds epsilon + V for every pair and window.
        """
        best = influences(ceiling, self.diameters)
        worst, short = float(best.max()), epsilon
        for count in range(1, _LONGEST + 1):
            # `short` bounds epsilon + V for windows of fewer than `count` records.
            inside = influences(short, self.diameters)
            if inside.max() >= worst:
                break
            reached = float(inside.max())
            beyond = self._beyond(epsilon, count, reached=reached, most=worst)
            found = np.maximum(inside, beyond)
            if found.max() < worst:
                best, worst = np.minimum(found, best), float(found.max())
            short = epsilon + reached
        np.fill_diagonal(best, 0.0)
        return best

    def _beyond(
        self, epsilon: float, count: int, *, reached: float, most: float
    ) -> Array:
        """Bound windows longer than `count`; infinite where that needs over `most`.

        Windows of `count` records are bounded by `reached`: the recursion starts there,
        and a step that keeps some v keeps every larger one.

        Weights within a factor ``exp(width)`` of the central ones act as if functions
        oscillated by `width` more, and tilt the two laws that are compared.
        """
        width, variation = self._width(count), self._divergence.variation
        rate = math.expm1(min(width, 700.0)) * (1 + 1e-12)
        tilt = np.log1p(rate * variation.T)
        added = epsilon + width + float(tilt.max())
        left = most - float(tilt.max())
        step = self._root(added, left) if left > 0 else math.inf
        if step == math.inf:
            return np.full_like(tilt, math.inf)
        step = max(step, reached - float(tilt.max()))
        rate = math.expm1(added + step) * (1 + 1e-12)
        return np.asarray(np.minimum(step, np.log1p(rate * variation)) + tilt)

    def _width(self, count: int) -> float:
        """Return how far log weights of windows longer than `count` oscillate."""
        while len(self._widths) < count:
            if self._widths:
                self._weights = self._weights @ self._kernel.T
                self._weights /= self._weights.sum(axis=1, keepdims=True)
            apart = np.log(self._weights) - np.log(self._centre)
            width = float((apart.max(axis=1) - apart.min(axis=1)).max())
            self._widths.append(width + 1e-13 * len(apart))
        return self._widths[count - 1]

    def _root(self, added: float, most: float) -> float:
        """Return v, above the least one by a share 1e-9, that one step keeps.

        With oscillation ``added + v`` no two rows differ by more than v.
        """

        def ratio(v: float, largest: Callable[[float], float]) -> float:
            return math.expm1(added + v) * largest(math.exp(v)) / math.expm1(v)

        for _ in range(_ROUNDS):
            found = _least_keeping(lambda v: ratio(v, self._divergence.leading), most)
            if found == math.inf or ratio(found, self._divergence.largest) <= 1:
                return found
        return math.inf


def _least_keeping(ratio: Callable[[float], float], most: float) -> float:
    """Return some v of at most `most` with ``ratio(v) <= 1``, nearly the least."""

    def spare(v: float) -> float:
        return -math.log(max(ratio(v), _SMALLEST))

    high, top = most, spare(most)
    if top < 0:
        return math.inf
    low, bottom = high / 4, spare(high / 4)
    while bottom >= 0:
        if low < 1e-9 * most:
            return low
        high, top, low, bottom = low, bottom, low / 4, spare(low / 4)
    return crossing(spare, (low, bottom), (high, top))[1]

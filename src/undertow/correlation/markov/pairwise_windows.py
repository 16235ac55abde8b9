r"""What the unknown records on one side of a target add, pair of states by pair.

For a window of unknown records, ``V[x, x']`` bounds the change of the log of any
integrated-out mechanism between the target states x and x'. One more record turns V
into the pair programs of :mod:`undertow.correlation.markov.transport` with costs
``epsilon + V``. Short windows are followed one by one, for every state of the known
record that ends them; long ones see nearly the same weights however they are ended and
are covered together by a matrix that one step does not raise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.correlation.markov.transport import (
    COARSE,
    FINE,
    STEADY,
    transport_bound,
)

__all__ = [
    "PairWindows",
    "cross_ratio_step",
    "influences",
    "pair_diameters",
    "pair_windows",
]

Array = NDArray[np.float64]

# States up to which many sweeps and a small slack are affordable.
_FEW = 16
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

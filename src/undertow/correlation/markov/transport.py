r"""How far one step of a chain carries a difference: a certified upper bound.

The pair program asks for the largest

.. math:: \ln\frac{\sum_y p(y) f(y)}{\sum_y q(y) f(y)} \quad\text{over } f > 0
    \text{ with } f(y) \le e^{A[y, z]} f(z).

Every transport of p into q that pays :math:`e^{A[y,z]}` for a unit moved from y to z
bounds it from above: if :math:`\sum_z \pi(y, z) = p(y)` and
:math:`\sum_y \pi(y, z) e^{A[y, z]} \le \lambda q(z)`, then :math:`p \cdot f \le \lambda
q \cdot f`. So a transport need not be optimal to be a proof; here it is improved by a
few sweeps of multiplicative scaling, for all pairs of states together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["COARSE", "FINE", "STEADY", "transport_bound"]

Array = NDArray[np.float64]

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

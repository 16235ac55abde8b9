"""Chains of pairs of distributions, behind groups of trade-off functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from undertow.privacy.tradeoff_numeric import ROUNDING, Atoms, FloatArray, atoms_of

__all__ = ["chained"]


def chained(first: Atoms, second: Atoms) -> Atoms:
    r"""Return the pair (P, R) that a chain of pairs (P, Q) and (Q, R) guarantees.

    Notes
    -----
    The function is :math:`g(1 - f)`. Both pairs cut the Q-mass in order of their
    losses: where piece i of the first meets piece j of the second over a length m,
    there is an atom with masses :math:`m p_i/q_i` and :math:`m r_j/q_j`. Lengths are
    measured from the nearer end, so that small masses keep their digits however steep
    the pieces.
    """
    left, right = first.q > 0, second.p > 0
    length, i, j = _overlay(first.q[left], second.p[right])
    p = length * (first.p[left] / first.q[left])[i]
    q = length * (second.q[right] / second.p[right])[j]
    alone_p, alone_q = first.p[~left], second.q[~right]
    return atoms_of(
        np.concatenate([p, alone_p, np.zeros_like(alone_q)]),
        np.concatenate([q, np.zeros_like(alone_p), alone_q]),
        error=first.error + second.error + ROUNDING,
    )


def _overlay(
    first: FloatArray, second: FloatArray
) -> tuple[FloatArray, NDArray[np.intp], NDArray[np.intp]]:
    """Return lengths of the common refinement of two partitions of [0, 1].

    With each length come the pieces it lies in.
    """
    low = _overlay_half(first, second)
    high = _overlay_half(first[::-1], second[::-1])
    return (
        np.concatenate([low[0], high[0]]),
        np.concatenate([low[1], len(first) - 1 - high[1]]),
        np.concatenate([low[2], len(second) - 1 - high[2]]),
    )


def _overlay_half(
    first: FloatArray, second: FloatArray
) -> tuple[FloatArray, NDArray[np.intp], NDArray[np.intp]]:
    ends = np.cumsum(first), np.cumsum(second)
    inner = [end[end < 0.5] for end in ends]
    cuts = np.unique(np.concatenate([[0.0, 0.5], *inner]))
    middle = cuts[:-1] + np.diff(cuts) / 2
    place = [np.searchsorted(end, middle) for end in ends]
    return np.diff(cuts), place[0], place[1]

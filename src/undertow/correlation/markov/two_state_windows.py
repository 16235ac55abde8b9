r"""How much the unknown records on one side of a target add, for two states.

A window is a stretch of unknown records next to the target, ended by a known record or
by the end of the chain. On two states a positive function is, up to scale, one number,
the log ratio :math:`r = \ln f(0)/f(1)`, and a kernel moves it monotonically, so that
the interval of all r that epsilon-DP mechanisms can cause is carried exactly by its two
ends, here kept as two non-negative numbers: how far up r can go, and how far down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.errors import NotApplicable

__all__ = ["LONGEST", "SideWindows", "listed_windows", "repeated_windows"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

LONGEST = 4096
"""Most unknown records on one side that are followed one by one."""

# Windows are followed until longer ones cannot add more than this share.
_SETTLED = 1e-14
# Lanes 0 and 1 end at a known record with that state, lane 2 at the end of the chain.
_EDGE = 2
# Weights below this share of the larger one would lose their digits, or vanish.
_FAINT = 1e-140


@dataclass(frozen=True)
class SideWindows:
    """What windows on one side of a target add to the log ratio, by their length.

    Parameters
    ----------
    known : ndarray of shape (2, L + 1, E)
        Most that a window of j unknown records ended by a known record moves the log
        ratio up (first) or down (second), for each DP level; -inf where impossible.
    state : ndarray of shape (2, L + 1, E)
        State of that known record.
    edge : ndarray of shape (2, L + 1, E)
        The same for the window that reaches the end of the chain.
    rest : ndarray of shape (2, E)
        Upper bound for all longer windows, however ended; infinite if there is none.
    """

    known: Array
    state: NDArray[np.int64]
    edge: Array
    rest: Array

    @property
    def longest(self) -> int:
        """Most unknown records in a window that was followed."""
        return int(self.known.shape[1]) - 1


def repeated_windows(
    transition: Array,
    initial: Array,
    epsilon: Array,
    *,
    longest: int,
    exactly: bool = False,
) -> tuple[SideWindows, SideWindows]:
    """Return the windows left and right of a target in a homogeneous chain.

    Parameters
    ----------
    transition : ndarray of shape (2, 2)
        Row-stochastic.
    initial : ndarray of shape (2,)
        Law of the first record.
    epsilon : ndarray of shape (E,)
        DP levels, evaluated together.
    longest : int
        Most unknown records on one side.
    exactly : bool
        Follow all windows up to `longest`; otherwise stop where longer ones cannot add
        more than a share 1e-14.

    Notes
    -----
    Two sides, three ends and all levels move together: time O(longest).
    """
    # The left side sees the reversed chain: transposed kernels, weights from the start.
    kernel = np.stack((transition, transition.T))[:, None]
    weights = np.stack((_ends(transition, np.ones(2)), _ends(transition.T, initial)))
    weights = weights / _positive(weights.sum(axis=-1, keepdims=True))
    _require_range(weights, weights > 0)
    cross = _cross(weights)
    reach = np.zeros((2, 2, 3, len(epsilon)))  # up or down, side, end, level
    rows, best = [_admitted(reach, weights)], np.zeros((2, 2, len(epsilon)))
    rest = np.full((2, 2, len(epsilon)), np.inf)
    for _ in range(longest):
        rest = _longer(reach, weights, cross)
        if not exactly and bool((rest - best <= _SETTLED * (epsilon + best)).all()):
            break
        weights, reach, scale = _advance(kernel, weights, reach, epsilon)
        cross = _next_cross(cross, kernel, scale)
        rows.append(_admitted(reach, weights))
        best = np.maximum(best, rows[-1].max(axis=2))
    else:
        rest = _longer(reach, weights, cross)
    table = np.stack(rows, axis=2)  # up or down, side, length, end, level
    right, left = (_side(table[:, k], rest[:, k]) for k in range(2))
    return left, right


def listed_windows(
    kernels: Array, initial: Array, epsilon: Array
) -> tuple[Array, Array, Array]:
    """Return what the worst window adds left and right of every record of a chain.

    Parameters
    ----------
    kernels : ndarray of shape (n - 1, 2, 2)
        One kernel for each step.
    initial : ndarray of shape (2,)
        Law of the first record.
    epsilon : ndarray of shape (E,)
        DP levels.

    Returns
    -------
    left, right : ndarray of shape (2, n, E)
        Up and down, by target.
    ends : ndarray of shape (2, 2, n, E)
        Side, up or down, target: the known record that ends the worst window as
        ``2 * index + state``; -1 where it reaches the end of the chain.

    Notes
    -----
    Windows of probability zero are left out. Time O(n) steps on O(n) windows each.
    """
    occurs = [np.asarray(initial) > 0]
    for kernel in kernels:
        occurs.append((occurs[-1][:, None] & (kernel > 0)).any(axis=0))
    right, right_ends = _swept(kernels[::-1], np.ones(2), epsilon, None)
    transposed = kernels.transpose(0, 2, 1)
    left, left_ends = _swept(transposed, initial, epsilon, occurs)
    size = len(kernels) + 1
    flipped = right_ends[:, ::-1]
    # Counted from the far end: record j there is record n - 1 - j, its state the same.
    mirrored = 2 * (size - 1) - (flipped - flipped % 2) + flipped % 2
    ends = np.stack((left_ends, np.where(flipped < 0, -1, mirrored)))
    return left, right[:, ::-1], ends


def _swept(
    kernels: Array, start: Array, epsilon: Array, occurs: list[Flags] | None
) -> tuple[Array, NDArray[np.int64]]:
    """Walk along a chain, keeping a lane for each window that ends behind the walker.

    Lane 0 reaches the end of the chain, lanes 2j + 1 and 2j + 2 end at record j.
    """
    levels = len(epsilon)
    weights = np.asarray(start, dtype=np.float64)[None] / start.sum()
    reach = np.zeros((2, 1, levels))
    values = [_admitted(reach, weights)]
    for j, kernel in enumerate(kernels):
        weights, reach, _ = _advance(kernel[None], weights, reach, epsilon)
        fresh = kernel.T.copy()  # ends at record j, in state 0 or 1
        if occurs is not None:
            fresh[~occurs[j]] = 0.0  # that state never occurs there
        fresh = fresh / _positive(fresh.sum(axis=-1, keepdims=True))
        _require_range(fresh, fresh > 0)
        weights = np.concatenate((weights, fresh))
        reach = np.concatenate((reach, np.zeros((2, 2, levels))), axis=1)
        values.append(_admitted(reach, weights))
    worst = np.stack([lanes.max(axis=1) for lanes in values], axis=1)
    ends = np.stack([lanes.argmax(axis=1) - 1 for lanes in values], axis=1)
    return worst, ends


def _advance(
    kernel: Array, weights: Array, reach: Array, epsilon: Array
) -> tuple[Array, Array, Array]:
    """Take one more record into every window: weights, reach, and their scale."""
    joint = kernel * weights[..., None, :]  # P(y, y') beta(y')
    sums = joint.sum(axis=-1)
    alive = _both(sums)
    safe = np.where(alive[..., None], sums, 1.0)
    det = _determinant(kernel)
    bridge = joint / safe[..., None]
    lift = np.abs(det) * (weights[..., 0] / safe[..., 0]) * weights[..., 1]
    lift = lift / safe[..., 1]
    together = (det >= 0)[..., None]
    source = reach + epsilon
    source = np.where(together, source, source[::-1])
    up = _gain(
        source[0], np.where(together, bridge[..., 1, :], bridge[..., 1, ::-1]), lift
    )
    down = _gain(
        source[1], np.where(together, bridge[..., 0, ::-1], bridge[..., 0, :]), lift
    )
    moved = np.where(alive[..., None], np.stack((up, down)), 0.0)
    scale = _positive(sums.sum(axis=-1))
    moved_weights = sums / scale[..., None]
    reached = ((kernel > 0) & (weights > 0)[..., None, :]).any(axis=-1)
    _require_range(moved_weights, np.asarray(reached))
    return moved_weights, moved, scale


def _require_range(weights: Array, possible: Flags) -> None:
    """Refuse weights that are positive but too small to be told from zero."""
    faint = possible & (weights < _FAINT)
    if faint.any():
        raise NotApplicable(
            "the two-state conversion needs conditional probabilities of at least "
            f"{_FAINT:g}, got {float(weights[faint].min()):.3g} in a long window; use "
            "method 'steps', or 'general' with a length."
        )


def _gain(x: Array, row: Array, lift: Array) -> Array:
    """Return ``log(1 + lift (e^x - 1) / (row[0] e^x + row[1]))``, at most x."""
    shrunk = np.exp(-x)
    below = row[..., :1] + row[..., 1:] * shrunk
    # An overflowing quotient means that the value is x up to rounding.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        gained = np.log1p(lift[..., None] * -np.expm1(-x) / below)
    return np.where(np.isnan(gained), x, np.minimum(gained, x))


def _longer(reach: Array, weights: Array, cross: Array) -> Array:
    """Bound every window longer than the present ones, however it is ended."""
    opposite = np.minimum(
        weights[:, 0, 1] * weights[:, 1, 0], weights[:, 0, 0] * weights[:, 1, 1]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        swing = np.log1p(np.abs(cross) / opposite)
    swing = np.where(cross == 0, 0.0, np.where(opposite > 0, swing, np.inf))[:, None]
    zero_leads = (cross >= 0)[:, None]  # the state whose weights favour 0
    first, second = reach[:, :, 0], reach[:, :, 1]
    up, down = first[0], second[1]
    other_up, other_down = second[0], first[1]
    top = np.where(
        zero_leads, np.maximum(up + swing, other_up), np.maximum(other_up + swing, up)
    )
    bottom = np.where(
        zero_leads,
        np.maximum(down + swing, other_down),
        np.maximum(other_down + swing, down),
    )
    return np.stack((top, bottom))


def _ends(kernel: Array, edge: Array) -> Array:
    return np.stack((kernel[:, 0], kernel[:, 1], edge))


def _cross(weights: Array) -> Array:
    return weights[:, 0, 0] * weights[:, 1, 1] - weights[:, 0, 1] * weights[:, 1, 0]


def _next_cross(cross: Array, kernel: Array, scale: Array) -> Array:
    return np.asarray(cross * _determinant(kernel)[:, 0] / (scale[:, 0] * scale[:, 1]))


def _determinant(kernel: Array) -> Array:
    return np.asarray(
        kernel[..., 0, 0] * kernel[..., 1, 1] - kernel[..., 0, 1] * kernel[..., 1, 0]
    )


def _both(weights: Array) -> Flags:
    return np.asarray((weights > 0).all(axis=-1))


def _admitted(reach: Array, weights: Array) -> Array:
    """Return the reach of windows in which both secrets are possible."""
    return np.where(_both(weights)[..., None], reach, -np.inf)


def _positive(value: Array) -> Array:
    return np.where(value > 0, value, 1.0)


def _side(table: Array, rest: Array) -> SideWindows:
    known = table[:, :, :_EDGE]
    return SideWindows(
        known.max(axis=2), known.argmax(axis=2), table[:, :, _EDGE], rest
    )

"""From the windows of each side to the leakage of a whole two-state chain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import inflate
from undertow.correlation.general import general_leakage
from undertow.correlation.markov.closed import closed_value
from undertow.correlation.markov.ratio import projective_diameter
from undertow.correlation.markov.two_state_windows import (
    LONGEST,
    SideWindows,
    listed_windows,
    repeated_windows,
)
from undertow.errors import NotApplicable

__all__ = ["Evaluation", "TwoStateChain", "Worst", "evaluate"]

Array = NDArray[np.float64]

# Most records of a time-varying chain, whose windows are listed one by one.
_LISTED = 4096
# Most records for which windows of probability zero are told apart by listing.
_SIEVED = 1024


@dataclass(frozen=True)
class TwoStateChain:
    """A chain on two states, as plain arrays.

    Parameters
    ----------
    kernels : ndarray of shape (2, 2) or (n - 1, 2, 2)
        One kernel, or one for each step.
    initial : ndarray of shape (2,)
        Law of the first record.
    length : int or None
        Number of records; None for the supremum over all lengths.
    """

    kernels: Array
    initial: Array
    length: int | None

    @property
    def is_repeated(self) -> bool:
        """Whether every step has the same kernel."""
        return self.kernels.ndim == 2

    @property
    def has_zeros(self) -> bool:
        """Whether some state or transition is impossible."""
        return bool((self.kernels == 0).any() or (self.initial == 0).any())

    @property
    def is_reversible_map(self) -> bool:
        """Whether each record determines the next one and is determined by it."""
        P = self.kernels
        return self.is_repeated and bool(
            ((P == 0) | (P == 1)).all() and P[0, 0] == P[1, 1]
        )

    @property
    def mixes(self) -> bool:
        """Whether a homogeneous chain forgets its start."""
        (stay, leave), (enter, remain) = self.kernels.tolist()
        if stay == enter:  # the next record does not depend on this one
            return True
        return bool(leave > 0 and enter > 0 and stay + remain > 0)

    @property
    def signs(self) -> tuple[bool, bool]:
        """Whether every step is positively, and negatively, dependent."""
        trace = self.kernels[..., 0, 0] + self.kernels[..., 1, 1]
        return bool((trace >= 1).all()), bool((trace <= 1).all())

    @property
    def diameter(self) -> float:
        """Largest projective diameter of a step."""
        listed = self.kernels[None] if self.is_repeated else self.kernels
        return max((projective_diameter(kernel) for kernel in listed), default=0.0)


@dataclass(frozen=True)
class Worst:
    """The attacker that leaks most.

    Ends are ``(record, state)`` of the nearest known record, or None for the chain's
    end; `favoured` is the secret made likelier.
    """

    target: int
    left_count: int
    left_end: tuple[int, int] | None
    right_count: int | None
    right_end: tuple[int, int] | None
    favoured: int


@dataclass(frozen=True)
class Evaluation:
    """The ends of the bracket at each DP level, and the worst attacker at the first.

    Parameters
    ----------
    low : ndarray of shape (E,)
        The largest leakage found; some attacker and mechanism attain it.
    high : ndarray of shape (E,)
        No attacker and mechanism reach more. :func:`evaluate` raises it by a relative
        1e-12, and 1e-14 for each record followed, which covers rounding.
    steps : int
        Records followed.
    worst : Worst or None
        None where no record has two possible secrets.
    followed : ndarray of shape (E,)
        The upper end by following records alone, before closed forms cap it.
    """

    low: Array
    high: Array
    steps: int
    worst: Worst | None
    followed: Array = field(default_factory=lambda: np.array([]))


def evaluate(chain: TwoStateChain, epsilon: Array) -> Evaluation:
    """Return the bracket of the exact leakage at each DP level.

    Raises
    ------
    NotApplicable
        If a time-varying chain is too long to list, or a homogeneous one that never
        mixes too long to follow.
    """
    if not epsilon.any():
        return Evaluation(epsilon, epsilon, 0, None, epsilon)
    if not chain.is_repeated:
        return _capped(chain, epsilon, _listed(chain, epsilon))
    size, P, w = chain.length, chain.kernels, chain.initial
    if size is not None and chain.is_reversible_map and (w > 0).all():
        whole = Worst(0, 0, None, size - 1, None, 0)
        found = Evaluation(size * epsilon, size * epsilon, 0, whole)
        return _capped(chain, epsilon, found)
    longest = LONGEST if size is None else min(size - 1, LONGEST)
    if size is None or size - 1 > LONGEST:
        _require_mixing(chain)
    left, right = repeated_windows(P, w, epsilon, longest=longest)
    if size is None or size - 1 > 2 * left.longest + 2:
        found = _long(chain, epsilon, left, right)
    elif chain.has_zeros and size <= _SIEVED:
        found = _listed(chain, epsilon)
    else:
        left, right = repeated_windows(P, w, epsilon, longest=size - 1, exactly=True)
        found = _short(chain, epsilon, left, right)
    return _capped(chain, epsilon, found)


def _listed(chain: TwoStateChain, epsilon: Array) -> Evaluation:
    size = chain.length
    assert size is not None
    if size > _LISTED:
        raise NotApplicable(
            f"the two-state conversion of a time-varying chain needs at most {_LISTED} "
            f"records, got {size}; use method 'projective'."
        )
    kernels = np.broadcast_to(chain.kernels, (size - 1, 2, 2))
    left, right, ends = listed_windows(kernels, chain.initial, epsilon)
    value, place = _peak(left + right, epsilon)
    worst = None
    if place is not None:
        way, target = place
        known = [_read_end(int(ends[side, way, target, 0])) for side in (0, 1)]
        worst = _worst_at(target, known[0], known[1], size, way)
    return Evaluation(value, value, size, worst)


def _short(
    chain: TwoStateChain, epsilon: Array, left: SideWindows, right: SideWindows
) -> Evaluation:
    """Combine the sides target by target: record i has i records to its left."""
    size = left.longest + 1
    before, after = _by_room(left), _by_room(right)
    value, place = _peak(before + after[:, ::-1], epsilon)
    worst = None
    if place is not None:
        way, target = place
        known = [
            _end_within(left, way, target, target, -1),
            _end_within(right, way, size - 1 - target, target, 1),
        ]
        worst = _worst_at(target, known[0], known[1], size, way)
    # With zeros some of these windows may not occur: then an upper bound only.
    low = np.minimum(value, epsilon) if chain.has_zeros else value
    return Evaluation(low, value, size, worst)


def _long(
    chain: TwoStateChain, epsilon: Array, left: SideWindows, right: SideWindows
) -> Evaluation:
    """Combine the best windows: some target has room for any two of them.

    A window at the start and one at the end meet in short chains only, so they are
    combined where the length is left open.
    """
    ends = [(side.known.max(axis=1), side.edge.max(axis=1)) for side in (left, right)]
    (known_l, edge_l), (known_r, edge_r) = ends
    full_l, full_r = np.maximum(known_l, left.rest), np.maximum(known_r, right.rest)
    low = [known_l + known_r, edge_l + known_r, known_l + edge_r]
    high = [full_l + full_r, edge_l + full_r, full_l + edge_r]
    if chain.length is None:
        low.append(edge_l + edge_r)
        high.append(edge_l + edge_r)
    lowest = epsilon + np.maximum(np.stack(low).max(axis=(0, 1)), -epsilon)
    highest = epsilon + np.maximum(np.stack(high).max(axis=(0, 1)), -epsilon)
    worst = _long_worst(chain, left, right, np.stack(low)[:, :, 0])
    return Evaluation(lowest, highest, left.longest, worst)


def _long_worst(
    chain: TwoStateChain, left: SideWindows, right: SideWindows, options: Array
) -> Worst | None:
    if not np.isfinite(options).any():
        return None
    kind, way = (int(k) for k in np.unravel_index(options.argmax(), options.shape))
    from_start, to_end = kind in (1, 3), kind in (2, 3)
    before = int((left.edge if from_start else left.known)[way, :, 0].argmax())
    after = int((right.edge if to_end else right.known)[way, :, 0].argmax())
    spare = 2 if chain.has_zeros else 0  # from there on every state may occur
    target = before if from_start else before + 1 + spare
    if to_end and chain.length is not None:
        target = chain.length - 1 - after
    start = target - before - 1
    left_end = None if from_start else (start, int(left.state[way, before, 0]))
    stop = target + after + 1
    right_end = None if to_end else (stop, int(right.state[way, after, 0]))
    return Worst(target, before, left_end, after, right_end, way)


def _by_room(side: SideWindows) -> Array:
    """Return the best window for a target with 0, 1, ... records on that side."""
    reached = np.maximum.accumulate(side.known, axis=1)
    none = np.full_like(reached[:, :1], -np.inf)
    before = np.concatenate((none, reached[:, :-1]), axis=1)
    return np.asarray(np.maximum(before, side.edge))


def _end_within(
    side: SideWindows, way: int, room: int, target: int, turn: int
) -> tuple[int, int] | None:
    inside = side.known[way, :room, 0]
    if not room or inside.max() < side.edge[way, room, 0]:
        return None
    count = int(inside.argmax())
    return target + turn * (count + 1), int(side.state[way, count, 0])


def _worst_at(
    target: int,
    left_end: tuple[int, int] | None,
    right_end: tuple[int, int] | None,
    size: int,
    way: int,
) -> Worst:
    before = target if left_end is None else target - left_end[0] - 1
    after = size - 1 - target if right_end is None else right_end[0] - target - 1
    return Worst(target, before, left_end, after, right_end, way)


def _read_end(code: int) -> tuple[int, int] | None:
    return None if code < 0 else (code // 2, code % 2)


def _peak(total: Array, epsilon: Array) -> tuple[Array, tuple[int, int] | None]:
    best = total.max(axis=(0, 1))
    value = np.where(np.isfinite(best), epsilon + best, 0.0)
    if not np.isfinite(best[0]):
        return value, None
    first = total[:, :, 0]
    way, target = np.unravel_index(int(first.argmax()), first.shape)
    return value, (int(way), int(target))


def _require_mixing(chain: TwoStateChain) -> None:
    if not chain.mixes:
        raise NotApplicable(
            "the two-state conversion of a chain that never mixes needs at most "
            f"{LONGEST} records, got more; use method 'general' with a length."
        )


def _capped(chain: TwoStateChain, epsilon: Array, found: Evaluation) -> Evaluation:
    """Raise the upper end by its margin; the closed form and n epsilon cap it."""
    margin = 1e-12 + 1e-14 * found.steps
    followed = np.array([inflate(high, margin) for high in found.high.tolist()])
    capped = np.minimum(followed, caps(chain, epsilon))
    return replace(found, high=capped, followed=followed)


def caps(chain: TwoStateChain, epsilon: Array) -> Array:
    """Return what the closed form and n epsilon allow, without following records."""
    diameter, size = chain.diameter, chain.length
    return np.array(
        [
            min(
                closed_value(level, diameter) if diameter < math.inf else math.inf,
                math.inf if size is None else general_leakage(level, size).value,
            )
            for level in epsilon.tolist()
        ]
    )

r"""Exactly what a noisy count leaks: every window, every pair, every output.

Records beyond the nearest known ones add the same noise to both hypotheses, so the
worst attacker knows everything outside one stretch of unknown records around the
target. The law of the count in that stretch is a convolution of a left and a right
part; after Laplace noise its ratio is largest at one of the counts themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from undertow.errors import NotApplicable

__all__ = ["CountWindows", "WorstCount"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Below this product of level and length the noise is computed as one minus a little.
_FLAT = 0.5
# Beyond this one its density underflows.
_STEEP = 500.0
# States below this share of the likeliest one would lose their digits, or vanish.
_FAINT = 1e-60


@dataclass(frozen=True)
class WorstCount:
    """The largest leakage, and where it is: target, ends, pair and noisy count.

    Ends are ``(record, state)`` of the nearest known record, None for the chain's end;
    the output is relative to the count of the known records.
    """

    value: float
    target: int = 0
    left_end: tuple[int, int] | None = None
    right_end: tuple[int, int] | None = None
    pair: tuple[int, int] | None = None
    output: int = 0


@dataclass(frozen=True)
class _Side:
    """Windows of one side of a target.

    Parameters
    ----------
    weights : ndarray of shape (W, s, c)
        Probability, up to a factor, of the target's state and the window's count.
    unknown : ndarray of shape (W,)
        Unknown records in the window.
    state : ndarray of shape (W,)
        State of the known record that ends it; -1 at the end of the chain.
    """

    weights: Array
    unknown: Whole
    state: Whole


class CountWindows:
    """All windows of a chain, prepared once and evaluated at many noise levels.

    Parameters
    ----------
    kernels : ndarray of shape (s, s) or (n - 1, s, s)
        One kernel, or one for each step.
    initial : ndarray of shape (s,)
        Law of the first record.
    length : int
        Number of records, n.
    counted : ndarray of shape (s,)
        1 for states that are counted, 0 for others.

    Notes
    -----
    Windows of a positive homogeneous chain look alike at every target: time
    O(n^4 s^3) in products of matrices. Otherwise n times that.
    """

    def __init__(
        self, kernels: Array, initial: Array, length: int, counted: Whole
    ) -> None:
        self.length = length
        self.counted = counted
        steps = np.broadcast_to(kernels, (length - 1, *kernels.shape[-2:]))
        occurs = [np.asarray(initial) > 0]
        for kernel in steps:
            occurs.append((occurs[-1][:, None] & (kernel > 0)).any(axis=0))
        before = list(_walk(steps.transpose(0, 2, 1), initial, counted, occurs))
        ones = np.ones(len(counted))
        after = list(_walk(steps[::-1], ones, counted, None))[::-1]
        self.is_uniform = kernels.ndim == 2 and bool(
            (kernels > 0).all() and occurs[0].all()
        )
        self._pairs = (
            [(_merged(before), _merged(after[::-1]))]
            if self.is_uniform
            else list(zip(before, after, strict=True))
        )

    def largest(self, epsilon: float) -> WorstCount:
        """Return the largest leakage over all attackers, pairs and outputs.

        Raises
        ------
        NotApplicable
            If the noise is so steep that its densities underflow.
        """
        if epsilon * self.length > _STEEP:
            raise NotApplicable(
                "the exact count needs epsilon times the number of records of at most "
                f"{_STEEP:g}, got {epsilon * self.length:.6g}; use method 'pairwise' "
                "or 'projective'."
            )
        best = WorstCount(0.0)
        for target, (left, right) in enumerate(self._pairs):
            noise = self._noise(epsilon, right.weights.shape[2])
            for window in range(len(left.unknown)):
                gaps = self._gaps(left.weights[window], right.weights, noise)
                gaps[:, :, ~self._fits(left, window, right)] = -np.inf
                if gaps.max() > best.value:
                    best = self._described(gaps, left, window, right, target)
        return best

    def _noise(self, epsilon: float, counts: int) -> tuple[Array, bool]:
        """Return the noise at ``output - count``, or one minus it where that is small.

        Rows are outputs minus the right count, columns left counts with the target's.
        """
        flat = epsilon * self.length < _FLAT
        outputs = np.arange(1 - counts, self.length + 1)
        away = epsilon * np.abs(outputs[:, None] - np.arange(self.length + 1))
        return (-np.expm1(-away) if flat else np.exp(-away)), flat

    def _gaps(self, left: Array, right: Array, noise: tuple[Array, bool]) -> Array:
        """Return log density ratios, by state, other state, window and output."""
        table, flat = noise
        logs = np.empty((len(left), len(right), self.length + 1))
        total = left.sum(axis=1) * right.sum(axis=2)
        safe = np.where(total > 0, total, 1.0)
        for x, law in enumerate(left):
            columns = slice(self.counted[x], self.counted[x] + len(law))
            smooth = table[:, columns] @ law
            spread = sliding_window_view(smooth, right.shape[2])[:, ::-1]
            mixed = (right[:, x] @ spread.T) / safe[:, x, None]
            logs[x] = np.log1p(-mixed) if flat else np.log(np.maximum(mixed, 1e-300))
        gaps = logs[:, None] - logs[None]
        both = (total > 0).T
        gaps[~(both[:, None] & both[None])] = -np.inf
        return gaps

    def _fits(self, left: _Side, window: int, right: _Side) -> NDArray[np.bool_]:
        """Return which windows on the right go with one on the left."""
        if not self.is_uniform:
            return np.ones(len(right.unknown), dtype=bool)
        unknown = left.unknown[window] + right.unknown
        known = (left.state[window] >= 0) + (right.state >= 0).astype(np.int64)
        # Two ends of the chain leave no choice, a known end leaves its place open.
        room = self.length - 1 - known
        return np.asarray(np.where(known == 0, unknown == room, unknown <= room))

    def _described(
        self, gaps: Array, left: _Side, window: int, right: _Side, target: int
    ) -> WorstCount:
        place = np.unravel_index(int(gaps.argmax()), gaps.shape)
        x, other, chosen, output = (int(k) for k in place)
        before, after = int(left.unknown[window]), int(right.unknown[chosen])
        states = int(left.state[window]), int(right.state[chosen])
        if self.is_uniform:
            target = before + (states[0] >= 0)
            if states[1] < 0:
                target = self.length - 1 - after
        return WorstCount(
            float(gaps[place]),
            target,
            None if states[0] < 0 else (target - before - 1, states[0]),
            None if states[1] < 0 else (target + after + 1, states[1]),
            (x, other),
            output,
        )


def _walk(
    kernels: Array, start: Array, counted: Whole, occurs: list[Flags] | None
) -> Iterator[_Side]:
    """Yield the windows behind each record of a chain, the end of the chain first.

    `kernels` are transposed: each maps weights of a record to weights of the next.
    """
    size, states = len(kernels) + 1, len(counted)
    weights = np.zeros((1, states, size))
    weights[0, :, 0] = start
    weights = _scaled(weights, weights.sum(axis=2) > 0)
    unknown, state = np.zeros(1, dtype=np.int64), np.full(1, -1)
    yield _Side(weights, unknown, state)
    for j, kernel in enumerate(kernels):
        shifted = weights.copy()
        moved = counted == 1
        shifted[:, moved, 1:] = weights[:, moved, :-1]
        shifted[:, moved, 0] = 0.0
        reached = (weights.sum(axis=2) > 0).astype(np.float64) @ (kernel > 0).T > 0
        weights = _scaled(np.einsum("yx,wxc->wyc", kernel, shifted), reached)
        fresh = np.zeros((states, states, size))
        fresh[:, :, 0] = kernel.T  # ends at record j, in each state
        if occurs is not None:
            fresh[~occurs[j]] = 0.0  # that state never occurs there
        fresh = _scaled(fresh, fresh.sum(axis=2) > 0)
        weights = np.concatenate((weights, fresh))
        unknown = np.concatenate((unknown + 1, np.zeros(states, dtype=np.int64)))
        state = np.concatenate((state, np.arange(states)))
        yield _Side(weights, unknown, state)


def _scaled(weights: Array, reached: Flags) -> Array:
    """Divide each window by its likeliest state; refuse states that nearly vanish."""
    totals = weights.sum(axis=2)
    most = totals.max(axis=1, keepdims=True)
    totals = totals / np.where(most > 0, most, 1.0)
    if (reached & (totals < _FAINT)).any():
        raise NotApplicable(
            "the exact count needs conditional probabilities of at least "
            f"{_FAINT:g}, got a smaller one in a long window; use method 'steps', or "
            "'general' with a length."
        )
    return np.asarray(weights / np.where(most > 0, most, 1.0)[:, :, None])


def _merged(sides: list[_Side]) -> _Side:
    """Return the windows of the last record and the chain-end ones of all others."""
    last, ends = sides[-1], [_end_only(side) for side in sides[:-1]]
    parts = [last, *ends]
    return _Side(
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.unknown for part in parts]),
        np.concatenate([part.state for part in parts]),
    )


def _end_only(side: _Side) -> _Side:
    return _Side(side.weights[:1], side.unknown[:1], side.state[:1])

"""A count with (discrete) Laplace noise on a Markov chain: exact leakage.

A count leaks at most as much as the worst mechanism, and on positively dependent
two-state chains exactly as much. The theorems and their proofs are on the theory page
*Counts on Markov chains*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from undertow.correlation.group import general_budget, general_leakage
from undertow.correlation.level import smooth_level
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.two_state import (
    TwoStateChain,
    TwoStateTheorem,
    require_start,
)
from undertow.correlation.query import CountQuery, Query
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.rounding import inflate
from undertow.results import Witness

_MECHANISM = "the count with Laplace or discrete Laplace noise"
_MARGIN = 1e-12
# Operations of one evaluation: at most, and at most where nobody asked by name.
_MOST, _CHEAP = 2e10, 2e9


def count_leakage(
    chain: MarkovChain, epsilon: float, *, states: ArrayLike = (1,)
) -> Leakage:
    r"""Return what a count of records in `states` with Laplace noise leaks.

    .. math:: \#\{t : X_t \in A\} + \mathrm{Lap}(1/\varepsilon)

    Parameters
    ----------
    chain : MarkovChain
        How the records depend.
    epsilon : float
        DP level of the release; non-negative and finite.
    states : array_like of int
        The states counted, A.

    Returns
    -------
    Leakage
        Exact (`tight`) for positively dependent two-state chains of any length, and
        for other chains short enough to evaluate every window; for longer two-state
        chains the leakage of the worst mechanism.

    Raises
    ------
    NotApplicable
        If a chain of three or more states is too long, or has no length.

    Notes
    -----
    Proved on the theory page; discrete Laplace noise has the same leakage. The value
    of the ratio at extreme outputs alone is *not* used where it is not proved to be the
    largest: on three states it can be too small.

    Examples
    --------
    >>> chain = MarkovChain([[0.882, 0.118], [0.305, 0.695]], length=10)
    >>> round(count_leakage(chain, 1.0).value, 7)
    3.3857125
    """
    query = CountQuery(int(z) for z in np.atleast_1d(np.asarray(states)))
    return CountTheorem().bound(chain, epsilon, query=query)


def count_budget(
    chain: MarkovChain, target: float, *, states: ArrayLike = (1,)
) -> float:
    """Return the largest DP level at which :func:`count_leakage` is within `target`.

    Examples
    --------
    >>> chain = MarkovChain([[0.882, 0.118], [0.305, 0.695]], length=288)
    >>> round(count_budget(chain, 1.0), 12)
    0.250325787648
    """
    query = CountQuery(int(z) for z in np.atleast_1d(np.asarray(states)))
    return CountTheorem().invert(chain, target, query=query)


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A count on a chain: its windows, or the chain for any mechanism, or constant."""

    chain: Any
    query: Query
    windows: CountWindows | None = None
    arrays: TwoStateChain | None = None
    attained: bool = False


class CountTheorem(FormulaTheorem):
    """The exact leakage of a noisy count."""

    name = "count"
    source = "exact leakage of a count on a Markov chain"
    published = False

    def read(self, model: Any, query: Query) -> _Case:
        """Return the windows to evaluate, or the chain for any mechanism."""
        counted = _counted(model, query)
        if counted.all():
            return _Case(model, query)
        attained = model.states == 2 and _is_positive(model)
        if not attained and _is_feasible(model, _MOST):
            return _Case(model, query, windows=_windows(model, counted))
        if model.states != 2:
            raise NotApplicable(_too_long(model))
        arrays = TwoStateTheorem().read(model, query)
        return _Case(model, query, arrays=arrays, attained=attained)

    def at(self, given: _Case, epsilon: float) -> Leakage:
        """Return the exact leakage, or that of the worst mechanism on two states."""
        if given.arrays is not None:
            return self._of_two_states(given, given.arrays, epsilon)
        if given.windows is not None:
            return self._evaluated(given, given.windows, epsilon)
        return self.stated(
            0.0,
            theorem="a count of every state is constant",
            checked=("every state is counted",),
            tight=True,
            mechanisms=_MECHANISM,
            scope=given.query.scope(),
        )

    def within(self, given: _Case, target: float) -> float:
        """Return the largest level found within the target."""
        if given.arrays is not None:
            return TwoStateTheorem().within(given.arrays, target)
        if given.windows is None:
            return target
        windows = given.windows
        return smooth_level(
            lambda level: self._evaluated(given, windows, level).value,
            target,
            low=general_budget(target, given.chain.require_size("an exact count")),
        )

    def _of_two_states(
        self, given: _Case, arrays: TwoStateChain, epsilon: float
    ) -> Leakage:
        """Return the value that a count attains on a positively dependent chain.

        On other chains, where no count may attain it, what no mechanism exceeds.
        """
        found = TwoStateTheorem().at(arrays, epsilon)
        same: dict[str, Any] = {
            "method": self.name,
            "mechanisms": _MECHANISM,
            "scope": given.query.scope(),
        }
        if not given.attained:
            return replace(found, tight=None, **same)
        note = "seeing a noisy count below or above every possible one attains it"
        return replace(
            found,
            theorem=f"{found.theorem}, attained by the count",
            checked=(*found.checked, "neighbouring records are positively dependent"),
            witness=_noted(found.witness, note),
            **same,
        )

    def _evaluated(
        self, given: _Case, windows: CountWindows, epsilon: float
    ) -> Leakage:
        size = windows.length
        worst = windows.largest(epsilon)
        # Rounding of sums of n terms, relative to the noise that they weigh.
        error = 1e-14 * size * min(1.0, epsilon * size)
        value = inflate(worst.value + error, _MARGIN) if worst.value > 0 else 0.0
        return self.stated(
            min(value, general_leakage(epsilon, size).value),
            checked=(f"every window of {size} records was evaluated",),
            witness=_witness(worst),
            tight=True,
            mechanisms=_MECHANISM,
            scope=given.query.scope(),
        )

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason where an evaluation takes more than a second."""
        if model.states == 2 and _is_positive(model):
            return None
        if _is_feasible(model, _MOST) and not _is_feasible(model, _CHEAP):
            return (
                "the exact count takes long for "
                f"{model.size} records on {model.states} states"
            )
        return None


def _counted(model: Any, query: Query) -> Any:
    if not isinstance(query, CountQuery):
        raise NotApplicable(
            "the exact count needs a counting query with Laplace noise, got "
            f"{query.name!r}; use method 'two-state', 'pairwise' or 'projective'."
        )
    stray = [z for z in sorted(query.states) if z >= model.states]
    if stray:
        raise ModelError(
            f"states must be among 0..{model.states - 1} of the chain, got {stray[0]}."
        )
    return np.isin(np.arange(model.states), sorted(query.states)).astype(np.int64)


def _is_positive(model: Any) -> bool:
    trace = model.kernels[:, 0, 0] + model.kernels[:, 1, 1]
    return bool((trace >= 1).all())


def _is_feasible(model: Any, most: float) -> bool:
    if model.size is None:
        return False
    n, s = model.size, model.states
    cost = float(n * (s + 1)) ** 2 * n * s * (n + s)
    uniform = model.is_homogeneous and model.is_positive
    return bool(cost * (1 if uniform else n) <= most)


def _windows(model: Any, counted: Any) -> CountWindows:
    kernels = model.transition if model.is_homogeneous else model.steps()
    require_start(model, "count")
    return CountWindows(kernels, model.initial_law(), model.size, counted)


def _too_long(model: Any) -> str:
    count = "any number of" if model.size is None else f"{model.size}"
    return (
        "the exact count evaluates every window, which needs a short chain, got "
        f"{count} records on {model.states} states; use method 'pairwise' or "
        "'projective', which bound every mechanism."
    )


def _witness(worst: WorstCount) -> Witness | None:
    if worst.pair is None:
        return None
    known = dict(end for end in (worst.left_end, worst.right_end) if end is not None)
    return adversary_witness(
        Adversary(worst.target, known, known),
        pair=worst.pair,
        output=worst.output,
        note="on top of the known records; all records beyond these are known",
    )


def _noted(witness: Witness | None, note: str) -> Witness | None:
    if witness is None:
        return None
    return Witness(witness.kind, f"{witness.summary}; {note}", witness.details)


# Exactly what a noisy count leaks: every window, every pair, every output.
#
# Records beyond the nearest known ones add the same noise to both hypotheses, so the
# worst attacker knows everything outside one stretch of unknown records around the
# target. The law of the count in that stretch is a convolution of a left and a right
# part; after Laplace noise its ratio is largest at one of the counts themselves.

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

"""Two states: exactly what epsilon-DP releases leak about a Markov chain.

On two states the largest leakage over *all* epsilon-DP mechanisms and all attackers
is computed, not bounded: the target's two sides are independent given it, each side
is carried by two numbers, and randomized response attains the result. The theorem and
its proof are on the theory page *Markov chains on two states*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_positive
from undertow.correlation.group import general_leakage
from undertow.correlation.level import check_level, level_by_batches
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import (
    closed_value,
    projective_diameter,
    require_dp,
)
from undertow.correlation.query import Query
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Array
from undertow.numeric.rounding import inflate
from undertow.results import Witness

# Records of a changing chain up to which method="best" follows every window.
_CHEAP_LISTED = 500
# Ends of the bracket that agree to this share count as one number.
_AGREE = 1e-10


def two_state_leakage(
    transition: ArrayLike,
    epsilon: float,
    *,
    initial: ArrayLike | None = None,
    length: int | None = None,
) -> Leakage:
    r"""Return the largest leakage of any `epsilon`-DP mechanism on a two-state chain.

    .. math:: \mathrm{BDPL} = \varepsilon + \max\left(\max r^+_\text{left} + \max
        r^+_\text{right},\; \max r^-_\text{left} + \max r^-_\text{right}\right)

    with :math:`r^\pm` how far the unknown records of a window move the log ratio of the
    two secrets up and down, and maxima over the windows of each side.

    Parameters
    ----------
    transition : array_like of shape (2, 2), or sequence of such
        Row-stochastic ``P[now, next]``; one for each step of a time-varying chain.
        Zeros are allowed.
    epsilon : float
        DP level; non-negative and finite.
    initial : array_like of shape (2,), optional
        Law of the first record; stationary by default.
    length : int, optional
        Number of records; left out, the supremum over all lengths.

    Returns
    -------
    Leakage
        The upper end of a certified bracket, raised by a relative 1e-12 and 1e-14 for
        each record followed; `tight` where the two ends agree to 1e-10. The witness is
        the attacker and the pair; randomized response on every record attains it.

    Raises
    ------
    NotApplicable
        If the chain does not have two states, is time-varying and longer than 4096
        records, or never mixes and is longer than 4096 records.

    Notes
    -----
    Proved on the theory page. Checked: the number of states. Time: as many steps as
    windows matter, the same for a thousand records and a million.

    Examples
    --------
    >>> P = [[0.882, 0.118], [0.305, 0.695]]
    >>> round(two_state_leakage(P, 1.0).value, 8)
    3.47487338
    >>> round(two_state_leakage(P, 1.0, length=5).value, 8)
    2.87765377
    >>> found = two_state_leakage([[0, 1], [1, 0]], 0.5, initial=[0.5, 0.5], length=4)
    >>> round(found.value, 9), found.tight
    (2.0, True)
    """
    chain = MarkovChain(transition, initial, length)
    return TwoStateTheorem().at(chain_arrays(chain), check_level(epsilon))


def two_state_budget(
    transition: ArrayLike,
    target: float,
    *,
    initial: ArrayLike | None = None,
    length: int | None = None,
) -> float:
    """Return the largest DP level at which :func:`two_state_leakage` is in `target`.

    The lower end of a bracket of relative width 1e-13, on the raised leakage itself.

    Examples
    --------
    >>> round(two_state_budget([[0.882, 0.118], [0.305, 0.695]], 1.0), 6)
    0.250326
    """
    chain = MarkovChain(transition, initial, length)
    target = check_positive(target, "target")
    return TwoStateTheorem().within(chain_arrays(chain), target)


class TwoStateTheorem(FormulaTheorem):
    """The exact conversion for chains on two states."""

    name = "two-state"
    source = "exact conversion for two-state chains"
    published = False
    checked = ("records have two states",)

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Say why long chains that change are left out: each end is followed."""
        if (
            model.states == 2
            and not model.is_homogeneous
            and model.length > _CHEAP_LISTED
        ):
            return (
                f"two-state conversion of a changing chain of {model.length} records "
                "takes minutes"
            )
        return None

    def read(self, model: Any, query: Query) -> TwoStateChain:
        """Return the chain as plain arrays."""
        require_dp(query, self.name)
        if model.states == 2:
            require_start(model, self.name)
        return chain_arrays(model)

    def at(self, given: TwoStateChain, epsilon: float) -> Leakage:
        """Return the largest leakage of any mechanism, with the worst attacker."""
        found = evaluate(given, np.array([epsilon]))
        low, high = float(found.low[0]), float(found.high[0])
        return self.stated(
            high,
            witness=_witness(found.worst, given, epsilon),
            tight=True if high - low <= _AGREE * high else None,
        )

    def within(self, given: TwoStateChain, target: float) -> float:
        """Return its inverse, by trying several levels at a time."""
        closed = False

        def leaks(levels: list[float]) -> list[float]:
            nonlocal closed
            array = np.array(levels)
            if closed:
                limits: list[float] = caps(given, array).tolist()
                return limits
            bracket = evaluate(given, array)
            least = int(array.argmin())
            # Where records that are followed do not show the least level to be within
            # the target, and the closed form does, they show none above it either.
            closed = bool(bracket.followed[least] > target >= bracket.high[least])
            ends: list[float] = bracket.high.tolist()
            return ends

        return level_by_batches(leaks, target, name="the two-state conversion")


def chain_arrays(chain: MarkovChain) -> TwoStateChain:
    """Return a two-state model as plain arrays, or say which method fits it."""
    if chain.states != 2:
        raise NotApplicable(
            f"the two-state conversion needs 2 states, got {chain.states}; use method "
            "'pairwise', 'box' or 'projective'."
        )
    kernels = chain.transition if chain.is_homogeneous else chain.steps()
    return TwoStateChain(kernels, chain.initial_law(), chain.length)


def require_start(chain: MarkovChain, name: str) -> None:
    """Refuse a chain without a law of the first record, given or stationary."""
    try:
        chain.initial_law()
    except ModelError as problem:
        raise NotApplicable(
            f"method {name!r} needs the law of the first record: {problem}"
        ) from None


def _witness(
    worst: Worst | None, chain: TwoStateChain, epsilon: float
) -> Witness | None:
    if worst is None:
        return None
    known = dict(end for end in (worst.left_end, worst.right_end) if end is not None)
    alike, opposite = chain.signs
    value = worst.favoured
    pattern = "the values that go with it"
    if alike or opposite:
        pattern = f"{value}" if alike else f"{1 - value} and {value} in turn"
    flip = 1 / (1 + math.exp(min(epsilon, 700.0)))
    note = (
        f"{worst.left_count} unknown records before it and {worst.right_count} after "
        "it up to the nearest known ones or the end of the chain; attained by "
        f"randomized response that flips each record with probability {flip:.6g} and "
        f"reports {value} for the target, {pattern} outwards for the unknown records"
    )
    return adversary_witness(
        Adversary(worst.target, known, known), pair=(value, 1 - value), note=note
    )


# From the windows of each side to the leakage of a whole two-state chain.


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


# How much the unknown records on one side of a target add, for two states.
#
# A window is a stretch of unknown records next to the target, ended by a known record
# or by the end of the chain. On two states a positive function is, up to scale, one
# number, the log ratio :math:`r = \ln f(0)/f(1)`, and a kernel moves it monotonically,
# so that the interval of all r that epsilon-DP mechanisms can cause is carried exactly
# by its two ends, here kept as two non-negative numbers: how far up r can go, and how
# far down.

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

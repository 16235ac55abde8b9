r"""Two states: exactly what epsilon-DP releases leak about a Markov chain.

On two states the largest leakage over *all* epsilon-DP mechanisms and all attackers is
computed, not bounded: the target's two sides are independent given it, each side is
carried by two numbers, and randomized response attains the result. The theorem and its
proof are on the theory page *Markov chains on two states*.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from undertow._numeric import nudge_down
from undertow._validate import check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.closed import require_dp
from undertow.correlation.markov.two_state_bracket import (
    TwoStateChain,
    Worst,
    caps,
    evaluate,
)
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import InfeasibleTarget, ModelError, NotApplicable
from undertow.privacy.result import Witness

__all__ = [
    "TwoStateMethod",
    "chain_arrays",
    "require_start",
    "two_state_budget",
    "two_state_leakage",
]

# Records of a changing chain up to which method="best" follows every window.
_LISTED = 500
_THEOREM = "exact conversion for two-state chains"
# Ends of the bracket that agree to this share count as one number.
_AGREE = 1e-10
# Levels tried together when the conversion is inverted, and the final width.
_TRIED = 16
_HALVED = 64
_WIDTH = 1e-13
_SMALLEST = 1e-300


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
    epsilon = check_level(epsilon)
    chain = MarkovChain(transition, initial, length)
    return _chain_leakage(chain_arrays(chain), epsilon)


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
    target = check_positive(target, "target")
    chain = MarkovChain(transition, initial, length)
    return _chain_budget(chain_arrays(chain), target)


class TwoStateMethod(Method):
    """The exact conversion for chains on two states."""

    name: ClassVar[str] = "two-state"
    theorem: ClassVar[str] = _THEOREM
    published: ClassVar[bool] = False

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Say why long chains that change are left out: each end is followed."""
        if model.states == 2 and not model.is_homogeneous and model.length > _LISTED:
            return (
                f"two-state conversion of a changing chain of {model.length} records "
                "takes minutes"
            )
        return None

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the largest leakage of any mechanism, with the worst attacker."""
        require_dp(query, self.name)
        if model.states == 2:
            require_start(model, self.name)
        return _chain_leakage(chain_arrays(model), check_level(epsilon))

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return its inverse, by trying several levels at a time."""
        require_dp(query, self.name)
        if model.states == 2:
            require_start(model, self.name)
        return _chain_budget(chain_arrays(model), check_positive(target, "target"))


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


def _chain_leakage(chain: TwoStateChain, epsilon: float) -> Leakage:
    found = evaluate(chain, np.array([epsilon]))
    low, high = float(found.low[0]), float(found.high[0])
    return Leakage(
        high,
        _THEOREM,
        checked=("records have two states",),
        witness=_witness(found.worst, chain, epsilon),
        tight=True if high - low <= _AGREE * high else None,
        method="two-state",
    )


def _chain_budget(chain: TwoStateChain, target: float) -> float:
    closed = False

    def leaks(levels: list[float]) -> list[float]:
        nonlocal closed
        array = np.array(levels)
        if closed:
            limits: list[float] = caps(chain, array).tolist()
            return limits
        bracket = evaluate(chain, array)
        least = int(array.argmin())
        # Where records that are followed do not show the least level to be within the
        # target, and the closed form does, they show none above it either.
        closed = bool(bracket.followed[least] > target >= bracket.high[least])
        ends: list[float] = bracket.high.tolist()
        return ends

    low, high = _halve(leaks, target)
    while high.level - low.level > _WIDTH * high.level:
        tried = _near_crossing(low, high, target)
        for point in map(_Point, tried, leaks(tried)):
            if point.leak > target:
                high = point
                break
            low = point
    level = low.level
    while not leaks([level])[0] <= target:  # alone, a level may round differently
        level = nudge_down(level, 8)
    return level


class _Point(NamedTuple):
    level: float
    leak: float


def _near_crossing(low: _Point, high: _Point, target: float) -> list[float]:
    """Return levels between two, most of them near where the line crosses the target.

    The leakage is smooth almost everywhere, so that the crossing of the line is wrong
    by about the square of the distance, and each round doubles the digits.
    """
    width = high.level - low.level
    share = 0.5
    if high.leak < math.inf:
        share = (target - low.leak) / (high.leak - low.leak)
    guess = low.level + share * width
    offsets = [width * 8.0**-k for k in range(1, _TRIED // 2)]
    near = {guess, *(guess + x for x in offsets), *(guess - x for x in offsets)}
    middle = low.level + width / 2
    return sorted(x for x in {middle, *near} if low.level < x < high.level) or [middle]


def _halve(
    leaks: Callable[[list[float]], list[float]], target: float
) -> tuple[_Point, _Point]:
    """Return neighbouring powers of a half of the target, the lower one within it."""
    high, levels = _Point(target, math.inf), [target]
    while high.level > _SMALLEST:
        levels += [high.level * 2.0**-k for k in range(1, _HALVED + 1)]
        for point in map(_Point, levels, leaks(levels)):
            if point.leak <= target:  # the target itself where nothing depends
                return point, point if point.level == target else high
            high = point
        levels = []
    raise InfeasibleTarget(
        f"target must be above what the two-state conversion can reach, got {target}; "
        "use method 'general' with a length.",
        least=target,
    )


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

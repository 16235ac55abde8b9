r"""Several states: a bound close to the exact leakage, from programs of pairs.

The theorem and its proof are on the theory page *Markov chains on several states*.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate
from undertow._validate import check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.general import general_leakage
from undertow.correlation.markov.box import BoxMethod
from undertow.correlation.markov.box_search import largest_level
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.closed import (
    closed_value,
    projective_budget,
    require_dp,
)
from undertow.correlation.markov.pairwise_windows import (
    PairWindows,
    cross_ratio_step,
    pair_windows,
)
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable

__all__ = [
    "BoxMethod",
    "PairwiseMethod",
    "pairwise_budget",
    "pairwise_leakage",
]

Array = NDArray[np.float64]

_THEOREM = "pairwise recursion for Markov chains"
_MARGIN = 1e-12
# Most unknown records on one side that are followed for every known end, and most for
# which targets are told apart by their distance to the ends of the chain.
_LONGEST_FEW, _LONGEST_MANY = 256, 12
_SHORT_FEW, _SHORT_MANY = 32, 4
_FEW = 16
# Most states tried by method="best", and most records of a time-varying chain.
_CHEAP_STATES = 12
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
    >>> from undertow.correlation.markov.closed import projective_leakage
    >>> from undertow.correlation.markov.ratio import projective_diameter
    >>> round(projective_leakage(1.0, projective_diameter(P)).value, 3)
    4.814
    """
    chain = MarkovChain(transition, initial, length)
    return _chain_leakage(chain, check_level(epsilon))


def pairwise_budget(
    transition: ArrayLike,
    target: float,
    *,
    initial: ArrayLike | None = None,
    length: int | None = None,
) -> float:
    """Return a DP level, to a share 1e-9, whose pairwise bound is within `target`.

    Examples
    --------
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
    >>> level = pairwise_budget(P, 1.0)
    >>> bool(1 - 1e-8 < pairwise_leakage(P, level).value <= 1)
    True
    """
    chain = MarkovChain(transition, initial, length)
    return _chain_budget(chain, check_positive(target, "target"))


class PairwiseMethod(Method):
    """The pairwise recursion, for chains of any number of states."""

    name: ClassVar[str] = "pairwise"
    theorem: ClassVar[str] = _THEOREM
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the bound for any mechanism."""
        require_dp(query, self.name)
        return _chain_leakage(model, check_level(epsilon))

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return a level whose bound is within the target, to a share 1e-9."""
        require_dp(query, self.name)
        return _chain_budget(model, check_positive(target, "target"))

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason for more than 12 states, and for two, which are exact."""
        if model.states == 2:
            return "the pairwise recursion adds nothing to the exact two-state method"
        if model.states > _CHEAP_STATES:
            return (
                f"the pairwise recursion takes long for more than {_CHEAP_STATES} "
                f"states, got {model.states}"
            )
        return None


def _chain_budget(chain: MarkovChain, target: float) -> float:
    _require_positive(chain)
    low = projective_budget(target, chain.diameter, size=chain.size)
    return largest_level(lambda level: _value(chain, level), target, low=low)


def _chain_leakage(chain: MarkovChain, epsilon: float) -> Leakage:
    _require_positive(chain)
    return Leakage(
        _value(chain, epsilon),
        _THEOREM,
        checked=("every transition has a positive probability",),
        witness=adversary_witness(
            Adversary(0 if chain.size is None else chain.size // 2),
            note="a record inside a stretch of unknown ones",
        ),
        method="pairwise",
    )


def _value(chain: MarkovChain, epsilon: float) -> float:
    """Return the bound, raised for rounding and capped by the closed form."""
    cap = closed_value(epsilon, chain.diameter)
    if chain.size is not None:
        cap = min(cap, general_leakage(epsilon, chain.size).value)
    if epsilon == 0 or chain.size == 1 or cap > _STEEP:
        return cap
    if chain.is_homogeneous:
        found = _homogeneous(chain, epsilon)
    else:
        found = _time_varying(chain.steps(), epsilon)
    return min(cap, inflate(found, _MARGIN))


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


def _time_varying(kernels: Array, epsilon: float) -> float:
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

r"""Many states: a bound from hockey-stick divergences of rows, up to 1000 states.

The pairwise recursion with one number for all pairs: functions of the next state that
oscillate by at most a are, at worst, two-valued, and a step lets through

.. math:: \max_{x, x', T} \ln\frac{1 + (e^a - 1) p_x(T)}{1 + (e^a - 1) p_{x'}(T)}.

The theorem and its proof are on the theory page *Markov chains on several states*.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate
from undertow._validate import check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.general import general_leakage
from undertow.correlation.markov.box_search import BoxSide, largest_level
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.closed import (
    closed_value,
    influence,
    projective_budget,
    require_dp,
)
from undertow.correlation.markov.pairwise_windows import pair_diameters
from undertow.correlation.method import Method, check_level
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable

__all__ = ["BoxMethod", "box_budget", "box_leakage"]

Array = NDArray[np.float64]

_THEOREM = "box recursion for Markov chains"
_MARGIN = 1e-11
# Most states tried by method="best".
_CHEAP_STATES = 200


def box_leakage(
    transition: ArrayLike,
    epsilon: float,
    *,
    initial: ArrayLike | None = None,
    length: int | None = None,
) -> Leakage:
    r"""Bound the leakage of any `epsilon`-DP mechanism on a chain of many states.

    Parameters
    ----------
    transition : array_like of shape (s, s), or sequence of such
        Row-stochastic and positive.
    epsilon : float
        DP level; non-negative and finite.
    initial : array_like of shape (s,), optional
        Law of the first record; the bound holds for each, this one is not read.
    length : int, optional
        Number of records; caps the bound at ``length * epsilon``.

    Returns
    -------
    Leakage
        Never above the projective bound.

    Raises
    ------
    NotApplicable
        If a transition is impossible.

    Notes
    -----
    Proved on the theory page. An upper bound for every attacker, start and length:
    windows of up to M unknown records are bounded by the projective diameter, longer
    ones by the rows of the matrix with a slack for what ends the window; M is the best.
    Time O(s^3) with a few passes over all pairs of rows: about ten seconds for 1000
    states. A time-varying chain is bounded by its diameters, step by step.

    Examples
    --------
    >>> P = np.full((20, 20), 0.03) + 0.4 * np.eye(20)
    >>> round(box_leakage(P, 0.1).value, 4)
    0.8554
    >>> from undertow.correlation.markov.closed import projective_leakage
    >>> from undertow.correlation.markov.ratio import projective_diameter
    >>> round(projective_leakage(0.1, projective_diameter(P)).value, 4)
    1.4044
    """
    chain = MarkovChain(transition, initial, length)
    return _chain_leakage(chain, _Sides(chain), check_level(epsilon))


def box_budget(
    transition: ArrayLike,
    target: float,
    *,
    initial: ArrayLike | None = None,
    length: int | None = None,
) -> float:
    """Return a DP level, to a share 1e-9, whose box bound is within `target`."""
    chain = MarkovChain(transition, initial, length)
    return _chain_budget(chain, check_positive(target, "target"))


class BoxMethod(Method):
    """The box recursion, for chains of up to a thousand states."""

    name: ClassVar[str] = "box"
    theorem: ClassVar[str] = _THEOREM
    published: ClassVar[bool] = False

    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the bound for any mechanism, start and length."""
        require_dp(query, self.name)
        return _chain_leakage(model, _Sides(model), check_level(epsilon))

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return a level whose bound is within the target, to a share 1e-9."""
        require_dp(query, self.name)
        return _chain_budget(model, check_positive(target, "target"))

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return a reason for more than 200 states, and for two, which are exact."""
        if model.states == 2:
            return "the box recursion adds nothing to the exact two-state method"
        if model.states > _CHEAP_STATES:
            return (
                f"the box recursion takes long for more than {_CHEAP_STATES} states, "
                f"got {model.states}"
            )
        return None


class _Sides:
    """Both sides of a homogeneous chain, prepared once for many levels."""

    def __init__(self, chain: MarkovChain) -> None:
        if not chain.is_positive:
            raise NotApplicable(
                "the box recursion needs transitions of positive probability, got a "
                "zero; use method 'steps', or 'general' with a length."
            )
        self._chain = chain
        self._sides: tuple[BoxSide, ...] = ()
        if chain.is_homogeneous:
            P = chain.transition
            self._sides = (
                BoxSide(P, np.ones(len(P))),
                BoxSide(np.ascontiguousarray(P.T), chain.stationary()),
            )

    def value(self, epsilon: float) -> float:
        """Return the bound, raised for rounding and capped by the closed form."""
        cap = closed_value(epsilon, self._chain.diameter)
        if self._chain.size is not None:
            cap = min(cap, general_leakage(epsilon, self._chain.size).value)
        if epsilon == 0 or self._chain.size == 1:
            return cap
        if self._sides:
            # epsilon + d of the closed form, which bounds every window on one side
            ceiling = (closed_value(epsilon, self._chain.diameter) + epsilon) / 2
            right, left = (side.bound(epsilon, ceiling) for side in self._sides)
            found = epsilon + float((left + right).max())
        else:
            found = _time_varying(self._chain.steps(), epsilon)
        return min(cap, inflate(found, _MARGIN))


def _time_varying(kernels: Array, epsilon: float) -> float:
    """Carry one oscillation for each side along a chain with changing kernels."""
    diameters = [float(pair_diameters(kernel).max()) for kernel in kernels]
    right, left = [0.0], [0.0]
    for back, forth in zip(reversed(diameters), diameters, strict=True):
        right.append(influence(epsilon + right[-1], back))
        left.append(influence(epsilon + left[-1], forth))
    return epsilon + max(a + b for a, b in zip(left, reversed(right), strict=True))


def _chain_leakage(chain: MarkovChain, sides: _Sides, epsilon: float) -> Leakage:
    return Leakage(
        sides.value(epsilon),
        _THEOREM,
        checked=("every transition has a positive probability",),
        witness=adversary_witness(
            Adversary(0 if chain.size is None else chain.size // 2),
            note="a record inside a stretch of unknown ones",
        ),
        method="box",
    )


def _chain_budget(chain: MarkovChain, target: float) -> float:
    sides = _Sides(chain)
    low = projective_budget(target, chain.diameter, size=chain.size)
    return largest_level(sides.value, target, low=low)

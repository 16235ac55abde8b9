"""One way to bound leakage: from a DP level to a leakage, and back.

A method is a theorem made callable. It either applies to a model and a query, and then
returns a proved :class:`Leakage`, or it raises :class:`NotApplicable` with the failed
condition and the number that failed it; it never guesses. The inverse returns a DP
level whose *recomputed* leakage is at most the target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

from undertow._numeric import nudge_down
from undertow._validate import check_non_negative, check_positive
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import InfeasibleTarget

__all__ = [
    "Method",
    "check_level",
    "largest_epsilon",
    "scaled_down",
    "state_methods",
    "stated_methods",
]

# Bisection on the logarithm of epsilon stops at this relative width, below the
# tolerance to which conversions are asked to round-trip.
_RELATIVE_WIDTH = 1e-13
_SMALLEST = 1e-300


class Method(ABC):
    """A theorem that turns a DP level into a leakage under a model.

    Subclasses set `name` and `theorem`, and `published` to False for results that are
    not in the sources (these are proved in this documentation).
    """

    name: ClassVar[str]
    theorem: ClassVar[str]
    published: ClassVar[bool] = True

    @abstractmethod
    def leakage(self, model: Any, epsilon: float, *, query: Query) -> Leakage:
        """Return the leakage of an `epsilon`-DP release of `query` under `model`.

        Raises
        ------
        NotApplicable
            If a hypothesis fails; the message names it and the number.
        """

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return why ``method="best"`` should not try this model, if it should not.

        A method asked for by name is always tried.
        """
        return None

    def budget(self, model: Any, target: float, *, query: Query) -> float:
        """Return the largest DP level found whose leakage is at most `target`.

        The default bisects :meth:`leakage`, which must not decrease in epsilon.

        Raises
        ------
        NotApplicable
            If a hypothesis fails.
        InfeasibleTarget
            If no positive DP level stays within the target.
        """
        return largest_epsilon(
            lambda epsilon: self.leakage(model, epsilon, query=query).value,
            target,
            name=self.name,
        )


_STATED: dict[type, tuple[Method, ...]] = {}


def state_methods(kind: type, *methods: Method) -> None:
    """Say which methods may bound leakage under a kind of model, the strongest first.

    A package says so in its ``__init__``, above its models and its theorems, so that
    a model need not import the theorems about it.
    """
    _STATED[kind] = methods


def stated_methods(model: Any) -> tuple[Method, ...]:
    """Return the methods stated for a model's class, or for the nearest one above it.

    Examples
    --------
    >>> from undertow.correlation import JointTable
    >>> [method.name for method in stated_methods(JointTable([[0.5, 0], [0, 0.5]]))]
    ['laplace-exact', 'program', 'general']
    """
    kinds = (kind for kind in type(model).__mro__ if kind in _STATED)
    return _STATED[next(kinds)]


def largest_epsilon(
    leakage_at: Any, target: float, *, name: str = "this method"
) -> float:
    """Return the greatest DP level, to 1e-13, at which `leakage_at` is within `target`.

    Parameters
    ----------
    leakage_at : callable
        Leakage as a non-decreasing function of epsilon, at least epsilon itself.
    target : float
        Positive and finite.
    name : str
        What to call the method in a refusal.

    Returns
    -------
    float
        A level at which `leakage_at` was evaluated and found at most `target`.

    Examples
    --------
    >>> round(largest_epsilon(lambda epsilon: 3 * epsilon, 1.0), 12)
    0.333333333333
    """
    target = check_positive(target, "target")
    high = target  # no release leaks less than its DP level
    if leakage_at(high) <= target:
        return high
    low, step = high / 2, 2.0
    while leakage_at(low) > target:
        # Small targets need small levels: the step grows, but stays a step.
        high, step = low, min(step * step, 2.0**64)
        low = low / step
        if low < _SMALLEST:
            raise InfeasibleTarget(
                f"target must be above what {name} can reach, got {target}; use the "
                "general bound, which reaches every target.",
                least=target,
            )
    while high - low > _RELATIVE_WIDTH * high:
        middle = (
            math.sqrt(low) * math.sqrt(high) if high > 4 * low else (low + high) / 2
        )
        if not low < middle < high:
            break
        if leakage_at(middle) <= target:
            low = middle
        else:
            high = middle
    return low


def check_level(epsilon: float) -> float:
    """Return `epsilon` as a finite, non-negative DP level."""
    number = check_non_negative(epsilon, "epsilon")
    if number == math.inf:
        raise ValueError("epsilon must be finite, got inf.")
    return number


def scaled_down(target: float, factor: float) -> float:
    """Return ``target / factor`` rounded so that ``factor`` times it stays within."""
    level = target / factor
    while Fraction(level) * Fraction(factor) > Fraction(target):
        level = nudge_down(level)
    return level

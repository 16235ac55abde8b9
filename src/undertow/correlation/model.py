"""How records depend, and what a theorem about it is.

A :class:`Model` is a law of the records, or a class of laws; it knows how to sample,
to condition on known records, and which methods apply to it. A :class:`Method` is a
theorem made callable: it returns a proved
:class:`~undertow.correlation.result.Leakage`, or raises
:class:`~undertow.errors.NotApplicable` with the condition that failed and the number
that failed it; it never guesses. Its inverse returns a DP level whose *recomputed*
leakage is at most the target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_index, check_non_negative, check_positive
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import InfeasibleTarget, ModelError
from undertow.numeric.rounding import nudge_down

Known = Mapping[int, Any]
"""Values of known records, by index."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a model takes for granted: what was checked, what must be trusted."""

    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


class Model(ABC):
    """A law of the records X_0, ..., X_{n-1}: how they depend on each other.

    A model knows how to sample, to condition on known records, which assumptions it
    checked, and which methods bound the leakage under it. Leakage is
    computed by :func:`undertow.correlation.leakage`, noise by
    :func:`undertow.correlation.calibrate`.
    """

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Number of records; None if the model is meant for every length."""

    @property
    @abstractmethod
    def largest_group(self) -> int | None:
        """Most records that depend on each other; None if there is no limit."""

    @property
    def value_range(self) -> tuple[float, float] | None:
        """Least and greatest value of a record; None if unbounded or not numeric."""
        return None

    @property
    @abstractmethod
    def summary(self) -> str:
        """The model in one line of words."""

    @abstractmethod
    def methods(self) -> tuple[Method, ...]:
        """Return the methods that may bound leakage, the strongest first."""

    def assumptions(self) -> Assumptions:
        """Return what was checked of the model and what must be trusted."""
        return Assumptions(unchecked=("the model is the law of the data",))

    @abstractmethod
    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `count` databases; one row each, one column a record."""

    @abstractmethod
    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw `count` databases given the values of the `known` records."""

    def given(self, known: Known) -> Conditional:
        """Return the law of the other records given the `known` ones."""
        return Conditional(self, self.check_known(known))

    def require_size(self, what: str) -> int:
        """Return the number of records, or say that `what` needs one."""
        if self.size is None:
            raise ModelError(
                f"{what} needs a number of records, got None; give the model a length."
            )
        return self.size

    def check_known(self, known: Known) -> dict[int, Any]:
        """Return `known` with its indices checked against the size."""
        size = self.require_size("conditioning on known records")
        return {check_index(j, "known record", size=size): v for j, v in known.items()}


@dataclass(frozen=True)
class Conditional:
    """A model given the values of some records.

    Parameters
    ----------
    model : Model
        The law of all records.
    known : mapping of int to object
        The values of the known records.
    """

    model: Model
    known: Known

    @property
    def unknown(self) -> tuple[int, ...]:
        """Indices of the records that are not known."""
        size = self.model.require_size("conditioning on known records")
        return tuple(j for j in range(size) if j not in self.known)

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `count` databases; the known columns are constant."""
        return self.model.sample_given(self.known, count, rng=rng)


# One way to bound leakage: from a DP level to a leakage, and back.
#
# A method is a theorem made callable. It either applies to a model and a query, and
# then returns a proved :class:`Leakage`, or it raises :class:`NotApplicable` with the
# failed condition and the number that failed it; it never guesses. The inverse returns
# a DP level whose *recomputed* leakage is at most the target.

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

"""What a theorem about leakage is: from a DP level to a leakage, and back.

A :class:`LeakageTheorem` either applies to a model and a query, and then returns a
proved :class:`~undertow.correlation.result.Leakage`, or raises
:class:`~undertow.errors.NotApplicable` with the condition that failed and the number
that failed it; it never guesses. Its inverse returns a DP level whose *recomputed*
leakage is at most the target. Most theorems read a few numbers off the model and are a
formula in them (:class:`FormulaTheorem`), often a multiple of the level
(:class:`FactorTheorem`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from undertow._validate import check_positive
from undertow.correlation.level import check_level, largest_level
from undertow.correlation.query import AnyQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable
from undertow.numeric.exact import exact, round_up_decimal
from undertow.theorem import EVERY, PUBLISHED, Choice, Theorem, best, select

ANY = AnyQuery()
"""The query of whoever says nothing of it: any mechanism at all."""

V = TypeVar("V")


class LeakageTheorem(Theorem):
    """A theorem that turns a DP level into a leakage under a model.

    Subclasses set `name` and `source`, and `published` to False for results that are
    not in the sources (these are proved in this documentation).
    """

    @abstractmethod
    def bound(self, model: Any, epsilon: float, /, *, query: Query = ANY) -> Leakage:
        """Return the leakage of an `epsilon`-DP release of `query` under `model`.

        Raises
        ------
        NotApplicable
            If a hypothesis fails; the message names it and the number.
        """

    def invert(self, model: Any, target: float, /, *, query: Query = ANY) -> float:
        """Return the largest DP level found whose leakage is at most `target`.

        The default bisects :meth:`bound`, which must not decrease in epsilon.

        Raises
        ------
        NotApplicable
            If a hypothesis fails.
        InfeasibleTarget
            If no positive DP level stays within the target.
        """
        return largest_level(
            lambda epsilon: self.bound(model, epsilon, query=query).value,
            target,
            name=self.name,
        )

    def too_costly(self, model: Any, *, query: Query) -> str | None:
        """Return why ``method="best"`` should not try this model, if it should not.

        A method asked for by name is always tried.
        """
        return None


class FormulaTheorem(LeakageTheorem):
    """A theorem that is a formula in what it reads off the model and the query.

    Subclasses say what that is (:meth:`read`), the formula (:meth:`at`), and its
    inverse (:meth:`within`) where there is a better one than a search.
    """

    @abstractmethod
    def read(self, model: Any, query: Query) -> Any:
        """Return what the formula needs of a model and a query, or refuse.

        Raises
        ------
        NotApplicable
            If a hypothesis fails; the message names it and the number.
        """

    @abstractmethod
    def at(self, given: Any, epsilon: float) -> Leakage:
        """Return the formula at a DP level, given what was read."""

    def within(self, given: Any, target: float) -> float:
        """Return the largest DP level found at which the formula is within a target."""
        return largest_level(
            lambda epsilon: self.at(given, epsilon).value, target, name=self.name
        )

    def bound(self, model: Any, epsilon: float, /, *, query: Query = ANY) -> Leakage:
        """Return the leakage of an `epsilon`-DP release of `query` under `model`."""
        return self.at(self.read(model, query), check_level(epsilon))

    def invert(self, model: Any, target: float, /, *, query: Query = ANY) -> float:
        """Return the largest DP level found whose leakage is at most `target`."""
        return self.within(self.read(model, query), check_positive(target, "target"))

    def stated(self, value: float, **more: Any) -> Leakage:
        """Return a leakage by this theorem, with more fields of it."""
        stated = {
            "theorem": self.source,
            "checked": self.checked,
            "unchecked": self.unchecked,
            "method": self.name,
        }
        return Leakage(value, **{**stated, **more})


def multiple(epsilon: float, factor: Fraction) -> float:
    """Return a factor times a DP level, rounded up."""
    return round_up_decimal(Fraction(exact(epsilon)) * factor)


# Which theorems there are about a kind of model, and the best of them.

_STATED: dict[type, tuple[LeakageTheorem, ...]] = {}


def state_methods(kind: type, *methods: LeakageTheorem) -> None:
    """Say which methods may bound leakage under a kind of model, the strongest first.

    A package says so in its ``__init__``, above its models and its theorems, so that
    a model need not import the theorems about it.
    """
    _STATED[kind] = methods


def stated_methods(model: Any) -> tuple[LeakageTheorem, ...]:
    """Return the methods stated for a model's class, or for the nearest one above it.

    Examples
    --------
    >>> from undertow.correlation import JointTable
    >>> [method.name for method in stated_methods(JointTable([[0.5, 0], [0, 0.5]]))]
    ['laplace-exact', 'program', 'general']
    """
    kinds = (kind for kind in type(model).__mro__ if kind in _STATED)
    return _STATED[next(kinds)]


def best_method(
    model: Any,
    method: str,
    evaluate: Callable[[LeakageTheorem], V],
    *,
    query: Query,
    rank: Callable[[V], float],
    otherwise: str,
) -> Choice[LeakageTheorem, V]:
    """Return the best of the methods of a model that a name stands for.

    Parameters
    ----------
    model : Model
        How the records depend.
    method : str
        ``"best"``, ``"published"``, or the name of one method, which refuses in its own
        words and is tried however long it takes.
    evaluate, rank, otherwise
        As for :func:`undertow.theorem.best`.
    query : Query
        What is released, for methods that say how long they would take.
    """

    def affordable(theorem: LeakageTheorem) -> V:
        reason = theorem.too_costly(model, query=query)
        if reason is not None and method != theorem.name:
            raise NotApplicable(f"{reason}; ask for method={theorem.name!r} by name.")
        return evaluate(theorem)

    return best(
        select(model.methods(), method, of=model.summary),
        affordable,
        rank=rank,
        otherwise=otherwise,
        named=method not in (EVERY, PUBLISHED),
    )

"""Theorems as objects, and the one way in which they compete.

A :class:`Theorem` turns what a mechanism promises into a proved bound for a case, such
as a model of the records or a threat, and often a target back into a promise. Several
may apply to one case. Each proves its bound, so the best of them is proved as well:
:func:`best` tries them all, keeps the winner, and says of every other why it lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from undertow.errors import AssumptionError, InfeasibleTarget, NotApplicable
from undertow.results import Alternative, Bound


class Theorem(ABC):
    """A statement that is proved, made callable.

    It either applies to a case, and then returns a proved bound, or it refuses with the
    condition that failed and the number that failed it; it never guesses.

    Attributes
    ----------
    name : str
        Short name by which it can be asked for, and stands in results.
    source : str
        The statement as numbered in its source, or its name on our theory pages.
    published : bool
        True for statements of the sources, False for those proved in our documentation.
    checked, unchecked : tuple of str
        Hypotheses that are checked for every case, and those taken on trust.
    """

    name: str
    source: str
    published: bool = True
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @abstractmethod
    def bound(self, case: Any, promise: Any, /) -> Bound:
        """Return what follows for `case` from what a mechanism promises.

        Parameters
        ----------
        case : object
            What the theorem is about, such as a model of the records or a threat.
        promise : object
            What the mechanism promises, such as a DP level.

        Raises
        ------
        NotApplicable
            If a hypothesis fails; the message names it and the number.
        """

    def invert(self, case: Any, target: float, /) -> Any:
        """Return the weakest promise whose recomputed bound is within `target`.

        Raises
        ------
        NotApplicable
            If a hypothesis fails, or the theorem has no inverse.
        InfeasibleTarget
            If no promise stays within the target.
        """
        raise NotApplicable(
            f"target must be for a theorem with an inverse, got {target} for "
            f"{self.name!r}, which has none; search for the promise with its bound."
        )

    def obstacle(self, case: Any, promise: Any, /) -> str | None:
        """Return why the theorem does not apply, or None where it does."""
        try:
            self.bound(case, promise)
        except AssumptionError as refusal:
            return str(refusal)
        return None

    def applies(self, case: Any, promise: Any, /) -> bool:
        """Return whether the theorem applies."""
        return self.obstacle(case, promise) is None


EVERY, PUBLISHED = "best", "published"
"""The names that stand for all theorems, and for those of the sources."""

T = TypeVar("T", bound=Theorem)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Attempt(Generic[T, V]):
    """What came of one theorem: its value, or the refusal."""

    theorem: T
    value: V | None = None
    refusal: AssumptionError | None = None


@dataclass(frozen=True, slots=True)
class Choice(Generic[T, V]):
    """The theorem that won, what it gives, and what came of all.

    Parameters
    ----------
    theorem : Theorem
        The winner.
    value : object
        What it gives.
    attempts : tuple of Attempt
        What came of every theorem, in the order in which they were given.
    """

    theorem: T
    value: V
    attempts: tuple[Attempt[T, V], ...]

    def alternatives(
        self, reason: Callable[[T, V], Alternative]
    ) -> tuple[Alternative, ...]:
        """Return why each other theorem lost: those that applied, then the others.

        Parameters
        ----------
        reason : callable
            Says why a theorem that applied, and what it gave, did not win.
        """
        lost = tuple(
            reason(each.theorem, each.value)
            for each in self.attempts
            if each.value is not None and each.theorem is not self.theorem
        )
        return lost + _refused(self.attempts)


def attempt(theorem: T, evaluate: Callable[[T], V]) -> Attempt[T, V]:
    """Return what `evaluate` gives for a theorem, or why it does not apply."""
    try:
        return Attempt(theorem, value=evaluate(theorem))
    except AssumptionError as refusal:
        return Attempt(theorem, refusal=refusal)


def best(
    theorems: Iterable[T],
    evaluate: Callable[[T], V],
    *,
    rank: Callable[[V], float],
    otherwise: str,
    named: bool = False,
) -> Choice[T, V]:
    """Try every theorem and return the one that gives the least, with all the others.

    Parameters
    ----------
    theorems : iterable of Theorem
        In the order in which they are listed, and of which the first wins a draw.
    evaluate : callable
        Returns what a theorem gives, or raises an
        :class:`~undertow.errors.AssumptionError` where it does not apply.
    rank : callable
        Number by which values are compared; the least wins.
    otherwise : str
        What to say, before all the reasons, where no theorem applies.
    named : bool
        Whether the theorem was asked for by name, and refuses in its own words.

    Raises
    ------
    NotApplicable
        If no theorem applies.

    Examples
    --------
    >>> class Factor(Theorem):
    ...     def __init__(self, name, factor):
    ...         self.name, self.source, self.factor = name, "an example", factor
    ...     def bound(self, case, promise):
    ...         if self.factor < 1:
    ...             raise NotApplicable(f"factor must be 1 or more, got {self.factor}.")
    ...         return Bound(self.factor * promise, self.source)
    >>> choice = best(
    ...     [Factor("twice", 2), Factor("thrice", 3), Factor("half", 0.5)],
    ...     lambda theorem: theorem.bound("a case", 1.0).value,
    ...     rank=float,
    ...     otherwise="no factor applies",
    ... )
    >>> choice.theorem.name, choice.value
    ('twice', 2.0)
    >>> for other in choice.alternatives(
    ...     lambda theorem, value: Alternative(theorem.name, "a larger bound", value)
    ... ):
    ...     print(other.name, other.parameter, other.reason)
    thrice 3.0 a larger bound
    half None factor must be 1 or more, got 0.5.
    """
    attempts = tuple(attempt(theorem, evaluate) for theorem in theorems)
    if named:
        _raise_own(attempts)
    given = [(each.theorem, each.value) for each in attempts if each.value is not None]
    if not given:
        reasons = " ".join(f"[{a.name}] {a.reason}" for a in _refused(attempts))
        raise NotApplicable(f"{otherwise}: {reasons}")
    winner, value = min(given, key=lambda pair: rank(pair[1]))
    return Choice(winner, value, attempts)


def _raise_own(attempts: Iterable[Attempt[Any, Any]]) -> None:
    for each in attempts:
        if each.refusal is not None:
            raise each.refusal


def _refused(attempts: Iterable[Attempt[Any, Any]]) -> tuple[Alternative, ...]:
    return tuple(
        Alternative(each.theorem.name, _words(each.refusal))
        for each in attempts
        if each.refusal is not None
    )


def _words(refusal: AssumptionError) -> str:
    if isinstance(refusal, InfeasibleTarget):
        return f"infeasible at or below {refusal.least:.6g}: {refusal}"
    return str(refusal)


def select(theorems: Iterable[T], name: str, *, of: str) -> tuple[T, ...]:
    """Return the theorems that a name stands for.

    Parameters
    ----------
    theorems : iterable of Theorem
        Those there are.
    name : str
        ``"best"`` for all, ``"published"`` for those of the sources, otherwise the name
        of one.
    of : str
        What the theorems are about, in words, for the refusal of another name.
    """
    listed = tuple(theorems)
    if name == EVERY:
        return listed
    if name == PUBLISHED:
        return tuple(theorem for theorem in listed if theorem.published)
    chosen = tuple(theorem for theorem in listed if theorem.name == name)
    if not chosen:
        known = ", ".join(repr(theorem.name) for theorem in listed)
        raise ValueError(
            f"method must be {EVERY!r}, {PUBLISHED!r} or one of {known} for {of}, got "
            f"{name!r}."
        )
    return chosen

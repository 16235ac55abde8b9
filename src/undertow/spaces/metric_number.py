"""Metrics on numbers and on vectors of numbers, never rounded down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from undertow.errors import MismatchError
from undertow.privacy.exact import Exact, Number, exact, format_up, round_up, sqrt_up
from undertow.spaces.base import Database, Domain, Metric

__all__ = ["AbsoluteDifference", "Euclidean", "LpNorm", "require_number"]

# Covers the rounding of the powers in a general norm, so that it is never too small.
_POWER_SLACK = 1e-14


@dataclass(frozen=True, slots=True)
class AbsoluteDifference(Metric):
    """Distance between two numbers: counts, sums, degrees.

    Examples
    --------
    >>> from undertow.spaces.metric import Values
    >>> AbsoluteDifference().distance(3, 5, Values())
    2.0
    """

    separates_points = True

    @property
    def name(self) -> str:
        """The name used in reports."""
        return "absolute"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the absolute difference, rounded up."""
        return _gap(require_number(first), require_number(second))


@dataclass(frozen=True, slots=True)
class LpNorm(Metric):
    r"""The :math:`\ell_p` distance between vectors of equal length.

    Parameters
    ----------
    p : int, float, str, Decimal or Fraction
        At least 1; ``inf`` for the largest coordinate difference.

    Examples
    --------
    >>> from undertow.spaces.metric import Values
    >>> LpNorm(1).distance((0, 2), (1, 0), Values())
    3.0
    """

    separates_points = True
    p: Exact

    def __init__(self, p: Number) -> None:
        order = exact(p, "p")
        if order < 1:
            raise ValueError(f"p must be at least 1, got {p}; use 1, 2 or inf.")
        object.__setattr__(self, "p", order)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"l{format_up(self.p)}"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the norm of the difference."""
        return _norm(_vector_gaps(first, second), float(self.p))


@dataclass(frozen=True, slots=True)
class Euclidean(Metric):
    """The straight-line distance between points: tuples of numbers, or numbers.

    Examples
    --------
    >>> from undertow.spaces.metric import Values
    >>> Euclidean().distance((0, 0), (3, 4), Values())
    5.0
    """

    separates_points = True

    @property
    def name(self) -> str:
        """The name used in reports."""
        return "euclidean"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the Euclidean distance."""
        return _norm(_vector_gaps(first, second), 2.0)


def require_number(value: Any) -> Real:
    """Return `value` if it is a number; the refusal never shows it."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise TypeError(
            f"the metric must compare numbers, got {type(value).__name__}; "
            "choose a view whose values are numbers."
        )
    return value


def _gap(first: Any, second: Any) -> float:
    if first == second:
        return 0.0
    if math.isinf(first) or math.isinf(second):
        return math.inf
    return round_up(abs(Fraction(first) - Fraction(second)))


def _vector_gaps(first: Any, second: Any) -> list[float]:
    ours, theirs = _vector(first), _vector(second)
    if len(ours) != len(theirs):
        raise MismatchError(
            "vectors must have one length, "
            f"got {len(ours)} and {len(theirs)} coordinates."
        )
    pairs = zip(ours, theirs, strict=True)
    return [_gap(require_number(one), require_number(two)) for one, two in pairs]


def _vector(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


def _norm(gaps: list[float], p: float) -> float:
    largest: float = max(gaps, default=0.0)
    if p == math.inf or largest in (0.0, math.inf):
        return largest
    if p == 1:
        return round_up(sum(map(Fraction, gaps)))
    if p == 2:
        return sqrt_up(sum(Fraction(gap) ** 2 for gap in gaps))
    ratio: float = math.fsum((gap / largest) ** p for gap in gaps) ** (1 / p)
    return largest * ratio * (1 + _POWER_SLACK)

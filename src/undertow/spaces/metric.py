r"""Metrics that no neighbour relation generates.

A unit need not be a granularity: distances between places, norms on query answers, the
size of a symmetric difference on any class of databases, or a matrix on a finite
domain compose by the same rule. All of them are extended pseudometrics: values in
:math:`[0, \infty]`, zero on the diagonal, symmetric, with the triangle inequality.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

from undertow.errors import AssumptionError
from undertow.privacy.exact import Exact, Number, exact, format_up, round_up
from undertow.privacy.extended import ext_scale
from undertow.spaces.base import Database, Domain, Metric, View
from undertow.spaces.metric_matrix import (
    MatrixMetric,
    PseudometricCheck,
    check_pseudometric,
    verify_pseudometric,
)
from undertow.spaces.metric_number import AbsoluteDifference, Euclidean, LpNorm

__all__ = [
    "AbsoluteDifference",
    "DiscreteMetric",
    "Euclidean",
    "FunctionMetric",
    "LpNorm",
    "MatrixMetric",
    "PseudometricCheck",
    "Pullback",
    "Quotient",
    "Scaled",
    "SymmetricDifference",
    "Values",
    "ZeroMetric",
    "check_pseudometric",
    "image_or_values",
    "verify_pseudometric",
]


@dataclass(frozen=True, slots=True)
class Values(Domain):
    """The space a view maps into when plain values come out: any hashable value."""

    kind = "values"

    def __contains__(self, database: object) -> bool:
        return isinstance(database, Hashable)

    def count(self) -> float:
        """Return infinity."""
        return math.inf

    def databases(self) -> Iterator[Database]:
        """Refuse: plain values cannot be listed."""
        raise AssumptionError(
            "domain must be enumerable, got plain values; "
            "enumerate the databases the values come from."
        )


def image_or_values(view: View, domain: Domain) -> Domain:
    """Return the image of `view`, or :class:`Values` where only values come out."""
    image = view.image(domain)
    return Values() if image is None else image


@dataclass(frozen=True, slots=True)
class ZeroMetric(Metric):
    """The unit of a release that ignores the data: zero everywhere."""

    @property
    def name(self) -> str:
        """The name used in reports."""
        return "zero"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return zero."""
        return 0.0


@dataclass(frozen=True, slots=True)
class DiscreteMetric(Metric):
    """One between different databases; the unit of a raw release on its view."""

    separates_points = True

    @property
    def name(self) -> str:
        """The name used in reports."""
        return "discrete"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return 0 for equal databases, 1 otherwise."""
        return 0.0 if first == second else 1.0


@dataclass(frozen=True, slots=True)
class FunctionMetric(Metric):
    """A metric given as a function of two databases.

    Parameters
    ----------
    name : str
        The name used in reports.
    function : callable
        Takes two databases, returns a number in ``[0, inf]``.

    Notes
    -----
    Each value is checked to be a non-negative number. The axioms are not: run
    :func:`verify_pseudometric` on an enumerated domain.
    """

    name: str = field()  # a bare annotation would inherit the property as default
    function: Callable[[Any, Any], float]

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the function's value."""
        value = float(self.function(first, second))
        if not value >= 0:
            raise ValueError(
                f"metric {self.name!r} must return a number in [0, inf], got {value}."
            )
        return value


@dataclass(frozen=True, slots=True)
class SymmetricDifference(Metric):
    r"""The number of records in exactly one of two databases.

    .. math:: d^\Delta(D, D') = \sum_x |m_D(x) - m_{D'}(x)|

    Notes
    -----
    The same number on every class of databases. It equals the canonical metric of
    add/remove-one on all multisets, and on classes closed under removing or adding
    records; on other classes the canonical metric is larger (paper, Remark A.2).

    Examples
    --------
    >>> SymmetricDifference().distance(("a", "a", "b"), ("a", "c"), Values())
    3.0
    """

    separates_points = True

    @property
    def name(self) -> str:
        """The name used in reports."""
        return "symmetric difference"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the number of records in one database and not in the other."""
        ours, theirs = _multiset(first), _multiset(second)
        return float(sum(((ours - theirs) + (theirs - ours)).values()))


@dataclass(frozen=True, slots=True)
class Scaled(Metric):
    """A metric times a constant; an infinite distance stays infinite.

    Parameters
    ----------
    base : Metric
        The metric to scale.
    factor : int, float, str, Decimal or Fraction
        In ``[0, inf]``.
    """

    base: Metric
    factor: Exact

    def __init__(self, base: Metric, factor: Number) -> None:
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "factor", exact(factor, "factor"))

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{format_up(self.factor)} x {self.base.name}"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the scaled distance, rounded up."""
        distance = self.base.distance(first, second, domain)
        precise = distance if math.isinf(distance) else Fraction(distance)
        return round_up(ext_scale(self.factor, precise))


@dataclass(frozen=True, slots=True)
class Pullback(Metric):
    """The distance of what a view shows: ``d(f(D), f(E))``.

    Parameters
    ----------
    base : Metric
        A metric on the values of the view.
    view : View
        The map.

    Notes
    -----
    A granularity counts its steps along values of the view; see
    :class:`undertow.spaces.view_range.ViewRange`.
    """

    base: Metric
    view: View

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{self.base.name} through {self.view.name}"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the distance between the two values of the view, rounded up."""
        # view_range.py builds on this module
        from undertow.spaces.view_range import range_of

        ours = self.view.apply(first, domain)
        theirs = self.view.apply(second, domain)
        distance = range_of(self.view, domain).distance(self.base, ours, theirs)
        return round_up(distance)


@dataclass(frozen=True, slots=True)
class Quotient(Metric):
    """The quotient of a metric by the fibres of a view.

    Parameters
    ----------
    base : Metric
        A metric on the domain in which the whole mechanism was proved private.
    view : View
        What the mechanism reads, and nothing else.

    Notes
    -----
    See :func:`undertow.spaces.quotient.quotient_distance`, which computes it.
    """

    base: Metric
    view: View

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{self.base.name} modulo {self.view.name}"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the quotient distance."""
        # quotient.py builds on this module
        from undertow.spaces.quotient import quotient_distance

        return quotient_distance(
            self.base, self.view, domain=domain, first=first, second=second
        )


def _multiset(database: Any) -> Counter[Hashable]:
    if not isinstance(database, tuple | frozenset):
        raise TypeError(
            "the symmetric difference must compare collections of records, "
            f"got {type(database).__name__}."
        )
    return Counter(cast(Iterable[Hashable], database))

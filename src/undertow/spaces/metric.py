r"""Metrics that no neighbour relation generates.

A unit need not be a granularity: distances between places, norms on query answers, the
size of a symmetric difference on any class of databases, or a matrix on a finite
domain compose by the same rule. All of them are extended pseudometrics: values in
:math:`[0, \infty]`, zero on the diagonal, symmetric, with the triangle inequality.
Numbers and vectors of numbers are compared without ever rounding a distance down;
matrices are checked before they are believed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from undertow.errors import AssumptionError, FalsifiedClaimError, MismatchError
from undertow.numeric.exact import (
    Exact,
    Number,
    exact,
    ext_scale,
    format_up,
    round_up,
    sqrt_up,
)
from undertow.spaces.base import Database, Domain, Metric, View


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


def _multiset(database: Any) -> Counter[Hashable]:
    if not isinstance(database, tuple | frozenset):
        raise TypeError(
            "the symmetric difference must compare collections of records, "
            f"got {type(database).__name__}."
        )
    return Counter(cast(Iterable[Hashable], database))


# Metrics on numbers and on vectors of numbers, never rounded down.

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


# Metrics on finitely many points, and the check that they are metrics.

# Largest relative excess over the triangle inequality that float rounding explains.
_TRIANGLE_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class MatrixMetric(Metric):
    """A metric on finitely many points, given as a matrix and verified.

    Parameters
    ----------
    points : sequence of hashable
        The databases or values, each once.
    matrix : array_like of shape (n, n)
        Their distances; entries may be infinite.

    Raises
    ------
    MismatchError
        If the matrix does not have one row and one column per point.
    ValueError
        If the matrix is not an extended pseudometric; the message names the points.

    Examples
    --------
    >>> from undertow.spaces.metric import Values
    >>> line = MatrixMetric("abc", [[0, 1, 3], [1, 0, 2], [3, 2, 0]])
    >>> line.distance("a", "c", Values())
    3.0
    """

    points: tuple[Hashable, ...]
    matrix: tuple[tuple[float, ...], ...]
    _index: dict[Hashable, int] = field(compare=False, repr=False)

    def __init__(
        self, points: Iterable[Hashable], matrix: npt.ArrayLike | Sequence[Any]
    ) -> None:
        labels = tuple(points)
        values = np.asarray(matrix, dtype=float)
        _require_square(labels, values)
        _require_pseudometric(labels, values)
        object.__setattr__(self, "points", labels)
        object.__setattr__(self, "matrix", tuple(map(tuple, values.tolist())))
        index = {label: i for i, label in enumerate(labels)}
        object.__setattr__(self, "_index", index)

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"matrix on {len(self.points)} points"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the entry for the two points."""
        return self.matrix[self._position(first)][self._position(second)]

    def _position(self, point: Hashable) -> int:
        if point not in self._index:
            raise MismatchError(
                "the metric must know both points, got one outside its "
                f"{len(self.points)} points; give a larger matrix."
            )
        return self._index[point]


class PseudometricCheck(NamedTuple):
    """Whether a matrix is an extended pseudometric, and what breaks it."""

    holds: bool
    witness: tuple[int, ...] | None
    reason: str


def check_pseudometric(matrix: npt.ArrayLike) -> PseudometricCheck:
    """Return whether a matrix is an extended pseudometric.

    Parameters
    ----------
    matrix : array_like of shape (n, n)
        Distances; entries may be infinite.

    Returns
    -------
    PseudometricCheck
        The verdict, the indices that break an axiom, and which axiom.

    Notes
    -----
    The triangle inequality is tested to a relative slack of 1e-12, which float
    rounding explains; the other axioms exactly.

    Examples
    --------
    >>> check_pseudometric([[0, 1, 9], [1, 0, 1], [9, 1, 0]]).witness
    (0, 1, 2)
    """
    values = np.asarray(matrix, dtype=float)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise MismatchError(f"matrix must be square, got shape {values.shape}.")
    for bad, reason in (
        (~(values >= 0), "every distance must be non-negative"),
        (np.diag(np.diag(values)) != 0, "the diagonal must be zero"),
        (values != values.T, "distances must be symmetric"),
    ):
        if bad.any():
            return PseudometricCheck(False, _first(bad), reason)
    return _triangle_check(values)


def verify_pseudometric(metric: Metric, domain: Domain) -> None:
    """Raise unless `metric` is an extended pseudometric on an enumerated domain.

    Raises
    ------
    FalsifiedClaimError
        With the databases that break an axiom as ``witness``.

    Notes
    -----
    The largest distance between a point of one set and a point of another fails here:
    it is positive on the diagonal, so it bounds a loss but never is a unit (paper,
    Example IV.2).
    """
    databases = list(domain.databases())
    matrix = np.array(
        [[metric.distance(one, two, domain) for two in databases] for one in databases]
    ).reshape(len(databases), len(databases))
    check = check_pseudometric(matrix)
    if not check.holds:
        raise FalsifiedClaimError(
            f"metric {metric.name!r} must be an extended pseudometric, but "
            f"{check.reason}; use it as an upper bound, not as a unit.",
            witness=tuple(databases[i] for i in check.witness or ()),
        )


def _triangle_check(values: npt.NDArray[np.float64]) -> PseudometricCheck:
    for middle in range(len(values)):
        through = values[:, [middle]] + values[[middle], :]
        bad = values > through * (1 + _TRIANGLE_SLACK)
        if bad.any():
            start, end = _first(bad)
            reason = "the triangle inequality must hold"
            return PseudometricCheck(False, (start, middle, end), reason)
    return PseudometricCheck(True, None, "")


def _first(mask: npt.NDArray[np.bool_]) -> tuple[int, int]:
    row, column = np.argwhere(mask)[0]
    return int(row), int(column)


def _require_square(
    points: tuple[Hashable, ...], values: npt.NDArray[np.float64]
) -> None:
    if len(set(points)) != len(points):
        raise ValueError("points must be distinct, got a point twice.")
    if values.shape != (len(points), len(points)):
        raise MismatchError(
            f"matrix must have shape {(len(points), len(points))} for {len(points)} "
            f"points, got {values.shape}."
        )


def _require_pseudometric(
    points: tuple[Hashable, ...], values: npt.NDArray[np.float64]
) -> None:
    check = check_pseudometric(values)
    if not check.holds:
        named = ", ".join(repr(points[i]) for i in check.witness or ())
        raise ValueError(
            f"matrix must be an extended pseudometric: {check.reason}, got a violation "
            f"at {named}."
        )

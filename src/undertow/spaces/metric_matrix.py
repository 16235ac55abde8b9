"""Metrics on finitely many points, and the check that they are metrics."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from undertow.errors import FalsifiedClaimError, MismatchError
from undertow.spaces.base import Database, Domain, Metric

__all__ = [
    "MatrixMetric",
    "PseudometricCheck",
    "check_pseudometric",
    "verify_pseudometric",
]

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

r"""When a guess counts: an error function with its threshold, as sets of truths.

A guess g succeeds on the truth x if :math:`\ell(g, x) \le \eta`. Everything that is
summed is the set of *truths hit by one fixed guess*, so matrices are indexed
``[guess, truth]``: for errors that are not symmetric the transposed sets give wrong
baselines and invalid bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_non_negative
from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.risk._hits import read_distances, read_truth_values, reflexive
from undertow.risk._sets import (
    CellSets,
    HitSets,
    RowSets,
    RunSets,
    read_places,
    whole_units,
)

__all__ = ["Success"]

Records = Sequence[Any]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]

# Calls of an error function that is given as a Python callable.
_PAIRS = 4_000_000


class Success(ABC):
    """A rule that says on which truths a guess succeeds.

    Build it with :meth:`exact`, :meth:`attribute`, :meth:`within`, :meth:`hops` or
    :meth:`from_matrix`.

    Notes
    -----
    The attacker may guess every record of the support and, where stated, more. A larger
    set of guesses never lowers the risk, so one that is too small understates it.
    Whether the attacker may also decline to answer is said by the threat.

    Examples
    --------
    >>> Success.within("absolute", 1).matrix([0, 1, 2]).astype(int).tolist()
    [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    """

    summary: str

    @staticmethod
    def exact() -> Success:
        """Return the rule under which the record itself must be guessed."""
        return _Cells(lambda support: range(len(support)), "the exact record")

    @staticmethod
    def attribute(
        function: Callable[[Any], Hashable], *, summary: str = "the right attribute"
    ) -> Success:
        """Return the rule under which a function of the record must be guessed.

        Parameters
        ----------
        function : callable
            From a record to the sensitive attribute.
        summary : str, optional
            What must be guessed, in words.

        Notes
        -----
        Records that share the attribute add up. The formula for exact success is
        neither an upper nor a lower bound here.

        Examples
        --------
        >>> rule = Success.attribute(lambda record: record[1])
        >>> rule.matrix([("a", 0), ("b", 0), ("b", 1)]).astype(int).tolist()
        [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
        """
        if not callable(function):
            raise TypeError(
                f"function must be callable, got {type(function).__name__}."
            )
        return _Cells(lambda support: [function(r) for r in support], summary)

    @staticmethod
    def within(
        distance: Literal["absolute"] | Callable[[Any, Any], float],
        eta: float,
        *,
        guesses: Sequence[Any] = (),
    ) -> Success:
        """Return the rule under which an error of at most `eta` counts.

        Parameters
        ----------
        distance : "absolute" or callable
            The error of a guess (first argument) on a truth (second); ``"absolute"``
            for records that are numbers, which are then handled in linear time.
        eta : float
            The threshold, included.
        guesses : sequence, optional
            What may be guessed besides the records of the support.

        Notes
        -----
        ``"absolute"`` reads numbers as the decimals they are written as, so that 0.8
        and 0.6 are within 0.2. A distance of your own is compared as a float: give
        `eta` a slack, since a hit that is lost by rounding understates the risk.

        Examples
        --------
        >>> rule = Success.within("absolute", 1, guesses=[1])
        >>> rule.matrix([0, 2]).astype(int).tolist()
        [[1, 0], [0, 1], [1, 1]]
        """
        threshold = check_non_negative(eta, "eta")
        if distance == "absolute":
            return _Line(threshold, _extra(guesses))
        if not callable(distance):
            raise TypeError(
                f"distance must be 'absolute' or callable, got {distance!r}."
            )
        return _Pairs(distance, threshold, _extra(guesses))

    @staticmethod
    def hops(distances: ArrayLike, eta: float) -> Success:
        """Return the rule by a table of errors, such as hops in a graph.

        Parameters
        ----------
        distances : array_like of shape (m, m) or (guesses, m)
            Error of each guess (row) on each truth (column); infinite where there is no
            path. The first m guesses are the records themselves.
        eta : float
            The threshold, included.

        Examples
        --------
        >>> ring = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
        >>> Success.hops(ring, 1).matrix("abc").astype(int).tolist()
        [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
        """
        table, threshold = read_distances(distances), check_non_negative(eta, "eta")
        hits = np.asarray(table <= threshold, dtype=np.bool_)
        return _Table(hits, f"at most {threshold:g} hops")

    @staticmethod
    def from_matrix(hits: ArrayLike) -> Success:
        """Return the rule that a matrix of truth values ``[guess, truth]`` states.

        Parameters
        ----------
        hits : array_like of bool, of shape (guesses, m)
            The first m guesses are the records themselves, in order, and each hits
            itself; more rows are guesses outside the support.

        Raises
        ------
        ModelError
            If a record does not hit itself, or there are fewer rows than records.
        """
        return _Table(read_truth_values(hits), "a table of hits")

    @abstractmethod
    def sets(self, support: Records, fibres: Sequence[Indices]) -> tuple[HitSets, ...]:
        """Return the distinct hit sets among the truths numbered in each fibre."""

    @abstractmethod
    def missed(self, support: Records) -> Bools:
        """Say of each truth whether some guess misses it: a way to answer no."""

    @abstractmethod
    def hits(self, support: Records, *, guesses: Indices, truths: Indices) -> Bools:
        """Say whether each numbered guess hits each numbered truth, broadcast."""

    def guesses(self, support: Records) -> tuple[Any, ...]:
        """Return what may be guessed: the records, then whatever else is allowed."""
        return tuple(support)

    def matrix(self, support: Records) -> Bools:
        """Return the truth values ``[guess, truth]``."""
        rows = np.arange(len(self.guesses(support)), dtype=np.intp)[:, None]
        columns = np.arange(len(support), dtype=np.intp)[None, :]
        return self.hits(support, guesses=rows, truths=columns)

    def __repr__(self) -> str:
        return f"<Success: {self.summary}>"


class _Cells(Success):
    """Guess and truth must lie in one cell: exact and attribute success."""

    def __init__(
        self, cells: Callable[[Records], Sequence[Hashable]], summary: str
    ) -> None:
        self._rule, self.summary = cells, summary

    def _cells(self, support: Records) -> Indices:
        numbers: dict[Hashable, int] = {}
        cells = list(self._rule(support))
        if not all(isinstance(c, Hashable) and c == c for c in cells):
            raise ModelError(
                "an attribute must be hashable and never nan, which differs from "
                "itself: a hit that is lost understates the risk."
            )
        found = [numbers.setdefault(c, len(numbers)) for c in cells]
        return np.array(found, dtype=np.intp)

    def sets(self, support: Records, fibres: Sequence[Indices]) -> tuple[HitSets, ...]:
        cells = self._cells(support)
        return tuple(CellSets(cells[fibre], cells) for fibre in fibres)

    def missed(self, support: Records) -> Bools:
        return np.full(len(support), bool(self._cells(support).max() > 0))

    def hits(self, support: Records, *, guesses: Indices, truths: Indices) -> Bools:
        cells = self._cells(support)
        return np.asarray(cells[guesses] == cells[truths])


class _Line(Success):
    """Numbers within a distance of each other."""

    def __init__(self, eta: float, extra: tuple[Any, ...]) -> None:
        self._eta, self._extra = eta, extra
        self.summary = f"within {eta:g}"

    def guesses(self, support: Records) -> tuple[Any, ...]:
        return (*support, *self._extra)

    def _measured(self, support: Records) -> tuple[NDArray[np.float64], float]:
        return whole_units(read_places(self.guesses(support)), self._eta)

    def sets(self, support: Records, fibres: Sequence[Indices]) -> tuple[HitSets, ...]:
        line, eta = self._measured(support)
        return tuple(RunSets(line[fibre], line, eta) for fibre in fibres)

    def missed(self, support: Records) -> Bools:
        line, eta = self._measured(support)
        truths = line[: len(support)]
        furthest = np.maximum(np.abs(truths - line.max()), np.abs(truths - line.min()))
        return np.asarray(furthest > eta)

    def hits(self, support: Records, *, guesses: Indices, truths: Indices) -> Bools:
        line, eta = self._measured(support)
        return np.asarray(np.abs(line[truths] - line[guesses]) <= eta)


class _Matrix(Success):
    """What has a matrix of hits for each support."""

    def sets(self, support: Records, fibres: Sequence[Indices]) -> tuple[HitSets, ...]:
        hits = self.matrix(support)
        return tuple(RowSets(hits[:, fibre]) for fibre in fibres)

    def missed(self, support: Records) -> Bools:
        return np.logical_not(self.matrix(support).all(axis=0))

    def hits(self, support: Records, *, guesses: Indices, truths: Indices) -> Bools:
        return np.asarray(self.matrix(support)[guesses, truths])


class _Pairs(_Matrix):
    """An error function of two records, called for every pair."""

    def __init__(
        self,
        distance: Callable[[Any, Any], float],
        eta: float,
        extra: tuple[Any, ...],
    ) -> None:
        self._distance, self._eta, self._extra = distance, eta, extra
        self.summary = f"within {eta:g}"
        self._seen: tuple[tuple[Any, ...], Bools] | None = None

    def guesses(self, support: Records) -> tuple[Any, ...]:
        return (*support, *self._extra)

    def matrix(self, support: Records) -> Bools:
        rows = self.guesses(support)
        if self._seen is not None and self._seen[0] == rows:
            return self._seen[1]
        if len(rows) * len(support) > _PAIRS:
            raise NotApplicable(
                f"a callable distance must have at most {_PAIRS} pairs, got "
                f"{len(rows) * len(support)}; use Success.hops with a table of "
                "distances."
            )
        errors = read_distances([[self._distance(g, x) for x in support] for g in rows])
        hits = np.asarray(errors <= self._eta, dtype=np.bool_)
        self._seen = (rows, reflexive(hits))
        return hits


class _Table(_Matrix):
    """A given matrix of hits, for supports of its size."""

    def __init__(self, hits: Bools, summary: str) -> None:
        self._hits, self.summary = reflexive(hits), summary

    def guesses(self, support: Records) -> tuple[Any, ...]:
        extra = len(self._hits) - len(support)
        return (*support, *(f"guess {k}" for k in range(extra)))

    def matrix(self, support: Records) -> Bools:
        if self._hits.shape[1] != len(support):
            raise MismatchError(
                f"hits must have one column for each of the {len(support)} records, "
                f"got {self._hits.shape[1]}."
            )
        return self._hits


def _extra(guesses: Sequence[Any]) -> tuple[Any, ...]:
    if not isinstance(guesses, Iterable):
        raise TypeError(f"guesses must be a sequence, got {type(guesses).__name__}.")
    return tuple(guesses)

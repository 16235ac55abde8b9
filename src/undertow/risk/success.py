r"""When a guess counts: an error function with its threshold, as sets of truths.

A guess g succeeds on the truth x if :math:`\ell(g, x) \le \eta`. Everything that is
summed is the set of *truths hit by one fixed guess*, so matrices are indexed
``[guess, truth]``: for errors that are not symmetric the transposed sets give wrong
baselines and invalid bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_non_negative
from undertow.errors import MismatchError, ModelError
from undertow.risk._globe import hits_on_globe
from undertow.risk._hits import (
    hits_by_calls,
    read_distances,
    read_truth_values,
    reflexive,
)
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
        distance: Literal["absolute", "metres"]
        | Callable[[Any, Any], float]
        | ArrayLike,
        eta: float,
        *,
        guesses: Sequence[Any] = (),
        unit: str | None = None,
    ) -> Success:
        """Return the rule under which an error of at most `eta` counts.

        Parameters
        ----------
        distance : "absolute", "metres", callable or array_like
            The error of a guess (first argument) on a truth (second); ``"absolute"``
            for records that are numbers, which are then handled in linear time;
            ``"metres"`` on the Earth, for records (latitude, longitude) in degrees; or
            the loss matrix ``[guess][truth]``, whose first rows are the records.
        eta : float
            The threshold, included.
        guesses : sequence, optional
            What may be guessed besides the records of the support; further rows of a
            loss matrix say it themselves.
        unit : str, optional
            The word after `eta` in summaries, such as ``"hours"``.

        Raises
        ------
        ModelError
            If a loss matrix is no table of non-negative numbers with a row for each
            record, or a record does not hit itself.

        Notes
        -----
        ``"absolute"`` reads numbers as the decimals they are written as, so that 0.8
        and 0.6 are within 0.2. A distance or a matrix of your own is compared as
        floats: give `eta` a slack, since a hit that is lost by rounding understates the
        success. ``"metres"`` takes the Earth as a sphere and `eta` 0.57 % longer: every
        pair within `eta` on the ellipsoid WGS 84 is a hit and none beyond 1.0103
        `eta`, as proved on the theory page. Up to 400 million pairs.

        Examples
        --------
        >>> rule = Success.within("absolute", 1, guesses=[1])
        >>> rule.matrix([0, 2]).astype(int).tolist()
        [[1, 0], [0, 1], [1, 1]]
        >>> Success.within([[0, 2], [1, 0]], 1).matrix("ab").astype(int).tolist()
        [[1, 0], [1, 1]]
        """
        threshold, extra = check_non_negative(eta, "eta"), _extra(guesses)
        words = f"within {threshold:g}" + (f" {unit}" if unit else "")
        if isinstance(distance, str):
            return _by_name(distance, threshold, words, extra)
        if callable(distance):
            near = partial(hits_by_calls, distance=distance, eta=threshold)
            return _Pairs(near, words, extra)
        if extra:
            raise TypeError(
                "guesses must be left out with a loss matrix, which has a row for "
                f"each, got {len(extra)}."
            )
        hits = np.asarray(read_distances(distance, "distance") <= threshold, np.bool_)
        loss = " of the stated loss" if unit is None else ""
        return _Table(hits, words + loss, "distance")

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
        return _Table(hits, f"within {threshold:g} hops")

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
        return _Table(read_truth_values(hits), "within the stated tolerance")

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

    def __init__(self, eta: float, summary: str, extra: tuple[Any, ...]) -> None:
        self._eta, self._extra = eta, extra
        self.summary = summary

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
    """Hits worked out from the records, once for each support."""

    def __init__(
        self,
        near: Callable[[Records, Records], Bools],
        summary: str,
        extra: tuple[Any, ...],
    ) -> None:
        self._near, self._extra = near, extra
        self.summary = summary
        self._seen: tuple[tuple[Any, ...], Bools] | None = None

    def guesses(self, support: Records) -> tuple[Any, ...]:
        return (*support, *self._extra)

    def matrix(self, support: Records) -> Bools:
        rows = self.guesses(support)
        if self._seen is None or self._seen[0] != rows:
            self._seen = (rows, reflexive(self._near(rows, support)))
        return self._seen[1]


class _Table(_Matrix):
    """A given matrix of hits, for supports of its size."""

    def __init__(self, hits: Bools, summary: str, name: str = "hits") -> None:
        self._hits, self.summary = reflexive(hits, name), summary
        self._name = name

    def guesses(self, support: Records) -> tuple[Any, ...]:
        extra = len(self._hits) - len(support)
        return (*support, *(f"guess {k}" for k in range(extra)))

    def matrix(self, support: Records) -> Bools:
        if self._hits.shape[1] != len(support):
            raise MismatchError(
                f"{self._name} must have one column for each of the {len(support)} "
                f"records, got {self._hits.shape[1]}."
            )
        return self._hits


def _by_name(
    distance: str, eta: float, summary: str, extra: tuple[Any, ...]
) -> Success:
    if distance == "absolute":
        return _Line(eta, summary, extra)
    if distance != "metres":
        raise TypeError(
            "distance must be 'absolute', 'metres', callable or a loss matrix, got "
            f"{distance!r}."
        )
    metres = summary if summary != f"within {eta:g}" else f"{summary} metres"
    return _Pairs(partial(hits_on_globe, eta=eta), metres, extra)


def _extra(guesses: Sequence[Any]) -> tuple[Any, ...]:
    if not isinstance(guesses, Iterable):
        raise TypeError(f"guesses must be a sequence, got {type(guesses).__name__}.")
    return tuple(guesses)

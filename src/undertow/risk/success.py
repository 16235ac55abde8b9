r"""When a guess counts: an error function with its threshold, as sets of truths.

A guess g succeeds on the truth x if :math:`\ell(g, x) \le \eta`. Everything that is
summed is the set of *truths hit by one fixed guess*, so matrices are indexed
``[guess, truth]``: for errors that are not symmetric the transposed sets give wrong
baselines and invalid bounds.

A :class:`Success` is the rule. Below it stand what reads it, tables of errors and hits
and distances on the Earth, and what the engines work on: the distinct sets of truths
that guesses hit, restricted to one fibre of what is known (:class:`HitSets`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_non_negative
from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.numeric.array import Bools, Floats, Indices
from undertow.numeric.exact import exact

Records = Sequence[Any]


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


# Tables of errors and of hits, read once: ``[guess, truth]``, each record a hit.

# Calls of an error function that is given as a Python callable.
_CALLS = 4_000_000


def hits_by_calls(
    guesses: Sequence[Any],
    truths: Sequence[Any],
    *,
    distance: Callable[[Any, Any], float],
    eta: float,
) -> NDArray[np.bool_]:
    """Say of each guess and truth whether the error is at most `eta`."""
    if len(guesses) * len(truths) > _CALLS:
        raise NotApplicable(
            f"a callable distance must have at most {_CALLS} pairs, got "
            f"{len(guesses) * len(truths)}; use Success.hops with a table of "
            "distances."
        )
    errors = read_distances([[distance(g, x) for x in truths] for g in guesses])
    return np.asarray(errors <= eta, dtype=np.bool_)


def read_distances(table: ArrayLike, name: str = "distances") -> NDArray[Any]:
    """Read errors; nan would pass for a miss, and a lost hit understates the risk."""
    given = _numbers(table)
    try:
        proper = given.dtype.kind in "biufO" and bool(np.all(given >= 0))
    except TypeError:
        proper = False
    if not proper:
        raise ModelError(
            f"{name} must be a table of non-negative numbers or infinite, got other "
            "entries or rows of unequal length."
        )
    return given


def read_truth_values(hits: ArrayLike) -> NDArray[np.bool_]:
    """Read a table of truth values, also written as 0 and 1."""
    table = _numbers(hits)
    if table.dtype != np.bool_ and not np.isin(table, (0, 1)).all():
        raise ModelError("hits must be truth values, got other numbers.")
    return table.astype(np.bool_)


def reflexive(hits: NDArray[np.bool_], name: str = "hits") -> NDArray[np.bool_]:
    """Return the table, frozen, if it has a row per record and each hits itself."""
    if hits.ndim != 2 or hits.shape[0] < hits.shape[1] or hits.shape[1] == 0:
        raise ModelError(
            f"{name} must have a row for each record, then one for each other guess, "
            f"got shape {hits.shape}."
        )
    wrong = np.flatnonzero(~np.diagonal(hits))
    if wrong.size:
        raise ModelError(
            "a record must hit itself (its error is zero), got a miss on the diagonal "
            f"at {wrong[0]}; index the matrix by [guess, truth]."
        )
    hits.setflags(write=False)
    return hits


def _numbers(table: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(table)
    except ValueError:  # rows of unequal length
        return np.array([""])


# Places on the Earth: which are within a number of metres of each other.
#
# The great-circle distance on a sphere of the mean radius is at most 1.00562 times the
# distance on the ellipsoid WGS 84, so a threshold stretched by 1.0057 loses no pair;
# the page "Reconstruction advantage" proves it.

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth, in metres."""

STRETCH = 1.0057
"""What the threshold is multiplied by: covers the ellipsoid and all rounding."""


_PLACES = 400_000_000
# Distances held at a time.
_BLOCK = 1 << 20


def great_circle(guesses: Sequence[Any], truths: Sequence[Any]) -> Floats:
    """Return the distances in metres between places (latitude, longitude) in degrees.

    Examples
    --------
    >>> porto, lisbon = (41.1579, -8.6291), (38.7223, -9.1393)
    >>> float(great_circle([porto], [lisbon])[0, 0].round(-3))
    274000.0
    """
    half = _haversine(_read_places(guesses), _read_places(truths))
    return np.asarray(2.0 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1.0))))


def hits_on_globe(
    guesses: Sequence[Any], truths: Sequence[Any], *, eta: float
) -> NDArray[np.bool_]:
    """Say of each guess and truth whether they are within `eta` metres, by blocks."""
    size = len(guesses) * len(truths)
    if size > _PLACES:
        raise NotApplicable(
            f"places must make at most {_PLACES} pairs, got {size}; use fewer, such as "
            "the cells of a grid."
        )
    rows, columns = _read_places(guesses), _read_places(truths)
    hits = np.ones((len(rows), len(columns)), dtype=np.bool_)
    angle = STRETCH * eta / (2.0 * EARTH_RADIUS)
    if angle >= math.pi / 2.0:
        return hits
    limit = math.sin(angle) ** 2
    step = max(1, _BLOCK // max(1, len(columns)))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        hits[block] = _haversine(rows[block], columns) <= limit
    return hits


def _haversine(rows: Floats, columns: Floats) -> Floats:
    """Return the squared sine of half the angle between places, in degrees."""
    # Differences in degrees are as exact as the places; so are distances to a pole.
    up = rows[:, None, 0] - columns[None, :, 0]
    turn = np.fmod(np.abs(rows[:, None, 1] - columns[None, :, 1]), 360.0)
    around = np.minimum(turn, 360.0 - turn)
    narrow = [np.sin(np.radians(90.0 - np.abs(side[:, 0]))) for side in (rows, columns)]
    width = narrow[0][:, None] * narrow[1][None, :]
    return np.asarray(
        np.sin(np.radians(up) / 2.0) ** 2
        + width * np.sin(np.radians(around) / 2.0) ** 2
    )


def _read_places(places: Sequence[Any]) -> Floats:
    try:
        table = np.array([[_degrees(x) for x in place] for place in places])
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    proper = table.ndim == 2 and table.shape[1] == 2
    if not proper or not (
        np.all(np.abs(table[:, 0]) <= 90.0)
        and np.all((table[:, 1] >= -180.0) & (table[:, 1] <= 360.0))
    ):
        raise ModelError(
            "records must be (latitude, longitude) in degrees for a distance in "
            "metres, the first in [-90, 90], the second in [-180, 360]."
        )
    return table


def _degrees(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError("text")
    return float(value)


# The sets of truths that a guess hits, restricted to one fibre of what is known.
#
# Many guesses hit the same truths of a fibre, so each engine works on the distinct
# sets. Three forms: cells of a partition, runs on a line, and rows of a matrix.

# Below this share of hits a matrix of rows is kept sparse.
_SPARSE_SHARE = 0.1
# Rows of a dense matrix turned into floats at a time.
_ROWS = 1024
# Whole numbers below this have exact differences as floats.
_WHOLE = 2**52


class HitSets(ABC):
    """Distinct hit sets within a fibre of n truths.

    Attributes
    ----------
    sizes : ndarray of int, of shape (sets,)
        Number of truths in each set.
    width : int
        Number n of truths.
    """

    __slots__ = ("sizes", "width")
    sizes: Indices
    width: int

    @property
    @abstractmethod
    def member(self) -> NDArray[np.integer[Any]]:
        """The set that each guess hits."""

    @abstractmethod
    def sums(self, weights: Floats) -> Floats:
        """Add weights (n, k) over each set: shape (sets, k)."""

    @property
    @abstractmethod
    def work(self) -> int:
        """Additions for one column of weights."""

    @property
    def full(self) -> NDArray[np.bool_]:
        """Which sets are the whole fibre."""
        return np.asarray(self.sizes == self.width)


class CellSets(HitSets):
    """Cells of a partition of the truths, and the empty set if a guess misses all.

    Parameters
    ----------
    truths : ndarray of int, of shape (n,)
        Cell of each truth.
    guesses : ndarray of int, of shape (guesses,)
        Cell that each guess hits: 0, 1, ..., each at least once.
    """

    __slots__ = ("_cell", "_cells", "_guesses")

    def __init__(self, truths: Indices, guesses: Indices) -> None:
        self._guesses = guesses
        self._cells, self._cell = np.unique(truths, return_inverse=True)
        sizes = np.bincount(self._cell)
        missed = int(guesses.max()) + 1 > len(self._cells)
        self.sizes = np.append(sizes, 0) if missed else sizes
        self.width = len(truths)

    @property
    def member(self) -> NDArray[np.integer[Any]]:
        """The set that each guess hits."""
        last = len(self._cells) - 1
        place = np.minimum(np.searchsorted(self._cells, self._guesses), last)
        return np.where(self._cells[place] == self._guesses, place, last + 1)

    def sums(self, weights: Floats) -> Floats:
        """Add weights over each cell, in O(n) per column."""
        if len(self.sizes) >= self.width and (self.sizes <= 1).all():
            added = np.zeros((len(self.sizes), weights.shape[1]))
            added[self._cell] = weights
            return added
        ones = np.ones(self.width)
        shape = (len(self.sizes), self.width)
        from scipy import sparse

        matrix = sparse.csr_array((ones, (self._cell, np.arange(self.width))), shape)
        return np.asarray(matrix @ weights)

    @property
    def work(self) -> int:
        """One addition per truth."""
        return self.width


class RunSets(HitSets):
    """Runs of consecutive truths on a line: those within `eta` of each guess.

    Parameters
    ----------
    truths, guesses : ndarray of float
        Coordinates.
    eta : float
        Distance at which a guess still hits, included.
    """

    __slots__ = ("_high", "_low", "_member", "_order")

    def __init__(self, truths: Floats, guesses: Floats, eta: float) -> None:
        self._order: Indices = np.argsort(truths, kind="stable")
        line = truths[self._order]
        ends = np.stack(_ends(line, guesses, eta), axis=1)
        ends[ends[:, 0] == ends[:, 1]] = 0  # one empty set, not one per place
        # One number for each pair of ends: whole rows sort a hundred times slower.
        keys = ends[:, 0] * (len(line) + 1) + ends[:, 1]
        runs, member = np.unique(keys, return_inverse=True)
        self._low, self._high = np.divmod(runs, len(line) + 1)
        self._member: Indices = member.reshape(-1).astype(np.intp)
        self.sizes = self._high - self._low
        self.width = len(truths)

    @property
    def member(self) -> NDArray[np.integer[Any]]:
        """The set that each guess hits."""
        return self._member

    def sums(self, weights: Floats) -> Floats:
        """Subtract prefix sums, in O(n + sets) per column."""
        prefix = np.zeros((self.width + 1, weights.shape[1]))
        np.cumsum(weights[self._order], axis=0, out=prefix[1:])
        return np.asarray(prefix[self._high] - prefix[self._low])

    @property
    def work(self) -> int:
        """One addition per truth and one per set."""
        return self.width + len(self.sizes)


def read_places(records: Sequence[Any]) -> Floats:
    """Return records that are numbers as places on a line.

    Examples
    --------
    >>> read_places([1, 2.5]).tolist()
    [1.0, 2.5]
    """
    try:
        line = np.array([float(record) for record in records])
    except (TypeError, ValueError, OverflowError):
        line = np.array([np.nan])
    text = any(isinstance(record, str | bytes) for record in records)
    if text or not np.isfinite(line).all():
        raise ModelError(
            "records must be finite numbers for the absolute distance; give a distance "
            "of your own for others."
        )
    # Two records that round to one place would pass for each other.
    pairs = zip(records, line.tolist(), strict=True)
    if any(isinstance(r, int | np.integer) and int(place) != r for r, place in pairs):
        raise ModelError(
            "records must be exact as floats for the absolute distance, got whole "
            "numbers beyond 2^53; subtract a common offset."
        )
    return line


def whole_units(places: Floats, eta: float) -> tuple[Floats, float]:
    """Return places and `eta` in a unit that makes all of them whole, if there is one.

    Numbers are read as the decimals they are written as, so that 0.8 and 0.6 are 0.2
    apart; a hit lost by rounding would understate the risk. Where no unit keeps them
    below 2^52 they come back as they are.

    Examples
    --------
    >>> whole_units(np.array([0.6, 0.8]), 0.2)
    (array([3., 4.]), 1.0)
    """
    if not math.isfinite(eta):
        return places, eta
    numbers = [Fraction(exact(abs(v))) for v in (*places.tolist(), eta)]
    unit = math.lcm(*(number.denominator for number in numbers))
    if max(numbers) * unit >= _WHOLE:
        return places, eta
    signs = np.sign(places)
    whole = np.array([float(number * unit) for number in numbers])
    return np.asarray(signs * whole[:-1]), float(whole[-1])


def _ends(line: Floats, guesses: Floats, eta: float) -> tuple[Indices, Indices]:
    """Return the first and past-the-last place with ``abs(truth - guess) <= eta``.

    The rounded difference grows with the truth, so the places form a run; the search
    by rounded ends is off by a few places at most and is put right by the test itself.
    """
    size = len(line)
    low = np.searchsorted(line, guesses - eta, side="left")
    high = np.searchsorted(line, guesses + eta, side="right")
    padded = np.concatenate([[-np.inf], line, [np.inf]])

    def slack(place: Indices) -> Floats:
        return np.asarray(padded[place + 1] - guesses)

    while (wide := (low > 0) & (slack(low - 1) >= -eta)).any():
        low = low - wide
    while (narrow := (low < size) & (slack(low) < -eta)).any():
        low = low + narrow
    while (wide := (high < size) & (slack(high) <= eta)).any():
        high = high + wide
    while (narrow := (high > 0) & (slack(high - 1) > eta)).any():
        high = high - narrow
    return low, np.maximum(low, high)


class RowSets(HitSets):
    """Rows of a matrix of hits, repeated rows taken once.

    Parameters
    ----------
    hits : ndarray of bool, of shape (guesses, n)
        Which truths each guess hits.
    """

    __slots__ = ("_few", "_matrix", "_member")

    def __init__(self, hits: NDArray[np.bool_]) -> None:
        packed = np.ascontiguousarray(np.packbits(hits, axis=1))
        keys = packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        rows = hits[first]
        self._member = member.reshape(-1).astype(np.int32)
        self.sizes = rows.sum(axis=1)
        self.width = hits.shape[1]
        self._few = int(self.sizes.sum()) < _SPARSE_SHARE * rows.size
        self._matrix: Any = rows
        if self._few:
            from scipy import sparse

            self._matrix = sparse.csr_array(rows, dtype=np.float64)

    @property
    def member(self) -> NDArray[np.integer[Any]]:
        """The set that each guess hits."""
        return self._member

    def sums(self, weights: Floats) -> Floats:
        """Multiply by the matrix of hits, sparse where it has few."""
        if self._few:
            return np.asarray(self._matrix @ weights)
        added = np.empty((len(self.sizes), weights.shape[1]))
        for start in range(0, len(self.sizes), _ROWS):
            rows = slice(start, start + _ROWS)
            added[rows] = self._matrix[rows].astype(np.float64) @ weights
        return added

    @property
    def work(self) -> int:
        """One addition per hit kept, or per entry of a dense matrix."""
        if self._few:
            return int(self.sizes.sum())
        return len(self.sizes) * self.width

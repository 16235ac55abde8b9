"""Records with a finite joint law: a table of probabilities, one axis a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count
from undertow.correlation.finite.groups import FACTOR_TOLERANCE, independent_groups
from undertow.correlation.method import Method, stated_methods
from undertow.correlation.model import Assumptions, Conditional, Known, Model
from undertow.errors import ModelError

__all__ = ["ConditionalTable", "JointTable", "two_point_law"]

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
# A table of this many cells takes 128 MiB.
_LARGEST = 2**24


class JointTable(Model):
    """A joint law of n records, each with finitely many states.

    Parameters
    ----------
    pmf : array_like of shape (s_1, ..., s_n)
        ``pmf[x_1, ..., x_n]`` is the probability of that database; non-negative. A
        sum that differs from one by at most 1e-9 is divided out, which
        :meth:`assumptions` says; any other is refused.
    values : sequence, optional
        The number each state stands for: one sequence for all records, or one for
        each. By default state k of a record stands for k.

    Raises
    ------
    ModelError
        If the table is not a probability law, or has more than 2**24 cells.

    Notes
    -----
    Samples, known records and witnesses speak of *states*, the indices of the table;
    only linear queries read `values`. A state of probability zero belongs to the
    domain, on which mechanisms are DP, but no attacker conditions on it.

    Examples
    --------
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> flatmates.size, flatmates.independent_groups()
    (2, ((0, 1),))
    """

    def __init__(
        self,
        pmf: ArrayLike,
        values: Sequence[float] | Sequence[Sequence[float]] | None = None,
    ) -> None:
        table = _read_table(pmf)
        self._total = float(table.sum())
        self._pmf = table / self._total
        self._pmf.setflags(write=False)
        self._values = _read_values(values, table.shape)

    @classmethod
    def from_mapping(cls, law: Mapping[tuple[float, ...], float]) -> JointTable:
        """Return the law that gives each database, a tuple of numbers, its probability.

        The states of a record are its numbers in increasing order, whether their
        probability is positive or not.

        Examples
        --------
        >>> JointTable.from_mapping({(0, 5): 0.5, (3, 7): 0.5}).values
        ((0.0, 3.0), (5.0, 7.0))
        """
        lengths = {len(database) for database in law}
        if len(lengths) != 1 or lengths == {0}:
            raise ModelError(
                "law must map tuples of one positive length to probabilities, "
                f"got lengths {sorted(lengths)}."
            )
        axes = [sorted({float(x) for x in column}) for column in zip(*law, strict=True)]
        table = np.zeros([len(axis) for axis in axes])
        for database, probability in law.items():
            cell = tuple(a.index(float(x)) for a, x in zip(axes, database, strict=True))
            table[cell] += probability
        return cls(table, axes)

    @classmethod
    def independent(
        cls,
        marginals: Iterable[ArrayLike],
        values: Sequence[float] | Sequence[Sequence[float]] | None = None,
    ) -> JointTable:
        """Return the law of independent records with the given marginal laws."""
        table = np.ones(())
        for marginal in marginals:
            table = np.multiply.outer(table, _read_table(marginal))
        return cls(table, values)

    @property
    def pmf(self) -> Floats:
        """The probabilities; read-only."""
        return self._pmf

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of states of each record."""
        return self._pmf.shape

    @property
    def values(self) -> tuple[tuple[float, ...], ...]:
        """The number each state stands for, record by record."""
        return self._values

    @property
    def size(self) -> int:
        """Number of records."""
        return self._pmf.ndim

    @property
    def largest_group(self) -> int:
        """Records in the largest of the mutually independent groups."""
        return max(len(group) for group in self.independent_groups())

    @property
    def value_range(self) -> tuple[float, float]:
        """Least and greatest number a state stands for, likely or not."""
        every = [x for axis in self._values for x in axis]
        return min(every), max(every)

    @property
    def summary(self) -> str:
        """The model in one line of words."""
        return f"joint table of {self.size} records, {self._pmf.size} databases"

    @cached_property
    def _groups(self) -> tuple[tuple[tuple[int, ...], ...], bool]:
        return independent_groups(self._pmf)

    def independent_groups(self) -> tuple[tuple[int, ...], ...]:
        """Return the finest groups of records that are mutually independent."""
        return self._groups[0]

    def assumptions(self) -> Assumptions:
        """Return what was checked of the table and what must be trusted."""
        total = "probabilities are non-negative and sum to one"
        if self._total != 1.0:
            total += f" (divided by their sum {self._total!r})"
        split = f"groups factorise to {FACTOR_TOLERANCE:g} relative"
        if not self._groups[1]:
            split += " (search cut short: a group may split further)"
        return Assumptions((total, split), ("the table is the law of the data",))

    def methods(self) -> tuple[Method, ...]:
        """Return the Laplace engine, the program over all mechanisms, and m epsilon."""
        return stated_methods(self)

    def margin(self, records: Sequence[int]) -> JointTable:
        """Return the law of some records, in increasing order."""
        kept = sorted(self.check_known(dict.fromkeys(records)))
        summed = tuple(axis for axis in range(self.size) if axis not in kept)
        return JointTable(self._pmf.sum(axis=summed), [self._values[j] for j in kept])

    def given(self, known: Known) -> ConditionalTable:
        """Return the law of the other records given the states of the `known` ones."""
        return ConditionalTable(self, self.check_known(known))

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw `count` databases of states; one row each, one column a record."""
        return _sample_cells(self._pmf, check_count(count, "count", minimum=0), rng=rng)

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw `count` databases of states given those of the `known` records."""
        law = self.given(known)
        draws = np.empty(
            (check_count(count, "count", minimum=0), self.size), dtype=np.int64
        )
        draws[:, list(law.unknown)] = _sample_cells(law.pmf, count, rng=rng)
        for record, state in law.known.items():
            draws[:, record] = state
        return draws


@dataclass(frozen=True)
class ConditionalTable(Conditional):
    """A joint table given the states of some records.

    Examples
    --------
    >>> JointTable([[0.45, 0.05], [0.05, 0.45]]).given({0: 1}).pmf
    array([0.1, 0.9])
    """

    model: JointTable

    def __post_init__(self) -> None:
        for record, state in self.known.items():
            whole = isinstance(state, int | np.integer) and not isinstance(state, bool)
            if not whole or state not in range(self.model.shape[record]):
                raise ValueError(
                    f"known record {record} must have a state in "
                    f"0..{self.model.shape[record] - 1}, got {state!r}."
                )
        if not self._slice.sum() > 0:
            raise ModelError(
                "known records must have positive probability, got states "
                f"{dict(self.known)} of probability zero."
            )

    @property
    def _slice(self) -> Floats:
        index = tuple(self.known.get(j, slice(None)) for j in range(self.model.size))
        return np.asarray(self.model.pmf[index], dtype=np.float64)

    @property
    def pmf(self) -> Floats:
        """Probabilities of the unknown records, in increasing order of record."""
        cells = self._slice
        return np.asarray(cells / cells.sum(), dtype=np.float64)


def two_point_law(first: Sequence[float], second: Sequence[float]) -> JointTable:
    """Return the law of a database that is `first` or `second`, with even odds.

    Parameters
    ----------
    first, second : sequence of float
        Databases of equal length; a point mass if they are equal.

    Notes
    -----
    Theorem 4.5 of Lange (2024): any record in which they differ decides all others, so
    under this law a B-BDP mechanism makes the two databases B-indistinguishable.
    Whoever protects under this law for every two databases protects all of them from
    each other: Bayesian DP under arbitrary correlation is free-lunch privacy. The
    conclusion for one law is about its support only; the source writes the whole
    domain.

    Examples
    --------
    >>> two_point_law((0, 0, 0), (1, 1, 0)).pmf[:, :, 0]
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    if len(first) != len(second):
        raise ModelError(
            f"second must have as many records as first, got {len(second)} "
            f"and {len(first)}."
        )
    law: dict[tuple[float, ...], float] = {tuple(first): 0.5}
    law[tuple(second)] = law.get(tuple(second), 0.0) + 0.5
    return JointTable.from_mapping(law)


def _read_table(pmf: ArrayLike) -> Floats:
    table = np.array(pmf, dtype=np.float64)
    if table.ndim == 0 or table.size == 0:
        raise ModelError(f"pmf must have a cell and an axis, got shape {table.shape}.")
    if table.size > _LARGEST:
        raise ModelError(
            f"pmf must have at most {_LARGEST} cells, got {table.size}; use Blocks, "
            "MarkovChain or TreeModel, which need no table."
        )
    least, total = float(table.min()), float(table.sum())
    if not least >= 0:
        raise ModelError(f"pmf must be non-negative, got {least}.")
    if not abs(total - 1) <= _TOLERANCE:
        raise ModelError(f"pmf must sum to one within {_TOLERANCE:g}, got {total!r}.")
    return table


def _read_values(
    values: Sequence[float] | Sequence[Sequence[float]] | None, shape: tuple[int, ...]
) -> tuple[tuple[float, ...], ...]:
    if values is None:
        return tuple(tuple(float(k) for k in range(s)) for s in shape)
    flat = len(values) > 0 and np.ndim(values[0]) == 0
    listed: Any = [values] * len(shape) if flat else values
    axes = tuple(tuple(float(x) for x in axis) for axis in listed)
    if tuple(len(axis) for axis in axes) != shape:
        raise ModelError(
            f"values must name {shape} states, got {tuple(len(a) for a in axes)}."
        )
    if not all(np.isfinite(axis).all() for axis in axes):
        raise ModelError("values must be finite numbers.")
    return axes


def _sample_cells(
    pmf: Floats, count: int, *, rng: np.random.Generator
) -> NDArray[np.int64]:
    drawn = rng.choice(pmf.size, size=count, p=pmf.ravel())
    if pmf.ndim == 0:  # every record is known
        return np.empty((count, 0), dtype=np.int64)
    return np.stack(np.unravel_index(drawn, pmf.shape), axis=-1).astype(np.int64)

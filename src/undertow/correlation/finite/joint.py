"""Records with a finite joint law, and mechanisms on them: tables, one axis a record.

A :class:`JointTable` holds the probability of every database, a :class:`FiniteKernel`
the law of the output of a mechanism for every database.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count
from undertow.correlation.model import Assumptions, Conditional, Known, Model
from undertow.correlation.query import CountQuery, LinearQuery, Query
from undertow.correlation.theorem import LeakageTheorem, stated_methods
from undertow.errors import AssumptionError, MismatchError, ModelError, NotApplicable
from undertow.mechanisms.continuous import LaplaceMechanism
from undertow.mechanisms.discrete import DiscreteLaplaceMechanism
from undertow.mechanisms.law import Law
from undertow.mechanisms.local.base import LocalProtocol
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.numeric.array import Floats

_TOLERANCE = 1e-9
# A table of this many cells takes 128 MiB.
_MOST_CELLS = 2**24


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

    def methods(self) -> tuple[LeakageTheorem, ...]:
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
    if table.size > _MOST_CELLS:
        raise ModelError(
            f"pmf must have at most {_MOST_CELLS} cells, got {table.size}; use Blocks, "
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


# Mechanisms on a finite table: the law of the output for every database.

FiniteQuery = Query | Callable[[tuple[float, ...]], float]
"""A count, a linear query, or a function of the tuple of record values."""

AnyKernel = ArrayLike | Law
"""An array of output probabilities for each database, or a mechanism."""


# Entries of a kernel: 256 MiB of floats.
_LARGEST = 2**25


@dataclass(frozen=True, slots=True)
class FiniteKernel:
    """Log probability, or log density up to a common factor, of outputs per database.

    Parameters
    ----------
    log_density : array of shape (s_1, ..., s_n, T)
        The last axis runs over the outputs at which ratios are compared.
    outputs : tuple
        Their names.
    mechanism : str
        The mechanism in words.
    rounding : float
        Bound on the absolute error of `log_density`, beyond a few units of its last
        place.
    """

    log_density: Floats
    outputs: tuple[Any, ...]
    mechanism: str = "the given mechanism"
    rounding: float = 0.0


def read_kernel(
    joint: JointTable,
    kernel: AnyKernel,
    *,
    densities: bool = False,
    query: FiniteQuery | None = None,
) -> FiniteKernel:
    """Return a mechanism as log densities over the databases of a table.

    Parameters
    ----------
    joint : JointTable
        The table whose databases are meant.
    kernel : array_like of shape (s_1, ..., s_n, T), or mechanism
        Output probabilities; a :class:`RandomizedResponse` or a local protocol with
        few reports asks every record on its own; Laplace noise needs a `query`.
    densities : bool
        Whether the array holds densities at the outputs where a supremum is
        reached, so that rows need not sum to one.
    query : Query or callable, optional
        What Laplace noise is added to; a callable gets the tuple of record values.
    """
    if isinstance(kernel, Law) and kernel.listed_inputs is not None:
        return _local(joint, kernel)
    if isinstance(kernel, LaplaceMechanism | DiscreteLaplaceMechanism):
        return _additive(joint, kernel, query=query)
    if isinstance(kernel, Law):
        raise NotApplicable(
            "an exact kernel must be a table, Laplace noise or a mechanism that lists "
            f"its inputs and outputs, got {kernel!r}; use the program over all "
            "mechanisms."
        )
    table = _read_array(joint, kernel, densities=densities)
    with np.errstate(divide="ignore"):
        return FiniteKernel(np.log(table), tuple(range(table.shape[-1])))


def local_kernel(joint: JointTable, mechanism: Law) -> Floats:
    """Return the kernel that asks every record its state on its own.

    Parameters
    ----------
    joint : JointTable
        Gives the records and their states.
    mechanism : RandomizedResponse or LocalProtocol
        Its candidates stand for the states 0, 1, ... in order.

    Returns
    -------
    array of shape (s_1, ..., s_n, c**n)
        Outputs are the tuples of answers in lexicographic order.

    Examples
    --------
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> local_kernel(flatmates, RandomizedResponse(2, "1/2")).shape
    (2, 2, 4)
    """
    return np.asarray(np.exp(_local(joint, mechanism).log_density))


def answer_table(joint: JointTable, query: FiniteQuery) -> Floats:
    """Return the exact answer of a query for every database of a table.

    Raises
    ------
    NotApplicable
        If the query does not say its answers (any mechanism, Lipschitz queries).
    """
    if isinstance(query, CountQuery | LinearQuery):
        return outer_sum(linear_parts(joint, query))
    if isinstance(query, Query):
        raise NotApplicable(
            "an exact Laplace engine needs a count, a linear query or a function, got "
            f"a query of kind {query.name!r}; use the program over all mechanisms."
        )
    answers = [float(query(database)) for database in itertools.product(*joint.values)]
    if not all(math.isfinite(answer) for answer in answers):
        raise ValueError("query must return finite numbers.")
    return np.array(answers).reshape(joint.shape)


def linear_parts(
    joint: JointTable, query: CountQuery | LinearQuery
) -> list[list[float]]:
    """Return the summand of each record in each state."""
    if isinstance(query, CountQuery):
        return [[float(z in query.states) for z in range(s)] for s in joint.shape]
    low, high = query.clip or (-math.inf, math.inf)
    weights = query.weights_for(joint.size)
    return [
        [weight * min(max(x, low), high) for x in axis]
        for weight, axis in zip(weights, joint.values, strict=True)
    ]


def answer_rounding(
    joint: JointTable, query: FiniteQuery, records: Sequence[int] | None = None
) -> float:
    """Bound the error of a difference of two answers, sums over some `records`.

    Whole numbers are added without error, and what a function returns is the answer.
    """
    if not isinstance(query, CountQuery | LinearQuery):
        return 0.0
    parts = linear_parts(joint, query)
    chosen = range(joint.size) if records is None else records
    largest = sum(max(map(abs, parts[j])) for j in chosen)
    if largest < 2.0**53 and _is_whole(joint, query):
        return 0.0
    return 2 * (len(chosen) + 1) * largest * 2.0**-52


def _is_whole(joint: JointTable, query: CountQuery | LinearQuery) -> bool:
    if isinstance(query, CountQuery):
        return True
    used = (*query.weights_for(joint.size), *(query.clip or ()))
    return all(x.is_integer() for x in itertools.chain(used, *joint.values))


def outer_sum(parts: list[list[float]]) -> Floats:
    """Return the table of sums of one entry from each part."""
    table = np.zeros(())
    for part in parts:
        table = np.add.outer(table, np.asarray(part))
    return table


def answer_step(model: Model, query: Query) -> Fraction | None:
    """Return the coarsest lattice that holds all answers, None for real numbers.

    A count is whole; a table says the summands of a linear query.
    """
    if isinstance(query, CountQuery):
        return Fraction(1)
    if isinstance(query, LinearQuery) and isinstance(model, JointTable):
        return coarsest_step(itertools.chain(*linear_parts(model, query)))
    return None


def coarsest_step(values: Iterable[float]) -> Fraction | None:
    """Return the largest power of two that divides all values, None if all are 0.

    Examples
    --------
    >>> coarsest_step([0.0, 1.5, 6.0])
    Fraction(1, 2)
    """
    steps = [
        Fraction(number.numerator & -number.numerator, number.denominator)
        for number in map(Fraction, values)
        if number
    ]
    return min(steps, default=None)


def require_lattice(values: Iterable[float], step: Fraction) -> None:
    """Refuse answers that are not whole multiples of the step of the noise."""
    for value in values:
        if Fraction(value) % step:
            raise AssumptionError(
                f"answers must be multiples of the noise step {step}, got {value!r}; "
                "round them to the lattice or use continuous Laplace noise."
            )


def _additive(
    joint: JointTable,
    mechanism: LaplaceMechanism | DiscreteLaplaceMechanism,
    *,
    query: FiniteQuery | None,
) -> FiniteKernel:
    if query is None:
        raise TypeError("query must say what the noise is added to, got None.")
    if mechanism.dimension != 1:
        raise MismatchError(
            f"mechanism must have one coordinate, got {mechanism.dimension}."
        )
    answers = answer_table(joint, query)
    # Ratios of mixtures are largest at an answer: proved on the page exact-leakage.
    outputs = np.unique(answers[joint.pmf > 0])
    if isinstance(mechanism, DiscreteLaplaceMechanism):
        require_lattice(outputs.tolist(), mechanism.step)
    _require_room(answers.size * outputs.size)
    scale = float(mechanism.scale)
    return FiniteKernel(
        -np.abs(outputs - answers[..., None]) / scale,
        tuple(outputs.tolist()),
        f"Laplace noise of scale {scale:g}",
        answer_rounding(joint, query) / scale,
    )


def _as_labels(outputs: Sequence[Hashable] | NDArray[Any]) -> list[Hashable]:
    """Return outputs as plain values; of reports that are rows, tuples."""
    if not isinstance(outputs, np.ndarray):
        return list(outputs)
    return [tuple(x) if isinstance(x, list) else x for x in outputs.tolist()]


def _local(joint: JointTable, law: Law) -> FiniteKernel:
    inputs = law.listed_inputs
    if inputs is None:
        raise MismatchError(f"mechanism must list its inputs, got {law!r}.")
    if any(s > len(inputs) for s in joint.shape):
        raise MismatchError(
            f"mechanism must have a candidate for each of {max(joint.shape)} states, "
            f"got {len(inputs)}."
        )
    listed = law.listed_outputs()
    k = len(listed)
    _require_room(joint.pmf.size * k**joint.size)
    logs = law.log_densities(listed, inputs).T
    table: Floats = np.zeros((1, 1))
    for s in joint.shape:
        table = np.add.outer(table, logs[:s]).swapaxes(1, 2)
        table = table.reshape(table.shape[0] * s, table.shape[2] * k)
    answers = _as_labels(listed)
    outputs = tuple(itertools.product(answers, repeat=joint.size))
    name, rounding = f"{law!r} on every record", 0.0
    if isinstance(law, RandomizedResponse):
        name = f"randomised response at {float(law.epsilon):g} on every record"
    elif isinstance(law, LocalProtocol):
        # Logs of rationals of at most 100 + 2 epsilon bits, one for each category.
        bits = 100.0 + 2.0 * float(law.epsilon)
        rounding = joint.size * (law.categories + 4) * bits * 2.0**-50
    logs = table.reshape(*joint.shape, len(outputs))
    return FiniteKernel(logs, outputs, name, rounding)


def _read_array(joint: JointTable, kernel: ArrayLike, *, densities: bool) -> Floats:
    table = np.asarray(kernel, dtype=np.float64)
    if table.ndim != joint.size + 1 or table.shape[:-1] != joint.shape:
        raise MismatchError(
            f"kernel must have shape {joint.shape} and an axis of outputs, "
            f"got {table.shape}."
        )
    if not (table.size and np.isfinite(table).all() and float(table.min()) >= 0):
        raise ValueError("kernel must have finite, non-negative entries.")
    gap = float(np.abs(table.sum(axis=-1) - 1).max())
    if not densities and gap > _TOLERANCE:
        raise ValueError(
            f"kernel must have rows that sum to one within {_TOLERANCE:g}, got a gap "
            f"of {gap:.3g}; pass densities=True for densities."
        )
    return table


def _require_room(entries: int) -> None:
    if entries > _LARGEST:
        raise NotApplicable(
            f"a kernel needs at most {_LARGEST} entries, got {entries}; use the "
            "general bound, which needs no table."
        )


# The finest partition of records into mutually independent groups.
#
# Pairwise tests do not find it: with X3 = X1 xor X2 every two of three fair bits are
# independent, and the three are one group.

FACTOR_TOLERANCE = 1e-12
"""Relative difference up to which a table counts as the product of two margins.

Rounding leaves about 1e-15. A dependence this weak moves a leakage by at most four
times as much for every split; the exact engines add that, the general bound reads the
groups as independent.
"""

# Cells that a search for a split may read before the records left stay together.
_CELLS_READ = 2**28


def independent_groups(pmf: Floats) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return the finest mutually independent groups of the axes of a table.

    Parameters
    ----------
    pmf : array of shape (s_1, ..., s_n)
        A probability table.

    Returns
    -------
    groups : tuple of tuple of int
        Sorted groups; their margins multiply to the table.
    complete : bool
        False if the search was cut short. The groups are then independent of each
        other, but one of them may split further.

    Notes
    -----
    The sets that are independent of their complement are closed under intersection
    and complement, so the finest partition is unique and its group around a record is
    the smallest such set that contains it. Two dependent records share a group, so
    sets of such clusters are tried by size: ``2**(c-1)`` factorisation tests for c
    clusters at worst. Definition 6.2 of Guerra-Balboa (2026).

    Examples
    --------
    >>> xor = np.array([[[0.25, 0], [0, 0.25]], [[0, 0.25], [0.25, 0]]])
    >>> independent_groups(xor)
    (((0, 1, 2),), True)
    """
    left = tuple(range(pmf.ndim))
    groups: list[tuple[int, ...]] = []
    budget, complete = _CELLS_READ, True
    while left:
        margin = _margin(pmf, left)
        places, spent = _group_of_first(margin, budget)
        complete, budget = complete and spent < budget, budget - spent
        group = tuple(left[place] for place in places)
        groups.append(group)
        left = tuple(record for record in left if record not in group)
    return tuple(sorted(groups)), complete


def is_independent(pmf: Floats, part: Sequence[int]) -> bool:
    """Return whether the axes in `part` are jointly independent of all others."""
    inside = set(part)
    outer = tuple(axis for axis in range(pmf.ndim) if axis not in inside)
    own = pmf.sum(axis=outer, keepdims=True)
    others = pmf.sum(axis=tuple(sorted(inside)), keepdims=True)
    product = own * others
    return bool(np.all(np.abs(pmf - product) <= FACTOR_TOLERANCE * product))


def _group_of_first(pmf: Floats, budget: int) -> tuple[tuple[int, ...], int]:
    """Return the group around axis 0 and the number of cells read to find it."""
    first, *others = _dependent_clusters(pmf)
    spent = 0
    for number in range(len(others)):
        for chosen in itertools.combinations(others, number):
            part = tuple(sorted(itertools.chain(first, *chosen)))
            spent += pmf.size
            if is_independent(pmf, part):
                return part, spent
            if spent >= budget:
                return tuple(range(pmf.ndim)), spent
    return tuple(range(pmf.ndim)), spent


def _dependent_clusters(pmf: Floats) -> list[tuple[int, ...]]:
    """Return the axes clustered by pairwise dependence, the cluster of axis 0 first."""
    cluster = list(range(pmf.ndim))
    for a, b in itertools.combinations(range(pmf.ndim), 2):
        if cluster[a] != cluster[b] and not is_independent(_margin(pmf, (a, b)), (0,)):
            old, new = max(cluster[a], cluster[b]), min(cluster[a], cluster[b])
            cluster = [new if label == old else label for label in cluster]
    labels = sorted(set(cluster))
    return [tuple(a for a, of in enumerate(cluster) if of == label) for label in labels]


def _margin(pmf: Floats, axes: Sequence[int]) -> Floats:
    kept = set(axes)
    summed = tuple(axis for axis in range(pmf.ndim) if axis not in kept)
    return np.asarray(pmf.sum(axis=summed), dtype=np.float64)

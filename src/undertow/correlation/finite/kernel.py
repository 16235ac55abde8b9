"""Mechanisms on a finite table: the law of the output for every database."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.correlation.finite.joint import JointTable
from undertow.correlation.model import Model
from undertow.correlation.query import CountQuery, LinearQuery, Query
from undertow.errors import AssumptionError, MismatchError, NotApplicable
from undertow.mechanisms.discrete import DiscreteLaplaceMechanism
from undertow.mechanisms.laplace import LaplaceMechanism
from undertow.mechanisms.randomized_response import RandomizedResponse

__all__ = [
    "AnyKernel",
    "FiniteKernel",
    "FiniteQuery",
    "answer_rounding",
    "answer_step",
    "answer_table",
    "coarsest_step",
    "linear_parts",
    "local_kernel",
    "outer_sum",
    "read_kernel",
    "require_lattice",
]

Floats = NDArray[np.float64]
FiniteQuery = Query | Callable[[tuple[float, ...]], float]
"""A count, a linear query, or a function of the tuple of record values."""

AnyKernel = ArrayLike | RandomizedResponse | LaplaceMechanism | DiscreteLaplaceMechanism
"""An array of output probabilities for each database, or a mechanism."""

_TOLERANCE = 1e-9
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
        Output probabilities; a :class:`RandomizedResponse` asks every record on its
        own; Laplace noise needs a `query`.
    densities : bool
        Whether the array holds densities at the outputs where a supremum is
        reached, so that rows need not sum to one.
    query : Query or callable, optional
        What Laplace noise is added to; a callable gets the tuple of record values.
    """
    if isinstance(kernel, RandomizedResponse):
        return _local(joint, kernel)
    if isinstance(kernel, LaplaceMechanism | DiscreteLaplaceMechanism):
        return _additive(joint, kernel, query=query)
    table = _read_array(joint, kernel, densities=densities)
    with np.errstate(divide="ignore"):
        return FiniteKernel(np.log(table), tuple(range(table.shape[-1])))


def local_kernel(joint: JointTable, mechanism: RandomizedResponse) -> Floats:
    """Return the kernel that asks every record its state by randomised response.

    Parameters
    ----------
    joint : JointTable
        Gives the records and their states.
    mechanism : RandomizedResponse
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


def _local(joint: JointTable, mechanism: RandomizedResponse) -> FiniteKernel:
    k = len(mechanism.candidates)
    if any(s > k for s in joint.shape):
        raise MismatchError(
            f"mechanism must have a candidate for each of {max(joint.shape)} states, "
            f"got {k}."
        )
    _require_room(joint.pmf.size * k**joint.size)
    logs = np.array([mechanism.log_probabilities(c) for c in mechanism.candidates])
    table = np.zeros((1, 1))
    for s in joint.shape:
        table = np.add.outer(table, logs[:s]).swapaxes(1, 2)
        table = table.reshape(table.shape[0] * s, table.shape[2] * k)
    outputs = tuple(itertools.product(mechanism.candidates, repeat=joint.size))
    name = f"randomised response at {float(mechanism.epsilon):g} on every record"
    return FiniteKernel(table.reshape(*joint.shape, len(outputs)), outputs, name)


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

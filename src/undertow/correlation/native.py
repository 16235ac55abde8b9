"""The best mechanism of all for a small finite law: a yardstick, by linear program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_positive
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.kernel import answer_table
from undertow.correlation.finite.tensor import exact_leakage
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable, SearchError

__all__ = ["NativeMechanism", "native_mechanism"]

Floats = NDArray[np.float64]
_LARGEST = 20_000
# Entries of the program's constraints: about a minute.
_MOST_ENTRIES = 1_000_000
# Room kept below the promise against the solver's tolerance, and the largest factor
# with which the solver can cope, as a logarithm.
_SLACK = 1e-7
_LARGEST_TARGET = 12.0
# First share of a constant answer that is mixed in where the solver passed the promise.
_SHARE = 1e-12


@dataclass(frozen=True)
class NativeMechanism:
    """A mechanism of least expected error among all that keep a Bayesian promise.

    Parameters
    ----------
    kernel : ndarray of shape (s_1, ..., s_n, T)
        Its output probabilities.
    outputs : tuple of float
        What it answers.
    error : float
        Expected absolute error under the law.
    leakage : Leakage
        Recomputed from the kernel, not taken from the solver.
    dp_epsilon : float
        Its DP level, against attackers who know all other records; the optimum is
        made for one law, and may be far from DP.
    """

    kernel: Floats
    outputs: tuple[float, ...]
    error: float
    leakage: Leakage
    dp_epsilon: float


def native_mechanism(
    joint: JointTable,
    target: float,
    *,
    query: Query | None = None,
    outputs: Sequence[float] | None = None,
) -> NativeMechanism:
    """Return the mechanism of least expected error that leaks at most `target`.

    Parameters
    ----------
    joint : JointTable
        The law; the promise and the optimum hold for it alone.
    target : float
        Largest leakage; positive.
    query : Query, optional
        What is to be answered; the sum by default.
    outputs : sequence of float, optional
        Possible answers; by default the values the query takes.

    Raises
    ------
    NotApplicable
        If there are too many databases times outputs, or constraints.

    Notes
    -----
    All constraints are linear in the mechanism: for every attacker, known values, pair
    of secrets and output the conditional output probability is at most ``exp(target)``
    times the other. Solved by HiGHS, with a slack of 1e-7 in the exponent against its
    tolerance, and no further than a target of 12, beyond which its numbers lie too far
    apart and some 1e-5 of the error is left to gain. The leakage is recomputed exactly;
    where the solver passed the promise, a uniform answer is mixed in until it is kept,
    or the best constant given if that errs less; so the error is the least up to the
    solver's tolerance. A yardstick for recalibrated noise, not a mechanism to release
    with: its DP level is reported beside.

    Examples
    --------
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> round(native_mechanism(flatmates, 1.0).error, 5)
    0.53788
    """
    target = check_positive(target, "target")
    asked = query if query is not None else LinearQuery()
    answers = answer_table(joint, asked).ravel()
    chosen = np.unique(answers) if outputs is None else np.asarray(outputs, float)
    _require_small(joint, len(chosen))
    costs = joint.pmf.ravel()[:, None] * np.abs(answers[:, None] - chosen[None, :])
    solved = _solve(joint, costs, target=min(target, _LARGEST_TARGET))
    kernel = _within(joint, solved, target)
    constant = np.tile(np.eye(len(chosen))[costs.sum(axis=0).argmin()], (len(costs), 1))
    kernel = min(kernel, constant, key=lambda each: float((costs * each).sum()))
    table = kernel.reshape(*joint.shape, -1)
    return NativeMechanism(
        table,
        tuple(float(value) for value in chosen),
        float((costs * kernel).sum()),
        exact_leakage(joint, table),
        _dp_level(table),
    )


def _require_small(joint: JointTable, outputs: int) -> None:
    cells = joint.pmf.size * outputs
    if cells > _LARGEST:
        raise NotApplicable(
            f"databases times outputs must be at most {_LARGEST}, got {cells}; "
            "calibrate noise with calibrate instead."
        )
    # A known record has s values, an unknown one s summands.
    every = math.prod(2 * s for s in joint.shape)
    entries = outputs * every * sum(s - 1 for s in joint.shape)
    if entries > _MOST_ENTRIES:
        raise NotApplicable(
            f"the program must have at most {_MOST_ENTRIES} entries, got {entries}; "
            "calibrate noise with calibrate instead."
        )


def _within(joint: JointTable, kernel: Floats, target: float) -> Floats:
    """Mix in a uniform answer until the leakage is within the target."""
    share, mixed = 0.0, kernel
    while exact_leakage(joint, mixed.reshape(*joint.shape, -1)).value > target:
        share = min(1.0, 8 * share + _SHARE)
        mixed = (1 - share) * kernel + share / kernel.shape[-1]
    return mixed


def _solve(joint: JointTable, costs: Floats, *, target: float) -> Floats:
    from scipy import sparse
    from scipy.optimize import linprog

    databases, width = costs.shape
    promise = _promise_rows(joint, math.exp(target - min(_SLACK, target / 2)))
    limits: Any = sparse.kron(promise, sparse.identity(width), format="csr")
    total: Any = sparse.kron(
        sparse.identity(databases), np.ones((1, width)), format="csr"
    )
    found = linprog(
        costs.ravel(),
        A_ub=limits,
        b_ub=np.zeros(limits.shape[0]),
        A_eq=total,
        b_eq=np.ones(databases),
        method="highs",
    )
    if found.status != 0 or found.x is None:
        raise SearchError(
            f"the linear program must have a solution, got: {found.message}"
        )
    kernel = np.maximum(found.x.reshape(databases, width), 0.0)
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def _promise_rows(joint: JointTable, factor: float) -> Any:
    """Return one row for each attacker, known values and ordered pair of secrets."""
    from scipy import sparse

    rows = [sparse.csr_matrix((1, joint.pmf.size))]  # one that holds, if no other
    for target in range(joint.size):
        for laws in _conditionals(joint, target):
            for first, second in itertools.permutations(laws, 2):
                rows.append(sparse.csr_matrix(first - factor * second))
    return sparse.vstack(rows, format="csr")


def _conditionals(joint: JointTable, target: int) -> Iterator[list[Floats]]:
    """Yield the laws of the database given each state of the target, per knowledge."""
    others = [j for j in range(joint.size) if j != target]
    for known in itertools.product(*([*range(joint.shape[j]), None] for j in others)):
        held = np.zeros_like(joint.pmf)
        index: list[Any] = [slice(None)] * joint.size
        for record, state in zip(others, known, strict=True):
            index[record] = slice(None) if state is None else state
        held[tuple(index)] = joint.pmf[tuple(index)]
        laws = []
        for state in range(joint.shape[target]):
            part = np.zeros_like(held)
            place: list[Any] = [slice(None)] * joint.size
            place[target] = state
            part[tuple(place)] = held[tuple(place)]
            if part.sum() > 0:
                laws.append((part / part.sum()).ravel())
        yield laws


def _dp_level(kernel: Floats) -> float:
    """Return the largest log ratio between databases that differ in one record."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(kernel)
        spreads = []
        for axis in range(kernel.ndim - 1):
            spread = logs.max(axis=axis) - logs.min(axis=axis)
            spreads.append(float(np.nan_to_num(spread, nan=0.0, posinf=math.inf).max()))
    return max(spreads)

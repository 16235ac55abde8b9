"""What no mechanism can do: errors that a Bayesian promise makes unavoidable.

A promise for *every* law whose groups have at most m records makes any two databases
that differ in one group almost indistinguishable, so their answers cannot both be
given well. These statements are lower bounds on the error; they are rounded down. For
one small finite law, :func:`native_mechanism` finds the best mechanism of all
instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from undertow._validate import (
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from undertow.correlation.finite.exact import exact_leakage
from undertow.correlation.finite.joint import (
    JointTable,
    answer_rounding,
    answer_table,
    linear_parts,
)
from undertow.correlation.group import Blocks, general_budget
from undertow.correlation.level import check_level
from undertow.correlation.model import Model
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery, Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable, SearchError
from undertow.mechanisms.accuracy import laplace_accuracy, laplace_scale
from undertow.numeric.array import Floats
from undertow.numeric.exact import exact, round_down

# Covers the rounding of the logistic function and of its argument.
_MARGIN = 1e-14
# Beyond, no float tells one database more from none.
_LARGEST_EXPONENT = 700.0


def impossibility_beta(target: float) -> float:
    r"""Return the failure probability that errors of half the range cannot go below.

    .. math:: \beta \ge \frac{1}{e^{B} + 1}

    Parameters
    ----------
    target : float
        The promise B under arbitrary correlation; non-negative and finite.

    Notes
    -----
    Theorem 4.6 of [1]_ (Proposition 6.1 of [2]_), read the other way round: an answer
    that is within half of ``max f - min f`` fails at least this often. It cannot be
    raised: the mechanism that tells the truth about two databases with probability
    :math:`e^B/(e^B+1)` attains it. Rounded down.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.
    .. [2] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(impossibility_beta(1.0), 6)
    0.268941
    """
    return packing_beta(target, 1)


def packing_beta(target: float, others: int) -> float:
    r"""Return the failure probability forced by ``others + 1`` databases.

    .. math:: \beta \ge \frac{k}{k + e^{B}}

    Parameters
    ----------
    target : float
        The databases are pairwise B-indistinguishable; non-negative and finite.
    others : int
        The k: how many databases there are besides the first.

    Notes
    -----
    For databases whose answers are pairwise at least :math:`2\alpha` apart, and an
    :math:`(\alpha,\beta)`-accurate mechanism; proved on the theory page of the
    impossibility. k = 1 is Theorem 4.6 of Lange (2024). Rounded down.

    Examples
    --------
    >>> round(packing_beta(1.0, 10), 6)
    0.78627
    """
    target, k = check_level(target), check_count(others, "others")
    slack = _MARGIN * (1 + math.log(k) + min(target, _LARGEST_EXPONENT))
    return float(expit(math.log(k) - target)) * (1.0 - slack)


def accuracy_floor(target: float, beta: float, *, max_change: float) -> float | None:
    r"""Return the error that every mechanism passes with probability over `beta`.

    .. math:: \beta < \frac{1}{e^{B}+1} \quad\Longrightarrow\quad
              \alpha > \frac{\max |f(D) - f(D')|}{2}

    Parameters
    ----------
    target : float
        The promise B; non-negative and finite.
    beta : float
        Failure probability, in [0, 1).
    max_change : float
        Most that the answer changes between two databases: over all pairs for a promise
        under arbitrary correlation, over pairs that differ in one group of m records
        for a promise under groups of at most m.

    Returns
    -------
    float or None
        Accurate answers have an error *strictly* above it; None where `beta` is too
        large for any claim.

    Notes
    -----
    Proposition 6.1 of [1]_; for groups proved on the theory page. Sharp: always
    answering the middle has an error of exactly the floor. The text after the
    proposition speaks of B in (0, 4) at confidences from 90 % to 99 %; it holds for
    B below 2.197 at 90 %, 2.944 at 95 % and 4.595 at 99 %.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> accuracy_floor(1.0, 0.05, max_change=100)
    50.0
    >>> accuracy_floor(3.0, 0.05, max_change=100) is None
    True
    """
    k = _databases(check_level(target), _read_beta(beta))
    change = check_non_negative(max_change, "max_change")
    return change / 2 if k == 1 else None


def packing_floor(
    target: float, beta: float, *, max_change: float, step: float | None = None
) -> float | None:
    r"""Return an error floor that speaks for every failure probability.

    .. math:: \alpha > \frac{\max|f(D)-f(D')|}{2k}, \qquad
              k = \left\lfloor \frac{\beta e^{B}}{1-\beta} \right\rfloor + 1

    Parameters
    ----------
    target : float
        The promise B; non-negative and finite.
    beta : float
        Failure probability, in [0, 1).
    max_change : float
        Widest range of answers on databases that differ in one group.
    step : float, optional
        Spacing of the answers attained in that range, 1 for a count; by default every
        value in between is attained.

    Returns
    -------
    float or None
        Accurate answers have an error strictly above it; None where the steps are too
        coarse for the number of databases needed.

    Notes
    -----
    k + 1 evenly spaced answers in the packing bound; proved on the theory page of the
    impossibility. Equals :func:`accuracy_floor` where that speaks.

    Examples
    --------
    >>> packing_floor(3.0, 0.05, max_change=100, step=1)
    25.0
    """
    k = _databases(check_level(target), _read_beta(beta))
    change = exact(check_positive(max_change, "max_change"))
    if k is None:
        return None
    spacing = change / k
    if step is not None:
        stride = exact(check_positive(step, "step"))
        spacing = change // stride // k * stride
    return round_down(spacing / 2) if spacing > 0 else None


@dataclass(frozen=True, slots=True)
class AccuracyGap:
    """What correlation costs in error, between what is reached and what cannot be.

    Parameters
    ----------
    beta : float
        Failure probability of all the errors here.
    dp_alpha : float
        Error of continuous Laplace noise for independent records.
    bdp_alpha : float
        The same at the level of the general bound: m times the former. Noise on a
        lattice errs by at most one step more.
    floor : float, optional
        Error that every mechanism passes; None where nothing is claimed.
    """

    beta: float
    dp_alpha: float
    bdp_alpha: float
    floor: float | None

    @property
    def ratio(self) -> float | None:
        """How far Laplace noise may be from the best mechanism; None without floor."""
        if self.floor is None or self.floor == 0:
            return None
        return self.bdp_alpha / self.floor

    def to_dict(self) -> dict[str, float | None]:
        """Return the numbers by name."""
        return {
            "beta": self.beta,
            "dp_alpha": self.dp_alpha,
            "bdp_alpha": self.bdp_alpha,
            "floor": self.floor,
            "ratio": self.ratio,
        }


def accuracy_gap(
    target: float,
    group: int,
    *,
    sensitivity: float = 1.0,
    max_change: float | None = None,
    beta: float = 0.05,
) -> AccuracyGap:
    r"""Compare the error of Laplace noise under groups with what cannot be avoided.

    .. math:: \alpha_{DP} = \frac{\Delta f}{B}\ln\frac1\beta, \qquad
              \alpha_{BDP} = m\,\alpha_{DP}, \qquad
              \alpha > \tfrac12 \max_{d_H(D,D') \le m} |f(D) - f(D')|

    Parameters
    ----------
    target : float
        The promise B; positive and finite.
    group : int
        Most records in one group, m.
    sensitivity : float
        Most that one record moves the answer.
    max_change : float, optional
        Most that one group moves the answer; m times the sensitivity by default, which
        is right for sums and counts.
    beta : float
        Failure probability, in (0, 1).

    Notes
    -----
    Corollary 6.5 of [1]_ (Corollary 4.4 of [2]_) and Proposition 6.1 of [1]_. For a sum
    the ratio is :math:`2\ln(1/\beta)/B` whatever the group.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> gap = accuracy_gap(1.0, 5)
    >>> round(gap.dp_alpha, 4), round(gap.bdp_alpha, 4), gap.floor
    (2.9957, 14.9787, 2.5)
    """
    target, group = check_positive(target, "target"), check_count(group, "group")
    beta = check_probability(beta, "beta", open_interval=True)
    change = group * sensitivity if max_change is None else max_change
    independent = laplace_scale(sensitivity, target)
    grouped = laplace_scale(sensitivity, general_budget(target, group))
    return AccuracyGap(
        beta=beta,
        dp_alpha=laplace_accuracy(independent, beta),
        bdp_alpha=laplace_accuracy(grouped, beta),
        floor=accuracy_floor(target, beta, max_change=change),
    )


def model_floor(
    model: Model, target: float, *, query: Query, beta: float
) -> float | None:
    """Return the error no mechanism stays below if only the groups are known.

    Parameters
    ----------
    model : Model
        Only its groups are used: the floor is for a promise that holds under *every*
        law with groups of this size. A model that is one known law may be answered
        more accurately.
    target : float
        The promise; non-negative and finite.
    query : Query
        What is released. A group of m records moves a count by m, a weighted sum by
        the weights of the group times the range of a (clipped) record; a finite table
        says how far each record moves the answer. For a query that is not known
        (:class:`AnyQuery`) the floor is that of the hardest query of its sensitivity,
        such as a count.
    beta : float
        Failure probability, in [0, 1].

    Returns
    -------
    float or None
        None where nothing can be said: groups without limit, `beta` too large, or a
        Lipschitz query, of which only an upper limit of the change is known.

    Notes
    -----
    :func:`accuracy_floor` at the most that one group moves the answer, rounded down.
    Taken for granted: a count counts some states and not others.

    Examples
    --------
    >>> from undertow.correlation import Blocks, CountQuery
    >>> model_floor(Blocks.of_size(5, groups=9), 1.0, query=CountQuery(), beta=0.05)
    2.5
    """
    beta = check_probability(beta, "beta")
    change = group_change(model, query)
    if change is None or beta == 1:
        return None
    return accuracy_floor(target, beta, max_change=change)


def _databases(target: float, beta: float) -> int | None:
    """Return the least k with beta certainly below k / (k + e^B), None if too large."""
    if beta == 0:
        return 1
    exponent = target + math.log(beta) - math.log1p(-beta)
    if exponent > _LARGEST_EXPONENT:
        return None
    return math.floor(math.exp(exponent) * (1 + _MARGIN * (1 + abs(exponent)))) + 1


def _read_beta(beta: float) -> float:
    number = check_probability(beta, "beta")
    if number == 1:
        raise ValueError("beta must be below 1, got 1; every answer fails so often.")
    return number


# How far one group of dependent records moves the answer of a query, at least.

# Covers the rounding of a sum of weights.

# Weights that are added without error.
_FEW = 1000


def group_change(model: Model, query: Query) -> float | None:
    """Return what some group of dependent records can certainly move the answer by.

    Parameters
    ----------
    model : Model
        Its groups, and the range of its records.
    query : Query
        What is released.

    Returns
    -------
    float or None
        Rounded down; None for groups without limit, and for Lipschitz queries, of which
        only an upper limit of the change is known.

    Examples
    --------
    >>> group_change(Blocks([3, 2]), LinearQuery((1, 1, 1, 5, 5), clip=(0, 2)))
    20.0
    """
    if isinstance(model, JointTable) and isinstance(query, CountQuery | LinearQuery):
        return _table_change(model, query)
    group = model.largest_group
    if group is None:
        return None
    if isinstance(query, LinearQuery):
        weight = _weight_of_group(model, query, group)
        return round_down(weight * _range_of_record(model, query))
    if isinstance(query, CountQuery) and _counts_all_or_none(model, query):
        return 0.0
    if isinstance(query, AnyQuery | CountQuery):
        return round_down(group * Fraction(query.sensitivity(model)))
    return None


def _counts_all_or_none(model: Model, query: CountQuery) -> bool:
    """Whether no change of a record moves the count, where the states are known."""
    if model.value_range is None:
        return False
    # Models of states number them from 0; genotypes are their three dosages.
    states = getattr(model, "states", 3)
    counted = query.states & frozenset(range(states))
    return len(counted) in (0, states)


def _table_change(table: JointTable, query: CountQuery | LinearQuery) -> float:
    """Return how far the heaviest independent group moves the answer."""
    gap = query.gap if isinstance(query, LinearQuery) and query.gap else math.inf
    reach = [
        max(
            abs(part[a] - part[b])
            for a, b in itertools.product(range(len(part)), repeat=2)
            if abs(values[a] - values[b]) <= gap
        )
        for part, values in zip(linear_parts(table, query), table.values, strict=True)
    ]
    most = max(sum(reach[j] for j in group) for group in table.independent_groups())
    exactly = answer_rounding(table, query) == 0
    return most if exactly else most * (1 - _MARGIN)


def _weight_of_group(model: Model, query: LinearQuery, group: int) -> Fraction:
    if not isinstance(query.weights, tuple):
        return group * abs(Fraction(query.weights))
    weights = np.abs(query.weights_for(model.require_size("weights")))
    if isinstance(model, Blocks):
        heaviest = np.argmax(np.bincount(model.labels, weights=weights))
        return _sum(weights[model.labels == heaviest])
    # Which records form the group is not known: at least its m lightest, and at least
    # the heaviest record with its own group.
    lightest = _sum(np.sort(weights)[:group])
    return max(lightest, Fraction(query.largest_weight))


def _sum(weights: NDArray[np.float64]) -> Fraction:
    """Return the sum of non-negative numbers: exact if they are few, or from below."""
    if len(weights) <= _FEW:
        return sum(map(Fraction, weights.tolist()), Fraction(0))
    return Fraction(math.fsum(weights) * (1 - _MARGIN))


def _range_of_record(model: Model, query: LinearQuery) -> Fraction:
    """Return how far one (clipped) record can certainly move, weight aside."""
    low, high = query.clip or model.value_range or (-math.inf, math.inf)
    if query.clip is not None and model.value_range is not None:
        low, high = (min(max(x, low), high) for x in model.value_range)
    if query.gap is not None and query.gap < high - low:
        return Fraction(query.gap)
    return Fraction(high) - Fraction(low)


# The best mechanism of all for a small finite law: a yardstick, by linear program.

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

"""Exact leakage of Laplace noise on a query of a finite table.

Only the law of the *answer* given what the attacker knows matters, and it does not
depend on the noise: it is tabulated once, and each noise scale costs two recursions.
Two mixtures of Laplace noise differ most at one of their centres.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from undertow._validate import check_positive
from undertow.correlation.finite.exact import (
    Peak,
    every_attacker,
    find_peak,
    fits_extended,
    known_states,
    raise_by_rounding,
    require_extended,
)
from undertow.correlation.finite.joint import (
    FACTOR_TOLERANCE,
    FiniteQuery,
    JointTable,
    answer_rounding,
    answer_table,
    linear_parts,
    outer_sum,
    require_lattice,
)
from undertow.correlation.level import largest_level
from undertow.correlation.query import CountQuery, LinearQuery, Query, Scope
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem
from undertow.errors import NotApplicable
from undertow.numeric.array import Floats
from undertow.results import Witness

# Entries up to which method="best" tabulates: some seconds for a calibration.
_CHEAP = 2**22


def laplace_leakage(
    joint: JointTable, scale: float, *, query: FiniteQuery, step: Fraction | None = None
) -> Leakage:
    r"""Return the exact leakage of a query with Laplace noise under a finite law.

    Parameters
    ----------
    joint : JointTable
        The law of the records.
    scale : float
        The b of the noise; positive.
    query : Query or callable
        A count, a linear query, or a function of the tuple of record values.
    step : Fraction, optional
        For discrete Laplace noise: its step, of which every answer must be a multiple.

    Returns
    -------
    Leakage
        Attained by its witness; raised by a bound on its rounding.

    Raises
    ------
    NotApplicable
        If the query does not say its answers, the table is too large, or no two values
        of a record are within the query's gap.

    Notes
    -----
    Definition 2.27 of [1]_; the supremum over outputs is reached at an answer, which is
    proved on the page exact-leakage. For sums, records of other independent
    groups only blur both hypotheses alike, so each group is done on its own. Values
    outside a clip interval are secrets too, told apart by what they are clipped to, so
    every pair is covered; a gap covers the pairs within it only. Never
    grows with the scale: more noise is a post-processing. Time and memory
    ``(s+1)**m N`` for a group of m records and N different answers. Checked: the
    probabilities. Not checkable: that the table is the law.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> round(laplace_leakage(flatmates, 1.0, query=sum).value, 7)
    1.7761366
    """
    b, answers = check_positive(scale, "scale"), _Answers(joint, query)
    if step is not None:
        for law in answers.laws:
            require_lattice(law.support.tolist(), step)
    noise = "Laplace" if step is None else "discrete Laplace"
    return LaplaceJointTheorem().at_scale(answers, b, noise=noise)


@dataclass(frozen=True, eq=False)
class _Answers:
    """A query of a law of the records; the laws of its answer are tabulated once."""

    joint: JointTable
    query: FiniteQuery
    sensitivity: float = 1.0

    @cached_property
    def laws(self) -> list[AnswerLaws]:
        """The law of the answer for each group of records."""
        return list(answer_laws(self.joint, self.query))

    @property
    def scope(self) -> Scope:
        """The pairs of secrets compared."""
        return _scope_of(self.query)


class LaplaceJointTheorem(FormulaTheorem):
    """The exact leakage of a count or linear query with Laplace noise."""

    name = "laplace-exact"
    source = "Definition 2.27 (exact for Laplace noise)"
    published = False
    checked = ("the table is a probability law",)
    unchecked = ("the table is the law of the data",)

    def read(self, model: JointTable, query: Query) -> _Answers:
        """Return the query with its sensitivity; its answers are tabulated once."""
        return _Answers(model, query, query.sensitivity(model))

    def at(self, given: _Answers, epsilon: float) -> Leakage:
        """Return the exact leakage at scale sensitivity over `epsilon`."""
        if epsilon == 0 or given.sensitivity == 0:
            answer_table(given.joint, given.query)  # refuses unknown answers
            return self.stated(
                0.0, checked=(), unchecked=(), tight=True, scope=given.scope
            )
        return self.at_scale(given, given.sensitivity / epsilon)

    def at_scale(
        self, given: _Answers, scale: float, *, noise: str = "Laplace"
    ) -> Leakage:
        """Return the exact leakage at a scale of the noise."""
        value, witness = _worst(given.joint, given.laws, scale, given.scope)
        return self.stated(
            value,
            witness=witness,
            tight=True,
            model=given.joint.summary,
            mechanisms=f"{noise} noise of scale {scale:g} on the query",
            scope=given.scope,
        )

    def within(self, given: _Answers, target: float) -> float:
        """Return the largest DP level within `target`."""
        joint, laws, scope = given.joint, given.laws, given.scope
        if given.sensitivity == 0:
            return target
        return largest_level(
            lambda level: _worst(joint, laws, given.sensitivity / level, scope)[0],
            target,
            name=self.name,
        )

    def too_costly(self, model: JointTable, *, query: Query) -> str | None:
        """Return a reason if the table of answers has more than 2**22 entries."""
        if not isinstance(query, CountQuery | LinearQuery):
            return None  # refused for a better reason
        entries = sum(
            math.prod(s + 1 for s in part.shape) * np.unique(answers).size
            for _, part, answers in _groups(model, query)
        )
        if entries <= _CHEAP or not fits_extended(entries):
            return None  # what cannot be done at all is refused for that
        return f"the exact Laplace engine would tabulate {entries} probabilities"


@dataclass(frozen=True, slots=True)
class AnswerLaws:
    """The law of the answer given every attacker's knowledge, for a group of records.

    Parameters
    ----------
    records : tuple of int
        The records of the group.
    joint : JointTable
        Their law.
    support : array of shape (N,)
        The possible answers, increasing.
    laws : array of shape (s_1 + 1, ..., s_m + 1, N)
        Probabilities of the answers; nan where the condition is impossible.
    rounding : float
        Bound on the error of the difference of two answers.
    """

    records: tuple[int, ...]
    joint: JointTable
    support: Floats
    laws: Floats
    rounding: float

    def error(self, scale: float) -> float:
        """Bound the rounding of a difference of two log mixtures.

        Relative to the spread in noise scales where that is small: a mixture is then
        summed without what cancels.
        """
        spread = float(self.support[-1] - self.support[0]) / scale
        steps = 3 * self.support.size + sum(self.joint.shape) + 2 * spread + 16
        share = 2.0**-52 * steps * min(1.0, 2 * spread)
        return 4 * (share + self.rounding / scale)


def answer_laws(joint: JointTable, query: FiniteQuery) -> Iterator[AnswerLaws]:
    """Yield the law of the answer for each group that has to be looked at."""
    for records, part, answers in _groups(joint, query):
        support, place = np.unique(answers, return_inverse=True)
        require_extended(part, outputs=support.size)
        table = np.zeros((part.pmf.size, support.size))
        table[np.arange(part.pmf.size), place.ravel()] = part.pmf.ravel()
        weights = _extend_sums(table.reshape(*part.shape, support.size), part.size)
        with np.errstate(invalid="ignore"):
            laws = weights / weights.sum(axis=-1, keepdims=True)
        error = answer_rounding(joint, query, records)
        yield AnswerLaws(records, part, support, laws, error)


def _groups(
    joint: JointTable, query: FiniteQuery
) -> Iterator[tuple[tuple[int, ...], JointTable, Floats]]:
    """Yield records, law and answers: group by group for sums, else all at once."""
    if not isinstance(query, CountQuery | LinearQuery):
        yield tuple(range(joint.size)), joint, answer_table(joint, query)
        return
    parts = linear_parts(joint, query)
    for group in joint.independent_groups():
        yield group, joint.margin(group), outer_sum([parts[j] for j in group])


def _extend_sums(table: Floats, axes: int) -> Floats:
    for axis in range(axes):
        total = table.sum(axis=axis, keepdims=True)
        table = np.concatenate([table, total], axis=axis)
    return table


def _worst(
    joint: JointTable, laws: list[AnswerLaws], scale: float, scope: Scope
) -> tuple[float, Witness | None]:
    blur = _blur(laws, scale)
    found = [
        (raise_by_rounding(peak.value, law.error(scale) + blur), peak, law)
        for law in laws
        for peak in _peaks(law, scale, scope)
    ]
    if not found:
        raise NotApplicable(
            f"gap must be at least the distance of two values of a record, got "
            f"{scope.gap:g}, so that no two secrets are compared."
        )
    value, peak, law = max(found, key=lambda entry: entry[0])
    return value, _witness(joint, law, peak)


def _scope_of(query: FiniteQuery) -> Scope:
    """Return the pairs compared: all, clipped values included, unless a gap is set."""
    if isinstance(query, LinearQuery) and query.gap is not None:
        return query.scope()
    return Scope.every_pair()


def _blur(laws: list[AnswerLaws], scale: float) -> float:
    """Bound what is lost by taking groups for independent that are so up to rounding.

    Weights that are off by a relative d move the mean of a density, which varies by a
    factor F at most, by min(2 d, d (F - 1)) relative to it.
    """
    if len(laws) == 1:
        return 0.0
    spread = sum(float(law.support[-1] - law.support[0]) for law in laws) / scale
    loss = 4 * FACTOR_TOLERANCE * (len(laws) - 1)  # one split for each group but one
    return loss * (math.expm1(spread) if spread < 0.5 else 1.0)


def _peaks(law: AnswerLaws, scale: float, scope: Scope) -> Iterator[Peak]:
    logs = laplace_log_mixture(law.support, law.laws, scale=scale)
    for target in range(law.joint.size):
        pairs = _pairs_in(scope, law.joint.values[target])
        if pairs is None or pairs:
            everyone = every_attacker(law.joint, target)
            yield find_peak(logs, target, everyone, pairs=pairs)


def _pairs_in(scope: Scope, values: tuple[float, ...]) -> list[tuple[int, int]] | None:
    if scope.is_every_pair:
        return None
    return [
        (a, b)
        for a, b in itertools.combinations(range(len(values)), 2)
        if abs(values[a] - values[b]) <= scope.gap
    ]


def _witness(joint: JointTable, law: AnswerLaws, peak: Peak) -> Witness | None:
    if peak.value == -math.inf:  # nothing is secret
        return None
    states = {law.records[j]: k for j, k in known_states(law.joint, peak).items()}
    outside = [j for j in range(joint.size) if j not in law.records]
    adversary = Adversary(law.records[peak.target], [*states, *outside], states)
    if outside:
        # The output is known up to the share of the records outside the group.
        return adversary_witness(adversary, pair=peak.pair)
    output = float(law.support[peak.output])
    return adversary_witness(adversary, pair=peak.pair, output=output)


# Where two mixtures of Laplace noise differ most.
#
# Between two neighbouring centres, and beyond the outermost, the ratio of two mixtures
# of :math:`e^{-|y-c_j|/b}` is monotone in y; so its supremum is reached at a centre.
# The proof is on the page :doc:`/theory/exact-leakage`.

_TOLERANCE = 1e-9
# Centres at most this many scales apart: no mixture of probabilities underflows.
_SPREAD = 500.0
# Centres at most this many scales apart: a mixture loses less than half of its mass.
_NARROW = 0.5


def laplace_ratio_supremum(
    support: ArrayLike,
    p: ArrayLike,
    q: ArrayLike,
    *,
    scale: float,
    step: Fraction | None = None,
) -> float:
    r"""Return the largest log ratio of two Laplace mixtures over all outputs.

    .. math:: \sup_y \ln\frac{\sum_j p_j e^{-|y-c_j|/b}}{\sum_j q_j e^{-|y-c_j|/b}}
       = \max_k \ln\frac{\sum_j p_j e^{-|c_k-c_j|/b}}{\sum_j q_j e^{-|c_k-c_j|/b}}

    Parameters
    ----------
    support : array_like of shape (N,)
        The centres c, strictly increasing.
    p, q : array_like of shape (N,)
        Probabilities; each sums to one within 1e-9 and is normalised.
    scale : float
        The b of the noise; positive.
    step : Fraction, optional
        For discrete Laplace noise: its step, of which every centre must be a multiple.
        The supremum is then the same.

    Returns
    -------
    float
        Rounded to nearest, not raised; error about ``1e-15 (N + spread/b)``, and times
        ``spread/b`` where that is below a half.

    Notes
    -----
    Proved in full on the page exact-leakage. Time O(N): two recursions, not N^2 sums.

    Examples
    --------
    >>> p, q = [0, 0.1, 0.9], [0.9, 0.1, 0]
    >>> round(laplace_ratio_supremum([0, 1, 2], p, q, scale=1), 6)
    1.776137
    """
    found = laplace_ratio_suprema(
        support, np.asarray([p]), np.asarray([q]), scale=scale, step=step
    )
    return float(found[0])


def laplace_ratio_suprema(
    support: ArrayLike,
    p: ArrayLike,
    q: ArrayLike,
    *,
    scale: float,
    step: Fraction | None = None,
) -> Floats:
    """Return the largest log ratio for each row of many pairs of mixtures.

    Parameters
    ----------
    support, scale, step
        As in :func:`laplace_ratio_supremum`.
    p, q : array_like of shape (R, N)
        One pair of mixtures per row.

    Returns
    -------
    array of shape (R,)

    Examples
    --------
    >>> laplace_ratio_suprema([0, 1], [[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]],
    ...                       scale=0.5)
    array([2., 0.])
    """
    centres, b = _read_support(support), check_positive(scale, "scale")
    if step is not None:
        require_lattice(centres.tolist(), step)
    over, under = (
        laplace_log_mixture(centres, _read_weights(rows, name, centres), scale=b)
        for rows, name in ((p, "p"), (q, "q"))
    )
    return np.asarray((over - under).max(axis=-1), dtype=np.float64)


def laplace_log_mixture(support: Floats, weights: Floats, *, scale: float) -> Floats:
    r"""Return :math:`\ln\sum_j w_j e^{-|c_k-c_j|/b}` at every centre, row by row.

    Parameters
    ----------
    support : array of shape (N,)
        Increasing centres.
    weights : array of shape (..., N)
        Each row sums to one; rows of nan give nan.
    scale : float
        The b of the noise.

    Notes
    -----
    With :math:`A_k=\sum_{j\le k}w_je^{-(c_k-c_j)/b}`, :math:`A_k =
    A_{k-1}e^{-(c_k-c_{k-1})/b}+w_k`, and the same from the right. All terms are
    positive. Supports narrower than the noise sum :math:`e^{-(c_k-c_j)/b}-1` instead,
    so that differences of two results keep their relative accuracy as b grows. Wide
    ones, on which a row could underflow, use logarithms throughout.
    """
    gaps = np.diff(support) / scale
    spread = float(support[-1] - support[0])
    if spread <= _NARROW * scale:
        return _narrow_mixture(weights, gaps)
    if spread <= _SPREAD * scale:
        return _mixture(weights, np.exp(-gaps))
    return _wide_mixture(weights, gaps)


def _narrow_mixture(weights: Floats, gaps: Floats) -> Floats:
    """Sum what each weight loses on the way; both directions lose, none gains."""
    lost, steps = np.zeros_like(weights), np.expm1(-gaps)
    last = weights.shape[-1] - 1
    left, right = np.zeros(weights.shape[:-1]), np.zeros(weights.shape[:-1])
    passed, ahead = left.copy(), right.copy()
    for k in range(1, last + 1):
        passed = passed + weights[..., k - 1]
        left = left + (passed + left) * steps[k - 1]
        lost[..., k] += left
        ahead = ahead + weights[..., last - k + 1]
        right = right + (ahead + right) * steps[last - k]
        lost[..., last - k] += right
    return np.asarray(np.log1p(lost), dtype=np.float64)


def _mixture(weights: Floats, decay: Floats) -> Floats:
    total = weights.copy()
    left, right = np.zeros(weights.shape[:-1]), np.zeros(weights.shape[:-1])
    last = weights.shape[-1] - 1
    for k in range(1, last + 1):
        left = (left + weights[..., k - 1]) * decay[k - 1]
        total[..., k] += left
        right = (right + weights[..., last - k + 1]) * decay[last - k]
        total[..., last - k] += right
    return np.asarray(np.log(total), dtype=np.float64)


def _wide_mixture(weights: Floats, gaps: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    total = logs.copy()
    left, right = np.full(logs.shape[:-1], -np.inf), np.full(logs.shape[:-1], -np.inf)
    last = weights.shape[-1] - 1
    with np.errstate(invalid="ignore"):  # rows of nan
        for k in range(1, last + 1):
            left = np.logaddexp(left, logs[..., k - 1]) - gaps[k - 1]
            total[..., k] = np.logaddexp(total[..., k], left)
            right = np.logaddexp(right, logs[..., last - k + 1]) - gaps[last - k]
            total[..., last - k] = np.logaddexp(total[..., last - k], right)
    return total


def _read_support(support: ArrayLike) -> Floats:
    centres = np.asarray(support, dtype=np.float64)
    if centres.ndim != 1 or centres.size == 0 or not np.isfinite(centres).all():
        raise ValueError("support must be a vector of finite numbers.")
    if not (np.diff(centres) > 0).all():
        raise ValueError("support must be strictly increasing.")
    return centres


def _read_weights(rows: ArrayLike, name: str, centres: Floats) -> Floats:
    weights = np.asarray(rows, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[-1] != centres.size:
        raise ValueError(
            f"{name} must have one weight for each of {centres.size} centres, "
            f"got shape {weights.shape}."
        )
    totals = weights.sum(axis=-1, keepdims=True)
    if not (weights >= 0).all() or not (np.abs(totals - 1) <= _TOLERANCE).all():
        raise ValueError(f"{name} must be non-negative and sum to one.")
    return np.asarray(weights / totals, dtype=np.float64)

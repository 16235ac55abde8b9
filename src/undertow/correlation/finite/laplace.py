"""Exact leakage of Laplace noise on a query of a finite table.

Only the law of the *answer* given what the attacker knows matters, and it does not
depend on the noise: it is tabulated once, and each noise scale costs two recursions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.finite.extended import (
    Peak,
    every_attacker,
    find_peak,
    fits_extended,
    known_states,
    raise_by_rounding,
    require_extended,
)
from undertow.correlation.finite.groups import FACTOR_TOLERANCE
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.kernel import (
    FiniteQuery,
    answer_rounding,
    answer_table,
    linear_parts,
    outer_sum,
    require_lattice,
)
from undertow.correlation.finite.mixture import laplace_log_mixture
from undertow.correlation.method import Method, check_level, largest_epsilon
from undertow.correlation.query import CountQuery, LinearQuery, Query
from undertow.correlation.result import Leakage
from undertow.correlation.scope import Scope
from undertow.errors import NotApplicable
from undertow.privacy.result import Witness

__all__ = ["AnswerLaws", "LaplaceJointMethod", "answer_laws", "laplace_leakage"]

Floats = NDArray[np.float64]

_THEOREM = "Definition 2.27 (exact for Laplace noise)"
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
    b, scope = check_positive(scale, "scale"), _scope_of(query)
    laws = list(answer_laws(joint, query))
    if step is not None:
        for law in laws:
            require_lattice(law.support.tolist(), step)
    value, witness = _worst(joint, laws, b, scope)
    noise = "Laplace" if step is None else "discrete Laplace"
    return Leakage(
        value,
        _THEOREM,
        checked=("the table is a probability law",),
        unchecked=("the table is the law of the data",),
        witness=witness,
        tight=True,
        method=LaplaceJointMethod.name,
        model=joint.summary,
        mechanisms=f"{noise} noise of scale {b:g} on the query",
        scope=scope,
    )


class LaplaceJointMethod(Method):
    """The exact leakage of a count or linear query with Laplace noise."""

    name: ClassVar[str] = "laplace-exact"
    theorem: ClassVar[str] = _THEOREM
    published: ClassVar[bool] = False

    def leakage(self, model: JointTable, epsilon: float, *, query: Query) -> Leakage:
        """Return the exact leakage at scale sensitivity over `epsilon`."""
        epsilon = check_level(epsilon)
        sensitivity = query.sensitivity(model)
        if epsilon == 0 or sensitivity == 0:
            answer_table(model, query)  # refuses queries without known answers
            return Leakage(
                0.0, self.theorem, tight=True, method=self.name, scope=_scope_of(query)
            )
        return laplace_leakage(model, sensitivity / epsilon, query=query)

    def budget(self, model: JointTable, target: float, *, query: Query) -> float:
        """Return the largest DP level within `target`; the laws are tabulated once."""
        sensitivity, scope = query.sensitivity(model), _scope_of(query)
        laws = list(answer_laws(model, query))
        if sensitivity == 0:
            return check_positive(target, "target")
        return largest_epsilon(
            lambda epsilon: _worst(model, laws, sensitivity / epsilon, scope)[0],
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

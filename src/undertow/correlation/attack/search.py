"""The strongest attack on a finite table, and noise calibrated to it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_index, check_positive, check_probability
from undertow.correlation.adversary import Adversary
from undertow.correlation.attack.laplace_laws import laplace_variation
from undertow.correlation.attack.optimal import Attack, laplace_attack
from undertow.correlation.attack.promise import leakage_for_advantage
from undertow.correlation.calibrate import calibrate
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.kernel import (
    answer_table,
    coarsest_step,
    require_lattice,
)
from undertow.correlation.finite.tensor import require_extended
from undertow.correlation.model import Model
from undertow.correlation.query import LinearQuery, Query
from undertow.correlation.result import CoveredMechanisms, Leakage
from undertow.correlation.scope import Scope
from undertow.errors import NotApplicable
from undertow.mechanisms.accuracy import laplace_scale
from undertow.privacy.exact import Number, exact

__all__ = [
    "AdvantageCalibration",
    "calibrate_advantage",
    "optimal_attack",
    "strongest_attack",
]

Floats = NDArray[np.float64]
# Rows of mixtures whose total variation is taken at once.
_ROWS = 2**15
# Cover the rounding of probabilities, and of the sums of a total variation.
_MARGIN = 1e-12
_ROUNDING = 2.0**-50
_WIDTH = 1e-13
# Beyond this level noise is immaterial: whatever can be told apart is.
_LARGEST_LEVEL = 1e4


def optimal_attack(
    joint: JointTable,
    epsilon: float,
    *,
    adversary: Adversary,
    pair: tuple[int, int],
    query: Query | None = None,
    step: Number = 0,
) -> Attack:
    """Return the best attack of one adversary on Laplace noise of one query.

    Parameters
    ----------
    joint : JointTable
        The law of the records.
    epsilon : float
        DP level: noise of scale sensitivity over epsilon; positive.
    adversary : Adversary
        With the states of every known record.
    pair : tuple of int
        The two states of the target to tell apart.
    query : Query, optional
        The sum of the records by default.
    step : int, float, str, Decimal or Fraction
        Step of the lattice that the noise is drawn on, of which every answer must be a
        multiple; 0 for continuous noise.

    Notes
    -----
    Noise on a coarser lattice hides less: give the step of what is released.

    Examples
    --------
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> found = optimal_attack(flatmates, 1.0, adversary=Adversary(0), pair=(1, 0))
    >>> round(found.advantage, 6)
    0.568909
    >>> alone = JointTable([0.5, 0.5])
    >>> for step in (0, "0.5", 1):
    ...     found = optimal_attack(
    ...         alone, 1.0, adversary=Adversary(0), pair=(1, 0), step=step
    ...     )
    ...     print(round(found.advantage, 6))
    0.393469
    0.393469
    0.462117
    """
    epsilon = check_positive(epsilon, "epsilon")
    asked = query if query is not None else LinearQuery()
    adversary.within(joint.size)
    if set(adversary.values) != set(adversary.known):
        raise ValueError("adversary must say the state of every known record.")
    support, laws = _answer_laws(joint, asked)
    index = [joint.shape[j] for j in range(joint.size)]  # unknown
    for record, state in adversary.values.items():
        index[record] = check_index(state, "known state", size=joint.shape[record])
    rows = []
    for state in pair:
        size = joint.shape[adversary.target]
        index[adversary.target] = check_index(state, "state", size=size)
        weights = laws[tuple(index)]
        if not weights.sum() > 0:
            raise NotApplicable(
                f"state {state} must be possible given what is known, got "
                "probability 0."
            )
        rows.append(weights / weights.sum())
    scale = asked.sensitivity(joint) / epsilon
    return laplace_attack(
        support,
        *rows,
        scale=scale,
        adversary=adversary,
        pair=pair,
        step=float(exact(step, "step")),
    )


def strongest_attack(
    joint: JointTable,
    epsilon: float,
    *,
    query: Query | None = None,
    step: Number = 0,
) -> Attack:
    """Return the attack of largest advantage over all adversaries and pairs.

    Parameters
    ----------
    joint, epsilon, query, step
        As in :func:`optimal_attack`.

    Notes
    -----
    All conditional answer laws are slices of one extended table; their total
    variations are taken in closed form, row by row. Time ``n s**2 (s+1)**(n-1) N``.

    Raises
    ------
    NotApplicable
        If no record has two possible states, or the table is too large.
    """
    epsilon = check_positive(epsilon, "epsilon")
    asked = query if query is not None else LinearQuery()
    support, laws = _answer_laws(joint, asked)
    scale = asked.sensitivity(joint) / epsilon
    spacing = float(exact(step, "step"))
    if spacing:
        require_lattice(support.tolist(), Fraction(spacing))
    found = list(_advantages(joint, support, laws, scale=scale, step=spacing))
    if not found:
        raise NotApplicable(
            "an attack needs a record of two possible states, got a table without."
        )
    _, adversary, pair = max(found, key=lambda row: row[0])
    return optimal_attack(
        joint, epsilon, adversary=adversary, pair=pair, query=asked, step=step
    )


@dataclass(frozen=True, slots=True)
class AdvantageCalibration:
    """The DP level that keeps every inference attack on a release within an advantage.

    Parameters
    ----------
    epsilon : float
        The level chosen.
    noise_scale : float
        Laplace scale for the query.
    advantage : float
        The promise.
    method : str
        ``"exact"``: the advantage itself was searched; ``"leakage"``: through the
        leakage that implies it, which needs more noise.
    through_leakage : float
        The level that going through the leakage would give.
    covers : CoveredMechanisms
        The mechanisms whose release the promise is about; it refuses the others.
    scope : Scope
        The pairs of secrets that the promise covers.
    note : str
        Why the advantage itself was not searched, or its search gave no higher level.
    """

    epsilon: float
    noise_scale: float
    advantage: float
    method: str
    through_leakage: float
    covers: CoveredMechanisms
    scope: Scope = field(default_factory=Scope)
    note: str = ""


def calibrate_advantage(
    model: Model, advantage: float, *, query: Query | None = None
) -> AdvantageCalibration:
    r"""Return the largest DP level whose best attack stays within `advantage`.

    Parameters
    ----------
    model : Model
        How the records depend. A :class:`JointTable` that is small enough is searched
        exactly for a query that says its answers; otherwise the leakage
        :math:`\ln\frac{1+A}{1-A}` is calibrated.
    advantage : float
        True-positive minus false-positive rate allowed, in (0, 1).
    query : Query, optional
        The sum of the records by default.

    Notes
    -----
    The Laplace law of a larger scale is that of a smaller one plus independent noise, a
    post-processing, so the advantage does not decrease in epsilon and bisection is
    sound; this is so on a lattice as well. The attack searched is the one on noise
    drawn on the coarsest lattice (of a step that is a power of two) that holds all
    answers, the whole numbers for a count: noise on a finer one, and continuous noise,
    is that noise plus independent noise, so that no attack on it does better. Another
    mechanism of the same level may do worse, unless `query` is :class:`AnyQuery`. The
    total variations compared are raised by a bound on their rounding.

    Examples
    --------
    >>> from undertow.mechanisms import DiscreteLaplaceMechanism
    >>> flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    >>> found = calibrate_advantage(flatmates, 0.4621171)
    >>> found.epsilon > found.through_leakage
    True
    >>> strongest_attack(flatmates, found.epsilon, step=1).advantage <= 0.4621171
    True
    >>> found.covers.require(DiscreteLaplaceMechanism(found.noise_scale))
    """
    advantage = check_probability(advantage, "advantage", open_interval=True)
    asked = query if query is not None else LinearQuery()
    target = leakage_for_advantage(advantage)
    through = calibrate(model, target, query=asked)
    assert through.covers is not None
    assert isinstance(through.achieves, Leakage)
    note = "the best attack is worked out for a finite table only"
    if isinstance(model, JointTable):
        try:
            level, step = _exact_level(model, advantage, asked)
        except NotApplicable as refusal:
            level, step, note = 0.0, None, str(refusal)
        else:
            note = "the search of the best attack gives no higher level"
        if level > through.epsilon:
            sensitivity = asked.sensitivity(model)
            scale = laplace_scale(sensitivity, level)
            return AdvantageCalibration(
                level,
                scale,
                advantage,
                "exact",
                through.epsilon,
                CoveredMechanisms(level, scale, sensitivity, every=False, step=step),
                Scope.every_pair(),
            )
    return AdvantageCalibration(
        through.epsilon,
        through.noise_scale,
        advantage,
        "leakage",
        through.epsilon,
        through.covers,
        through.achieves.scope,
        note,
    )


def _exact_level(
    joint: JointTable, advantage: float, query: Query
) -> tuple[float, Fraction | None]:
    """Return the largest level of noise on the coarsest lattice, and its step."""
    support, laws = _answer_laws(joint, query)
    sensitivity = query.sensitivity(joint)
    step = coarsest_step(support.tolist())
    spacing, spread = float(step or 0), float(support[-1] - support[0])

    def worst(epsilon: float) -> float:
        scale = sensitivity / epsilon
        rows = _advantages(joint, support, laws, scale=scale, step=spacing)
        rounding = _ROUNDING * len(support) * min(1.0, spread / scale)
        return max((row[0] for row in rows), default=0.0) * (1 + _MARGIN) + rounding

    # By the general bound the leakage at this level is within that of the promise.
    low = leakage_for_advantage(advantage) / joint.size
    high = 2 * low
    while worst(high) <= advantage:
        low, high = high, 2 * high
        if high > _LARGEST_LEVEL:
            return low, step
    while high - low > _WIDTH * high:
        middle = (low + high) / 2
        low, high = (middle, high) if worst(middle) <= advantage else (low, middle)
    return low, step


def _answer_laws(joint: JointTable, query: Query) -> tuple[Floats, Floats]:
    """Return the answers, and their masses with one more index a record: unknown."""
    answers = answer_table(joint, query)
    support, place = np.unique(answers, return_inverse=True)
    require_extended(joint, outputs=len(support))
    laws = np.zeros((*joint.shape, len(support)))
    np.put_along_axis(
        laws, place.reshape(joint.shape)[..., None], joint.pmf[..., None], axis=-1
    )
    for axis in range(joint.size):
        total = laws.sum(axis=axis, keepdims=True)
        laws = np.concatenate([laws, total], axis=axis)
    return support, laws


def _advantages(
    joint: JointTable, support: Floats, laws: Floats, *, scale: float, step: float
) -> Iterator[tuple[float, Adversary, tuple[int, int]]]:
    """Yield the largest advantage of each target and pair, with its adversary."""
    for target in range(joint.size):
        rows = np.moveaxis(laws, target, 0).reshape(
            laws.shape[target], -1, len(support)
        )
        shape = [s + 1 for j, s in enumerate(joint.shape) if j != target]
        for first in range(joint.shape[target]):
            for second in range(first):
                value, row = _best_row(
                    rows[first], rows[second], support, scale=scale, step=step
                )
                if value < 0:  # nobody holds both states possible
                    continue
                known = [int(z) for z in np.unravel_index(row, shape)] if shape else []
                yield value, _attacker(joint, target, known), (first, second)


def _best_row(
    first: Floats, second: Floats, support: Floats, *, scale: float, step: float
) -> tuple[float, int]:
    best, where = -math.inf, 0
    for start in range(0, len(first), _ROWS):
        p, q = first[start : start + _ROWS], second[start : start + _ROWS]
        masses = p.sum(axis=1), q.sum(axis=1)
        possible = (masses[0] > 0) & (masses[1] > 0)
        safe = [np.where(possible, mass, 1.0)[:, None] for mass in masses]
        found = laplace_variation(
            support, p / safe[0] - q / safe[1], scale=scale, step=step
        )
        found = np.where(possible, found, -math.inf)
        row = int(found.argmax())
        if found[row] > best:
            best, where = float(found[row]), start + row
    return best, where


def _attacker(joint: JointTable, target: int, known: list[int]) -> Adversary:
    others = [j for j in range(joint.size) if j != target]
    values = {
        record: state
        for record, state in zip(others, known, strict=True)
        if state < joint.shape[record]
    }
    return Adversary(target, values, values)

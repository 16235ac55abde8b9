r"""A given attack as a table, and its exact success, correction and advantage.

The advantage of an attack A is its success on a target that took part, minus its
success on the same target when an independent record took part instead (thesis,
Definition 5.1). It may be negative, and it is zero for every attack that ignores the
output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import MismatchError, ModelError
from undertow.risk.channel import Channel, as_channel
from undertow.risk.threat import Threat

__all__ = ["ABSTAIN", "AttackRisk", "Decision", "attack_risk"]

ABSTAIN = -1
"""The entry of a table that declines to answer."""

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class AttackRisk:
    """The exact figures of one attack, to about 1e-13; they bound no other attack.

    Parameters
    ----------
    success : float
        Probability of success when the target took part.
    correction : float
        Probability of success when an independent record took part.
    advantage : float
        Their difference, summed as such; it may be negative.
    """

    success: float
    correction: float
    advantage: float

    def to_dict(self) -> dict[str, float]:
        """Return the three numbers by name."""
        return {
            "success": self.success,
            "correction": self.correction,
            "advantage": self.advantage,
        }


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Decision:
    """What an attack answers to each output and each thing known.

    Parameters
    ----------
    table : array_like of int, of shape (outputs, fibres), or of float, of shape
        (outputs, fibres, guesses)
        The number of the guess, or a law over the guesses. Fibres are numbered by
        ``threat.labels``, guesses as in ``threat.guesses``. :data:`ABSTAIN` and laws
        that sum to less than 1 decline to answer, where the threat allows it.

    Examples
    --------
    >>> Decision([[0], [1]]).table.shape
    (2, 1)
    """

    table: NDArray[Any]

    def __init__(self, table: ArrayLike) -> None:
        answers = _table(table)
        whole = np.issubdtype(answers.dtype, np.integer)
        if answers.ndim != (2 if whole else 3) or answers.dtype.kind not in "iuf":
            raise ModelError(
                "table must be whole numbers [output, fibre] or probabilities "
                f"[output, fibre, guess], got {answers.dtype} of shape {answers.shape}."
            )
        answers.setflags(write=False)
        object.__setattr__(self, "table", answers)

    @classmethod
    def ignoring_output(cls, guesses: Sequence[int], *, outputs: int) -> Decision:
        """Answer by what is known alone: imputation, "always a member", a constant.

        Parameters
        ----------
        guesses : sequence of int
            The guess for each fibre.
        outputs : int
            Number of outputs.
        """
        return cls(np.tile(np.asarray(guesses, dtype=np.intp), (outputs, 1)))

    @classmethod
    def reporting(cls, threat: Threat, *, outputs: int) -> Decision:
        """Answer with the output itself, for outputs that number the guesses."""
        fibres = len(threat.fibres)
        return cls(np.tile(np.arange(outputs, dtype=np.intp)[:, None], (1, fibres)))

    @classmethod
    def from_function(
        cls, function: Callable[[int, int], int], threat: Threat, *, outputs: int
    ) -> Decision:
        """Tabulate a function of the numbers of the output and of the fibre."""
        fibres = range(len(threat.fibres))
        return cls([[function(seen, z) for z in fibres] for seen in range(outputs)])

    @classmethod
    def largest_posterior(cls, source: Any, threat: Threat) -> Decision:
        """Return the attack of best success: of largest posterior, first of equals.

        Its advantage may be zero; the attack of best advantage is
        :class:`~undertow.risk.optimal.OptimalAttack`.
        """
        channel = _finite(source, threat)
        joint = threat.prior.pmf[:, None] * channel.matrix
        fibres = threat.fibres
        columns = []
        for fibre, sets in zip(
            fibres, threat.success.sets(threat.support, fibres), strict=True
        ):
            columns.append(sets.sums(joint[fibre])[sets.member].argmax(axis=0))
        return cls(np.stack(columns, axis=1))


def attack_risk(source: Any, threat: Threat, *, decision: Decision) -> AttackRisk:
    r"""Compute success, correction and advantage of one attack exactly.

    .. math:: \mathrm{RAD}(A) = \sum_x \sum_\theta \pi_x\,(p(\theta \mid x) - p(\theta))
       \Pr[\ell(A(\theta, a(x)), x) \le \eta]

    Parameters
    ----------
    source : Channel or mechanism with finitely many outputs
        The law of the output for each record.
    threat : Threat
        Prior, success rule and knowledge.
    decision : Decision
        The attack.

    Returns
    -------
    AttackRisk
        Exact up to rounding. It says what this attack does, and is only a lower bound
        of what the best one does.

    Raises
    ------
    MismatchError
        If the table does not fit the channel, the fibres or the guesses.

    Notes
    -----
    Equation 5.5 of [1]_. The knowledge is always that of the target, in the correction
    too, where the output comes from another record. Cost: one entry per record and
    output, times the number of guesses for randomised tables.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> p, q = 2 / 3, 1 / 6
    >>> P = Channel([[p, q, q], [q, p, q], [q, q, p]])
    >>> threat = Threat(Prior(3, [0.5, 0.3, 0.2]))
    >>> risk = attack_risk(P, threat, decision=Decision([[0], [1], [2]]))
    >>> [round(v, 10) for v in (risk.success, risk.correction, risk.advantage)]
    [0.6666666667, 0.3566666667, 0.31]
    """
    channel = _finite(source, threat)
    answers = _fitting(decision, channel, threat)
    pmf, laws = threat.prior.pmf, channel.matrix
    chance = _success_chance(answers, threat)
    overall = pmf @ laws
    return AttackRisk(
        math.fsum(pmf * (laws * chance).sum(axis=1)),
        math.fsum(pmf * (chance @ overall)),
        math.fsum(pmf * ((laws - overall) * chance).sum(axis=1)),
    )


def _success_chance(answers: NDArray[Any], threat: Threat) -> Floats:
    """Return the chance of success on each truth (row) after each output (column)."""
    labels, support = threat.labels, threat.support
    truths = np.arange(len(support), dtype=np.intp)[:, None]
    if answers.ndim == 2:
        guesses = answers.T[labels]
        given = guesses != ABSTAIN
        hits = threat.success.hits(
            support, guesses=np.where(given, guesses, 0), truths=truths
        )
        return np.asarray(hits & given, dtype=np.float64)
    hits = threat.success.matrix(support).astype(np.float64)
    chances = [answers[:, labels[x], :] @ hits[:, x] for x in range(len(support))]
    return np.asarray(np.stack(chances))


def _finite(source: Any, threat: Threat) -> Channel:
    channel = as_channel(source, threat.support)
    if not isinstance(channel, Channel):
        raise MismatchError(
            "a table of decisions must go with a Channel, got a stream of columns; "
            "build the matrix."
        )
    return channel


def _table(table: ArrayLike) -> NDArray[Any]:
    try:
        return np.array(table)
    except ValueError:
        raise ModelError(
            "table must have rows of one length, got uneven ones."
        ) from None


def _fitting(decision: Decision, channel: Channel, threat: Threat) -> NDArray[Any]:
    if not isinstance(decision, Decision):
        raise TypeError(
            f"decision must be a Decision, got {type(decision).__name__}; wrap a table."
        )
    answers, known = decision.table, len(threat.fibres)
    guesses = len(threat.guesses)
    if answers.shape[:2] != (channel.outputs, known):
        raise MismatchError(
            f"table must have {channel.outputs} outputs and {known} fibres, got shape "
            f"{answers.shape}."
        )
    if answers.ndim == 2:
        least, valid = (ABSTAIN if threat.abstain else 0), answers.max() < guesses
        valid = bool(valid and answers.min() >= least)
    else:
        total = answers.sum(axis=2)
        short = total.max() <= 1 + _TOLERANCE if threat.abstain else False
        proper = short or np.abs(total - 1.0).max() <= _TOLERANCE
        valid = answers.shape[2] == guesses and bool(answers.min() >= 0 and proper)
    if not valid:
        raise MismatchError(
            f"table must hold guesses among the {guesses} allowed or laws over them, "
            "and decline to answer only where the threat allows it."
        )
    return answers

"""Attacks on a channel with finitely many outputs: the best one, and any given one.

The exact engine sums the largest gain over the outputs, in one pass over the columns:
O(m) per output for exact or attribute success, for full knowledge and on a line;
otherwise one addition per hit of a guess on a truth. What it finds is a :class:`Risk`.

A given attack is a table, a :class:`Decision`; its exact success, correction and
advantage are an :class:`AttackRisk`. The attack that attains the exact risk is the
:class:`OptimalAttack`, the guess of largest gain, posterior minus prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index
from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.numeric.array import Floats
from undertow.numeric.rounding import UNIT
from undertow.results import Bound, Witness
from undertow.risk.channel import Channel, ChannelStream, as_channel
from undertow.risk.success import HitSets
from undertow.risk.threat import Threat

WORK_LIMIT = 4 * 10**12
"""Additions beyond which the exact engine refuses: minutes of one core."""


# Entries of the arrays held at a time.
_HELD = 1 << 22
_UNCHECKED = ("the target is independent of the other records", "the prior is public")


@dataclass(frozen=True, slots=True)
class Risk(Bound):
    """A proved risk under a stated threat.

    Parameters
    ----------
    value, theorem, unchecked, checked, quantity, witness, tight
        As in :class:`~undertow.privacy.Bound`; `tight` says that an attack attains it.
    threat : str
        The threat in words.
    ceiling : float
        The largest value any mechanism can have under this threat.
    baseline : float
        What an attacker reaches without looking at the output.
    """

    quantity: str = "advantage"
    threat: str = ""
    ceiling: float = 1.0
    baseline: float = 0.0

    def __post_init__(self) -> None:
        Bound.__post_init__(self)
        if not 0 <= self.value <= 1:
            raise ValueError(f"a risk must be in [0, 1], got {self.value}.")

    @property
    def share(self) -> float:
        """The value as a share of its ceiling: the normalised advantage."""
        return self.value / self.ceiling if self.ceiling > 0 else 0.0


def finite_advantage(source: Any, threat: Threat) -> Risk:
    """Return the advantage of the best attack on a channel or a finite mechanism.

    :func:`~undertow.risk.exact.advantage` says what it is, and chooses the engine.
    """
    plan = _Plan.of(threat)
    total, error = plan.fold(as_channel(source, threat.support), _gains)
    ceiling = threat.ceiling
    return Risk(
        # Ignoring the output gives 0, so a negative sum is rounding.
        min(max(0.0, total) + error, ceiling) if plan.matters else 0.0,
        "thesis, Theorem 5.3",
        _UNCHECKED,
        ("rows are probability laws", "records of channel and threat agree"),
        witness=Witness(
            "adversary", "the guess of largest gain, posterior minus prior"
        ),
        tight=True,
        threat=threat.summary,
        ceiling=ceiling,
    )


def finite_success_rate(source: Any, threat: Threat) -> Risk:
    """Return the success of the best guess on a channel or a finite mechanism.

    :func:`~undertow.risk.exact.success_rate` says what it is.
    """
    plan = _Plan.of(threat)
    total, error = plan.fold(as_channel(source, threat.support), _joint)
    return Risk(
        min(1.0, total + error),
        "Bayes vulnerability",
        _UNCHECKED,
        ("rows are probability laws", "records of channel and threat agree"),
        "success",
        Witness("adversary", "the guess of largest posterior"),
        True,
        threat=threat.summary,
        baseline=threat.informed_guess,
    )


def _gains(block: Floats, pmf: Floats) -> Floats:
    """Return pi_x w(theta, x); exactly zero where an output says nothing."""
    gains: Floats = pmf[:, None] * (block - pmf @ block)
    gains[:, ~_telling(block, pmf)] = 0.0
    return gains


def _telling(block: Floats, pmf: Floats) -> NDArray[np.bool_]:
    """Return which outputs are not equally likely on all possible records."""
    possible = block[pmf > 0]
    return np.asarray(possible.max(axis=0) != possible.min(axis=0))


def _joint(block: Floats, pmf: Floats) -> Floats:
    """Return the probability of a record together with an output."""
    return np.asarray(pmf[:, None] * block)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The fibres of a threat: single records, and larger ones with their hit sets."""

    threat: Threat
    singles: NDArray[np.intp]
    deniable: NDArray[np.bool_]  # of each single: may the answer be no?
    groups: tuple[tuple[NDArray[np.intp], HitSets], ...]

    @classmethod
    def of(cls, threat: Threat) -> _Plan:
        if not isinstance(threat, Threat):
            raise TypeError(f"threat must be a Threat, got {type(threat).__name__}.")
        fibres, support = threat.fibres, threat.support
        singles = np.array([f[0] for f in fibres if len(f) == 1], dtype=np.intp)
        several = [fibre for fibre in fibres if len(fibre) > 1]
        sets = threat.success.sets(support, several)
        missed = threat.success.missed(support) | threat.abstain
        groups = tuple(zip(several, sets, strict=True))
        return cls(threat, singles, missed[singles], groups)

    @property
    def whole(self) -> bool:
        """Whether one fibre holds every record."""
        return len(self.groups) == 1 and not len(self.singles)

    @property
    def matters(self) -> bool:
        """Whether guesses differ: if all hit the same truths, nothing is gained."""
        if self.whole:
            sets = self.groups[0][1]
            return bool(((sets.sizes > 0) & ~sets.full).any())
        if len(self.threat.prior) == 1:
            return False
        partial = any(not sets.full.all() for _, sets in self.groups)
        return partial or bool(self.deniable.any()) or self.threat.abstain

    def fold(
        self,
        channel: Channel | ChannelStream,
        weigh: Callable[[Floats, Floats], Floats],
    ) -> tuple[float, float]:
        """Sum the best guesses over all outputs; return the sum and its error."""
        size, pmf = len(self.threat.prior), self.threat.prior.pmf
        self._require_feasible(channel)
        centred = weigh is _gains
        widest = max([size, *(len(sets.sizes) for _, sets in self.groups)])
        parts: list[float] = []
        told, mass = 0.0, np.zeros(size)
        for block in channel.blocks(max(1, _HELD // widest)):
            weights = weigh(block, pmf)
            # Gains that underflow to zero still count: their error is not zero.
            seen = pmf @ block
            told += float((seen[_telling(block, pmf)] if centred else seen).sum())
            mass += block.sum(axis=1)
            parts += self._best(weights, centred=centred).tolist()
        rounding = (8 * size + 64) * UNIT * min(1.0, told)
        short = (
            float(np.abs(mass - 1.0).max()) if isinstance(channel, ChannelStream) else 0
        )
        return math.fsum(parts), rounding + 2 * short

    def _best(self, weights: Floats, *, centred: bool) -> Floats:
        alone = weights[self.singles]
        best = np.where(self.deniable[:, None], np.maximum(alone, 0.0), alone).sum(0)
        for fibre, sets in self.groups:
            sums = sets.sums(weights[fibre])
            if centred and self.whole:
                sums[sets.full] = 0.0  # the gains of all records cancel
            top = sums.max(axis=0)
            best += np.maximum(top, 0.0) if self.threat.abstain else top
        return np.asarray(best)

    def _require_feasible(self, channel: Channel | ChannelStream) -> None:
        work = len(self.singles) + sum(sets.work for _, sets in self.groups)
        columns = channel.outputs if isinstance(channel, Channel) else 1
        if work * columns > WORK_LIMIT:
            raise NotApplicable(
                f"the exact engine must need at most {WORK_LIMIT:.0e} additions, got "
                f"{work * columns:.1e}; merge outputs, or use the bound by total "
                "variation, which needs no sum over guesses."
            )


# A given attack as a table, and its exact success, correction and advantage.
#
# The advantage of an attack A is its success on a target that took part, minus its
# success on the same target when an independent record took part instead (thesis,
# Definition 5.1). It may be negative, and it is zero for every attack that ignores the
# output.

ABSTAIN = -1
"""The entry of a table that declines to answer."""


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
        :class:`~undertow.risk.finite.OptimalAttack`.
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
    >>> from undertow.risk.threat import Prior
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


# The attack that attains the exact risk: the guess of largest gain.
#
# Given the output and what is known, it returns a guess whose hit set gains most,
# posterior minus prior. That is not the guess of largest posterior: under a skewed
# prior the latter may always name the likeliest record and learn nothing.

# Scores lie in [-1, 1]; closer ones count as equal.
_TIE = 1e-12
# Gains held at a time: guesses times outputs.
_BLOCK = 1 << 22
# Entries of a table of laws over guesses.
_LISTED = 50_000_000


@dataclass(frozen=True, slots=True, eq=False, init=False)
class OptimalAttack:
    r"""Algorithm 1: guess where the posterior gains most on the prior.

    .. math:: s(g) = \Pr[X \in S^z(g) \mid \theta] - \Pr[X \in S^z(g)], \qquad
       S^z(g) = \{x : a(x) = z,\ \ell(g, x) \le \eta\}

    Parameters
    ----------
    source : Channel, mechanism or local protocol with finitely many outputs
        The law of the output for each record. For real outputs and for protocols with
        many reports there is :class:`~undertow.risk.attacks.OptimalGuess`.
    threat : Threat
        Prior, success rule and knowledge.

    Notes
    -----
    Algorithm 1 and Corollary 5.9 of [1]_. Guesses range over everything allowed, not
    only over the records that fit what is known: where all of those lose, the attack
    names one that misses them, or declines if the threat allows it. The text of the
    source calls the attack the maximum posterior; it is the maximum gain. Ties do not
    change the advantage: scores within 1e-12 count as equal.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> attack = OptimalAttack(P, Threat(Prior(3, [0.5, 0.3, 0.2])))
    >>> attack.decision().table[:, 0].tolist()
    [0, 1, 2]
    """

    channel: Channel
    threat: Threat
    _fibres: tuple[NDArray[np.intp], ...] = field(repr=False)
    _sets: tuple[HitSets, ...] = field(repr=False)
    _marginal: Floats = field(repr=False)

    def __init__(self, source: Any, threat: Threat) -> None:
        channel = as_channel(source, threat.support)
        if not isinstance(channel, Channel):
            raise MismatchError(
                "an attack must have a Channel, got a stream of columns; build the "
                "matrix."
            )
        fibres = threat.fibres
        object.__setattr__(self, "channel", channel)
        object.__setattr__(self, "threat", threat)
        object.__setattr__(self, "_fibres", fibres)
        sets = threat.success.sets(threat.support, fibres)
        object.__setattr__(self, "_sets", sets)
        object.__setattr__(self, "_marginal", threat.prior.pmf @ channel.matrix)

    def scores(self, output: int, fibre: int = 0) -> Floats:
        """Return the gain of every guess, posterior minus prior mass of its hit set.

        Parameters
        ----------
        output : int
            Number of the output.
        fibre : int, optional
            Number of what is known, as in ``threat.labels``.

        Returns
        -------
        ndarray of shape (guesses,)
            In the order of ``threat.guesses``; zero if the output is impossible.
        """
        column = check_index(output, "output", size=self.channel.outputs)
        z = check_index(fibre, "fibre", size=len(self._fibres))
        gains = self._gains(slice(column, column + 1), z)[:, 0]
        seen = float(self._marginal[column])
        return gains / seen if seen > 0 else np.zeros_like(gains)

    def choices(self, output: int, fibre: int = 0) -> NDArray[np.intp]:
        """Return all best guesses by number; only ``ABSTAIN`` if all of them lose."""
        scores = self.scores(output, fibre)
        if self.threat.abstain and scores.max() < -_TIE:
            return np.array([ABSTAIN], dtype=np.intp)
        return np.flatnonzero(scores >= scores.max() - _TIE)

    def guess(self, output: int, fibre: int = 0, *, rng: np.random.Generator) -> int:
        """Return a best guess by number, drawn uniformly among equals."""
        return int(rng.choice(self.choices(output, fibre)))

    def decision(self) -> Decision:
        """Return the table of the first best guess for each output and fibre."""
        outputs, fibres = self.channel.outputs, len(self._fibres)
        step = max(1, _BLOCK // len(self.threat.guesses))
        table = np.empty((outputs, fibres), dtype=np.intp)
        for z in range(fibres):
            for start in range(0, outputs, step):
                part = slice(start, min(start + step, outputs))
                gains = self._gains(part, z)
                best = gains.argmax(axis=0)
                if self.threat.abstain:
                    best = np.where(gains.max(axis=0) < 0, ABSTAIN, best)
                table[part, z] = best
        return Decision(table)

    def randomised_decision(self) -> Decision:
        """Return the table of laws that draw uniformly among the best guesses.

        Raises
        ------
        NotApplicable
            If the table has more than 50 million entries.
        """
        shape = (self.channel.outputs, len(self._fibres), len(self.threat.guesses))
        if np.prod(shape, dtype=np.float64) > _LISTED:
            raise NotApplicable(
                f"a table of laws must have at most {_LISTED} entries, got shape "
                f"{shape}; use decision(), which breaks ties by order."
            )
        table = np.zeros(shape)
        for output in range(shape[0]):
            for z in range(shape[1]):
                best = self.choices(output, z)
                if best[0] != ABSTAIN:
                    table[output, z, best] = 1.0 / len(best)
        return Decision(table)

    def _gains(self, outputs: slice, fibre: int) -> Floats:
        """Return the gain of every guess times the probability of the output."""
        records, sets = self._fibres[fibre], self._sets[fibre]
        laws = self.channel.matrix[records, outputs]
        pmf = self.threat.prior.pmf[records, None]
        gains = sets.sums(pmf * (laws - self._marginal[outputs]))
        return np.asarray(gains[sets.member])

"""Attacks on channels, numbers and local reports: optimal, Bayes, prior, report.

Five ways to guess one record. Only the first is worth certifying; the others are the
attacks of the literature, and each has an exact figure (:func:`attack_figures`).

An attack has a method ``guess(outputs, known, *, rng)``: a batch of outputs and the
number of the fibre the target lies in, to numbers into ``threat.guesses``. One that
draws its answer from a known law also has ``guess_law(outputs, known)``, a row for each
output; one that never draws says ``deterministic = True``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index
from undertow.errors import MismatchError
from undertow.mechanisms.local.base import LocalProtocol
from undertow.numeric.array import Floats, Indices
from undertow.risk.channel import (
    Channel,
    ChannelStream,
    as_channel,
    read_source,
)
from undertow.risk.finite import (
    ABSTAIN,
    AttackRisk,
    Decision,
    OptimalAttack,
    attack_risk,
)
from undertow.risk.likelihood import PosteriorGain
from undertow.risk.threat import Threat


def attack_figures(source: Any, threat: Threat, *, attack: Any) -> AttackRisk:
    """Compute success, correction and advantage of an attack on a finite channel.

    Parameters
    ----------
    source : Channel, mechanism or local protocol with finitely many outputs
        The law of the output for each record; outputs are numbers of columns, those of
        a protocol its reports.
    threat : Threat
        Prior, success rule and knowledge.
    attack : attack that states its law or is deterministic
        Asked once per fibre for its answer to every output.

    Returns
    -------
    AttackRisk
        Exact up to rounding: no sampling.

    Raises
    ------
    MismatchError
        If the attack draws and states no law, or answers outside the guesses.
    NotApplicable
        If the outputs are real numbers, or reports too many for a list;
        :func:`~undertow.risk.scalar.scalar_attack_risk` is for attacks on intervals.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> from undertow.risk.attacks.guess import ReportGuess
    >>> from undertow.risk.threat import Prior
    >>> threat = Threat(Prior(2, [0.7, 0.3]))
    >>> response = RandomizedResponse(2, 1)
    >>> figures = attack_figures(response, threat, attack=ReportGuess(threat))
    >>> round(figures.advantage, 6)
    0.194089
    """
    channel = as_channel(source, threat.support)
    if not isinstance(channel, Channel):
        raise MismatchError("source must be a Channel, got a stream of columns.")
    local = isinstance(source, LocalProtocol)
    outputs = source.listed_outputs() if local else np.arange(channel.outputs)
    columns = [_answers(attack, outputs, z) for z in range(len(threat.fibres))]
    decision = Decision(np.stack(columns, axis=1))
    return attack_risk(channel, threat, decision=decision)


def _answers(attack: Any, outputs: NDArray[Any], known: int) -> NDArray[Any]:
    """Return the guess for every output, or its law."""
    if getattr(attack, "deterministic", False):
        unused = np.random.default_rng(0)
        return np.asarray(attack.guess(outputs, known, rng=unused))
    if not hasattr(attack, "guess_law"):
        raise MismatchError(
            "attack must state the law of its answer for an exact figure, got "
            f"{type(attack).__name__}; use estimate_attack."
        )
    return np.asarray(attack.guess_law(outputs, known), dtype=np.float64)


def read_outputs(outputs: ArrayLike, count: int) -> Indices:
    """Read a batch of numbers of outputs."""
    seen = np.asarray(outputs)
    if seen.ndim != 1 or (seen.size and seen.dtype.kind not in "iu"):
        raise TypeError(
            "outputs must be a one-dimensional array of numbers of outputs, got "
            f"{seen.dtype} of shape {seen.shape}."
        )
    if seen.size and not (seen.min() >= 0 and seen.max() < count):
        raise ValueError(f"outputs must be numbers in 0..{count - 1}.")
    return seen.astype(np.intp)


def one_hot(guesses: Indices, count: int) -> Floats:
    """Return the law of a certain answer; a row of zeros where it declines."""
    law = np.zeros((len(guesses), count))
    rows = np.flatnonzero(guesses >= 0)
    law[rows, guesses[rows]] = 1.0
    return law


def sample_rows(laws: Floats, *, rng: np.random.Generator) -> Indices:
    """Draw one number from each row of probabilities, by inversion."""
    running = np.cumsum(laws, axis=1)
    # Scaled by the last sum, so that rounding never leads past the end.
    level = rng.random(len(laws)) * running[:, -1]
    return np.asarray((running > level[:, None]).argmax(axis=1), dtype=np.intp)


# Guesses of largest score, for finite outputs and for those with a likelihood.

# Scores lie in [-1, 1]; closer ones count as equal.
_TIE = 1e-12


class ScoreGuess(ABC):
    """A guess of largest score, drawn uniformly among equals."""

    __slots__ = ("_outputs", "_posterior", "threat")

    def __init__(self, source: Any, threat: Threat) -> None:
        self.threat = threat
        seen, self._posterior = read_source(source, threat.support), None
        if isinstance(seen, Channel | ChannelStream):
            self._outputs = self._tabulate(seen)
        else:
            self._outputs, self._posterior = 0, PosteriorGain(seen, threat)

    @abstractmethod
    def _tabulate(self, source: Any) -> int:
        """Read a finite source; return the number of its outputs."""

    @abstractmethod
    def _scores(self, posterior: PosteriorGain, outputs: Any, known: int) -> Floats:
        """Return the score of every guess given each output."""

    @abstractmethod
    def choices(self, output: Any, known: int) -> Indices:
        """Return the guesses of largest score; only ``ABSTAIN`` to decline."""

    def guess(self, outputs: Any, known: int, *, rng: np.random.Generator) -> Indices:
        """Draw a guess for each output; O(guesses) per distinct output."""
        if self._posterior is not None:
            laws = self.guess_law(outputs, known)
            return np.where(laws.any(axis=1), sample_rows(laws, rng=rng), ABSTAIN)
        seen = read_outputs(outputs, self._outputs)
        guesses = np.empty(len(seen), dtype=np.intp)
        for output in np.unique(seen):
            same = np.flatnonzero(seen == output)
            guesses[same] = rng.choice(self.choices(int(output), known), len(same))
        return guesses

    def guess_law(self, outputs: Any, known: int) -> Floats:
        """Return the law of the guess for each output; zeros where it declines."""
        if self._posterior is not None:
            scores = self._scores(self._posterior, outputs, known)
            best = scores >= scores.max(axis=1, keepdims=True) - _TIE
            laws = best / best.sum(axis=1, keepdims=True)
            laws[self._declined(scores)] = 0.0
            return np.asarray(laws)
        seen = read_outputs(outputs, self._outputs)
        laws = np.zeros((len(seen), len(self.threat.guesses)))
        for row, output in zip(laws, seen.tolist(), strict=True):
            best = self.choices(output, known)
            if best[0] >= 0:
                row[best] = 1.0 / len(best)
        return laws

    def _declined(self, scores: Floats) -> NDArray[np.bool_]:
        """Return where all guesses lose and none need be made."""
        return np.asarray(self.threat.abstain & (scores.max(axis=1) < -_TIE))

    def _chosen(self, output: Any, known: int) -> Indices:
        law = self.guess_law(np.asarray([output]), known)[0]
        chosen = np.flatnonzero(law)
        return chosen if chosen.size else np.array([ABSTAIN], dtype=np.intp)

    def __repr__(self) -> str:
        size = f"{len(self.threat.prior)} records, {self._outputs} outputs"
        seen = size if self._posterior is None else repr(self._posterior.source)
        return f"{type(self).__name__}({seen})"


# Attacks on channels, numbers and local reports: optimal, Bayes, prior, report.
#
# Five ways to guess one record. Only the first is worth certifying; the others are the
# attacks of the literature, and each has an exact figure.

# Masses this close, relative to the largest, count as equal.
_EQUAL_MASSES = 1e-12


class OptimalGuess(ScoreGuess):
    """The attack of largest advantage: where the posterior gains most on the prior.

    Parameters
    ----------
    source : Channel, ScalarChannel, mechanism, LocalProtocol or LikelihoodSource
        The law of the output for each record. Outputs are numbers of columns of a
        finite channel, real numbers of a scalar channel or of Laplace or Gaussian
        noise, reports of a protocol.
    threat : Threat
        Prior, success rule and knowledge.

    Notes
    -----
    :class:`~undertow.risk.finite.OptimalAttack` (thesis, Algorithm 1) on batches, ties
    uniformly at random. It attains ``advantage(source, threat)`` where that is exact.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism, RandomizedResponse
    >>> from undertow.risk.threat import Prior
    >>> threat = Threat(Prior(3, [0.5, 0.3, 0.2]))
    >>> attack = OptimalGuess(RandomizedResponse(3, "0.7"), threat)
    >>> attack.guess([0, 1, 2], 0, rng=np.random.default_rng(0)).tolist()
    [0, 1, 2]
    >>> attack = OptimalGuess(LaplaceMechanism(1), threat)
    >>> attack.guess([-1.0, 1.1, 2.5], 0, rng=np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """

    __slots__ = ("_attack",)

    def _tabulate(self, source: Any) -> int:
        self._attack = OptimalAttack(source, self.threat)
        return self._attack.channel.outputs

    def _scores(self, posterior: PosteriorGain, outputs: Any, known: int) -> Floats:
        return posterior.scores(outputs, known)

    def choices(self, output: Any, known: int) -> Indices:
        """Return the guesses of largest gain; only ``ABSTAIN`` to decline."""
        if self._posterior is not None:
            return self._chosen(output, known)
        return self._attack.choices(output, known)


class PosteriorGuess(ScoreGuess):
    """The attack of largest success: the guess of largest posterior (MAP).

    Parameters
    ----------
    source : Channel, ScalarChannel, mechanism, LocalProtocol or LikelihoodSource
        The law of the output for each record; outputs as for :class:`OptimalGuess`.
    threat : Threat
        Prior, success rule and knowledge.

    Notes
    -----
    Under a skewed prior it may always name the likeliest record: its advantage can be
    zero where that of :class:`OptimalGuess` is not, so it audits too little.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> from undertow.risk.threat import Prior
    >>> threat = Threat(Prior(3, [0.5, 0.3, 0.2]))
    >>> attack = PosteriorGuess(RandomizedResponse(3, "0.7"), threat)
    >>> attack.guess([0, 1, 2], 0, rng=np.random.default_rng(0)).tolist()
    [0, 1, 0]
    """

    __slots__ = ("_fibres", "_matrix", "_sets")

    def _tabulate(self, source: Any) -> int:
        threat = self.threat
        channel = as_channel(source, threat.support)
        if not isinstance(channel, Channel):
            raise MismatchError("source must be a Channel, got a stream of columns.")
        self._matrix, self._fibres = channel.matrix, threat.fibres
        self._sets = threat.success.sets(threat.support, self._fibres)
        return channel.outputs

    def _scores(self, posterior: PosteriorGain, outputs: Any, known: int) -> Floats:
        return posterior.scores(outputs, known, centred=False)

    def choices(self, output: Any, known: int) -> Indices:
        """Return the guesses of largest posterior."""
        if self._posterior is not None:
            return self._chosen(output, known)
        z = check_index(known, "known", size=len(self._fibres))
        fibre, sets = self._fibres[z], self._sets[z]
        joint = self.threat.prior.pmf[fibre] * self._matrix[fibre, output]
        masses = sets.sums(joint[:, None])[sets.member, 0]
        return np.flatnonzero(masses >= masses.max() * (1.0 - _EQUAL_MASSES))


class PriorGuess:
    r"""The best guess that never looks at the output (Sauer, Attack 2).

    Parameters
    ----------
    threat : Threat
        Prior, success rule and knowledge.
    informed : bool, optional
        Whether the guess depends on what is known of the target, the default; else one
        guess for everybody.

    Notes
    -----
    Its success is ``threat.informed_guess``, or :math:`\kappa^+` uninformed, and its
    advantage is 0 for every mechanism: it learns nothing from taking part. First of
    equals.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> attack = PriorGuess(Threat(Prior(3, [0.2, 0.5, 0.3])))
    >>> attack.guess(["any", "output"], 0, rng=np.random.default_rng(0)).tolist()
    [1, 1]
    """

    __slots__ = ("_best", "threat")
    deterministic: ClassVar[bool] = True

    def __init__(self, threat: Threat, *, informed: bool = True) -> None:
        pmf, fibres = threat.prior.pmf, threat.fibres
        everyone = np.arange(len(pmf), dtype=np.intp)
        groups = fibres if informed else (everyone,)
        best = []
        sets = threat.success.sets(threat.support, groups)
        for group, hit in zip(groups, sets, strict=True):
            best.append(int(hit.sums(pmf[group, None])[hit.member, 0].argmax()))
        self.threat = threat
        self._best = best if informed else best * len(fibres)

    def guess(self, outputs: Any, known: int, *, rng: np.random.Generator) -> Indices:
        """Return the same guess for every output."""
        return np.full(len(outputs), self._answer(known), dtype=np.intp)

    def _answer(self, known: int) -> int:
        return self._best[check_index(known, "known", size=len(self._best))]

    def __repr__(self) -> str:
        return f"PriorGuess({len(self.threat.prior)} records)"


class ReportGuess:
    """The report itself as the guess (Sauer, Attack 1).

    Parameters
    ----------
    threat : Threat
        Prior, success rule and knowledge.
    names : array_like of int, optional
        The guess that each output stands for, of shape (outputs,); output i is guess i
        by default.

    Notes
    -----
    Optimal for the advantage against generalised randomised response, whatever the
    prior, and against the exponential mechanism on a graph under a uniform prior; both
    are proved on the page on practical attacks.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> attack = ReportGuess(Threat(Prior.uniform(3)))
    >>> attack.guess([2, 0], 0, rng=np.random.default_rng(0)).tolist()
    [2, 0]
    """

    __slots__ = ("_names", "threat")
    deterministic: ClassVar[bool] = True

    def __init__(self, threat: Threat, *, names: ArrayLike | None = None) -> None:
        guesses = len(threat.guesses)
        listed = np.arange(guesses) if names is None else names
        self.threat = threat
        self._names = read_outputs(listed, guesses)

    def guess(
        self, outputs: ArrayLike, known: int, *, rng: np.random.Generator
    ) -> Indices:
        """Return what each output stands for."""
        return np.asarray(self._names[read_outputs(outputs, len(self._names))])

    def __repr__(self) -> str:
        return f"ReportGuess({len(self._names)} outputs)"


class SupportGuess:
    """A uniform category among those that a local report supports.

    Parameters
    ----------
    protocol : LocalProtocol
        Subset selection, unary encodings, histograms or local hashing; randomised
        response too, where it is the report.

    Notes
    -----
    Attacks 10, 11, 13 and 14 of [1]_, and 12 where the support of a report is the set
    of likeliest categories. A report that supports nothing gets a uniform guess.
    Its success under the uniform prior is ``protocol.attack_success()``.

    References
    ----------
    .. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025, section 9.4.

    Examples
    --------
    >>> from undertow.mechanisms.local import SymmetricUnary
    >>> attack = SupportGuess(SymmetricUnary(4, 1))
    >>> attack.guess_law(np.array([[3], [0]], dtype=np.uint32), 0).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]]
    """

    __slots__ = ("protocol",)

    def __init__(self, protocol: LocalProtocol) -> None:
        if not isinstance(protocol, LocalProtocol):
            raise TypeError(
                f"protocol must be a LocalProtocol, got {type(protocol).__name__}."
            )
        self.protocol = protocol

    def guess(self, outputs: Any, known: int, *, rng: np.random.Generator) -> Indices:
        """Draw a guess for each report."""
        return self.protocol.sample_guesses(outputs, rng=rng).astype(np.intp)

    def guess_law(self, outputs: Any, known: int) -> Floats:
        """Return the law of the guess for each report."""
        table = self.protocol.support(outputs)
        table = table | ~table.any(axis=1, keepdims=True)
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def __repr__(self) -> str:
        return f"SupportGuess({self.protocol!r})"

r"""The attack that attains the exact risk: the guess of largest gain.

Given the output and what is known, it returns a guess whose hit set gains most,
posterior minus prior. That is not the guess of largest posterior: under a skewed prior
the latter may always name the likeliest record and learn nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_index
from undertow.errors import MismatchError, NotApplicable
from undertow.risk._sets import HitSets
from undertow.risk.channel import Channel, as_channel
from undertow.risk.decision import ABSTAIN, Decision
from undertow.risk.threat import Threat

__all__ = ["OptimalAttack"]

Floats = NDArray[np.float64]

# Scores lie in [-1, 1]; closer ones count as equal.
_TIE = 1e-12
# Gains held at a time: guesses times outputs.
_BLOCK = 1 << 22
# Entries of a table of laws over guesses.
_ENTRIES = 50_000_000


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
    >>> from undertow.risk.prior import Prior
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
        if np.prod(shape, dtype=np.float64) > _ENTRIES:
            raise NotApplicable(
                f"a table of laws must have at most {_ENTRIES} entries, got shape "
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

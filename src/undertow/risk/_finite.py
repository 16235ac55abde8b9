r"""The exact risk of a channel with finitely many outputs, one pass over its columns.

O(m) per output for exact or attribute success, for full knowledge and on a line;
otherwise one addition per hit of a guess on a truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import NotApplicable
from undertow.privacy.result import Bound, Witness
from undertow.risk._sets import HitSets
from undertow.risk.channel import Channel, ChannelStream, as_channel
from undertow.risk.threat import Threat

__all__ = ["WORK_LIMIT", "Risk", "finite_advantage", "finite_success_rate"]

WORK_LIMIT = 4 * 10**12
"""Additions beyond which the exact engine refuses: minutes of one core."""

Floats = NDArray[np.float64]

# Entries of the arrays held at a time.
_ENTRIES = 1 << 22
_UNIT = 2.0**-53
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
        for block in channel.blocks(max(1, _ENTRIES // widest)):
            weights = weigh(block, pmf)
            # Gains that underflow to zero still count: their error is not zero.
            seen = pmf @ block
            told += float((seen[_telling(block, pmf)] if centred else seen).sum())
            mass += block.sum(axis=1)
            parts += self._best(weights, centred=centred).tolist()
        rounding = (8 * size + 64) * _UNIT * min(1.0, told)
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

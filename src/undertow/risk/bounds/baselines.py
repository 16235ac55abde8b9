r"""The numbers of a threat that bounds are made of, each rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow._arrays import disagreement
from undertow._numeric import inflate, nudge_down
from undertow._validate import check_choice, check_probability
from undertow.privacy import Bound
from undertow.risk.bounds.program import program_bound

__all__ = ["ADJACENCIES", "PROGRAM_SIZE", "Adjacency", "Baselines", "ThreatLike"]

Floats = NDArray[np.float64]
Adjacency = Literal["replace", "add-remove"]

ADJACENCIES: tuple[str, ...] = ("replace", "add-remove")
"""What may change between neighbours in a guarantee."""

PROGRAM_SIZE = 10
"""Records up to which a threat carries its linear program."""

# Covers the rounding of a term and of the law itself.
_MARGIN = 2.0**-48


class ThreatLike(Protocol):
    """What the bounds read of a threat; :class:`undertow.risk.threat.Threat` has it."""

    @property
    def prior(self) -> Any:
        """The prior, with its ``pmf``."""

    @property
    def success(self) -> Any:
        """The success rule, with its hit sets and its matrix."""

    @property
    def support(self) -> Sequence[Any]:
        """The records."""

    @property
    def labels(self) -> NDArray[np.intp]:
        """Number of what is known of each record."""

    @property
    def has_knowledge(self) -> bool:
        """Whether what is known varies over the possible targets."""

    @property
    def abstain(self) -> bool:
        """Whether the attacker may decline to answer."""

    @property
    def adjacency(self) -> Adjacency:
        """What may change in the guarantees held against the threat."""

    @property
    def best_guess(self) -> float:
        """Success of the best guess without looking."""

    @property
    def worst_guess(self) -> float:
        """Success of the worst guess without looking."""


@dataclass(frozen=True, slots=True)
class Baselines:
    r"""The numbers of a threat that bounds are made of.

    Parameters
    ----------
    collision : float
        :math:`\kappa_\pi`, rounded down; 0 for a continuous prior.
    best_guess, worst_guess : float
        :math:`\kappa^+` rounded up and :math:`\kappa^-` rounded down.
    knowledge : bool
        Whether the attacker knows anything of the target.
    exact : bool
        Whether only the exact record counts.
    pmf : tuple of float
        The prior where it is finite, else empty.
    program : callable, optional
        From epsilon to the bound by linear programming.
    derived : bool
        Whether they were read off a threat; otherwise the caller declares them.
    adjacency : {"replace", "add-remove"}
        What may change in the guarantees held against the threat.

    Examples
    --------
    >>> Baselines(0.5, 0.5, 0.5, pmf=(0.5, 0.5)).uniform
    True
    """

    collision: float
    best_guess: float
    worst_guess: float
    knowledge: bool = False
    exact: bool = False
    pmf: tuple[float, ...] = ()
    program: Callable[[float], Bound] | None = field(default=None, compare=False)
    derived: bool = field(default=False, compare=False)
    adjacency: Adjacency = "replace"

    def __post_init__(self) -> None:
        for name in ("collision", "best_guess", "worst_guess"):
            check_probability(getattr(self, name), name)
        check_choice(self.adjacency, "adjacency", choices=ADJACENCIES)

    @property
    def uniform(self) -> bool:
        """Whether all records of the prior are equally likely."""
        return bool(self.pmf) and max(self.pmf) == min(self.pmf)

    @classmethod
    def of(cls, threat: ThreatLike) -> Baselines:
        """Read them off a threat, each rounded to the safe side."""
        if not hasattr(threat, "has_knowledge"):
            raise TypeError(f"threat must be a Threat, got {type(threat).__name__}.")
        pmf = np.asarray(threat.prior.pmf, dtype=np.float64)
        margin = 2.0**-52 * (len(pmf) + 4)
        spread = inflate(disagreement(pmf), _MARGIN)
        # Two lower limits: each keeps its digits at one end.
        square = math.fsum((pmf * pmf).tolist()) * (1.0 - _MARGIN)
        low = threat.worst_guess
        return cls(
            collision=max(square, nudge_down(1.0 - spread)) if spread > 0 else 1.0,
            best_guess=min(1.0, inflate(threat.best_guess, margin)),
            worst_guess=max(0.0, low - margin * low),
            knowledge=threat.has_knowledge,
            exact=_hits_one(threat),
            pmf=tuple(pmf.tolist()),
            program=_program(threat, pmf) if len(pmf) <= PROGRAM_SIZE else None,
            derived=True,
            adjacency=threat.adjacency,
        )


def _hits_one(threat: ThreatLike) -> bool:
    """Return whether no guess hits two records, by counting what each hits."""
    everything = np.arange(len(threat.support), dtype=np.intp)
    (sets,) = threat.success.sets(threat.support, [everything])
    return bool(sets.sums(np.ones((len(everything), 1))).max() <= 1)


def _program(threat: ThreatLike, pmf: Floats) -> Callable[[float], Bound]:
    hits, labels = threat.success.matrix(threat.support), threat.labels

    def solve(epsilon: float) -> Bound:
        return program_bound(
            epsilon, pmf, hits=hits, labels=labels, abstain=threat.abstain
        )

    return solve

"""What a comparator hands back: a noise scale, and against whom it was meant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from undertow._numeric import inflate

__all__ = [
    "EVERY_ATTACKER",
    "NO_KNOWLEDGE",
    "ROUNDING_MARGIN",
    "ComparatorScale",
    "raised",
]

EVERY_ATTACKER = "anyone who knows any subset of the other records"
"""The attackers of Bayesian differential privacy: all (K, i)."""

NO_KNOWLEDGE = "someone who knows no other record"
"""The attackers of the Markov quilt mechanism: K is empty."""

ROUNDING_MARGIN = 1e-12
"""Relative margin by which every scale is raised to cover its own rounding."""


@dataclass(frozen=True, slots=True)
class ComparatorScale:
    """The Laplace scale with which a method keeps, or claims to keep, a promise.

    Two scales compare only if they are meant against the same attackers, and a scale
    that is no guarantee compares with nothing: `attackers` and `is_guarantee` are part
    of the number.

    Parameters
    ----------
    method : str
        Short name of the method.
    source : str
        Where the method is defined.
    target : float
        The promise: largest change of log-odds.
    noise_scale : float
        Scale of the Laplace noise; infinite where the method gives none, for the reason
        in `note`: out of its reach, a hypothesis fails, or too many laws to list.
    attackers : str
        The class of attackers the method speaks of.
    is_guarantee : bool
        Whether it is proved that the scale keeps the Bayesian-DP leakage within
        `target` against every attacker, under the model.
    model : str
        The model in words.
    note : str
        What was chosen, what fails, or why no scale can be given.

    Examples
    --------
    >>> row = ComparatorScale("group", "Theorem 6.3", 1.0, 5.0, EVERY_ATTACKER, True)
    >>> row.is_feasible, row.to_dict()["noise_scale"]
    (True, 5.0)
    """

    method: str
    source: str
    target: float
    noise_scale: float
    attackers: str
    is_guarantee: bool
    model: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not self.noise_scale > 0:
            raise ValueError(f"noise_scale must be positive, got {self.noise_scale}.")

    @property
    def is_feasible(self) -> bool:
        """Whether the method gives a finite noise scale."""
        return math.isfinite(self.noise_scale)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for tables and JSON; an infinite scale becomes None."""
        return {
            "model": self.model,
            "method": self.method,
            "target": self.target,
            "noise_scale": self.noise_scale if self.is_feasible else None,
            "attackers": self.attackers,
            "is_guarantee": self.is_guarantee,
            "source": self.source,
            "note": self.note,
        }


def raised(scale: float) -> float:
    """Return `scale` raised by :data:`ROUNDING_MARGIN`."""
    return inflate(scale, ROUNDING_MARGIN)

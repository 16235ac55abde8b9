r"""A family of mechanisms and its risk curve: the risk as a function of one parameter.

Inside, every family is measured by a *level* in which the risk grows: epsilon itself,
or the sensitivity over the noise. A :class:`Curve` holds the risk for whole arrays of
levels and inverts it, so that a thousand targets cost one pass.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_positive
from undertow.errors import MismatchError, NotApplicable
from undertow.privacy.loss import Loss
from undertow.privacy.result import _Shown
from undertow.risk._finite import Risk, finite_advantage
from undertow.risk.threat import Threat

__all__ = [
    "CELLS",
    "LARGEST_LEVEL",
    "LEAST_LEVEL",
    "MARGIN",
    "CoveredFamily",
    "Curve",
    "Family",
    "Structure",
    "closed_view",
    "uniform_prior",
]

Floats = NDArray[np.float64]
Structure = NDArray[np.int64]
View = Literal["none", "full"]

LARGEST_LEVEL = 10_000.0
"""Largest level searched; also the largest epsilon of a local protocol."""

LEAST_LEVEL = 1e-9
"""Smallest level at which the exact engine is asked."""

MARGIN = 1e-12
"""Relative margin that covers the rounding of the closed forms."""

_UNCHECKED = ("the target is independent of the other records", "the prior is public")
CELLS = 1 << 21
"""Cells of a table (levels, records) held at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The risk of one family under one threat, as a function of the level.

    Parameters
    ----------
    values : callable
        From levels, and the structure where there is one, to risks, to nearest.
    limit : float
        The supremum over all levels.
    theorem : str
        What proves the values.
    exact : bool
        Whether an attack attains them; otherwise they are an upper bound.
    inverse : callable, optional
        From targets to levels; without it, bisection.
    solve : callable, optional
        From targets and whether the largest level is wanted to levels and structure;
        for families whose structure steps with the level.
    slack : float
        Absolute part of the rounding margin.
    reason : str
        Why this route was taken.
    unchecked : tuple of str
        Hypotheses beyond independent records and a public prior.
    searched : bool
        Whether every value costs a run of the exact engine.
    """

    values: Callable[[Floats, Structure | None], Floats]
    limit: float
    theorem: str
    exact: bool = True
    inverse: Callable[[Floats], Floats] | None = None
    solve: Callable[[Floats, bool], tuple[Floats, Structure]] | None = None
    slack: float = 0.0
    reason: str = "closed form"
    unchecked: tuple[str, ...] = ()
    searched: bool = False

    def raised(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return the values raised by their rounding margin, at most 1."""
        found = self.values(levels, structure)
        up = np.nextafter(found * (1.0 + MARGIN) + self.slack, np.inf)
        return np.asarray(np.minimum(np.where(found > 0, up, 0.0), 1.0))


@dataclass(frozen=True, slots=True)
class CoveredFamily(_Shown):
    """The mechanisms that a calibrated risk is about; it says nothing of others.

    Parameters
    ----------
    family : str
        The name of the family.
    summary : str
        Its mechanisms in words.
    noise : {"laplace", "gaussian"}, optional
        The noise that is added; None where a protocol or a table is the mechanism.
    step : Fraction, optional
        The coarsest lattice of the noise that is covered; None for continuous noise, or
        that on the fine lattice of its mechanism.
    """

    family: str
    summary: str
    noise: str | None = None
    step: Fraction | None = None


class Family(ABC):
    r"""Mechanisms that differ in one parameter.

    Attributes
    ----------
    name : str
        How the command line calls it.
    parameter : {"epsilon", "scale", "sigma"}
        What is chosen.
    rises : bool
        Whether the risk grows with the parameter; it falls with noise.
    monotone : bool
        Whether it is proved that it does, for every threat.
    structural : str
        Name of a whole number that is part of the choice, or empty.
    records : int
        Number of records.
    caveats : tuple of str
        What every statement about the family takes for granted.

    Notes
    -----
    `monotone` is a theorem of the page *Calibration in units of risk*, not a
    measurement.
    """

    name: str
    parameter: str = "epsilon"
    rises: bool = True
    monotone: bool = True
    structural: str = ""
    records: int
    caveats: tuple[str, ...] = ()
    delta: float = 0.0
    largest: float = LARGEST_LEVEL

    @property
    def called(self) -> str:
        """The name in a sentence: protocols in capitals, as "the" is also a word."""
        return self.name.upper() if len(self.name) <= 3 else self.name

    @property
    def covers(self) -> CoveredFamily:
        """What a risk of the family is about."""
        return CoveredFamily(self.name, f"{self.called} at the {self.parameter} stated")

    @abstractmethod
    def mechanism(self, parameter: float, *, structure: int | None = None) -> Any:
        """Return the mechanism at a parameter, and at its structure if it has one."""

    @abstractmethod
    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form under a threat; None where there is none."""

    @abstractmethod
    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return the largest total variation between two records, to nearest."""

    def source(self, level: float, threat: Threat) -> Any:
        """Return what the exact engine reads at a level; None if it cannot."""
        return None

    def exact_risk(self, source: Any, threat: Threat) -> Risk:
        """Return what the exact engine finds for a source: here, of finite channels."""
        return finite_advantage(source, threat)

    def level(self, parameter: float) -> float:
        """Return the level of a parameter: the risk grows with it."""
        return parameter

    def parameters(self, levels: Floats) -> Floats:
        """Return the parameter of each level, rounded to the private side."""
        return levels

    def supremum(self, threat: Threat) -> float:
        """Return what the risk never passes, however large the level."""
        return threat.ceiling

    def limit_within(self, threat: Threat, target: float) -> float | None:
        """Return the risk in the limit, if it is proved that no level passes a target.

        Asked only where no level that was tried does; None where nothing is known of
        the others.
        """
        return None

    def least(self, curve: Curve) -> float:
        """Return the risk below which no parameter leads, or no digits are left."""
        if not curve.searched:
            return curve.slack
        return float(curve.values(np.array([LEAST_LEVEL]), None)[0])

    def loss(self, parameter: float) -> Loss | None:
        """Return the guarantee for replacing a record; None where none is stated."""
        found: Loss = self.mechanism(parameter).loss()
        return found

    def require_parameter(self, parameter: float) -> None:
        """Refuse a parameter at which there is no mechanism."""
        self.mechanism(parameter)

    def risk(
        self, parameter: float, threat: Threat, *, structure: int | None = None
    ) -> Risk:
        r"""Return the advantage of the best attack, by the strongest route there is.

        Parameters
        ----------
        parameter : float
            Positive and finite.
        threat : Threat
            Prior, success rule and knowledge, on the family's records.
        structure : int, optional
            Subset size or number of buckets; by default that of the protocol.

        Returns
        -------
        Risk
            Exact (`tight`) by closed form or engine; else total variation times
            :math:`1 - \kappa_\pi`, with `tight` None and the reason in `theorem`.

        Raises
        ------
        MismatchError
            If the threat has another number of records.
        """
        check_positive(parameter, self.parameter)
        self.require_match(threat)
        if structure is not None:
            self._check_structure(parameter, structure)
        curve = self.curve(threat)
        if curve is None:
            source = self.source(self.level(parameter), threat)
            if source is not None:
                return self.exact_risk(source, threat)
            curve = self.fallback(threat)
        chosen = None if structure is None else np.array([structure])
        value = float(curve.raised(np.array([self.level(parameter)]), chosen)[0])
        return self.state(value, curve, threat)

    def fallback(self, threat: Threat) -> Curve:
        r"""Return the bound by total variation, which holds for every threat."""
        room = threat.ceiling

        def values(levels: Floats, structure: Structure | None) -> Floats:
            return self.variation(levels, structure) * room

        return Curve(
            values,
            float(self.variation(np.array([np.inf]))[0]) * room,
            "thesis, Theorem 5.2",
            exact=False,
            reason=(
                f"no exact route for {self.name} under this threat; total variation "
                "times the chance that two draws differ holds for every threat"
            ),
        )

    def state(self, value: float, curve: Curve, threat: Threat) -> Risk:
        """Turn a raised value of a curve into a result."""
        return Risk(
            min(value, threat.ceiling),
            curve.theorem if curve.exact else f"{curve.theorem} ({curve.reason})",
            (*_UNCHECKED, *curve.unchecked),
            ("records of family and threat agree",),
            tight=True if curve.exact else None,
            threat=threat.summary,
            ceiling=threat.ceiling,
        )

    def require_match(self, threat: Threat) -> None:
        """Refuse a threat on another number of records."""
        if not isinstance(threat, Threat):
            raise TypeError(f"threat must be a Threat, got {type(threat).__name__}.")
        if len(threat.prior) != self.records:
            raise MismatchError(
                f"threat must have the {self.records} records of {self.name}, got "
                f"{len(threat.prior)}."
            )

    def _check_structure(self, parameter: float, structure: int) -> None:
        if not self.structural:
            raise ValueError(
                f"structure must be None for {self.name}, got {structure!r}."
            )
        self.mechanism(parameter, structure=structure)  # refuses what cannot be

    def __repr__(self) -> str:
        return f"<Family {self.name}: {self.records} records, by {self.parameter}>"


@lru_cache(maxsize=16)
def closed_view(threat: Threat) -> View | None:
    """Say which closed forms apply: exact success, knowing nothing or everything.

    Declining to answer changes neither: some guess always gains at least nothing.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> closed_view(Threat.membership(Prior.uniform(3)))
    'full'
    """
    size = len(threat.prior)
    kinds = int(threat.labels.max()) + 1
    if kinds not in (1, size):
        return None
    try:
        (sets,) = threat.success.sets(threat.support, [np.arange(size, dtype=np.intp)])
    except NotApplicable:
        return None
    if len(sets.sizes) != size or not (sets.sizes == 1).all():
        return None
    return "none" if kinds == 1 else "full"


def uniform_prior(threat: Threat) -> bool:
    """Say whether all records are equally likely, to the rounding of the prior."""
    pmf = threat.prior.pmf
    return bool(pmf.max() - pmf.min() <= 4 * math.ulp(float(pmf.max())))

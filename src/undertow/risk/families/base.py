"""A family of mechanisms and its risk curve: the risk as a function of one parameter.

Inside, every family is measured by a *level* in which the risk grows: epsilon itself,
or the sensitivity over the noise. A :class:`Curve` holds the risk for whole arrays of
levels and inverts it, so that a thousand targets cost one pass.

Many curves scale down one number: the risk of reports that are right for sure, of the
record itself (:func:`identity_advantage`), of an answer without noise, or of sets that
hold the truth.
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
from undertow.mechanisms.local import subset_advantage
from undertow.mechanisms.local.subset import list_sets
from undertow.numeric.array import Floats, Indices
from undertow.privacy.loss import Loss
from undertow.results import _Shown
from undertow.risk.channel import Channel, ChannelStream
from undertow.risk.finite import Risk, finite_advantage
from undertow.risk.success import CellSets, HitSets, RunSets, read_places
from undertow.risk.threat import Threat

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
    >>> from undertow.risk.threat import Prior
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


# The risk of reports that are right for sure, which noisy protocols scale down.
#
# Of the record itself,
#
# .. math:: \sum_x \pi_x \Bigl[\max_{g \ni x} c_z(g) + \sum_{z' \ne z} \max_g c_{z'}(g)
#    \Bigr], \qquad c_z(g) = \pi(\text{truths of fibre } z \text{ that } g \text{
#   misses})
#
# with z the fibre of x: seeing the record, the best guess hits it and little else of
# its fibre, and as little as it can of every other one. Of a set that holds the record,
# and of an answer without noise, by closed form or by the exact engine.


_UNIT = 2.0**-53
# Records up to which answers are listed; records read by a scan over subset sizes.
_IDENTITY, _SCANNED = 20_000, 20_000_000


def identity_advantage(threat: Threat) -> float:
    """Return the advantage of the best attack if the record is published as it is.

    Parameters
    ----------
    threat : Threat
        Any prior, success rule and knowledge.

    Returns
    -------
    float
        Raised by a bound on its rounding; 0 where all guesses hit the same truths.

    Notes
    -----
    Proved on the page *Calibration in units of risk*, Proposition 3; thesis, Example
    5.4, for exact success. O(m log m) for exact or attribute success and on a line, one
    step per hit otherwise.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> round(identity_advantage(Threat(Prior(3, [0.5, 0.3, 0.2]))), 9)
    0.62
    """
    pmf, fibres = threat.prior.pmf, threat.fibres
    own, most, matters = np.zeros(len(pmf)), np.zeros(len(fibres)), False
    missed = threat.success.missed(threat.support) | threat.abstain
    wide = [z for z, fibre in enumerate(fibres) if len(fibre) > 1]
    for z, fibre in enumerate(fibres):
        if len(fibre) == 1 and missed[fibre[0]]:
            most[z], matters = pmf[fibre[0]], True
    found = threat.success.sets(threat.support, [fibres[z] for z in wide])
    for z, sets in zip(wide, found, strict=True):
        fibre = fibres[z]
        spared = _spared(sets, pmf[fibre])
        own[fibre] = _best_of_each(sets, spared, threat, fibre)
        most[z] = pmf[fibre].sum() if threat.abstain else spared.max()
        partial = ~sets.full & (sets.sizes > 0) if len(fibres) == 1 else ~sets.full
        several = len(fibres) > 1 and threat.abstain
        matters = matters or several or bool(partial.any())
    others = np.maximum(most.sum() - most, 0.0)
    total = float(pmf @ (own + others[threat.labels]))
    margin = (8 * len(pmf) + 64) * _UNIT
    return min(threat.ceiling, total + margin) if matters else 0.0


def _spared(sets: HitSets, pmf: Floats) -> Floats:
    """Return the mass of the fibre that each set leaves out."""
    left = pmf.sum() - sets.sums(pmf[:, None])[:, 0]
    return np.where(sets.full, 0.0, np.maximum(left, 0.0))


def _best_of_each(
    sets: HitSets, spared: Floats, threat: Threat, fibre: Indices
) -> Floats:
    """Return, for each truth of the fibre, the most spared by a set that holds it."""
    if isinstance(sets, CellSets):  # the cell that the truth itself names
        return np.asarray(spared[np.asarray(sets.member)[fibre]], dtype=float)
    if isinstance(sets, RunSets):
        return _best_of_runs(sets, spared, read_places(threat.support)[fibre])
    hits = threat.success.matrix(threat.support)[:, fibre]
    best = np.where(hits, spared[np.asarray(sets.member)][:, None], 0.0).max(axis=0)
    return np.asarray(best, dtype=float)


def _best_of_runs(sets: RunSets, spared: Floats, places: Floats) -> Floats:
    """Slide along the line: runs ordered by one end are ordered by the other."""
    order = np.argsort(places, kind="stable")
    ranks = np.empty(len(places))
    ranks[order] = np.arange(len(places))
    kept = np.flatnonzero(sets.sizes > 0)
    sizes = sets.sizes[kept]
    low = np.rint(sets.sums(ranks[:, None])[kept, 0] / sizes - (sizes - 1) / 2.0)
    sequence = np.argsort(low + (low + sizes) * 1e-9, kind="stable")
    low, high = low[sequence], (low + sizes)[sequence]
    at = np.arange(len(places))
    first = np.searchsorted(high, at, side="right")
    last = np.searchsorted(low, at, side="right")
    best = np.empty(len(places))
    best[order] = _range_maxima(spared[kept][sequence], first, last)
    return best


def _range_maxima(values: Floats, first: Indices, last: Indices) -> Floats:
    """Return the largest value in each range [first, last), by doubling windows."""
    found = np.empty(first.shape)
    window, table = 1, values
    while True:
        here = (last - first >= window) & (last - first < 2 * window)
        found[here] = np.maximum(table[first[here]], table[last[here] - window])
        if 2 * window > len(values):
            return found
        table = np.maximum(table[:-window], table[window:])
        window *= 2


def answers_advantage(answers: Floats, threat: Threat) -> float:
    """Return the advantage if the answer of each record is published without noise.

    The ceiling of the threat where it is attained, and for too many records.
    """
    values, place = np.unique(answers, return_inverse=True)
    told = len(values) == len(answers) and closed_view(threat) is not None
    if told or len(answers) > _IDENTITY:
        return threat.ceiling
    step = max(1, CELLS // len(answers))
    plain = ChannelStream(
        lambda: (
            np.equal.outer(place.reshape(-1), np.arange(len(values))[s : s + step])
            * 1.0
            for s in range(0, len(values), step)
        ),
        len(answers),
    )
    return finite_advantage(plain, threat).value


class SubsetWeights:
    """The advantage against sets of each size that hold the truth for sure."""

    def __init__(self, records: int, threat: Threat) -> None:
        self._m, self._threat, self._view = records, threat, closed_view(threat)
        self._known: dict[int, float] = {}

    def __call__(self, sizes: Structure) -> Floats:
        """Return the advantage for each size."""
        m = self._m
        if self._view == "full":
            return np.asarray((m - sizes) / (m - 1) * self._threat.ceiling)
        if self._view == "none" and uniform_prior(self._threat):
            return np.asarray((m - sizes) / (m * sizes))
        kinds = len(np.unique(sizes))
        if kinds * m > _SCANNED:
            raise NotApplicable(
                f"a scan over subset sizes must read at most {_SCANNED} records for a "
                f"prior that is not uniform, got {kinds} sizes of {m}; ask for one "
                "safe level, or use full knowledge, which is never smaller."
            )
        return np.array([self._weight(int(size)) for size in sizes])

    def _weight(self, size: int) -> float:
        if size not in self._known:
            self._known[size] = (
                self._listed(size)
                if self._view is None
                else subset_advantage(
                    self._m, math.inf, subset=size, prior=self._threat.prior.pmf
                )
            )
        return self._known[size]

    def _listed(self, size: int) -> float:
        sets = list_sets(self._m, size)
        laws = np.zeros((self._m, len(sets)))
        held = 1.0 / math.comb(self._m - 1, size - 1)
        laws[sets, np.arange(len(sets))[:, None]] = held
        return finite_advantage(Channel(laws, self._threat.support), self._threat).value

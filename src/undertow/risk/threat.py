r"""Who attacks what: prior, what counts as success, and what is known of the target.

No risk means anything without its :class:`Threat`. It fixes the three baselines that
bounds are made of: the collision probability :math:`\kappa_\pi`, and the best and worst
success of a guess made without looking, :math:`\kappa^+` and :math:`\kappa^-`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._arrays import disagreement
from undertow._numeric import inflate
from undertow._validate import check_choice
from undertow.risk.bounds.baselines import ADJACENCIES, Adjacency
from undertow.risk.knowledge import Knowledge
from undertow.risk.prior import Prior
from undertow.risk.success import Success

__all__ = ["Threat"]

# Covers the rounding of each term and of the law itself.
_MARGIN = 2.0**-48
_STEPS = 2.0**52
_PRIORS = (
    "; write Prior(records, probabilities), or use undertow.risk.continuous_advantage "
    "for a ContinuousPrior."
)


@dataclass(frozen=True, slots=True, eq=False)
class Threat:
    r"""A prior, a success rule and auxiliary knowledge.

    Parameters
    ----------
    prior : Prior
        Law of the target; independent of all other records.
    success : Success, optional
        When a guess counts; the exact record by default.
    knowledge : Knowledge, optional
        What is known of the target; nothing by default.
    abstain : bool, optional
        Whether the attacker may decline to answer, which never succeeds. False is the
        definition of the thesis: a guess must be made.
    adjacency : {"replace", "add-remove"}, optional
        What may change in the guarantee that is held against this threat; one for
        adding or removing a record is restated for replacing one before any bound is
        taken (:func:`~undertow.risk.selector.best_bound`). Where the output law is
        known, it makes no difference.

    Notes
    -----
    Not checkable: that the records are independent, and that the prior is public.
    Correlated records can be worse than every bound says (thesis, Example 2.25).

    Examples
    --------
    >>> threat = Threat(Prior(3, [0.5, 0.3, 0.2]), Success.within("absolute", 1))
    >>> round(threat.collision, 12), threat.best_guess, threat.worst_guess
    (0.38, 1.0, 0.5)
    """

    prior: Prior
    success: Success = field(default_factory=Success.exact)
    knowledge: Knowledge = field(default_factory=Knowledge.none)
    abstain: bool = False
    adjacency: Adjacency = "replace"

    def __post_init__(self) -> None:
        for name, kind in (
            ("prior", Prior),
            ("success", Success),
            ("knowledge", Knowledge),
            ("abstain", bool),
        ):
            given = getattr(self, name)
            if not isinstance(given, kind):
                raise TypeError(
                    f"{name} must be a {kind.__name__}, got {type(given).__name__}"
                    f"{_PRIORS if name == 'prior' else '.'}"
                )
        check_choice(self.adjacency, "adjacency", choices=ADJACENCIES)

    @classmethod
    def reconstruction(cls, prior: Prior) -> Threat:
        """Guess the exact record, knowing nothing of it."""
        return cls(prior)

    @classmethod
    def membership(cls, prior: Prior) -> Threat:
        """Say whether a known record took part.

        Naming the record says yes, naming another says no; with a single record there
        is no way to say no, and no risk.
        """
        return cls(prior, Success.exact(), Knowledge.full())

    @classmethod
    def attribute(
        cls,
        prior: Prior,
        *,
        target: Callable[[Any], Hashable],
        known: Callable[[Any], Hashable] | None = None,
    ) -> Threat:
        """Guess one function of the record, knowing another.

        Examples
        --------
        >>> people = Prior([("young", 0), ("young", 1), ("old", 1)], [0.4, 0.2, 0.4])
        >>> threat = Threat.attribute(
        ...     people, target=lambda r: r[1], known=lambda r: r[0]
        ... )
        >>> threat.fibres[0].tolist(), round(threat.informed_guess, 12)
        ([0, 1], 0.8)
        """
        knowledge = Knowledge.none() if known is None else Knowledge.attributes(known)
        return cls(prior, Success.attribute(target), knowledge)

    @classmethod
    def location(
        cls,
        prior: Prior,
        *,
        eta: float,
        distance: Literal["absolute", "metres"]
        | Callable[[Any, Any], float]
        | ArrayLike,
        unit: str = "",
    ) -> Threat:
        """Guess a place to within `eta`, by a distance or a table of distances.

        Parameters
        ----------
        prior : Prior
            Law of the place.
        eta : float
            How near a guess must be, included.
        distance : "absolute", "metres", callable or array_like
            As for :meth:`~undertow.risk.success.Success.within`: ``"metres"`` is for
            records (latitude, longitude) in degrees, and a table is indexed
            ``[guess][truth]``.
        unit : str, optional
            The word after `eta` in the summary, such as ``"hops"``.

        Examples
        --------
        >>> homes = Prior.uniform([(41.1496, -8.6110), (41.1450, -8.6107)])
        >>> threat = Threat.location(homes, eta=500, distance="metres")
        >>> threat.summary
        'guess within 500 metres among 2 records, knowing nothing'
        >>> threat.success.matrix(threat.support).tolist()
        [[True, False], [False, True]]
        """
        if isinstance(distance, str):
            check_choice(distance, "distance", choices=("absolute", "metres"))
        return cls(prior, Success.within(distance, eta, unit=unit))

    @property
    def support(self) -> tuple[Hashable, ...]:
        """The records."""
        return self.prior.support

    @property
    def guesses(self) -> tuple[Any, ...]:
        """What may be guessed: the records, then whatever else is allowed."""
        return self.success.guesses(self.support)

    @property
    def labels(self) -> NDArray[np.intp]:
        """Number of the fibre each record lies in."""
        return self.knowledge.labels(self.support)

    @property
    def fibres(self) -> tuple[NDArray[np.intp], ...]:
        """The records of each fibre, by number."""
        labels = self.labels
        order = np.argsort(labels, kind="stable")
        return tuple(np.split(order, np.cumsum(np.bincount(labels))[:-1]))

    @property
    def has_knowledge(self) -> bool:
        """Whether the attacker knows anything that varies over possible targets."""
        return len(np.unique(self.labels[self.prior.pmf > 0])) > 1

    @property
    def collision(self) -> float:
        r"""The collision probability :math:`\kappa_\pi`."""
        return self.prior.collision

    @property
    def ceiling(self) -> float:
        r"""The largest advantage there is, :math:`1 - \kappa_\pi`, rounded up."""
        # Not one minus the collision, which cancels for a prior near a point mass.
        return min(1.0, inflate(disagreement(self.prior.pmf), _MARGIN))

    @property
    def best_guess(self) -> float:
        r"""The best success without looking or knowing, :math:`\kappa^+`, to an ulp."""
        return min(1.0, float(self._guess_masses().max()))

    @property
    def worst_guess(self) -> float:
        r"""The worst success without looking, :math:`\kappa^-`: 0 with abstention."""
        return 0.0 if self.abstain else min(1.0, float(self._guess_masses().min()))

    @property
    def informed_guess(self) -> float:
        """The best success from the knowledge alone, without looking at an output."""
        pmf, success = self.prior.pmf, self.success
        several = [fibre for fibre in self.fibres if len(fibre) > 1]
        best = [pmf[fibre[0]] for fibre in self.fibres if len(fibre) == 1]
        for fibre, sets in zip(
            several, success.sets(self.support, several), strict=True
        ):
            best.append(sets.sums(pmf[fibre, None]).max())
        return min(1.0, math.fsum(best))

    @property
    def summary(self) -> str:
        """The threat in words."""
        way = ", may decline" if self.abstain else ""
        if self.adjacency == "add-remove":
            way += "; guarantees are for adding or removing a record"
        return (
            f"guess {self.success.summary} among {len(self.prior)} records, knowing "
            f"{self.knowledge.summary}{way}"
        )

    def _guess_masses(self) -> NDArray[np.float64]:
        """Return the prior mass of each distinct hit set."""
        everything = np.arange(len(self.prior), dtype=np.intp)
        (sets,) = self.success.sets(self.support, [everything])
        # Multiples of 2**-52 up to 2 add without rounding, in any order.
        coarse = np.floor(self.prior.pmf * _STEPS) / _STEPS
        parts = sets.sums(np.stack([coarse, self.prior.pmf - coarse], axis=1))
        return np.asarray(parts.sum(axis=1))

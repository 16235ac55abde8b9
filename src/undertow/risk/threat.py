r"""Who attacks what: the prior, what counts as success, what is known of the target.

No risk means anything without its :class:`Threat`. It fixes the three baselines that
bounds are made of: the collision probability :math:`\kappa_\pi`, and the best and worst
success of a guess made without looking, :math:`\kappa^+` and :math:`\kappa^-`.

A :class:`Prior` is what the attacker believes of the target before seeing any output: a
law :math:`\pi` on finitely many records. :class:`Knowledge` is what the attacker knows
besides the output: a function :math:`a` of the record, of which :math:`a(x)` is learnt
for the *target* x, never for the record inside the mechanism. When a guess counts says
:class:`~undertow.risk.success.Success`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_non_negative, check_probability
from undertow.errors import MismatchError, ModelError
from undertow.numeric.array import disagreement, read_floats, read_law
from undertow.numeric.rounding import HANDFUL, inflate
from undertow.results import Estimate
from undertow.risk.bounds.baselines import ADJACENCIES, Adjacency
from undertow.risk.success import Success

# What the attacker believes of the target before seeing any output.
#
# A :class:`Prior` is a law :math:`\pi` on finitely many records. Its collision
# probability :math:`\kappa_\pi = \sum_x \pi_x^2` is the chance that an independent draw
# is the target itself, so that :math:`1 - \kappa_\pi` is the largest advantage there
# is.

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Prior:
    r"""A law on finitely many records.

    Parameters
    ----------
    support : sequence of hashable, or int
        The records, all different; a number m stands for 0, ..., m - 1.
    pmf : array_like of shape (m,)
        Their probabilities: non-negative, with sum 1 to within 1e-9. What is missing
        from 1 is shared out in proportion. Zeros are allowed: such a record is never
        the target, and may still be guessed.

    Raises
    ------
    ModelError
        If `pmf` is no probability law on `support`.

    Notes
    -----
    A prior is public: every number computed from it is published as if it were. One
    that is counted on the private data leaks them.

    Examples
    --------
    >>> prior = Prior(["home", "work", "gym"], [0.5, 0.3, 0.2])
    >>> len(prior), round(prior.collision, 12)
    (3, 0.38)
    """

    support: tuple[Hashable, ...]
    pmf: NDArray[np.float64]

    def __init__(self, support: Sequence[Hashable] | int, pmf: ArrayLike) -> None:
        records = _records(support)
        object.__setattr__(self, "support", records)
        object.__setattr__(self, "pmf", _law(pmf, len(records)))

    @classmethod
    def uniform(cls, support: Sequence[Hashable] | int) -> Prior:
        """Return the law under which every record is equally likely.

        Examples
        --------
        >>> Prior.uniform(8).collision
        0.125
        """
        records = _records(support)
        return cls(records, np.full(len(records), 1.0 / len(records)))

    @classmethod
    def empirical(
        cls,
        values: Iterable[Hashable],
        support: Sequence[Hashable] | int | None = None,
        *,
        smoothing: float = 0.0,
    ) -> Prior:
        """Return the relative frequencies of `values`.

        Parameters
        ----------
        values : iterable of hashable
            Public observations; at least one.
        support : sequence of hashable, or int, optional
            The records; those observed, in the order of their first appearance, by
            default.
        smoothing : float, optional
            Added to every count.

        Raises
        ------
        ModelError
            If a value lies outside `support`, or nothing was observed.

        Notes
        -----
        Not checkable: that `values` are public. The collision probability of the
        frequencies is too large on average; see :func:`estimate_collision`.

        Examples
        --------
        >>> Prior.empirical("aab", smoothing=1.0).pmf.tolist()
        [0.6, 0.4]
        """
        counts: dict[Hashable, float] = {}
        for value in values:
            counts[value] = counts.get(value, 0.0) + 1.0
        records = tuple(counts) if support is None else _records(support)
        outside = set(counts).difference(records)
        if outside:
            raise ModelError(
                f"values must lie in the support, got {len(outside)} that do not; "
                "widen the support."
            )
        extra = check_non_negative(smoothing, "smoothing")
        return cls.from_counts({r: counts.get(r, 0.0) + extra for r in records})

    @classmethod
    def from_counts(cls, counts: Mapping[Hashable, float]) -> Prior:
        """Return the law proportional to the counts of a mapping from records.

        Examples
        --------
        >>> Prior.from_counts({"yes": 3, "no": 1}).pmf.tolist()
        [0.75, 0.25]
        """
        weights = read_floats(list(counts.values()), "counts", error=ModelError)
        total = _total(weights)
        if not (0 < total < math.inf and weights.min() >= 0):
            raise ModelError(
                "counts must be finite, non-negative and not all zero, got a total of "
                f"{total}."
            )
        return cls(tuple(counts), weights / total)

    @classmethod
    def two_point(
        cls,
        support: Sequence[Hashable] | int,
        pair: tuple[Hashable, Hashable],
        *,
        weight: float = 0.5,
    ) -> Prior:
        """Return the law that puts `weight` on one of a pair, the rest on the other.

        Examples
        --------
        >>> Prior.two_point(4, (0, 3)).pmf.tolist()
        [0.5, 0.0, 0.0, 0.5]
        """
        records, share = _records(support), check_probability(weight, "weight")
        places = [records.index(record) for record in pair if record in records]
        if not len(pair) == len(places) == len(set(places)) == 2:
            raise ModelError(
                f"pair must hold two different records of the support, got {pair!r}."
            )
        pmf = np.zeros(len(records))
        pmf[places] = share, 1.0 - share
        return cls(records, pmf)

    @property
    def collision(self) -> float:
        r"""The collision probability :math:`\kappa_\pi`, to two units in the last."""
        return math.fsum((self.pmf * self.pmf).tolist())

    def __len__(self) -> int:
        return len(self.support)

    def __repr__(self) -> str:
        return f"Prior({len(self)} records, collision={self.collision:.6g})"


def estimate_collision(counts: ArrayLike, *, confidence: float = 0.95) -> Estimate:
    r"""Estimate the collision probability of the law that independent draws came from.

    .. math:: \hat\kappa = \frac{n \sum \hat p^2 - 1}{n - 1}, \qquad
       \hat\kappa \pm \sqrt{\frac{\ln(2/\beta)}{2 \lfloor n/2 \rfloor}}

    Parameters
    ----------
    counts : array_like of int
        How often each record was drawn; n, their sum, is at least 2.
    confidence : float, optional
        The number :math:`1 - \beta`.

    Returns
    -------
    Estimate
        The unbiased value and its interval within [0, 1].

    Notes
    -----
    The plug-in value :math:`\sum \hat p^2` is too large by :math:`(1-\kappa)/n` on
    average. Bounds on the advantage shrink with :math:`1 - \kappa`, so a guarantee
    takes ``low``, never ``value``: the latter is too large about half of the time. The
    interval is Hoeffding's for a U-statistic with a kernel in [0, 1] [1]_. Checked:
    whole, non-negative counts. Not checkable: that the draws are independent.

    References
    ----------
    .. [1] W. Hoeffding, *Probability Inequalities for Sums of Bounded Random
       Variables*, Journal of the American Statistical Association 58, 1963, Section 5b.

    Examples
    --------
    >>> estimate = estimate_collision([50, 30, 20])
    >>> round(estimate.value, 6), round(estimate.low, 6)
    (0.373737, 0.181673)
    """
    drawn = read_floats(counts, "counts")
    beta = 1.0 - check_probability(confidence, "confidence", open_interval=True)
    n = int(drawn.sum()) if np.isfinite(drawn).all() else 0
    if drawn.ndim != 1 or n < 2 or (drawn < 0).any() or (drawn % 1 != 0).any():
        raise ValueError(
            "counts must be whole, non-negative numbers of at least two draws, got "
            f"{n} draws in {drawn.size} cells."
        )
    value = math.fsum((drawn * (drawn - 1.0)).tolist()) / (n * (n - 1))
    width = math.sqrt(math.log(2.0 / beta) / (2 * (n // 2)))
    return Estimate(
        value,
        max(0.0, value - width),
        min(1.0, value + width),
        confidence,
        n,
        method="Hoeffding's inequality for a U-statistic",
    )


def _records(support: Sequence[Hashable] | int) -> tuple[Hashable, ...]:
    try:
        records, differ = _listed(support)
    except TypeError:
        raise ModelError(
            "support must be hashable records in a sequence, or their number, got "
            f"{type(support).__name__}."
        ) from None
    if not records or differ != len(records):
        raise ModelError(
            "support must hold at least one record, all different, got "
            f"{len(records)} of which {differ} differ."
        )
    return records


def _listed(support: Sequence[Hashable] | int) -> tuple[tuple[Hashable, ...], int]:
    """Return the records and how many of them differ."""
    records: tuple[Hashable, ...]
    if isinstance(support, bool):
        raise TypeError
    if hasattr(support, "__index__"):
        records = tuple(range(operator.index(support)))
    else:
        records = tuple(support)
    return records, len(set(records))


def _total(weights: NDArray[np.float64]) -> float:
    try:
        return math.fsum(weights.tolist())
    except (OverflowError, ValueError):  # beyond the floats, or infinities that cancel
        return math.inf


def _law(pmf: ArrayLike, size: int) -> NDArray[np.float64]:
    weights = read_floats(pmf, "pmf", error=ModelError)
    if weights.shape != (size,):
        raise ModelError(
            f"pmf must have one probability for each of the {size} records, got shape "
            f"{weights.shape}."
        )
    remedy = "use Prior.from_counts to scale weights"
    law = read_law(
        weights, "pmf", tolerance=_TOLERANCE, error=ModelError, remedy=remedy
    )
    law.setflags(write=False)
    return law


# What the attacker knows of the target besides the output: the auxiliary map.
#
# :class:`Knowledge` is a function :math:`a` of the record. The attacker learns
# :math:`a(x)` of the *target* x, never of the record inside the mechanism, and the
# records that share its value are a *fibre* of the map.


@dataclass(frozen=True, slots=True)
class Knowledge:
    """A function of the record whose value at the target the attacker knows.

    Build it with :meth:`none`, :meth:`full`, :meth:`attributes` or
    :meth:`from_labels`.

    Parameters
    ----------
    summary : str
        What is known, in words.
    rule : callable
        From the records to one hashable value each.

    Notes
    -----
    The map is of one kind for all records. Knowing different things of different people
    is a different threat for each kind of person, or a map whose values say which kind
    they are of.

    Examples
    --------
    >>> Knowledge.none().labels("abc").tolist(), Knowledge.full().labels("abc").tolist()
    ([0, 0, 0], [0, 1, 2])
    """

    summary: str
    rule: Callable[[Sequence[Any]], Sequence[Hashable]] = field(repr=False)

    @classmethod
    def none(cls) -> Knowledge:
        """Return what is known in reconstruction: nothing of the target."""
        return cls("nothing", _nothing)

    @classmethod
    def full(cls) -> Knowledge:
        """Return what is known in membership inference: the whole record."""
        return cls("the whole record", _everything)

    @classmethod
    def attributes(
        cls, function: Callable[[Any], Hashable], *, summary: str = "some attributes"
    ) -> Knowledge:
        """Return knowledge of a function of the record, such as its public columns.

        Examples
        --------
        >>> records = [("young", 0), ("old", 0), ("young", 1)]
        >>> Knowledge.attributes(lambda record: record[0]).labels(records).tolist()
        [0, 1, 0]
        """
        if not callable(function):
            raise TypeError(
                f"function must be callable, got {type(function).__name__}; use "
                "Knowledge.from_labels for a list of values."
            )
        return cls(summary, lambda support: [function(record) for record in support])

    @classmethod
    def from_labels(
        cls, values: ArrayLike | Sequence[Hashable], *, summary: str = "a label"
    ) -> Knowledge:
        """Return knowledge of a value that is listed here for each record, in order.

        Examples
        --------
        >>> Knowledge.from_labels([7, 7, 1]).labels("abc").tolist()
        [0, 0, 1]
        """
        listed: Any = values.tolist() if isinstance(values, np.ndarray) else values
        if not isinstance(listed, Iterable):
            raise TypeError(
                f"values must be one label per record, got {type(values).__name__}."
            )
        known: tuple[Hashable, ...] = tuple(listed)
        return cls(summary, lambda support: known)

    def labels(self, support: Sequence[Any]) -> NDArray[np.intp]:
        """Return the number of each record's fibre: equal where the same is known.

        Parameters
        ----------
        support : sequence
            The records.

        Returns
        -------
        ndarray of int, of shape (m,)
            From 0, in the order of first appearance.

        Raises
        ------
        MismatchError
            If a list of labels has another length than `support`.
        ModelError
            If the values known are not all of one type, or one of them is nan.
        """
        known = self.values(support)
        numbers: dict[Hashable, int] = {}
        found = [numbers.setdefault(value, len(numbers)) for value in known]
        return np.array(found, dtype=np.intp)

    def values(self, support: Sequence[Any]) -> tuple[Hashable, ...]:
        """Return what is known of each record, after the checks of :meth:`labels`."""
        known = tuple(self.rule(support))
        if len(known) != len(support):
            raise MismatchError(
                f"labels must be one for each of the {len(support)} records, got "
                f"{len(known)}."
            )
        if not all(isinstance(value, Hashable) and value == value for value in known):
            raise ModelError(
                "knowledge must be a hashable value for each record, and never nan: "
                "what differs from itself tells records apart; use None for unknown."
            )
        kinds = {type(value).__name__ for value in known}
        if len(kinds) > 1:
            raise ModelError(
                "knowledge must be of one kind for all records, got values of types "
                f"{', '.join(sorted(kinds))}; use one threat for each kind."
            )
        return known


def _nothing(support: Sequence[Any]) -> Sequence[Hashable]:
    return [0] * len(support)


def _everything(support: Sequence[Any]) -> Sequence[Hashable]:
    return range(len(support))


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
        return min(1.0, inflate(disagreement(self.prior.pmf), HANDFUL))

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

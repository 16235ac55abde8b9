"""The exact engine on enumerated domains: every pair, every distance, no shortcuts.

It is the meaning of composition, written out, and the reference the scalable engine is
tested against. Per release and pair of databases it finds the distance the claim is
about, prices it, adds over the releases, and only then takes the maximum over the
neighbours of the target granularity.

In the view setting the distance is that inside the range of the view; in the common
setting the quotient of the unit by the fibres of the view, a shortest chain of classes.
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from undertow.composition._charge import (
    FITS,
    ApproxProfile,
    first_notion,
    largest,
    one_notion,
    tag_of,
)
from undertow.composition.release import Setting
from undertow.errors import (
    AssumptionError,
    InfiniteLossError,
    NotionMismatchError,
    VacuousGranularityError,
)
from undertow.numeric.exact import Exact, ext_scale
from undertow.privacy.conversion import convert
from undertow.privacy.group import group
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.metric import Scaled
from undertow.spaces.quotient import Quotient
from undertow.spaces.view.range import HasExactDistance, Pullback, range_of

Pair = tuple[Database, Database]


@dataclass(frozen=True, slots=True)
class Specialised:
    """A composed loss read at a granularity.

    Parameters
    ----------
    loss : Loss
        The maximum over neighbours; of an `Approx` the maximum in each coordinate.
    witness : tuple of two databases
        Neighbours that attain it (of an `Approx`: that attain the epsilon).
    contributions : tuple of Loss
        What each release costs between the witnesses, in the order of the releases.
    profile : ApproxProfile or None
        Of an `Approx`, the pairs that neighbours attain and no other pair dominates.
    """

    loss: Loss
    witness: Pair
    contributions: tuple[Loss, ...]
    profile: ApproxProfile | None = None


class FiniteEngine:
    r"""Compose releases exactly on an enumerated domain.

    .. math:: d(D, E) = \sum_i d_i(f_i(D), f_i(E)) \quad\text{or}\quad
              \sum_i d_i^{f_i}(D, E)

    in the currency of the notion: a sum for pure and approximate losses, a sum of
    squares for zCDP and Gaussian ones.

    Parameters
    ----------
    releases : sequence of objects with ``loss``, ``unit``, ``view`` and ``setting``
        Optionally ``claims``, several triples ``(loss, unit, setting)`` that all hold.
    domain : Domain
        Enumerable.

    Raises
    ------
    NotionMismatchError
        If approximate claims meet Gaussian or zero-concentrated ones; other mixtures
        are converted per pair, and claims that cannot be stated in the common notion
        are left aside: see
        :func:`undertow.composition.finite.meeting_notion`.
    AssumptionError
        If a claim cannot be used: see
        :func:`undertow.composition.finite.require_claim`.

    Notes
    -----
    Paper, Theorems IV.1, V.2, VI.4, VI.13 and VI.21 for the setting ``"view"``, IV.11,
    V.5, VI.7, VI.14 and VI.22 for ``"common"``; thesis, Theorems 4.1, 4.10, 4.16 and
    4.18. In the common setting the quotient metric replaces the minimum privacy of the
    sources: it is never larger, and a pseudometric. For an approximate claim the
    quotient is the step count of the neighbour graph with each fibre contracted, so
    the group form applies to it step by step.
    Checked: enumerability, usable claims. Not checkable here: that the claims hold, for
    every earlier output, and that a ``"common"`` release reads only its view.
    Cost for N databases, E neighbour pairs and k releases: :math:`O(N + E)` per
    distinct column, plus :math:`O(E k)`; a non-canonical unit in the common setting
    costs :math:`O(N^2)`.
    """

    def __init__(self, releases: Sequence[ReleaseLike], domain: Domain) -> None:
        self.releases = tuple(releases)
        self.domain = domain
        claims = [claims_of(release) for release in self.releases]
        self.notion = meeting_notion([c.loss for c in some] for some in claims)
        columns: dict[tuple[View, Metric, str], Column] = {}
        self._terms = tuple(
            tuple(
                (self._column(release.view, claim, columns), plain(claim.loss))
                for claim in some
                if tag_of(claim.loss) in FITS[self.notion.notion]
            )
            for release, some in zip(self.releases, claims, strict=True)
        )
        self._priced: dict[tuple[Exact, ...], tuple[Loss, ...]] = {}

    def _column(
        self,
        view: View,
        claim: ClaimLike,
        columns: dict[tuple[View, Metric, str], Column],
    ) -> Column:
        require_claim(claim)
        key = (view, claim.unit, claim.setting)
        if key not in columns:
            kind = QuotientColumn if claim.setting == "common" else PullbackColumn
            columns[key] = kind(view, claim.unit, self.domain)
        return columns[key]

    def distances(self, pair: Pair) -> tuple[tuple[Exact, ...], ...]:
        """Return, per release and claim in use, the distance the claim is about."""
        return tuple(
            tuple(column.distance(pair) for column, _ in terms) for terms in self._terms
        )

    def contributions(self, pair: Pair) -> tuple[Loss, ...]:
        """Return what each release costs between two databases."""
        rows = self.distances(pair)
        key = tuple(distance for row in rows for distance in row)
        if key not in self._priced:
            self._priced[key] = tuple(
                cheapest(
                    [
                        self._price(loss, distance)
                        for (_, loss), distance in zip(terms, row, strict=True)
                    ]
                )
                for terms, row in zip(self._terms, rows, strict=True)
            )
        return self._priced[key]

    def _price(self, loss: Loss, distance: Exact) -> Loss:
        return convert(at_distance(loss, distance), self.notion)

    def pairwise_loss(self, pair: Pair) -> Loss:
        """Return the composed loss between two databases."""
        return sum(self.contributions(pair), self.notion.zero())

    def specialise(
        self,
        target: Granularity,
        *,
        on_infinite: Literal["raise", "report"] = "raise",
    ) -> Specialised:
        """Return the largest composed loss over the neighbours of `target`.

        Parameters
        ----------
        target : Granularity
            What one protected unit is.
        on_infinite : {"raise", "report"}
            Whether an infinite loss is an error or an answer.

        Raises
        ------
        VacuousGranularityError
            If no two databases are neighbours.
        InfiniteLossError
            If some neighbours are not protected; the pair is the witness.
        """
        losses = {
            pair: self.pairwise_loss(pair)
            for pair in neighbour_pairs(target, self.domain)
        }
        worst = max(losses, key=lambda p: _size(losses[p]), default=None)
        if worst is None:
            raise _vacuous(target)
        if losses[worst].is_infinite and on_infinite == "raise":
            raise InfiniteLossError(
                f"the loss at {target.name} must be finite, got inf for the pair "
                "carried as witness; report it with on_infinite='report'.",
                witness=worst,
                source="paper, Example II.9",
            )
        profile = ApproxProfile.of(losses.values()) if self.notion is Approx else None
        loss = largest(tuple(losses.values()))
        return Specialised(loss, worst, self.contributions(worst), profile)


def pairwise_loss(
    releases: Sequence[ReleaseLike], pair: Pair, *, domain: Domain
) -> Loss:
    """Return the composed loss of `releases` between two databases of `domain`.

    See :class:`FiniteEngine`, which keeps the distances for further pairs.
    """
    return FiniteEngine(releases, domain).pairwise_loss(pair)


def specialise(
    releases: Sequence[ReleaseLike],
    target: Granularity,
    *,
    domain: Domain,
    on_infinite: Literal["raise", "report"] = "raise",
) -> Specialised:
    """Return the composed loss of `releases` at the granularity `target`.

    See :meth:`FiniteEngine.specialise`.
    """
    engine = FiniteEngine(releases, domain)
    return engine.specialise(target, on_infinite=on_infinite)


def specialise_metric(
    metric: Metric, target: Granularity, *, domain: Domain
) -> tuple[Exact, Pair]:
    """Return the largest value of `metric` over neighbours of `target`, with a pair.

    Raises
    ------
    VacuousGranularityError
        If no two databases are neighbours.
    """
    values = {
        pair: exact_distance(metric, pair, domain=domain)
        for pair in neighbour_pairs(target, domain)
    }
    worst = max(values, key=values.__getitem__, default=None)
    if worst is None:
        raise _vacuous(target)
    return values[worst], worst


def neighbour_pairs(target: Granularity, domain: Domain) -> Iterator[Pair]:
    """Yield every unordered pair of different neighbours in `domain` once."""
    target.require_domain(domain)
    order = {database: rank for rank, database in enumerate(domain.databases())}
    for first, rank in order.items():
        for second in target.neighbours(first, domain):
            if order[second] > rank:
                yield first, second


def _vacuous(target: Granularity) -> VacuousGranularityError:
    return VacuousGranularityError(
        f"{target.name} must have neighbours in the domain, got none; "
        "choose a granularity that can change this domain.",
        source="paper, Example III.4",
    )


def _size(loss: Loss) -> tuple[bool, tuple[Exact, ...]]:
    return loss.is_infinite, loss.exact_parameters()


# The distance one claim is about, per pair of databases, found once and kept.
#
# In the view setting it is the distance inside the range of the view; in the common
# setting the quotient of the unit by the fibres of the view, a shortest chain of
# classes.


class Column(ABC):
    """The distance one claim is about; what is found once is kept."""

    def __init__(self, view: View, unit: Metric, domain: Domain) -> None:
        view.require_domain(domain)
        self.view, self.unit, self.domain = view, unit, domain
        self._seen: dict[Database, Database] = {}

    @abstractmethod
    def distance(self, pair: Pair) -> Exact:
        """Return the distance between what the release sees of the two databases."""

    def sees(self, database: Database) -> Database:
        """Return what the release sees of a database."""
        if database not in self._seen:
            self._seen[database] = self.view.apply(database, self.domain)
        return self._seen[database]


class PullbackColumn(Column):
    """``d(f(D), f(E))``, with chains that stay inside the range of the view."""

    def __init__(self, view: View, unit: Metric, domain: Domain) -> None:
        super().__init__(view, unit, domain)
        self._range = range_of(view, domain)
        self._range.require_unit(unit)
        self._known: dict[frozenset[Database], Exact] = {}

    def distance(self, pair: Pair) -> Exact:
        """Return the distance of the two values of the view."""
        ours, theirs = self.sees(pair[0]), self.sees(pair[1])
        if ours == theirs:
            return 0
        key = frozenset((ours, theirs))
        if key not in self._known:
            self._known[key] = self._range.distance(self.unit, ours, theirs)
        return self._known[key]


class QuotientColumn(Column):
    """The quotient of the unit by the fibres of the view: shortest chain of classes."""

    def __init__(self, view: View, unit: Metric, domain: Domain) -> None:
        super().__init__(view, unit, domain)
        self._fibres: dict[Database, list[Database]] = {}
        for database in domain.databases():
            self._fibres.setdefault(self.sees(database), []).append(database)
        if isinstance(unit, Granularity):
            unit.require_domain(domain)
        self._from: dict[Database, dict[Database, Exact]] = {}
        self._steps: dict[Database, dict[Database, Exact]] = {}

    def distance(self, pair: Pair) -> Exact:
        """Return the length of the shortest chain between the two classes."""
        source, goal = self.sees(pair[0]), self.sees(pair[1])
        if source not in self._from:
            self._from[source] = self._shortest(source)
        return self._from[source].get(goal, math.inf)

    def _shortest(self, source: Database) -> dict[Database, Exact]:
        best: dict[Database, Exact] = {source: 0}
        ticket = itertools.count()  # labels need not be comparable
        queue: list[tuple[Exact, int, Database]] = [(0, next(ticket), source)]
        done: set[Database] = set()
        while queue:
            length, _, label = heapq.heappop(queue)
            if label in done:
                continue
            done.add(label)
            for other, step in self._steps_from(label).items():
                if length + step < best.get(other, math.inf):
                    best[other] = length + step
                    heapq.heappush(queue, (length + step, next(ticket), other))
        return best

    def _steps_from(self, label: Database) -> dict[Database, Exact]:
        if label not in self._steps:
            measure = (
                self._neighbour_steps
                if isinstance(self.unit, Granularity)
                else self._metric_steps
            )
            self._steps[label] = measure(label)
        return self._steps[label]

    def _neighbour_steps(self, label: Database) -> dict[Database, Exact]:
        assert isinstance(self.unit, Granularity)
        return {
            self.sees(neighbour): 1
            for database in self._fibres[label]
            for neighbour in self.unit.neighbours(database, self.domain)
        }

    def _metric_steps(self, label: Database) -> dict[Database, Exact]:
        return {
            other: min(
                exact_distance(self.unit, (first, second), domain=self.domain)
                for first in self._fibres[label]
                for second in fibre
            )
            for other, fibre in self._fibres.items()
            if other != label
        }


# The claims of a release: which may be used, what one promises at a distance, which of
# several counts, and in which notion.


class ClaimLike(Protocol):
    """A loss, the metric it is stated in, and the setting it was proved in."""

    @property
    def loss(self) -> Loss:
        """The loss per unit of the metric."""

    @property
    def unit(self) -> Metric:
        """The metric in which the loss is stated."""

    @property
    def setting(self) -> Setting:
        """``"view"``: private on the range; ``"common"``: on the whole domain."""


class ReleaseLike(ClaimLike, Protocol):
    """A claim together with the view the release sees the data through.

    An attribute ``claims``, where there is one, lists every claim proved for the
    release; otherwise the release is its own only claim.
    """

    @property
    def view(self) -> View:
        """The map the release sees the data through."""


def claims_of(release: ReleaseLike) -> tuple[ClaimLike, ...]:
    """Return every claim proved for `release`, at least one."""
    claims: tuple[ClaimLike, ...] = tuple(getattr(release, "claims", ()))
    return claims or (release,)


def require_claim(claim: ClaimLike) -> None:
    r"""Raise unless the claim is one the composition theorems can use.

    Raises
    ------
    AssumptionError
        If the loss is infinite and the unit is zero between different databases, or
        if an approximate loss is stated in a metric that no neighbour relation
        generates.

    Notes
    -----
    An infinite loss still promises equal output laws at distance zero, which a
    noise-free release breaks. The factor :math:`[d]_\varepsilon` of an approximate
    loss comes from chaining whole neighbour steps, so it holds at integer distances
    of a canonical metric only (paper, Theorem VI.3).
    """
    if claim.loss.is_infinite and not claim.unit.separates_points:
        raise AssumptionError(
            "an infinite loss must be stated in a unit that separates points, got "
            f"{claim.unit.name}; use the discrete metric on the view."
        )
    if isinstance(plain(claim.loss), Approx) and not claim.unit.canonical:
        raise AssumptionError(
            "an approximate loss must be stated in a canonical unit, got "
            f"{claim.unit.name}; give its own delta per pair with "
            "undertow.composition.ApproxTerm.",
            source="paper, Theorem VI.3",
        )


_INFINITE: dict[type[Loss], Loss] = {
    Pure: Pure(math.inf),
    Approx: Approx(math.inf, 1),
    ZCDP: ZCDP(math.inf),
    GDP: GDP(math.inf),
}

_NOTIONS: dict[str, type[Loss]] = {k.notion: k for k in (Pure, GDP, ZCDP, Approx)}


def exact_distance(
    metric: Metric, pair: tuple[Database, Database], *, domain: Domain
) -> Exact:
    """Return a distance as an exact number.

    Parameters
    ----------
    metric : Metric
        What measures; its floats are already rounded up.
    pair : tuple of two databases
        Elements of `domain`.
    domain : Domain
        Where chains of neighbours may run.

    Returns
    -------
    int, Fraction or float
        An int or a Fraction, or ``math.inf``.
    """
    if isinstance(metric, Scaled):
        return ext_scale(
            metric.factor, exact_distance(metric.base, pair, domain=domain)
        )
    if isinstance(metric, Quotient) and isinstance(metric.base, Scaled):
        inner = Quotient(metric.base.base, metric.view)  # scaling passes through
        return exact_distance(Scaled(inner, metric.base.factor), pair, domain=domain)
    if isinstance(metric, Pullback):
        images = tuple(metric.view.apply(database, domain) for database in pair)
        return range_of(metric.view, domain).distance(metric.base, *images)
    if isinstance(metric, HasExactDistance):
        return metric.exact_distance(pair, domain=domain)
    value = metric.distance(*pair, domain)
    if value == math.inf:
        return math.inf
    precise = Fraction(value)
    return int(precise) if precise.denominator == 1 else precise


def at_distance(loss: Loss, distance: Exact) -> Loss:
    r"""Return what a claim of `loss` per unit promises at `distance`.

    .. math:: \varepsilon d, \quad \bigl(\varepsilon d, \delta [d]_\varepsilon\bigr),
              \quad \rho d^2, \quad \mu d

    Parameters
    ----------
    loss : Loss
        The loss at distance one.
    distance : int, Fraction or inf
        Exact; whole for an `Approx`.

    Notes
    -----
    Group privacy (:func:`undertow.privacy.group.group`), except that an infinite
    distance is an answer here: it costs infinity, also at loss zero.

    Examples
    --------
    >>> at_distance(ZCDP("0.5"), 3), at_distance(GDP(1), 2), at_distance(Pure(0), 3)
    (ZCDP(rho=4.5), GDP(mu=2), Pure(epsilon=0))
    """
    if distance == 0:
        return type(loss).zero()
    if distance < math.inf:
        return group(loss, Fraction(distance))
    return _INFINITE[type(loss)]


def cheapest(prices: Sequence[Loss]) -> Loss:
    """Choose one of several losses that all hold for the same release and pair.

    Parameters
    ----------
    prices : sequence of Loss
        At least one, all of one notion.

    Notes
    -----
    The minimum of one-parameter losses. Approximate losses have none: one claim is
    taken whole, never the epsilon of one with the delta of another; among those that
    promise something the smallest epsilon wins, then the smallest delta.

    Examples
    --------
    >>> cheapest([Approx(1, "1e-6"), Approx("0.5", "1e-5"), Approx("0.1", 1)])
    Approx(epsilon=0.5, delta=0.00001)
    """
    one_notion(prices)
    return min(prices, key=lambda loss: (loss.is_infinite, loss.exact_parameters()))


def meeting_notion(releases: Iterable[Iterable[Loss]]) -> type[Loss]:
    """Return the first notion in which every release has a loss it can be stated in.

    Parameters
    ----------
    releases : iterable of iterables of Loss
        Per release, the losses of its claims.

    Raises
    ------
    NotionMismatchError
        If approximate losses meet Gaussian or zero-concentrated ones: those convert
        only at a chosen delta.

    Notes
    -----
    In the order pure, Gaussian, zCDP, approximate. Gaussian takes in pure losses, zCDP
    takes in both, approximate takes in pure ones. The conversion applies per pair,
    before the sum.
    """
    groups = [{tag_of(loss) for loss in losses} for losses in releases]
    notion = first_notion(groups)
    if notion is not None:
        return _NOTIONS[notion]
    names = ", ".join(sorted(set().union(*groups)))
    raise NotionMismatchError(
        f"losses must convert into one notion, got {names}; convert the Gaussian and "
        "zCDP ones to Approx at a chosen delta (undertow.privacy.conversion)."
    )


def plain(loss: Loss) -> Loss:
    """Return a loss in the strongest notion it is stated in: delta zero is pure."""
    if isinstance(loss, Approx) and loss.exact_parameters()[1] == 0:
        epsilon = loss.exact_parameters()[0]
        pure = Pure(epsilon if epsilon == math.inf else Fraction(epsilon))
        return pure.of_continuous_noise(loss.continuous)
    return loss

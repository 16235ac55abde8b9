"""What one claim costs at one distance, and which of several claims to use.

A claim says "this release loses `loss` per unit of `unit`". Everything the finite
engine and the composed metrics need of it is here: the exact distance, the price of a
claim at that distance, and the choice between claims that all hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, Self

from undertow.composition.release import Setting
from undertow.errors import AssumptionError, NotionMismatchError
from undertow.numeric.exact import Exact, Number, exact, ext_scale, round_up
from undertow.privacy.group import group
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Database, Domain, Metric, View
from undertow.spaces.metric import Scaled
from undertow.spaces.quotient import Quotient
from undertow.spaces.view.range import HasExactDistance, Pullback, range_of

# Four correctly rounded operations and two exponentials of one unit in the last place.
_SLACK = 2.0**-48

CONVERTIBLE: dict[type[Loss], frozenset[type[Loss]]] = {
    Pure: frozenset({Pure}),
    GDP: frozenset({Pure, GDP}),
    ZCDP: frozenset({Pure, GDP, ZCDP}),
    Approx: frozenset({Pure, Approx}),
}
"""What can be restated in a notion without choosing a delta, best notion first."""

_INFINITE: dict[type[Loss], Loss] = {
    Pure: Pure(math.inf),
    Approx: Approx(math.inf, 1),
    ZCDP: ZCDP(math.inf),
    GDP: GDP(math.inf),
}


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
            "undertow.composition.sequential.ApproxTerm.",
            source="paper, Theorem VI.3",
        )


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


def one_notion(losses: Iterable[Loss]) -> type[Loss]:
    """Return the notion all `losses` share; ``Pure`` where there are none.

    Raises
    ------
    NotionMismatchError
        If two notions meet.
    """
    notions = {type(loss): loss for loss in losses}
    if len(notions) > 1:
        names = " and ".join(sorted(notion.notion for notion in notions))
        raise NotionMismatchError(
            f"losses must be of one notion, got {names}; "
            "convert them first (undertow.privacy.conversion)."
        )
    return next(iter(notions), Pure)


def plain(loss: Loss) -> Loss:
    """Return a loss in the strongest notion it is stated in: delta zero is pure."""
    if isinstance(loss, Approx) and loss.exact_parameters()[1] == 0:
        epsilon = loss.exact_parameters()[0]
        pure = Pure(epsilon if epsilon == math.inf else Fraction(epsilon))
        return pure.of_continuous_noise(loss.continuous)
    return loss


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
    groups = [{type(plain(loss)) for loss in losses} for losses in releases]
    for notion, takes in CONVERTIBLE.items():
        if all(not takes.isdisjoint(group) for group in groups):
            return notion
    names = ", ".join(sorted({kind.notion for group in groups for kind in group}))
    raise NotionMismatchError(
        f"losses must convert into one notion, got {names}; convert the Gaussian and "
        "zCDP ones to Approx at a chosen delta (undertow.privacy.conversion)."
    )


@dataclass(frozen=True, slots=True)
class ApproxProfile:
    r"""Several :math:`(\varepsilon_j, \delta_j)`, of which each neighbour pair has one.

    .. math:: \delta(\varepsilon) = \max_j \delta_j(\varepsilon)

    Parameters
    ----------
    pairs : tuple of Approx
        None of them dominated by another.

    Notes
    -----
    The composed mechanism satisfies the pointwise maximum of the privacy profiles of
    its pairs, which is stronger than the single pair of paper, Theorem VI.6 and
    Theorem A.13.

    Examples
    --------
    >>> profile = ApproxProfile.of([Approx(1, "1e-6"), Approx("0.5", "1e-5")])
    >>> profile.as_pair(), profile.delta(2) == 1e-5, profile.delta("0.5") < 0.29
    (Approx(epsilon=1, delta=0.00001), True, True)
    """

    pairs: tuple[Approx, ...]

    @classmethod
    def of(cls, losses: Iterable[Approx]) -> Self:
        """Keep the pairs that no other pair dominates, largest epsilon first."""
        kept: list[Approx] = []
        ordered = sorted(
            set(losses), key=lambda loss: loss.exact_parameters(), reverse=True
        )
        for loss in ordered:
            if not kept or loss.exact_parameters()[1] > kept[-1].exact_parameters()[1]:
                kept.append(loss)
        return cls(tuple(kept))

    def as_pair(self) -> Approx:
        """Return the one pair that covers all: the maximum in each coordinate."""
        if not self.pairs:
            return Approx.zero()
        parameters = [pair.exact_parameters() for pair in self.pairs]
        return Approx(max(p[0] for p in parameters), max(p[1] for p in parameters))

    def delta(self, epsilon: Number) -> float:
        r"""Return the delta that holds at `epsilon`, rounded up.

        Notes
        -----
        A single pair gives :math:`\delta_j` from :math:`\varepsilon_j` on, and below it
        :math:`1 - (1-\delta_j)(1+e^{\varepsilon})/(1+e^{\varepsilon_j})`, the line
        through the kink of its trade-off function.
        """
        level = exact(epsilon, "epsilon")
        return max((_delta_of_pair(pair, level) for pair in self.pairs), default=0.0)


def _delta_of_pair(pair: Approx, epsilon: Exact) -> float:
    own, delta = pair.exact_parameters()
    if epsilon >= own:
        return round_up(delta)
    if own == math.inf:
        return 1.0
    gap, small = float(epsilon - own), math.exp(-float(own))
    value = (-math.expm1(gap) + pair.delta * (small + math.exp(gap))) / (1 + small)
    return min(1.0, value * (1 + _SLACK))

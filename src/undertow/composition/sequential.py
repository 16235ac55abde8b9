"""Composition as metrics: sums of what each release sees, kept pair by pair.

A composed release is private with a metric built from the metrics of its parts. The
functions here build that metric; reading it at a granularity comes last
(:func:`undertow.composition.finite.specialise_metric`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

from undertow.composition.finite_claim import at_distance, exact_distance, one_notion
from undertow.errors import AssumptionError
from undertow.numeric.exact import Exact, ext_sum, round_up, sqrt_up
from undertow.privacy.loss import Approx, Loss
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.metric import Scaled, image_or_values
from undertow.spaces.view.range import Pullback, range_of

Pair = tuple[Database, Database]
DeltaFunction = Callable[[Database, Database, Domain], Exact]


@dataclass(frozen=True, slots=True)
class ComposedMetric(Metric):
    r"""Metrics of one domain added, or added in squares.

    .. math:: d = \sum_i d_i \quad\text{or}\quad d = \sqrt{\textstyle\sum_i d_i^2}

    Parameters
    ----------
    parts : tuple of Metric
        One per release, each already on the common domain. None gives the zero metric.
    rule : {"sum", "root of squares"}
        The first for pure losses, the second for Gaussian and root-zCDP ones.
    """

    parts: tuple[Metric, ...]
    rule: Literal["sum", "root of squares"] = "sum"

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{self.rule} of {len(self.parts)} metrics"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the composed distance, rounded up."""
        if self.rule == "sum":
            return round_up(self.exact_distance((first, second), domain=domain))
        return sqrt_up(self.square((first, second), domain=domain))

    def exact_distance(self, pair: Pair, *, domain: Domain) -> Exact:
        """Return the sum exactly; a root of squares is rounded up."""
        if self.rule == "sum":
            return ext_sum(self.terms(pair, domain=domain))
        root = self.distance(*pair, domain)
        return root if root == math.inf else Fraction(root)

    def square(self, pair: Pair, *, domain: Domain) -> Exact:
        """Return the sum of the squared parts exactly: rho, or mu squared."""
        return ext_sum(term * term for term in self.terms(pair, domain=domain))

    def terms(self, pair: Pair, *, domain: Domain) -> tuple[Exact, ...]:
        """Return the distance of each part."""
        return tuple(exact_distance(part, pair, domain=domain) for part in self.parts)


def compose_pure(parts: Sequence[tuple[Metric, View]]) -> ComposedMetric:
    r"""Compose pure metric-private releases, each behind its view.

    .. math:: d(D, E) = \sum_i d_i(f_i(D), f_i(E))

    Parameters
    ----------
    parts : sequence of (Metric, View)
        Per release, the metric in which it is private on the range of its view
        (``Scaled(unit, epsilon)`` for a granularity), and the view.

    Notes
    -----
    Thesis, Theorem 4.1; paper, Theorems IV.1 (independent) and V.2 (adaptive). No
    condition links the parts. Not checkable here: that each guarantee and view holds
    for every earlier output in the declared output spaces, not only the one observed.
    An infinite distance means no protection for that pair.

    Examples
    --------
    >>> from undertow.spaces.metric import AbsoluteDifference, Values
    >>> from undertow.spaces.view import Identity
    >>> count = (Scaled(AbsoluteDifference(), "0.25"), Identity())
    >>> compose_pure([count] * 3).distance(0, 1, Values())
    0.75
    """
    return ComposedMetric(tuple(Pullback(metric, view) for metric, view in parts))


def compose_zc(parts: Sequence[tuple[Metric, View]]) -> ComposedMetric:
    r"""Compose zero-concentrated releases given by their root metrics.

    .. math:: d(D, E)^2 = \sum_i d_i(f_i(D), f_i(E))^2, \qquad \rho = d^2

    Parameters
    ----------
    parts : sequence of (Metric, View)
        Root metrics: for a granularity of loss rho, its metric times the square root
        of rho.

    Notes
    -----
    Paper, Theorem VI.13; after Theorem VI.15 the paper prints
    :math:`d_i = \rho_i (d^{\mathcal G})^2`, where
    :math:`d_i^2 = \rho_i (d^{\mathcal G})^2` is meant. Read rho with
    :meth:`ComposedMetric.square`.
    """
    return _root_of_squares(parts)


def compose_gauss(parts: Sequence[tuple[Metric, View]]) -> ComposedMetric:
    r"""Compose Gaussian metric-private releases, each behind its view.

    .. math:: d(D, E) = \sqrt{\textstyle\sum_i d_i(f_i(D), f_i(E))^2}

    Parameters
    ----------
    parts : sequence of (Metric, View)
        Per release, the shift metric (``Scaled(unit, mu)``) and the view.

    Notes
    -----
    Thesis, Theorem 4.16; paper, Theorem VI.21. Releases add in squares, steps of a
    chain add linearly. Paper, Theorem VI.23 prints "d_i-DP" for its hypothesis;
    Gaussian privacy is meant.
    """
    return _root_of_squares(parts)


def _root_of_squares(parts: Sequence[tuple[Metric, View]]) -> ComposedMetric:
    pulled = tuple(Pullback(metric, view) for metric, view in parts)
    return ComposedMetric(pulled, "root of squares")


@dataclass(frozen=True, slots=True)
class ApproxTerm:
    r"""One approximate release: a metric and its own delta for each ordered pair.

    Parameters
    ----------
    metric : Metric
        The distance in epsilon on the range of `view`.
    delta : callable
        Takes two images and their domain, returns delta in :math:`[0, \infty]`; it
        need not be a metric, nor symmetric.
    view : View
        What the release sees.
    claim : tuple of (Approx, Granularity), optional
        The statement the two functions came from, where it is a granularity's.
    """

    metric: Metric
    delta: DeltaFunction
    view: View
    claim: tuple[Approx, Granularity] | None = None

    @classmethod
    def at_granularity(cls, loss: Approx, unit: Metric, *, view: View) -> Self:
        r"""Restate an :math:`(\varepsilon, \delta)` claim at a granularity pairwise.

        Raises
        ------
        AssumptionError
            If `unit` is not generated by a neighbour relation: then delta at a
            fractional distance is not implied.

        Notes
        -----
        Paper, Theorem VI.3:
        :math:`(\varepsilon d^{\mathcal G}, \delta [d^{\mathcal G}]_\varepsilon)`.
        """
        if not isinstance(unit, Granularity):
            raise AssumptionError(
                "unit must be a granularity for a single (epsilon, delta), got "
                f"{unit.name}; give ApproxTerm its own delta function.",
                source="paper, Theorem VI.3",
            )

        def delta(first: Database, second: Database, domain: Domain) -> Exact:
            steps = exact_distance(unit, (first, second), domain=domain)
            return at_distance(loss, steps).exact_parameters()[1]

        metric = Scaled(unit, loss.exact_parameters()[0])
        return cls(metric, delta, view, (loss, unit))


@dataclass(frozen=True, slots=True)
class ComposedApprox:
    """Approximate releases composed pair by pair.

    Parameters
    ----------
    terms : tuple of ApproxTerm
        One per release.
    """

    terms: tuple[ApproxTerm, ...]

    def loss(self, pair: Pair, *, domain: Domain) -> Approx:
        """Return the composed loss of an ordered pair; delta is kept at most 1."""
        return Approx.capped(
            ext_sum(self.epsilons(pair, domain=domain)),
            ext_sum(self.deltas(pair, domain=domain)),
        )

    def epsilons(self, pair: Pair, *, domain: Domain) -> tuple[Exact, ...]:
        """Return the epsilon of each release."""
        return tuple(
            exact_distance(Pullback(term.metric, term.view), pair, domain=domain)
            for term in self.terms
        )

    def deltas(self, pair: Pair, *, domain: Domain) -> tuple[Exact, ...]:
        """Return the delta of each release, for the ordered pair."""
        return tuple(_delta(term, pair, domain) for term in self.terms)


def _delta(term: ApproxTerm, pair: Pair, domain: Domain) -> Exact:
    first, second = (term.view.apply(database, domain) for database in pair)
    if first == second:
        return 0
    if term.claim is not None:
        loss, unit = term.claim
        steps = range_of(term.view, domain).distance(unit, first, second)
        return at_distance(loss, steps).exact_parameters()[1]
    return exact_delta(term, (first, second), domain=image_or_values(term.view, domain))


def exact_delta(term: ApproxTerm, pair: Pair, *, domain: Domain) -> Exact:
    """Return the delta of an ordered pair as an exact number in ``[0, inf]``."""
    delta = term.delta(*pair, domain)
    if not delta >= 0:
        raise ValueError(f"delta must be in [0, inf], got {delta}.")
    return delta if delta == math.inf else Fraction(delta)


def compose_approx(terms: Sequence[ApproxTerm]) -> ComposedApprox:
    r"""Compose approximate releases, each behind its view.

    .. math:: \Bigl(\sum_i d_i(f_i(D), f_i(E)),\;
              \sum_i \delta_i(f_i(D), f_i(E))\Bigr)

    Parameters
    ----------
    terms : sequence of ApproxTerm
        One per release.

    Notes
    -----
    Paper, Theorem VI.4 (general) and VI.5 (sequential). The deltas can add up to 1 and
    more although each is small; the pair then has no guarantee and says so
    (:attr:`undertow.privacy.loss.Approx.no_guarantee`).
    """
    return ComposedApprox(tuple(terms))


def sequential(losses: Sequence[Loss]) -> Loss:
    """Add the losses of releases that all see the whole data, in one unit.

    Parameters
    ----------
    losses : sequence of Loss
        All of one notion, all stated in the same metric or granularity; with different
        units keep the metrics and use :func:`compose_pure` and its siblings.

    Returns
    -------
    Loss
        The sum; of Gaussian losses the root of the sum of squares. No releases cost
        nothing.

    Raises
    ------
    NotionMismatchError
        If two notions meet.

    Notes
    -----
    Thesis, Theorem 2.14 and Corollaries 4.2 and 4.17; paper, Theorems IV.3, V.3, VI.5,
    VI.15 and VI.23. Independent and adaptive releases cost the same.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> sequential([Pure("0.5"), Pure(1), Pure("0.3"), Pure("0.8")])
    Pure(epsilon=2.6)
    """
    total = one_notion(losses).zero()
    for loss in losses:
        total = total + loss
    return total

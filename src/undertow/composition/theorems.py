"""Statements about composition that a reader may want by themselves.

The engine prices releases on the domain of a plan. What is here needs no plan: sums of
losses, of metrics and of deltas pair by pair, the closed forms for releases on parts of
the data with their hypotheses as arguments, what a composition says about its parts,
and what a prior is once an adversary knows something. The closed forms are exact
however many parts there are, also for approximate losses, where the engine may round
long sums up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from undertow._validate import check_choice, check_count
from undertow.composition._charge import ApproxProfile, largest, loss_of, one_notion
from undertow.composition.finite import (
    FiniteEngine,
    Pair,
    ReleaseLike,
    Specialised,
    at_distance,
    exact_distance,
)
from undertow.composition.release import Setting
from undertow.errors import (
    AssumptionError,
    CompositionError,
    IncompatiblePartitionError,
    InfiniteLossError,
    MismatchError,
)
from undertow.numeric.array import Matrix
from undertow.numeric.exact import Exact, ext_max, ext_sum, round_up, sqrt_up
from undertow.privacy.divergence import exact_loss_matrix
from undertow.privacy.loss import Approx, Loss
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.metric import Scaled, image_or_values
from undertow.spaces.quotient import Dependency, Quotient, require_dependencies
from undertow.spaces.view.range import Pullback

Dependencies = Dependency | Sequence[Dependency]
DeltaFunction = Callable[[Database, Database, Domain], Exact]

# Float rounding of the logarithms of a probability table.
_LOG_SLACK = 1e-12
# How far the sum of probabilities may be from one.
_SUM_SLACK = 1e-9


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
    return sum(losses, one_notion(losses).zero())


# Composition as metrics: sums of what each release sees, kept pair by pair. Reading
# them at a granularity comes last (``specialise_metric``).


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
    return ComposedMetric(compose_pure(parts).parts, "root of squares")


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
    return ComposedMetric(compose_pure(parts).parts, "root of squares")


def compose_common(
    parts: Sequence[tuple[Metric, View]],
    *,
    dependency: Dependencies | None = None,
    rule: Literal["sum", "root of squares"] = "sum",
) -> ComposedMetric:
    r"""Compose releases that are private on the whole domain and read only a view.

    .. math:: d(D, E) = \sum_i d_i^{f_i}(D, E)

    with :math:`d^f` the quotient of :math:`d` by the fibres of :math:`f`.

    Parameters
    ----------
    parts : sequence of (Metric, View)
        Per release, the metric in which it is private on the domain, and the view it
        depends on: the coarsest statistic it reads is the cheapest to declare.
    dependency : Dependency or sequence of Dependency
        Why each release reads its view only: one statement for all, or one each.
    rule : {"sum", "root of squares"}
        The first for pure losses; the second for Gaussian and root-zCDP metrics.

    Raises
    ------
    UnprovedDependencyError
        Without `dependency`, or with one about another view.

    Notes
    -----
    Thesis, Theorems 4.10 and 4.18; paper, Theorems IV.11, V.5, VI.14 and VI.22. Where
    thesis, Theorem 4.10 prints one map and one metric inside the minimum, each release
    has its own. The minimum over the fibres need not satisfy the triangle inequality;
    the quotient, its shortest-path closure, does, is never larger, and holds too:
    log-ratios, Gaussian shifts and roots of zCDP coefficients add along chains.
    Approximate losses do not; see :func:`compose_common_approx`.
    """
    require_dependencies(dependency, [view for _, view in parts])
    return ComposedMetric(tuple(Quotient(metric, view) for metric, view in parts), rule)


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


# Approximate losses: each pair of databases has its own epsilon and its own delta.


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


def compose_common_approx(
    terms: Sequence[ApproxTerm], *, dependency: Dependencies | None = None
) -> ComposedApprox:
    r"""Compose approximate releases private on the domain that read only a view.

    Parameters
    ----------
    terms : sequence of ApproxTerm
        Stated on the whole domain, with the view each release depends on.
    dependency : Dependency or sequence of Dependency
        Why each release reads its view only: one statement for all, or one each.

    Raises
    ------
    UnprovedDependencyError
        Without `dependency`, or with one about another view.

    Notes
    -----
    Paper, Theorem VI.7, with the fibre constraint that its printed form omits. A claim
    at a granularity is chained step by step through the fibres: with q the number of
    steps between the fibres it gives
    :math:`(\varepsilon q, \delta [q]_\varepsilon)`. A term with its own delta function
    takes the best pair in the two fibres, and no chain.
    """
    require_dependencies(dependency, [term.view for term in terms])
    return ComposedApprox(tuple(terms), "common")


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
    setting : {"view", "common"}
        Whether metric and delta of each term are those between the images of its view,
        or between databases of the domain.
    """

    terms: tuple[ApproxTerm, ...]
    setting: Setting = "view"

    def loss(self, pair: Pair, *, domain: Domain) -> Approx:
        """Return the composed loss of an ordered pair; delta is kept at most 1."""
        return sum(self.parts(pair, domain=domain), Approx.zero())

    def parts(self, pair: Pair, *, domain: Domain) -> tuple[Approx, ...]:
        """Return the loss of each release, for the ordered pair."""
        return tuple(self._part(term, pair, domain) for term in self.terms)

    def _part(self, term: ApproxTerm, pair: Pair, domain: Domain) -> Approx:
        view = term.view
        if term.claim is not None:
            loss, unit = term.claim
            seen = Pullback if self.setting == "view" else Quotient
            steps = exact_distance(seen(unit, view), pair, domain=domain)
            chained = at_distance(loss, steps)
            assert isinstance(chained, Approx)
            return chained
        first, second = (view.apply(database, domain) for database in pair)
        if first == second:
            return Approx.zero()
        if self.setting == "view":
            epsilon = exact_distance(Pullback(term.metric, view), pair, domain=domain)
            image = image_or_values(view, domain)
            return Approx.capped(epsilon, _delta(term, (first, second), image))
        fibres: dict[Hashable, list[Database]] = {first: [], second: []}
        for database in domain.databases():
            fibres.get(view.apply(database, domain), []).append(database)
        promises = (
            (
                exact_distance(term.metric, (one, two), domain=domain),
                _delta(term, (one, two), domain),
            )
            for one in fibres[first]
            for two in fibres[second]
        )
        return Approx.capped(*min(promises))


def _delta(term: ApproxTerm, pair: Pair, domain: Domain) -> Exact:
    """Return the delta of an ordered pair as an exact number in ``[0, inf]``."""
    delta = term.delta(*pair, domain)
    if not delta >= 0:
        raise ValueError(f"delta must be in [0, inf], got {delta}.")
    return delta if delta == math.inf else Fraction(delta)


def minimum_privacy_approx(
    distance: npt.ArrayLike, delta: npt.ArrayLike, *, labels: Sequence[Hashable]
) -> MinimumPrivacy:
    r"""Take the best pair in the fibres: least distance, then least delta at it.

    .. math:: (d^f, \delta^f)(D, E) = \min_{\text{lex}}
              \{(d, \delta)(\tilde D, \tilde E) :
              f(\tilde D) = f(D), f(\tilde E) = f(E)\}

    Parameters
    ----------
    distance, delta : array_like of shape (n, n)
        What the mechanism promises between databases; delta need not be symmetric.
    labels : sequence of hashable
        The view of each database.

    Returns
    -------
    MinimumPrivacy
        Both matrices, zero between databases with the same view.

    Notes
    -----
    Paper, Proposition A.12 and Theorem VI.7, whose printed :math:`\delta^f` ranges over
    all pairs at distance :math:`d^f`. Without the fibre constraint the statement is
    false: a delta proved for other databases says nothing about these. Not a metric;
    chain it with :func:`undertow.privacy.group.chain_approx` only.
    """
    d, extra = np.asarray(distance, dtype=float), np.asarray(delta, dtype=float)
    size = (len(labels), len(labels))
    if d.shape != size or extra.shape != size:
        raise MismatchError(
            f"distance and delta must have shape {size}, got {d.shape} and "
            f"{extra.shape}."
        )
    fibres: dict[Hashable, list[int]] = {}
    for index, label in enumerate(labels):
        fibres.setdefault(label, []).append(index)
    best_d, best_delta = np.zeros(size), np.zeros(size)
    for one, rows in fibres.items():
        for two, columns in fibres.items():
            if one != two:
                block = np.ix_(rows, columns)
                best_d[block] = d[block].min()
                best_delta[block] = extra[block][d[block] == d[block].min()].min()
    return MinimumPrivacy(best_d, best_delta)


class MinimumPrivacy(NamedTuple):
    """Distances and deltas of a mechanism that reads only its view."""

    distance: Matrix
    delta: Matrix


# Releases on the blocks of a compatible partition: the largest loss covers them.


def parallel_max(
    losses: Sequence[Loss],
    *,
    certificate: CertificateLike | None = None,
    setting: Setting = "view",
) -> Loss:
    r"""Bound releases on the blocks of a compatible partition by the largest loss.

    .. math:: \varepsilon = \max_i \varepsilon_i

    Parameters
    ----------
    losses : sequence of Loss
        One per block, all of one notion and one unit, the target granularity.
    certificate : CertificateLike
        That one change touches at most one block, and in the view setting moves it by
        at most one step.
    setting : {"view", "common"}
        ``"view"``: each mechanism is private on its block; ``"common"``: each is
        private on the whole domain and reads only its block.

    Returns
    -------
    Loss
        Of an `Approx`, the maximum in each coordinate; :func:`parallel_profile` keeps
        the pairs apart.

    Raises
    ------
    IncompatiblePartitionError
        Without a certificate, or if it does not certify what the setting needs.

    Notes
    -----
    Paper, Theorems IV.6, V.4, VI.6, VI.16 and VI.26 (view); IV.12, V.6, A.13, A.15 and
    A.17 (common, where non-expansion is not needed). The printed A.13 and A.15 do not
    state compatibility, but are false without it. No losses cost nothing.
    """
    check_choice(setting, "setting", choices=("view", "common"))
    _require_compatible(certificate, setting)
    return largest(losses)


def parallel_profile(
    losses: Sequence[Approx],
    *,
    certificate: CertificateLike | None = None,
    setting: Setting = "view",
) -> ApproxProfile:
    """Bound approximate releases on a compatible partition, pair by pair.

    The arguments, the refusals and the source are those of :func:`parallel_max`.
    """
    parallel_max(losses, certificate=certificate, setting=setting)
    return ApproxProfile.of(losses)


def best_common_bound(
    losses: Sequence[Loss],
    *,
    certificate: CertificateLike | None = None,
    dependency: Dependencies | None = None,
) -> Loss:
    r"""Bound releases on a compatible partition, each private on the whole domain.

    .. math:: \varepsilon = \max_i \varepsilon_i

    Parameters
    ----------
    losses : sequence of Loss
        One per block, all of one notion, at the granularity of the certificate.
    certificate : CertificateLike
        That one change touches at most one block.
    dependency : Dependency or sequence of Dependency
        Why each release reads its block only: one statement for all, or one each.

    Raises
    ------
    IncompatiblePartitionError
        If one change can touch several blocks, or nobody showed that it cannot.
    UnprovedDependencyError
        Without `dependency`, or with one about another view.

    Notes
    -----
    Thesis, Theorems 4.11 and 4.22; paper, Theorems IV.12, V.6, A.13, A.15 and A.17.
    A step need not move a block by at most one step, as it must for mechanisms proved
    on their block (:func:`undertow.composition.parallel_max`).
    """
    require_dependencies(dependency, [None] * len(losses))
    return parallel_max(losses, certificate=certificate, setting="common")


class CertificateLike(Protocol):
    """What is known of a partition and a granularity."""

    @property
    def touched(self) -> float | None:
        """The most blocks one change can touch; None where it is not known."""

    @property
    def nonexpansive(self) -> bool | None:
        """Whether a step moves each block by at most one step inside its domain."""

    @property
    def source(self) -> str | None:
        """Where it is proved."""


def _require_compatible(certificate: CertificateLike | None, setting: Setting) -> None:
    if certificate is None:
        raise IncompatiblePartitionError(
            "certificate must show that one change touches one block, got None; "
            "check the partition with undertow.spaces.partition, or add the losses.",
            source="paper, Theorem IV.6",
        )
    if certificate.touched is None or certificate.touched > 1:
        raise IncompatiblePartitionError(
            "certificate must show that one change touches at most one block, got "
            f"{certificate.touched} blocks; use top_m_loss or bounded_parallel.",
            witness=certificate,
            source=certificate.source,
        )
    if setting == "view" and certificate.nonexpansive is not True:
        raise IncompatiblePartitionError(
            "certificate must show that a step moves a block by at most one step, got "
            f"nonexpansive={certificate.nonexpansive}; prove the releases on the whole "
            "domain and use setting='common'.",
            witness=certificate,
            source=certificate.source,
        )


# Releases on disjoint sets of record values, when a record moves between them.


def bounded_parallel(
    losses: Sequence[Loss],
    allowed_moves: Iterable[tuple[int, int]] | None = None,
    *,
    unit: Literal["bounded", "unbounded"] = "bounded",
    setting: Setting = "common",
) -> Loss:
    r"""Bound, at bounded granularity, releases on disjoint sets of record values.

    .. math:: \varepsilon = \max_{i \ne j} (\varepsilon_i + \varepsilon_j)

    Parameters
    ----------
    losses : sequence of Loss
        One per block, all of one notion.
    allowed_moves : iterable of pairs of int, optional
        The blocks between which a record may move, by a public constraint; membership
        across any other move is then not protected. None allows every move.
    unit : {"bounded", "unbounded"}
        What the losses are stated in.
    setting : {"view", "common"}
        As in :func:`parallel_max`.

    Returns
    -------
    Loss
        The sum of the two largest; the own loss of a single block; for unbounded units
        the largest loss at distance two. Of an `Approx`, the maximum in each
        coordinate; :func:`bounded_profile` keeps the pairs apart.

    Raises
    ------
    InfiniteLossError
        For bounded units in the view setting.

    Notes
    -----
    Thesis, Corollaries 4.12 and 4.23; paper, Corollaries IV.13 and A.18; the other
    notions follow from paper, Theorems VI.7 and VI.14. Tight for Laplace counts.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> bounded_parallel([Pure("0.5"), Pure(1), Pure("0.3"), Pure("0.8")])
    Pure(epsilon=1.8)
    """
    if allowed_moves is None:
        _require_moves(unit, setting)
        if unit == "bounded":
            return top_m_loss(losses, 2)
        # A move between blocks never costs more than twice the heavier of the two.
        return largest([at_distance(loss, 2) for loss in losses])
    costs = _move_costs(losses, allowed_moves, unit=unit, setting=setting)
    return largest(list(costs.values()))


def bounded_profile(
    losses: Sequence[Approx],
    allowed_moves: Iterable[tuple[int, int]] | None = None,
    *,
    unit: Literal["bounded", "unbounded"] = "bounded",
    setting: Setting = "common",
) -> ApproxProfile:
    """Bound approximate releases on disjoint record values, pair by pair.

    The arguments, the refusals and the source are those of :func:`bounded_parallel`.
    """
    one_notion(losses)
    kept = _two_layers(losses) if allowed_moves is None else losses
    costs = _move_costs(kept, allowed_moves, unit=unit, setting=setting)
    return ApproxProfile.of(costs.values())


def _two_layers(losses: Sequence[Approx]) -> list[Approx]:
    """Drop what two others dominate: it is in no sum of two that matters."""
    kept: list[Approx] = []
    heaviest: list[Exact] = []
    for loss in sorted(losses, key=lambda x: x.exact_parameters(), reverse=True):
        delta = loss.exact_parameters()[-1]
        if len(heaviest) < 2 or delta > heaviest[-1]:
            kept.append(loss)
            heaviest = sorted([*heaviest, delta], reverse=True)[:2]
    return kept


def heaviest_move(
    losses: Sequence[Loss], allowed_moves: Iterable[tuple[int, int]] | None = None
) -> tuple[int, int]:
    """Return the blocks ``(i, j)`` between which moving one record costs most.

    The witness of :func:`bounded_parallel`; ``i == j`` is a change inside one block.
    """
    one_notion(losses)
    if not losses:
        raise ValueError("losses must hold at least one block, got none.")
    if allowed_moves is None:
        order = sorted(range(len(losses)), key=lambda i: losses[i].exact_parameters())
        return min(order[-2:]), max(order[-2:])
    costs = _move_costs(losses, allowed_moves, unit="bounded", setting="common")
    return max(costs, key=lambda move: costs[move].exact_parameters())


def move_cost_matrix(losses: Sequence[Loss]) -> tuple[tuple[Loss, ...], ...]:
    """Return what moving one record from block i to block j costs, for every i and j.

    Bounded claims in the common domain; the diagonal is a change inside the block.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> move_cost_matrix([Pure("0.5"), Pure("0.3")])[0]
    (Pure(epsilon=0.5), Pure(epsilon=0.8))
    """
    one_notion(losses)
    return tuple(
        tuple(a if i == j else a + b for j, b in enumerate(losses))
        for i, a in enumerate(losses)
    )


def _move_costs(
    losses: Sequence[Loss],
    allowed_moves: Iterable[tuple[int, int]] | None,
    *,
    unit: str,
    setting: str,
) -> dict[tuple[int, int], Loss]:
    _require_moves(unit, setting)
    one_notion(losses)
    steps = 1 if unit == "bounded" else 2  # a change inside a block, in its unit
    costs = {(i, i): at_distance(loss, steps) for i, loss in enumerate(losses)}
    for i, j in _moves(allowed_moves, len(losses)):
        costs[i, j] = losses[i] + losses[j]
    return costs


def _require_moves(unit: str, setting: str) -> None:
    check_choice(unit, "unit", choices=("bounded", "unbounded"))
    check_choice(setting, "setting", choices=("view", "common"))
    if unit == "bounded" and setting == "view":
        raise _bounded_views()


def _moves(
    allowed: Iterable[tuple[int, int]] | None, blocks: int
) -> list[tuple[int, int]]:
    if allowed is None:
        return [(i, j) for j in range(blocks) for i in range(j)]
    moves = {(min(move), max(move)) for move in allowed}
    for i, j in moves:
        if i < 0 or j >= blocks:
            raise ValueError(
                f"allowed_moves must name blocks 0..{blocks - 1}, got {(i, j)}."
            )
    return sorted((i, j) for i, j in moves if i != j)


def _bounded_views() -> InfiniteLossError:
    """Return the refusal of bounded losses proved on parts of the data."""
    return InfiniteLossError(
        "bounded losses on parts of the data must be proved on the whole domain, got "
        "setting='view', whose loss is inf; use setting='common' or unbounded units.",
        witness=(("S", "S", "S"), ("S", "S", "W")),
        source="thesis, Example 2.16; paper, Example II.9",
    )


# Releases on overlapping parts: the few heaviest that one change can touch.


def top_m_loss(losses: Sequence[Loss], m: int) -> Loss:
    r"""Bound releases of which one change can touch any `m`, each by one step.

    .. math:: \varepsilon = \sum_{j \le m} \varepsilon_{(j)}, \quad
              \rho = \sum_{j \le m} \rho_{(j)}, \quad
              \mu^2 = \sum_{j \le m} \mu_{(j)}^2

    Parameters
    ----------
    losses : sequence of Loss
        One per view, all of one notion.
    m : int
        The most views one change can touch: a constant of the domain or of an enforced
        truncation, never read off the data. Zero costs nothing; from ``len(losses)``
        on the bound is sequential composition.

    Returns
    -------
    Loss
        Of an `Approx`, the `m` largest of each coordinate.

    Notes
    -----
    The closed form behind paper, Example IV.5 (where "at least three" hospitals must
    read "at most three"). Not checkable here: `m`, and that a touched view moves by at
    most one step.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> top_m_loss([Pure("0.2"), Pure("0.5"), Pure("0.1")], 2)
    Pure(epsilon=0.7)
    """
    m = check_count(m, "m", minimum=0)
    notion = one_notion(losses)
    columns = zip(*(loss.exact_parameters() for loss in losses), strict=True)
    sums = [ext_sum(sorted(column, reverse=True)[:m]) for column in columns]
    total = loss_of(notion.notion, *sums) if sums else notion.zero()
    return total.of_continuous_noise(any(loss.continuous for loss in losses))


def overlap_loss(
    losses: Sequence[Loss],
    m: int,
    *,
    target: Metric | str,
    unit: Metric | str,
    setting: Setting,
) -> Loss:
    """Bound releases on overlapping cohorts, each record being in at most `m` of them.

    Parameters
    ----------
    losses : sequence of Loss
        One per cohort, all of one notion.
    m : int
        The most cohorts a record belongs to; part of the domain.
    target, unit : Granularity or str
        What is protected, and what the losses are stated in: ``"unbounded"``,
        ``"bounded"`` or ``"edit"``, or the granularity of that name.
    setting : {"view", "common"}
        Whether each mechanism is private on its cohort, or on the whole domain while
        reading only its cohort.

    Raises
    ------
    InfiniteLossError
        For bounded units in the view setting: a record that enters a cohort changes
        its size, which bounded privacy does not cover.
    CompositionError
        For another target or unit.

    Notes
    -----
    ========== ============ ====================== ===============
    target     unit         setting                bound
    ========== ============ ====================== ===============
    unbounded  any          bounded: common only   top m
    bounded    bounded      common                 top 2m
    bounded    edit         either                 top 2m
    bounded    unbounded    either                 top m, twice
    ========== ============ ====================== ===============

    An edit target costs what a bounded one costs. Twice the top m is the top m at
    distance two: a replaced record may leave and re-enter the same m cohorts. Bounded
    claims at an unbounded target presume that every cohort leaves some record out.
    Paper, Examples IV.5 and VI.8.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> ambulances = [Pure(1)] * 20
    >>> overlap_loss(
    ...     ambulances, 3, target="bounded", unit="bounded", setting="common"
    ... )
    Pure(epsilon=6)
    """
    check_choice(setting, "setting", choices=("view", "common"))
    m = check_count(m, "m", minimum=0)
    one_notion(losses)
    names = _name(target), _name(unit)
    if names not in _OVERLAP:
        raise CompositionError(
            "target and unit must be unbounded, bounded or edit, got "
            f"{names[0]} and {names[1]}; compose on the domain instead."
        )
    if names[1] == "bounded" and setting == "view":
        raise _bounded_views()
    copies, distance = _OVERLAP[names]
    return top_m_loss([at_distance(loss, distance) for loss in losses], copies * m)


def _name(metric: Metric | str) -> str:
    return metric if isinstance(metric, str) else metric.name


# (target, unit) -> how many views a change touches, as a multiple of m, and the
# distance each of them moves. Bounded units are finite in the common setting only.
_OVERLAP: dict[tuple[str, str], tuple[int, int]] = {
    ("unbounded", "unbounded"): (1, 1),
    ("unbounded", "bounded"): (1, 1),
    ("unbounded", "edit"): (1, 1),
    ("bounded", "unbounded"): (1, 2),
    ("bounded", "bounded"): (2, 1),
    ("bounded", "edit"): (2, 1),
    ("edit", "unbounded"): (1, 2),
    ("edit", "bounded"): (2, 1),
    ("edit", "edit"): (2, 1),
}

# What a composition says about its parts: necessary conditions, cheap to check.
#
# If the joint output is private then so is each output, because dropping the others is
# post-processing. Nothing follows for a step under inputs that never occur, nor for the
# mechanism inside a view.


def after_post_processing(loss: Loss, *, reads_data: bool) -> Loss:
    """Return the loss of a function of a release: the same loss.

    Parameters
    ----------
    loss : Loss
        What the release costs, in any notion and any metric.
    reads_data : bool
        Whether the function looks at the data again, be it only to remove noise.

    Raises
    ------
    AssumptionError
        If it does: then it is a further release with a loss of its own.

    Notes
    -----
    Thesis, Propositions 2.2 and 4.24; paper, Theorem VII.1. Deterministic functions,
    and randomised ones with coins of their own.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> after_post_processing(Pure(1), reads_data=False)
    Pure(epsilon=1)
    """
    if reads_data:
        raise AssumptionError(
            "post-processing must not read the data again, got reads_data=True; "
            "enter it as a release with its own loss.",
            source="paper, Theorem VII.1",
        )
    return loss


def reciprocal_lower_bound(exact_losses: Iterable[Exact]) -> Exact:
    """Return what an independent composition loses at least, between two databases.

    Parameters
    ----------
    exact_losses : iterable of numbers in [0, inf]
        The true loss of each part, not a bound on it.

    Returns
    -------
    int, Fraction or float
        The largest; zero without parts.

    Notes
    -----
    Thesis, Theorem 4.25; paper, Theorem VII.2. Every notion here survives
    post-processing, and forgetting all outputs but one is post-processing.

    Examples
    --------
    >>> reciprocal_lower_bound([0.5, 1.0, 0.2])
    1.0
    """
    return ext_max(exact_losses)


def check_reciprocal(
    releases: Sequence[ReleaseLike],
    target: Granularity,
    *,
    domain: Domain,
    loss_of: Callable[[ReleaseLike], Specialised] | None = None,
) -> list[UnprotectedPart]:
    """Return the releases that are infinitely costly at `target` on their own.

    Parameters
    ----------
    releases : sequence of objects with ``loss``, ``unit``, ``view`` and ``setting``
        The plan.
    target : Granularity
        What the whole is meant to protect.
    domain : Domain
        Enumerable, unless `loss_of` is given.
    loss_of : callable, optional
        How to find the loss of one release at `target`; by default the exact engine.

    Returns
    -------
    list of UnprotectedPart
        Empty if no release by itself rules out a finite loss.

    Notes
    -----
    The contrapositive of thesis, Theorem 4.25 and paper, Theorem VII.2. The claims are
    taken as tight: a release whose claims are infinite at `target` may still be
    private there for a reason nobody stated. It is the release with its view that
    fails; nothing follows for the mechanism inside the view.
    """

    def exactly(release: ReleaseLike) -> Specialised:
        engine = FiniteEngine([release], domain)
        return engine.specialise(target, on_infinite="report")

    found = []
    for number, release in enumerate(releases):
        result = (loss_of or exactly)(release)
        if result.loss.is_infinite:
            name = getattr(release, "name", number)
            found.append(
                UnprotectedPart(
                    name, result.loss, result.witness, "paper, Theorem VII.2"
                )
            )
    return found


def check_adaptive_step(
    tables: Mapping[Hashable, npt.ArrayLike],
    declared: Iterable[Hashable],
    *,
    bound: npt.ArrayLike,
) -> list[UnprotectedPart]:
    """Return the declared earlier outputs for which a step breaks its guarantee.

    Parameters
    ----------
    tables : mapping from earlier output to array_like of shape (n, outputs)
        The output law of the step, per database.
    declared : iterable of hashable
        The output space declared for the earlier steps: part of the hypothesis.
    bound : array_like of shape (n, n)
        The claimed metric.

    Returns
    -------
    list of UnprotectedPart
        One per declared output at which some pair loses more than claimed.

    Notes
    -----
    Thesis, Theorem 4.1 and paper, Theorem V.2 need the guarantee for every declared
    earlier output, also one that never occurs. Thesis, Theorem 4.26 and paper, Theorem
    VII.3 give back only the marginal outputs of the run, not the step for every input.
    """
    claimed = np.asarray(bound, dtype=float)
    if not (claimed >= 0).all():
        raise ValueError("bound must hold distances in [0, inf], got another entry.")
    found = []
    for output in declared:
        if output not in tables:
            raise MismatchError(
                f"tables must hold every declared output, got none for {output!r}."
            )
        losses = exact_loss_matrix(tables[output])
        if losses.shape != claimed.shape:
            raise MismatchError(
                f"bound must have shape {losses.shape}, one row per database, got "
                f"{claimed.shape}."
            )
        excess = losses > claimed + _LOG_SLACK
        if excess.any():
            row, column = (int(i) for i in np.argwhere(excess)[0])
            found.append(
                UnprotectedPart(
                    output,
                    float(losses[row, column]),
                    (row, column),
                    "paper, Theorem V.2",
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class UnprotectedPart:
    """A part that has no protection where the whole would need it.

    Parameters
    ----------
    part : hashable
        The name or number of the release, or the earlier output of an adaptive step.
    loss : Loss or float
        What the part loses there.
    witness : object
        The pair of databases, or of their indices, that shows it.
    source : str
        The statement that makes it a violation.
    """

    part: Hashable
    loss: Loss | float
    witness: Any
    source: str


# A prior split along what an adversary already knows.


def disintegrate(prior: Sequence[float], labels: Sequence[Hashable]) -> Disintegration:
    r"""Split a prior along a function of the data.

    .. math:: \nu(z) = \sum_{a(x) = z} \pi(x), \qquad
              P_z(x) = \pi(x)\, 1[a(x) = z] / \nu(z)

    Parameters
    ----------
    prior : sequence of float
        The probability of each point.
    labels : sequence of hashable
        What the adversary knows at each point.

    Notes
    -----
    Thesis, Theorem 2.28 and Remark 2.29, discrete case.

    Examples
    --------
    >>> split = disintegrate([0.5, 0.3, 0.2], ["a", "a", "b"])
    >>> split.weights["a"], split.conditionals["a"]
    (0.8, (0.625, 0.37499999999999994, 0.0))
    """
    total = math.fsum(prior)
    if not all(p >= 0 for p in prior) or abs(total - 1) > _SUM_SLACK:
        raise ValueError(
            f"prior must hold probabilities that sum to 1, got sum {total}."
        )
    if len(labels) != len(prior):
        raise MismatchError(
            f"labels must be one per point, got {len(labels)} for {len(prior)}."
        )
    points = list(zip(prior, labels, strict=True))
    weights = {
        label: math.fsum(p for p, other in points if other == label)
        for label in dict.fromkeys(labels)
    }
    positive = {label: weight for label, weight in weights.items() if weight > 0}
    conditionals = {
        label: tuple(p / weight if other == label else 0.0 for p, other in points)
        for label, weight in positive.items()
    }
    return Disintegration(MappingProxyType(positive), MappingProxyType(conditionals))


@dataclass(frozen=True, slots=True)
class Disintegration:
    """A prior split along what the adversary already knows.

    Parameters
    ----------
    weights : mapping from label to float
        The probability of each label; labels of probability zero are left out.
    conditionals : mapping from label to tuple of float
        The prior given the label, over the same points as the prior.
    """

    weights: Mapping[Hashable, float]
    conditionals: Mapping[Hashable, tuple[float, ...]]

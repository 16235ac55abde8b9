"""The common-domain setting: the whole mechanism is proved private on all the data.

If a mechanism reads only its view, databases with the same view are the same to it,
and its metric may be divided by the fibres of the view. That is what keeps the loss
finite where block mechanisms of bounded privacy have none. It needs one proof that no
metric can give: that the mechanism reads nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from undertow.composition.finite_claim import at_distance, exact_distance
from undertow.composition.parallel import CertificateLike, parallel_max
from undertow.composition.sequential import ApproxTerm, ComposedMetric, exact_delta
from undertow.errors import MismatchError
from undertow.numeric.array import Matrix
from undertow.privacy.loss import Approx, Loss
from undertow.spaces.base import Database, Domain, Metric, View
from undertow.spaces.quotient import Dependency, Quotient, require_dependencies

Dependencies = Dependency | Sequence[Dependency]


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
    on their block (:func:`undertow.composition.parallel.parallel_max`).
    """
    require_dependencies(dependency, [None] * len(losses))
    return parallel_max(losses, certificate=certificate, setting="common")


class MinimumPrivacy(NamedTuple):
    """Distances and deltas of a mechanism that reads only its view."""

    distance: Matrix
    delta: Matrix


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


@dataclass(frozen=True, slots=True)
class CommonApprox:
    """Approximate releases composed in the common domain, pair by pair.

    Parameters
    ----------
    terms : tuple of ApproxTerm
        One per release; metric and delta are on the domain, not on the image.
    """

    terms: tuple[ApproxTerm, ...]

    def loss(self, pair: tuple[Database, Database], *, domain: Domain) -> Approx:
        """Return the composed loss of an ordered pair on an enumerable domain."""
        total = Approx.zero()
        for term in self.terms:
            total = total + _common_loss(term, pair, domain)
        return total


def compose_common_approx(
    terms: Sequence[ApproxTerm], *, dependency: Dependencies | None = None
) -> CommonApprox:
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
    return CommonApprox(tuple(terms))


def _common_loss(
    term: ApproxTerm, pair: tuple[Database, Database], domain: Domain
) -> Approx:
    if term.claim is not None:
        loss, unit = term.claim
        steps = exact_distance(Quotient(unit, term.view), pair, domain=domain)
        chained = at_distance(loss, steps)
        assert isinstance(chained, Approx)
        return chained
    first, second = (term.view.apply(database, domain) for database in pair)
    if first == second:
        return Approx.zero()
    fibres: dict[Hashable, list[Database]] = {first: [], second: []}
    for database in domain.databases():
        fibres.get(term.view.apply(database, domain), []).append(database)
    promises = (
        (
            exact_distance(term.metric, (one, two), domain=domain),
            exact_delta(term, (one, two), domain=domain),
        )
        for one in fibres[first]
        for two in fibres[second]
    )
    return Approx.capped(*min(promises))

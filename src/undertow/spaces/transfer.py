r"""Restating a guarantee at another granularity.

.. math:: \mathrm{dist}_{\mathbb D}(\mathcal G_1, \mathcal G_2)
          = \max_{D \sim_{\mathcal G_2} D'} d^{\mathcal G_1}(D, D')

A guarantee held at :math:`\mathcal G_1` (*have*) becomes one at :math:`\mathcal G_2`
(*want*) by that factor: :math:`\varepsilon \to k\varepsilon`,
:math:`\rho \to k^2\rho`, :math:`\mu \to k\mu`. If it is infinite there is no transfer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from undertow.errors import AssumptionError, VacuousGranularityError
from undertow.privacy.group import group
from undertow.privacy.loss import Loss
from undertow.spaces.base import Database, Domain, Granularity
from undertow.spaces.canonical import canonical_matrix, check_domain, neighbour_matrix
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.domain_finite import in_words
from undertow.spaces.transfer_closed import Closed, graph_transfer
from undertow.spaces.transfer_stream import stream_transfer
from undertow.spaces.transfer_table import rows_transfer, table_transfer

__all__ = ["Transfer", "implies", "transfer", "transfer_factor", "transfer_matrix"]

_ENUMERATED = 3_000


@dataclass(frozen=True, slots=True)
class Transfer:
    """How a guarantee at one granularity reads at another.

    Attributes
    ----------
    have, want : str
        The names of the two granularities.
    factor : float
        What the loss is multiplied by; infinite if nothing carries over.
    change : str
        The neighbours of `want` that are farthest apart in `have`, in words.
    pair : tuple of two databases, or None
        Such neighbours, where they can be written out.
    exact : bool
        Whether the factor is attained, rather than an upper bound.
    enumerated : bool
        Whether all neighbour pairs were inspected, rather than a formula used.
    """

    have: str
    want: str
    factor: float
    change: str
    pair: tuple[Database, Database] | None
    exact: bool
    enumerated: bool


def transfer_factor(have: Granularity, want: Granularity, domain: Domain) -> Transfer:
    """Return the factor by which a guarantee at `have` becomes one at `want`.

    Parameters
    ----------
    have : Granularity
        Where the guarantee is proved.
    want : Granularity
        Where it is asked for.
    domain : Domain
        The databases both range over.

    Raises
    ------
    VacuousGranularityError
        If `want` has no neighbours in the domain.
    AssumptionError
        If no formula is proved and the domain is too large to inspect.

    Notes
    -----
    Thesis, Proposition A.7; paper, Proposition A.3. The prose after both states the
    consequence the other way round: a finite factor means that what *want* protects
    is protected by a mechanism proved at *have*. Formulas cover the catalogue on
    tables, rows, streams and graphs; where a formula is only an upper bound, domains
    of at most 3000 databases are inspected instead.

    Examples
    --------
    >>> from undertow.spaces.granularity import Bounded, Unbounded
    >>> transfer_factor(Unbounded(), Bounded(), Table()).factor
    2
    >>> transfer_factor(Bounded(), Unbounded(), Table()).factor
    inf
    """
    have.require_domain(domain)
    if not check_domain(domain, want).has_edges:
        raise VacuousGranularityError(
            f"want must have neighbours in the domain, got {want.name} on a domain of "
            "one database."
        )
    closed = _closed(have, want, domain)
    if closed is not None and (closed.exact or domain.count() > _ENUMERATED):
        factor, change, pair, exact = closed
        return Transfer(have.name, want.name, factor, change, pair, exact, False)
    if domain.count() > _ENUMERATED:
        raise AssumptionError(
            f"domain must have at most {_ENUMERATED} databases where no formula is "
            f"proved from {have.name} to {want.name}, got {in_words(domain.count())}; "
            "use a smaller instance of the same kind."
        )
    return _inspected(have, want, domain)


def _closed(have: Granularity, want: Granularity, domain: Domain) -> Closed | None:
    if isinstance(domain, Table):
        return table_transfer(have, want, domain)
    if isinstance(domain, Rows):
        return rows_transfer(have, want, domain)
    if isinstance(domain, Stream):
        return stream_transfer(have, want, domain)
    if isinstance(domain, Graph):
        return graph_transfer(have, want, domain)
    return None


def _inspected(have: Granularity, want: Granularity, domain: Domain) -> Transfer:
    listed = list(domain.databases())
    first, second = neighbour_matrix(domain, want).nonzero()
    distances = canonical_matrix(domain, have)[first, second]
    worst = int(np.argmax(distances))
    factor = float(distances[worst])
    pair = (listed[first[worst]], listed[second[worst]])
    shown = factor if factor == math.inf else int(factor)
    change = "the neighbours shown"
    return Transfer(have.name, want.name, shown, change, pair, True, True)


def implies(have: Granularity, want: Granularity, domain: Domain) -> float:
    """Return the factor at which a guarantee at `have` implies one at `want`.

    Infinite if it implies none. The arguments read in the order of the sentence, so
    that no direction has to be remembered.

    Examples
    --------
    >>> from undertow.spaces.granularity import User, WEvent
    >>> implies(WEvent(3), User(), Stream(1000, 24))
    8
    """
    return transfer_factor(have, want, domain).factor


def transfer(loss: Loss, factor: float) -> Loss:
    """Return `loss` restated over a transfer factor.

    Parameters
    ----------
    loss : Loss
        The guarantee at the granularity it was proved for.
    factor : float
        From :func:`transfer_factor`; a whole number.

    Raises
    ------
    InfiniteLossError
        If the factor is infinite.

    Examples
    --------
    >>> from undertow.privacy.loss import ZCDP
    >>> transfer(ZCDP("0.5"), 2)
    ZCDP(rho=2)
    """
    return group(loss, factor)


def transfer_matrix(
    granularities: Sequence[Granularity], domain: Domain
) -> tuple[tuple[Transfer, ...], ...]:
    """Return all transfers: one row per `have`, one column per `want`.

    Examples
    --------
    >>> from undertow.spaces.granularity import Event, User
    >>> rows = transfer_matrix((Event(), User()), Stream(1000, 24))
    >>> [[entry.factor for entry in row] for row in rows]
    [[1, 24], [1, 1]]
    """
    return tuple(
        tuple(transfer_factor(have, want, domain) for want in granularities)
        for have in granularities
    )

"""Which databases a granularity connects, and what it publishes in the clear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from undertow.errors import VacuousGranularityError
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.domain_finite import in_words
from undertow.spaces.neighbour_graph import neighbour_matrix

__all__ = ["Components", "DomainCheck", "check_domain", "has_neighbours"]


@dataclass(frozen=True, slots=True)
class Components:
    """What is proved about the neighbour graph of a domain without listing it.

    Attributes
    ----------
    has_edges : bool
        Whether any two databases are neighbours.
    number : float
        The number of connected components, possibly infinite.
    labels : tuple of str
        What tells the components apart; empty if there is one.
    """

    has_edges: bool
    number: float
    labels: tuple[str, ...] = ()


@runtime_checkable
class _Certified(Protocol):
    def components(self, domain: Domain) -> Components | None: ...


@dataclass(frozen=True, slots=True)
class DomainCheck:
    """What a granularity connects on a domain, and what it leaves unprotected.

    Attributes
    ----------
    connected : bool
        Whether a chain of neighbours joins any two databases.
    components : tuple of str
        Labels of the connected components, where there are several.
    component_count : float
        How many there are, possibly infinite.
    has_edges : bool
        Whether any two databases are neighbours.
    vacuous : bool
        Whether there are two databases but no neighbours: every mechanism, even
        publishing the data, would satisfy any guarantee.
    invariants : tuple of str
        What neighbours share, published in the clear.
    enumerated : bool
        Whether the databases were listed, rather than a proof used.
    warnings : tuple of str
        One sentence per thing that is not protected across components.
    """

    connected: bool
    components: tuple[str, ...]
    component_count: float
    has_edges: bool
    vacuous: bool
    invariants: tuple[str, ...]
    enumerated: bool
    warnings: tuple[str, ...]


def check_domain(
    domain: Domain, granularity: Granularity, *, allow_vacuous: bool = False
) -> DomainCheck:
    """Say what `granularity` connects on `domain` and what it publishes.

    Parameters
    ----------
    domain : Domain
        Structural, or with at most 200 000 databases.
    granularity : Granularity
        The neighbour relation.
    allow_vacuous : bool
        Report a granularity without neighbours instead of refusing it.

    Raises
    ------
    VacuousGranularityError
        If the domain has two databases or more but no neighbours.

    Notes
    -----
    Thesis, Example A.5 and Remark A.6; paper, Example III.4 and Remark A.2.

    Examples
    --------
    >>> from undertow.spaces.domain import Table
    >>> from undertow.spaces.granularity import Bounded
    >>> table = Table(("a", "b", "c"), values_per_cell=1, max_size=4)
    >>> check_domain(table, Bounded()).components
    ('size 0', 'size 1', 'size 2', 'size 3', 'size 4')
    """
    granularity.require_domain(domain)
    proved = (
        granularity.components(domain) if isinstance(granularity, _Certified) else None
    )
    found = _enumerated_components(domain, granularity) if proved is None else proved
    vacuous = not found.has_edges and domain.count() > 1
    if vacuous and not allow_vacuous:
        raise VacuousGranularityError(
            f"granularity must have neighbours in the domain, got {granularity.name} "
            f"without any on this {domain.kind}, so that it promises nothing; choose "
            "one whose unit can change inside the domain.",
            source="Guerra-Balboa et al., Example III.4",
        )
    return DomainCheck(
        connected=found.number == 1,
        components=found.labels,
        component_count=found.number,
        has_edges=found.has_edges,
        vacuous=vacuous,
        invariants=granularity.invariants(domain),
        enumerated=proved is None,
        warnings=_warnings(granularity, found),
    )


def has_neighbours(domain: Domain, granularity: Granularity, *, name: str) -> bool:
    """Return False on a domain of one database, and True where a change is possible.

    Parameters
    ----------
    domain, granularity : Domain, Granularity
        Nothing is listed: where no proof tells, a change is taken for possible.
    name : str
        What the caller calls the granularity, for the message.

    Raises
    ------
    VacuousGranularityError
        If the domain has several databases, and it is proved that none are neighbours.
    """
    proved = (
        granularity.components(domain) if isinstance(granularity, _Certified) else None
    )
    if proved is None or proved.has_edges:
        return True
    if domain.count() == 1:
        return False
    raise VacuousGranularityError(
        f"{name} must have neighbours in the domain, got {granularity.name}, which has "
        "none here and would be satisfied by publishing the data; choose a granularity "
        "that allows a change.",
        source="paper, Example III.4",
    )


def _enumerated_components(domain: Domain, granularity: Granularity) -> Components:
    from scipy.sparse.csgraph import connected_components

    graph = neighbour_matrix(domain, granularity)
    number, member_of = connected_components(graph, directed=False)
    sizes = np.bincount(member_of)
    labels = [f"component {k} ({size} databases)" for k, size in enumerate(sizes)]
    return Components(graph.nnz > 0, int(number), tuple(labels) if number > 1 else ())


def _warnings(granularity: Granularity, found: Components) -> tuple[str, ...]:
    if found.number == 1:
        return ()
    shown = ", ".join(found.labels[:8]) + (", …" if len(found.labels) > 8 else "")
    return (
        f"{granularity.name} joins no databases of different components, so which of "
        f"the {in_words(found.number)} components holds the data is published in the "
        f"clear: {shown}.",
    )

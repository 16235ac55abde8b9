"""Releases of everyday queries, priced at the value level where that is exact."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from undertow.composition.release import Release
from undertow.errors import MismatchError
from undertow.mechanisms.base import Mechanism
from undertow.spaces.base import Domain, View
from undertow.spaces.domain import Graph, Stream, Table
from undertow.spaces.metric import AbsoluteDifference
from undertow.spaces.view import At, Degree, IncidentEdges, Select

__all__ = ["blocks_of", "count_release", "degree_release"]


def count_release(name: str, mechanism: Mechanism, *, cells: Hashable) -> Release:
    """Return a noisy count of the records in some cells of a table.

    Parameters
    ----------
    name : str
        How reports call it.
    mechanism : Mechanism
        One-dimensional additive noise on the count.
    cells : hashable, or tuple of hashables
        A cell, or several counted together.

    Notes
    -----
    Noise on a number is private in the distance between numbers, so the claim is made
    there: a replacement inside the cells costs nothing, a move across their border one
    step. That is the exact loss of the pair, at every granularity. It is the loss of
    the mechanism as described: for a :class:`~undertow.mechanisms.GaussianMechanism`,
    of continuous noise, in GDP. What is drawn is priced by giving its ``released``
    mechanism, in zCDP.

    Examples
    --------
    >>> import undertow as ut
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> count = count_release("south", LaplaceMechanism(2), cells="S")
    >>> ut.Plan(ut.Table(["N", "S"]), [count]).loss(ut.Bounded()).loss
    Pure(epsilon=0.5)
    """
    wanted = cells if isinstance(cells, tuple) else (cells,)
    unit = AbsoluteDifference()
    view = Select(*wanted, statistic="count")
    return Release(name, mechanism.loss(unit), unit=unit, view=view, setting="view")


def degree_release(name: str, mechanism: Mechanism, *, vertex: int) -> Release:
    """Return a noisy degree of one vertex (thesis, Example 4.3).

    Parameters
    ----------
    name : str
        How reports call it.
    mechanism : Mechanism
        One-dimensional additive noise on the degree.
    vertex : int
        Whose degree.
    """
    unit = AbsoluteDifference()
    view = Degree(vertex)
    return Release(name, mechanism.loss(unit), unit=unit, view=view, setting="view")


def blocks_of(domain: Domain) -> Iterator[tuple[str, View]]:
    """Yield the natural parts of a domain: its cells, times or vertices, by name."""
    if isinstance(domain, Table) and domain.cells:
        for cell in domain.cells:
            yield f"{domain.cell} {cell}", Select(cell)
    elif isinstance(domain, Stream):
        for time in range(domain.times):
            yield f"time {time}", At(time)
    elif isinstance(domain, Graph):
        for vertex in range(domain.vertices):
            yield f"vertex {vertex}", IncidentEdges(vertex)
    else:
        raise MismatchError(
            "domain must be a table with cells, a stream or a graph to have natural "
            f"parts, got a {domain.kind}; add releases one by one."
        )

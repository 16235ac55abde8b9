"""Releases of everyday queries, priced at the value level where that is exact."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from undertow.composition.release import Release
from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms.base import Mechanism
from undertow.mechanisms.clamped import ClampedMechanism
from undertow.privacy.exact import format_up
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Metric, View
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
    of continuous noise, in GDP, which no budget takes. What is drawn is priced by
    giving its ``released`` mechanism, in zCDP.

    Raises
    ------
    AssumptionError
        If the mechanism draws on a lattice that does not hold the whole numbers: counts
        that differ by one would be rounded further apart.

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
    loss = _whole_number_loss(mechanism, unit)
    return Release(name, loss, unit=unit, view=view, setting="view")


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
    loss = _whole_number_loss(mechanism, unit)
    return Release(name, loss, unit=unit, view=view, setting="view")


def _whole_number_loss(mechanism: Mechanism, unit: Metric) -> Loss:
    """Return the loss between whole numbers, which the lattice drawn on must hold."""
    loss = mechanism.loss(unit)
    base = mechanism.base if isinstance(mechanism, ClampedMechanism) else mechanism
    drawn = getattr(base, "released", base)
    step = getattr(drawn, "step", None)
    if step is not None and step > 1:
        raise AssumptionError(
            "mechanism must draw on a lattice that holds the whole numbers, got a step "
            f"of {format_up(step)}: numbers one apart may be rounded a step apart; "
            "state a Release with the loss of the mechanism's released_loss(1), or use "
            "less noise."
        )
    return loss


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

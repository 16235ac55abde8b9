"""Influence: how far each column moves under each change class, domain by domain."""

from __future__ import annotations

from collections.abc import Sequence

from undertow.spaces.base import Domain, Granularity
from undertow.spaces.canonical import has_neighbours
from undertow.spaces.change import Change, ChangeFamily, Column, Row
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.influence._graph import graph_family
from undertow.spaces.influence._rows import rows_family
from undertow.spaces.influence._run import finite_family, listed
from undertow.spaces.influence._stream import stream_family
from undertow.spaces.influence._table import table_family
from undertow.spaces.unit import FreeLunch, Group, Trajectory

__all__ = ["change_family", "structural_family"]

# Pairs of databases, times columns, up to which several steps at once are compared pair
# by pair where the classes give a bound only.
_COMPARED_PAIRS = 200_000


def change_family(
    domain: Domain, target: Granularity, *, columns: Sequence[Column]
) -> ChangeFamily:
    """Return the change classes of `target` on `domain` as seen by `columns`.

    Parameters
    ----------
    domain : Domain
        The databases; not enumerated unless it is finite by definition.
    target : Granularity
        What one protected unit is.
    columns : sequence of Column
        Different views, units and settings; equal columns should be given once.

    Returns
    -------
    ChangeFamily
        Covers every neighbour pair; see its `tight` and `notes`.

    Raises
    ------
    VacuousGranularityError
        If `target` has no neighbours in `domain`, or a common-domain unit has none.
    MismatchError
        If a view, unit or target does not fit the domain.

    Notes
    -----
    Where a view cannot answer for a change its influence is infinite in the view
    setting, one step in a discrete unit, and the distance of the pair in the unit in
    the common setting: unknown never becomes zero.
    """
    columns = tuple(columns)
    target.require_domain(domain)
    target = _plain_target(target, domain)
    if not has_neighbours(domain, target, name="target"):
        return listed([Row(Change("none", "no change: there is one database"), {})])
    family = structural_family(domain, target, columns=columns)
    several = isinstance(target, FreeLunch | Group)
    loose = family is not None and several and not family.tight
    if family is None or (loose and _few_pairs(domain, columns)):
        family = finite_family(domain, target, columns=columns)
    return family


def structural_family(
    domain: Domain, target: Granularity, *, columns: tuple[Column, ...]
) -> ChangeFamily | None:
    """Return the change classes by formula; None where none are proved.

    The target has neighbours in the domain; the domain is never listed.
    """
    target = _plain_target(target, domain)
    if isinstance(domain, Table):
        return table_family(domain, target, columns=columns)
    if isinstance(domain, Rows):
        return rows_family(domain, target, columns=columns)
    if isinstance(domain, Stream):
        return stream_family(domain, target, columns=columns)
    if isinstance(domain, Graph):
        return graph_family(domain, target, columns=columns)
    return None


def _plain_target(target: Granularity, domain: Domain) -> Granularity:
    """Return the target without synonyms and without groups of groups."""
    if isinstance(target, Trajectory):
        return target.on(domain)
    if not isinstance(target, Group):
        return target
    base = _plain_target(target.base, domain)
    if isinstance(base, FreeLunch):
        return base  # one step already reaches everything
    if isinstance(base, Group):
        return Group(base.base, base.size * target.size)
    return base if target.size == 1 else Group(base, target.size)


def _few_pairs(domain: Domain, columns: tuple[Column, ...]) -> bool:
    return domain.count() ** 2 * len(columns) <= _COMPARED_PAIRS

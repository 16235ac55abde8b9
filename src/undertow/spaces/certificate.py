"""Which partition works for which granularity: the table, as objects to attack.

A certificate says how many blocks one protected change touches at most, whether it
moves each by one step at most, and hence what a release per block costs. Every entry
of the table is verified by enumeration in the tests; any certificate, built in or
declared, can be attacked at random with :func:`falsify_certificate`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from undertow.errors import IncompatiblePartitionError
from undertow.spaces.attack import concrete, random_neighbours
from undertow.spaces.base import Database, Domain, Granularity, View
from undertow.spaces.certificate_table import COMPATIBILITY, POSITIONS, TableRow
from undertow.spaces.connected import has_neighbours
from undertow.spaces.domain import Table
from undertow.spaces.granularity import Group, LTrajectory, Relation, Trajectory
from undertow.spaces.granularity.generic import Catalogued
from undertow.spaces.metric import image_or_values
from undertow.spaces.partition import Partition

__all__ = [
    "COMPATIBILITY",
    "Certificate",
    "Counterexample",
    "TableRow",
    "certificate_for",
    "falsify_certificate",
]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a protected change can do to the blocks of a partition.

    Parameters
    ----------
    granularity, partition, domain
        What it is about.
    blocks : int
        The number of blocks, k.
    touched : int or inf
        The most blocks one change touches; infinite where nothing bounds it.
    nonexpansive : bool
        Whether a change moves each block by at most one step among its values.
    verdict : str
        What a release per block, proved private on its block, costs: ``max``,
        ``window sum`` (the largest sum over that many successive blocks),
        ``top-n sum``, ``sum`` or ``refuse``.
    common_verdict : str
        The same where each release was proved private on the whole domain and reads
        only its block: non-expansion is then not needed.
    source : str
        Where it is stated.
    note : str
        Why, in a few words.
    """

    granularity: Granularity
    partition: Partition
    domain: Domain
    blocks: int
    touched: float
    nonexpansive: bool
    verdict: str
    common_verdict: str
    source: str
    note: str = ""


class Counterexample(NamedTuple):
    """Neighbours that contradict a certificate, and how."""

    reason: str
    pair: tuple[Database, Database]


def certificate_for(
    granularity: Granularity, partition: Partition, *, domain: Domain
) -> Certificate:
    """Return the built-in certificate of a granularity, a rule and a domain.

    Parameters
    ----------
    granularity : Granularity
        What is protected.
    partition : Partition
        How the data are cut.
    domain : Domain
        On which domain; it need not be enumerable.

    Returns
    -------
    Certificate
        Possibly with the verdict ``refuse``.

    Raises
    ------
    IncompatiblePartitionError
        If the table has no entry: check an enumerated instance instead.
    VacuousGranularityError
        If no two of several databases are neighbours, so that no loss is promised.

    Notes
    -----
    Thesis, Theorems 4.6 and 4.11; paper, Theorems IV.6, IV.12, V.4 and V.6.

    Examples
    --------
    >>> from undertow.spaces.granularity import Bounded, Unbounded
    >>> table, cut = Table(("N", "S", "W")), Partition.by_value()
    >>> certificate_for(Unbounded(), cut, domain=table).verdict
    'max'
    >>> refused = certificate_for(Bounded(), cut, domain=table)
    >>> refused.verdict, refused.common_verdict
    ('refuse', 'top-2 sum')
    """
    granularity.require_domain(domain)
    has_neighbours(domain, granularity, name="granularity")
    if isinstance(granularity, Trajectory):
        return _trajectory(granularity, partition, domain)
    if isinstance(granularity, Group):
        return _grouped(granularity, partition, domain)
    if partition.rule == "data":
        return _refused(granularity, partition, domain)
    row = _row(granularity, partition, domain)
    blocks = len(partition.views(domain))
    touched = min(blocks, _touched(row, granularity, domain, blocks))
    priced = _verdict(
        row, granularity, partition, domain=domain, touched=touched, blocks=blocks
    )
    return Certificate(
        granularity,
        partition,
        domain,
        blocks=blocks,
        touched=touched,
        nonexpansive=row.nonexpansive,
        verdict=priced if row.nonexpansive else "refuse",
        common_verdict=priced,
        source=row.source,
        note=row.note,
    )


def falsify_certificate(
    certificate: Certificate, *, trials: int = 1000, rng: np.random.Generator
) -> Counterexample | None:
    """Attack a certificate with random neighbours.

    Parameters
    ----------
    certificate : Certificate
        Built in or declared.
    trials : int
        How many random pairs to try.
    rng : numpy.random.Generator
        The source of randomness.

    Returns
    -------
    Counterexample or None
        None proves nothing.

    Notes
    -----
    Values that the domain leaves open are filled with a few examples; neighbours are
    drawn among the first ones generated.
    """
    domain = concrete(certificate.domain)
    views = certificate.partition.views(domain)
    for _ in range(trials):
        pair = random_neighbours(domain, certificate.granularity, rng=rng)
        if pair is None:
            continue
        reason = _contradiction(certificate, pair, domain=domain, views=views)
        if reason:
            return Counterexample(reason, pair)
    return None


def _contradiction(
    certificate: Certificate,
    pair: tuple[Database, Database],
    *,
    domain: Domain,
    views: tuple[View, ...],
) -> str:
    moved = []
    for at, view in enumerate(views):
        ours, theirs = (view.apply(database, domain) for database in pair)
        if ours != theirs:
            moved.append((at, ours, theirs, image_or_values(view, domain)))
    if len(moved) > certificate.touched:
        return f"{len(moved)} blocks differ"
    for at, ours, theirs, image in moved if certificate.nonexpansive else ():
        if not certificate.granularity.are_neighbours(ours, theirs, image):
            return f"block {at} moves by more than one step"
    return ""


def _family(granularity: Granularity) -> str:
    """Return the name without its numbers: ``w-event:3`` -> ``w-event``."""
    if not isinstance(granularity, Catalogued) or isinstance(granularity, Relation):
        return "other"  # a relation of one's own may bear any name
    parts = granularity.name.split(":")
    kept = [part for part in parts if not part.isdigit() and "=" not in part]
    return ":".join(part for part in kept if part not in ("periodic", "recorded"))


def _row(granularity: Granularity, partition: Partition, domain: Domain) -> TableRow:
    family, rule = _family(granularity), partition.rule
    if _is_whole(partition, domain):
        return TableRow(family, rule, "1", True, "one block that holds everything")
    rule = "id" if rule == "random" else rule
    for row in COMPATIBILITY:
        if row.granularity in (family, "any") and row.rule in (rule, "any"):
            if rule == "row position" and getattr(domain, "free_ids", False):
                return row._replace(touched="k", nonexpansive=False, note=POSITIONS)
            return row
    raise IncompatiblePartitionError(
        f"the table must list {granularity.name} cut by {partition.rule}, got no such "
        "row; check an enumerated instance with is_compatible and is_nonexpansive.",
        source="thesis, Section 4.2",
    )


def _is_whole(partition: Partition, domain: Domain) -> bool:
    """Return whether there is one block and it shows the whole database."""
    views = partition.views(domain)
    covers = isinstance(domain, Table) and getattr(views[0], "covers", None)
    return len(views) == 1 and bool(covers and covers(domain))


def _touched(row: TableRow, granularity: Any, domain: Any, blocks: int) -> int:
    if row.touched in ("w", "l"):
        return int(granularity.w if row.touched == "w" else granularity.length)
    if row.touched == "m" and granularity.max_times is not None:
        # Old and new times of a replaced user may be disjoint.
        return int(granularity.max_times * (1 if granularity.add_remove else 2))
    if row.touched in ("d", "d+1"):
        # Old and new neighbours of a rewired vertex may be disjoint.
        changed = min(2 * domain.degree_cap, domain.vertices - 1)
        return int(changed + (row.touched == "d+1"))
    return blocks if row.touched in ("k", "m") else int(row.touched)


def _verdict(
    row: TableRow,
    granularity: Granularity,
    partition: Partition,
    *,
    domain: Domain,
    touched: int,
    blocks: int,
) -> str:
    if touched <= 1:
        return "max"
    by_window = row.rule == "time" and row.touched in ("w", "l")
    if by_window and _windowed(granularity, domain) and _successive(partition):
        return "window sum"
    everything = touched == blocks and not row.touched.isdigit()
    return "sum" if everything else f"top-{touched} sum"


def _windowed(granularity: Granularity, domain: Domain) -> bool:
    """Return whether the changed times must lie within one window."""
    return not isinstance(granularity, LTrajectory) or granularity.moves_gaps(domain)


def _successive(partition: Partition) -> bool:
    """Return whether the blocks are single times, in order."""
    blocks = partition.blocks
    if blocks is None:
        return True
    times = [time for block in blocks for time in block]
    return len(times) == len(blocks) and times == sorted(times)


def _trajectory(
    granularity: Trajectory, partition: Partition, domain: Domain
) -> Certificate:
    stands_for = certificate_for(granularity.on(domain), partition, domain=domain)
    return replace(stands_for, granularity=granularity)


def _refused(
    granularity: Granularity, partition: Partition, domain: Domain
) -> Certificate:
    return Certificate(
        granularity,
        partition,
        domain,
        blocks=0,
        touched=math.inf,
        nonexpansive=False,
        verdict="refuse",
        common_verdict="refuse",
        source="thesis, Section 4.2",
        note=f"blocks computed from the data: {partition.reason}",
    )


def _grouped(group: Group, partition: Partition, domain: Domain) -> Certificate:
    # A step of a group is at most `size` steps of the base.
    base = certificate_for(group.base, partition, domain=domain)
    if base.common_verdict == "refuse":
        return replace(base, granularity=group)
    touched = min(base.blocks, int(base.touched) * group.size)
    priced = "max" if touched <= 1 else f"top-{touched} sum"
    return replace(
        base,
        granularity=group,
        touched=touched,
        verdict=priced if base.nonexpansive else "refuse",
        common_verdict=priced,
        note=f"{group.size} steps of {group.base.name}",
    )

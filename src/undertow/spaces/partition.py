"""Partitions: rules that send each part of the data to at most one of several blocks.

A release per block costs only the dearest one if a protected change touches one block
(compatibility) and moves it by one step at most (non-expansion). Which rule does that
for which granularity is easy to get wrong, so both are checked, not believed.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

from undertow.privacy.exact import round_up
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.canonical import neighbour_pairs
from undertow.spaces.partition_rule import RULES, Partition
from undertow.spaces.view_range import range_of

__all__ = [
    "RULES",
    "Check",
    "Commutation",
    "Partition",
    "Touched",
    "commutes",
    "is_compatible",
    "is_nonexpansive",
    "most_touched",
]


class Check(NamedTuple):
    """A verdict, with the neighbours that show a refusal."""

    holds: bool
    witness: tuple[Database, Database] | None
    reason: str


class Touched(NamedTuple):
    """How many blocks one protected change can touch, and a pair that does."""

    blocks: int
    witness: tuple[Database, Database] | None


class Commutation(NamedTuple):
    """Whether a metric adds up over blocks to no more than itself.

    `holds` is the inequality that the maximum over blocks needs; `equal` says whether,
    as printed, the sum also equals the distance of the unions on every pair.
    """

    holds: bool
    equal: bool
    witness: tuple[Database, Database] | None


def most_touched(
    partition: Partition, granularity: Granularity, *, domain: Domain
) -> Touched:
    """Return the most blocks that differ between neighbours of an enumerated domain."""
    shown = _images(partition, domain)
    most, witness = 0, None
    for first, second in neighbour_pairs(domain, granularity):
        touched = sum(a != b for a, b in zip(shown[first], shown[second], strict=True))
        if touched > most:
            most, witness = touched, (first, second)
    return Touched(most, witness)


def is_compatible(
    partition: Partition, granularity: Granularity, *, domain: Domain
) -> Check:
    """Check that neighbours differ in at most one block.

    Parameters
    ----------
    partition : Partition
        The rule.
    granularity : Granularity
        Whose neighbours are compared.
    domain : Domain
        Enumerable.

    Returns
    -------
    Check
        With the first pair that touches two blocks or more, if any.

    Notes
    -----
    Thesis, Section 4.2; paper, Section IV-C. At most one, not exactly one: a change
    outside all blocks touches none.

    Examples
    --------
    >>> from undertow.spaces.domain import Table
    >>> from undertow.spaces.granularity import Bounded
    >>> table = Table(("a", "b"), values_per_cell=1, size=1)
    >>> is_compatible(Partition.by_value(), Bounded(), domain=table).witness
    (('a',), ('b',))
    """
    granularity.require_domain(domain)
    shown = _images(partition, domain)
    for first, second in neighbour_pairs(domain, granularity):
        touched = sum(a != b for a, b in zip(shown[first], shown[second], strict=True))
        if touched > 1:
            return Check(False, (first, second), f"{touched} blocks differ")
    return Check(True, None, "")


def is_nonexpansive(
    partition: Partition, granularity: Granularity, *, domain: Domain
) -> Check:
    r"""Check that a step moves every block by at most one step inside its range.

    Returns
    -------
    Check
        With the first pair whose images of some block differ and are no neighbours.

    Notes
    -----
    This is :math:`\Delta p_i \le 1` for every block, distances taken inside the range
    of the block; thesis, Theorem 4.6; paper, Theorem IV.6.
    """
    granularity.require_domain(domain)
    views = partition.views(domain)
    ranges = [range_of(view, domain) for view in views]
    refusal = _meaningless(granularity, [shown.image for shown in ranges])
    if refusal:
        return Check(False, None, refusal)
    shown = _images(partition, domain)
    steps: set[tuple[int, Any, Any]] = set()
    for pair in neighbour_pairs(domain, granularity):
        for at, (ours, theirs) in enumerate(
            zip(*(shown[d] for d in pair), strict=True)
        ):
            if ours == theirs or (at, ours, theirs) in steps:
                continue
            if ranges[at].distance(granularity, ours, theirs) > 1:
                reason = f"block {at} moves by more than one step"
                return Check(False, pair, reason)
            steps.add((at, ours, theirs))
    return Check(True, None, "")


def commutes(metric: Metric, partition: Partition, *, domain: Domain) -> Commutation:
    r"""Check that a metric adds up over the blocks.

    .. math:: \sum_i d(p_i(D), p_i(D')) = d(\cup p_i(D), \cup p_i(D')) \le d(D, D')

    Returns
    -------
    Commutation
        The witness is the first pair that breaks the inequality, else the first that
        breaks the equality, else None.

    Notes
    -----
    Thesis, Equation 4.2 and Proposition A.11; paper, Proposition A.4, which says
    "compatible" where commuting is meant. Only the sum being at most the distance is
    needed for the maximum bound. All pairs are compared.
    """
    views, union = partition.views(domain), partition.union(domain)
    unequal: tuple[Database, Database] | None = None
    for pair in combinations(domain.databases(), 2):
        blocks = sum(_moved(metric, view, pair, domain) for view in views)
        if blocks > metric.distance(*pair, domain):
            return Commutation(False, False, pair)
        if unequal is None and blocks != _moved(metric, union, pair, domain):
            unequal = pair
    return Commutation(True, unequal is None, unequal)


def _moved(
    metric: Metric, view: View, pair: tuple[Database, Database], domain: Domain
) -> float:
    ours, theirs = (view.apply(database, domain) for database in pair)
    return round_up(range_of(view, domain).distance(metric, ours, theirs))


def _images(partition: Partition, domain: Domain) -> dict[Database, tuple[Any, ...]]:
    views = partition.views(domain)
    return {
        database: tuple(view.apply(database, domain) for view in views)
        for database in domain.databases()
    }


def _meaningless(granularity: Granularity, images: list[Domain]) -> str:
    for at, image in enumerate(images):
        try:
            granularity.require_domain(image)
        except ValueError:  # a mismatch, or plain values that cannot be listed
            return f"{granularity.name} makes no sense on the image of block {at}"
    return ""

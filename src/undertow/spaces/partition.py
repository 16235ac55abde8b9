"""Partitions: rules that send each part of the data to at most one of several blocks.

A release per block costs only the dearest one if a protected change touches one block
(compatibility) and moves it by one step at most (non-expansion). Which rule does that
for which granularity is easy to get wrong, so both are checked, not believed: by
enumeration, and for domains that cannot be listed by a table of certificates, each of
which says how many blocks one change touches and can be attacked at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from undertow.errors import IncompatiblePartitionError, MismatchError
from undertow.numeric.exact import round_up
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.canonical import (
    concrete,
    has_neighbours,
    neighbour_pairs,
    random_neighbours,
)
from undertow.spaces.domain import Table
from undertow.spaces.metric import image_or_values
from undertow.spaces.unit import Group, LTrajectory, Relation, Trajectory
from undertow.spaces.unit.generic import Catalogued
from undertow.spaces.view import (
    Identity,
    Ids,
    IncidentEdges,
    Locations,
    Project,
    RandomBlock,
    RowPosition,
    Select,
    SortedPosition,
    Times,
    Users,
    VertexPairs,
)
from undertow.spaces.view.range import range_of


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
    >>> from undertow.spaces.unit import Bounded
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


# The rules by which data are cut into blocks, fixed before the data are seen.

Block = frozenset[Any]

#: The rules a partition may follow.
RULES = (
    "value",
    "row position",
    "sorted position",
    "id",
    "random",
    "time",
    "user",
    "location",
    "vertex pair",
    "vertex",
    "column",
    "cluster",
    "data",
)


@dataclass(frozen=True, slots=True)
class Partition:
    """A rule that cuts the data into blocks, fixed before the data are seen.

    Parameters
    ----------
    rule : str
        One of :data:`RULES`.
    blocks : tuple of frozenset, optional
        What goes into each block; left out, one block per cell, id, time and so on.
    of : int, optional
        How many blocks, for the rules by position and by hash.
    salt : str, optional
        For the rule by hash.
    reason : str
        For blocks computed from the data: how.

    Raises
    ------
    ValueError
        If two blocks share an element: blocks must be disjoint. (The sources print
        the opposite sign in the definition; thesis, Section 4.2.)

    Notes
    -----
    Built by the class methods. The blocks need not cover the data. The rule "vertex"
    is the one exception to disjointness: every edge lies in the stars of both ends.

    Examples
    --------
    >>> [sorted(block) for block in Partition.by_value(["N", "S"], ["W"]).blocks]
    [['N', 'S'], ['W']]
    """

    rule: str
    blocks: tuple[Block, ...] | None = None
    of: int | None = None
    salt: str | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(
                f"rule must be one of {', '.join(RULES)}, got {self.rule!r}."
            )
        _require_disjoint(self.blocks or ())

    @classmethod
    def by_value(cls, *blocks: Iterable[Hashable]) -> Partition:
        """Cut a table by the cell of a record."""
        return cls("value", _frozen_blocks(blocks))

    @classmethod
    def by_id(cls, *blocks: Iterable[Hashable]) -> Partition:
        """Cut rows by stable ids."""
        return cls("id", _frozen_blocks(blocks))

    @classmethod
    def by_time(cls, *blocks: Iterable[int]) -> Partition:
        """Cut a stream by time."""
        return cls("time", _frozen_blocks(blocks))

    @classmethod
    def by_user(cls, *blocks: Iterable[int]) -> Partition:
        """Cut a stream by user."""
        return cls("user", _frozen_blocks(blocks))

    @classmethod
    def by_location(cls, *blocks: Iterable[Hashable]) -> Partition:
        """Cut a stream by where the events happen."""
        return cls("location", _frozen_blocks(blocks))

    @classmethod
    def by_cluster(cls, *blocks: Iterable[Hashable]) -> Partition:
        """Cut a stream by the cluster of the location."""
        return cls("cluster", _frozen_blocks(blocks))

    @classmethod
    def by_column(cls, *blocks: Iterable[str]) -> Partition:
        """Cut a table or rows vertically, by attribute."""
        return cls("column", _frozen_blocks(blocks))

    @classmethod
    def by_vertex_pair(cls, *blocks: Iterable[tuple[int, int]]) -> Partition:
        """Cut a graph by vertex pair."""
        ordered = [[(min(pair), max(pair)) for pair in block] for block in blocks]
        return cls("vertex pair", _frozen_blocks(ordered))

    @classmethod
    def per_vertex(cls) -> Partition:
        """Give every vertex its own edges."""
        return cls("vertex")

    @classmethod
    def by_row_position(cls, of: int) -> Partition:
        """Deal rows out in turn, by their position."""
        return cls("row position", of=_require_count(of))

    @classmethod
    def by_sorted_position(cls, of: int) -> Partition:
        """Deal rows out in turn, by their position after sorting."""
        return cls("sorted position", of=_require_count(of))

    @classmethod
    def random(cls, of: int, *, salt: str) -> Partition:
        """Cut rows by a salted hash of their id."""
        return cls("random", of=_require_count(of), salt=salt)

    @classmethod
    def data_dependent(cls, reason: str) -> Partition:
        """Name a partition computed from the data, which no check accepts."""
        return cls("data", reason=reason)

    def views(self, domain: Domain) -> tuple[View, ...]:
        """Return one view per block.

        Raises
        ------
        IncompatiblePartitionError
            If the blocks are computed from the data.
        MismatchError
            If the rule makes no sense on the domain.
        """
        if self.rule == "data":
            raise IncompatiblePartitionError(
                "blocks must be fixed before the data are seen, got blocks computed "
                f"from the data ({self.reason}); fix them, or compute them from an "
                "earlier private release.",
                source="thesis, Section 4.2",
            )
        cut = Cut(self.rule, self.blocks, self.of or 1, self.salt or "")
        return block_views(cut, domain)

    def union(self, domain: Domain) -> View:
        """Return the view of everything that lies in some block."""
        if self.blocks is None:
            return Identity()
        merged = Partition(self.rule, (frozenset().union(*self.blocks),))
        return merged.views(domain)[0]


def _frozen_blocks(blocks: Iterable[Iterable[Any]]) -> tuple[Block, ...] | None:
    return tuple(frozenset(block) for block in blocks) or None


def _require_count(of: int) -> int:
    if isinstance(of, bool) or not isinstance(of, int) or of < 1:
        raise ValueError(f"of must be a positive integer, got {of!r}.")
    return of


def _require_disjoint(blocks: tuple[Block, ...]) -> None:
    seen: set[Any] = set()
    for at, block in enumerate(blocks):
        if not block:
            raise ValueError(f"blocks must not be empty, got block {at} empty.")
        if not seen.isdisjoint(block):
            shared = next(iter(sorted(map(repr, seen & block))))
            raise ValueError(
                f"blocks must be disjoint, got {shared} in block {at} and in an "
                "earlier one; use overlapping views in a plan instead."
            )
        seen |= block


# The views that a partitioning rule builds, one per block.


class Cut(NamedTuple):
    """A rule with its parameters."""

    rule: str
    blocks: tuple[Block, ...] | None
    of: int
    salt: str


def block_views(cut: Cut, domain: Domain) -> tuple[View, ...]:
    """Return one view per block, checked against the domain."""
    build, kinds = _BUILDERS[cut.rule]
    if domain.kind not in kinds:
        raise MismatchError(
            f"a partition by {cut.rule} must cut a domain of kind "
            f"{' or '.join(kinds)}, got {domain.kind}."
        )
    if cut.blocks is not None:
        # The blocks fit the domain iff their union does.
        merged = cut._replace(blocks=(frozenset().union(*cut.blocks),))
        build(merged, domain)[0].require_domain(domain)
    views = build(cut, domain)
    if not views:
        raise MismatchError(
            f"a partition by {cut.rule} must have at least one block, got a domain of "
            f"kind {domain.kind} with nothing to cut by; list the blocks."
        )
    return views


def _one_block_each(elements: Iterable[Hashable]) -> tuple[Block, ...]:
    return tuple(frozenset((element,)) for element in elements)


def _by_value(cut: Cut, domain: Any) -> tuple[View, ...]:
    if domain.multi:
        raise MismatchError(
            "a partition by value must cut a table whose records have one cell each, "
            "got overlapping cells; use one view per cell in a plan instead."
        )
    blocks = cut.blocks or _one_block_each(domain.cells)
    return tuple(Select(*block) for block in blocks)


def _by_id(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(Ids(block) for block in cut.blocks or _one_block_each(domain.ids))


def _by_hash(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(RandomBlock(block, cut.of, cut.salt) for block in range(cut.of))


def _by_row(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(RowPosition(block, cut.of) for block in range(cut.of))


def _by_sorted(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(SortedPosition(block, cut.of) for block in range(cut.of))


def _by_time(cut: Cut, domain: Any) -> tuple[View, ...]:
    blocks = cut.blocks or _one_block_each(range(domain.times))
    return tuple(Times(block) for block in blocks)


def _by_user(cut: Cut, domain: Any) -> tuple[View, ...]:
    blocks = cut.blocks or _one_block_each(range(domain.users))
    return tuple(Users(block) for block in blocks)


def _by_place(cut: Cut, domain: Any) -> tuple[View, ...]:
    clusters = cut.rule == "cluster"
    places = domain.cluster_labels if clusters else domain.values
    if cut.blocks is None and not places:
        raise MismatchError(
            f"a partition by {cut.rule} must know the places, got a stream that "
            "leaves them open; list the blocks, or set values and clusters."
        )
    return tuple(Locations(block) for block in cut.blocks or _one_block_each(places))


def _by_column(cut: Cut, domain: Any) -> tuple[View, ...]:
    names = [name for name, _ in domain.attributes]
    if cut.blocks is None and not names:
        raise MismatchError(
            "a partition by column must cut a domain that names its columns, got none."
        )
    return tuple(Project(*sorted(b)) for b in cut.blocks or _one_block_each(names))


def _by_pair(cut: Cut, domain: Any) -> tuple[View, ...]:
    pairs = combinations(range(domain.vertices), 2)
    return tuple(VertexPairs(block) for block in cut.blocks or _one_block_each(pairs))


def _by_vertex(cut: Cut, domain: Any) -> tuple[View, ...]:
    return tuple(IncidentEdges(vertex) for vertex in range(domain.vertices))


_Builder = Callable[[Cut, Any], tuple[View, ...]]
_BUILDERS: dict[str, tuple[_Builder, tuple[str, ...]]] = {
    "value": (_by_value, ("table",)),
    "id": (_by_id, ("rows",)),
    "random": (_by_hash, ("rows",)),
    "row position": (_by_row, ("rows", "finite")),
    "sorted position": (_by_sorted, ("rows", "table", "finite")),
    "time": (_by_time, ("stream",)),
    "user": (_by_user, ("stream",)),
    "location": (_by_place, ("stream",)),
    "cluster": (_by_place, ("stream",)),
    "column": (_by_column, ("table", "rows")),
    "vertex pair": (_by_pair, ("graph",)),
    "vertex": (_by_vertex, ("graph",)),
}


# Which partition works for which granularity: the table, as objects to attack.
#
# A certificate says how many blocks one protected change touches at most, whether it
# moves each by one step at most, and hence what a release per block costs. Every entry
# of the table is verified by enumeration in the tests; any certificate, built in or
# declared, can be attacked at random with :func:`falsify_certificate`.


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
    >>> from undertow.spaces.unit import Bounded, Unbounded
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
    row = _table_row(granularity, partition, domain)
    blocks = len(partition.views(domain))
    touched = min(blocks, _touched_blocks(row, granularity, domain, blocks))
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


def _plain_name(granularity: Granularity) -> str:
    """Return the name without its numbers: ``w-event:3`` -> ``w-event``."""
    if not isinstance(granularity, Catalogued) or isinstance(granularity, Relation):
        return "other"  # a relation of one's own may bear any name
    parts = granularity.name.split(":")
    kept = [part for part in parts if not part.isdigit() and "=" not in part]
    return ":".join(part for part in kept if part not in ("periodic", "recorded"))


def _table_row(
    granularity: Granularity, partition: Partition, domain: Domain
) -> TableRow:
    family, rule = _plain_name(granularity), partition.rule
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


def _touched_blocks(row: TableRow, granularity: Any, domain: Any, blocks: int) -> int:
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


# The compatibility table: what one protected change does to the blocks of a cut.


class TableRow(NamedTuple):
    """One row of the compatibility table.

    `touched` is a number, or the letter it stands for: ``w`` and ``l`` the length of
    the window, ``m`` the cap on recorded times (twice that for a replaced user), ``d``
    the most edges a rewired vertex changes, ``k`` all blocks.
    """

    granularity: str
    rule: str
    touched: str
    nonexpansive: bool
    source: str
    note: str = ""


_DERIVED = "derived, verified by enumeration"
POSITIONS = "one change shifts positions"
_MOVES = "a record that moves leaves one block and enters another"

#: The table. A rule or granularity of "any" matches everything not listed before it.
COMPATIBILITY: tuple[TableRow, ...] = (
    TableRow("any", "data", "k", False, "thesis, Section 4.2", "blocks move with data"),
    TableRow("unbounded", "value", "1", True, "paper, Section IV-C"),
    TableRow("bounded", "value", "2", False, "thesis, Proposition A.12", _MOVES),
    TableRow("edit", "value", "2", True, _DERIVED),
    TableRow("attribute", "value", "2", False, _DERIVED, _MOVES),
    TableRow("bounded:ordered", "row position", "1", True, "thesis, Proposition 4.7"),
    TableRow("bounded-by-id", "row position", "1", True, "thesis, Proposition 4.7"),
    TableRow("any", "row position", "k", False, _DERIVED, POSITIONS),
    TableRow("any", "sorted position", "k", False, _DERIVED, POSITIONS),
    TableRow("bounded:ordered", "id", "1", True, "thesis, Proposition 4.7"),
    TableRow("bounded-by-id", "id", "1", True, "paper, Proposition A.6"),
    TableRow("unbounded", "id", "1", True, _DERIVED, "ids are stable"),
    TableRow("edit", "id", "1", True, _DERIVED, "ids are stable"),
    TableRow("attribute", "id", "1", True, _DERIVED),
    TableRow("user", "id", "1", True, _DERIVED),
    TableRow("user:add-remove", "id", "1", True, _DERIVED),
    TableRow("event", "time", "1", True, _DERIVED, "the time of a point is fixed"),
    TableRow("event", "user", "1", True, _DERIVED),
    TableRow(
        "event",
        "location",
        "2",
        False,
        _DERIVED,
        "a point that moves leaves one block and enters another",
    ),
    TableRow("event:add-remove", "time", "1", True, _DERIVED),
    TableRow("event:add-remove", "user", "1", True, _DERIVED),
    TableRow("event:add-remove", "location", "1", True, _DERIVED),
    TableRow("event:add-remove", "cluster", "1", True, _DERIVED),
    TableRow("w-event", "time", "w", True, _DERIVED),
    TableRow("w-event", "user", "w", True, _DERIVED, "a window may mix users"),
    TableRow("w-event:single-user", "time", "w", True, _DERIVED),
    TableRow("w-event:single-user", "user", "1", True, _DERIVED),
    TableRow("l-trajectory", "time", "l", True, _DERIVED),
    TableRow("l-trajectory", "user", "1", True, _DERIVED),
    TableRow("user", "time", "m", True, _DERIVED),
    TableRow("user", "user", "1", True, _DERIVED),
    TableRow("user", "location", "k", True, _DERIVED),
    TableRow("user:add-remove", "time", "m", True, _DERIVED),
    TableRow("user:add-remove", "user", "1", True, _DERIVED),
    TableRow("user:add-remove", "location", "k", True, _DERIVED),
    TableRow("element", "cluster", "1", True, _DERIVED),
    TableRow("element", "user", "1", True, _DERIVED),
    TableRow("edge", "vertex pair", "1", True, _DERIVED),
    TableRow("edge", "vertex", "2", True, "thesis, Example 4.3"),
    TableRow("node", "vertex pair", "d", True, _DERIVED),
    TableRow("node", "vertex", "d+1", True, _DERIVED, "the vertex and its neighbours"),
    TableRow("attribute", "column", "1", True, _DERIVED),
    TableRow("bounded", "column", "k", True, _DERIVED),
    TableRow("bounded:ordered", "column", "k", True, _DERIVED),
    TableRow("bounded-by-id", "column", "k", True, _DERIVED),
    TableRow("unbounded", "column", "k", True, _DERIVED),
    TableRow("edit", "column", "k", True, _DERIVED),
    TableRow("free-lunch", "any", "k", True, _DERIVED),
    TableRow("local", "any", "k", True, _DERIVED),
)

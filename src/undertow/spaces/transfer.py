r"""Restating a guarantee at another granularity.

.. math:: \mathrm{dist}_{\mathbb D}(\mathcal G_1, \mathcal G_2)
          = \max_{D \sim_{\mathcal G_2} D'} d^{\mathcal G_1}(D, D')

A guarantee held at :math:`\mathcal G_1` (*have*) becomes one at :math:`\mathcal G_2`
(*want*) by that factor: :math:`\varepsilon \to k\varepsilon`,
:math:`\rho \to k^2\rho`, :math:`\mu \to k\mu`. If it is infinite there is no transfer.

The factor is the largest influence, on a release that sees everything, of the change
classes of *want* (:mod:`undertow.spaces.influence`). Where the classes give an upper
bound, neighbours as far apart as it says prove that it is attained; otherwise the pairs
of a small domain are inspected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np

from undertow.errors import AssumptionError, VacuousGranularityError
from undertow.privacy.group import group
from undertow.privacy.loss import Loss
from undertow.spaces.base import Database, Domain, Granularity
from undertow.spaces.canonical import canonical_matrix, check_domain, neighbour_matrix
from undertow.spaces.change import Charge, Column
from undertow.spaces.domain import Graph, Rows, Stream, Table, in_words
from undertow.spaces.influence import structural_family
from undertow.spaces.influence._column import MEASURED
from undertow.spaces.unit import (
    Attribute,
    Edge,
    FreeLunch,
    Group,
    Local,
    LTrajectory,
    Node,
    Trajectory,
    User,
    WEvent,
)
from undertow.spaces.view import Identity

_ENUMERATED = 3_000
# Neighbours are written out where they hold at most so many records, or cells.
_SHOWN_RECORDS = 1_000_000
_SHOWN_CELLS = 100_000


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
    is protected by a mechanism proved at *have*. Change classes cover the
    catalogue on tables, rows, streams and graphs; where they give only an upper bound,
    domains of at most 3000 databases are inspected instead.

    Examples
    --------
    >>> from undertow.spaces.unit import Bounded, Unbounded
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
    bound = transfer_bound(have, want, domain)
    if bound is not None and (bound.exact or domain.count() > _ENUMERATED):
        return bound
    if domain.count() > _ENUMERATED:
        raise AssumptionError(
            f"domain must have at most {_ENUMERATED} databases where no formula is "
            f"proved from {have.name} to {want.name}, got {in_words(domain.count())}; "
            "use a smaller instance of the same kind."
        )
    return _inspected(have, want, domain)


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
    >>> from undertow.spaces.unit import User, WEvent
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
    >>> from undertow.spaces.unit import Event, User
    >>> rows = transfer_matrix((Event(), User()), Stream(1000, 24))
    >>> [[entry.factor for entry in row] for row in rows]
    [[1, 24], [1, 1]]
    """
    return tuple(
        tuple(transfer_factor(have, want, domain) for want in granularities)
        for have in granularities
    )


def transfer_bound(
    have: Granularity, want: Granularity, domain: Domain
) -> Transfer | None:
    """Return the factor by the change classes of `want`, whatever the domain's size.

    Returns
    -------
    Transfer or None
        An upper bound, if it is not `exact`; None where no classes are known.

    Notes
    -----
    A factor of one is attained, because neighbours are different databases. So is the
    distance of several steps in their own granularity, up to a finite diameter: a
    shortest path passes every distance.
    """
    unit, size = _in_steps(have, domain)
    step, times = _in_steps(want, domain)
    if type(unit) not in MEASURED:
        return None
    column = Column(Identity(), unit, "view")
    family = structural_family(_plain_cells(domain), want, columns=(column,))
    if family is None:
        return None
    top = family.maximise([Charge((0,), lambda influences: influences)])
    distance = math.inf if top.value == math.inf else int(top.value)
    factor = distance if distance == math.inf else -(-int(distance) // size)
    pair = _farthest(unit, step, times, domain, distance)
    exact = top.tight or factor == 1 or pair is not None
    if not exact and unit == step and times > 1:
        whole = transfer_bound(unit, FreeLunch(), domain)
        if whole is not None and whole.exact and whole.factor < math.inf:
            exact = distance == min(times, whole.factor)
    shown = None if pair is _HIDDEN else pair
    change = top.row.change.summary.replace("inf times", "any number of times")
    return Transfer(have.name, want.name, factor, change, shown, exact, False)


def _plain_cells(domain: Domain) -> Domain:
    """Return a domain whose records lie in one cell each, where nothing looks at cells.

    Distances of whole tables only see how many records, and attributes, differ.
    """
    if not isinstance(domain, Table) or not domain.multi:
        return domain
    return replace(
        domain,
        cells=() if domain.attributes else ("any",),
        values_per_cell=1 if domain.universe_size == 1 else None,
        multi=False,
        max_cells=None,
    )


def _in_steps(granularity: Granularity, domain: Domain) -> tuple[Granularity, int]:
    """Return what one step is and how many count as one, without synonyms."""
    if isinstance(granularity, Group):
        base, size = _in_steps(granularity.base, domain)
        whole = isinstance(base, FreeLunch)  # one step already reaches everything
        return base, 1 if whole else size * granularity.size
    if isinstance(granularity, Trajectory):
        return granularity.on(domain), 1
    return (FreeLunch() if isinstance(granularity, Local) else granularity), 1


Pair = tuple[Any, Any]
# Neighbours that attain a factor, and are too large to be written out.
_HIDDEN: Pair = ((), ())


def _farthest(
    unit: Granularity, step: Granularity, times: int, domain: Domain, distance: float
) -> Pair | None:
    """Return databases `times` steps apart, as far apart in `unit` as `distance`.

    None where none of the extreme changes of the domain is: then they prove nothing.
    """
    if isinstance(domain, Graph):
        return _graph_pair(unit, step, domain, distance)
    if isinstance(domain, Stream):
        return _stream_pair(unit, step, times, domain, distance)
    if isinstance(domain, Table):
        return _table_pair(unit, step, times, domain, distance)
    if isinstance(domain, Rows):
        within = step if times == 1 else Group(step, times)
        for pair in _row_pairs(step, times, domain):
            far = within.are_neighbours(*pair, domain)
            if far and unit.distance(*pair, domain) == distance:
                return pair
    return None


def _table_pair(
    unit: Granularity, step: Granularity, times: int, domain: Table, distance: float
) -> Pair | None:
    """Return tables of which some records leave and others enter.

    Equal changes of several records cost as many times as much, and where the size is
    fixed the records that stay change nothing: neither is measured.
    """
    most = domain.greatest_size
    number = times if most == math.inf else int(most)
    reach = number if isinstance(step, FreeLunch) else min(times, number)
    fixed = domain.size is not None
    if max(reach, domain.size or 0) > _SHOWN_RECORDS:
        return None
    some = [*domain.records(at_most=2)] * 2
    old, new = _varied(domain, (0, None)) if domain.attributes else some[:2]
    sizes = dict.fromkeys((1, reach, min(times - reach, number), 0))
    changes: list[tuple[list[Any], list[Any], int]] = []
    for lost, found in product(sizes, sizes):
        alike = max(math.gcd(lost, found), 1)
        changes.append(([old] * (lost // alike), [new] * (found // alike), alike))
    if isinstance(step, Attribute):
        spread = _varied(domain, _spread(times, reach, domain))
        changes.insert(0, ([old] * reach, spread, 1))
    for out, into, alike in changes:
        if max(len(out), len(into)) * alike > number:
            continue
        first, second = Table.database(out), Table.database(into)
        few = replace(domain, size=len(out)) if fixed else domain
        if first == second or second not in few:
            continue
        near = isinstance(step, FreeLunch)
        near = near or alike * step.distance(first, second, few) <= times
        if near and alike * unit.distance(first, second, few) == distance:
            stay = 0 if domain.size is None else domain.size - alike * len(out)
            rest = [old] * stay
            before, after = (rest + alike * side for side in (out, into))
            return _sorted(before), _sorted(after)
    return None


def _sorted(records: Sequence[Any]) -> tuple[Any, ...]:
    """Return a table of many equal records; only different ones are put in order."""
    counts = Counter(records)
    return tuple(one for one in Table.database(counts) for _ in range(counts[one]))


def _row_pairs(step: Granularity, times: int, domain: Rows) -> Iterator[Pair]:
    """Yield rows of which some ids come or go and others change their value."""
    n = len(domain.ids)
    reach = n if isinstance(step, FreeLunch) else min(times, n)
    if n > _SHOWN_RECORDS:
        return
    values = (0, 1) if domain.values is None else domain.values * 2
    old, new = _varied(domain, (0, None)) if domain.attributes else values[:2]
    twice = min(max(times - n, 0), n)
    for lone, both in ((1, 0), (reach, 0), (reach - twice, twice), (0, 1), (0, reach)):
        if lone + both <= n and (domain.free_ids or not lone):
            second = [None] * lone + [new] * both + [old] * (n - lone - both)
            yield (old,) * n, tuple(second)
    if isinstance(step, Attribute):
        counts = (*_spread(times, reach, domain), *[0] * (n - reach))
        yield (old,) * n, tuple(_varied(domain, counts))


def _spread(cells: int, records: int, domain: Table | Rows) -> list[int]:
    """Return how many attributes of each record change, as evenly as they can."""
    free = sum(values is None or len(values) > 1 for _, values in domain.attributes)
    cells = min(cells, free * records)
    return [(cells + at) // records for at in range(records)]


def _varied(domain: Table | Rows, changed: Sequence[int | None]) -> list[Any]:
    """Return records with so many free attributes at a second value; None: with all."""
    records = []
    for number in changed:
        left = math.inf if number is None else number
        record = []
        for _, values in domain.attributes:
            options = (0, 1) if values is None else values
            second = left > 0 and len(options) > 1
            left -= second
            record.append(options[1] if second else options[0])
        records.append(tuple(record))
    return records


def _graph_pair(
    unit: Granularity, step: Granularity, domain: Graph, distance: float
) -> Pair | None:
    """Return an edge that appears, a vertex that swaps its edges, or all edges."""
    n, cap = domain.vertices, domain.degree_cap
    ends = range(1, cap + 1), range(cap + 1, min(2 * cap, n - 1) + 1)
    left, right = ([(0, other) for other in side] for side in ends)
    shapes = [([], [(0, 1)], 1), (left, right, 1)]
    if not domain.is_capped and n <= 200:
        complete = [(i, j) for j in range(n) for i in range(j)]
        shapes.append(([], complete, n - 1))
    for first, second, rewired in shapes:
        edges = len(first) + len(second)
        moved, by_step = (
            edges if isinstance(one, Edge) else rewired if isinstance(one, Node) else 1
            for one in (unit, step)
        )
        if moved == distance and by_step == 1:
            return Graph.database(first), Graph.database(second)
    return None


CellChanges = dict[tuple[int, int], Pair]


def _stream_pair(
    unit: Granularity, step: Granularity, times: int, domain: Stream, distance: float
) -> Pair | None:
    """Return neighbours by one step, repeated for other users as often as it may be.

    Distances of streams add up over users who change in the same way.
    """
    n, T = domain.users, domain.times
    for background, changes in _cell_changes(unit, step, domain):
        width = 1 + max(user for user, _ in changes)
        few = replace(domain, users=width)
        pair = _matrices(background, changes, few)
        steps = step.distance(*pair, few)
        if not 0 < steps <= times:
            continue
        copies = n // width
        if not isinstance(step, FreeLunch):
            copies = min(copies, times // int(steps))
        if isinstance(unit, FreeLunch):
            copies = 1
        if copies * unit.distance(*pair, few) == distance:
            if n * T > _SHOWN_CELLS:
                return _HIDDEN
            rest = _matrices(None, {}, replace(domain, users=1))[0]
            first, second = (
                copies * side + (n - copies * width) * rest for side in pair
            )
            return first, second
    return None


def _cell_changes(
    unit: Granularity, step: Granularity, domain: Stream
) -> Iterator[tuple[Any, CellChanges]]:
    """Yield what users hold at first, and cells that a step may change."""
    n, T = domain.users, domain.times
    cells: dict[tuple[tuple[int, int], ...], None] = {}
    for apart, number in product((1, _length(unit, T)), _reaches(step, T)):
        cells[tuple((0, t) for t in range(0, T, apart)[:number])] = None
    if isinstance(step, WEvent):
        for run in (_length(unit, T), n):
            some = ((min(t % run, n - 1), t) for t in range(min(step.w, T)))
            cells[tuple(some)] = None
    contents = _contents(domain)
    cap = step.max_times if isinstance(step, User) else None
    for background, content, chosen in product(
        (None, contents[0][0][0]), contents, cells
    ):
        changes = {cell: content[at % len(content)] for at, cell in enumerate(chosen)}
        yield background, changes
        if cap is not None and not domain.regular:
            old = content[0][0]
            moved = {cell: (old, None) for cell in chosen[:cap]}
            yield None, moved | {c: (None, old) for c in chosen[cap : 2 * cap]}


def _contents(domain: Stream) -> list[tuple[Pair, ...]]:
    """Return how the contents of successive cells may change."""
    places = (0, 1) if domain.values is None else domain.values
    cluster = dict(domain.clusters or ())
    one_each = {cluster[place]: place for place in places if place in cluster}
    found: list[tuple[Pair, ...]] = []
    if len(places) > 1:
        found.append(((places[0], places[1]),))
    if not domain.regular:
        found += [((places[0], None),), ((None, places[0]),)]
        if one_each:
            found.append(tuple((None, place) for place in one_each.values()))
    for label in domain.cluster_labels:
        alike = [place for place in places if cluster[place] == label]
        if len(alike) > 1:
            found.append(((alike[0], alike[1]),))
    if 1 < len(one_each) <= _CLUSTERS:
        found.append(tuple(permutations(one_each.values(), 2)))
    return found


# Clusters up to which the contents of all of them are made to wait for each other.
_CLUSTERS = 6


def _length(granularity: Granularity, times: int) -> int:
    """Return how many successive times one step of a granularity spans."""
    if isinstance(granularity, WEvent):
        return min(granularity.w, times)
    if isinstance(granularity, LTrajectory):
        return min(granularity.length, times)
    return 1


def _reaches(step: Granularity, times: int) -> list[int]:
    """Return at how many times one step may change a user."""
    cap = step.max_times if isinstance(step, User) else None
    most = times if cap is None else cap
    some = 1, _length(step, times), most, min(2 * most, times), times
    return [*dict.fromkeys(some)]


def _matrices(background: Any, changes: CellChanges, domain: Stream) -> Pair:
    places = (0, 1) if domain.values is None else domain.values
    fill = places[0] if domain.regular and background is None else background
    sides = []
    for side in (0, 1):
        rows = [[fill] * domain.times for _ in range(domain.users)]
        for (user, time), contents in changes.items():
            rows[user][time] = contents[side]
        sides.append(tuple(tuple(row) for row in rows))
    return sides[0], sides[1]

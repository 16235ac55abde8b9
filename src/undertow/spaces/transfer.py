r"""Restating a guarantee at another granularity.

.. math:: \mathrm{dist}_{\mathbb D}(\mathcal G_1, \mathcal G_2)
          = \max_{D \sim_{\mathcal G_2} D'} d^{\mathcal G_1}(D, D')

A guarantee held at :math:`\mathcal G_1` (*have*) becomes one at :math:`\mathcal G_2`
(*want*) by that factor: :math:`\varepsilon \to k\varepsilon`,
:math:`\rho \to k^2\rho`, :math:`\mu \to k\mu`. If it is infinite there is no transfer.
Formulas cover the catalogue; elsewhere the pairs of a small domain are inspected.

On tables and rows every change is summarised by how many records it takes away and puts
in, or how many ids it touches in which way; distances and relations depend on nothing
else, so that the factor is a maximum over a handful of extreme changes, and exact.

On streams of :math:`n` users and :math:`T` times event, window, trajectory-segment and
user level are one family: a step changes entries within :math:`w` consecutive times, at
most one per time, of one user or of any users. An event is a window of one time; a user
is a window of all times of one user.

========================= =================================================
from windows of w, to ... factor
========================= =================================================
v times of one user       :math:`\lceil v/w \rceil`
v times, any users        :math:`\lceil v/w \rceil`; of one user's windows
                          :math:`\lfloor v/w \rfloor \min(w,n) + \min(v \bmod w, n)`
any k times of one user   :math:`\min(k, \lceil T/w \rceil)`
any change                :math:`n \lceil T/w \rceil`
========================= =================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from undertow.errors import AssumptionError, VacuousGranularityError
from undertow.privacy.group import group
from undertow.privacy.loss import Loss
from undertow.spaces.base import Database, Domain, Granularity
from undertow.spaces.canonical import canonical_matrix, check_domain, neighbour_matrix
from undertow.spaces.domain import Graph, Rows, Stream, Table, in_words
from undertow.spaces.unit.generic import (
    FreeLunch,
    Group,
    Local,
    multiset_distance,
    row_distance,
)
from undertow.spaces.unit.graph import Edge, Node
from undertow.spaces.unit.stream import (
    Element,
    Event,
    LTrajectory,
    Trajectory,
    User,
    WEvent,
)
from undertow.spaces.unit.table import Attribute, Bounded, BoundedById, Edit, Unbounded

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


class Closed(NamedTuple):
    """A factor by formula; `exact` if attained, else an upper bound."""

    factor: float
    change: str
    pair: tuple[Database, Database] | None = None
    exact: bool = True


def ceil_div(value: float, by: int) -> float:
    """Return `value` over `by`, rounded up; infinity stays."""
    return value if value == math.inf else -(-int(value) // by)


def plain(granularity: Granularity, domain: Domain) -> tuple[Granularity, int]:
    """Return what one step is and how many count as one, without synonyms."""
    if isinstance(granularity, Group):
        base, size = plain(granularity.base, domain)
        whole = isinstance(base, FreeLunch)  # one step already reaches everything
        return base, 1 if whole else size * granularity.size
    if isinstance(granularity, Trajectory):
        return granularity.on(domain), 1
    if isinstance(granularity, Local):
        return FreeLunch(), 1
    return granularity, 1


def grouped(one: Closed, whole: Closed, size: int, *, same: bool) -> Closed:
    """Return the factor for `size` steps, given that for one and for all at once.

    Never more than `size` times one step, nor more than the diameter. A granularity
    against its own groups attains it where everything is connected: a shortest path
    passes every distance.
    """
    if size == 1 or one.factor == math.inf:
        return one
    factor = min(size * one.factor, whole.factor)
    exact = same and whole.exact and one.exact and whole.factor < math.inf
    exact = exact or (whole.exact and whole.factor == 1)
    return Closed(factor, f"up to {size} times: {one.change}", None, exact)


def graph_transfer(
    have: Granularity, want: Granularity, domain: Graph
) -> Closed | None:
    r"""Return the factor between granularities of graphs.

    Edge to node is :math:`\min(2\theta, n-1)`: the edges of one vertex are swapped for
    as many others. To free lunch the diameters are those of the whole class, exact
    without a cap and bounded with one.
    """
    (mine, h), (target, g) = plain(have, domain), plain(want, domain)
    if not isinstance(mine, Edge | Node | FreeLunch):
        return None
    whole = _graph_base(mine, FreeLunch(), domain)
    if not isinstance(target, Edge | Node | FreeLunch):
        return None
    one = _graph_base(mine, target, domain)
    found = grouped(one, whole, g, same=mine == target)
    return found._replace(factor=ceil_div(found.factor, h))


def _graph_base(have: Granularity, want: Granularity, domain: Graph) -> Closed:
    n, cap = domain.vertices, domain.degree_cap
    single = _graph_pair([], [(0, 1)])
    if isinstance(have, FreeLunch):
        return Closed(1, "any change", single)
    if isinstance(want, Edge):
        return Closed(1, "one edge appears", single)
    if isinstance(want, Node):
        if isinstance(have, Node):
            return Closed(1, "one vertex is rewired", single)
        left, right = range(1, cap + 1), range(cap + 1, min(2 * cap, n - 1) + 1)
        pair = _graph_pair([(0, u) for u in left], [(0, u) for u in right])
        change = "a vertex swaps all its edges for as many others"
        return Closed(min(2 * cap, n - 1), change, pair)
    return _graph_diameter(have, domain)


def _graph_diameter(have: Granularity, domain: Graph) -> Closed:
    n, cap = domain.vertices, domain.degree_cap
    change = "one graph becomes any other"
    if not domain.is_capped:
        complete = [(i, j) for j in range(n) for i in range(j)]
        pair = _graph_pair([], complete) if n <= 200 else None
        return Closed(
            math.comb(n, 2) if isinstance(have, Edge) else n - 1, change, pair
        )
    if isinstance(have, Edge):
        most = min(2 * (n * cap // 2), n * min(2 * cap, n - 1) // 2)
    else:
        most = 2 * (n - 1) - 1  # 2τ - 1 with τ at most n - 1
    return Closed(most, change, exact=False)


def _graph_pair(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> tuple[Database, Database]:
    return Graph.database(first), Graph.database(second)


RecordChange = tuple[float, float]


def _record_rule(granularity: Granularity) -> str | None:
    if isinstance(granularity, Unbounded):
        return "add-remove"
    if isinstance(granularity, Bounded | BoundedById):
        return "replace"
    if isinstance(granularity, User):
        return "add-remove" if granularity.add_remove else "replace"
    if isinstance(granularity, Edit):
        return "edit"
    if isinstance(granularity, Attribute):
        return "attribute"
    return "any" if isinstance(granularity, FreeLunch) else None


class _RecordKind(NamedTuple):
    """How changes of one kind of domain are listed, priced, said and shown."""

    changes: Callable[[str, float, Any], list[RecordChange]]
    cost: Callable[[str, RecordChange, float | None, Any], float]
    pair: Callable[
        [str, RecordChange, float | None, Any], tuple[Database, Database] | None
    ]
    text: str


def table_transfer(
    have: Granularity, want: Granularity, domain: Table
) -> Closed | None:
    """Return the factor between granularities of tables; always exact."""
    text = "{} records leave and {} enter"
    kind = _RecordKind(_table_changes, _table_cost, _table_pair, text)
    return _record_transfer(have, want, domain, kind=kind)


def rows_transfer(have: Granularity, want: Granularity, domain: Rows) -> Closed | None:
    """Return the factor between granularities of identified rows; always exact."""
    text = "{} ids come or go and {} change their value"
    kind = _RecordKind(_row_changes, _row_cost, _row_pair, text)
    return _record_transfer(have, want, domain, kind=kind)


def _record_transfer(
    have: Granularity, want: Granularity, domain: Table | Rows, *, kind: _RecordKind
) -> Closed | None:
    (mine, h), (target, g) = plain(have, domain), plain(want, domain)
    has, wants = _record_rule(mine), _record_rule(target)
    if has is None or wants is None:
        return None
    radius = math.inf if wants == "any" else g
    cells = _attribute_cells(wants, radius, domain)
    scored = [
        (kind.cost(has, change, cells, domain), change)
        for change in kind.changes(wants, radius, domain)
    ]
    factor, change = max(scored, key=lambda item: item[0])
    return Closed(
        ceil_div(factor, h),
        _change_in_words(kind.text, change),
        kind.pair(has, change, cells, domain),
    )


def _table_changes(wants: str, radius: float, domain: Table) -> list[RecordChange]:
    """Return the extreme (records out, records in) that one step can reach."""
    most = domain.greatest_size
    reach = min(radius, most)
    rest = most if radius == math.inf else min(radius - reach, most)
    changes: list[RecordChange] = {
        "add-remove": [(1, 0), (reach, 0), (reach, rest)],
        "replace": [(1, 1), (reach, reach)],
        "attribute": [(1, 1), (reach, reach)],
        "edit": [(1, 0), (reach, 0), (1, 1), (reach, reach)],
        "any": [(1, 0), (reach, 0), (1, 1), (reach, reach)],
    }[wants]
    return [
        (out, into)
        for out, into in changes
        if (domain.size is None or out == into)
        and (domain.universe_size > 1 or 0 in (out, into))
    ]


def _attribute_cells(wants: str, radius: float, domain: Table | Rows) -> float | None:
    """Return how many attribute values one step changes; None: all of a record's."""
    if wants != "attribute":
        return None
    records = domain.greatest_size if isinstance(domain, Table) else len(domain.ids)
    return min(radius, records * _free_attributes(domain))


def _free_attributes(domain: Table | Rows) -> int:
    return sum(values is None or len(values) > 1 for _, values in domain.attributes)


def _table_cost(
    has: str, change: RecordChange, cells: float | None, domain: Table
) -> float:
    out, into = change
    if has == "any":
        return 1
    if has == "attribute":
        if out != into:
            return math.inf
        return out * _free_attributes(domain) if cells is None else cells
    if has == "add-remove" and domain.size is not None:
        return math.inf
    if math.inf in change:
        return math.inf
    return multiset_distance(has, int(out), int(into))  # type: ignore[arg-type]  # a rule


def _table_pair(
    has: str, change: RecordChange, cells: float | None, domain: Table
) -> tuple[Database, Database] | None:
    if math.inf in change or cells == math.inf:
        return None
    out, into = int(change[0]), int(change[1])
    old, new = _two_records(domain, None if cells is None else 1)
    kept = 0 if domain.size is None else domain.size - out
    if has == "attribute" and cells is not None:
        return _attribute_pair(int(cells), domain)
    first = Table.database([old] * (kept + out))
    return first, Table.database([old] * kept + [new] * into)


def _two_records(domain: Table, differing: int | None) -> tuple[Any, Any]:
    """Return two records, differing in so many attributes; in all if None."""
    if not domain.attributes:
        records = [*domain.records(at_most=2)] * 2
        return records[0], records[1]
    return _varied(domain, 0), _varied(domain, differing)


def _varied(domain: Table | Rows, changed: int | None) -> tuple[Any, ...]:
    """Return a record with its first `changed` free attributes at a second value."""
    left = math.inf if changed is None else changed
    record = []
    for _, values in domain.attributes:
        options = (0, 1) if values is None else values
        second = left > 0 and len(options) > 1
        left -= second
        record.append(options[1] if second else options[0])
    return tuple(record)


def _attribute_pair(cells: int, domain: Table) -> tuple[Database, Database]:
    """Return databases `cells` attribute changes apart, spread over the records."""
    free, base = _free_attributes(domain), _varied(domain, 0)
    number = -(-cells // free) if domain.size is None else domain.size
    counts = [max(0, min(free, cells - free * at)) for at in range(number)]
    changed = [_varied(domain, count) for count in counts]
    return Table.database([base] * number), Table.database(changed)


def _row_changes(wants: str, radius: float, domain: Rows) -> list[RecordChange]:
    """Return the extreme (ids come or go, ids changed) that one step can reach."""
    n = len(domain.ids)
    reach = min(radius, n)
    twice = 0 if radius <= n else min(radius - n, n)
    extremes: dict[str, list[RecordChange]] = {
        "add-remove": [(1, 0), (reach, 0), (reach - twice, twice)],
        "replace": [(0, 1), (0, reach)],
        "attribute": [(0, 1), (0, reach)],
        "edit": [(1, 0), (reach, 0), (0, reach)],
        "any": [(1, 0), (n, 0), (0, n)],
    }
    several = domain.values is None or len(domain.values) > 1
    return [
        (lone, both)
        for lone, both in extremes[wants]
        if (domain.free_ids or not lone) and (several or not both) and lone + both
    ]


def _row_cost(
    has: str, change: RecordChange, cells: float | None, domain: Rows
) -> float:
    lone, both = change
    if has == "any":
        return 1
    if has == "attribute":
        if lone:
            return math.inf
        return both * _free_attributes(domain) if cells is None else cells
    if has == "add-remove" and not domain.free_ids:
        return math.inf
    return row_distance(has, int(lone), int(both))  # type: ignore[arg-type]  # a rule


def _row_pair(
    has: str, change: RecordChange, cells: float | None, domain: Rows
) -> tuple[Database, Database]:
    lone, both = int(change[0]), int(change[1])
    old, new = _two_values(domain, cells)
    n = len(domain.ids)
    first = [old] * n
    second = [None] * lone + [new] * both + [old] * (n - lone - both)
    if has == "attribute" and cells is not None:
        free, left = _free_attributes(domain), int(cells)
        counts = [max(0, min(free, left - free * at)) for at in range(n)]
        second = [_varied(domain, count) for count in counts]
    return tuple(first), tuple(second)


def _two_values(domain: Rows, cells: float | None) -> tuple[Any, Any]:
    if domain.attributes:
        return _varied(domain, 0), _varied(domain, None if cells is None else 1)
    values = (0, 1) if domain.values is None else domain.values * 2
    return values[0], values[1]


def _change_in_words(text: str, change: RecordChange) -> str:
    shown = ["any number" if x == math.inf else f"{x:g}" for x in change]
    return text.format(*shown)


def stream_transfer(
    have: Granularity, want: Granularity, domain: Stream
) -> Closed | None:
    """Return the factor between granularities of streams.

    Exact but for some changes measured at element level, and for groups of another
    granularity; those are upper bounds.
    """
    (base, h), (target, g) = plain(have, domain), plain(want, domain)
    mine, theirs = stream_unit(base, domain), stream_unit(target, domain)
    if mine is None or theirs is None:
        return None
    one = _stream_factor(mine, theirs, domain)
    whole = _stream_factor(mine, Unit("any", domain.times), domain)
    found = grouped(one, whole, g, same=mine == theirs)
    if g == 1 and found.exact:
        found = found._replace(pair=stream_pair(mine, theirs, domain))
    return found._replace(factor=ceil_div(found.factor, h))


def _stream_factor(have: Unit, want: Unit, domain: Stream) -> Closed:
    change = _stream_change(want, domain)
    if have.family == "any" or have == want:
        return Closed(1, change)
    if have.cap is not None and (want.cap is None or want.cap > have.cap):
        return Closed(math.inf, f"{change}, beyond the cap of {have.cap} times")
    if have.family in ("window", "crowd", "capped"):
        return Closed(_from_window(have, want, domain), change)
    if have.family == "events":
        return Closed(_from_events(want, domain), change)
    if have.family == "people":
        return Closed(_from_people(want, domain), change)
    if have.family == "segment":
        same = want.family == "segment"
        return Closed(ceil_div(want.reach, have.reach) if same else math.inf, change)
    return _from_element(want, domain)._replace(change=change)


def _stream_change(want: Unit, domain: Stream) -> str:
    return {
        "window": f"one user changes at {want.reach} consecutive times",
        "crowd": f"one entry changes at each of {want.reach} consecutive times",
        "any": f"all {domain.users} users change at all {domain.times} times",
        "events": "one event appears",
        "people": "one user appears",
        "segment": f"one user's {want.reach} successive points are moved",
        "capped": "one user is replaced by another recorded at other times",
        "element": "one cluster of one user changes",
    }[want.family]


def _from_window(have: Unit, want: Unit, domain: Stream) -> float:
    n, w = domain.users, have.reach
    if want.family == "window":
        return ceil_div(want.reach, w)
    if want.family == "crowd":
        if have.family == "crowd":
            return ceil_div(want.reach, w)
        whole, rest = divmod(want.reach, w)
        return whole * min(w, n) + min(rest, n)
    if want.family == "any":
        return n * ceil_div(domain.times, w)
    return min(spread_times(want, domain), ceil_div(domain.times, w))


def _several_places(domain: Stream) -> bool:
    return domain.values is None or len(domain.values) > 1


def _wide_cluster(domain: Stream) -> bool:
    return len(domain.values or ()) > len(domain.cluster_labels)


def _from_events(want: Unit, domain: Stream) -> float:
    if domain.regular:
        return math.inf
    twice = 2 if _several_places(domain) else 1
    if want.family == "any":
        return twice * domain.users * domain.times
    if want.family in ("people", "events"):
        return spread_times(want, domain)
    if want.family == "capped":
        cap = want.cap or domain.times
        return 2 * cap if _several_places(domain) else min(domain.times, 2 * cap)
    if want.family == "element":
        return domain.times * (2 if _wide_cluster(domain) else 1)
    return twice * want.reach


def _from_people(want: Unit, domain: Stream) -> float:
    if domain.regular:
        return math.inf
    elsewhere = domain.times > 1  # another event may stay, so that the user does
    twice = 2 if elsewhere or _several_places(domain) else 1
    if want.family == "people":
        return 1
    if want.family == "events":
        return 2 if elsewhere else 1
    if want.family == "element":
        return 2 if elsewhere or _wide_cluster(domain) else 1
    if want.family in ("crowd", "any"):
        reach = want.reach if want.family == "crowd" else domain.users
        return twice * min(reach, domain.users)
    return twice


def _from_element(want: Unit, domain: Stream) -> Closed:
    """Bound the element distance: two steps per point, or all clusters out and in."""
    labels, n = len(domain.cluster_labels), domain.users
    if domain.regular:
        return Closed(math.inf, "")
    if want.family == "events":
        return Closed(1, "")
    if want.family == "people":
        return Closed(min(labels, spread_times(want, domain)), "")
    if want.family == "capped":
        points = want.cap or domain.times
        return Closed(min(2 * points, 2 * labels - 1), "", exact=points == 1)
    points = domain.times if want.family == "any" else want.reach
    each = min(2 * points, 2 * labels - 1)
    # All clusters can wait for each other once every ordered pair has a time.
    attained = points == 1 or points >= labels * (labels - 1)
    if want.family == "any":
        return Closed(n * each, "", exact=attained)
    if want.family == "crowd":
        return Closed(min(2 * points, n * each), "", exact=n >= points)
    return Closed(each, "", exact=attained)


Family = Literal[
    "window", "crowd", "any", "events", "people", "segment", "capped", "element"
]


class Unit(NamedTuple):
    """A granularity on one stream: its family, its reach in times, its cap.

    ``window``: entries of one user within `reach` times; ``crowd``: one entry per time
    within `reach` times; ``any``: everything; ``events``: one event comes or goes;
    ``people``: one user comes or goes; ``segment``: `reach` recorded points of one user
    whose gaps stay; ``capped``: one user with at most `cap` recorded times is replaced;
    ``element``: one cluster of one user.
    """

    family: Family
    reach: int
    cap: int | None = None


def stream_unit(granularity: Granularity, domain: Stream) -> Unit | None:
    """Return the unit a granularity stands for on `domain`."""
    times = domain.times
    if isinstance(granularity, FreeLunch):
        return Unit("any", times)
    if isinstance(granularity, Event):
        return Unit("events" if granularity.add_remove else "window", 1)
    if isinstance(granularity, WEvent):
        alone = granularity.single_user or domain.users == 1 or granularity.w == 1
        return Unit("window" if alone else "crowd", min(granularity.w, times))
    if isinstance(granularity, LTrajectory):
        moves = granularity.moves_gaps(domain)
        return Unit("window" if moves else "segment", min(granularity.length, times))
    if isinstance(granularity, User):
        return _user_unit(granularity, times)
    if isinstance(granularity, Element):
        one = len(domain.cluster_labels) == 1
        return Unit("window" if one else "element", times)
    return None


def _user_unit(granularity: User, times: int) -> Unit:
    cap = granularity.max_times
    cap = None if cap is None or cap >= times else cap
    if granularity.add_remove:
        return Unit("people", times, cap)
    return Unit("window", times) if cap is None else Unit("capped", times, cap)


def spread_times(want: Unit, domain: Stream) -> int:
    """Return how many times of one user a step can change, wherever they lie."""
    if want.family == "events":
        return 1
    if want.family == "capped":
        return min(domain.times, 2 * (want.cap or domain.times))
    if want.family == "people":
        return min(domain.times, want.cap or domain.times)
    return want.reach  # segment, element


# A pair is shown only where it has at most this many cells.
_SHOWN_CELLS = 100_000

CellChanges = dict[tuple[int, int], tuple[Any, Any]]


def stream_pair(have: Unit, want: Unit, domain: Stream) -> tuple[Any, Any] | None:
    """Return neighbours of `want` that are as far apart in `have` as any.

    None where the stream is too large to write out, and at element level, where a
    factor is stated without its pair.
    """
    if domain.users * domain.times > _SHOWN_CELLS or have.family == "element":
        return None
    if have.cap is not None and (want.cap is None or want.cap > have.cap):
        return _beyond_cap(want, domain)
    if want.family == "any" or want.family in ("window", "crowd"):
        background, changes = _cell_changes(have, want, domain)
    else:
        background, changes = _one_user(have, want, domain)
    return _matrices(background, changes, domain)


def _two_contents(domain: Stream) -> tuple[Any, Any]:
    """Return two different contents of a cell, places first."""
    places = (0, 1) if domain.values is None else domain.values
    return places[0], places[1] if len(places) > 1 else None


def _cell_changes(have: Unit, want: Unit, domain: Stream) -> tuple[Any, CellChanges]:
    n, old_new = domain.users, _two_contents(domain)
    stays = have.family == "people" and old_new[1] is None
    times = range(1 if stays else domain.times)  # a user of one place keeps the rest
    if have.family == "segment":
        old_new = (old_new[0], None)  # a gap moves, which the segment never does
    if want.family == "any":
        cells = [(u, t) for u in range(n) for t in times]
    elif want.family == "window":
        cells = [(0, t) for t in times[: want.reach]]
    else:
        # In each run of the other's window length every user changes at most once.
        run = have.reach if have.family == "window" else 1
        run = n if have.family == "people" else run
        cells = [(min(t % run, n - 1), t) for t in range(want.reach)]
    return old_new[0], dict.fromkeys(cells, old_new)


def _one_user(have: Unit, want: Unit, domain: Stream) -> tuple[Any, CellChanges]:
    old, new = _two_contents(domain)
    number = spread_times(want, domain)
    times = _apart(number, have, domain)
    if want.family == "events":
        keep = old if have.family == "people" else None
        return keep, {(0, times[0]): (None, old)}
    if want.family == "people":
        return None, {(0, t): (None, old) for t in times}
    if want.family == "segment":
        return None, {(0, t): (old, new) for t in times}
    if want.family == "capped":
        return None, _replacement(have, times, want.cap or 1, domain)
    return _cluster_change(have, times, domain)


def _apart(number: int, have: Unit, domain: Stream) -> list[int]:
    """Return up to `number` times as far apart as the other's window asks for."""
    step = have.reach if have.family in ("window", "crowd") else 1
    return list(range(0, domain.times, step))[:number]


def _replacement(have: Unit, times: list[int], cap: int, domain: Stream) -> CellChanges:
    old, new = _two_contents(domain)
    if have.family in ("events", "people") and new is not None:
        return {(0, t): (old, new) for t in range(cap)}
    left: CellChanges = {(0, t): (old, None) for t in times[:cap]}
    return left | {(0, t): (None, old) for t in times[cap : 2 * cap]}


def _cluster_change(
    have: Unit, times: list[int], domain: Stream
) -> tuple[Any, CellChanges]:
    cluster = dict(domain.clusters or ())
    places = domain.values or ()
    twins = [
        (x, y) for x in places for y in places if x != y and cluster[x] == cluster[y]
    ]
    if twins and (domain.regular or have.family in ("events", "people")):
        return twins[0][0], dict.fromkeys([(0, t) for t in times], twins[0])
    if have.family == "people" and domain.times > 1:
        return places[0], {(0, 0): (None, places[0])}
    return None, {(0, t): (None, places[0]) for t in times}


def _beyond_cap(want: Unit, domain: Stream) -> tuple[Any, Any]:
    """Return neighbours of which one has a user recorded at every time."""
    old, new = _two_contents(domain)
    if want.family == "people":
        times = range(want.cap or domain.times)
        return _matrices(None, {(0, t): (None, old) for t in times}, domain)
    if want.family == "capped":
        times = range(want.cap or domain.times)
        return _matrices(None, {(0, t): (old, None) for t in times}, domain)
    if want.family == "segment":
        return _matrices(old, {(0, 0): (old, new)}, domain)
    return _matrices(old, {(0, 0): (old, None)}, domain)


def _matrices(background: Any, changes: CellChanges, domain: Stream) -> tuple[Any, Any]:
    fill = (
        _two_contents(domain)[0]
        if domain.regular and background is None
        else background
    )
    sides = []
    for side in (0, 1):
        rows = [[fill] * domain.times for _ in range(domain.users)]
        for (user, time), contents in changes.items():
            rows[user][time] = contents[side]
        sides.append(tuple(tuple(row) for row in rows))
    return sides[0], sides[1]

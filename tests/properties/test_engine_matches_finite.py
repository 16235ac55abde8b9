"""The scalable engine against enumeration: never below, and equal where it says tight.

Two oracles: the brute force written here (breadth-first search over neighbours, fibres
contracted by hand) and the exact engine of the package.
"""

from __future__ import annotations

import math
import random
from collections import deque
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.composition.engine import compose_columns
from undertow.composition.finite import specialise
from undertow.composition.release import Claim, Release
from undertow.errors import MismatchError, VacuousGranularityError
from undertow.privacy.group import group
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces import influence
from undertow.spaces.base import Granularity
from undertow.spaces.change import Column
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.influence import _family as pairs_influence
from undertow.spaces.influence import _stream as stream_choice
from undertow.spaces.influence import _stream as stream_window
from undertow.spaces.influence import _table as table_influence
from undertow.spaces.metric import (
    AbsoluteDifference,
    LpNorm,
    SymmetricDifference,
    Values,
    ZeroMetric,
)
from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edge,
    Edit,
    Element,
    Event,
    FreeLunch,
    Group,
    LTrajectory,
    Node,
    Unbounded,
    User,
    WEvent,
)
from undertow.spaces.view import (
    At,
    Cells,
    CliqueCount,
    Degree,
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
    Window,
)

NOTIONS = (Pure, ZCDP, GDP, Approx)


# ---------------------------------------------------------------- brute force


def searched(neighbours, start):
    """Return the steps from `start` to everything it reaches."""
    found, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for there in neighbours(here):
            if there not in found:
                found[there] = found[here] + 1
                waiting.append(there)
    return found


class ViewDistance:
    """The unit's distance between images, chains staying in the range of the view."""

    def __init__(self, column, domain):
        self.column, self.domain = column, domain
        self.image = column.view.image(domain)
        self.values = {column.view.apply(d, domain) for d in domain.databases()}
        self.known = {}

    def steps(self, value):
        return self.values.intersection(self.column.unit.neighbours(value, self.image))

    def __call__(self, first, second):
        ours = self.column.view.apply(first, self.domain)
        theirs = self.column.view.apply(second, self.domain)
        unit = self.column.unit
        if ours == theirs:
            return 0
        if isinstance(unit, FreeLunch):
            return 1
        if not isinstance(unit, Granularity):
            return unit.distance(ours, theirs, self.image or Values())
        if ours not in self.known:
            self.known[ours] = searched(self.steps, ours)
        return self.known[ours].get(theirs, math.inf)


class CommonDistance:
    """The unit's distance on the domain, moves inside a fibre being free."""

    def __init__(self, column, domain):
        view, unit = column.view, column.unit
        self.fibre = {d: view.apply(d, domain) for d in domain.databases()}
        members = {}
        for database, label in self.fibre.items():
            members.setdefault(label, []).append(database)
        if isinstance(unit, FreeLunch):
            self.steps = lambda label: members
        else:
            around = {
                label: {
                    self.fibre[other]
                    for database in databases
                    for other in unit.neighbours(database, domain)
                }
                for label, databases in members.items()
            }
            self.steps = around.__getitem__
        self.known = {}

    def __call__(self, first, second):
        start, end = self.fibre[first], self.fibre[second]
        if start == end:
            return 0
        if start not in self.known:
            self.known[start] = searched(self.steps, start)
        return self.known[start].get(end, math.inf)


def measured(column, domain):
    kind = ViewDistance if column.setting == "view" else CommonDistance
    return kind(column, domain)


def price(loss, distance):
    """Return the additive cost coordinates of a loss at a distance."""
    if distance == 0:
        return (0, 0)
    if distance == math.inf:
        return (math.inf, math.inf)
    distance = Fraction(distance)
    first = loss.exact_parameters()[0]
    if isinstance(loss, Pure):
        return (first * distance, 0)
    if isinstance(loss, Approx):
        return group(loss, distance).exact_parameters()
    return (first * distance**2, 0)


def brute_force(domain, target, columns, losses, releases):
    """Return, for every different neighbour pair, the costs its claims allow."""
    distances = [measured(column, domain) for column in columns]
    seen = {}
    for first in domain.databases():
        for second in target.neighbours(first, domain):
            key = tuple(distance(first, second) for distance in distances)
            if key not in seen:
                seen[key] = allowed(key, losses, releases)
    return list(seen.values())


def allowed(distances, losses, releases):
    """Return the totals over all ways of choosing one claim per release."""
    by_release = {}
    for distance, loss, release in zip(distances, losses, releases, strict=True):
        by_release.setdefault(release, []).append(price(loss, distance))
    return [
        tuple(sum(cost[k] for cost in chosen) for k in (0, 1))
        for chosen in product(*by_release.values())
    ]


# ---------------------------------------------------------------- random cases


def draw_subset(rng, items, *, least=1):
    items = list(items)
    return rng.sample(items, rng.randint(least, len(items)))


def table_case(rng):
    cells = ("a", "b", "c")[: rng.randint(1, 3)]
    size = rng.choice([{"max_size": 2}, {"max_size": 3}, {"size": 2}, {"size": 3}])
    shape = rng.choice(["plain", "plain", "multi", "attributes"])
    if shape == "multi":
        most = rng.randint(1, 2)
        domain = Table(cells, multi=True, max_cells=most, values_per_cell=1, max_size=2)
        if most == 1 and rng.random() < 0.5:
            domain = Table(
                cells, multi=True, max_cells=1, values_per_cell=2, max_size=2
            )
    elif shape == "attributes":
        attributes = {"x": (0, 1), "cell": cells}
        domain = Table(cells, attributes=attributes, max_size=2)
        if rng.random() < 0.3:
            domain = Table(attributes={"x": (0, 1), "y": (0, 1)}, **{"size": 2})
    else:
        domain = Table(cells, values_per_cell=rng.randint(1, 2), **size)
    targets = [Unbounded(), Bounded(), Edit(), FreeLunch(), Group(Bounded(), 2)]
    targets += [Group(Unbounded(), 2)]
    units = [Unbounded(), Bounded(), Edit(), FreeLunch(), Group(Unbounded(), 2)]
    if shape == "attributes":
        targets += [Attribute()] * 3
        units += [Attribute()] * 2

    def column():
        setting, unit = rng.choice(["view", "common"]), rng.choice(units)
        pick = rng.random()
        view = Identity()
        if domain.cells and pick < 0.7:
            statistic = rng.choice(["records", "records", "count"])
            view = Select(*draw_subset(rng, cells), statistic=statistic)
            if statistic == "count" and setting == "view":
                unit = rng.choice([AbsoluteDifference(), FreeLunch()])
        elif domain.attributes and pick < 0.95:
            view = Project(*draw_subset(rng, domain.attribute_names))
        if setting == "view" and view == Identity() and rng.random() < 0.2:
            unit = rng.choice([SymmetricDifference(), ZeroMetric()])
        return Column(view, unit, setting)

    return domain, rng.choice(targets), column


def stream_case(rng):
    shapes = [(1, 2), (2, 2), (1, 3)] * 3 + [(2, 3), (3, 2), (1, 4)]
    users, times = rng.choice(shapes)
    regular = users * times > 4 or rng.random() < 0.4
    values = ("p", "q")[: 2 if regular else rng.randint(1, 2)]
    clusters = None
    if rng.random() < 0.3:
        clusters = {v: rng.choice("AB") for v in values}
    domain = Stream(users, times, regular=regular, values=values, clusters=clusters)
    targets = [
        Event(),
        WEvent(2),
        WEvent(3),
        WEvent(2, single_user=True),
        LTrajectory(2),
        LTrajectory(2, periodic=True),
        User(),
        FreeLunch(),
        Group(Event(), 2),
    ]
    units = [
        Event(),
        WEvent(2),
        WEvent(2, single_user=True),
        LTrajectory(2),
        LTrajectory(2, periodic=True),
        User(),
        FreeLunch(),
        Group(Event(), 2),
    ]
    if not regular:
        targets += [
            Event(add_remove=True),
            User(add_remove=True),
            User(max_times=1),
            User(max_times=2),
            User(max_times=1, add_remove=True),
        ]
        units += [Event(add_remove=True), User(add_remove=True), User(max_times=1)]
    if clusters:
        targets += [Element()] * 3
        units += [Element()] * 2

    def column():
        setting, unit = rng.choice(["view", "common"]), rng.choice(units)
        views = [
            Identity(),
            At(rng.randrange(times)),
            At(rng.randrange(times)),
            Window(0, rng.randint(1, times)),
            Times(draw_subset(rng, range(times))),
            Users(draw_subset(rng, range(users))),
            Cells(draw_subset(rng, range(users)), draw_subset(rng, range(times))),
        ]
        if users * times <= 4:  # the image has gaps, hence many more databases
            views.append(Locations(draw_subset(rng, values)))
        return Column(rng.choice(views), unit, setting)

    return domain, rng.choice(targets), column


def graph_case(rng):
    vertices = rng.randint(2, 4)
    cap = rng.choice([None, 1, 2])
    domain = Graph(vertices, max_degree=cap)
    pairs = list(combinations(range(vertices), 2))

    def column():
        setting = rng.choice(["view", "common"])
        unit = rng.choice([Edge(), Node(), FreeLunch()])
        vertex = rng.randrange(vertices)
        views = [
            Identity(),
            Degree(vertex),
            Degree(vertex),
            IncidentEdges(vertex),
            VertexPairs(draw_subset(rng, pairs)),
            CliqueCount(rng.randint(3, 4)),
        ]
        view = rng.choice(views)
        if setting == "view" and isinstance(view, Degree):
            unit = rng.choice([AbsoluteDifference(), FreeLunch()])
        if setting == "view" and isinstance(view, CliqueCount):
            unit = rng.choice([LpNorm(1), LpNorm(2), FreeLunch()])
        return Column(view, unit, setting)

    targets = [Edge(), Node(), FreeLunch(), Group(Edge(), 2)]
    return domain, rng.choice(targets), column


def rows_case(rng):
    free = rng.random() < 0.4
    if rng.random() < 0.5:
        domain = Rows(rng.randint(1, 3), values=(0, 1, 2)[: rng.randint(2, 3)])
        if free:
            domain = Rows(rng.randint(1, 3), values=(0, 1), free_ids=True)
    else:
        domain = Rows(2, attributes={"x": (0, 1), "y": (0, 1)}, free_ids=free)
    targets = [Bounded(ordered=True), BoundedById(), User(), FreeLunch()]
    targets += [Group(BoundedById(), 2)]
    units = [Bounded(ordered=True), BoundedById(), User(), FreeLunch(), Edit()]
    if free:
        targets += [Unbounded(), Edit(), User(add_remove=True)]
        units += [Unbounded(), User(add_remove=True)]
    if domain.attributes:
        targets += [Attribute()] * 2
        units += [Attribute()]

    def column():
        of = rng.randint(1, 2)
        block = rng.randrange(of)
        views = [
            Identity(),
            Ids(draw_subset(rng, domain.ids)),
            RandomBlock(block, of, "salt"),
            RowPosition(block, of),
            SortedPosition(block, of),
        ]
        if domain.attributes:
            views += [Project(*draw_subset(rng, "xy"))] * 3
        return Column(
            rng.choice(views), rng.choice(units), rng.choice(["view", "common"])
        )

    return domain, rng.choice(targets), column


CASES = {
    "table": table_case,
    "stream": stream_case,
    "graph": graph_case,
    "rows": rows_case,
}


def draw_loss(rng, notion):
    amount = Fraction(rng.randint(0, 9), 10)
    if notion is Approx:
        return Approx(amount, Fraction(rng.randint(0, 3), 1000))
    return notion(amount)


def draw_plan(rng, kind):
    domain, target, column = CASES[kind](rng)
    notion = rng.choice(NOTIONS)
    columns, losses, releases = [], [], []
    for release in range(rng.randint(1, 4)):
        first = column()
        for claim in range(rng.choice([1, 1, 1, 2])):
            other = first if claim == 0 else column()
            both = Column(first.view, other.unit, other.setting)
            usable = _usable(both, domain, notion)
            if not usable and claim == 0:
                both = Column(Identity(), FreeLunch(), "view")
                first = both
            if usable or claim == 0:
                columns.append(both)
                losses.append(draw_loss(rng, notion))
                releases.append(release)
    return domain, target, columns, losses, releases


def _usable(column, domain, notion):
    """Leave out claims that no release may make."""
    unit, image = column.unit, column.view.image(domain)
    if notion is Approx and not unit.canonical:
        return False
    if not isinstance(unit, Granularity):
        if column.setting == "common":
            return False
        if image is not None:
            return not isinstance(unit, AbsoluteDifference | LpNorm)
        vector = isinstance(column.view, CliqueCount)
        return isinstance(unit, LpNorm if vector else AbsoluteDifference)
    if column.setting == "view" and image is None:
        return isinstance(unit, FreeLunch)
    try:
        unit.require_domain(domain if column.setting == "common" else image)
    except MismatchError:
        return False
    return True


def composed(domain, target, columns, losses, releases):
    """Return the engine's result, or None where there is nothing to protect."""
    target.require_domain(domain)
    try:
        return compose_columns(
            domain, target, columns=columns, losses=losses, releases=releases
        )
    except VacuousGranularityError:
        return None


def checked(seed, kind, *, times=1):
    """Compare the engine with enumeration on one random plan."""
    domain, target, columns, losses, releases = draw_plan(random.Random(seed), kind)
    if times > 1:
        target = Group(target, times)
    plan = domain, target, columns, losses, releases
    result = composed(*plan)
    if result is None:
        return None
    pairs = brute_force(*plan)
    assert pairs or domain.count() == 1
    story = (seed, *plan, result.loss)
    found = result.loss.exact_parameters()
    assert all(any(within(cost, found) for cost in costs) for costs in pairs), story
    # With several approximate claims the choice per class and per pair may differ.
    single = len(set(releases)) == len(releases) or not isinstance(losses[0], Approx)
    if result.tight and single and pairs:
        best = [max(min(costs)[k] for costs in pairs) for k in (0, 1)]
        if math.inf in best:
            assert result.loss.is_infinite, story
        else:
            assert all(map(same, found, best)), story
    return result.tight


def within(cost, found):
    """Return whether a guarantee of `found` covers a pair that costs `cost`."""
    if found[0] == math.inf:
        return True
    return all(
        mine >= theirs or (mine >= 1 and k == 1)
        for k, (mine, theirs) in enumerate(zip(found, cost, strict=False))
    )


def same(mine, theirs):
    return mine == theirs or math.isclose(mine, theirs, rel_tol=1e-12)


# ---------------------------------------------------------------- properties

KINDS = ("table", "stream", "graph", "rows")


@pytest.mark.parametrize(
    ("kind", "plans"), [("table", 100), ("stream", 40), ("graph", 100), ("rows", 100)]
)
def test_the_engine_is_never_below_enumeration_and_equal_where_tight(kind, plans):
    outcomes = [checked(seed, kind) for seed in range(plans)]
    assert outcomes.count(True) > plans // 5


@given(seed=st.integers(0, 2**40), kind=st.sampled_from(KINDS))
def test_no_drawn_plan_is_below_enumeration(seed, kind):
    assert checked(seed, kind) in (True, False, None)  # raises where it is below


@pytest.mark.parametrize("kind", KINDS)
def test_classes_of_several_changes_are_never_below_enumeration(kind, monkeypatch):
    monkeypatch.setattr(influence, "_COMPARED_PAIRS", -1)
    for seed in range(300, 315):
        checked(seed, kind, times=2 + seed % 5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_classes_of_several_changes_are_never_below(kind, monkeypatch):
    monkeypatch.setattr(influence, "_COMPARED_PAIRS", -1)
    for seed in range(2000, 2200):
        checked(seed, kind, times=2 + seed % 5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_plans_are_never_below_enumeration(kind):
    plans = 400 if kind == "stream" else 1500
    outcomes = [checked(seed, kind) for seed in range(100_000, 100_000 + plans)]
    assert outcomes.count(True) > plans // 5


@pytest.mark.parametrize(
    ("kind", "plans"), [("table", 60), ("stream", 20), ("graph", 40), ("rows", 40)]
)
def test_bounds_for_large_domains_hold_on_small_ones(kind, plans, monkeypatch):
    # Nothing is listed any more, so the routes for large domains are taken.
    monkeypatch.setattr(stream_choice, "_LISTED_SETS", 0)
    monkeypatch.setattr(stream_window, "_LISTED_WINDOWS", 0)
    monkeypatch.setattr(table_influence, "_LISTED_SETS", -1)
    monkeypatch.setattr(pairs_influence, "_FRONT_LIMIT", 0)
    outcomes = [checked(seed, kind) for seed in range(10_000, 10_000 + plans)]
    assert outcomes.count(True) > plans // 5


@pytest.mark.slow
def test_settling_for_the_pruning_bound_is_never_below_enumeration(monkeypatch):
    monkeypatch.setattr(pairs_influence, "_WORK_LIMIT", -1)
    outcomes = [checked(seed, "table") for seed in range(20_000, 20_040)]
    assert outcomes.count(False) > 0


@pytest.mark.parametrize(
    ("kind", "plans"), [("table", 40), ("stream", 20), ("graph", 40), ("rows", 40)]
)
def test_the_engine_agrees_with_the_exact_engine(kind, plans):
    compared = 0
    for seed in range(30_000, 30_000 + plans):
        plan = draw_plan(random.Random(seed), kind)
        domain, target, columns, losses, releases = plan
        result = composed(*plan)
        if result is None or domain.count() == 1:
            continue
        made = [
            Release.with_claims(
                f"r{name}",
                [
                    Claim(loss, column.unit, column.setting)
                    for column, loss, owner in zip(
                        columns, losses, releases, strict=True
                    )
                    if owner == name
                ],
                view=columns[releases.index(name)].view,
            )
            for name in sorted(set(releases))
        ]
        exact = specialise(made, target, domain=domain, on_infinite="report").loss
        if isinstance(exact, Approx) and len(set(releases)) < len(releases):
            continue
        if exact.is_infinite:
            assert result.loss.is_infinite, (seed, plan)
        else:
            assert exact.within(result.loss), (seed, plan)
            assert exact == result.loss or not result.tight, (seed, plan)
        compared += 1
    assert compared > plans // 2


# The rows of the table of closed forms: each must be tight, and equal to enumeration.

PEOPLE = Table(("a", "b", "c"), values_per_cell=2, max_size=2)
KINDS = Table(("a", "b", "c"), values_per_cell=1, max_size=2)
SEVERAL = Table(("a", "b", "c"), multi=True, max_cells=1, values_per_cell=2, max_size=2)
TREE = Table(("a1", "a2", "b1"), values_per_cell=2, max_size=2)
HOURS = Stream(2, 3, regular=True, values=("p", "q"))
GAPS = Stream(1, 3, values=("p", "q"))
FRIENDS = Graph(4)
CAPPED = Graph(4, max_degree=1)
ITEMS = Table(attributes={"x": (0, 1), "y": (0, 1), "z": (0, 1)}, size=2)
NODES = (("a1", "a2", "b1"), ("a1", "a2"), ("b1",), ("a1",), ("a2",))


def selected(*sets, unit, setting, statistic="records"):
    return [Column(Select(*s, statistic=statistic), unit, setting) for s in sets]


def hourly(unit=Event(), *, times=3):  # noqa: B008  # a frozen value
    return [Column(At(time), unit, "view") for time in range(times)]


def degrees():
    return [Column(Degree(v), AbsoluteDifference(), "view") for v in range(4)]


OVERLAPPING = ("ab", "bc", "c")
TIGHT = {
    "unbounded signatures": (
        PEOPLE,
        Unbounded(),
        selected(*OVERLAPPING, unit=Unbounded(), setting="view"),
    ),
    "bounded signatures, common bounded": (
        PEOPLE,
        Bounded(),
        selected(*OVERLAPPING, unit=Bounded(), setting="common"),
    ),
    "bounded signatures, unit unbounded": (
        PEOPLE,
        Bounded(),
        selected(*OVERLAPPING, unit=Unbounded(), setting="view"),
    ),
    "bounded signatures, one value per cell": (
        KINDS,
        Bounded(),
        selected(*OVERLAPPING, unit=Unbounded(), setting="common"),
    ),
    "partition, bounded in the view setting": (
        PEOPLE,
        Bounded(),
        selected("a", "b", "c", unit=Bounded(), setting="view"),
    ),
    "overlap at most m, unbounded": (
        SEVERAL,
        Unbounded(),
        selected("a", "b", "c", unit=Unbounded(), setting="view"),
    ),
    "overlap at most m, bounded": (
        SEVERAL,
        Bounded(),
        selected("a", "b", "c", unit=Bounded(), setting="common"),
    ),
    "overlap at most m, twice": (
        SEVERAL,
        Bounded(),
        selected("a", "b", "c", unit=Unbounded(), setting="view"),
    ),
    "event by time": (HOURS, Event(), hourly()),
    "windows": (HOURS, WEvent(2), hourly()),
    "periodic segments": (HOURS, LTrajectory(2), hourly()),
    "recorded segments": (GAPS, LTrajectory(2), hourly()),
    "user": (HOURS, User(), hourly()),
    "user with a cap, replaced": (GAPS, User(max_times=1), hourly()),
    "user with a cap, leaving": (GAPS, User(add_remove=True, max_times=1), hourly()),
    "edge, one view per vertex": (FRIENDS, Edge(), degrees()),
    "node, one view per vertex": (FRIENDS, Node(), degrees()),
    "node under a cap": (CAPPED, Node(), degrees()),
    "attribute by column": (
        ITEMS,
        Attribute(),
        [Column(Project(n), Bounded(), "view") for n in "xyz"],
    ),
    "bounded by column": (
        ITEMS,
        Bounded(),
        [Column(Project(n), Bounded(), "view") for n in "xyz"],
    ),
    "hierarchy of counts, bounded": (
        TREE,
        Bounded(),
        selected(*NODES, unit=Bounded(), setting="common", statistic="count"),
    ),
    "hierarchy of records, bounded": (
        TREE,
        Bounded(),
        selected(*NODES, unit=Bounded(), setting="common"),
    ),
    "hierarchy, unit unbounded": (
        TREE,
        Bounded(),
        selected(*NODES, unit=Unbounded(), setting="common"),
    ),
    "hierarchy, unbounded": (
        TREE,
        Unbounded(),
        selected(*NODES, unit=Unbounded(), setting="common"),
    ),
}


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "searched"])
@pytest.mark.parametrize("notion", NOTIONS, ids=lambda notion: notion.notion)
@pytest.mark.parametrize("name", TIGHT)
def test_closed_forms_are_tight_and_equal_to_enumeration(
    name, notion, listed, monkeypatch
):
    if not listed:
        monkeypatch.setattr(stream_choice, "_LISTED_SETS", 0)
        monkeypatch.setattr(table_influence, "_LISTED_SETS", -1)
    domain, target, columns = TIGHT[name]
    if notion is Approx and not all(c.unit.canonical for c in columns):
        columns = [Column(c.view, Edge(), "common") for c in columns]
    amounts = [Fraction(3 + 2 * j % 7, 10) for j in range(len(columns))]
    # Delta in the order of epsilon, so that one class is the worst in both.
    losses = [Approx(x, x / 1000) if notion is Approx else notion(x) for x in amounts]
    result = compose_columns(domain, target, columns=columns, losses=losses)
    pairs = brute_force(domain, target, columns, losses, range(len(columns)))
    best = [max(costs[0][k] for costs in pairs) for k in (0, 1)]
    assert result.tight
    if math.inf in best:
        assert result.loss.is_infinite
    else:
        assert all(map(same, result.loss.exact_parameters(), best))

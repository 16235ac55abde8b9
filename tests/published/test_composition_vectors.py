"""Published and derived numbers of composition, by the id of the vector.

Where a domain is too large to enumerate, a small one of the same shape is enumerated
in full, and the printed number is computed from explicit pairs at full size.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from undertow.composition.finite import (
    FiniteEngine,
    at_distance,
    neighbour_pairs,
    pairwise_loss,
    specialise,
    specialise_metric,
)
from undertow.composition.release import Claim, Release
from undertow.composition.theorems import (
    ApproxTerm,
    bounded_parallel,
    bounded_profile,
    check_adaptive_step,
    compose_common_approx,
    compose_gauss,
    compose_pure,
    disintegrate,
    heaviest_move,
    move_cost_matrix,
    overlap_loss,
    parallel_max,
    parallel_profile,
    reciprocal_lower_bound,
    sequential,
    top_m_loss,
)
from undertow.correlation.finite import JointTable, exact_leakage
from undertow.errors import InfiniteLossError
from undertow.privacy.divergence import exact_loss_matrix
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.base import View
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.metric import AbsoluteDifference, Scaled
from undertow.spaces.quotient import Dependency
from undertow.spaces.unit import (
    Bounded,
    BoundedById,
    Edge,
    Event,
    Node,
    Unbounded,
    User,
    WEvent,
)
from undertow.spaces.view import Degree, Identity, Ids, Select, Window

FOUR = ("0.5", "1.0", "0.3", "0.8")


@dataclass(frozen=True)
class OneBlock:
    """The certificate of a compatible, non-expansive partition."""

    touched: int = 1
    nonexpansive: bool = True
    source: str = "by record value, unbounded"


def release(loss, *, unit, view, setting):
    return Release("r", loss, unit=unit, view=view, setting=setting)


def per_cell(losses, cells, *, unit, setting):
    return [
        release(loss, unit=unit, view=Select(cell), setting=setting)
        for loss, cell in zip(losses, cells, strict=True)
    ]


def pure(*values):
    return [Pure(value) for value in values]


def changed(base, cells, value="b"):
    """Return a stream that differs from `base` in the given (user, time) cells."""
    rows = [list(row) for row in base]
    for user, time in cells:
        rows[user][time] = value
    return tuple(map(tuple, rows))


def test_T_5_1_max_of_the_sum_not_sum_of_the_maxima():
    small = Stream(1, 6, regular=True, values=("a", "b"))
    halves = [
        release(Pure("0.1"), unit=Event(), view=Window(start, 3), setting="view")
        for start in (0, 3)
    ]
    target = WEvent(3)
    together = specialise(halves, target, domain=small).loss
    apart = [specialise([half], target, domain=small).loss for half in halves]
    assert together == Pure("0.3")
    assert sequential(apart) == Pure("0.6")

    day = Stream(3, 24, regular=True, values=("a", "b"))
    quiet = (("a",) * 24,) * 3
    engine = FiniteEngine(
        [
            release(Pure("0.1"), unit=Event(), view=Window(start, 12), setting="view")
            for start in (0, 12)
        ],
        day,
    )
    windows = [
        changed(quiet, [(u, t + u) for u in range(3)]) for t in range(24 - 3 + 1)
    ]
    losses = {engine.pairwise_loss((quiet, other)) for other in windows}
    assert losses == {Pure("0.3")}


OVERLAPPING = (Select("a", "b"), Select("b", "c"), Select("c"))


@pytest.mark.parametrize(
    ("unit", "setting", "target", "expected"),
    [
        pytest.param(Unbounded(), "view", Unbounded(), "0.8", id="T-5.2-unbounded"),
        pytest.param(Unbounded(), "view", Bounded(), "1.3", id="T-5.2-bounded"),
        pytest.param(Bounded(), "common", Bounded(), "1.0", id="T-5.2-common"),
    ],
)
def test_T_5_2_overlapping_views(unit, setting, target, expected):
    table = Table(("a", "b", "c"), values_per_cell=1, max_size=2)
    releases = [
        release(Pure(epsilon), unit=unit, view=view, setting=setting)
        for epsilon, view in zip(("0.5", "0.3", "0.2"), OVERLAPPING, strict=True)
    ]
    assert specialise(releases, target, domain=table).loss == Pure(expected)


def test_T_5_3_sequential_losses_add():
    assert sequential(pure(*FOUR)) == Pure("2.6")
    assert sequential([Pure("0.1")] * 24) == Pure("2.4")
    table = Table(("a", "b"), values_per_cell=1, max_size=2)
    whole = [
        release(Pure(epsilon), unit=Unbounded(), view=Identity(), setting="view")
        for epsilon in FOUR
    ]
    assert specialise(whole, Unbounded(), domain=table).loss == Pure("2.6")


MIXED = (("0.5", User()), ("0.1", Event()), ("0.3", WEvent(3)))


def test_T_5_4_one_sum_of_three_granularities_read_at_four():
    day = Stream(3, 24, regular=True, values=("a", "b"))
    quiet = (("a",) * 24,) * 3
    mixed = compose_pure([(Scaled(unit, eps), Identity()) for eps, unit in MIXED])
    changes = {
        "event": [(0, 5)],
        "user": [(0, t) for t in range(24)],
        "w-event": [(0, 5), (1, 6), (2, 7)],
        "single user": [(0, 5), (0, 6), (0, 7)],
    }
    loss = {
        name: mixed.exact_distance((quiet, changed(quiet, cells)), domain=day)
        for name, cells in changes.items()
    }
    assert loss == {
        "event": Fraction("0.9"),
        "user": Fraction("5.3"),
        "w-event": Fraction("2.1"),
        "single user": Fraction("1.1"),
    }


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(Event(), "0.9", id="event"),
        pytest.param(User(), "1.4", id="user: 0.5 + 0.1*3 + 0.3*2"),
        pytest.param(WEvent(2), "1.5", id="w-event: 0.5*2 + 0.1*2 + 0.3"),
        pytest.param(WEvent(2, single_user=True), "1.0", id="single user"),
    ],
)
def test_T_5_4_on_an_enumerated_stream_of_two_users_and_three_times(target, expected):
    stream = Stream(2, 3, regular=True, values=("a", "b"))
    units = (("0.5", User()), ("0.1", Event()), ("0.3", WEvent(2)))
    mixed = compose_pure([(Scaled(unit, eps), Identity()) for eps, unit in units])
    value, witness = specialise_metric(mixed, target, domain=stream)
    assert value == Fraction(expected)
    assert target.are_neighbours(*witness, stream)


@pytest.mark.parametrize(
    ("target", "unit", "expected"),
    [("unbounded", "unbounded", 3), ("bounded", "bounded", 6)],
)
def test_T_5_5_twenty_hospitals_three_each(target, unit, expected):
    ones = [Pure(1)] * 20
    bound = overlap_loss(ones, 3, target=target, unit=unit, setting="common")
    assert bound == Pure(expected)
    assert sequential(ones) == Pure(20)


EIGHT = ("0.2", "0.5", "0.1", "0.4", "0.3", "0.25", "0.6", "0.05")


def test_T_5_6_top_three_and_top_six_of_eight():
    losses = pure(*EIGHT)
    kwargs = {"setting": "common"}
    assert overlap_loss(
        losses, 3, target="unbounded", unit="unbounded", **kwargs
    ) == Pure("1.5")
    assert overlap_loss(losses, 3, target="bounded", unit="bounded", **kwargs) == Pure(
        "2.25"
    )
    assert sequential(losses) == Pure("2.4")
    shifts = [GDP(mu) for mu in EIGHT]
    assert top_m_loss(shifts, 3).mu == pytest.approx(0.877496438739, abs=1e-12)
    assert top_m_loss(shifts, 6).mu == pytest.approx(0.981070843517, abs=1e-12)


@pytest.mark.parametrize(
    ("target", "unit", "setting"),
    [
        (Unbounded(), Unbounded(), "view"),
        (Bounded(), Bounded(), "common"),
        (Bounded(), Unbounded(), "view"),
        (Bounded(), Unbounded(), "common"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_overlap_closed_forms_are_attained_on_enumerated_cohorts(target, unit, setting):
    """Four cohorts, at most two each; 2.2 for unbounded units under replacement."""
    cells, epsilons, m = tuple("abcd"), ("0.6", "0.5", "0.3", "0.2"), 2
    table = Table(cells, multi=True, max_cells=m, values_per_cell=2, max_size=1)
    releases = per_cell(pure(*epsilons), cells, unit=unit, setting=setting)
    exact = specialise(releases, target, domain=table).loss
    bound = overlap_loss(pure(*epsilons), m, target=target, unit=unit, setting=setting)
    expected = {
        ("unbounded", "unbounded"): "1.1",
        ("bounded", "bounded"): "1.6",
        ("bounded", "unbounded"): "2.2",
    }
    assert exact == bound == Pure(expected[target.name, unit.name])


def degree_releases(vertices, loss):
    return [
        release(loss, unit=AbsoluteDifference(), view=Degree(v), setting="view")
        for v in range(vertices)
    ]


def test_T_5_8_degrees_at_node_level_on_all_capped_graphs_of_five_vertices():
    graph, theta = Graph(5, max_degree=2), 2
    by_epsilon = FiniteEngine(degree_releases(5, Pure("0.1")), graph)
    assert by_epsilon.specialise(Edge()).loss == Pure("0.2")
    assert by_epsilon.specialise(Node()).loss == Pure(Fraction(2 * theta, 10))
    by_mu = FiniteEngine(degree_releases(5, GDP("0.1")), graph)
    assert by_mu.specialise(Edge()).loss.mu == pytest.approx(0.141421356237, abs=1e-12)
    node = by_mu.specialise(Node()).loss
    assert node == GDP.from_square(Fraction(theta + theta**2, 100))


def test_T_5_8_degrees_at_node_level_at_full_size():
    graph, theta = Graph(1000, max_degree=20), 20
    empty, star = frozenset(), frozenset((0, v) for v in range(1, theta + 1))
    pair = (empty, star)
    epsilon = pairwise_loss(degree_releases(1000, Pure("0.1")), pair, domain=graph)
    assert epsilon == Pure("4.0")
    mu = pairwise_loss(degree_releases(1000, GDP("0.1")), pair, domain=graph)
    assert mu.mu == pytest.approx(2.049390153192, abs=1e-12)
    # |A symmetric difference B| + ||A| - |B|| over all sizes and overlaps.
    moves = [
        (a + b - 2 * both) + abs(a - b)
        for a in range(theta + 1)
        for b in range(theta + 1)
        for both in range(min(a, b) + 1)
    ]
    assert max(moves) == 2 * theta
    assert 2 * theta * min(2 * theta, 999) / 20 / 10 == 8.0  # transfer from edge level


@dataclass(frozen=True)
class Nearest(View):
    """The place of a district nearest to its lower end; the middle if empty."""

    cells: tuple[int, ...]

    @property
    def name(self):
        return f"nearest of {self.cells}"

    def apply(self, database, domain):
        inside = [place for place in database if place in self.cells]
        return min(inside, default=(min(self.cells) + max(self.cells)) / 2)

    def image(self, domain):
        return None

    def require_domain(self, domain):
        assert isinstance(domain, Table)


def test_T_5_11_ambulances_move_one_district_only():
    north, south = (0, 10), (20, 30)  # two districts of diameter L = 10
    town = Table(north + south, values_per_cell=1, max_size=3)
    releases = [
        release(Pure(1), unit=Unbounded(), view=Select(*place), setting="view")
        for place in (north, south)
    ] + [
        release(Pure(1), unit=AbsoluteDifference(), view=Nearest(p), setting="view")
        for p in (north, south)
    ]
    result = specialise(releases, Unbounded(), domain=town)
    assert result.loss == Pure(11)
    assert sum(loss.epsilon > 0 for loss in result.contributions) == 2


def test_T_6_1_bounded_blocks_have_no_finite_loss():
    table = Table(("a", "b"), values_per_cell=1, size=3)
    sizes = per_cell(pure(0, 0), ("a", "b"), unit=Bounded(), setting="view")
    with pytest.raises(InfiniteLossError) as caught:
        specialise(sizes, Bounded(), domain=table)
    first, second = caught.value.witness
    assert Bounded().are_neighbours(first, second, table)
    assert first.count("a") != second.count("a")
    shown = (("a", "a", "a"), ("a", "a", "b"))
    assert pairwise_loss(sizes, shown, domain=table) == Pure(math.inf)
    reported = specialise(sizes, Bounded(), domain=table, on_infinite="report")
    assert reported.loss == Pure(math.inf)


def test_T_6_2_unbounded_blocks_cost_the_largest():
    cells = ("N", "S", "E", "W")
    table = Table(cells, values_per_cell=1, max_size=2)
    releases = per_cell(pure(*FOUR), cells, unit=Unbounded(), setting="view")
    assert specialise(releases, Unbounded(), domain=table).loss == Pure(1)
    assert parallel_max(pure(*FOUR), certificate=OneBlock()) == Pure(1)


def test_T_6_4_blocks_by_stable_id_cost_the_largest():
    rows = Rows((1, 2, 3, 4, 5, 6), values=(0, 1))
    releases = [
        release(Pure(epsilon), unit=BoundedById(), view=Ids(ids), setting="view")
        for epsilon, ids in (("0.4", (1, 3, 5)), ("0.9", (2, 4, 6)))
    ]
    assert specialise(releases, BoundedById(), domain=rows).loss == Pure("0.9")


def test_T_7_1_bounded_disjoint_records_cost_the_two_largest():
    losses, cells = pure(*FOUR), ("N", "S", "E", "W")
    assert bounded_parallel(losses) == Pure("1.8")
    assert heaviest_move(losses) == (1, 3)
    assert bounded_parallel(pure("0.4", "0.4", "0.4")) == Pure("0.8")
    assert bounded_parallel(pure("0.7")) == Pure("0.7")
    assert bounded_parallel(pure(1, "0.1", "0.1")) == Pure("1.1")
    assert bounded_parallel(pure(1, "0.1", "0.1"), unit="unbounded") == Pure(2)
    costs = move_cost_matrix(losses)
    assert (costs[0][2], costs[0][0]) == (Pure("0.8"), Pure("0.5"))

    fixed = Table(cells, values_per_cell=1, size=2)
    releases = per_cell(losses, cells, unit=Bounded(), setting="common")
    result = specialise(releases, Bounded(), domain=fixed)
    assert result.loss == Pure("1.8")
    moved = {r for d in result.witness for r in d} & {"S", "W"}
    assert moved == {"S", "W"}
    free = Table(cells, values_per_cell=1, max_size=2)
    assert specialise(releases, Unbounded(), domain=free).loss == Pure(1)


def test_T_7_1_unbounded_units_cost_twice_the_largest_under_replacement():
    """The two-largest rule needs bounded claims: 2.0, not 1.1."""
    table = Table(("a", "b", "c"), values_per_cell=2, size=2)
    releases = per_cell(pure(1, "0.1", "0.1"), "abc", unit=Unbounded(), setting="view")
    assert specialise(releases, Bounded(), domain=table).loss == Pure(2)


def test_T_7_2_the_identity_view_is_sequential_composition():
    table = Table(("a", "b"), values_per_cell=1, size=3)
    releases = [
        release(Pure(epsilon), unit=Bounded(), view=Identity(), setting="common")
        for epsilon in FOUR
    ]
    engine = FiniteEngine(releases, table)
    for pair in itertools.combinations(table.databases(), 2):
        steps = Bounded().distance(*pair, table)
        assert engine.pairwise_loss(pair) == at_distance(Pure("2.6"), steps)


LEAVES = ("d1b1", "d1b2", "d2b1", "d2b2")
TREE = (
    ("0.1", LEAVES),
    ("0.2", LEAVES[:2]),
    ("0.2", LEAVES[2:]),
    *(("0.3", (leaf,)) for leaf in LEAVES),
)


@pytest.mark.parametrize(
    ("statistic", "target", "expected"),
    [
        pytest.param("records", Unbounded(), "0.6", id="T-7.3-unbounded"),
        pytest.param("records", Bounded(), "1.1", id="T-7.3-sub-multiset"),
        pytest.param("count", Bounded(), "1.0", id="T-7.3-count"),
    ],
)
def test_T_7_3_hierarchical_counts(statistic, target, expected):
    table = Table(LEAVES, values_per_cell=1, max_size=2)
    releases = [
        Release.with_claims(
            f"count of {cells}",
            [Claim(Pure(eps), unit, "common") for unit in (Unbounded(), Bounded())],
            view=Select(*cells, statistic=statistic),
        )
        for eps, cells in TREE
    ]
    assert specialise(releases, target, domain=table).loss == Pure(expected)


def test_T_7_4_declaring_counts_lowers_pairs_but_not_the_maximum():
    table = Table(("a", "b", "c"), values_per_cell=1, size=2)

    def engine(statistic):
        return FiniteEngine(
            [
                release(
                    Pure(epsilon),
                    unit=Bounded(),
                    view=Select(*sorted(view.cells), statistic=statistic),
                    setting="common",
                )
                for epsilon, view in zip(
                    ("0.5", "0.3", "0.2"), OVERLAPPING, strict=True
                )
            ],
            table,
        )

    def move(one, two):
        return table.database([one, "a"]), table.database([two, "a"])

    records, counts = engine("records"), engine("count")
    assert records.specialise(Bounded()).loss == Pure("1.0")
    assert counts.specialise(Bounded()).loss == Pure("1.0")
    for pair, before, after in (
        (("a", "c"), "1.0", "1.0"),
        (("a", "b"), "0.8", "0.3"),
        (("b", "c"), "1.0", "0.7"),
    ):
        assert records.pairwise_loss(move(*pair)) == Pure(before)
        assert counts.pairwise_loss(move(*pair)) == Pure(after)


def test_T_7_5_gaussian_blocks_add_two_squares():
    shifts = [GDP(mu) for mu in FOUR]
    assert bounded_parallel(shifts).mu == pytest.approx(1.280624847487, abs=1e-12)
    assert sequential(shifts).mu == pytest.approx(1.407124727947, abs=1e-12)
    assert parallel_max(shifts, certificate=OneBlock()) == GDP(1)
    table = Table(tuple("NSEW"), values_per_cell=1, size=2)
    releases = per_cell(shifts, "NSEW", unit=Bounded(), setting="common")
    assert specialise(releases, Bounded(), domain=table).loss == bounded_parallel(
        shifts
    )


@pytest.mark.parametrize("vector", ["T-7.6", "T-9.3"])
def test_T_7_6_zcdp_blocks_add_two_coefficients(vector):
    rhos = [ZCDP(rho) for rho in ("0.02", "0.05", "0.01", "0.04")]
    assert bounded_parallel(rhos) == ZCDP("0.09")
    assert sequential(rhos) == ZCDP("0.12")
    assert parallel_max(rhos, certificate=OneBlock()) == ZCDP("0.05")
    table = Table(tuple("NSEW"), values_per_cell=1, size=2)
    releases = per_cell(rhos, "NSEW", unit=Bounded(), setting="common")
    assert specialise(releases, Bounded(), domain=table).loss == ZCDP("0.09")


APPROX = [Approx("1.0", "1e-6"), Approx("0.5", "1e-5"), Approx("0.3", 0)]


def test_T_7_7_approximate_blocks_keep_their_pairs():
    assert bounded_parallel(APPROX) == Approx("1.5", "1.1e-5")
    profile = bounded_profile(APPROX)
    assert profile.pairs == (Approx("1.5", "1.1e-5"),)
    table = Table(("a", "b", "c"), values_per_cell=1, size=2)
    releases = per_cell(APPROX, "abc", unit=Bounded(), setting="common")
    result = specialise(releases, Bounded(), domain=table)
    assert result.loss == Approx("1.5", "1.1e-5")
    assert result.profile == profile


def test_T_7_8_two_unit_shifts_are_the_gaussian_histogram():
    """Bounded l2 sensitivity sqrt 2 of a histogram, at sigma 1."""
    assert bounded_parallel([GDP(1)] * 10).mu == pytest.approx(math.sqrt(2), abs=1e-12)
    table = Table(("a", "b", "c"), values_per_cell=1, size=2)
    counts = compose_gauss(
        [(AbsoluteDifference(), Select(c, statistic="count")) for c in "abc"]
    )
    pairs = list(neighbour_pairs(Bounded(), table))
    assert max(counts.square(pair, domain=table) for pair in pairs) == 2


def test_T_8_3_approximate_compatible_blocks():
    assert parallel_max(APPROX, certificate=OneBlock()) == Approx("1.0", "1e-5")
    profile = parallel_profile(APPROX, certificate=OneBlock())
    assert profile.pairs == (Approx("1.0", "1e-6"), Approx("0.5", "1e-5"))
    assert profile.as_pair() == Approx("1.0", "1e-5")


BUILT = Dependency(
    None, "construction", statement="each count receives its own cohort only"
)


def test_T_8_5_cohorts_at_distance_two_keep_their_own_distances():
    """Four hospitals, at most two each, every pair of databases of two records."""
    cells, one = tuple("abcd"), Approx(1, "1e-5")
    table = Table(cells, multi=True, max_cells=2, values_per_cell=1, size=2)
    releases = per_cell([one] * 4, cells, unit=Bounded(), setting="common")
    engine = FiniteEngine(releases, table)
    assert engine.specialise(Bounded()).loss == Approx(4, "4e-5")
    losses = [
        engine.pairwise_loss(pair)
        for pair in itertools.combinations(table.databases(), 2)
        if Bounded().distance(*pair, table) == 2
    ]
    worst = max(losses, key=lambda loss: loss.exact_parameters())
    assert worst == sequential([at_distance(one, 2)] * 4)
    assert worst.epsilon == 8
    assert worst.delta == pytest.approx(4e-5 * (1 + math.e), rel=1e-12)


def test_T_8_5_cohorts_at_full_size():
    one = Approx(1, "1e-5")
    neighbour = overlap_loss(
        [one] * 20, 3, target="bounded", unit="bounded", setting="common"
    )
    assert neighbour == Approx(6, "6e-5")
    for steps, pairwise, by_group in (
        (2, 2.230969097e-4, 2.426572761e-2),
        (3, 6.664402756e-4, 1.0),
    ):
        kept = sequential([at_distance(one, steps)] * 6)
        assert kept.epsilon == 6 * steps
        assert kept.delta == pytest.approx(pairwise, rel=1e-9)
        assert at_distance(neighbour, steps).delta == pytest.approx(by_group, rel=1e-9)


def test_T_8_5_agrees_with_the_composed_common_domain_metric():
    table = Table(tuple("abc"), multi=True, max_cells=1, values_per_cell=1, size=2)
    one = Approx(1, "1e-5")
    terms = [
        ApproxTerm.at_granularity(one, Bounded(), view=Select(cell)) for cell in "abc"
    ]
    composed = compose_common_approx(terms, dependency=BUILT)
    engine = FiniteEngine(
        per_cell([one] * 3, "abc", unit=Bounded(), setting="common"), table
    )
    for pair in itertools.combinations(table.databases(), 2):
        assert composed.loss(pair, domain=table) == engine.pairwise_loss(pair)


@pytest.mark.parametrize(
    ("removed", "expected", "linear"),
    [
        pytest.param((1, 1), math.sqrt(2), 2, id="T-10.11-one-in-each"),
        pytest.param((3, 4), 5.0, 7, id="T-10.11-three-and-four"),
    ],
)
def test_T_10_11_blocks_add_in_squares_at_larger_distances(removed, expected, linear):
    table = Table(("a", "b"), values_per_cell=1, max_size=7)
    full = table.database(["a"] * removed[0] + ["b"] * removed[1])
    releases = per_cell([GDP(1)] * 2, "ab", unit=Unbounded(), setting="view")
    mu = pairwise_loss(releases, (full, ()), domain=table).mu
    assert mu == pytest.approx(expected, abs=1e-12)
    assert Unbounded().distance(full, (), table) == linear


def test_T_11_1_the_declared_output_space_is_part_of_the_hypothesis():
    constant, publishes = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    step, nothing = {0: constant, 1: publishes}, np.zeros((2, 2))
    assert check_adaptive_step(step, {0}, bound=nothing) == []
    (violation,) = check_adaptive_step(step, {0, 1}, bound=nothing)
    assert (violation.part, violation.loss) == (1, math.inf)
    # The run itself only ever sees output 0: marginals and composition are 0-private.
    first = np.array([[1.0], [1.0]])
    joint = np.einsum("ds,dt->dst", first, np.array(step[0])).reshape(2, -1)
    assert exact_loss_matrix(joint).max() == 0
    assert exact_loss_matrix(step[0]).max() == 0


def test_T_11_2_composed_loss_lies_between_its_parts_and_their_sum():
    one = np.array([[0.7, 0.3], [0.4, 0.6]])
    two = np.array([[0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
    joint = np.einsum("ds,dt->dst", one, two).reshape(2, -1)
    parts = [exact_loss_matrix(table)[0, 1] for table in (one, two)]
    composed = exact_loss_matrix(joint)[0, 1]
    assert reciprocal_lower_bound(parts) <= composed <= sum(parts) + 1e-12


def housemates(agreement, epsilon=1.0, bins=2000):
    """Return the joint law of two equal bits and the noisy count, tails kept whole."""
    p, q = agreement / 2, (1 - agreement) / 2
    joint = np.array([[p, q], [q, p]])
    edges = np.linspace(0, 2, bins + 1)

    def law(count):
        cdf = np.where(
            edges < count,
            0.5 * np.exp(epsilon * (edges - count)),
            1 - 0.5 * np.exp(-epsilon * (edges - count)),
        )
        return np.diff(np.concatenate([[0.0], cdf, [1.0]]))

    channel = np.array([[law(0), law(1)], [law(1), law(2)]])
    return joint, channel


def test_T_12_4_correlation_beats_the_advantage_bound():
    joint, channel = housemates(0.9)
    table = JointTable(joint)
    sick, well = (table.given({0: v}).pmf @ channel[v] for v in (1, 0))
    advantage = 0.5 * np.abs(sick - well).sum()
    assert advantage == pytest.approx(0.568908502946, abs=1e-12)
    assert advantage == pytest.approx(0.9 * (1 - math.exp(-1)), abs=1e-12)
    bound = (math.e - 1) / (math.e + 1)
    assert bound == pytest.approx(0.462117157260, abs=1e-12)
    assert advantage > bound


@pytest.mark.parametrize(
    ("agreement", "expected"),
    [
        pytest.param(0.9, 1.776136585261, id="T-12.5"),
        pytest.param(0.5, 1.0, id="indep"),
    ],
)
def test_T_12_5_leakage_of_the_housemates(agreement, expected):
    joint, channel = housemates(agreement)
    leakage = exact_leakage(JointTable(joint), channel)
    assert leakage.value == pytest.approx(expected, abs=1e-11)
    knowing = exact_leakage(JointTable(joint), channel, adversaries="informed")
    assert knowing.value == pytest.approx(1.0, abs=1e-11)
    told = [channel[v, 1] for v in (1, 0)]  # the law of whoever knows the second record
    assert np.max(np.log(told[0] / told[1])) == pytest.approx(1.0, abs=1e-11)


def test_T_12_6_disintegration():
    prior = [0.5, 0.3, 0.2]
    split = disintegrate(prior, [1, 1, 2])
    assert split.weights[1] == pytest.approx(0.8)
    assert split.weights[2] == pytest.approx(0.2)
    assert split.conditionals[1] == pytest.approx((0.625, 0.375, 0))
    assert split.conditionals[2] == pytest.approx((0, 0, 1))
    assert sum(p * p for p in prior) == pytest.approx(0.38)

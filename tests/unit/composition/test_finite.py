"""The exact engine on enumerated domains."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from support.labels import Labels
from undertow.composition.finite import (
    ApproxProfile,
    FiniteEngine,
    at_distance,
    cheapest,
    exact_distance,
    meeting_notion,
    neighbour_pairs,
    one_notion,
    pairwise_loss,
    specialise,
    specialise_metric,
)
from undertow.composition.plan import Plan
from undertow.composition.release import Claim, Release
from undertow.composition.theorems import ComposedMetric, sequential
from undertow.errors import (
    AssumptionError,
    InfiniteLossError,
    MismatchError,
    NotionMismatchError,
    VacuousGranularityError,
)
from undertow.privacy.conversion import convert
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.domain import FiniteDomain, Stream, Table
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    MatrixMetric,
    Scaled,
    ZeroMetric,
)
from undertow.spaces.quotient import quotient_metric
from undertow.spaces.unit import Bounded, Event, Relation, Unbounded
from undertow.spaces.view import Identity, Locations, Select
from undertow.spaces.view.range import Pullback

TABLE = Table(("a", "b", "c"), values_per_cell=1, max_size=3)


def release(loss, *, unit, view=None, setting="view"):
    return Release("r", loss, unit=unit, view=view or Identity(), setting=setting)


def test_a_composed_loss_is_the_sum_of_what_each_release_sees():
    engine = FiniteEngine(
        [
            release(Pure("0.5"), unit=Unbounded(), view=Select("a", "b")),
            release(Pure("0.3"), unit=Unbounded(), view=Select("b", "c")),
        ],
        TABLE,
    )
    pair = (("a", "b"), ("c",))
    assert engine.distances(pair) == ((2,), (2,))
    assert engine.contributions(pair) == (Pure("1.0"), Pure("0.6"))
    assert engine.pairwise_loss(pair) == Pure("1.6")
    assert pairwise_loss(engine.releases, pair, domain=TABLE) == Pure("1.6")


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (Pure("0.1"), Pure("0.5")),
        (ZCDP("0.1"), ZCDP("1.3")),
        (GDP("0.1"), GDP.from_square("0.13")),
    ],
)
def test_each_notion_combines_distances_two_and_three_by_its_own_rule(loss, expected):
    domain = FiniteDomain(range(5))
    line = Relation("line", lambda x, y: abs(x - y) == 1)
    releases = [
        release(loss, unit=line),
        release(loss, unit=AbsoluteDifference(), view=Labels((0, 1, 3, 6, 9))),
    ]
    assert FiniteEngine(releases, domain).distances((0, 2)) == ((2,), (3,))
    assert pairwise_loss(releases, (0, 2), domain=domain) == expected


def test_approximate_losses_add_epsilons_and_grown_deltas():
    releases = [release(Approx(1, "1e-5"), unit=Unbounded())] * 2
    loss = pairwise_loss(releases, (("a",), ("b",)), domain=TABLE)
    assert loss.epsilon == 4
    assert loss.delta == pytest.approx(2e-5 * (1 + math.e), rel=1e-12)


def test_no_releases_cost_nothing():
    assert specialise([], Unbounded(), domain=TABLE).loss == Pure(0)


def test_zero_loss_is_not_free_across_components():
    raw_size = [release(Pure(0), unit=Bounded())]
    assert pairwise_loss(raw_size, (("a",), ("b",)), domain=TABLE) == Pure(0)
    assert pairwise_loss(raw_size, (("a",), ()), domain=TABLE) == Pure(math.inf)


def test_a_release_that_ignores_the_data_is_free_everywhere():
    ignored = [release(Pure(3), unit=ZeroMetric())]
    assert pairwise_loss(ignored, (("a",), ()), domain=TABLE) == Pure(0)


def test_a_raw_release_costs_infinity_unless_its_view_stays():
    raw = release(Pure(math.inf), unit=DiscreteMetric(), view=Select("a"))
    engine = FiniteEngine([raw], TABLE)
    assert engine.pairwise_loss((("b",), ("c",))) == Pure(0)
    assert engine.pairwise_loss((("b",), ("a",))) == Pure(math.inf)


def test_a_raw_release_in_a_pseudometric_is_refused():
    raw = SimpleNamespace(
        loss=Pure(math.inf), unit=ZeroMetric(), view=Identity(), setting="view"
    )
    with pytest.raises(AssumptionError, match="separates points, got zero"):
        FiniteEngine([raw], TABLE)


def test_an_approximate_loss_in_a_real_valued_unit_is_refused():
    loss = release(Approx(1, "1e-5"), unit=AbsoluteDifference())
    with pytest.raises(AssumptionError, match="canonical unit, got absolute"):
        FiniteEngine([loss], TABLE)


def test_approximate_and_gaussian_losses_do_not_meet():
    losses = [Approx(1, "1e-5"), GDP(1)]
    with pytest.raises(NotionMismatchError, match="got approx, gdp"):
        FiniteEngine([release(loss, unit=Unbounded()) for loss in losses], TABLE)


@pytest.mark.parametrize(
    ("losses", "notion"),
    [
        ((Pure(1), Approx(1, "1e-5")), Approx),
        ((Pure(1), GDP(1)), GDP),
        ((Pure(1), GDP(1), ZCDP(1)), ZCDP),
        ((), Pure),
    ],
)
def test_mixed_notions_are_converted_at_the_pair_before_the_sum(losses, notion):
    assert meeting_notion([[loss] for loss in losses]) is notion
    engine = FiniteEngine([release(x, unit=Unbounded()) for x in losses], TABLE)
    pair = (("a",), ("b",))
    expected = [convert(at_distance(loss, 2), notion) for loss in losses]
    assert engine.pairwise_loss(pair) == sequential(expected)


def test_the_strongest_notion_every_release_has_is_used():
    """A second claim in another notion neither blocks nor mixes into the sum."""
    both = Release.with_claims(
        "r",
        [Claim(x, Unbounded(), "view") for x in (Pure(1), Approx("0.2", "1e-5"))],
        view=Identity(),
    )
    gaussian = release(GDP(1), unit=Unbounded())
    engine = FiniteEngine([both, gaussian], TABLE)
    assert engine.notion is GDP
    assert engine.distances((("a",), ())) == ((1,), (1,))
    assert engine.pairwise_loss((("a",), ())) == convert(Pure(1), GDP) + GDP(1)


def test_an_approximate_loss_without_delta_is_pure():
    engine = FiniteEngine(
        [
            release(
                Approx(1, 0),
                unit=AbsoluteDifference(),
                view=Select("a", statistic="count"),
            )
        ],
        TABLE,
    )
    assert engine.notion is Pure
    assert engine.pairwise_loss((("a", "a"), ())) == Pure(2)
    raw = Approx(math.inf, 0)
    assert FiniteEngine([release(raw, unit=Unbounded())], TABLE).notion is Pure


def test_one_notion_refuses_two():
    assert one_notion([]) is Pure
    with pytest.raises(NotionMismatchError, match="got gdp and pure"):
        one_notion([Pure(1), GDP(1)])


def test_each_pair_pays_the_cheapest_claim_of_a_release():
    count = Release.with_claims(
        "count",
        [
            Claim(Pure(1), Unbounded(), "common"),
            Claim(Pure("1.5"), Bounded(), "common"),
        ],
        view=Identity(),
    )
    engine = FiniteEngine([count], TABLE)
    assert engine.pairwise_loss((("a",), ("b",))) == Pure("1.5")
    assert engine.pairwise_loss((("a",), ())) == Pure(1)


def test_claims_of_an_approximate_release_are_never_mixed():
    first, second = Approx(1, "1e-6"), Approx("0.5", "1e-5")
    both = Release.with_claims(
        "r", [Claim(x, Unbounded(), "view") for x in (first, second)], view=Identity()
    )
    assert pairwise_loss([both], (("a",), ()), domain=TABLE) == second
    assert cheapest([Approx(0, 1), first]) == first  # delta 1 promises nothing


def test_the_view_setting_measures_inside_the_image():
    """Databases 0-1-2 in a line; the image {0, 2} has no chain between its points."""
    domain = FiniteDomain(range(3))
    line = Relation("line", lambda x, y: abs(x - y) == 1)
    ends = release(Pure(1), unit=line, view=Labels((0, 0, 2)))
    assert pairwise_loss([ends], (0, 2), domain=domain) == Pure(math.inf)
    whole = release(Pure(1), unit=line, view=Labels((0, 0, 2)), setting="common")
    assert pairwise_loss([whole], (0, 2), domain=domain) == Pure(1)


def test_the_common_setting_closes_chains_of_fibres():
    """Points on a line with gaps 1, 10, 1 and the middle two in one fibre."""
    places = (0, 1, 11, 12)
    metric = MatrixMetric(range(4), [[abs(x - y) for y in places] for x in places])
    merged = release(
        Pure("0.5"), unit=metric, view=Labels((0, 1, 1, 2)), setting="common"
    )
    engine = FiniteEngine([merged], FiniteDomain(range(4)))
    assert engine.pairwise_loss((0, 3)) == Pure(1)  # 0.5 * (1 + 1), not 0.5 * 12
    assert engine.pairwise_loss((1, 2)) == Pure(0)


def test_the_quotient_agrees_with_the_closure_of_the_matrix():
    labels = (0, 1, 1, 2, 0, 3)
    domain = FiniteDomain(range(6))
    edges = {(0, 1), (2, 3), (3, 4), (4, 5)}
    graph = Relation("graph", lambda x, y: (min(x, y), max(x, y)) in edges)
    engine = FiniteEngine(
        [release(Pure(1), unit=graph, view=Labels(labels), setting="common")], domain
    )
    matrix = [[graph.distance(x, y, domain) for y in range(6)] for x in range(6)]
    expected = quotient_metric(np.array(matrix, dtype=float), np.array(labels))
    for x, y in itertools.product(range(6), repeat=2):
        assert engine.distances((x, y))[0][0] == expected[x, y]


def test_specialising_keeps_the_witness_and_each_share():
    releases = [
        release(Pure("0.5"), unit=Unbounded(), view=Select("a", "b")),
        release(Pure("0.3"), unit=Unbounded(), view=Select("b", "c")),
    ]
    result = specialise(releases, Unbounded(), domain=TABLE)
    assert result.loss == Pure("0.8")
    assert result.contributions == (Pure("0.5"), Pure("0.3"))
    first, second = result.witness
    assert abs(first.count("b") - second.count("b")) == 1
    assert result.profile is None


def test_a_target_without_neighbours_is_refused():
    fixed = Table(("a", "b"), values_per_cell=1, size=2)
    whole = [release(Pure(1), unit=Bounded())]
    with pytest.raises(VacuousGranularityError, match="got none"):
        specialise(whole, Unbounded(), domain=fixed)
    with pytest.raises(VacuousGranularityError):
        specialise_metric(Bounded(), Unbounded(), domain=fixed)


def test_an_infinite_loss_is_raised_with_its_pair_or_reported():
    whole = [release(Pure(1), unit=Bounded())]
    with pytest.raises(InfiniteLossError) as caught:
        specialise(whole, Unbounded(), domain=TABLE)
    assert Unbounded().are_neighbours(*caught.value.witness, TABLE)
    reported = specialise(whole, Unbounded(), domain=TABLE, on_infinite="report")
    assert reported.loss.is_infinite


def test_an_approximate_target_keeps_the_pairs_neighbours_attain():
    releases = [
        release(Approx(1, "1e-6"), unit=Unbounded(), view=Select("a")),
        release(Approx("0.5", "1e-5"), unit=Unbounded(), view=Select("b")),
    ]
    result = specialise(releases, Unbounded(), domain=TABLE)
    assert result.loss == Approx(1, "1e-5")
    assert result.profile == ApproxProfile((Approx(1, "1e-6"), Approx("0.5", "1e-5")))


def test_neighbour_pairs_come_once_each():
    pairs = list(neighbour_pairs(Unbounded(), TABLE))
    assert len(pairs) == len({frozenset(pair) for pair in pairs}) == 30
    assert all(Unbounded().are_neighbours(*pair, TABLE) for pair in pairs)


def test_a_view_that_does_not_fit_the_domain_is_refused():
    with pytest.raises((ValueError, MismatchError)):
        FiniteEngine([release(Pure(1), unit=Unbounded(), view=Select("z"))], TABLE)


def test_distances_stay_exact_through_scaling_and_views():
    tenth = Scaled(Pullback(Unbounded(), Select("a")), "0.1")
    pair = (("a", "a", "a"), ())
    assert exact_distance(tenth, pair, domain=TABLE) == Fraction(3, 10)
    thirds = ComposedMetric((Scaled(Unbounded(), "1/3"),) * 3)
    assert exact_distance(thirds, pair, domain=TABLE) == 3
    value, witness = specialise_metric(thirds, Unbounded(), domain=TABLE)
    assert value == 1
    assert Unbounded().are_neighbours(*witness, TABLE)


def test_a_loss_at_an_infinite_distance_is_infinite_in_every_notion():
    for loss in (Pure(0), Approx(0, 0), ZCDP(0), GDP(0)):
        assert at_distance(loss, math.inf).is_infinite
        assert not at_distance(loss, 7).is_infinite
        assert at_distance(type(loss).zero(), 0) == type(loss).zero()


def test_a_profile_drops_dominated_pairs_and_bounds_its_deltas():
    pairs = [Approx(1, "1e-6"), Approx("0.5", "1e-5"), Approx("0.3", 0)]
    profile = ApproxProfile.of(pairs)
    assert profile.pairs == tuple(pairs[:2])
    assert profile.delta(1) == 1e-5
    assert profile.delta(math.inf) == 1e-5
    assert profile.as_pair() == Approx(1, "1e-5")
    empty = ApproxProfile.of([])
    assert (empty.delta(0), empty.as_pair()) == (0.0, Approx.zero())


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7, 0.999])
def test_a_profile_below_its_epsilon_is_the_exact_hockey_stick(epsilon):
    """The worst (1, 0.1)-private law: randomised response with a leak of 0.1."""
    keep = 0.9 * math.e / (1 + math.e)
    p, q = [0.1, keep, 0.9 - keep, 0.0], [0.0, 0.9 - keep, keep, 0.1]
    exact = sum(max(0.0, x - math.exp(epsilon) * y) for x, y in zip(p, q, strict=True))
    profile = ApproxProfile.of([Approx(1, "0.1")])
    assert profile.delta(epsilon) == pytest.approx(exact, abs=1e-12)
    assert profile.delta(epsilon) >= exact - 1e-15
    assert ApproxProfile.of([Approx(math.inf, "0.1")]).delta(epsilon) == 1


@pytest.mark.parametrize("regular", [False, True])
def test_events_masked_by_location_cost_one_step_in_each_of_two_blocks(regular):
    """The masked image has gaps, whether or not the stream has."""
    stream = Stream(1, 2, regular=regular, values=("a", "b"))
    releases = [
        Release(place, Pure(1), unit=Event(), view=Locations([place]), setting="view")
        for place in "ab"
    ]
    assert specialise(releases, Event(), domain=stream).loss == Pure(2)
    assert Plan(stream, releases).loss(Event()).loss == Pure(2)

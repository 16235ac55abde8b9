"""Exact sensitivities, declared constants and what pre-processing does to a loss."""

import math
from itertools import combinations

import numpy as np
import pytest

from undertow.errors import (
    AssumptionError,
    FalsifiedClaimError,
    UnboundedSensitivityError,
)
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.domain import FiniteDomain, Graph, MetricSpace, Rows, Stream, Table
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    FunctionMetric,
    LpNorm,
    MatrixMetric,
    ZeroMetric,
)
from undertow.spaces.sensitivity import (
    falsify,
    preprocess,
    sensitivity,
    verify_lipschitz,
)
from undertow.spaces.unit import Bounded, Edge, Edit, FreeLunch, Node, Unbounded, User
from undertow.spaces.view import Chain, Clip, Degree, Identity, Lipschitz, Truncate

TABLE = Table((0, 1, 5), values_per_cell=1, max_size=3)
REALS = AbsoluteDifference()


def _total(database):
    return sum(database)


def _sum_with(constant, unit=None):
    return Lipschitz(
        "sum", _total, unit_from=unit or Unbounded(), unit_to=REALS, constant=constant
    )


@pytest.mark.parametrize("unit", [Unbounded(), Bounded(), Edit()], ids=lambda u: u.name)
def test_neighbours_decide_for_a_canonical_source(unit):
    by_edges = sensitivity(_total, TABLE, source=unit, target=REALS)
    by_pairs = sensitivity(_total, TABLE, source=unit, target=REALS, edges_only=False)
    assert by_edges.value == by_pairs.value == 5
    assert by_pairs.pairs > by_edges.pairs / 2


def test_the_witness_attains_the_value():
    found = sensitivity(_total, TABLE, source=Unbounded(), target=REALS)
    first, second = found.witness
    assert abs(sum(first) - sum(second)) == found.value == float(found)
    assert Unbounded().are_neighbours(first, second, TABLE)


def test_all_pairs_count_for_a_metric_without_neighbours():
    line = MetricSpace((0, 1, 3), function=lambda x, y: abs(x - y))
    cost = MatrixMetric((0, 1, 3), line.matrix)
    found = sensitivity(lambda x: x * x, line, source=cost, target=REALS)
    ratios = [abs(x * x - y * y) / abs(x - y) for x, y in combinations((0, 1, 3), 2)]
    assert found.value == max(ratios) == 4
    assert found.pairs == 3
    with pytest.raises(AssumptionError, match="edges_only"):
        sensitivity(_total, line, source=cost, target=REALS, edges_only=True)


def test_pairs_at_infinite_distance_do_not_count():
    fixed = Table((0, 1), values_per_cell=1, size=2)
    found = sensitivity(
        _total, fixed, source=Unbounded(), target=REALS, edges_only=False
    )
    assert (found.value, found.pairs) == (0, 0)
    assert "finite source distance" in found.note


def test_a_constant_map_has_sensitivity_zero_and_no_witness():
    found = sensitivity(lambda _: 7, TABLE, source=Unbounded(), target=REALS)
    assert (found.value, found.witness, found.note) == (0, None, "")
    zero = sensitivity(_total, TABLE, source=Unbounded(), target=ZeroMetric())
    assert zero.value == 0


def test_a_view_is_measured_inside_its_image():
    found = sensitivity(Truncate(1), TABLE, source=Unbounded(), target=Unbounded())
    assert found.value == 1  # a cell holds one value, so nothing waits behind it
    degree = sensitivity(Degree(0), Graph(4), source=Node(), target=REALS)
    assert degree.value == 3


def test_the_value_is_rounded_up():
    thirds = FunctionMetric("thirds", lambda x, y: 3.0 * (x != y))
    points = FiniteDomain((0, 1))
    found = sensitivity(lambda x: x, points, source=thirds, target=DiscreteMetric())
    assert found.value * 3 >= 1
    assert found.value == pytest.approx(1 / 3)


def test_an_open_domain_cannot_be_enumerated():
    with pytest.raises(AssumptionError, match="domain must"):
        sensitivity(_total, Table((0, 1)), source=Unbounded(), target=REALS)


def test_a_true_constant_is_verified_and_the_exact_value_returned():
    assert verify_lipschitz(_sum_with(9), TABLE).value == 5
    assert verify_lipschitz(_sum_with(5), TABLE).value == 5


def test_a_false_constant_is_refused_with_the_pair():
    with pytest.raises(FalsifiedClaimError, match=r"at least 5 .* got 4") as refusal:
        verify_lipschitz(_sum_with(4), TABLE)
    first, second = refusal.value.witness
    assert abs(sum(first) - sum(second)) == 5


def test_rounding_of_a_norm_does_not_refuse_a_true_constant():
    def histogram(database):
        return tuple(database.count(value) for value in (0, 1, 5))

    root = Lipschitz(
        "histogram",
        histogram,
        unit_from=Bounded(),
        unit_to=LpNorm(2),
        constant=math.nextafter(math.sqrt(2), 0),
    )
    assert verify_lipschitz(root, TABLE).value == pytest.approx(math.sqrt(2))


def test_proved_constants_of_built_in_views_are_verified_between_named_units():
    owners = Table(("u", "v"), values_per_cell=3, max_size=4)
    found = verify_lipschitz(
        Truncate(2), owners, source=Unbounded(), target=Unbounded()
    )
    assert found.value == 2
    with pytest.raises(ValueError, match="source and target"):
        verify_lipschitz(Truncate(2), owners)


def test_the_sensitivity_of_a_chain_is_at_most_the_product_and_can_be_smaller():
    chain = Chain(Clip(0, 1), _sum_with(5))
    exact = sensitivity(chain, TABLE, source=Unbounded(), target=REALS)
    assert exact.value == 1 < chain.stretch(Unbounded(), REALS) == 5


def test_random_search_falsifies_a_false_constant_on_an_open_domain():
    raw = _sum_with(1, Bounded(ordered=True))
    pair = falsify(raw, Rows(3, values=(0, 1, 9)), rng=np.random.default_rng(2))
    assert pair is not None
    assert abs(sum(pair[0]) - sum(pair[1])) > 1


def test_random_search_leaves_a_true_constant_standing():
    rng = np.random.default_rng(2)
    true = _sum_with(9, Bounded(ordered=True))
    assert falsify(true, Rows(3, values=(0, 1, 9)), rng=rng, trials=200) is None
    fixed = Table((0, 1), values_per_cell=1, size=2)
    assert falsify(_sum_with(0), fixed, rng=rng, trials=5) is None  # no neighbours


def test_random_search_takes_a_sampler_for_metrics_without_neighbours():
    square = Lipschitz(
        "square", lambda x: x * x, unit_from=REALS, unit_to=REALS, constant=10
    )
    points = FiniteDomain(range(3))

    def draw(rng):
        return tuple(float(x) for x in rng.uniform(-100, 100, size=2))

    found = falsify(square, points, sampler=draw, rng=np.random.default_rng(0))
    assert found is not None
    assert abs(found[0] + found[1]) > 10
    with pytest.raises(AssumptionError, match="sampler"):
        falsify(square, points, rng=np.random.default_rng(0))


def test_a_missing_constant_is_never_falsified_because_it_claims_nothing():
    raw = Lipschitz("sum", _total, unit_from=Bounded(ordered=True), unit_to=REALS)
    rows = Rows(3, values=(0, 1, 9))
    assert falsify(raw, rows, rng=np.random.default_rng(0), trials=20) is None


@pytest.mark.parametrize(
    ("loss", "constant", "expected"),
    [
        (Pure("0.5"), 3, Pure("1.5")),
        (Pure("0.5"), "0.5", Pure("0.25")),
        (GDP("0.5"), 2, GDP(1)),
        (ZCDP("0.5"), 3, ZCDP("4.5")),
        (Approx("0.5", 0), 4, Approx(2, 0)),
        (Approx(1, "1e-5"), 1, Approx(1, "1e-5")),
        (Pure(1), 0, Pure(0)),
        (GDP(1), 0, GDP(0)),
        (ZCDP(1), 0, ZCDP(0)),
        (Approx(1, "1e-5"), 0, Approx(0, 0)),
        (Pure(math.inf), 2, Pure(math.inf)),
    ],
)
def test_preprocessing_scales_each_notion_by_its_own_rule(loss, constant, expected):
    assert preprocess(loss, constant) == expected


def test_preprocessing_an_approximate_loss_grows_delta_along_the_chain():
    loss = preprocess(Approx(1, "1e-5"), 2)
    assert loss.epsilon == 2
    assert loss.delta == pytest.approx(1e-5 * (1 + math.e), rel=1e-12)
    with pytest.raises(AssumptionError, match="integer"):
        preprocess(Approx(1, "1e-5"), 1.5)


@pytest.mark.parametrize("constant", [None, "inf", math.inf])
def test_unbounded_or_unknown_preprocessing_is_refused(constant):
    with pytest.raises(UnboundedSensitivityError, match="clipping or truncation"):
        preprocess(Pure(1), constant)


def test_streams_and_free_lunch_can_be_sources():
    stream = Stream(2, 2, regular=True, values=(0, 1))

    def recorded(database):
        return sum(map(sum, database))

    assert sensitivity(recorded, stream, source=User(), target=REALS).value == 2
    assert sensitivity(recorded, stream, source=FreeLunch(), target=REALS).value == 4
    graph = Graph(4)
    assert sensitivity(len, graph, source=Edge(), target=REALS).value == 1
    same = sensitivity(Identity(), graph, source=Edge(), target=Node())
    assert same.value == 1

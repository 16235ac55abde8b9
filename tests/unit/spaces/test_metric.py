"""Metrics that no neighbour relation generates."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import AssumptionError, FalsifiedClaimError, MismatchError
from undertow.spaces.domain import FiniteDomain, Rows, Table
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    Euclidean,
    FunctionMetric,
    LpNorm,
    MatrixMetric,
    Scaled,
    SymmetricDifference,
    Values,
    ZeroMetric,
    check_pseudometric,
    verify_pseudometric,
)
from undertow.spaces.quotient import Quotient
from undertow.spaces.unit import Bounded, Unbounded
from undertow.spaces.view import Select
from undertow.spaces.view.range import Pullback

VALUES = Values()


def test_the_zero_metric_is_finite_across_components():
    assert ZeroMetric().distance(("a",), ("a", "b"), Table(("a", "b"))) == 0
    assert not ZeroMetric().separates_points


def test_the_discrete_metric_separates_points():
    assert DiscreteMetric().distance(1, 2, VALUES) == 1
    assert DiscreteMetric().distance(1, 1, VALUES) == 0
    assert DiscreteMetric().separates_points


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [(3, 5, 2), (0.5, -1, 1.5), (math.inf, math.inf, 0), (math.inf, 3, math.inf)],
)
def test_absolute_difference_of_numbers(first, second, distance):
    assert AbsoluteDifference().distance(first, second, VALUES) == distance
    assert AbsoluteDifference().distance(second, first, VALUES) == distance


def test_absolute_difference_is_never_rounded_down():
    found = AbsoluteDifference().distance(Fraction(1, 3), 0, VALUES)
    assert Fraction(found) >= Fraction(1, 3)
    assert found == pytest.approx(1 / 3, rel=1e-15)


@pytest.mark.parametrize("value", ["a", None, True, math.nan, (1,)])
def test_absolute_difference_refuses_what_is_no_number(value):
    with pytest.raises(TypeError, match="numbers"):
        AbsoluteDifference().distance(value, 1, VALUES)


@pytest.mark.parametrize(
    ("p", "expected"),
    [(1, 7), (2, 5), ("inf", 4), (3, (27 + 64) ** (1 / 3))],
)
def test_lp_norms_of_a_known_vector(p, expected):
    assert LpNorm(p).distance((0, 0), (3, -4), VALUES) == pytest.approx(expected)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, "inf"])
def test_lp_norms_obey_the_triangle_inequality(p):
    points = np.random.default_rng(3).normal(size=(12, 3))
    domain = FiniteDomain([tuple(point) for point in points.tolist()])
    verify_pseudometric(LpNorm(p), domain)


@pytest.mark.parametrize("p", [1, 2, 3, 7])
def test_lp_norms_are_not_below_their_exact_value(p):
    first, second = (0.1, 0.2, 0.3), (0.7, 0.11, 0.5)
    gaps = [abs(Fraction(x) - Fraction(y)) for x, y in zip(first, second, strict=True)]
    found = Fraction(LpNorm(p).distance(first, second, VALUES))
    assert found**p >= sum(gap**p for gap in gaps)


def test_lp_norm_refuses_an_order_below_one_and_vectors_of_two_lengths():
    with pytest.raises(ValueError, match="p must be at least 1"):
        LpNorm(0.5)
    with pytest.raises(MismatchError, match="2 and 3 coordinates"):
        LpNorm(1).distance((1, 2), (1, 2, 3), VALUES)


def test_euclidean_distance_takes_points_and_numbers():
    assert Euclidean().distance((0, 0), (3, 4), VALUES) == 5
    assert Euclidean().distance(2, 5, VALUES) == 3
    assert Euclidean().distance((0.0,), (math.inf,), VALUES) == math.inf


def test_symmetric_difference_counts_multiplicities_on_any_class():
    metric = SymmetricDifference()
    fixed = Table(("a", "b"), values_per_cell=1, size=2)
    assert metric.distance(("a", "a"), ("a", "b"), fixed) == 2
    assert Unbounded().distance(("a", "a"), ("a", "b"), fixed) == math.inf
    assert metric.distance(frozenset({1, 2}), frozenset({2}), VALUES) == 1
    with pytest.raises(TypeError, match="collections"):
        metric.distance(3, 4, VALUES)


def test_symmetric_difference_is_unbounded_distance_where_records_may_be_removed():
    table = Table(("a", "b", "c"), values_per_cell=1, max_size=3)
    listed = list(table.databases())
    for one in listed:
        for two in listed:
            found = SymmetricDifference().distance(one, two, table)
            assert found == Unbounded().distance(one, two, table)


def test_a_scaled_metric_keeps_infinity_even_at_factor_zero():
    table = Table(("a", "b"), values_per_cell=1)
    free = Scaled(Bounded(), 0)
    assert free.distance(("a",), ("b",), table) == 0
    assert free.distance(("a",), ("a", "b"), table) == math.inf


def test_a_scaled_metric_is_rounded_up():
    tenth = Scaled(AbsoluteDifference(), "0.1").distance(0, 3, VALUES)
    assert Fraction(tenth) >= Fraction(3, 10)
    assert tenth == pytest.approx(0.3)


def test_a_pullback_measures_what_the_view_shows():
    table = Table(("a", "b"), values_per_cell=1, max_size=3)
    counts = Pullback(AbsoluteDifference(), Select("a", statistic="count"))
    assert counts.distance(("a", "a", "b"), ("b",), table) == 2
    blocks = Pullback(Bounded(), Select("a"))
    assert blocks.distance(("a", "b"), ("b", "b"), table) == math.inf


def test_a_quotient_metric_is_available_as_a_metric():
    table = Table(("a", "b"), values_per_cell=1, max_size=3)
    modulo = Quotient(Bounded(), Select("a"))
    assert modulo.distance(("a", "b"), ("b", "b"), table) == 1
    assert modulo.distance(("b",), ("b", "b"), table) == 0


def test_a_matrix_metric_gives_back_its_entries_and_survives_pickling():
    line = MatrixMetric("abc", [[0, 1, 3], [1, 0, 2], [3, 2, 0]])
    assert line.distance("c", "a", VALUES) == 3
    assert pickle.loads(pickle.dumps(line)) == line
    assert hash(line) == hash(MatrixMetric("abc", line.matrix))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1, 9], [1, 0, 1], [9, 1, 0]], "triangle inequality"),
        ([[0, 1, 1], [2, 0, 1], [1, 1, 0]], "symmetric"),
        ([[1, 1, 1], [1, 0, 1], [1, 1, 0]], "diagonal"),
        ([[0, -1, 1], [-1, 0, 1], [1, 1, 0]], "non-negative"),
        ([[0, math.nan, 1], [math.nan, 0, 1], [1, 1, 0]], "non-negative"),
    ],
)
def test_a_matrix_that_is_no_pseudometric_is_refused_with_the_axiom(matrix, message):
    with pytest.raises(ValueError, match=message):
        MatrixMetric("abc", matrix)


def test_a_matrix_metric_refuses_other_shapes_repeated_and_unknown_points():
    with pytest.raises(MismatchError, match="shape"):
        MatrixMetric("ab", [[0]])
    with pytest.raises(ValueError, match="distinct"):
        MatrixMetric("aa", [[0, 0], [0, 0]])
    with pytest.raises(MismatchError, match="outside"):
        MatrixMetric("a", [[0]]).distance("a", "b", VALUES)
    with pytest.raises(MismatchError, match="square"):
        check_pseudometric([[0, 1]])


def test_infinite_entries_and_zero_distances_are_pseudometrics():
    assert check_pseudometric([[0, math.inf], [math.inf, 0]]).holds
    assert check_pseudometric([[0, 0], [0, 0]]).holds
    broken = [[0, math.inf, 1], [math.inf, 0, 1], [1, 1, 0]]
    assert check_pseudometric(broken).witness == (0, 2, 1)


def test_a_function_metric_is_checked_value_by_value():
    assert FunctionMetric("gap", lambda x, y: abs(x - y)).distance(1, 4, VALUES) == 3
    with pytest.raises(ValueError, match="gap"):
        FunctionMetric("gap", lambda x, y: x - y).distance(1, 4, VALUES)
    with pytest.raises(FalsifiedClaimError) as refusal:
        verify_pseudometric(
            FunctionMetric("square", lambda x, y: (x - y) ** 2), FiniteDomain(range(3))
        )
    assert refusal.value.witness == (0, 1, 2)


def test_plain_values_cannot_be_enumerated():
    assert VALUES.count() == math.inf
    assert (1, 2) in VALUES
    assert [] not in VALUES
    with pytest.raises(AssumptionError, match="enumerable"):
        list(VALUES.databases())


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (ZeroMetric(), "zero"),
        (DiscreteMetric(), "discrete"),
        (AbsoluteDifference(), "absolute"),
        (LpNorm("inf"), "linf"),
        (Euclidean(), "euclidean"),
        (SymmetricDifference(), "symmetric difference"),
        (Scaled(LpNorm(1), "0.5"), "0.5 x l1"),
        (Pullback(Bounded(), Select("a")), "bounded through cells a"),
        (Quotient(Bounded(), Select("a")), "bounded modulo cells a"),
        (MatrixMetric("a", [[0]]), "matrix on 1 points"),
    ],
)
def test_every_metric_has_a_name_and_hashes(metric, name):
    assert metric.name == name
    assert not metric.canonical
    assert len({metric, metric}) == 1


def test_distances_of_rows_can_be_taken_through_a_norm():
    assert LpNorm(1).distance((1, 2), (2, 4), Rows(2)) == 3

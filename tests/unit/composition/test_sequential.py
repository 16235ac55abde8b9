"""Composition as metrics."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from undertow.composition.finite import at_distance
from undertow.composition.theorems import (
    ApproxTerm,
    ComposedMetric,
    compose_approx,
    compose_gauss,
    compose_pure,
    compose_zc,
    sequential,
)
from undertow.errors import AssumptionError, NotionMismatchError
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.spaces.domain import Table
from undertow.spaces.metric import AbsoluteDifference, Scaled, verify_pseudometric
from undertow.spaces.unit import Bounded, Unbounded
from undertow.spaces.view import Identity, Select

TABLE = Table(("a", "b"), values_per_cell=1, max_size=3)
PAIR = (("a", "a", "b"), ("b",))


def count(cell):
    return Select(cell, statistic="count")


def test_a_sum_of_metrics_keeps_different_units_apart():
    mixed = compose_pure(
        [(Scaled(Unbounded(), "0.1"), Identity()), (AbsoluteDifference(), count("b"))]
    )
    assert mixed.exact_distance(PAIR, domain=TABLE) == Fraction(1, 5)
    assert mixed.terms((("b",), ()), domain=TABLE) == (Fraction(1, 10), 1)
    assert mixed.distance(("b",), (), TABLE) == 1.1


def test_an_empty_composition_is_the_zero_metric():
    for compose in (compose_pure, compose_zc, compose_gauss):
        assert compose([]).distance(*PAIR, TABLE) == 0
    assert compose_approx([]).loss(PAIR, domain=TABLE) == Approx.zero()


def test_one_infinite_part_makes_the_pair_infinite():
    parts = [(Scaled(Bounded(), 0), Identity()), (Unbounded(), Identity())]
    for compose in (compose_pure, compose_zc, compose_gauss):
        assert compose(parts).distance(*PAIR, TABLE) == math.inf


def test_composed_metrics_are_pseudometrics():
    parts = [(Scaled(Unbounded(), "0.3"), Select("a")), (Unbounded(), Select("b"))]
    for compose in (compose_pure, compose_gauss):
        verify_pseudometric(compose(parts), TABLE)


def test_gaussian_parts_add_in_squares_and_round_up():
    parts = [(Unbounded(), Select("a")), (Unbounded(), Select("b"))]
    metric = compose_gauss(parts)
    pair = (("a", "b"), ())
    assert metric.square(pair, domain=TABLE) == 2
    distance = metric.distance(*pair, TABLE)
    assert Fraction(distance) ** 2 >= 2
    assert distance == pytest.approx(math.sqrt(2), abs=1e-15)
    assert metric.exact_distance(pair, domain=TABLE) == Fraction(distance)


def test_the_name_of_a_composed_metric_says_how_it_adds():
    assert ComposedMetric((Unbounded(),) * 2).name == "sum of 2 metrics"


def test_sequential_adds_in_every_notion():
    assert sequential([]) == Pure(0)
    assert sequential([Pure("0.1")] * 3) == Pure("0.3")
    assert sequential([Approx("0.1", "1e-6")] * 3) == Approx("0.3", "3e-6")
    assert sequential([ZCDP("0.1")] * 3) == ZCDP("0.3")
    assert sequential([GDP(3), GDP(4)]) == GDP(5)


def test_sequential_refuses_two_notions():
    with pytest.raises(NotionMismatchError):
        sequential([Pure(1), ZCDP(1)])


def test_deltas_that_add_up_to_one_promise_nothing():
    terms = [
        ApproxTerm.at_granularity(Approx("0.1", "0.1"), Unbounded(), view=Identity())
    ] * 12
    loss = compose_approx(terms).loss((("a",), ()), domain=TABLE)
    assert loss.no_guarantee
    assert sequential([Approx("0.1", "0.1")] * 12).no_guarantee


def test_approximate_terms_grow_delta_by_whole_steps():
    term = ApproxTerm.at_granularity(Approx(1, "1e-5"), Unbounded(), view=Select("a"))
    composed = compose_approx([term])
    assert composed.loss(PAIR, domain=TABLE) == at_distance(Approx(1, "1e-5"), 2)
    assert composed.loss((("a", "b"), ("a",)), domain=TABLE) == Approx.zero()


def test_a_real_valued_unit_needs_its_own_delta():
    with pytest.raises(AssumptionError, match="got absolute"):
        ApproxTerm.at_granularity(
            Approx(1, "1e-5"), AbsoluteDifference(), view=count("a")
        )
    own = ApproxTerm(
        AbsoluteDifference(), lambda x, y, _: abs(x - y) / 1024, count("a")
    )
    assert compose_approx([own]).loss(PAIR, domain=TABLE) == Approx(2, Fraction(1, 512))
    bad = ApproxTerm(AbsoluteDifference(), lambda x, y, _: -1.0, count("a"))
    with pytest.raises(ValueError, match="delta must be in"):
        compose_approx([bad]).loss(PAIR, domain=TABLE)

"""The range of a view: wrapped units, refusals, and what is never enumerated."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from undertow.composition.theorems import ApproxTerm, compose_approx, compose_pure
from undertow.errors import AssumptionError, MismatchError
from undertow.privacy.loss import Approx
from undertow.spaces.base import View
from undertow.spaces.domain import FiniteDomain, Rows, Stream, Table
from undertow.spaces.metric import AbsoluteDifference, DiscreteMetric, Scaled, Values
from undertow.spaces.quotient import Quotient
from undertow.spaces.unit import (
    Bounded,
    BoundedById,
    Edit,
    FreeLunch,
    Group,
    Relation,
    Unbounded,
)
from undertow.spaces.view import (
    Chain,
    Identity,
    Ids,
    Lipschitz,
    Locations,
    RowPosition,
    Select,
    SortedPosition,
)
from undertow.spaces.view.range import Pullback, ViewRange, range_of

FREE = Rows(2, values=(0, 1), free_ids=True)
SHOWN = ViewRange(RowPosition(0, 1), FREE)


def last(rows):
    return rows[-1]


LAST = Lipschitz(
    "last row", last, unit_from=Edit(), unit_to=DiscreteMetric(), constant=1
)


def test_the_values_of_a_view_are_listed_once():
    none = [(None, None), (0, None), (1, None)]
    assert set(SHOWN.values) == {*none, *product((0, 1), repeat=2)}
    assert len(SHOWN.values) == 7 < SHOWN.image.count() == 9


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (Unbounded(), 4),
        (Group(Unbounded(), 3), 2),
        (Scaled(Unbounded(), "0.5"), 2),
        (Scaled(Group(Unbounded(), 2), "0.25"), Fraction(1, 2)),
        (Edit(), 1),
        (BoundedById(), 1),
        (FreeLunch(), 1),
        (DiscreteMetric(), 1),
        (Pullback(Unbounded(), Ids([0])), 2),
        (Pullback(Unbounded(), Ids([1])), 0),
        (Quotient(Unbounded(), Identity()), 4),
        (Quotient(Scaled(Unbounded(), 2), Identity()), 8),
    ],
)
def test_wrapped_units_are_read_on_the_range(unit, expected):
    assert SHOWN.distance(unit, (0, 0), (1, 0)) == expected


def test_moves_inside_a_fibre_of_the_range_are_free():
    # From 0 to 1 in the last place the last row leaves and comes again.
    unit = Quotient(Unbounded(), LAST)
    assert SHOWN.distance(unit, (0, 0), (1, 0)) == 0
    assert SHOWN.distance(unit, (0, 0), (1, 1)) == 2
    assert SHOWN.distance(unit, (0, 0), (1, None)) == 1
    apart = Quotient(BoundedById(), LAST)
    assert SHOWN.distance(apart, (0, 0), (1, 1)) == 1
    assert SHOWN.distance(apart, (0, 0), (1, None)) == math.inf


def test_a_view_after_a_view_has_a_range_of_its_own():
    both = ViewRange(Chain(SortedPosition(0, 1), RowPosition(0, 1)), FREE)
    assert (1, 0) not in both.values
    assert both.distance(Unbounded(), (0, 0), (1, 1)) == 4


def test_plain_values_are_listed_for_relations_of_ones_own():
    rows = Rows(3, values=(0, 2))
    total = Lipschitz("sum", sum, unit_from=BoundedById(), unit_to=AbsoluteDifference())
    near = Relation("within two", lambda x, y: abs(x - y) <= 2)
    close = Relation("within one", lambda x, y: abs(x - y) <= 1)
    shown = ViewRange(total, rows)
    assert shown.distance(near, 0, 6) == 3
    assert shown.distance(close, 0, 2) == math.inf  # no value in between is a sum
    shown.require_unit(near)
    with pytest.raises(MismatchError, match="must list tuples of records"):
        shown.require_unit(Bounded())


def test_positions_of_listed_rows_are_listed_too():
    listed = FiniteDomain([(0, 0), (0, 1), (1, 1)])
    shown = ViewRange(RowPosition(0, 1), listed)
    assert shown.distance(BoundedById(), (0, 0), (1, 1)) == 2


def test_large_domains_are_read_by_formula_or_refused():
    rows = Rows(10**4, free_ids=True)
    one, two = (0,) * 10**4, (1,) * 10**4
    assert range_of(Identity(), rows).distance(Unbounded(), one, two) == 2 * 10**4
    positions = range_of(RowPosition(0, 1), rows)
    assert positions.distance(Edit(), one, two) == 10**4
    with pytest.raises(AssumptionError, match="does not take every value of its image"):
        positions.distance(Unbounded(), one, two)
    with pytest.raises(AssumptionError, match="state the claim in the common setting"):
        Pullback(Unbounded(), RowPosition(0, 1)).distance(one, two, rows)


def test_a_sum_of_metrics_needs_a_view_that_fills_its_image():
    two = compose_pure([(Unbounded(), Identity())] * 2)
    assert range_of(Identity(), FREE).distance(two, (0, 0), (1, 0)) == 4
    with pytest.raises(AssumptionError, match="one claim for each of its parts"):
        SHOWN.distance(two, (0, 0), (1, 0))


def test_values_need_no_domain_to_be_listed():
    assert range_of(Identity(), Values()).distance(AbsoluteDifference(), 1, 4) == 3


def test_deltas_of_a_claim_follow_the_chains_of_its_epsilon():
    term = ApproxTerm.at_granularity(
        Approx(0, "0.01"), Unbounded(), view=RowPosition(0, 1)
    )
    composed = compose_approx([term])
    assert composed.loss(((0, 0), (1, 0)), domain=FREE) == Approx(0, "0.04")


class Halves(View):
    """A view of one's own, about which nothing is proved."""

    name = "halves"

    def apply(self, database, domain):
        return database[:1] * 2

    def image(self, domain):
        return domain

    def require_domain(self, domain):
        pass


def test_a_view_of_ones_own_is_enumerated():
    rows = Rows(2, values=(0, 1))
    assert not Halves().fills_image(rows)
    assert not Halves().keeps_chains(BoundedById(), rows)
    shown = ViewRange(Halves(), rows)
    assert BoundedById().distance((0, 0), (1, 1), shown.image) == 2
    assert shown.distance(BoundedById(), (0, 0), (1, 1)) == math.inf


def test_only_places_that_may_hide_others_are_known_to_leave_gaps():
    regular = Stream(1, 2, regular=True)
    assert Locations(["p"]).fills_image(regular)
    assert not Locations(["p", "q"]).fills_image(regular)
    assert Locations(["p", "q"]).fills_image(Stream(1, 2))
    assert not Select("a", statistic="count").fills_image(Table(("a", "b")))

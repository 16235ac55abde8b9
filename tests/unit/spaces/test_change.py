from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.errors import AssumptionError, VacuousGranularityError
from undertow.spaces.change import Change, Charge, Column, Row, align, restrict, totals
from undertow.spaces.domain import FiniteDomain, MetricSpace, Table
from undertow.spaces.influence import change_family
from undertow.spaces.influence._family import (
    PairColumn,
    PairFamily,
    RepeatedFamily,
    SlotColumn,
    TopFamily,
    UnionFamily,
)
from undertow.spaces.influence._run import (
    ExplicitFamily,
    front_of,
    listed,
    run_totals,
    scale,
)
from undertow.spaces.metric import MatrixMetric
from undertow.spaces.unit import Bounded, FreeLunch, Relation, Trajectory, Unbounded
from undertow.spaces.view import Identity, Select

CHANGE = Change("test", "something changes")
weights = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def linear(column, weight):
    return Charge(
        (column,), lambda a: (math.inf if a[0] == math.inf else weight * a[0],)
    )


def squared(column, weight):
    return Charge((column,), lambda a: (weight * a[0] * a[0],))


def pair(column, first, second):
    return Charge((column,), lambda a: (first * a[0], second * a[0]))


def test_a_column_has_no_default_setting():
    with pytest.raises(ValueError, match="setting must be 'view' or 'common'"):
        Column(Identity(), Bounded(), "both")


def test_a_change_answers_for_its_details():
    change = Change("replace", "words", (("from", "S"),))
    assert change.detail("from") == "S"
    assert change.detail("to") is None
    assert hash(change) == hash(Change("replace", "words", (("from", "S"),)))


def test_totals_add_coordinates_and_keep_infinity():
    assert totals([(1, 2), (3, math.inf)], 2) == (4, math.inf)
    assert totals([], 2) == (0, 0)


def test_restricting_a_charge_gives_up_the_other_claims():
    cheapest = Charge((4, 7), lambda a: (min(a),))
    only = restrict(cheapest, [1])
    assert only.columns == (7,)
    assert only.price((5,)) == (5,)
    assert restrict(cheapest, [0, 1]) is cheapest


def test_aligning_keeps_the_claims_that_look_at_the_same():
    charge = Charge((0, 1, 2), lambda a: (min(a),))
    (aligned,) = align([charge], lambda column: column % 2)
    assert aligned.columns == (0, 2)
    assert aligned.price((3, 4)) == (3,)


# ---------------------------------------------------------------- integers


def test_scaling_is_exact_over_the_common_denominator():
    scaled = scale([Fraction(1, 6), 2, math.inf, Fraction(3, 4)])
    assert [scaled.value(n) for n in scaled.numerators] == [
        Fraction(1, 6),
        2,
        0,
        Fraction(3, 4),
    ]
    assert scaled.infinite == [False, False, True, False]


def test_unrelated_denominators_are_rounded_up_and_said_to_be():
    primes = [
        p for p in range(2, 9000) if all(p % q for q in range(2, int(p**0.5) + 1))
    ]
    costs = [Fraction(1, p) for p in primes]
    scaled = scale(costs)
    assert scaled.rounded
    total = scaled.value(sum(scaled.numerators))
    assert sum(map(float, costs)) == pytest.approx(float(total))
    assert all(
        scaled.value(n) >= c for n, c in zip(scaled.numerators, costs, strict=True)
    )


def test_huge_numerators_fall_back_to_python_integers():
    big = 2**70
    found = run_totals(3, np.array([0, 1]), np.array([2, 3]), [big, 1])
    assert list(found) == [big, big + 1, 1]
    assert scale([big, 1]).array().dtype == object


# ---------------------------------------------------------------- listed classes


def test_runs_add_up_over_the_classes_they_cover():
    family = ExplicitFamily(
        4, {0: [(0, 3, 1)], 1: [(2, 4, 2)]}, describe=lambda at: Change("n", str(at))
    )
    top = family.maximise([linear(0, 3), linear(1, 2)])
    assert (top.value, top.row.change.summary) == (7, "2")
    assert top.row.influences == {0: 1, 1: 2}
    assert top.row.price([linear(0, 3), linear(1, 2)]) == ((3,), (4,))


def test_claims_of_one_release_are_compared_class_by_class():
    family = ExplicitFamily(
        4,
        {0: [(0, 3, 1), (3, 4, 5)], 1: [(1, 2, 9), (2, 4, 2)]},
        describe=lambda at: Change("n", str(at)),
    )
    cheapest = Charge((0, 1), lambda a: (min(a),))
    # The smaller influence of the two columns: 0, 1, 1 and 2 on the four classes.
    assert family.maximise([cheapest]).value == 2
    assert family.maximise([cheapest, linear(0, -0)]).row.change.summary == "3"


def test_an_infinite_influence_is_found_and_named():
    family = listed([Row(CHANGE, {0: 1}), Row(Change("bad", "lost"), {0: math.inf})])
    top = family.maximise([linear(0, 0)])
    assert top.value == math.inf
    assert top.row.change.kind == "bad"


def test_rounded_sums_are_not_called_tight():
    primes = [
        p for p in range(2, 9000) if all(p % q for q in range(2, int(p**0.5) + 1))
    ]
    family = listed([Row(CHANGE, dict.fromkeys(range(len(primes)), 1))])
    charges = [linear(j, Fraction(1, p)) for j, p in enumerate(primes)]
    top = family.maximise(charges)
    assert not top.tight
    assert float(top.value) == pytest.approx(sum(1 / p for p in primes))


def test_the_front_keeps_what_nothing_beats():
    assert front_of([(1, 1), (3, 0), (0, 3), (2, 0)]) == [(3, 0), (1, 1), (0, 3)]
    rows = [Row(Change("n", str(k)), {k: 1}) for k in range(3)]
    points = listed(rows).pareto(
        [pair(0, 3, 1), pair(1, 1, 3), pair(2, 1, 1)], coordinates=2
    )
    assert {p.values for p in points} == {(3, 1), (1, 3)}
    assert all(p.tight for p in points)


def test_families_without_rows_join_their_maxima():
    family = PairFamily(
        3,
        twice=[False] * 3,
        columns={j: PairColumn([j], 1, 0, 0) for j in range(3)},
        describe=lambda s, t: CHANGE,
    )
    charges = [pair(0, 3, 1), pair(1, 1, 3), pair(2, 0, 0)]
    (point,) = super(PairFamily, family).pareto(charges, coordinates=2)
    assert point.values == (4, 4)
    assert point.tight
    other = [pair(0, 3, 0), pair(1, 2, 0), pair(2, 0, 5)]
    (loose,) = super(PairFamily, family).pareto(other, coordinates=2)
    assert loose.values == (5, 5)
    assert not loose.tight


# ---------------------------------------------------------------- pairs and sets


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_pair_search_equals_looking_at_every_pair(seed):
    rng = np.random.default_rng(seed)
    types, number = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    twice = rng.random(types) < 0.5
    if types == 1:
        twice[:] = True
    columns = {
        j: PairColumn(
            np.flatnonzero(rng.random(types) < 0.5).tolist(),
            *(int(x) for x in rng.integers(0, 4, 3)),
        )
        for j in range(number)
    }
    family = PairFamily(
        types,
        twice=twice.tolist(),
        columns=columns,
        describe=lambda s, t: Change("pair", f"{s} {t}"),
    )
    charges = [squared(j, int(rng.integers(0, 5))) for j in range(number)]
    everything = [
        totals(family.row(s, t).price(charges), 1)[0]
        for s in range(types)
        for t in range(s, types)
        if s != t or twice[s]
    ]
    top = family.maximise(charges)
    assert top.value == max(everything)
    assert totals(top.row.price(charges), 1)[0] == top.value


def test_pair_search_stops_early_on_a_large_partition():
    number = 50_000
    family = PairFamily(
        number,
        twice=[True] * number,
        columns={j: PairColumn([j], 1, 1, 1) for j in range(number)},
        describe=lambda s, t: Change("pair", f"{s} {t}"),
    )
    top = family.maximise([linear(j, j % 1000) for j in range(number)])
    assert top.value == 2 * 999


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=5),
    st.integers(1, 3),
    st.booleans(),
)
def test_choosing_items_equals_trying_every_choice(costs, most, equal_sets):
    items = len(costs)
    family = TopFamily(
        items,
        most,
        columns={j: SlotColumn((j,), 1, 2, 2) for j in range(items)},
        replace=True,
        equal_sets=equal_sets,
        describe=lambda once, twice: Change("sets", f"{once} {twice}"),
    )
    charges = [
        Charge((j,), lambda a, c=cost: ((0, c[0], c[1])[a[0]],))
        for j, cost in enumerate(costs)
    ]
    sets = [
        set(chosen)
        for size in range(min(most, items) + 1)
        for chosen in combinations(range(items), size)
    ]
    best = max(
        sum(costs[j][1] if j in a & b else costs[j][0] for j in a | b)
        for a, b in product(sets, sets)
        if a != b or equal_sets
    )
    top = family.maximise(charges)
    assert top.value == best
    assert top.tight


@given(weights, st.integers(1, 4))
def test_adding_a_record_costs_its_largest_cells(costs, most):
    family = TopFamily(
        len(costs),
        most,
        columns={j: SlotColumn((j,), 1, 0, 1) for j in range(len(costs))},
        replace=False,
        equal_sets=True,
        describe=lambda once, twice: Change("set", str(once)),
    )
    charges = [linear(j, cost) for j, cost in enumerate(costs)]
    assert family.maximise(charges).value == sum(sorted(costs)[-most:])


def test_a_column_over_several_items_is_bounded_by_its_chord():
    family = TopFamily(
        4,
        2,
        columns={
            0: SlotColumn((0, 1, 2), 1, 0, 2),
            1: SlotColumn((3,), 1, 0, 1),
            2: SlotColumn(None, 0, 0, 1),
        },
        replace=False,
        equal_sets=True,
        describe=lambda once, twice: Change("set", str(once)),
    )
    # Two of the three items: 2 squared times 1, reached.
    reached = family.maximise([squared(0, 1), linear(1, 1), linear(2, 10)])
    assert (reached.value, reached.tight) == (14, True)
    # One of them and the heavy item: the chord says 2 + 3, the truth is 1 + 3.
    bound = family.maximise([squared(0, 1), linear(1, 3)])
    assert (bound.value, bound.tight) == (5, False)


def test_an_infinite_item_is_chosen():
    family = TopFamily(
        3,
        1,
        columns={
            j: SlotColumn((j,), math.inf if j == 2 else 1, 1, 1) for j in range(3)
        },
        replace=True,
        equal_sets=False,
        describe=lambda once, twice: Change("set", str(once)),
    )
    top = family.maximise([linear(j, 1) for j in range(3)])
    assert top.value == math.inf
    assert 2 in top.row.influences


# ---------------------------------------------------------------- made of others


def test_either_of_two_families():
    first, second = listed([Row(CHANGE, {0: 1})]), listed([Row(CHANGE, {1: 1})])
    both = UnionFamily([first, second])
    assert both.maximise([linear(0, 2), linear(1, 3)]).value == 3
    points = both.pareto([pair(0, 2, 0), pair(1, 0, 3)], coordinates=2)
    assert {p.values for p in points} == {(2, 0), (0, 3)}


def test_several_changes_at_once_are_worst_when_equal():
    base = listed([Row(CHANGE, {0: 1}), Row(CHANGE, {1: 1})])
    family = RepeatedFamily(base, 3, capped={}, tight=True)
    top = family.maximise([squared(0, 1), squared(1, 2)])
    assert top.value == 18
    assert top.tight
    assert top.row.change.summary.startswith("3 times")


def test_units_that_do_not_add_up_are_charged_beside():
    base = listed([Row(CHANGE, {0: 1, 1: 1}), Row(CHANGE, {0: 1, 2: 1})])
    family = RepeatedFamily(
        base, 3, capped={1: lambda a, n: a, 2: lambda a, n: a}, tight=True
    )
    top = family.maximise([linear(0, 1), linear(1, 10), linear(2, 20)])
    assert top.value == 33
    assert not top.tight
    assert top.row.influences == {0: 3, 1: 1, 2: 1}


# ---------------------------------------------------------------- dispatch


def test_a_granularity_without_neighbours_is_refused():
    with pytest.raises(VacuousGranularityError, match="publishing the data"):
        change_family(Table(("a", "b"), size=3), Unbounded(), columns=())


def test_a_domain_of_one_database_has_nothing_to_protect():
    family = change_family(
        Table(("a",), max_size=0),
        Unbounded(),
        columns=(Column(Select("a"), Bounded(), "view"),),
    )
    assert family.maximise([linear(0, 5)]).value == 0


def test_trajectories_on_tables_are_records():
    columns = (Column(Select("a"), Trajectory(add_remove=True), "view"),)
    family = change_family(Table(("a", "b")), Trajectory(), columns=columns)
    assert family.maximise([linear(0, 1)]).value == 2


def test_listed_domains_are_enumerated_exactly():
    line = FiniteDomain(range(5))
    step = Relation("step", lambda x, y: abs(x - y) == 1)
    far = Relation("far", lambda x, y: abs(x - y) == 2)
    columns = (
        Column(Identity(), step, "view"),
        Column(Identity(), FreeLunch(), "common"),
    )
    family = change_family(line, far, columns=columns)
    assert family.maximise([linear(0, 1)]).value == 2
    assert family.maximise([linear(1, 1)]).value == 1
    odd = Column(Identity(), far, "view")
    assert change_family(line, step, columns=(odd,)).maximise([linear(0, 0)]).value == (
        math.inf
    )


def test_T_7_0_the_quotient_of_a_metric_space_is_a_shortest_path():
    points = (1, 2, 3, 4)
    place = {1: 0, 2: 1, 3: 11, 4: 12}
    gaps = [[abs(place[x] - place[y]) for y in points] for x in points]
    space = MetricSpace(points, matrix=gaps)

    class Middle(Identity):
        def apply(self, database, domain):
            return {1: "left", 2: "middle", 3: "middle", 4: "right"}[database]

    column = Column(Middle(), MatrixMetric(points, gaps), "common")
    ends = Relation("ends", lambda x, y: {x, y} == {1, 4})
    assert (
        change_family(space, ends, columns=(column,)).maximise([linear(0, 1)]).value
        == 2
    )


def test_a_listed_domain_without_neighbours_is_refused():
    nothing = Relation("nothing", lambda x, y: False)
    with pytest.raises(VacuousGranularityError, match="neighbours"):
        change_family(FiniteDomain(range(3)), nothing, columns=())


def test_domains_too_large_to_list_are_refused():
    domain = FiniteDomain(range(4000))
    step = Relation("step", lambda x, y: abs(x - y) == 1)
    with pytest.raises(AssumptionError, match="at most 3000 databases"):
        change_family(domain, step, columns=())

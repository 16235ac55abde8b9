"""Columns of one shape are looked at once and put where they belong."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import MismatchError
from undertow.spaces.change import Change, Charge, Column, Row
from undertow.spaces.domain import Stream
from undertow.spaces.influence import change_family
from undertow.spaces.influence._column import Layout, lay_out, movable_form
from undertow.spaces.influence._family import IndependentFamily
from undertow.spaces.influence._run import (
    ExplicitFamily,
    front_of,
    listed,
    placed,
    scale,
    settle,
)
from undertow.spaces.influence._stream_cell import plain_columns
from undertow.spaces.unit import Event, Trajectory, User, WEvent
from undertow.spaces.view import At, Identity, Locations, Times, Window
from undertow.spaces.view.range import Pullback

DAY = Stream(100, 24)


def at(time, unit=None, setting="view"):
    return Column(At(time), unit or Event(), setting)


def layout_of(shapes, shifts):
    firsts = tuple(shapes.index(s) for s in range(max(shapes) + 1))
    return Layout(firsts, np.array(shapes), np.array(shifts))


# ---------------------------------------------------------------- shapes


def test_single_times_share_a_shape_whatever_object_their_unit_is():
    layout = lay_out([at(4), at(2), at(7)], times=24)
    assert layout.firsts == (0,)
    assert layout.shape_of.tolist() == [0, 0, 0]
    assert layout.shift.tolist() == [0, -2, 3]


def test_units_settings_and_lengths_make_different_shapes():
    columns = [
        at(1),
        at(2, User()),
        at(3, setting="common"),
        Column(Window(5, 2), Event(), "view"),
        Column(Window(0, 3), Event(), "view"),
        at(9, User()),
        Column(Window(1, 2), Event(), "view"),
    ]
    layout = lay_out(columns, times=24)
    assert layout.shape_of.tolist() == [0, 1, 2, 3, 4, 1, 3]
    assert layout.shift.tolist() == [0, 0, 0, 0, 0, 7, -4]


def test_views_without_a_start_stand_alone():
    columns = [Column(Times([1, 3]), Event(), "view") for _ in range(2)]
    layout = lay_out([*columns, Column(Identity(), Event(), "view")], times=24)
    assert layout.firsts == (0, 1, 2)
    assert movable_form(Identity()) is None
    assert movable_form(Window(0, 1)) != movable_form(At(0))


@pytest.mark.parametrize("view", [At(24), At(10**30), Window(23, 2)])
def test_views_past_the_end_are_left_to_speak_for_themselves(view):
    assert lay_out([at(0), Column(view, Event(), "view")], times=24) is None
    with pytest.raises(ValueError, match="times must be numbered from 0 to 23"):
        plain_columns([at(0), Column(view, Event(), "view")], DAY)


def test_the_first_column_that_does_not_fit_is_named():
    rows_only = Column(Locations(["x"]), Event(), "view")
    places = Stream(2, 24, values=("a", "b"))
    with pytest.raises(ValueError, match="values must be locations"):
        plain_columns([at(3), rows_only, at(99)], places)
    with pytest.raises(ValueError, match="times must be"):
        plain_columns([at(3), at(99), rows_only], places)


def test_columns_reduced_to_another_view_do_not_move():
    # The unit looks at the whole stream, so the time of the view is given up.
    unit = Pullback(Event(), Identity())
    plain = plain_columns([at(4, unit, "common"), at(9, unit, "common")], DAY)
    assert len(plain.shapes) == 1
    assert plain.layout.shift.tolist() == [0, 0]
    moving = plain_columns([at(4, Trajectory()), at(9, Trajectory())], DAY)
    assert moving.layout.shift.tolist() == [0, 5]


def test_a_layout_can_be_restricted_to_some_shapes():
    layout = layout_of([0, 1, 0, 2, 1], [0, 0, 4, 0, -3])
    kept = layout.only([False, True, True])
    assert kept.firsts == (0, 1)
    assert kept.shape_of.tolist() == [0, 1, 0]
    assert kept.shift.tolist() == [0, 0, -3]
    assert layout.columns([False, True, True]) == [1, 3, 4]
    assert layout.fixed([True, False, True]).shift.tolist() == [0, 0, 4, 0, 0]
    assert layout.fixed([True] * 3) is layout


# ---------------------------------------------------------------- runs


def test_runs_are_moved_and_cut_at_the_ends_of_their_block():
    layout = layout_of([0, 1, 0], [0, 0, 3])
    pieces = [[(0, -1, 2, 5), (10, 1, 3, 7)], []]
    table = placed(pieces, layout, width=4)
    assert table.lists() == {
        0: [(0, 2, 5), (11, 13, 7)],
        2: [(2, 4, 5)],
    }
    assert table.influences(12) == {0: 7}
    assert placed(pieces, layout, width=4, moves=False).lists()[2] == [
        (0, 2, 5),
        (11, 13, 7),
    ]


def test_no_columns_have_no_runs():
    empty = Layout((), np.empty(0, np.int64), np.empty(0, np.int64))
    assert len(placed([], empty, width=3)) == 0
    family = change_family(DAY, WEvent(3), columns=())
    assert family.maximise([]).value == 0


windows = st.tuples(st.integers(0, 11), st.integers(1, 12)).map(
    lambda pair: Window(pair[0], min(pair[1], 12 - pair[0]))
)
views = st.one_of(
    st.integers(0, 11).map(At),
    windows,
    st.sets(st.integers(0, 11), min_size=1).map(Times),
)
units = st.sampled_from([Event(), User(), WEvent(2), Event(add_remove=True)])
columns = st.builds(Column, views, units, st.sampled_from(["view", "common"]))
targets = st.sampled_from(
    [Event(), WEvent(3), WEvent(5, single_user=True), User(), Event(add_remove=True)]
)


@given(st.lists(columns, min_size=1, max_size=6), targets)
def test_columns_together_move_as_each_of_them_alone(several, target):
    domain = Stream(4, 12)
    family = change_family(domain, target, columns=several)
    assert isinstance(family, ExplicitFamily)
    for j, column in enumerate(several):
        alone = change_family(domain, target, columns=(column,))
        assert alone.rows == family.rows
        for row in range(family.rows):
            assert family.row(row).influences.get(j, 0) == alone.row(
                row
            ).influences.get(0, 0)


@given(st.lists(columns, min_size=1, max_size=6), targets)
def test_rows_say_what_the_runs_say(several, target):
    family = change_family(Stream(4, 12), target, columns=several)
    for row in range(family.rows):
        expected = {
            column: value
            for column, runs in family.runs.items()
            for start, stop, value in runs
            if start <= row < stop
        }
        assert family.row(row).influences == expected


# ---------------------------------------------------------------- numbers


@given(
    st.lists(st.fractions(0, 5, max_denominator=50), min_size=1, max_size=5),
    st.sampled_from([1, 7, 3**3000, 2**4100]),
)
def test_settled_costs_are_scaled_costs(costs, divisor):
    costs = [cost / divisor for cost in costs]
    denominator = math.lcm(*(cost.denominator for cost in costs)) * 6
    numerators = [int(cost * denominator) for cost in costs]
    expected, found = scale(costs), settle(numerators, denominator)
    assert found.rounded == expected.rounded
    assert [found.value(n) for n in found.numerators] == [
        expected.value(n) for n in expected.numerators
    ]


points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(points)
def test_the_front_of_pairs_is_what_no_other_pair_reaches(pairs):
    different = set(pairs)
    expected = {
        p
        for p in different
        if not any(q != p and q[0] >= p[0] and q[1] >= p[1] for q in different)
    }
    assert front_of(pairs) == sorted(expected, reverse=True)


# ---------------------------------------------------------------- claims in two parts


def row_of(influences):
    return Row(Change("test", "something"), influences)


def test_claims_about_columns_of_another_part_are_given_up():
    first = listed([row_of({0: 1}), row_of({0: 2})])
    second = listed([row_of({0: 5})])
    family = IndependentFamily([(first, [0]), (second, [1])])
    cheapest = Charge((0, 1), lambda a: (min(a),))
    assert family.maximise([cheapest]).value == 2
    assert family.maximise([Charge((1,), lambda a: a)]).value == 5


def test_a_unit_through_another_view_does_not_hide_the_other_claim():
    # On regular streams with open locations the two columns lie in different parts.
    regular = Stream(5, 6, regular=True)
    unit = Pullback(Event(), Locations(["a", "b"]))
    pair = (at(5, WEvent(1)), at(5, unit, "common"))
    family = change_family(regular, WEvent(1), columns=pair)
    both = Charge((0, 1), lambda a: (Fraction(min(a)),))
    assert family.maximise([both]).value == 1


def test_units_that_do_not_fit_are_refused_once_for_all_their_columns():
    regular = Stream(5, 6, regular=True)
    capped = [at(t, User(max_times=3), "common") for t in range(6)]
    with pytest.raises(MismatchError, match="regular"):
        change_family(regular, User(), columns=capped)

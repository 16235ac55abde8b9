from __future__ import annotations

import math

import pytest

from undertow.errors import MismatchError, VacuousGranularityError
from undertow.spaces.change import Charge, Column
from undertow.spaces.domain import Stream
from undertow.spaces.influence import change_family
from undertow.spaces.influence._run import ExplicitFamily
from undertow.spaces.metric import Euclidean, Scaled
from undertow.spaces.unit import (
    Element,
    Event,
    FreeLunch,
    Group,
    LTrajectory,
    User,
    WEvent,
)
from undertow.spaces.view import (
    At,
    Cells,
    Chain,
    Identity,
    Locations,
    Times,
    Truncate,
    Users,
    Window,
)

DAY = Stream(100, 24)
REGULAR = Stream(100, 24, regular=True)
VISITS = Stream(50, 12, clusters={"home": "H", "shop": "C", "cafe": "C", "bar": "C"})


def one(column, target, domain=DAY):
    """Return the maximum for one column of weight one."""
    family = change_family(domain, target, columns=(column,))
    return family.maximise([Charge((0,), lambda a: a)])


def influence(column, target, domain=DAY):
    return one(column, target, domain).value


def joint(columns, weights, target, domain=DAY):
    family = change_family(domain, target, columns=tuple(columns))
    charges = [
        Charge((j,), lambda a, w=w: (math.inf if a[0] == math.inf else w * a[0],))
        for j, w in enumerate(weights)
    ]
    return family.maximise(charges)


@pytest.mark.parametrize(
    ("unit", "event", "window", "one_user", "user"),
    [
        (Event(), 1, 3, 3, 24),
        (WEvent(3), 1, 1, 1, 8),
        (WEvent(5), 1, 1, 1, 5),
        (WEvent(2, single_user=True), 1, 3, 2, 12),
        (LTrajectory(2, periodic=True), 1, 3, 2, 12),
        (User(), 1, 3, 1, 1),
        (FreeLunch(), 1, 1, 1, 1),
        (Event(add_remove=True), 2, 6, 6, 48),
        (User(add_remove=True), 2, 6, 2, 2),
        (Group(Event(), 2), 1, 2, 2, 12),
        (Scaled(Event(), 2), 2, 6, 6, 48),
        (LTrajectory(2), math.inf, math.inf, math.inf, math.inf),
        (Euclidean(), math.inf, math.inf, math.inf, math.inf),
    ],
)
def test_units_on_the_whole_stream(unit, event, window, one_user, user):
    column = Column(Identity(), unit, "view")
    assert influence(column, Event()) == event
    assert influence(column, WEvent(3)) == window
    assert influence(column, WEvent(3, single_user=True)) == one_user
    assert influence(column, User()) == user


def test_everything_at_once_is_every_user():
    assert influence(Column(Identity(), Event(), "view"), FreeLunch()) == 2400
    assert influence(Column(Identity(), WEvent(3), "view"), FreeLunch()) == 800
    assert influence(Column(Users([0, 1]), User(), "view"), FreeLunch()) == 2


def test_windows_count_the_times_a_view_kept_or_those_of_the_stream():
    kept = Times([0, 5, 10, 15])
    assert influence(Column(kept, WEvent(4), "view"), User()) == 1
    assert influence(Column(kept, WEvent(4), "common"), User()) == 4
    assert influence(Column(kept, WEvent(6), "common"), User()) == 2


def test_fewer_users_than_times_share_a_window():
    pair = Stream(2, 24)
    column = Column(Identity(), User(), "view")
    assert influence(column, WEvent(3), pair) == 2
    single = Column(Identity(), WEvent(2, single_user=True), "view")
    top = one(single, WEvent(3), pair)
    assert (top.value, top.tight) == (3, False)
    assert influence(Column(Identity(), User(), "view"), WEvent(3), Stream(1, 24)) == 1


def test_segments_of_recorded_points_take_the_heaviest_times():
    columns = [Column(At(t), Event(), "view") for t in range(24)]
    weights = [t % 7 for t in range(24)]
    top = joint(columns, weights, LTrajectory(3))
    assert (top.value, top.tight) == (18, True)
    assert top.row.change.detail("times") == (6, 13, 20)


def test_recorded_points_cannot_be_added_at_segment_level():
    gone = Column(Identity(), LTrajectory(2), "view")
    assert influence(gone, User(add_remove=True)) == math.inf
    # Relocating a segment of four recorded points takes two steps of two.
    assert influence(gone, LTrajectory(4)) == 2
    assert (
        influence(Column(Identity(), Event(add_remove=True), "view"), LTrajectory(4))
        == 8
    )


def test_capped_users_with_views_of_several_times():
    halves = [Column(Window(start, 12), Event(), "view") for start in (0, 12)]
    top = joint(halves, (3, 1), User(max_times=4))
    assert (top.value, top.tight) == (24, True)
    leaving = joint(halves, (3, 1), User(max_times=4, add_remove=True))
    assert (leaving.value, leaving.tight) == (12, True)
    touched = joint([Column(Window(0, 12), User(), "view")], (1,), User(max_times=4))
    assert (touched.value, touched.tight) == (1, False)


def test_capped_users_pay_a_changed_location_twice_where_events_come_and_go():
    columns = [Column(At(t), Event(add_remove=True), "view") for t in range(24)]
    weights = [5 if t == 3 else 1 for t in range(24)]
    # Four slots: the heavy hour twice, two others once.
    assert joint(columns, weights, User(max_times=2)).value == 12


def test_a_claim_about_capped_users_is_lost_beyond_the_cap():
    column = Column(Identity(), User(max_times=4), "view")
    assert influence(column, User()) == math.inf
    assert influence(column, User(max_times=3)) == 1
    assert influence(Column(Window(0, 4), User(max_times=4), "view"), User()) == 1


def test_regular_streams_have_no_events_that_come_and_go():
    with pytest.raises(VacuousGranularityError, match="neighbours"):
        influence(Column(At(0), Event(), "view"), Event(add_remove=True), REGULAR)
    gone = Column(At(0), Event(add_remove=True), "view")
    assert influence(gone, Event(), REGULAR) == math.inf
    with pytest.raises(MismatchError, match="regular"):
        influence(Column(At(0), User(max_times=3), "common"), User(), REGULAR)


def test_blocks_of_users_cost_the_largest():
    columns = [Column(Users([user]), User(), "view") for user in range(3)]
    top = joint(columns, (1, 5, 2), User())
    assert (top.value, top.row.change.detail("users")) == (5, 1)
    assert joint(columns, (0, 0, 0), User()).value == 0


def test_windows_are_handed_to_the_users_that_cost_most():
    columns = [
        Column(Cells([0], [0, 1, 2]), Event(), "view"),
        Column(Cells([1], [0, 1, 2]), Event(), "view"),
        Column(Cells([1], [2]), Event(), "view"),
    ]
    top = joint(columns, (2, 1, 5), WEvent(3), Stream(3, 3))
    # User 0 at two times, user 1 at the last one.
    assert (top.value, top.tight) == (10, True)
    large = joint(columns, (2, 1, 5), WEvent(20))
    assert large.value >= 10
    assert not large.tight


def test_a_long_window_takes_memory_per_column_not_per_class():
    times = 2000
    columns = tuple(Column(At(t), Event(), "view") for t in range(times))
    family = change_family(Stream(10**6, times), WEvent(1000), columns=columns)
    assert isinstance(family, ExplicitFamily)
    assert sum(len(runs) for runs in family.runs.values()) == times
    top = family.maximise([Charge((t,), lambda a: a) for t in range(times)])
    assert top.value == 1000


def test_moving_windows_are_runs_that_rise_and_fall():
    family = change_family(
        DAY, WEvent(4), columns=(Column(Window(10, 2), Event(), "view"),)
    )
    assert family.runs[0] == [(7, 8, 1), (8, 11, 2), (11, 12, 1)]


# ---------------------------------------------------------------- locations


def test_a_changed_location_touches_two_blocks_of_locations():
    places = Stream(5, 3, values=("a", "b", "c"))
    columns = [Column(Locations([v]), Event(), "common") for v in "abc"]
    assert joint(columns, (1, 2, 4), Event(), places).value == 6
    assert joint(columns, (1, 2, 4), Event(add_remove=True), places).value == 4


def test_clusters_of_locations_cost_the_largest_at_element_level():
    columns = [Column(Locations([label]), Element(), "view") for label in "HC"]
    top = joint(columns, (3, 5), Element(), VISITS)
    assert (top.value, top.tight) == (5, True)
    assert "cluster 'C'" in top.row.change.summary


@pytest.mark.parametrize(
    ("target", "expected"),
    [(Event(), 2), (Event(add_remove=True), 1), (Element(), 1), (User(), 3)],
)
def test_element_units(target, expected):
    column = Column(Identity(), Element(), "view")
    assert influence(column, target, VISITS) == expected


def test_without_gaps_nothing_changes_its_cluster():
    still = Stream(5, 3, regular=True, clusters={"a": "A", "b": "A", "c": "C"})
    column = Column(Identity(), Element(), "view")
    assert influence(column, Event(), still) == math.inf
    assert influence(column, Element(), still) == 1
    assert influence(Column(Locations(["c"]), Element(), "common"), Event(), still) == (
        math.inf
    )


def test_locations_that_are_left_open_are_bounded_from_above():
    columns = [Column(Locations([v]), Event(), "view") for v in ("a", "b")]
    top = joint(columns, (1, 1), Event())
    assert (top.value, top.tight) == (2, False)


def test_many_locations_are_compared_in_pairs():
    values = tuple(range(60))
    city = Stream(5, 4, values=values)
    columns = [Column(Locations([v]), Event(), "view") for v in values]
    columns.append(Column(At(1), Event(), "view"))
    weights = [*([1] * 59), 3, 10]
    assert joint(columns, weights, Event(), city).value == 14
    assert joint(columns, weights, Event(add_remove=True), city).value == 13
    # At user level every cell may change between the two heaviest places.
    assert joint(columns, weights, User(), city).value == 4 * 4 + 10
    assert joint(columns, weights, FreeLunch(), city).value == 20 * 4 + 50


def test_a_user_moves_between_two_places_at_every_time():
    places = Stream(5, 3, values=("a", "b", "c"))
    columns = [Column(Locations([v]), Event(), "common") for v in "abc"]
    assert joint(columns, (1, 2, 4), User(), places).value == 18
    recorded = joint(columns, (1, 2, 4), LTrajectory(2), places)
    assert recorded.value == 12
    assert joint(columns, (1, 2, 4), User(add_remove=True), places).value == 12


# ---------------------------------------------------------------- wrapped


def test_truncated_users_are_one_user():
    column = Column(Chain(Truncate(3), At(0)), User(), "view")
    assert influence(column, User()) == math.inf
    assert influence(Column(Truncate(3), User(), "view"), User()) == 1
    assert influence(Column(Chain(Truncate(3), At(0)), User(), "common"), User()) == 1


def test_groups_of_users_and_windows():
    column = Column(At(0), User(), "view")
    assert influence(column, Group(User(), 3)) == 3
    assert one(column, Group(User(), 3)).tight
    assert not one(column, Group(User(), 3), Stream(2, 24)).tight
    assert influence(Column(Identity(), FreeLunch(), "view"), Group(WEvent(3), 2)) == 1

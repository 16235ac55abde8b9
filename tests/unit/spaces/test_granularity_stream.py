"""Granularities of streams: windows, segments, elements, users and their caps."""

import math

import pytest

from undertow.errors import AssumptionError, MismatchError, VacuousGranularityError
from undertow.spaces.canonical import check_domain
from undertow.spaces.domain import FiniteDomain, Rows, Stream, Table
from undertow.spaces.unit import Element, Event, LTrajectory, Trajectory, User, WEvent

DAY = Stream(2, 4, values=("a", "b"))
REGULAR = Stream(2, 4, regular=True, values=("a", "b"))
SHAPE = "the matrix shape: how many users and times"


def test_events_in_a_window_may_belong_to_different_users():
    first = (("a", "a", "a", "a"), ("a", "a", "a", "a"))
    mixed = (("b", "a", "b", "a"), ("a", "b", "a", "a"))
    assert WEvent(3).are_neighbours(first, mixed, DAY)
    assert not WEvent(3, single_user=True).are_neighbours(first, mixed, DAY)
    assert WEvent(3, single_user=True).distance(first, mixed, DAY) == 2


def test_two_entries_at_one_time_need_two_windows():
    first = (("a", "a", "a", "a"), ("a", "a", "a", "a"))
    both = (("b", "a", "a", "a"), ("b", "a", "a", "a"))
    assert WEvent(4).distance(first, both, DAY) == 2
    assert Event().distance(first, both, DAY) == 2


@pytest.mark.parametrize(
    ("granularity", "number"),
    [(Event(), 8), (WEvent(1), 8), (WEvent(2), 8 + 3 * 4), (User(), 2 * 15)],
    ids=lambda value: getattr(value, "name", None),
)
def test_how_many_neighbours_there_are_on_a_binary_stream(granularity, number):
    start = (("a",) * 4, ("a",) * 4)
    assert len(set(granularity.neighbours(start, REGULAR))) == number


def test_a_segment_counts_recorded_points_not_times():
    first = (("a", None, "a", "a"), ("a", "a", "a", "a"))
    second = (("b", None, "b", "a"), ("a", "a", "a", "a"))
    assert LTrajectory(2).distance(first, second, DAY) == 1
    assert LTrajectory(2, periodic=True).distance(first, second, DAY) == 2
    assert WEvent(2, single_user=True).distance(first, second, DAY) == 2


def test_a_segment_never_moves_a_gap():
    first = (("a", None, "a", "a"), ("a",) * 4)
    moved = (("a", "a", None, "a"), ("a",) * 4)
    assert LTrajectory(4).distance(first, moved, DAY) == math.inf
    assert LTrajectory(4, periodic=True).distance(first, moved, DAY) == 1
    assert LTrajectory(4).moves_gaps(REGULAR)
    assert not LTrajectory(4).moves_gaps(DAY)


def test_segments_publish_the_recorded_times():
    assert LTrajectory(2).invariants(REGULAR) == (SHAPE,)
    assert LTrajectory(2).invariants(DAY)[1].startswith("the number of recorded points")
    found = check_domain(DAY, LTrajectory(2))
    assert found.component_count == 2**8
    assert found.components == ("one per pattern of recorded times",)
    assert check_domain(Stream(100, 100), LTrajectory(2)).component_count == math.inf


def test_segments_of_one_place_are_vacuous():
    with pytest.raises(VacuousGranularityError):
        check_domain(Stream(1, 3, values=("a",)), LTrajectory(2))


@pytest.mark.parametrize(
    "granularity", [Event(add_remove=True), User(add_remove=True)], ids=lambda g: g.name
)
def test_nothing_comes_or_goes_on_a_regular_stream(granularity):
    first, second = (("a",) * 4, ("a",) * 4), (("a",) * 4, ("b",) * 4)
    assert granularity.distance(first, second, REGULAR) == math.inf
    assert list(granularity.neighbours(first, REGULAR)) == []
    with pytest.raises(VacuousGranularityError):
        check_domain(REGULAR, granularity)
    one = Stream(1, 1, regular=True, values=("a",))
    assert not check_domain(one, granularity).vacuous


def test_a_cap_on_recorded_times_is_part_of_the_promise():
    capped = User(max_times=2)
    stream = Stream(1, 4, values=("a", "b"))
    inside, other = (("a", "a", None, None),), ((None, None, "b", "b"),)
    beyond = (("a", "a", "a", None),)
    assert capped.distance(inside, other, stream) == 1
    assert capped.distance(inside, beyond, stream) == math.inf
    assert not capped.are_neighbours(inside, beyond, stream)
    assert list(capped.neighbours(beyond, stream)) == []
    assert User().distance(inside, beyond, stream) == 1
    assert all(capped.within_cap(row) for row in capped.neighbours(inside, stream))
    assert "at most 2 recorded times per user" in capped.invariants(stream)[1]
    assert "within the cap" in check_domain(stream, capped).components


def test_a_cap_needs_gaps_to_make_room():
    with pytest.raises(MismatchError, match="regular stream that records all 4"):
        User(max_times=3).require_domain(REGULAR)
    User(max_times=4).require_domain(REGULAR)
    with pytest.raises(MismatchError, match="must be a stream"):
        User(max_times=3).require_domain(Rows(2))


def test_a_cap_on_an_open_stream_leaves_infinitely_many_outside():
    found = check_domain(Stream(3, 9), User(max_times=2))
    assert found.component_count == math.inf
    assert check_domain(Stream(3, 9), User()).connected


def test_a_user_who_leaves_has_a_row_of_gaps():
    absent, here = (None,) * 4, ("a", None, None, "b")
    keep = ("b",) * 4
    joins = User(add_remove=True)
    assert joins.distance((absent, keep), (here, keep), DAY) == 1
    assert joins.distance((here, keep), (("a",) * 4, keep), DAY) == 2
    assert User().distance((absent, keep), (here, keep), DAY) == 1
    assert joins.invariants(DAY) == ()
    assert User().invariants(DAY) == ("the number of users",)


def test_trajectories_are_users_on_streams_and_records_on_tables():
    assert Trajectory().on(DAY) == User()
    assert Trajectory(add_remove=True).on(DAY) == User(add_remove=True)
    table = Table()
    first, second = (("a", "b"), ("c",)), (("a", "b"), ("d",))
    assert Trajectory().distance(first, second, table) == 1
    assert Trajectory(add_remove=True).distance(first, second, table) == 2
    assert Trajectory().are_neighbours(first, second, table)


def test_elements_need_clusters():
    with pytest.raises(MismatchError, match="set clusters"):
        Element().require_domain(DAY)


def test_element_distance_with_a_three_cycle_and_with_two_swaps():
    clusters = {x: x.upper() for x in "abcd"}
    stream = Stream(1, 4, clusters=clusters)
    cycle = (("a", "b", "c", None),), (("b", "c", "a", None),)
    swaps = (("a", "b", "c", "d"),), (("b", "a", "d", "c"),)
    assert Element().formula(*cycle, stream) == 3
    assert Element().distance(*cycle, stream) == 4
    assert Element().distance(*swaps, stream) == 6


def test_element_distance_refuses_an_entanglement_it_cannot_solve():
    places = tuple(range(21))
    stream = Stream(1, 21, clusters={place: place for place in places})
    with pytest.raises(AssumptionError, match="at most 20 clusters"):
        Element().distance((places,), ((*places[1:], places[0]),), stream)


def test_elements_on_regular_streams_publish_the_clusters():
    stream = Stream(1, 2, regular=True, clusters={"a": "A", "b": "A", "c": "B"})
    assert len(Element().invariants(stream)) == 2
    assert Element().distance((("a", "c"),), (("b", "c"),), stream) == 1
    assert Element().distance((("a", "c"),), (("c", "c"),), stream) == math.inf
    found = check_domain(stream, Element())
    assert found.component_count == 4
    big = Stream(900, 900, regular=True, clusters=stream.clusters)
    assert check_domain(big, Element()).component_count == math.inf


def test_listed_classes_of_streams_are_searched():
    rows = [(("a", "a"),), (("a", "b"),), (("b", "b"),)]
    listed = FiniteDomain(rows)
    assert Event().closed_form(rows[0], rows[2], listed) is None
    assert Event().distance(rows[0], rows[2], listed) == 2
    apart = FiniteDomain([rows[0], rows[2]])
    assert Event().distance(rows[0], rows[2], apart) == math.inf
    assert WEvent(2).distance(rows[0], rows[2], apart) == 1
    with pytest.raises(MismatchError, match="all of one shape"):
        Event().require_domain(FiniteDomain([("a",), ("b",)]))


@pytest.mark.parametrize(
    "build", [lambda: WEvent(0), lambda: LTrajectory(0), lambda: User(max_times=0)]
)
def test_lengths_are_positive(build):
    with pytest.raises(ValueError, match="at least 1"):
        build()


def test_large_streams_have_their_distances_by_formula():
    n, times = 300, 168
    stream = Stream(n, times)
    quiet = (("a",) * times,) * n
    busy = (("b",) * times,) * n
    assert Event().distance(quiet, busy, stream) == n * times
    assert WEvent(24).distance(quiet, busy, stream) == n * 7
    assert User().distance(quiet, busy, stream) == n


@pytest.mark.parametrize("granularity", [User(), User(add_remove=True)])
def test_users_of_a_listed_stream_are_those_of_the_stream(granularity):
    """A user who turns silent is a neighbour, listed or not."""
    stream = Stream(2, 2, values=("a",))
    listed = FiniteDomain(stream.databases())
    for database in stream.databases():
        assert set(granularity.neighbours(database, listed)) == set(
            granularity.neighbours(database, stream)
        )


def test_a_location_outside_the_stream_is_refused_without_being_shown():
    stream = Stream(1, 1, clusters={"a": "A"})
    calls = (
        lambda: stream.cluster_of("secret"),
        lambda: Element().formula((("secret",),), (("a",),), stream),
    )
    for call in calls:
        with pytest.raises(ValueError, match="outside") as caught:
            call()
        assert "secret" not in str(caught.value)

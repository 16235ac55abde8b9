"""Views of streams."""

import pickle
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import MismatchError
from undertow.spaces.domain import Graph, Stream
from undertow.spaces.view import At, Cells, Locations, Times, Users, Window

SMALL = Stream(2, 3, values=("a", "b"))
DATA = (("a", "b", None), ("b", None, "a"))
CLUSTERED = Stream(1, 3, clusters={"p": "home", "q": "home", "r": "shop"})


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        (At(1), (("b",), (None,))),
        (Window(1, 2), (("b", None), (None, "a"))),
        (Times([2, 0]), (("a", None), ("b", "a"))),
        (Users([1]), (("b", None, "a"),)),
        (Cells([0], [0, 2]), (("a", None),)),
        (Locations(["a"]), (("a", None, None), (None, None, "a"))),
        (Locations(["a", "b"]), DATA),
    ],
)
def test_a_view_shows_its_part_of_the_matrix(view, shown):
    assert view.apply(DATA, SMALL) == shown


@pytest.mark.parametrize(
    "view", [At(1), Window(0, 2), Times([0, 2]), Users([1]), Cells([0], [0, 2])]
)
def test_the_image_of_a_rectangle_is_exactly_the_set_of_its_values(view):
    shown = {view.apply(one, SMALL) for one in SMALL.databases()}
    assert shown == set(view.image(SMALL).databases())


@pytest.mark.parametrize("regular", [False, True])
def test_the_image_of_locations_is_the_stream_with_gaps_on_them(regular):
    stream = Stream(1, 3, regular=regular, values=("a", "b"))
    shown = {Locations(["a"]).apply(one, stream) for one in stream.databases()}
    assert shown == set(Locations(["a"]).image(stream).databases())


def test_a_cluster_label_stands_for_its_locations():
    assert Locations(["home"]).apply((("p", "r", "q"),), CLUSTERED) == (
        ("p", None, "q"),
    )
    image = Locations(["home"]).image(CLUSTERED)
    assert (image.values, image.cluster_labels) == (("p", "q"), ("home",))


def test_a_label_that_is_also_another_location_is_refused():
    muddled = Stream(1, 1, clusters={"p": "q", "q": "q"})
    with pytest.raises(ValueError, match="label of another cluster"):
        Locations(["q"]).require_domain(muddled)
    single = Stream(1, 1, clusters={"p": "p", "q": "q"})
    Locations(["q"]).require_domain(single)


def test_open_locations_are_taken_as_named():
    stream = Stream(1, 2)
    Locations(["x"]).require_domain(stream)
    assert Locations(["x"]).apply((("x", "y"),), stream) == (("x", None),)
    assert not Locations(["x"]).image(Stream(1, 2, regular=True)).regular


def test_views_expose_the_times_users_and_values_they_keep():
    assert At(3).times == {3}
    assert Window(2, 3).times == {2, 3, 4}
    assert Times([5, 1]).times == {1, 5}
    assert Users([4]).users == {4}
    assert (Cells([1], [2]).users, Cells([1], [2]).times) == ({1}, {2})
    assert Locations(["a"]).values == {"a"}


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (At(3), "times must be numbered from 0 to 2"),
        (Window(2, 2), "times must be numbered"),
        (Users([2]), "users must be numbered from 0 to 1"),
        (Cells([0], [9]), "times must be numbered"),
        (Locations(["z"]), "got z"),
    ],
)
def test_a_view_outside_the_stream_is_refused(view, message):
    with pytest.raises(ValueError, match=message):
        view.require_domain(SMALL)


@pytest.mark.parametrize(
    "build",
    [
        lambda: At(-1),
        lambda: At(True),
        lambda: Window(0, 0),
        lambda: Times([]),
        lambda: Times([-1]),
        lambda: Users([]),
        lambda: Locations([]),
    ],
)
def test_empty_and_negative_selections_are_refused(build):
    with pytest.raises(ValueError, match="must"):
        build()


@pytest.mark.parametrize("view", [At(0), Users([0]), Locations(["a"])])
def test_stream_views_refuse_other_domains(view):
    with pytest.raises(MismatchError, match="kind stream"):
        view.require_domain(Graph(2))


@pytest.mark.parametrize(
    ("view", "name"),
    [
        (At(3), "time 3"),
        (Window(2, 3), "times 2 to 4"),
        (Times(range(10)), "times 0 to 9"),
        (Times(range(0, 20, 2)), "times 0, 2, 4, 6, 8, 10, ..."),
        (Users([7]), "users 7"),
        (Cells([1], [0, 1]), "users 1 at times 0, 1"),
        (Locations(["b", "a"]), "locations a, b"),
    ],
)
def test_every_view_has_a_name_hashes_and_survives_pickling(view, name):
    assert view.name == name
    assert len({view, pickle.loads(pickle.dumps(view))}) == 1


@given(st.integers(0, 9), st.integers(1, 9), st.integers(1, 12))
def test_a_window_asks_for_the_times_that_it_names(start, length, times):
    stream, inside = Stream(2, times), start + length <= times
    for view in (Window(start, length), Times(range(start, start + length))):
        if inside:
            view.require_domain(stream)
        else:
            with pytest.raises(ValueError, match=f"numbered from 0 to {times - 1}"):
                view.require_domain(stream)


def test_the_times_of_a_long_window_are_not_counted_one_by_one():
    started = process_time()
    Window(1, 10**15).require_domain(Stream(1, 10**15 + 1))
    assert process_time() - started < 1

"""Every granularity reads back from its name; anything else names the nearest."""

import pytest

from undertow.spaces.unit import (
    Attribute,
    Bounded,
    BoundedById,
    Edge,
    Edit,
    Element,
    Event,
    FreeLunch,
    Group,
    Local,
    LTrajectory,
    Node,
    Trajectory,
    Unbounded,
    User,
    WEvent,
    parse_granularity,
)
from undertow.spaces.unit.name import granularity_names

NAMES = {
    "unbounded": Unbounded(),
    "bounded": Bounded(),
    "bounded:ordered": Bounded(ordered=True),
    "bounded-by-id": BoundedById(),
    "edit": Edit(),
    "free-lunch": FreeLunch(),
    "local": Local(),
    "event": Event(),
    "event:add-remove": Event(add_remove=True),
    "w-event:3": WEvent(3),
    "w-event:3:single-user": WEvent(3, single_user=True),
    "l-trajectory:3": LTrajectory(3),
    "l-trajectory:3:periodic": LTrajectory(3, periodic=True),
    "l-trajectory:3:recorded": LTrajectory(3, periodic=False),
    "user": User(),
    "user:add-remove": User(add_remove=True),
    "user:max-times=4": User(max_times=4),
    "user:add-remove:max-times=4": User(add_remove=True, max_times=4),
    "element": Element(),
    "attribute": Attribute(),
    "edge": Edge(),
    "node": Node(),
    "trajectory": Trajectory(),
    "trajectory:add-remove": Trajectory(add_remove=True),
    "group:2:bounded": Group(Bounded(), 2),
    "group:2:w-event:3:single-user": Group(WEvent(3, single_user=True), 2),
    "group:2:group:3:event:add-remove": Group(Group(Event(add_remove=True), 3), 2),
}


@pytest.mark.parametrize(("name", "granularity"), NAMES.items(), ids=list(NAMES))
def test_names_and_granularities_correspond(name, granularity):
    assert granularity.name == name
    assert parse_granularity(name) == granularity
    assert hash(parse_granularity(name)) == hash(granularity)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("bouned", "bounded"),
        ("Unbounded", "unbounded"),
        ("w-event", "w-event:3"),
        ("w-event:0", "w-event:3"),
        ("w-event:3:", "w-event:3"),
        ("user:max-times=-4", "user:max-times=4"),
        ("nodes", "node"),
        ("bounded ", "bounded"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(text, nearest):
    with pytest.raises(ValueError, match=f"the nearest is '{nearest}'"):
        parse_granularity(text)


@pytest.mark.parametrize("text", ["", "group:2:", "group:2:nothing", "group:x:event"])
def test_incomplete_names_are_refused(text):
    with pytest.raises(ValueError, match="granularity must be a known name"):
        parse_granularity(text)


def test_only_text_is_a_name():
    with pytest.raises(TypeError, match="must be a known name"):
        parse_granularity(3)


def test_every_listed_name_parses():
    for name in granularity_names():
        assert parse_granularity(name).name == name

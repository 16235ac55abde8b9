"""The names of granularities on the command line and in files."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from undertow.spaces.base import Granularity
from undertow.spaces.unit.generic import FreeLunch, Group, Local
from undertow.spaces.unit.graph import Edge, Node
from undertow.spaces.unit.stream import (
    Element,
    Event,
    LTrajectory,
    Trajectory,
    User,
    WEvent,
)
from undertow.spaces.unit.table import Attribute, Bounded, BoundedById, Edit, Unbounded

_PLAIN: dict[str, Callable[[], Granularity]] = {
    "attribute": Attribute,
    "bounded": Bounded,
    "bounded-by-id": BoundedById,
    "bounded:ordered": lambda: Bounded(ordered=True),
    "edge": Edge,
    "edit": Edit,
    "element": Element,
    "event": Event,
    "event:add-remove": lambda: Event(add_remove=True),
    "free-lunch": FreeLunch,
    "local": Local,
    "node": Node,
    "trajectory": Trajectory,
    "trajectory:add-remove": lambda: Trajectory(add_remove=True),
    "unbounded": Unbounded,
    "user": User,
    "user:add-remove": lambda: User(add_remove=True),
}

_NUMBER = r"([1-9][0-9]{0,8})"
_PATTERNS: dict[str, tuple[str, Callable[[re.Match[str]], Granularity]]] = {
    "group:2:bounded": (
        rf"group:{_NUMBER}:(.+)",
        lambda m: Group(parse_granularity(m[2]), int(m[1])),
    ),
    "l-trajectory:3": (
        rf"l-trajectory:{_NUMBER}(?::(periodic|recorded))?",
        lambda m: LTrajectory(
            int(m[1]), periodic=None if m[2] is None else m[2] == "periodic"
        ),
    ),
    "user:max-times=4": (
        rf"user(:add-remove)?:max-times={_NUMBER}",
        lambda m: User(add_remove=bool(m[1]), max_times=int(m[2])),
    ),
    "w-event:3": (
        rf"w-event:{_NUMBER}(:single-user)?",
        lambda m: WEvent(int(m[1]), single_user=bool(m[2])),
    ),
}


# Groups nest; a longer name is a mistake, and would exhaust the stack.
_LONGEST_NAME = 200


def granularity_names() -> tuple[str, ...]:
    """Return every plain name and one example of each name that takes a number."""
    more = (
        "l-trajectory:3:periodic",
        "l-trajectory:3:recorded",
        "user:add-remove:max-times=4",
        "w-event:3:single-user",
    )
    return tuple(sorted((*_PLAIN, *_PATTERNS, *more)))


def parse_granularity(text: str) -> Granularity:
    """Return the granularity called `text`.

    Parameters
    ----------
    text : str
        A name such as ``bounded``, ``w-event:3`` or ``group:2:event:add-remove``.

    Raises
    ------
    ValueError
        If there is no such name; the message names the nearest one.

    Examples
    --------
    >>> parse_granularity("user:max-times=4")
    User(add_remove=False, max_times=4)
    """
    if not isinstance(text, str):
        raise TypeError(f"granularity must be a known name, got {text!r}.")
    if len(text) > _LONGEST_NAME:
        raise ValueError(
            f"granularity must be a known name of at most {_LONGEST_NAME} characters, "
            f"got {len(text)}."
        )
    if text in _PLAIN:
        return _PLAIN[text]()
    for pattern, build in _PATTERNS.values():
        if found := re.fullmatch(pattern, text):
            return build(found)
    raise ValueError(
        f"granularity must be a known name, got {text[:60]!r}; the nearest is "
        f"{_nearest(text)!r}."
    )


def _nearest(text: str) -> str:
    names = granularity_names()
    close = get_close_matches(text, names, n=1, cutoff=0.0)
    return close[0] if close else "bounded"

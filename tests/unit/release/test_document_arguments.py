"""What is no release file, no table of settings or no fitting level: one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from undertow.errors import PlanError
from undertow.release import read_release, release_from_mapping

GOOD = {
    "source": {"table": "t.csv", "unit": "person", "time": "ts"},
    "promise": {"epsilon": "1"},
    "bounds": {"rows_per_unit": 2},
    "queries": [{"name": "rows", "select": "count"}],
}
HOURLY = {
    **GOOD["source"],
    "per": {"window": "1h"},
    "start": "2026-01-01",
    "horizon": "2d",
}


@pytest.mark.parametrize("path", [None, 5, b"r.toml", GOOD, ["r.toml"]], ids=repr)
def test_a_path_that_is_no_name_is_refused_in_one_sentence(path):
    kind = type(path).__name__
    with pytest.raises(
        PlanError, match=f"^path must be the name of .*, got {kind}\\.$"
    ):
        read_release(path)


def test_a_path_object_is_a_name(tmp_path):
    with pytest.raises(PlanError, match="no such file"):
        read_release(Path(tmp_path) / "absent.toml")


@pytest.mark.parametrize("part", [None, 5, "x", [("a", 1)]], ids=repr)
@pytest.mark.parametrize("name", ["", "source", "promise", "bounds", "queries"])
def test_settings_that_are_no_mapping_are_refused_in_one_sentence(name, part):
    with pytest.raises(PlanError, match=r"must be a (table|list), got [^.]*\.$"):
        release_from_mapping(GOOD | {name: part} if name else part)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({5: 1}, "the release"),
        ({"source": {5: 1}}, "source"),
        ({"queries": [{"name": "a"}, {None: 1}]}, r"queries\[1\]"),
        ({"queries": [{"name": "a", "keys": {3: "1..2"}}]}, r"queries\[0\]\.keys"),
    ],
)
def test_keys_that_are_no_text_are_refused_with_their_place(change, place):
    with pytest.raises(PlanError, match=f"^the keys of {place} must be text, got "):
        release_from_mapping(GOOD | change)


def test_a_mapping_that_holds_itself_is_refused():
    circle = dict(GOOD)
    circle["source"] = circle
    with pytest.raises(PlanError, match="nested"):
        release_from_mapping(circle)


def stated(granularity, source):
    promise = {"epsilon": "1", "granularity": granularity}
    return release_from_mapping(GOOD | {"promise": promise, "source": source})


@pytest.mark.parametrize("level", ["w-event:2", "w-event:24:single-user"])
@pytest.mark.parametrize(
    ("source", "given"),
    [
        (GOOD["source"], "users as a whole"),
        (GOOD["source"] | {"per": "user"}, "users as a whole"),
        (HOURLY | {"horizon": "1h"}, "one window"),
    ],
    ids=["default", "user", "one"],
)
def test_a_level_of_several_windows_is_refused_where_there_are_none(
    level, source, given
):
    said = f"granularity must count windows where it is {level}, got {given}; give"
    with pytest.raises(PlanError, match=said):
        stated(level, source)
    assert stated(level, HOURLY).promise.granularity == level
    assert stated("w-event:1", source).promise.granularity == "w-event:1"

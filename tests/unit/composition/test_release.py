"""Releases and their claims."""

from __future__ import annotations

import pickle

import pytest

from undertow.composition import Claim, Release
from undertow.errors import AssumptionError
from undertow.privacy import GDP, ZCDP, Approx, Pure
from undertow.spaces import (
    AbsoluteDifference,
    Bounded,
    DiscreteMetric,
    Identity,
    Select,
    Unbounded,
    ZeroMetric,
)


def test_one_claim_and_its_short_form_are_the_same_release():
    short = Release("n", Pure(1), unit=Bounded(), view=Select("a"), setting="common")
    long = Release.with_claims(
        "n", [Claim(Pure(1), Bounded(), "common")], view=Select("a")
    )
    assert short == long
    assert hash(short) == hash(long)
    assert (short.loss, short.unit, short.setting) == (Pure(1), Bounded(), "common")


def test_a_release_survives_pickling():
    release = Release(
        "n", GDP.from_square(2), unit=Bounded(), view=Select("a"), setting="view"
    )
    assert pickle.loads(pickle.dumps(release)) == release


def test_setting_has_no_default():
    with pytest.raises(TypeError, match="setting"):
        Release("n", Pure(1), unit=Bounded(), view=Identity())


def test_a_release_cannot_be_changed():
    release = Release("n", Pure(1), unit=Bounded(), view=Identity(), setting="view")
    with pytest.raises(AttributeError):
        release.name = "other"


@pytest.mark.parametrize(
    ("change", "fault", "message"),
    [
        ({"name": ""}, ValueError, "name must be a non-empty string"),
        ({"name": 3}, ValueError, "name must be a non-empty string"),
        ({"loss": 0.5}, TypeError, "loss must be Pure, Approx, ZCDP or GDP"),
        ({"unit": "bounded"}, TypeError, "unit must be a granularity or metric"),
        ({"view": "a"}, TypeError, "view must be a View"),
        ({"setting": "both"}, ValueError, "setting must be one of 'view', 'common'"),
        ({"setting": None}, ValueError, "setting must be one of"),
    ],
)
def test_wrong_arguments_are_named(change, fault, message):
    given = {
        "name": "n",
        "loss": Pure(1),
        "unit": Bounded(),
        "view": Identity(),
        "setting": "view",
    } | change
    name, loss = given.pop("name"), given.pop("loss")
    with pytest.raises(fault, match=message):
        Release(name, loss, **given)


def test_a_release_needs_a_claim():
    with pytest.raises(ValueError, match="claims of release 'n' must not be empty"):
        Release.with_claims("n", [], view=Identity())


@pytest.mark.parametrize(
    "loss", [Pure("inf"), ZCDP("inf"), GDP("inf"), Approx("inf", 0)]
)
def test_a_raw_release_needs_a_unit_that_separates_points(loss):
    for unit in (Unbounded(), DiscreteMetric()):
        assert Claim(loss, unit, "view").is_raw
    for unit in (ZeroMetric(), AbsoluteDifference()):
        if not unit.separates_points:
            with pytest.raises(AssumptionError, match="needs a unit that separates"):
                Claim(loss, unit, "view")


def test_delta_of_one_promises_nothing_but_is_no_raw_release():
    assert not Claim(Approx(1, 1), Bounded(), "view").is_raw

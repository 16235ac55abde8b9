"""Which pairs of secrets a promise covers."""

from __future__ import annotations

import math

import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.leak import leakage
from undertow.correlation.query import LinearQuery, Scope
from undertow.errors import NotApplicable


def test_the_default_scope_covers_every_pair():
    assert Scope() == Scope.every_pair()
    assert Scope().is_every_pair
    assert Scope().summary == "every pair of secrets"


def test_an_interval_covers_pairs_inside_it_at_most_its_width_apart():
    scope = Scope.inside(60, 80)
    assert (scope.gap, scope.interval) == (20.0, (60.0, 80.0))
    assert not scope.is_every_pair
    assert scope.summary == "both secrets in [60, 80]"


def test_a_gap_covers_pairs_wherever_they_lie():
    scope = Scope.within(2.5)
    assert (scope.gap, scope.interval) == (2.5, None)
    assert scope.summary == "secrets at most 2.5 apart"


def test_a_scope_prints_as_its_words():
    assert Scope.within(1).to_dict() == "secrets at most 1 apart"


@pytest.mark.parametrize("ends", [(1, 1), (2, 1)])
def test_an_interval_has_its_ends_in_order(ends):
    with pytest.raises(ValueError, match=r"low must be below high"):
        Scope.inside(*ends)


@pytest.mark.parametrize("end", [math.inf, math.nan])
def test_an_interval_has_finite_ends(end):
    with pytest.raises(ValueError, match=r"must be finite"):
        Scope.inside(0, end)


@pytest.mark.parametrize("gap", [0, -1, math.nan])
def test_a_gap_is_positive(gap):
    with pytest.raises(ValueError, match=r"gap must be positive and finite"):
        Scope(gap=gap)
    with pytest.raises(ValueError, match=r"gap must be positive and finite"):
        Scope.within(gap)


def test_scopes_are_values():
    assert Scope.inside(0, 1) == Scope.inside(0.0, 1.0)
    assert hash(Scope.inside(0, 1)) == hash(Scope.inside(0.0, 1.0))
    assert Scope.inside(0, 1) != Scope.within(1)


def test_secrets_beyond_the_clip_interval_are_told_apart():
    joint = JointTable([[0.5, 0.0], [0.0, 0.5]], values=[0, 10])
    query = LinearQuery(clip=(2, 8))
    assert leakage(joint, 1.0, query=query).value == pytest.approx(2.0)
    assert calibrate(joint, 1.0, query=query).epsilon == pytest.approx(0.5)


def test_a_gap_that_no_two_values_are_within_is_refused():
    joint = JointTable([[0.5, 0.0], [0.0, 0.5]], values=[0, 10])
    with pytest.raises(NotApplicable, match=r"no two secrets are compared"):
        leakage(joint, 1.0, query=LinearQuery(gap=1.0))

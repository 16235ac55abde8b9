"""One way to bound leakage, and its inverse."""

from __future__ import annotations

import math

import pytest

from undertow.correlation.group import Blocks
from undertow.correlation.level import check_level, largest_level, scaled_down
from undertow.correlation.query import AnyQuery
from undertow.correlation.result import Leakage
from undertow.correlation.theorem import LeakageTheorem
from undertow.errors import InfeasibleTarget


class Surcharge(LeakageTheorem):
    """An additive bound, as for Markov chains."""

    name = "surcharge"
    source = "a test"

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(epsilon + 2.0, self.source, method=self.name)


@pytest.mark.parametrize("target", [1e-6, 1e-3, 0.1, 1.0, 20.0, 1e4])
@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0, 1e5])
def test_bisection_inverts_a_multiple(target, factor):
    level = largest_level(lambda e: factor * e, target)
    assert factor * level <= target
    assert level == pytest.approx(target / factor, rel=1e-12)


def test_bisection_inverts_a_curve():
    level = largest_level(lambda e: 4 * math.asinh(5 * math.sinh(e / 4)), 3.0)
    assert 4 * math.asinh(5 * math.sinh(level / 4)) <= 3.0
    assert level == pytest.approx(4 * math.asinh(math.sinh(0.75) / 5), rel=1e-12)


def test_bisection_stops_at_a_jump_below_the_target():
    level = largest_level(lambda e: e if e < 0.5 else 10.0, 1.0)
    assert level < 0.5
    assert level == pytest.approx(0.5, rel=1e-12)


def test_what_no_level_reaches_is_infeasible():
    with pytest.raises(InfeasibleTarget, match=r"what surcharge can reach") as caught:
        Surcharge().invert(Blocks([2]), 1.5, query=AnyQuery())
    assert caught.value.least == 1.5


def test_the_default_inverse_keeps_the_target():
    level = Surcharge().invert(Blocks([2]), 3.0, query=AnyQuery())
    found = Surcharge().bound(Blocks([2]), level, query=AnyQuery())
    assert found.value <= 3.0
    assert level == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("target", [0, -1, math.inf, math.nan])
def test_a_target_is_positive(target):
    with pytest.raises(ValueError, match=r"target must be positive and finite"):
        largest_level(lambda e: e, target)


def test_a_method_is_cheap_and_published_unless_it_says_otherwise():
    assert Surcharge().too_costly(Blocks([2]), query=AnyQuery()) is None
    assert Surcharge.published


@pytest.mark.parametrize("level", [-1e-9, math.nan, math.inf])
def test_a_level_is_finite_and_not_negative(level):
    with pytest.raises(ValueError, match=r"epsilon must be"):
        check_level(level)


@pytest.mark.parametrize("level", ["1", True, None])
def test_a_level_is_a_number(level):
    with pytest.raises(TypeError, match=r"epsilon must be a number"):
        check_level(level)


def test_zero_is_a_level():
    assert check_level(0) == 0.0


@pytest.mark.parametrize("factor", [3.0, 7.0, 1.1, 49.0])
def test_scaling_down_stays_within(factor):
    level = scaled_down(1.0, factor)
    assert level * factor <= 1.0
    assert level == pytest.approx(1 / factor, rel=1e-15)


def test_the_earlier_name_of_theorems_is_kept_with_a_warning():
    import undertow.correlation

    with pytest.warns(DeprecationWarning, match="called LeakageTheorem"):
        assert undertow.correlation.Method is LeakageTheorem
    with pytest.raises(AttributeError, match="no_such_thing"):
        undertow.correlation.no_such_thing  # noqa: B018 - the access is what is tested

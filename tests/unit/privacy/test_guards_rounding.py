"""Floats that a report shows are on the safe side of the exact parameters."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.numeric.exact import exact
from undertow.privacy.loss import Approx


@given(st.fractions(min_value=0, max_value=10**6))
def test_the_shown_epsilon_of_an_approximate_loss_is_rounded_up(value):
    assert Fraction(Approx(value, 0).epsilon) >= value


def test_a_third_is_shown_as_more_than_a_third_in_both_coordinates():
    loss = Approx("1/3", "1/3")
    assert Fraction(loss.epsilon) > Fraction(1, 3)
    assert Fraction(loss.delta) > Fraction(1, 3)


def test_a_long_budget_that_is_refused_is_shown_short():
    with pytest.raises(ValueError, match=r"non-negative, got -1{36}\.\.\.\.$"):
        exact("-" + "1" * 100)

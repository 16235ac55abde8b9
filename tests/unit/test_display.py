"""Numbers for a person: cut or raised to the safe side, with few digits."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.numeric.display import shown_down, shown_up


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (2.504379, "2.5043", "2.5044"),
        (0.00123456, "0.001234", "0.001235"),
        (1.23456e-9, "1.234e-9", "1.235e-9"),
        (3.0, "3", "3"),
        (0.1, "0.1", "0.1"),
        (1e22, "1e+22", "1e+22"),
        (math.inf, "∞", "∞"),
        (-math.inf, "-∞", "-∞"),
        (-2.504379, "-2.5044", "-2.5043"),
        (1.39349, "1.3934", "1.3935"),
        (0.0, "0", "0"),
    ],
)
def test_digits_are_cut_to_the_private_side(value, down, up):
    assert (shown_down(value), shown_up(value)) == (down, up)


@given(st.floats(1e-300, 1e300))
def test_what_is_shown_never_passes_the_value_on_the_wrong_side(value):
    assert float(shown_down(value)) <= value <= float(shown_up(value))
    assert float(shown_up(value)) <= value + max(1e-4, 1e-3 * value)

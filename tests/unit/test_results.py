"""Results: plain values, rendering, and what they refuse to hold."""

from __future__ import annotations

import io
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from undertow.privacy.loss import GDP, Pure
from undertow.results import (
    Alternative,
    Bound,
    Calibration,
    Estimate,
    Witness,
    escape_markup,
    to_plain,
)


def shown(item: object) -> str:
    console = Console(file=io.StringIO(), width=500, force_terminal=False)
    console.print(item)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.25, 0.25),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (Fraction(1, 2), 0.5),
        (Fraction(10**400), "inf"),
        (np.float64(0.5), 0.5),
        (np.int64(2), 2),
        (np.array([1.0, math.inf]), [1.0, "inf"]),
        (Decimal("0.1"), "0.1"),
        (("a", 1), ["a", 1]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({1: {"x": (math.inf,)}}, {"1": {"x": ["inf"]}}),
        (Pure("inf"), {"notion": "pure", "epsilon": "inf"}),
        (GDP(2), {"notion": "gdp", "mu": 2.0}),
    ],
)
def test_plain_values_are_what_json_can_hold(value, plain):
    assert to_plain(value) == plain
    json.dumps(to_plain(value), allow_nan=False)


def test_plain_fractions_are_rounded_up_in_the_last_place():
    third = to_plain(Fraction(1, 3))
    assert Fraction(third) >= Fraction(1, 3)
    assert Fraction(math.nextafter(third, 0)) < Fraction(1, 3)


@pytest.mark.parametrize("value", [math.nan, np.float64("nan"), [1, (math.nan,)]])
def test_nan_never_becomes_a_plain_value(value):
    with pytest.raises(ValueError, match="got nan"):
        to_plain(value)


WITNESS = Witness("pair", "{a} versus {b}", {"first": ("a",), "second": ("b",)})
BOUND = Bound(
    1.5, "Theorem 4.1", ("independent coins",), ("finite",), "epsilon", WITNESS, True
)
RESULTS = [
    WITNESS,
    BOUND,
    Estimate(0.5, 0.4, 0.6, 0.95, 100, seed=7, method="exact"),
    Alternative("Gaussian", "needs delta", 2.0),
    Calibration("scale", 2.0, BOUND, "closed form", (Alternative("a", "b"),)),
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_results_are_plain_pickle_and_show_themselves(result):
    json.dumps(result.to_dict(), allow_nan=False)
    assert pickle.loads(pickle.dumps(result)) == result
    assert type(result).__name__ in shown(result)
    assert type(result).__name__ in result._repr_html_()


def test_a_bound_keeps_every_field_in_its_record():
    record = BOUND.to_dict()
    assert record["value"] == 1.5
    assert record["witness"]["details"] == {"first": ["a"], "second": ["b"]}
    assert record["tight"] is True
    assert "independent coins" in shown(BOUND)


def test_witness_details_cannot_be_changed():
    details = {"first": 1}
    witness = Witness("pair", "x", details)
    details["first"] = 2
    assert witness.details["first"] == 1
    with pytest.raises(TypeError):
        witness.details["first"] = 3


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Bound(math.nan, "T"), "value must be a number"),
        (lambda: Calibration("s", math.nan, BOUND, "m"), "value must be a number"),
        (lambda: Estimate(2, 0, 1, 0.9, 5), "value must lie in its interval"),
        (lambda: Estimate(math.nan, 0, 1, 0.9, 5), "value must lie in its interval"),
        (lambda: Estimate(0.5, 0, 1, 1.0, 5), "confidence must be in"),
        (lambda: Estimate(0.5, 0, 1, 0.9, 0), "trials must be positive"),
    ],
)
def test_impossible_results_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    "text", ["['S']", "[/]", "[bold]x[/bold]", "[1, 2]", "a\\[red]", "[S]", "[link=x]"]
)
def test_brackets_in_a_result_are_text_and_not_markup(text):
    assert f"summary  {text}" in shown(Witness("pair", text))


@given(st.text(st.sampled_from("[]\\/ab =#@1'"), max_size=12))
def test_escaped_text_is_shown_as_it_is(text):
    assert shown(escape_markup(text) + "|") == text + "|\n"


def test_html_is_escaped():
    assert "<script>" not in Witness("pair", "<script>")._repr_html_()

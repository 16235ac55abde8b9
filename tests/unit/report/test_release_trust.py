"""What a release report tells somebody who does not believe it at once."""

from __future__ import annotations

import re

import pytest

from support.release_plans import COUNT, WINDOWED
from support.release_records import MARKOV, finished_record, planned_record
from undertow.release.plan.planned_release import EMPTY_WINDOWS
from undertow.report._release_html import cell_chart
from undertow.report._release_section import (
    checked,
    correlation_words,
    query_words,
    release_sections,
    risk_facts,
    unchecked,
)
from undertow.report._release_words import shown_cell, shown_text

EVENT = {"epsilon": 1, "granularity": "event"}
FEW = {**WINDOWED, "horizon": "3h"}
COLUMN = "\u05e9\u05dc\u05d5\u05dd"


def test_what_a_model_takes_on_trust_stands_beside_what_it_promises():
    record = planned_record({**EVENT, "correlation": MARKOV}, source=FEW)
    _, facts = correlation_words(record)
    trusted = [text for name, text in facts if name == "taken on trust"]
    assert trusted[:-1] == record["plan"]["leakage"]["unchecked"]
    assert trusted[-1] == EMPTY_WINDOWS
    below = " ".join(unchecked(record)).lower()
    assert all(text.lower() in below for text in trusted)


def test_units_that_are_whole_need_no_rows_in_a_window():
    promise = {"epsilon": 1, "correlation": MARKOV}
    record = planned_record(promise, source=FEW)
    assert all(EMPTY_WINDOWS not in text.lower() for text in unchecked(record))


def test_a_normal_series_is_not_called_one_of_limited_correlation():
    series = {"model": "gaussian", "phi": "0.5", "length": 3}
    record = planned_record({**EVENT, "correlation": series}, source=FEW)
    assert (
        "each depends on the one before"
        in dict(correlation_words(record)[1])["stated model"]
    )


def test_groups_are_not_told_as_the_size_of_the_table():
    groups = {"model": "blocks", "group": 3}
    record = planned_record({"epsilon": 1, "correlation": groups})
    facts = dict(correlation_words(record)[1])
    assert facts["covers"] == "any number of records in groups of at most 3"


def test_what_a_bound_of_an_advantage_needs_is_not_said_of_the_table():
    threat = {"categories": 5, "tolerance": 1, "knowledge": [0, 0, 1, 1, 1]}
    record = planned_record({"advantage": "0.1"}, threat=threat)
    said = (*checked(record), *unchecked(record))
    assert "For the advantage, at most 10 records." in said
    assert "At most 10 records." not in said
    gain = dict(risk_facts(record))["more often right because of it"]
    assert "full disclosure would give at most " in gain


@pytest.mark.parametrize(
    ("promise", "cost"),
    [
        ({"epsilon": "1e-12"}, "ε = 1e-12"),
        ({"epsilon": "0.3"}, "ε = 0.3"),
        ({"epsilon": 1, "delta": "1e-6"}, "ε = 1, δ = 0.000001"),
    ],
    ids=["tiny", "no binary fraction", "with delta"],
)
def test_no_cost_is_shown_above_the_promise_that_it_keeps(promise, cost):
    release = release_sections(planned_record(promise))
    [row] = [row for row in release.costs.rows if row.promised]
    assert row.costs == (cost,)


def test_a_cost_above_the_promise_would_be_shown():
    record = planned_record({"epsilon": 1})
    record["plan"]["costs"]["user"]["epsilon"] = 1.0001
    [row] = [row for row in release_sections(record).costs.rows if row.promised]
    assert row.costs == ("ε = 1.001",)


def test_text_from_right_to_left_moves_no_number_of_its_sentence():
    assert shown_text(COLUMN) == f"\u2068{COLUMN}\u2069"
    assert shown_text("zone 5") == "zone 5"
    assert shown_cell(COLUMN) == COLUMN
    query = {**COUNT, "by": [COLUMN], "keys": {COLUMN: "0..3"}}
    record = finished_record({"epsilon": 1}, [query])
    asked, error = record["document"]["queries"][0], record["plan"]["queries"][0]
    assert f"by \u2068{COLUMN}\u2069; 4 cells" in query_words(asked, error)


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
@pytest.mark.parametrize("count", range(2, 16))
def test_long_names_of_cells_leave_each_other_room(count, narrow):
    rows = [(f"{'name ' * 20}{at}", 5, 4, 6) for at in range(count)]
    columns = ["zone", "estimate", "low", "high"]
    answer = {"name": "n", "columns": columns, "confidence": 0.95}
    chart = cell_chart(answer, rows, unit="rows")
    form = r'class="label x([^"]*)".*?left: ([\d.]+)%; --most: ([\d.]+)%'
    ends = 0.0
    for kinds, left, most in re.findall(form, chart):
        if narrow and "more" in kinds.split():
            continue
        place, width = float(left), float(most) * (2 if narrow else 1)
        start = place - width * (0.5 if kinds in ("", " more") else "last" in kinds)
        assert start >= ends - 0.3
        ends = start + width

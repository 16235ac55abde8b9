"""Public keys: ranges, lists, and what is refused."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import PlanError
from undertow.release.document.release_document import (
    DISCOVER,
    MOST_CELLS,
    parse_all_keys,
    parse_keys,
)
from undertow.release.engine.job import Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source


def test_a_range_of_whole_numbers_holds_both_ends():
    assert parse_keys("0..23") == tuple(range(24))
    assert parse_keys(" -2 .. 1 ") == (-2, -1, 0, 1)
    assert parse_keys("7..7") == (7,)


def test_a_range_of_dates_holds_every_day():
    days = parse_keys("2026-01-01..2026-12-31")
    assert len(days) == 365
    assert days[0] == date(2026, 1, 1)
    assert days[-1] == date(2026, 12, 31)
    assert {type(day) for day in days} == {date}


def test_a_range_across_a_leap_day_holds_it():
    assert date(2028, 2, 29) in parse_keys("2028-02-28..2028-03-01")


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True)
    | st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0")),
        min_size=1,
        unique=True,
    )
    | st.lists(st.dates(), min_size=1, unique=True)
    | st.sampled_from([[True], [False, True]])
)
def test_a_list_keeps_order_and_types(keys):
    found = parse_keys(keys)
    assert list(found) == keys
    assert [type(key) for key in found] == [type(key) for key in keys]


def test_text_that_looks_like_a_number_or_date_stays_text():
    assert parse_keys(["1", "2026-01-01", "0..3"]) == ("1", "2026-01-01", "0..3")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("5..3", "keys must run from low to high, got a range that is empty."),
        ("2026-01-02..2026-01-01", "keys must run from low to high"),
        ("0..1000000", "keys must hold at most 1000000 keys, got 1000001."),
        ("0001-01-01..9999-12-31", "keys must hold at most 1000000 keys, got"),
        ("0..9" + "0" * 30, 'keys must be "0..23"'),
        ("a..z", 'keys must be "0..23"'),
        ("0..2.5", 'keys must be "0..23"'),
        ("2026-01-01..5", 'keys must be "0..23"'),
        ("2026-02-30..2026-03-01", 'keys must be "0..23"'),
        ("٠..٩", 'keys must be "0..23"'),
        ("discover", "keys must be public keys, got 'discover'; discovery is for all"),
        ("0..1" + " " * 10**6, 'keys must be "0..23"'),
        ([], "keys must hold at least one key, got none."),
        ([1, "a"], "keys must be of one type, got texts and whole numbers."),
        ([1, True], "keys must be of one type, got booleans and whole numbers."),
        ([1, 2, 1], "keys must hold each key once, got 1 twice."),
        (["a", "a"], "keys must hold each key once, got 'a' twice."),
        ([None], "keys[0] must be a whole number, text, date or boolean"),
        ([1.5], "keys[0] must be a whole number, text, date or boolean, got 1.5; make"),
        ("A", 'keys must be "0..23", "2026-01-01..2026-01-31" or a list such as ["A"'),
        ([[1]], "keys[0] must be a whole number, text, date or boolean"),
        ([0, 2**63], "keys[1] must fit in 64 bits, got 9223372036854775808."),
        ([datetime(2026, 1, 1)], "keys[0] must be a date without a time"),
        (["a" * 1001], "keys[0] must have at most 1000 characters, got 1001."),
        (["a\0"], "keys[0] must be Unicode text without NUL, got other text."),
        (["\ud800"], "keys[0] must be Unicode text without NUL, got other text."),
        (range(MOST_CELLS + 1), "keys must hold at most 1000000 keys, got 1000001."),
        (3, 'keys must be "0..23"'),
        (b"ab", 'keys must be "0..23"'),
        ({"a": 1}, 'keys must be "0..23"'),
    ],
    ids=lambda value: (
        type(value).__name__ if not isinstance(value, str) else value[:20]
    ),
)
def test_what_are_no_keys_is_one_sentence(value, words):
    with pytest.raises(ValueError, match=r"\.$") as caught:
        parse_keys(value)
    assert str(caught.value).startswith(words)
    assert len(str(caught.value)) < 300


def test_the_largest_range_is_allowed():
    assert len(parse_keys(f"1..{MOST_CELLS}")) == MOST_CELLS


def test_keys_of_several_columns_are_read_each():
    first = date(2026, 1, 1)
    found = parse_all_keys({"hour": "0..1", "day": [first, first + timedelta(1)]})
    assert found == {"hour": (0, 1), "day": (first, first + timedelta(1))}


def test_the_column_is_named_in_the_sentence():
    with pytest.raises(ValueError, match=r"^keys\.hour must hold each key once"):
        parse_all_keys({"hour": [1, 1]})


def test_discovery_is_one_word_for_the_whole_query():
    assert parse_all_keys("discover") is DISCOVER
    assert parse_all_keys(DISCOVER) is DISCOVER


@pytest.mark.parametrize("value", ["discovery", 3, ["a"], None, True])
def test_other_forms_for_a_query_are_refused(value):
    with pytest.raises(ValueError, match=r'^keys must be "discover" or a table'):
        parse_all_keys(value)


def test_the_types_of_keys_and_column_are_named():
    grid = Grid(("n",), (("1", "2"),))
    table = pa.table({"n": [1, 2]})
    with (
        open_source(table) as source,
        pytest.raises(PlanError, match="column's type, int64, got texts; write such"),
    ):
        run_jobs(source, [Job("c", ("rows",), by=("n",), grid=grid)])

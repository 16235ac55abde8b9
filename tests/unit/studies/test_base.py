"""What a study is made of."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow_studies import Check, Curve, Inputs, Panel, StudyResult
from undertow_studies.study import agrees, compare, in_words, table_of
from undertow_studies.thesis_bound import FIGURE_6_1, finished, stated

X = (1.0, 2.0)
LINE = Curve("exact", (1.0, 2.0), (3.0, math.inf))
PANEL = Panel("n = 2", (LINE,), "x", "y")


def test_a_curve_has_as_many_heights_as_places():
    with pytest.raises(ValueError, match="one length, got 1 and 2"):
        Curve("exact", (1.0,), (2.0, 3.0))


def test_sizes_are_those_of_the_measured_points():
    assert Curve("a", X, X, kind="measured", sizes=(0.0, 3.0)).sizes == (0.0, 3.0)
    with pytest.raises(ValueError, match="each of the 2 points, got 1"):
        Curve("a", X, X, kind="measured", sizes=(1.0,))
    with pytest.raises(ValueError, match="got a theory curve"):
        Curve("a", X, X, sizes=(1.0, 1.0))


@pytest.mark.parametrize("size", [-1.0, math.inf, math.nan])
def test_a_size_that_no_marker_can_have_is_refused(size):
    with pytest.raises(ValueError, match="sizes must be finite and none negative"):
        Curve("a", X, X, kind="measured", sizes=(1.0, size))


def test_a_row_has_a_cell_for_each_column():
    with pytest.raises(ValueError, match="must have 2 cells, got 1"):
        StudyResult("a", "b", "c", (), ("x", "y"), ((1.0,),), ())


def test_the_table_of_panels_has_a_row_for_each_point():
    header, rows = table_of([PANEL])
    assert header == ("panel", "curve", "kind", "x", "y")
    assert rows == (
        ("n = 2", "exact", "theory", 1.0, 3.0),
        ("n = 2", "exact", "theory", 2.0, math.inf),
    )


def test_a_result_without_panels_tabulates_its_checks():
    found = finished(
        FIGURE_6_1, [], [Check("size", 897.0, 898.0, "erratum", "why", "LE18")]
    )
    assert found.header == (
        "quantity",
        "published",
        "ours",
        "status",
        "erratum",
        "note",
    )
    assert found.rows == (("size", 897.0, 898.0, "erratum", "LE18", "why"),)


def test_a_result_says_what_it_is_and_where_it_is_printed():
    found = finished(FIGURE_6_1, [PANEL], [])
    assert (found.name, found.source) == (FIGURE_6_1.name, FIGURE_6_1.source)
    assert found.data == "none needed"


@pytest.mark.parametrize(
    ("published", "ours", "words", "status"),
    [
        ("1.853", 1.853448, {}, "match"),
        ("1.853", 1.8536, {}, "differs"),
        ("1.8530", 1.853448, {}, "differs"),
        ("0.11", 0.0934, {}, "differs"),
        ("897", 898.0, {}, "differs"),
        ("1e5", 104_999.0, {}, "match"),
        ("1.853", 1.8536, {"erratum": "CE1", "why": "misprint"}, "erratum"),
        # A number that agrees is no erratum, whatever is said of it.
        ("1.853", 1.853448, {"erratum": "CE1", "why": "misprint"}, "match"),
        ("1.853", 1.853448, {"stand_in": "simulated"}, "stand-in"),
        ("1.853", 9.0, {"stand_in": "simulated"}, "stand-in"),
        ("1.853", math.nan, {}, "differs"),
        # A formula of the source, evaluated, has all digits.
        (1.853, 1.853 * (1 + 1e-10), {}, "match"),
        (1.853, 1.853 * (1 + 1e-8), {}, "differs"),
        (2.0, 1.996, {"margin": 0.005}, "match"),
        (2.0, 1.99, {"margin": 0.005}, "differs"),
    ],
)
def test_the_status_says_how_the_numbers_compare(published, ours, words, status):
    found = compare("factor", published, ours, **words)
    assert found.status == status
    assert found.published == float(published)
    assert found.erratum == ("CE1" if status == "erratum" else "")
    if status in ("erratum", "stand-in"):
        assert found.note in words.values()


@given(st.decimals(-1000, 1000, places=4), st.integers(0, 4))
def test_a_number_agrees_with_its_own_digits_and_with_no_others(value, places):
    printed = f"{value:.{places}f}"
    assert agrees(printed, float(value))
    unit = 10.0**-places
    assert not agrees(printed, float(printed) + 0.51 * unit)
    assert not agrees(printed, float(printed) - 0.51 * unit)


def test_a_note_stays_unless_an_erratum_replaces_it():
    assert compare("x", 1.0, 1.0, note="exact").note == "exact"
    assert compare("x", 1.0, 2.0, note="a", erratum="CE1", why="b").note == "b"
    assert compare("x", "2", 2.0, note="a", stand_in="b").note == "b; a"


@pytest.mark.parametrize(
    ("published", "status", "erratum"),
    [
        (None, "match", ""),
        (None, "erratum", "CE1"),
        (None, "stand-in", ""),
        (1.0, "not published", ""),
        (1.0, "erratum", ""),
        (1.0, "match", "CE1"),
    ],
)
def test_what_was_never_printed_matches_nothing_and_errata_have_ids(
    published, status, erratum
):
    with pytest.raises(ValueError, match=r"^(status|erratum) must be"):
        Check("x", published, 1.0, status, "why", erratum)


def test_words_for_a_number_say_what_they_are_read_as():
    assert in_words("β", "nearly 10 %", 0.082, within=(0.075, 0.1)).status == "match"
    assert in_words("β", "nearly 10 %", 0.2, within=(0.075, 0.1)).status == "differs"


def test_a_statement_in_words_holds_or_not():
    assert stated("rises", True).status == "match"
    assert stated("rises", False, "why") == Check(
        "rises", "yes", "no", "differs", "why"
    )


@pytest.mark.parametrize(
    ("value", "plain"),
    [(math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan"), (1.5, 1.5), ("a", "a")],
)
def test_a_check_has_no_infinite_number_in_its_record(value, plain):
    assert Check("x", None, value, "not published").to_dict() == {
        "quantity": "x",
        "published": None,
        "ours": plain,
        "status": "not published",
        "erratum": None,
        "note": "",
    }


def test_inputs_have_the_runs_of_the_sources():
    assert (Inputs({}).runs, Inputs({}).seed) == (1000, 0)


def test_a_spread_needs_one_entry_for_each_point():
    with pytest.raises(ValueError, match="spread must have one entry"):
        Curve("measured", (1.0, 2.0), (1.0, 2.0), "measured", (0.1,))

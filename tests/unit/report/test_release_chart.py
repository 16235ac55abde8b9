"""Charts of released cells: where the marks are, and what they say."""

from __future__ import annotations

import re

import pytest

from undertow.report.release_chart import cell_chart, chart_words, key_words


def answer(columns=("zone",)):
    names = [*columns, "estimate", "low", "high"]
    return {"name": "counts", "columns": names, "confidence": 0.95}


def places(chart: str) -> list[float]:
    return [float(y) for y in re.findall(r'class="dot" d="M0 ([-\d.]+)h0"', chart)]


def ticks(chart: str) -> list[str]:
    return re.findall(r'label y"[^>]*>([^<]+)<', chart)


def names(chart: str) -> list[str]:
    return re.findall(r"<bdi>([^<]*)</bdi>", chart)


def test_marks_lie_where_their_numbers_are():
    rows = [("a", 0, -50, 50), ("b", 100, 50, 150), ("c", 50, 0, 100)]
    chart = cell_chart(answer(), rows, unit="rows")
    assert ticks(chart) == ["-50", "0", "50", "100", "150"]
    assert places(chart) == [75, 25, 50]
    assert 'class="span" d="M0 100.0V50.0"' in chart
    across = re.findall(r"translate\(([\d.]+) 0\)", chart)
    assert [float(x) for x in across] == pytest.approx([166.67, 500, 833.33])


def test_the_axis_starts_at_zero_where_that_costs_little_room():
    low = cell_chart(answer(), [("a", 10, 8, 12), ("b", 90, 88, 92)], unit="rows")
    assert ticks(low)[0] == "0"
    far = cell_chart(answer(), [("a", 990, 980, 999), ("b", 995, 990, 1000)], unit="x")
    assert ticks(far)[0] == "980"
    below = cell_chart(answer(), [("a", -10, -12, -8), ("b", -90, -92, -88)], unit="x")
    assert ticks(below)[-1] == "0"


@pytest.mark.parametrize(
    ("numbers", "last"),
    [
        ((5, 5, 5), "6"),
        ((2**62, -(2**63), 2**63 - 1), "1e+19"),
        ((3e6, 1e6, 4e6), "4 M"),
        ((2.5e-9, 2e-9, 3e-9), "3e-09"),
    ],
)
def test_any_finite_numbers_have_an_axis(numbers, last):
    chart = cell_chart(answer(), [("a", *numbers), ("b", *numbers)], unit="rows")
    assert ticks(chart)[-1] == last
    assert all(0 <= y <= 100 for y in places(chart))


def test_cells_without_a_number_are_left_empty_and_counted():
    rows = [("a", None, None, None), ("b", 1, 0, 2)]
    chart = cell_chart(answer(), rows, unit="rows")
    assert len(places(chart)) == 1
    assert chart.count('class="mark"') == 2
    assert chart_words(answer(), rows[:1]) == "No cell has an estimate."


def test_keys_of_two_columns_are_named_by_the_first_and_parted():
    rows = [(day, hour, 1, 0, 2) for day in ("mon", "tue") for hour in range(4)]
    chart = cell_chart(answer(("day", "hour")), rows, unit="rows")
    assert names(chart) == ["mon", "tue"]
    assert chart.count('class="edge"') == 1
    assert "rows by day, hour" in chart


def test_few_of_many_cells_are_named_and_fewer_on_a_narrow_screen():
    rows = [(k, 1, 0, 2) for k in range(100)]
    chart = cell_chart(answer(), rows, unit="rows")
    assert names(chart) == ["0", "15", "30", "45", "60", "75", "90"]
    assert chart.count("label x more") == 3


def test_labels_stand_below_their_cells_unless_they_would_spill():
    short = cell_chart(answer(), [("a", 1, 0, 2), ("b", 1, 0, 2)], unit="rows")
    assert 'class="label x"' in short
    assert "first" not in short
    assert "last" not in short
    rows = [("x" * 60, 1, 0, 2), ("y" * 60, 1, 0, 2)]
    long = cell_chart(answer(), rows, unit="rows")
    assert 'class="label x first"' in long
    assert 'class="label x more last"' in long


def test_the_words_name_the_ends_and_the_level():
    rows = [("a", 1000, 900, 1100), ("b", 20, 10, 30)]
    words = chart_words(answer(), rows)
    assert words.startswith("2 cells with intervals of 95 % confidence; estimates from")
    assert "from 20 (zone b) to 1,000 (zone a)" in words


def test_years_are_keys_and_keep_their_digits():
    assert key_words(["year", "on"], [2026, True]) == "year 2026, on true"

"""Charts of released cells: where the marks are, and what they say."""

from __future__ import annotations

import re

import pytest

from undertow.report._release_html import cell_chart, chart_words, key_words


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


def labels(chart: str) -> list[tuple[bool, float, float, float]]:
    """Return of each label: is it on narrow screens, middle, room there, wide room."""
    found = re.findall(
        r'label x( more)?"[^>]*--at: ([\d.]+)%; --letters: \d+; --room: ([\d.]+)%; '
        r"--narrow: ([\d.]+)%",
        chart,
    )
    return [(not more, float(a), float(n), float(r)) for more, a, r, n in found]


def days(count: int, per: int):
    """Return a chart of `per` cells on each of `count` days."""
    rows = [(f"2026-01-{d:02}", k, 1, 0, 2) for d in range(count) for k in range(per)]
    return cell_chart(answer(("day", "k")), rows, unit="rows")


def test_labels_of_groups_stand_in_the_middle_of_their_groups():
    middles = [at for _, at, _, _ in labels(days(4, 2))]
    assert middles == [12.5, 37.5, 62.5, 87.5]
    uneven = [("a", k, 1, 0, 2) for k in range(6)] + [
        ("b", k, 1, 0, 2) for k in range(2)
    ]
    found = labels(cell_chart(answer(("g", "k")), uneven, unit="rows"))
    assert [at for _, at, _, _ in found] == [37.5, 87.5]


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 20, 31])
@pytest.mark.parametrize("narrow", [False, True])
def test_the_rooms_of_labels_never_meet(count, narrow):
    shown = [
        (at, n if narrow else r)
        for keep, at, n, r in labels(days(count, 3))
        if keep or not narrow
    ]
    assert len(shown) > 1
    end = 0.0
    for at, room in shown:
        # As the page does: a label that would pass an edge is moved inside.
        middle = min(max(at, room / 2), 100 - room / 2)
        assert middle - room / 2 >= end - 0.02
        end = middle + room / 2
    assert end <= 100.02


def test_two_or_three_labels_stay_on_a_narrow_screen_where_they_fit():
    for count in (2, 3):
        rows = [(f"key {k}", 1, 0, 2) for k in range(count)]
        assert "more" not in cell_chart(answer(), rows, unit="rows")
    long = [(f"key {k}" + "x" * 12, 1, 0, 2) for k in range(3)]
    kept = [keep for keep, _, _, _ in labels(cell_chart(answer(), long, unit="rows"))]
    assert kept == [True, False, True]


def test_a_narrow_screen_keeps_as_many_dates_as_can_be_read_whole():
    found = labels(days(7, 2))
    assert [keep for keep, _, _, _ in found] == [True, False, False] * 2 + [True]
    assert all(narrow >= 26 for keep, _, narrow, _ in found if keep)


def test_the_words_name_the_ends_and_the_level():
    rows = [("a", 1000, 900, 1100), ("b", 20, 10, 30)]
    words = chart_words(answer(), rows)
    assert words.startswith("2 cells with intervals of 95 % confidence; estimates from")
    assert "from 20 (zone b) to 1,000 (zone a)" in words


def test_years_are_keys_and_keep_their_digits():
    assert key_words(["year", "on"], [2026, True]) == "year 2026, on true"

"""Cells of a release: what is on the axes."""

from __future__ import annotations

import pytest

from undertow.plotting.result import plot_cells
from undertow.release import QueryAnswer

ROWS = [("a$b", 5, 3, 7), ("b", 9, 10, 12), ("c", None, None, None)]
ANSWER = QueryAnswer("counts", ("zone", "estimate", "low", "high"), ROWS, 0.95)


@pytest.mark.parametrize("answer", [ANSWER, ANSWER.to_dict()], ids=["object", "plain"])
def test_estimates_are_markers_and_intervals_are_lines(answer):
    ax = plot_cells(answer)
    (estimates,) = ax.lines
    assert estimates.get_ydata()[:2].tolist() == [5, 9]
    assert (estimates.get_marker(), estimates.get_linestyle()) == ("o", "None")
    drawn = ax.collections[0].get_segments()
    spans = [[y for _, y in path] for path in drawn if len(path)]
    # The second estimate was adjusted and lies outside its interval.
    assert spans == [[3, 7], [10, 12]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("zone", "estimate")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["95 % interval", "estimate"]
    assert ax.get_xticklabels()[0].get_text() == r"a\$b"


def test_some_of_many_cells_are_named():
    rows = [(f"2026-01-{day:02d}", day, day, day) for day in range(1, 32)]
    ax = plot_cells({**ANSWER.to_dict(), "rows": rows})
    assert ax.get_xticks().tolist() == list(range(0, 31, 3))
    assert ax.get_xticklabels()[0].get_rotation() == 45


def test_an_axes_and_a_style_are_taken_and_no_cells_are_refused():
    ax = plot_cells(ANSWER)
    assert plot_cells(ANSWER, ax=ax, marker="s") is ax
    assert ax.lines[1].get_marker() == "s"
    with pytest.raises(ValueError, match="answer must have at least one cell"):
        plot_cells({**ANSWER.to_dict(), "rows": []})

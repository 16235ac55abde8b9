"""Noise scales side by side: what is on the axes."""

from __future__ import annotations

import math

import pytest

from undertow_studies.comparators import ComparatorScale
from undertow_studies.picture import plot_scales


def row(method: str, scale: float, *, guarantee: bool = True) -> ComparatorScale:
    return ComparatorScale(method, "somewhere", 1.0, scale, "everyone", guarantee)


ROWS = [
    row("independent", 1.0, guarantee=False),
    row("ours", 4.0),
    row("quilt", 15.0, guarantee=False),
    row("thesis", math.inf),
]


def test_each_method_has_a_bar_of_its_scale_and_its_name():
    ax = plot_scales(ROWS)
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    assert ends == pytest.approx([4.0, 15.0])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["ours", "quilt", "thesis"]
    assert ax.get_xscale() == "log"
    assert "leakage 1" in ax.get_xlabel()


def test_what_is_no_guarantee_is_hatched_and_what_cannot_be_done_is_said():
    ax = plot_scales(ROWS)
    assert [bool(bar.get_hatch()) for bar in ax.patches] == [False, True]
    assert "none" in [text.get_text() for text in ax.texts]


def test_noise_for_independent_records_is_a_dashed_line():
    ax = plot_scales(ROWS)
    (line,) = ax.lines
    assert list(line.get_xdata()) == [1.0, 1.0]
    assert line.get_linestyle() == "--"


def test_an_axes_is_drawn_on_and_no_rows_are_refused():
    ax = plot_scales(ROWS)
    assert plot_scales(ROWS, ax=ax) is ax
    with pytest.raises(ValueError, match="at least one"):
        plot_scales([])

"""Pictures of studies: what is on the axes."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from undertow.plotting.style import BASELINE, COLOURS
from undertow_studies import STUDIES, Curve, Inputs, Panel, StudyResult
from undertow_studies.picture import plot_panel, plot_study

mpl.use("Agg")

X = (1.0, 2.0, 3.0)
LINE = Curve("exact", X, (1.0, 10.0, 100.0))
MARKERS = Curve("exact, measured", X, (1.1, 9.0, 110.0), kind="measured")
GREY = Curve("DP", X, (0.5, 0.6, 0.7), kind="baseline")
GREY_MARKERS = Curve("DP, measured", X, (0.4, 0.6, 0.8), kind="measured")
REGION = Curve("γ = ω", X, (1.0, math.nan, 3.0), kind="region")


def axes():
    return Figure().subplots()


def panel(*curves, **options):
    return Panel("one day", curves, "leakage B", "error α", **options)


def result(*panels):
    return StudyResult("figure", "title", "source", panels, ("x",), (), ())


def line(ax, label):
    return next(found for found in ax.lines if found.get_label() == label)


def colour(ax, label):
    return to_hex(line(ax, label).get_color()).upper()


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_each_curve_is_a_line_with_its_points():
    ax = plot_panel(panel(LINE, GREY), ax=axes())
    assert [drawn.get_label() for drawn in ax.lines] == ["exact", "DP"]
    assert line(ax, "exact").get_xdata().tolist() == list(X)
    assert line(ax, "exact").get_ydata().tolist() == list(LINE.y)


def test_theory_is_a_line_and_measurement_a_marker():
    ax = plot_panel(panel(LINE, MARKERS), ax=axes())
    assert line(ax, "exact").get_linestyle() == "-"
    assert line(ax, "exact").get_marker() == "None"
    assert line(ax, "exact, measured").get_linestyle() == "None"
    assert line(ax, "exact, measured").get_marker() != "None"


def test_a_baseline_is_dashed_and_grey_and_so_are_its_markers():
    ax = plot_panel(panel(GREY, GREY_MARKERS, LINE), ax=axes())
    assert line(ax, "DP").get_linestyle() == "--"
    assert line(ax, "DP").get_color() == BASELINE["color"]
    assert line(ax, "DP, measured").get_color() == BASELINE["color"]


def test_markers_have_the_colour_of_their_line_and_no_entry_of_their_own():
    alone = Curve("k ≥ 1, measured", X, X, kind="measured")
    ax = plot_panel(panel(LINE, MARKERS, alone), ax=axes())
    assert colour(ax, "exact") == colour(ax, "exact, measured")
    assert legend(ax) == ["exact", "k ≥ 1, measured"]


@pytest.mark.parametrize("others", [(), ("m = 3",), ("a", "b", "c")])
def test_a_method_has_one_colour_in_every_figure(others):
    methods = ("exact", "closed form", "thesis", "general", "Zhao et al.")
    curves = [Curve(name, X, X) for name in (*others, *methods)]
    ax = plot_panel(panel(*curves), ax=axes())
    expected = (COLOURS[2], COLOURS[5], COLOURS[0], COLOURS[1], COLOURS[3])
    assert [colour(ax, m) for m in methods] == [to_hex(c).upper() for c in expected]


def test_curves_without_a_fixed_colour_take_different_ones_that_are_left():
    names = ("thesis", "m = 2", "m = 3", "m = 5", "m = 10", "m = 100")
    ax = plot_panel(panel(*(Curve(name, X, X) for name in names)), ax=axes())
    assert len({colour(ax, name) for name in names}) == 6


def test_more_curves_than_colours_are_drawn_all_the_same():
    curves = [Curve(f"m = {m}", X, X) for m in range(9)]
    assert len(plot_panel(panel(*curves), ax=axes()).lines) == 9


def test_what_is_not_finite_is_a_gap():
    broken = Curve("thesis", X, (math.inf, math.nan, 2.0))
    shown = line(plot_panel(panel(broken), ax=axes()), "thesis").get_ydata()
    assert np.isnan(shown[:2]).all()
    assert shown[2] == 2.0


def test_a_region_is_shaded_even_beside_a_gap():
    ax = plot_panel(panel(REGION), ax=axes())
    assert len(ax.collections) == 1
    everywhere_gap = Curve("a", X, (math.nan,) * 3, kind="region")
    assert len(plot_panel(panel(everywhere_gap), ax=axes()).collections) == 1


def test_axes_say_what_they_show_and_have_no_title():
    ax = plot_panel(panel(LINE, x_log=True, y_log=True), ax=axes())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("leakage B", "error α")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_title() == ""
    assert [text.get_text() for text in ax.texts] == ["one day"]
    plain = plot_panel(panel(LINE), ax=axes())
    assert (plain.get_xscale(), plain.get_yscale()) == ("linear", "linear")


def test_style_reaches_every_line():
    ax = plot_panel(panel(LINE, MARKERS, GREY), ax=axes(), linewidth=7.0)
    assert {drawn.get_linewidth() for drawn in ax.lines} == {7.0}


@pytest.mark.parametrize(("count", "shape"), [(1, (1, 1)), (3, (3, 1)), (5, (3, 2))])
def test_panels_stand_in_rows_of_three(count, shape):
    figure = plot_study(result(*(panel(LINE) for _ in range(count))))
    assert len(figure.axes) == count
    width, height = figure.get_size_inches()
    assert (width / 4.2, height / 3.4) == pytest.approx(shape)


def test_a_table_has_nothing_to_draw():
    with pytest.raises(ValueError, match=r"got none in figure; its numbers are in"):
        plot_study(result())


@pytest.mark.parametrize("name", ["figure-6.1", "figure-6.3", "master-figure-7"])
def test_a_study_is_drawn_whole(name):
    study = next(s for s in STUDIES if s.name == name)
    found = study.run(Inputs({}))
    figure = plot_study(found)
    assert len(figure.axes) == len(found.panels)
    for ax, drawn in zip(figure.axes, found.panels, strict=True):
        assert [x.get_label() for x in ax.lines] == [c.label for c in drawn.curves]


def test_measured_points_carry_their_spread():
    spread = (0.1, math.nan, 10.0)
    curve = Curve("exact, measured", X, (1.1, 9.0, 110.0), "measured", spread)
    ax = plot_panel(panel(curve), ax=axes())
    (bars,) = ax.containers
    drawn = bars[2][0].get_segments()
    heights = [float(np.ptp(s[:, 1])) for s in drawn if len(s)]
    assert heights == pytest.approx([0.2, 20.0])
    assert legend(ax) == ["exact, measured"]


def test_sized_markers_have_areas_in_proportion_and_none_is_lost():
    curve = Curve("share", X, X, "measured", sizes=(0.5, 0.25, 0.0))
    ax = plot_panel(panel(curve), ax=axes())
    (marks,) = ax.collections
    assert marks.get_offsets().tolist() == [[x, x] for x in X]
    large, half, dot = marks.get_sizes().tolist()
    assert large == pytest.approx(2 * half)
    assert 0 < dot < half / 10
    assert legend(ax) == ["share"]
    assert not ax.lines


def test_sizes_that_are_all_zero_are_dots():
    curve = Curve("share", X, X, "measured", sizes=(0.0,) * 3)
    (marks,) = plot_panel(panel(curve), ax=axes()).collections
    assert len(set(marks.get_sizes().tolist())) == 1


def test_the_legend_of_a_map_stands_above_it():
    curve = Curve("share", X, X, "measured", sizes=X)
    figure = plot_study(result(panel(curve)))
    figure.draw_without_rendering()
    (ax,) = figure.axes
    below = ax.get_legend().get_window_extent().y0
    assert below >= ax.get_window_extent().y1 - 1


@pytest.mark.parametrize(
    ("panels", "said"),
    [
        ([panel(LINE, MARKERS)], True),
        ([panel(LINE), panel(MARKERS)], True),
        ([panel(GREY, MARKERS)], True),
        ([panel(LINE, GREY)], False),
        ([panel(MARKERS)], False),
    ],
    ids=["one panel", "two panels", "a baseline", "lines alone", "marks alone"],
)
def test_a_figure_with_lines_and_marks_says_which_is_which(panels, said):
    figure = plot_study(result(*panels))
    note = "lines: computed; marks: simulated"
    assert [text.get_text() for text in figure.texts] == ([note] if said else [])

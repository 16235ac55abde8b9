"""Pictures of composed losses: what is on the axes."""

from __future__ import annotations

import matplotlib as mpl
import pytest

import undertow as ut
from undertow.errors import NotionMismatchError
from undertow.plotting import plot_reports, save_figure
from undertow.plotting.style import BASELINE, COLOURS, axes_or_new

mpl.use("Agg")


def report(loss, sequential, name):
    return ut.Report(name, loss, None, {}, sequential, ())


PURE = [
    report(ut.Pure("1/3"), ut.Pure(2), "event"),
    report(ut.Pure("inf"), ut.Pure("inf"), "bounded"),
    report(ut.Pure(1), ut.Pure(3), "user"),
]


def bars(ax):
    return list(ax.patches)


def dashed(ax):
    return [line for line in ax.lines if len(line.get_xdata())]


def labels(ax):
    return [text.get_text() for text in ax.texts]


def test_each_granularity_is_a_bar_with_its_name():
    ax = plot_reports(PURE)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["event", "bounded", "user"]
    widths = [bar.get_width() for bar in bars(ax)]
    assert widths == pytest.approx([1 / 3, 1.15 * 3, 1])
    assert ax.get_xlim() == pytest.approx((0, 1.15 * 3))
    low, high = ax.get_ylim()
    assert low > high, "the first granularity is on top"


def test_bars_are_labelled_with_the_loss_rounded_up():
    assert labels(plot_reports(PURE)) == ["0.334", "∞", "1"]


def test_the_baseline_is_a_dashed_grey_line_where_it_is_finite():
    lines = dashed(plot_reports(PURE))
    assert [line.get_xdata()[0] for line in lines] == [2, 3]
    for line in lines:
        assert line.get_linestyle() == "--"
        assert line.get_color() == BASELINE["color"]
    legend = plot_reports(PURE).get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["sequential composition"]


def test_infinite_bars_are_hatched_to_the_edge():
    ax = plot_reports(PURE)
    hatched = [bar.get_hatch() for bar in bars(ax)]
    assert hatched == [None, "//", None]


def test_a_delta_of_one_is_drawn_as_infinite():
    loss = ut.Approx(1, 1)
    ax = plot_reports([report(loss, loss, "user")])
    assert labels(ax) == ["∞"]
    assert bars(ax)[0].get_hatch() == "//"


@pytest.mark.parametrize("loss", [ut.Pure("inf"), ut.Pure(0)])
def test_nothing_finite_or_nothing_at_all_still_draws(loss):
    ax = plot_reports([report(loss, loss, "user")])
    assert ax.get_xlim()[1] > 0


@pytest.mark.parametrize(
    ("loss", "symbol"),
    [
        (ut.Pure(1), "ε"),
        (ut.Approx(1, "1e-5"), "δ"),
        (ut.ZCDP(1), "ρ"),
        (ut.GDP(1), "μ"),
    ],
)
def test_the_axis_names_the_quantity(loss, symbol):
    ax = plot_reports([report(loss, loss, "user")])
    assert symbol in ax.get_xlabel()
    assert ax.get_ylabel() == "protected unit"
    assert ax.get_title() == ""


def test_axes_and_style_are_the_callers():
    ax = axes_or_new(None)
    assert plot_reports(PURE, ax=ax, color="red") is ax
    assert bars(ax)[0].get_facecolor() == mpl.colors.to_rgba("red")
    plain = bars(plot_reports(PURE))[0]
    assert plain.get_facecolor() == mpl.colors.to_rgba(COLOURS[0])


def test_reports_of_several_notions_or_none_are_refused():
    mixed = [PURE[0], report(ut.GDP(1), ut.GDP(1), "user")]
    with pytest.raises(NotionMismatchError, match="of one notion, got gdp, pure"):
        plot_reports(mixed)
    with pytest.raises(NotionMismatchError, match="got none"):
        plot_reports([])


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_suffix_chooses_the_format(tmp_path, suffix, magic):
    path = tmp_path / f"picture.{suffix}"
    save_figure(plot_reports(PURE), path)
    assert path.read_bytes().startswith(magic)

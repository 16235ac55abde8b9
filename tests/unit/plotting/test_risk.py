"""Pictures of disclosure risk: what is on the axes."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from undertow.mechanisms import RandomizedResponse
from undertow.plotting import plot_risk_bounds, plot_risk_curves
from undertow.plotting.risk import _LOOK
from undertow.plotting.style import BASELINE, COLOURS
from undertow.privacy import Pure
from undertow.risk import FAMILIES, Prior, Success, Threat, best_bound, calibrate
from undertow.risk.families import finite, gaussian, grr, laplace, olh, oue, ss

mpl.use("Agg")

UNIFORM = Threat(Prior.uniform(11))
LEVELS = (0.1, 1.0, 10.0)
SHOWN = [grr(11), oue(11), laplace(range(11))]


def labelled(figure, start):
    (ax,) = figure.axes
    return next(line for line in ax.lines if line.get_label().startswith(start))


def marked(figure):
    (ax,) = figure.axes
    return [line for line in ax.lines if line.get_marker() == "o"]


def test_each_family_is_a_curve_of_its_risk():
    figure = plot_risk_curves(SHOWN, UNIFORM, levels=LEVELS)
    for family, name in zip(SHOWN, ("randomised", "optimised", "Lap"), strict=True):
        drawn = labelled(figure, name)
        expected = [family.risk(level, UNIFORM).value for level in LEVELS]
        assert drawn.get_xdata().tolist() == list(LEVELS)
        assert drawn.get_ydata().tolist() == expected


def pieces(line):
    """Return the unbroken parts of a line."""
    points = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
    parts = [[]]
    for x, y in points:
        if np.isnan(x):
            parts.append([])
        else:
            parts[-1].append((x, y))
    return parts


@pytest.mark.parametrize("build", [ss, olh])
def test_a_curve_is_broken_where_the_structure_steps_and_nowhere_else(build):
    family, levels = build(11), np.geomspace(0.5, 30, 12)
    (ax,) = plot_risk_curves([family], UNIFORM, levels=levels).axes
    parts = pieces(ax.lines[0])
    found = []
    for part in parts:
        ends = {
            getattr(family.mechanism(min(x, 20.0)), family.structural) for x, _ in part
        }
        assert len(ends) == 1 or min(ends) > 40
        found += ends if len(ends) == 1 else []
        assert all(y == family.risk(x, UNIFORM).value for x, y in part)
    assert len(set(found)) == len(found) >= 4
    for one, other in itertools.pairwise(parts):
        assert one[-1][0] < other[0][0] <= one[-1][0] * 1.001


def test_the_ends_of_a_piece_are_at_the_step_however_coarse_the_levels():
    (ax,) = plot_risk_curves([ss(11)], UNIFORM, levels=[0.1, 10.0]).axes
    ends = [part[-1][0] for part in pieces(ax.lines[0])[:-1]]
    # Sets of size w + 1 give way to sets of size w at ln((11 - w - 1)/(w + 1)).
    expected = [np.log((11 - w) / w) for w in (5, 4, 3, 2)]
    assert ends == pytest.approx(expected, rel=1e-3)


def test_a_family_without_a_structure_is_one_line():
    figure = plot_risk_curves(SHOWN, UNIFORM, levels=LEVELS)
    for line in figure.axes[0].lines[:3]:
        assert len(pieces(line)) == 1


def test_levels_are_drawn_in_order_whatever_order_they_come_in():
    figure = plot_risk_curves([grr(11)], UNIFORM, levels=LEVELS[::-1])
    assert labelled(figure, "randomised").get_xdata().tolist() == list(LEVELS)


def test_a_family_has_one_colour_alone_and_among_others():
    alone = labelled(plot_risk_curves([oue(11)], UNIFORM, levels=LEVELS), "opt")
    among = labelled(plot_risk_curves(SHOWN, UNIFORM, levels=LEVELS), "opt")
    assert alone.get_color() == among.get_color() == COLOURS[2]


def test_the_target_is_a_line_with_the_calibrated_levels_on_it():
    figure = plot_risk_curves(SHOWN, UNIFORM, levels=LEVELS, target=0.1)
    assert set(labelled(figure, "target 0.1").get_ydata()) == {0.1}
    points = marked(figure)
    for family, point in zip(SHOWN, points, strict=True):
        level = calibrate(family, UNIFORM, advantage=0.1).value
        assert point.get_xdata().tolist() == [level]
        assert point.get_ydata().tolist() == [0.1]


def test_the_legend_names_the_calibrated_level_cut_to_the_private_side():
    cells = Threat(Prior.uniform(1000))
    figure = plot_risk_curves([grr(1000)], cells, levels=LEVELS, target=0.1)
    assert labelled(figure, "randomised response").get_label().endswith("4.7205")


def test_a_target_that_never_binds_is_said_and_not_marked():
    figure = plot_risk_curves([oue(11)], UNIFORM, levels=LEVELS, target=0.6)
    assert labelled(figure, "optimised").get_label().endswith("any ε")
    assert marked(figure) == []


def test_without_a_target_there_is_neither_line_nor_mark():
    figure = plot_risk_curves(SHOWN, UNIFORM, levels=LEVELS)
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert not any(label.startswith("target") for label in labels)
    assert marked(figure) == []


def test_all_there_is_to_learn_is_dashed_and_grey():
    drawn = labelled(plot_risk_curves(SHOWN, UNIFORM, levels=LEVELS), "all there")
    assert set(drawn.get_ydata()) == {UNIFORM.ceiling}
    assert drawn.get_linestyle() == "--"
    assert drawn.get_color() == BASELINE["color"]


def test_a_bound_is_called_one_and_an_exact_risk_is_not():
    threat = Threat(Prior.uniform(20), Success.within("absolute", 1))
    figure = plot_risk_curves([ss(20), grr(20)], threat, levels=LEVELS)
    assert labelled(figure, "subset").get_label().endswith("upper bound")
    assert labelled(figure, "randomised").get_label() == "randomised response"


def test_the_delta_of_gaussian_noise_is_named():
    family = gaussian(range(11), parameter="epsilon", delta=1e-6)
    figure = plot_risk_curves([family], UNIFORM, levels=LEVELS)
    assert "δ = 1e-06" in labelled(figure, "Gaussian").get_label()


def test_a_family_without_a_name_of_its_own_is_drawn_under_the_one_it_has():
    family = finite(lambda epsilon: RandomizedResponse(11, epsilon), 11)
    drawn = labelled(plot_risk_curves([family], UNIFORM, levels=LEVELS), "finite")
    expected = [grr(11).risk(level, UNIFORM).value for level in LEVELS]
    assert drawn.get_ydata().tolist() == pytest.approx(expected, abs=1e-9)


def test_every_family_of_the_registry_has_a_look_that_no_other_has():
    assert set(_LOOK) == set(FAMILIES)
    assert len({look[1:] for look in _LOOK.values()}) == len(_LOOK)


def test_axes_are_logarithmic_and_name_their_quantities():
    (ax,) = plot_risk_curves(SHOWN, UNIFORM, levels=LEVELS).axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "privacy parameter ε"
    assert ax.get_ylabel() == "advantage of the best attack"
    assert ax.get_title() == ""
    assert ax.get_xlim() == pytest.approx((0.1, 10.0))


def test_curves_are_drawn_on_the_axes_given_in_the_style_given():
    ax = Figure().subplots()
    figure = plot_risk_curves([grr(11)], UNIFORM, levels=LEVELS, ax=ax, color="red")
    assert figure is ax.figure
    assert to_hex(labelled(figure, "randomised").get_color()) == "#ff0000"


@pytest.mark.parametrize(("families", "levels"), [([], LEVELS), (SHOWN, [])])
def test_nothing_to_draw_is_refused(families, levels):
    with pytest.raises(ValueError, match="at least one"):
        plot_risk_curves(families, UNIFORM, levels=levels)


def test_a_family_chosen_by_its_noise_is_refused():
    with pytest.raises(ValueError, match="gaussian chosen by sigma"):
        plot_risk_curves([gaussian(range(11))], UNIFORM, levels=LEVELS)


def test_a_level_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="levels must be positive"):
        plot_risk_curves(SHOWN, UNIFORM, levels=[1.0, 0.0])


SKEWED = Threat(Prior(8, [0.35, 0.35, *[0.05] * 6]))


def test_each_bound_that_applies_is_a_bar_of_its_value():
    report = best_bound(Pure(1), SKEWED)
    ax = plot_risk_bounds(report)
    applied = [row for row in report.rows if row.value is not None]
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == [row.value for row in applied]
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [row.name for row in report.rows[:-1]]
    assert [t.get_text() for t in ax.texts].count("none") == len(names) - len(applied)


def test_the_least_bound_stands_out_and_its_label_is_rounded_up():
    report = best_bound(Pure(1), SKEWED)
    ax = plot_risk_bounds(report)
    strong = [bar for bar in ax.patches if bar.get_alpha() == 1.0]
    assert [bar.get_width() for bar in strong] == [report.value]
    shown = [float(t.get_text()) for t in ax.texts if t.get_text() != "none"]
    values = np.array([bar.get_width() for bar in ax.patches])
    assert (shown >= values).all()
    assert np.allclose(shown, values, atol=1e-4)


def test_the_exact_advantage_is_a_dashed_line_and_no_bar():
    report = best_bound(Pure(1), SKEWED, source=RandomizedResponse(8, 1))
    ax = plot_risk_bounds(report)
    (line,) = ax.lines
    assert set(line.get_xdata()) == {report.value}
    assert line.get_linestyle() == "--"
    assert len(ax.patches) == len(plot_risk_bounds(best_bound(Pure(1), SKEWED)).patches)
    assert plot_risk_bounds(best_bound(Pure(1), SKEWED)).lines[:] == []


def test_bounds_are_drawn_on_the_axes_given_in_the_style_given():
    ax = Figure().subplots()
    assert plot_risk_bounds(best_bound(Pure(1), SKEWED), ax=ax, color="red") is ax
    assert to_hex(ax.patches[0].get_facecolor()) == "#ff0000"

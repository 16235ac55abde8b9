"""Pictures of finished studies, and of noise scales side by side: one look for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from undertow.plotting.style import BASELINE, COLOURS, axes_or_new
from undertow_studies.comparators import ComparatorScale

if TYPE_CHECKING:
    from undertow_studies.study import Curve, Panel, StudyResult


_COLUMNS = 3
_PANEL_SIZE = (4.2, 3.4)
_MEASURED = ", measured"
_NOTE = "lines: computed; marks: simulated"
_LINE = 15  # characters of a note that fit an inch
_MARKERS = ("o", "s", "^", "D", "v", "P")
# Areas of sized markers in points squared: the largest, and a dot for next to nothing.
_LARGEST, _DOT = 150.0, 0.4
# One colour for each method, in every figure; labels not listed take what is left.
_COLOUR_OF = {
    "exact": COLOURS[2],
    "closed form": COLOURS[5],
    "thesis": COLOURS[0],
    "general": COLOURS[1],
    "Zhao et al.": COLOURS[3],
    "randomized response": COLOURS[4],
}


def plot_study(result: StudyResult) -> Figure:
    """Draw every panel of a finished study.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown; save it with its own ``savefig``. Where there are lines and marks a
        note below says which is which, and how much the source and this study drew.

    Raises
    ------
    ValueError
        If there is no panel, as in a table.
    """
    count = len(result.panels)
    if not count:
        raise ValueError(
            f"result must have a panel to draw, got none in {result.name}; "
            "its numbers are in its checks."
        )
    columns = min(count, _COLUMNS)
    rows = math.ceil(count / columns)
    width, height = _PANEL_SIZE
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(grid, result.panels, strict=False):
        plot_panel(panel, ax=ax)
    for ax in grid[count:]:
        ax.remove()
    kinds = {curve.kind for panel in result.panels for curve in panel.curves}
    notes = [_NOTE] if "measured" in kinds and len(kinds) > 1 else []
    if result.drawn:
        notes += wrap(result.drawn, width=round(_LINE * width * columns))
    if notes:
        figure.supxlabel("\n".join(notes), fontsize="x-small", color="0.25")
    return figure


def plot_panel(panel: Panel, *, ax: Axes, **style: Any) -> Axes:
    """Draw one panel: theory as lines, measurement as markers, baselines dashed.

    Parameters
    ----------
    panel : Panel
        What to draw.
    ax : matplotlib.axes.Axes
        Where to draw.
    **style
        Passed on to every line.
    """
    colours = _colours(panel.curves)
    for position, curve in enumerate(panel.curves):
        colour = colours.get(_method(curve), BASELINE["color"])
        _draw(curve, colour, position, ax=ax, style=style)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    if panel.x_log:
        ax.set_xscale("log")
    if panel.y_log:
        ax.set_yscale("log")
    ax.annotate(
        panel.name,
        xy=(0.0, 1.02),
        xycoords="axes fraction",
        fontsize="small",
        color="0.25",
    )
    ax.grid(True, color="0.92", linewidth=0.6)
    _legend(ax, above=any(curve.sizes for curve in panel.curves))
    return ax


def _legend(ax: Axes, *, above: bool) -> None:
    """List the methods once: markers that go with a line have its colour.

    A map has no free corner, so that its legend stands above it.
    """
    lines, labels = ax.get_legend_handles_labels()
    shown = [
        (line, label)
        for line, label in zip(lines, labels, strict=True)
        if not (label.endswith(_MEASURED) and label.removesuffix(_MEASURED) in labels)
    ]
    place: dict[str, Any] = (
        {"loc": "lower right", "bbox_to_anchor": (1.0, 0.98), "markerscale": 0.7}
        if above
        else {}
    )
    ax.legend(*zip(*shown, strict=True), fontsize="x-small", frameon=False, **place)


def _method(curve: Curve) -> str:
    """Return the method behind a curve: markers have the colour of their line."""
    return curve.label.removesuffix(_MEASURED)


def _colours(curves: Sequence[Curve]) -> dict[str, str]:
    """Return a colour for each method; baselines are grey and take none."""
    grey = {_method(c) for c in curves if c.kind == "baseline"}
    methods = dict.fromkeys(_method(c) for c in curves if _method(c) not in grey)
    taken = {m: _COLOUR_OF[m] for m in methods if m in _COLOUR_OF}
    free = [c for c in COLOURS if c not in taken.values()] or list(COLOURS)
    others = [m for m in methods if m not in taken]
    return taken | {m: free[j % len(free)] for j, m in enumerate(others)}


def _draw(
    curve: Curve, colour: str, position: int, *, ax: Axes, style: dict[str, Any]
) -> None:
    y = [value if math.isfinite(value) else math.nan for value in curve.y]
    if curve.kind == "baseline":
        ax.plot(curve.x, y, label=curve.label, **{**BASELINE, **style})
    elif curve.sizes:
        _draw_sized(curve, y, colour, ax=ax, style=style)
    elif curve.kind == "measured":
        marker = _MARKERS[position % len(_MARKERS)]
        look = {"color": colour, "linestyle": "none", "marker": marker, "markersize": 3}
        ax.plot(curve.x, y, label=curve.label, **{**look, **style})
        if curve.spread:
            ax.errorbar(curve.x, y, curve.spread, fmt="none", ecolor=colour, capsize=2)
    else:
        ax.plot(curve.x, y, label=curve.label, **{"color": colour, **style})
        if curve.kind == "region":
            floor = min((v for v in y if v == v), default=0.0)
            ax.fill_between(curve.x, y, floor, color=colour, alpha=0.15)


def _draw_sized(
    curve: Curve, y: list[float], colour: str, *, ax: Axes, style: dict[str, Any]
) -> None:
    """Draw markers whose areas are in proportion to the sizes, none below a dot."""
    most = max(curve.sizes) or 1.0
    areas = [max(_DOT, _LARGEST * size / most) for size in curve.sizes]
    look = {"color": colour, "alpha": 0.5, "linewidths": 0.0}
    ax.scatter(curve.x, y, areas, label=curve.label, **{**look, **style})


# Pictures of noise scales side by side.


def plot_scales(
    rows: Sequence[ComparatorScale], *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Draw the noise scale of each method for one model and promise, on a log axis.

    Parameters
    ----------
    rows : sequence of ComparatorScale
        Of one model; a method that does not apply or cannot keep the promise has the
        word "none" instead of a bar.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    **style
        Passed to ``Axes.barh``.

    Returns
    -------
    matplotlib.axes.Axes
        Guarantees against every attacker are filled bars, others are hatched; noise
        for independent records is a dashed line.
    """
    if not rows:
        raise ValueError("rows must hold at least one method.")
    ax = axes_or_new(ax, size=(7.0, 0.32 * len(rows) + 1.2))
    alone = [row for row in rows if row.method == "independent"]
    listed = [row for row in rows if row.method != "independent"]
    finite = [r.noise_scale for r in rows if math.isfinite(r.noise_scale)]
    left = min(finite) / 2
    for position, row in enumerate(listed):
        _scale_bar(ax, position, row, left=left, style=style)
    for row in alone:
        ax.axvline(row.noise_scale, label="independent records", **BASELINE)
    ax.set_xscale("log")
    ax.set_xlim(left, 3 * max(finite))
    ax.set_yticks(range(len(listed)), [row.method for row in listed])
    ax.set_ylim(len(listed) - 0.4, -0.6)
    ax.set_xlabel(f"Laplace scale b for leakage {rows[0].target:g}")
    return ax


def _scale_bar(
    ax: Axes, position: int, row: ComparatorScale, *, left: float, style: dict[str, Any]
) -> None:
    if not math.isfinite(row.noise_scale):
        ax.text(left * 1.1, position, "none", va="center", fontsize="small")
        return
    look: dict[str, Any] = {"color": COLOURS[0]}
    if not row.is_guarantee:
        look = {"facecolor": "none", "edgecolor": COLOURS[1], "hatch": "///"}
    ax.barh(position, row.noise_scale - left, left=left, **{**look, **style})
    ax.text(
        row.noise_scale * 1.1,
        position,
        f"{row.noise_scale:.4g}",
        va="center",
        fontsize="small",
    )

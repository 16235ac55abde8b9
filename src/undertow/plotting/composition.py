"""Pictures of composed losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from undertow.composition import Report
from undertow.errors import NotionMismatchError
from undertow.plotting.style import BASELINE, COLOURS, axes_or_new
from undertow.privacy.exact import format_up
from undertow.privacy.loss import Loss

__all__ = ["plot_reports"]

_QUANTITY = {
    "pure": ("epsilon", "privacy loss ε"),
    "approx": ("epsilon", "privacy loss ε (with its δ)"),
    "zcdp": ("rho", "privacy loss ρ"),
    "gdp": ("mu", "privacy loss μ"),
}


def plot_reports(
    reports: Sequence[Report], *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Draw the loss at each granularity as a bar, sequential composition dashed.

    Parameters
    ----------
    reports : sequence of Report
        One plan at several granularities, in one notion.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    **style
        Passed to ``Axes.barh``.

    Returns
    -------
    matplotlib.axes.Axes
        Infinite losses are hatched bars to the edge, labelled ∞.

    Raises
    ------
    NotionMismatchError
        If the reports are of several notions, or there are none.
    """
    notions = {report.loss.notion for report in reports}
    if len(notions) != 1:
        found = ", ".join(sorted(notions)) or "none"
        raise NotionMismatchError(f"reports must be of one notion, got {found}.")
    ax = axes_or_new(ax)
    parameter, label = _QUANTITY[notions.pop()]
    losses = [_shown(report.loss, parameter) for report in reports]
    alone = [_shown(report.sequential, parameter) for report in reports]
    finite = [value for value in [*losses, *alone] if math.isfinite(value)]
    edge = 1.15 * max(finite, default=1.0) or 1.0
    for at, (value, baseline) in enumerate(zip(losses, alone, strict=True)):
        _bar(ax, at, value, edge=edge, style=style)
        if math.isfinite(baseline):
            ax.plot([baseline, baseline], [at - 0.42, at + 0.42], **BASELINE)
    ax.plot([], [], **BASELINE, label="sequential composition")
    ax.set_yticks(range(len(reports)), [report.granularity for report in reports])
    ax.invert_yaxis()
    ax.set_xlim(0, edge)
    ax.set_xlabel(label)
    ax.set_ylabel("protected unit")
    ax.legend(frameon=False, loc="best")
    return ax


def _shown(loss: Loss, parameter: str) -> float:
    """Return the parameter; infinite where nothing is promised, as at delta 1."""
    return math.inf if loss.is_infinite else getattr(loss, parameter)


def _bar(
    ax: Axes, at: int, value: float, *, edge: float, style: dict[str, Any]
) -> None:
    infinite = math.isinf(value)
    look: dict[str, Any] = {"color": COLOURS[0], "height": 0.6} | style
    if infinite:
        look |= {"hatch": "//", "alpha": 0.4}
    ax.barh(at, edge if infinite else value, **look)
    text = "∞" if infinite else format_up(value, 3)
    ax.annotate(
        text,
        (min(value, 0.97 * edge), at),
        (4, 0),
        textcoords="offset points",
        va="center",
    )

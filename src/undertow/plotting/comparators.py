"""Pictures of noise scales side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from undertow.correlation.comparators import ComparatorScale
from undertow.plotting.style import BASELINE, COLOURS, axes_or_new

__all__ = ["plot_scales"]


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
        _bar(ax, position, row, left=left, style=style)
    for row in alone:
        ax.axvline(row.noise_scale, label="independent records", **BASELINE)
    ax.set_xscale("log")
    ax.set_xlim(left, 3 * max(finite))
    ax.set_yticks(range(len(listed)), [row.method for row in listed])
    ax.set_ylim(len(listed) - 0.4, -0.6)
    ax.set_xlabel(f"Laplace scale b for leakage {rows[0].target:g}")
    return ax


def _bar(
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

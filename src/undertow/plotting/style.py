"""One look for every figure: colour-blind-safe colours in a fixed order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette; same method, same colour, in every figure.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
)
BASELINE: dict[str, Any] = {"color": "0.45", "linestyle": "--", "linewidth": 1.2}


def axes_or_new(ax: Axes | None, *, size: tuple[float, float] = (7.0, 3.6)) -> Axes:
    """Return `ax`, or the axes of a new figure that no window manager knows."""
    if ax is not None:
        return ax
    return Figure(figsize=size, layout="constrained").subplots()


def save_figure(ax: Axes, path: Path) -> None:
    """Write the figure of `ax`; the suffix of `path` chooses the format."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(path, dpi=150)

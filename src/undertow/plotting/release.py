"""Pictures of releases: the cells of a table with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from undertow.plotting.style import COLOURS, axes_or_new

if TYPE_CHECKING:
    from undertow.release import QueryAnswer

__all__ = ["plot_cells"]

_MOST_LABELS = 12


def plot_cells(
    answer: QueryAnswer | Mapping[str, Any],
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw the estimates of a query with their intervals.

    Parameters
    ----------
    answer : QueryAnswer or mapping
        An answer, or one of the ``answers`` in the record of a run.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    **style
        Passed to ``Axes.plot`` for the estimates.

    Returns
    -------
    matplotlib.axes.Axes
        Estimates are markers, intervals are vertical lines, one cell after the other.
        A cell without a number stays empty. An estimate that was adjusted afterwards
        may lie outside its interval.

    Raises
    ------
    ValueError
        If there is no cell.
    """
    found = answer if isinstance(answer, Mapping) else answer.to_dict()
    rows, names = found["rows"], found["columns"][:-3]
    if not rows:
        raise ValueError("answer must have at least one cell, got none.")
    ax = axes_or_new(ax)
    places = np.arange(len(rows))
    estimate, low, high = (
        np.array([_number(row[k]) for row in rows]) for k in (-3, -2, -1)
    )
    level = f"{100 * found['confidence']:.6g} % interval"
    ax.vlines(places, low, high, color=COLOURS[5], linewidth=2, label=level)
    look: dict[str, Any] = {"color": COLOURS[0], "marker": "o", "linestyle": ""}
    ax.plot(places, estimate, **{**look, "label": "estimate", **style})
    _name_cells(ax, [_key_text(row[:-3]) for row in rows])
    ax.set_xlabel(_plain(", ".join(names)))
    ax.set_ylabel("estimate")
    # Above the axes: the cells fill all of it.
    ax.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    return ax


def _number(value: Any) -> float:
    """Return what can be drawn; nothing is drawn for what is not a number."""
    return float(value) if isinstance(value, int | float) else math.nan


def _key_text(keys: Sequence[Any]) -> str:
    return _plain(", ".join(str(key) for key in keys))


def _plain(text: str) -> str:
    """Return text in which a dollar sign starts no formula."""
    return text.replace("$", r"\$")


def _name_cells(ax: Axes, names: Sequence[str]) -> None:
    every = math.ceil(len(names) / _MOST_LABELS)
    places = range(0, len(names), every)
    ax.set_xticks(list(places), [names[at] for at in places])
    if max(len(names[at]) for at in places) > 4:
        ax.tick_params(axis="x", labelrotation=45)
        for label in ax.get_xticklabels():
            label.set_horizontalalignment("right")

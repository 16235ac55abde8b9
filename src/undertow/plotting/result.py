"""Pictures of results: composed losses, certificates, released cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from undertow.audit import AuditResult
from undertow.composition import Report
from undertow.errors import NotionMismatchError
from undertow.numeric.exact import format_up
from undertow.plotting.style import BASELINE, COLOURS, axes_or_new
from undertow.privacy.loss import Loss

if TYPE_CHECKING:
    from undertow.release import QueryAnswer


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
    losses = [_shown_loss(report.loss, parameter) for report in reports]
    alone = [_shown_loss(report.sequential, parameter) for report in reports]
    finite = [value for value in [*losses, *alone] if math.isfinite(value)]
    edge = 1.15 * max(finite, default=1.0) or 1.0
    for at, (value, baseline) in enumerate(zip(losses, alone, strict=True)):
        _loss_bar(ax, at, value, edge=edge, style=style)
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


def _shown_loss(loss: Loss, parameter: str) -> float:
    """Return the parameter; infinite where nothing is promised, as at delta 1."""
    return math.inf if loss.is_infinite else getattr(loss, parameter)


def _loss_bar(
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


# Pictures of audits: what was claimed, and what the trials certify.


def plot_certificates(
    result: AuditResult,
    points: Sequence[tuple[int, float]],
    *,
    ax: Axes | None = None,
    **style: Any,
) -> Axes:
    """Draw the certified parameter over trials against the claim.

    Parameters
    ----------
    result : AuditResult
        For the claim.
    points : sequence of pairs of int and float
        Trials, and the certificate after them, as in the points of a
        :class:`~undertow.audit.Curve`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    **style
        Passed to ``Axes.plot``.

    Returns
    -------
    matplotlib.axes.Axes
        Certificates are markers, each a lower limit by itself; the claim, at its price
        for replacing a record, is a dashed line.
    """
    if not points:
        raise ValueError("points must hold at least one certificate.")
    ax = axes_or_new(ax)
    symbol = "ε" if result.claim.parameter == "epsilon" else "μ"
    trials, values = zip(*points, strict=True)
    look: dict[str, Any] = {"color": COLOURS[0], "marker": "^", "label": "certified"}
    ax.plot(trials, values, **{**look, **style})
    ax.axhline(result.claim.for_replacement().level, label="claimed", **BASELINE)
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("trials")
    ax.set_ylabel(f"privacy parameter {symbol}")
    ax.legend(frameon=False)
    return ax


# Pictures of releases: the cells of a table with their intervals.

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

"""Pictures of disclosure risk: over epsilon, and bounds side by side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from undertow._validate import check_positive
from undertow.plotting.style import BASELINE, COLOURS, axes_or_new
from undertow.risk import BoundReport, BoundRow, Family, Risk, Threat, calibrate

# Name, colour and dashes of each family, the same in every figure.
_LOOK: dict[str, tuple[str, str, str]] = {
    "grr": ("randomised response", COLOURS[0], "-"),
    "ss": ("subset selection", COLOURS[1], "-"),
    "oue": ("optimised unary encoding", COLOURS[2], "--"),
    "laplace": ("Laplace noise", COLOURS[3], "-"),
    "gaussian": ("Gaussian noise", COLOURS[4], "-"),
    "olh": ("optimised hashing", COLOURS[5], "-"),
    "sue": ("symmetric unary encoding", COLOURS[2], "-."),
    "blh": ("binary hashing", COLOURS[5], "-."),
    "she": ("noisy histogram", COLOURS[0], "-."),
    "the": ("thresholded histogram", COLOURS[1], "-."),
    "laplace-sum": ("Laplace noise on a sum", COLOURS[3], "-."),
    "gaussian-sum": ("Gaussian noise on a sum", COLOURS[4], "-."),
    "exponential": ("exponential mechanism", COLOURS[0], ":"),
}
_TARGET: dict[str, Any] = {"color": "0.15", "linestyle": ":", "linewidth": 1.2}
# Smallest advantage drawn, as a share of the largest there is.
_FLOOR = 1e-3
# A step is found to this share of its level. Steps between larger whole numbers are
# too small to be seen, and beyond the last level there are no others.
_NEAR = 1e-3
_SEEN = 40
_LAST_STEP = 20.0


def plot_risk_curves(
    families: Sequence[Family],
    threat: Threat,
    *,
    levels: Sequence[float],
    target: float | None = None,
    ax: Axes | None = None,
    **style: Any,
) -> Figure:
    """Draw the risk of several mechanisms over epsilon, under one threat.

    Parameters
    ----------
    families : sequence of Family
        On the records of the threat, all chosen by epsilon.
    threat : Threat
        Prior, success rule and knowledge.
    levels : sequence of float
        Values of epsilon at which the risk is computed; positive.
    target : float, optional
        A tolerated advantage: drawn as a line, with the calibrated epsilon of each
        family marked on it and named in the legend, cut to the private side.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    **style
        Passed to every curve.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown; save it with its own ``savefig``. Both axes are logarithmic. Exact
        risks are plain curves; where only a bound is known the label says so. Where a
        subset size or a number of buckets steps the risk jumps: there the curve is
        broken. The largest advantage that there is under the threat is dashed.

    Raises
    ------
    ValueError
        If there is no family, or one that is chosen by its noise.
    """
    points = sorted(check_positive(level, "levels") for level in levels)
    if not families or not points:
        raise ValueError("families and levels must hold at least one entry.")
    _require_epsilon(families)
    ax = axes_or_new(ax, size=(7.0, 4.2))
    for family in families:
        note = "" if target is None else _mark(ax, family, threat, target)
        _draw_family(ax, family, threat, points, note=note, style=style)
    if target is not None:
        ax.axhline(target, label=f"target {target:g}", **_TARGET)
    ax.axhline(threat.ceiling, label="all there is to learn", **BASELINE)
    _finish(ax, threat, points)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def plot_risk_bounds(
    report: BoundReport, *, ax: Axes | None = None, **style: Any
) -> Axes:
    """Draw every bound of a report as a bar, the least one filled.

    Parameters
    ----------
    report : BoundReport
        From :func:`~undertow.risk.best_bound`; rows that do not apply have the word
        "none" instead of a bar.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    **style
        Passed to ``Axes.barh``.

    Returns
    -------
    matplotlib.axes.Axes
        The exact advantage, where the report has it, is a dashed line.
    """
    exact = [row for row in report.rows if row.name == "exact advantage"]
    rows = [row for row in report.rows if row not in exact]
    ax = axes_or_new(ax, size=(7.0, 0.3 * len(rows) + 1.0))
    least = min((row.value for row in rows if row.value is not None), default=math.inf)
    for position, row in enumerate(rows):
        _bar(ax, position, row, least=least, style=style)
    for row in exact:
        if row.value is not None:
            ax.axvline(row.value, label="exact", **BASELINE)
            ax.legend(fontsize="x-small", frameon=False)
    ax.set_yticks(range(len(rows)), [row.name for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0.0, 1.15 * max((r.value for r in report.rows if r.value), default=1.0))
    ax.set_xlabel("advantage of the best attack, at most")
    return ax


def _require_epsilon(families: Sequence[Family]) -> None:
    other = [family for family in families if family.parameter != "epsilon"]
    if other:
        raise ValueError(
            f"families must be chosen by epsilon, got {other[0].name} chosen by "
            f"{other[0].parameter}; build it with parameter='epsilon'."
        )


def _draw_family(
    ax: Axes,
    family: Family,
    threat: Threat,
    points: Sequence[float],
    *,
    note: str,
    style: dict[str, Any],
) -> None:
    pieces = _pieces(family, points)
    shown = [point for piece in pieces for point in piece]
    risks: dict[float, Risk] = {p: family.risk(p, threat) for p in shown}
    name, colour, dashes = _look(family)
    name += f", δ = {family.delta:g}" if family.delta else ""
    name += "" if all(r.tight is True for r in risks.values()) else ", upper bound"
    look = {"color": colour, "linestyle": dashes, "label": name + note}
    # A nan breaks the line where the next piece begins.
    x = [p for piece in pieces for p in (*piece, math.nan)][:-1]
    y = [risks[p].value if p == p else math.nan for p in x]
    ax.plot(x, y, **{**look, **style})


def _pieces(family: Family, points: Sequence[float]) -> list[list[float]]:
    """Split levels where the structure of a family steps, both ends of a step added."""
    pieces = [[points[0]]]
    for low, high in itertools.pairwise(points):
        steps = _steps(family, low, min(high, _LAST_STEP)) if family.structural else []
        for before, after in steps:
            if before > pieces[-1][-1]:
                pieces[-1].append(before)
            pieces.append([after])
        if high > pieces[-1][-1]:
            pieces[-1].append(high)
    return pieces


def _steps(family: Family, low: float, high: float) -> list[tuple[float, float]]:
    """Enclose each step between two levels; the structure is monotone in the level."""
    if low >= high:
        return []
    ends = [getattr(family.mechanism(e), family.structural) for e in (low, high)]
    if ends[0] == ends[1] or min(ends) > _SEEN:
        return []
    if high <= low * (1 + _NEAR):
        return [(low, high)]
    middle = math.sqrt(low * high)
    return [*_steps(family, low, middle), *_steps(family, middle, high)]


def _mark(ax: Axes, family: Family, threat: Threat, target: float) -> str:
    """Mark the calibrated epsilon on the target; return it for the legend."""
    found = calibrate(family, threat, advantage=target, alternatives=False)
    if not found.binding:
        return f": {found.shown.replace('any', 'any ε')}"
    colour = _look(family)[1]
    ax.plot([found.value], [target], "o", color=colour, markersize=5)
    ax.plot([found.value] * 2, [0.0, target], color=colour, linewidth=0.7, alpha=0.6)
    return f": ε = {found.shown}"


def _finish(ax: Axes, threat: Threat, points: Sequence[float]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(points[0], points[-1])
    ax.set_ylim(_FLOOR * threat.ceiling, 1.3 * threat.ceiling)
    ax.set_xlabel("privacy parameter ε")
    ax.set_ylabel("advantage of the best attack")
    ax.grid(True, color="0.92", linewidth=0.6)
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=2,
        fontsize="x-small",
        frameon=False,
    )


def _look(family: Family) -> tuple[str, str, str]:
    return _LOOK.get(family.name, (family.name, COLOURS[0], ":"))


def _bar(
    ax: Axes, position: int, row: BoundRow, *, least: float, style: dict[str, Any]
) -> None:
    if row.value is None:
        ax.text(0.002, position, "none", va="center", fontsize="x-small", color="0.45")
        return
    best = row.value == least
    look: dict[str, Any] = {"color": COLOURS[0], "alpha": 1.0 if best else 0.35}
    ax.barh(position, row.value, **{**look, **style})
    text = f"{math.ceil(row.value * 1e4) / 1e4:.4f}"
    ax.annotate(
        text,
        (row.value, position),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize="x-small",
    )

"""Pictures of audits: what was claimed, and what the trials certify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from undertow.audit import AuditResult
from undertow.plotting.style import BASELINE, COLOURS, axes_or_new

__all__ = ["plot_certificates"]


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
        :class:`~undertow.report.Curve`.
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

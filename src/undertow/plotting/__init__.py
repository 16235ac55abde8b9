"""Pictures of finished results; the only place that imports matplotlib."""

from undertow.plotting.result import (
    plot_cells,
    plot_certificates,
    plot_reports,
    plot_scales,
)
from undertow.plotting.risk import plot_risk_bounds, plot_risk_curves
from undertow.plotting.study import plot_panel, plot_study
from undertow.plotting.style import save_figure

__all__ = [
    "plot_cells",
    "plot_certificates",
    "plot_panel",
    "plot_reports",
    "plot_risk_bounds",
    "plot_risk_curves",
    "plot_scales",
    "plot_study",
    "save_figure",
]

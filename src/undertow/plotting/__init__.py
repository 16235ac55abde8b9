"""Pictures of finished results; the only place that imports matplotlib."""

from undertow.plotting.result import (
    plot_cells,
    plot_certificates,
    plot_reports,
)
from undertow.plotting.risk import plot_risk_bounds, plot_risk_curves
from undertow.plotting.style import save_figure

__all__ = [
    "plot_cells",
    "plot_certificates",
    "plot_reports",
    "plot_risk_bounds",
    "plot_risk_curves",
    "save_figure",
]

"""Pictures of finished results; the only place that imports matplotlib."""

from undertow.plotting.audit import plot_certificates
from undertow.plotting.comparators import plot_scales
from undertow.plotting.composition import plot_reports
from undertow.plotting.release import plot_cells
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

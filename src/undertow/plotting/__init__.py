"""Pictures of finished results; the only place that imports matplotlib."""

from undertow.plotting.composition import plot_reports
from undertow.plotting.style import save_figure

__all__ = ["plot_reports", "save_figure"]

"""Each figure and table of the sources as a runnable study."""

from typing import Any

from undertow_studies.registry import STUDIES
from undertow_studies.study import Check, Curve, Inputs, Panel, Study, StudyResult

__all__ = ["STUDIES", "Check", "Curve", "Inputs", "Panel", "Study", "StudyResult"]

# Data need files, pictures need matplotlib: both are loaded when they are asked for.
_LATER = {
    "plot_panel": "picture",
    "plot_scales": "picture",
    "plot_study": "picture",
    "study_data": "data",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f"undertow_studies.{_LATER[name]}"), name)
    raise AttributeError(f"module 'undertow_studies' has no attribute {name!r}")

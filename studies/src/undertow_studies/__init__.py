"""Each figure and table of the sources as a runnable study."""

from undertow_studies.registry import STUDIES
from undertow_studies.study import Check, Curve, Inputs, Panel, Study, StudyResult

__all__ = ["STUDIES", "Check", "Curve", "Inputs", "Panel", "Study", "StudyResult"]

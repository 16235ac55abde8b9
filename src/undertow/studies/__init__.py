"""Each figure and table of the sources as a runnable study."""

from undertow.studies.base import Check, Curve, Inputs, Panel, Study, StudyResult
from undertow.studies.registry import STUDIES

__all__ = ["STUDIES", "Check", "Curve", "Inputs", "Panel", "Study", "StudyResult"]

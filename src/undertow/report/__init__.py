"""Reports: one page that says what was done, what came out and what it cannot show."""

from undertow.report.audit import AuditReport, verdict_sentence
from undertow.report.page import write_whole
from undertow.report.release import ReleaseReport

__all__ = ["AuditReport", "ReleaseReport", "verdict_sentence", "write_whole"]

"""Reports: one page that says what was done, what came out and what it cannot show."""

from undertow.report.audit import AuditReport, verdict_sentence
from undertow.report.page import write_whole

__all__ = ["AuditReport", "verdict_sentence", "write_whole"]

"""Running the audit that the options describe, and its JSON record and report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from undertow.audit import AuditResult, Claim, audit_local
from undertow.audit.curve import Curve, recorded_curve, repeated_curve
from undertow.audit.pair import audit_pair
from undertow.audit.subjects import shortened
from undertow.cli.audit_progress import Watch, printing_aside
from undertow.cli.output import working
from undertow.report import AuditReport
from undertow.report.audit import verdict_sentence
from undertow.report.page import write_whole

__all__ = ["Conducted", "Job", "conduct", "draw_curve", "job_record", "write_report"]

# Points of a picture below which smaller audits are run for it.
_POINTS = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One audit: what is run, what it is said to keep, and how."""

    subject: Any
    claim: Claim
    name: str
    local: bool = False
    trials: int | None = None
    confidence: float = 0.99
    seed: int = 0
    workers: int = 1
    checkpoint: Path | None = None
    pairs: Any = "auto"
    reader: Any = None
    score: Any = None
    baseline: bool = False

    @property
    def size(self) -> int:
        """Number of inputs."""
        inputs = getattr(self.subject, "inputs", None)
        return int(self.subject.categories) if inputs is None else len(inputs)

    def run(self, progress: Any = None) -> AuditResult:
        """Run it."""
        common = {
            "confidence": self.confidence,
            "seed": self.seed,
            "workers": self.workers,
            "checkpoint": self.checkpoint,
            "progress": progress,
        }
        if not self.local:
            return audit_pair(
                self.subject,
                self.claim,
                pairs=self.pairs,
                trials=self.trials,
                score=self.score,
                **common,
            )
        assert self.trials is not None
        return audit_local(
            self.subject,
            self.claim,
            trials=self.trials,
            reader=self.reader,
            baseline=self.baseline,
            **common,
        )


@dataclass(frozen=True, slots=True)
class Conducted:
    """An audit that was run, and the counts it showed on the way."""

    job: Job
    result: AuditResult
    looks: tuple[Any, ...]


def conduct(job: Job) -> Conducted:
    """Run an audit; what the audited code prints goes to standard error."""
    delta = job.claim.for_replacement().delta
    watch = Watch(job.name, categories=job.size, delta=delta)
    with watch, printing_aside():
        result = job.run(watch)
    return Conducted(job, result, tuple(watch.looks))


def draw_curve(found: Conducted) -> Curve:
    """Return the certificates as the trials double.

    They are read off the counts of the run where these are many enough; else smaller
    audits are run, which take at most as long as the first.
    """
    job, result = found.job, found.result
    curve = recorded_curve(result, found.looks, categories=job.size)
    if curve is not None and len(curve.points) >= _POINTS:
        return curve

    def smaller(trials: int) -> AuditResult:
        part = replace(job, trials=trials, checkpoint=None, baseline=False)
        with printing_aside():
            return part.run()

    return repeated_curve(smaller, result)


def write_report(path: Path, found: Conducted, *, version: str) -> None:
    """Write the report of an audit as HTML or Markdown, by the ending of `path`."""
    facts = _facts(found.job)
    with working("certifying fewer trials, for the picture"):
        curve = draw_curve(found)
    report = AuditReport(found.result, facts, version, curve)
    whole = report.html() if path.suffix.lower() == ".html" else report.markdown()
    write_whole(path, whole)


def _facts(job: Job) -> tuple[tuple[str, str], ...]:
    """Return what was run, for a person who wants to run it again."""
    listed = getattr(job.subject, "inputs", range(job.size))
    numbered = isinstance(listed, range)
    shown = f"0 to {job.size - 1}" if numbered else shortened(repr(list(listed)))
    facts = [
        ("audited", job.name),
        ("by", "local audit" if job.local else "event on a pair of inputs"),
        ("inputs", f"{job.size}: {shown}"),
    ]
    if job.pairs != "auto":
        facts.append(("pairs of neighbours", shortened(repr(list(job.pairs)))))
    return (*facts, ("workers", str(job.workers)))


def job_record(
    result: AuditResult, *, version: str, report: Path | None
) -> dict[str, Any]:
    """Return the JSON record of an audit, its keys fixed."""
    record = result.to_dict()
    first = (
        "advantage",
        "epsilon_estimate",
        "epsilon_certified",
        "confidence",
        "claim",
        "verdict",
        "trials",
        "seed",
    )
    return {
        **{key: record[key] for key in first},
        "baseline": {"ldp_auditor": record["baseline"]},
        "statement": verdict_sentence(result),
        **{
            key: value
            for key, value in record.items()
            if key not in (*first, "baseline")
        },
        "version": version,
        "report": None if report is None else str(report),
    }

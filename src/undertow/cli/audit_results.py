"""Running the audit that the options describe, and its JSON record and report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from undertow._version import __version__
from undertow.audit import (
    AuditResult,
    Claim,
    audit_local,
    audit_pair_until_refuted,
    audit_until_refuted,
)
from undertow.audit.curve import Curve, recorded_curve, repeated_curve
from undertow.audit.outputs import shortened
from undertow.audit.pair import audit_pair
from undertow.audit.recorded import RecordedSubject
from undertow.cli.audit_progress import Watch, printing_aside
from undertow.cli.audit_words import in_option_words
from undertow.cli.output import working
from undertow.report import AuditReport
from undertow.report.audit import verdict_sentence
from undertow.report.page import write_whole
from undertow.risk import Threat

__all__ = [
    "Conducted",
    "Job",
    "conduct",
    "draw_curve",
    "job_record",
    "write_report",
]

# Points of a picture below which smaller audits are run for it.
_POINTS = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One audit: what is run, what it is said to keep, and how."""

    subject: Any
    claim: Claim
    name: str
    title: str = ""
    version: str = ""
    local: bool = False
    trials: int | None = None
    confidence: float = 0.99
    seed: int = 0
    workers: int = 1
    checkpoint: Path | None = None
    pairs: Any = "auto"
    reader: Any = None
    score: Any = None
    threat: Threat | None = None
    baseline: bool = False
    stop_early: bool = False
    command: str = ""
    seconds: float | None = None
    remarks: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of inputs."""
        inputs = getattr(self.subject, "inputs", None)
        return int(self.subject.categories) if inputs is None else len(inputs)

    @property
    def about(self) -> str:
        """What is audited, in words."""
        return self.title or self.name

    @property
    def attacker(self) -> str:
        """The threat in words; none if it is the usual one."""
        if self.threat is None:
            return ""
        masses = self.threat.prior.pmf
        even = masses.max() == masses.min()
        return self.threat.summary + ("" if even else ", under a given prior")

    def run(self, progress: Any = None) -> AuditResult:
        """Run it."""
        common: dict[str, Any] = {
            "trials": self.trials,
            "confidence": self.confidence,
            "seed": self.seed,
        }
        if self.local:
            return self._run_local(common, progress)
        common |= {"pairs": self.pairs, "score": self.score, "progress": progress}
        if self.stop_early:
            return audit_pair_until_refuted(self.subject, self.claim, **common)
        common |= {"workers": self.workers, "checkpoint": self.checkpoint}
        common |= {"seconds": self.seconds}
        return audit_pair(self.subject, self.claim, **common)

    def _run_local(self, common: dict[str, Any], progress: Any) -> AuditResult:
        common |= {"reader": self.reader}
        if self.stop_early:
            return audit_until_refuted(
                self.subject, self.claim, progress=progress, **common
            )
        return audit_local(
            self.subject,
            self.claim,
            threat=self.threat,
            baseline=self.baseline,
            workers=self.workers,
            checkpoint=self.checkpoint,
            progress=progress,
            **common,
        )


@dataclass(frozen=True, slots=True)
class Conducted:
    """An audit that was run, and the counts it showed on the way."""

    job: Job
    result: AuditResult
    looks: tuple[Any, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know besides the result."""
        asked, used = self.job.trials, self.result.trials
        notes = [*self.result.notes, *self.job.remarks]
        recorded = isinstance(self.job.subject, RecordedSubject)
        if recorded and asked is not None and used < asked - self.job.size:
            notes.append(
                f"{asked} trials were asked for and {used} were used: no more were "
                "recorded of the inputs compared, each of which has an equal share"
            )
        if self.job.stop_early:
            notes.append(
                f"the run stops as soon as the claim is refuted, here after {used} of "
                f"at most {asked} trials; the certificate holds at all times"
            )
        return tuple(notes)


def conduct(job: Job) -> Conducted:
    """Run an audit; what the audited code prints goes to standard error."""
    with in_option_words(job.claim):
        delta = job.claim.for_replacement().delta
    watch = Watch(job.name, categories=job.size, delta=delta)
    with in_option_words(job.claim), watch, printing_aside():
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
        part = replace(part, seconds=None)
        with printing_aside():
            return part.run()

    return repeated_curve(smaller, result)


def write_report(path: Path, found: Conducted) -> None:
    """Write the report of an audit as HTML or Markdown, by the ending of `path`."""
    with working("certifying fewer trials, for the picture"):
        curve = draw_curve(found)
    report = AuditReport(
        found.result,
        _facts(found),
        found.job.version,
        curve,
        title=found.job.about,
        date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        command=found.job.command,
    )
    whole = report.html() if path.suffix.lower() == ".html" else report.markdown()
    write_whole(path, whole)


def _facts(found: Conducted) -> tuple[tuple[str, str], ...]:
    """Return what was run, for a person who wants to run it again."""
    job = found.job
    listed = getattr(job.subject, "inputs", range(job.size))
    numbered = isinstance(listed, range)
    shown = f"0 to {job.size - 1}" if numbered else shortened(repr(list(listed)))
    facts = [
        ("audited", found.result.subject),
        ("by", "local audit" if job.local else "event on a pair of inputs"),
        ("inputs", f"{job.size}: {shown}"),
    ]
    if job.attacker:
        facts.append(("threat", job.attacker))
    if job.pairs != "auto":
        facts.append(("pairs of neighbours", shortened(repr(list(job.pairs)))))
    facts.append(("workers", str(job.workers)))
    return (*facts, *(("note", note) for note in found.notes))


def job_record(found: Conducted, *, report: Path | None) -> dict[str, Any]:
    """Return the JSON record of an audit, its keys fixed."""
    record, job = found.result.to_dict(), found.job
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
        "statement": verdict_sentence(found.result),
        "title": job.about,
        **{
            key: value
            for key, value in record.items()
            if key not in (*first, "baseline", "notes")
        },
        "threat": job.attacker or None,
        "notes": list(found.notes),
        "version": job.version,
        "undertow": __version__,
        "report": None if report is None else str(report),
    }

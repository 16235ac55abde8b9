"""Running the audit that the options describe, watching it, and showing its result.

The JSON record and the report, the verdict in the terminal, the bar on the way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow._version import __version__
from undertow.audit import (
    AuditResult,
    Claim,
    audit_local,
    audit_pair_until_refuted,
    audit_until_refuted,
)
from undertow.audit._outcome import shortened
from undertow.audit.local import (
    Curve,
    recorded_curve,
    repeated_curve,
    running_estimate,
)
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.record import RecordedSubject
from undertow.audit.runner import Counts
from undertow.cli._audit_option import in_option_words
from undertow.cli._output import bare_table, print_facts, print_line, working
from undertow.numeric.display import shown_down
from undertow.report import AuditReport
from undertow.report.audit import (
    METHOD_HEADINGS,
    SYMBOLS,
    claim_words,
    inversion_row,
    method_rows,
    power_rows,
    shown_certificate,
    shown_number,
    verdict_sentence,
)
from undertow.report.page import write_whole
from undertow.risk import Threat

if TYPE_CHECKING:
    from undertow_studies.faults import Fault

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


# Audits in the terminal: the verdict first, then what it rests on.

# Characters of a witness that are shown; its inputs may be whole data sets.
_LONGEST = 400
_NOTES = (
    "an estimate may exceed the truth; the verdict rests on the certificate alone",
    "not checkable: independent runs, and that the compared inputs are neighbours",
)


def print_audit(
    result: AuditResult, *, title: str, threat: str = "", notes: Sequence[str] = ()
) -> None:
    """Print a verdict, its numbers and what was tried.

    Parameters
    ----------
    result : AuditResult
        What came out.
    title : str
        What was audited, in words.
    threat : str, optional
        What the attacker knows and wants, if it was given.
    notes : sequence of str, optional
        What else a reader should know.
    """
    console = Console()
    print_line(console, verdict_sentence(result))
    if result.witness is not None:
        print_line(console, f"witness: {result.witness.summary[:_LONGEST]}")
    console.print()
    about = [("threat", threat)] if threat else []
    print_facts(console, [("audited", title), *about, *_numbers(result)])
    console.print()
    console.print(_methods(result))
    console.print()
    for note in (*_NOTES, *notes):
        print_line(console, f"note: {note}")


def _numbers(result: AuditResult) -> list[tuple[str, str]]:
    symbol = SYMBOLS[result.parameter]
    rows = [
        ("claim", claim_words(result.claim)),
        (f"certified {symbol}", shown_certificate(result)),
        (f"estimate of {symbol}", shown_number(result.estimate)),
    ]
    if result.parameter == "mu":
        rows.append(("certified ε at δ = 0", shown_down(result.epsilon_certified)))
    if result.inversion is not None:
        rows.append(inversion_row(result.inversion))
    rows += [
        ("trials", str(result.trials)),
        ("seed", "none" if result.seed is None else str(result.seed)),
    ]
    if result.advantage is not None:
        seen = result.advantage
        shown = f"{seen.value:.4g} (from {seen.low:.4g} to {seen.high:.4g})"
        rows.append(("advantage", shown))
    if result.baseline is not None:
        rows.append(("LDP-Auditor", shown_number(result.baseline.get("epsilon"))))
    return [*rows, *power_rows(result)]


def _methods(result: AuditResult) -> Table:
    table = bare_table(*METHOD_HEADINGS)
    for row in method_rows(result):
        table.add_row(*map(Text, row))
    return table


def print_faults(faults: Sequence[Fault]) -> None:
    """Print the bug fixtures: what is wrong, what is claimed, what is true."""
    table = bare_table("fault", "claim", "true", "trials", "what is wrong")
    for fault in faults:
        symbol = SYMBOLS[fault.claim.parameter]
        table.add_row(
            fault.name,
            f"{symbol} = {fault.claim.for_replacement().level:.4g}",
            f"{symbol} = {shown_number(fault.level)}",
            str(fault.trials),
            Text(fault.bug),
        )
    Console().print(table)


# Watching an audit: a bar with the running estimate, and the counts on the way.


@contextmanager
def printing_aside() -> Iterator[None]:
    """Send to standard error what other code prints, in its processes too.

    Standard output is for one result alone.
    """
    sys.stdout.flush()
    with redirect_stdout(sys.stderr):
        kept = os.dup(1)
        os.dup2(2, 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


class Watch:
    """The progress hook of an audit; shows a bar on standard error on a terminal.

    Parameters
    ----------
    what : str
        What is audited.
    categories : int
        Number of its values.
    delta : float
        Of the claim.
    """

    def __init__(self, what: str, *, categories: int, delta: float) -> None:
        self.what, self.categories, self.delta = what[:40], categories, delta
        self.looks: list[Counts] = []
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Watch:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            shown = f"auditing {escape(self.what)}"
            self._task = self._bar.add_task(shown, total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, counts: Counts) -> None:
        """Keep the counts and move the bar."""
        self.looks.append(counts)
        if self._bar is None:
            return
        words = self._words(counts)
        self._bar.update(self._task, completed=done, total=total, description=words)

    def _words(self, counts: Counts) -> str:
        if "threat_hits" in counts:
            rate = float(counts["threat_hits"][0] / counts["trials"][0])
            return f"attack right in {100 * rate:.3g} %"
        seen = running_estimate(counts, categories=self.categories, delta=self.delta)
        return "certifying" if seen is None else f"estimate ε ≈ {seen:.3g}"

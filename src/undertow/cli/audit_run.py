"""From the options that all audits have to a verdict, a page and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from undertow.audit.pair import TRIALS
from undertow.audit.recorded import RecordedSubject
from undertow.cli.audit_inputs import check_place, check_size, read_report_path
from undertow.cli.audit_results import (
    Conducted,
    Job,
    conduct,
    job_record,
    write_report,
)
from undertow.cli.audit_tables import print_audit
from undertow.cli.audit_words import in_option_words, shown_command
from undertow.cli.json_values import library_input
from undertow.cli.output import EXIT_REFUSED, complain, guarded, print_json
from undertow.errors import AssumptionError, ModelError, UndertowError
from undertow.report import verdict_sentence

__all__ = ["Run", "audit_guarded", "carry_out", "with_baseline"]

_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Run:
    """What all audits have in common."""

    context: typer.Context
    trials: int | None
    confidence: float
    seed: int
    workers: int
    checkpoint: Path | None
    report: Path | None
    json_output: bool
    seconds: float | None = None


@contextmanager
def audit_guarded() -> Iterator[None]:
    """Turn known faults into one sentence in the words of the options."""
    with guarded(), library_input(), in_option_words():
        try:
            yield
        except AssumptionError as fault:  # status 3 says that a claim is refuted
            raise ModelError(str(fault)) from None


def with_baseline(job: Job, wanted: bool | None) -> Job:
    """Return the job with LDP-Auditor beside it, where both can be run."""
    if job.stop_early and wanted:
        raise ModelError(
            "--baseline must be left out with --stop-early, got it; LDP-Auditor has no "
            "limits that hold at all times."
        )
    if wanted and not job.local:
        raise ModelError(
            f"--baseline must be left out where a pair of inputs is audited, got it "
            f"with {job.name}; LDP-Auditor is for local protocols."
        )
    return replace(job, baseline=not job.stop_early if wanted is None else wanted)


def carry_out(job: Job, run: Run) -> None:
    """Run an audit and say what came out; exit with 3 if the claim is refuted."""
    check_size(trials=run.trials, workers=run.workers)
    path = _read_places(run)
    _check_early(job, run)
    full = replace(
        job,
        confidence=run.confidence,
        seed=run.seed,
        workers=run.workers,
        checkpoint=run.checkpoint,
        command=shown_command(run.context),
    )
    found = conduct(_sized(full, run))
    fault = None if path is None else _report_fault(path, found)
    _show(found, report=None if fault else path, json_output=run.json_output)
    if fault is not None:
        raise fault
    if found.result.violated:
        complain(verdict_sentence(found.result))
        raise typer.Exit(EXIT_REFUSED)


def _sized(job: Job, run: Run) -> Job:
    """Return the job with its trials: as asked for, or as many as time allows."""
    if run.seconds is not None and (run.trials or job.stop_early or run.checkpoint):
        raise ModelError(
            "--seconds must be left out beside --trials, --stop-early and "
            f"--checkpoint, got {run.seconds:g}; state how many trials to run."
        )
    if run.trials is not None:
        return replace(job, trials=run.trials)
    recorded = isinstance(job.subject, RecordedSubject)
    if job.trials is not None or recorded:
        return job
    if job.local or job.stop_early or run.checkpoint is not None:
        return replace(job, trials=TRIALS)
    return replace(job, seconds=_SECONDS if run.seconds is None else run.seconds)


def _report_fault(path: Path, found: Conducted) -> Exception | None:
    """Write the report; return why it could not be, as the result is told anyway."""
    try:
        write_report(path, found)
    except (OSError, UndertowError) as fault:
        return fault
    return None


def _show(found: Conducted, *, report: Path | None, json_output: bool) -> None:
    if json_output:
        print_json(job_record(found, report=report))
        return
    job = found.job
    print_audit(found.result, title=job.about, threat=job.attacker, notes=found.notes)


def _read_places(run: Run) -> Path | None:
    """Return where the report goes; refuse places that cannot be meant."""
    report, checkpoint = read_report_path(run.report), run.checkpoint
    check_place(checkpoint, "checkpoint")
    if report and checkpoint and report.resolve() == checkpoint.resolve():
        raise ModelError(
            f"--report and --checkpoint must be two files, got {report} for both."
        )
    return report


def _check_early(job: Job, run: Run) -> None:
    """Refuse options that a run which may stop at any time does not have."""
    if not job.stop_early:
        return
    given = {
        "--workers": None if run.workers == 1 else run.workers,
        "--checkpoint": run.checkpoint,
    }
    for option, value in given.items():
        if value is not None:
            raise ModelError(
                f"{option} must be left out with --stop-early, which looks after every "
                f"part of one run, got {value}."
            )
    if job.threat is not None:
        raise ModelError(
            "--prior, --aux, --tolerance and --loss must be left out with "
            f"--stop-early, got one to {job.threat.summary}; state the most trials "
            "instead."
        )

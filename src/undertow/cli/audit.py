"""`undertow audit`: whether code keeps the promise that is made for it.

The commands, and the way from the options that all audits have to a verdict, a page and
an exit status.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from undertow.audit._outcome import shortened
from undertow.audit.claim import Claim
from undertow.audit.pair.fixed import TRIALS
from undertow.audit.program import CommandSubject
from undertow.audit.record import RecordedSubject
from undertow.audit.subject import CallableSubject
from undertow.cli import _audit_option as opt
from undertow.cli._audit_input import (
    check_copies,
    check_place,
    check_size,
    fault_job,
    list_faults,
    package_version,
    read_attacker,
    read_claim,
    read_function,
    read_input_list,
    read_neighbours,
    read_pairs,
    read_protocol,
    read_records_file,
    read_report_path,
    read_scores,
)
from undertow.cli._audit_option import (
    in_option_words,
    protocol_title,
    shown_command,
    was_given,
)
from undertow.cli._audit_result import (
    Conducted,
    Job,
    conduct,
    job_record,
    print_audit,
    write_report,
)
from undertow.cli._input import library_input
from undertow.cli._output import EXIT_REFUSED, complain, guarded, print_json
from undertow.errors import AssumptionError, ModelError, UndertowError
from undertow.mechanisms.local import LocalProtocol
from undertow.report import verdict_sentence
from undertow.risk import Threat

audit = typer.Typer(
    name="audit",
    help="Whether code keeps its promise: attack it, and certify what it leaks. Exit "
    "status 3 if the claim is refuted.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

# What describes an audit; code with a known bug has its own.
_OTHERS = (
    "protocol",
    "categories",
    "epsilon",
    "claim",
    "delta",
    "mu",
    "adjacency",
    "prior",
    "aux",
    "tolerance",
    "loss",
)


@audit.command("ldp", cls=opt.OnceCommand)
def audit_ldp(
    context: typer.Context,
    protocol: opt.Protocol = None,
    categories: opt.Categories = None,
    epsilon: opt.Epsilon = None,
    claim: opt.ClaimedEpsilon = None,
    delta: opt.Delta = None,
    mu: opt.ClaimedMu = None,
    adjacency: opt.Adjacency = "local",
    prior: opt.PriorLaw = "uniform",
    aux: opt.Aux = "none",
    tolerance: opt.Tolerance = None,
    loss: opt.LossMatrix = None,
    fault: opt.FaultName = None,
    repaired: opt.Repaired = False,
    baseline: opt.Baseline = None,
    stop_early: opt.StopEarly = False,
    trials: opt.Trials = None,
    confidence: opt.Confidence = 0.99,
    seed: opt.Seed = 0,
    workers: opt.Workers = 1,
    checkpoint: opt.Checkpoint = None,
    report: opt.Report = None,
    json_output: opt.JsonOutput = False,
) -> None:
    """Audit a local protocol, or code with a known bug, against what is claimed for it.

    Without --claim the protocol is held against its own --epsilon.

    Example: [bold]undertow audit ldp --protocol oue --categories 20 --epsilon 1
    --claim 0.9 --seed 1[/bold]
    """
    with audit_guarded():
        given = [name for name in _OTHERS if was_given(context, name)]
        if fault == "list":
            list_faults(given=given, json_output=json_output)
            return
        run = Run(
            context, trials, confidence, seed, workers, checkpoint, report, json_output
        )
        if fault is not None:
            job = fault_job(fault, repaired=repaired, given=given)
        elif repaired:
            raise ModelError("--repaired must come with --fault, got none.")
        else:
            level = epsilon if claim is None and mu is None else claim
            stated = read_protocol(protocol, categories=categories, epsilon=epsilon)
            held = read_claim(epsilon=level, delta=delta, mu=mu, adjacency=adjacency)
            threat = read_attacker(
                stated.categories, prior=prior, aux=aux, tolerance=tolerance, loss=loss
            )
            job = _protocol_job(str(protocol), stated, held, threat)
        job = replace(job, stop_early=stop_early, version=package_version("undertow"))
        carry_out(with_baseline(job, baseline), run)


@audit.command("callable", cls=opt.OnceCommand)
def audit_callable(
    context: typer.Context,
    function: opt.Function,
    inputs: opt.Inputs,
    claim: opt.ClaimedEpsilon = None,
    delta: opt.Delta = None,
    mu: opt.ClaimedMu = None,
    adjacency: opt.Adjacency = "replace",
    neighbours: opt.Neighbours = None,
    pairs: opt.Pairs = None,
    score: opt.Scores = None,
    vectorised: opt.Vectorised = False,
    time_limit: opt.TimeLimit = 60.0,
    stop_early: opt.StopEarly = False,
    trials: opt.Trials = None,
    seconds: opt.Seconds = None,
    confidence: opt.Confidence = 0.99,
    seed: opt.Seed = 0,
    workers: opt.Workers = 1,
    checkpoint: opt.Checkpoint = None,
    report: opt.Report = None,
    json_output: opt.JsonOutput = False,
) -> None:
    """Audit a Python function on neighbouring inputs.

    The current directory is put on the path, as by python -m; importing the module and
    calling the function runs its code, and nothing else is run.

    Example: [bold]undertow audit callable random:gauss --inputs '[0, 1]' --mu 1.1
    --trials 20000 --score values[/bold]
    """
    with audit_guarded():
        run = Run(
            context, trials, confidence, seed, workers, checkpoint, report, json_output
        )
        run = replace(run, seconds=seconds)
        stated = read_claim(epsilon=claim, delta=delta, mu=mu, adjacency=adjacency)
        listed, chosen = read_input_list(inputs), read_pairs(pairs)
        stated, told = read_neighbours(stated, listed, pairs=chosen, stated=neighbours)
        looked, found = read_scores(score), read_function(function)
        version = package_version(function.partition(":")[0])
        subject = CallableSubject(
            found,
            listed,
            time_limit=time_limit,
            vectorised=vectorised,
            name=function,
            version=version,
        )
        way = "let the function take a generator, as its argument rng"
        check_copies(subject, workers=workers, checkpoint=checkpoint, way=way)
        job = Job(subject, stated, name=function, pairs=chosen, score=looked)
        job = replace(job, stop_early=stop_early, version=version, remarks=told)
        carry_out(job, run)


@audit.command("command", cls=opt.OnceCommand)
def audit_command(
    context: typer.Context,
    command: opt.Command,
    inputs: opt.Inputs,
    claim: opt.ClaimedEpsilon = None,
    delta: opt.Delta = None,
    mu: opt.ClaimedMu = None,
    adjacency: opt.Adjacency = "replace",
    neighbours: opt.Neighbours = None,
    pairs: opt.Pairs = None,
    score: opt.Scores = None,
    seeded: opt.Seeded = False,
    batch: opt.Batch = 10_000,
    time_limit: opt.TimeLimit = 60.0,
    stop_early: opt.StopEarly = False,
    trials: opt.Trials = None,
    seconds: opt.Seconds = None,
    confidence: opt.Confidence = 0.99,
    seed: opt.Seed = 0,
    workers: opt.Workers = 1,
    checkpoint: opt.Checkpoint = None,
    report: opt.Report = None,
    json_output: opt.JsonOutput = False,
) -> None:
    """Audit a program that reads and writes one JSON value per line.

    It is started without a shell, for as many runs at once as take about two seconds;
    UNDERTOW_SEED in its environment is a new number each time.

    Example: [bold]undertow audit command "cat" --inputs '[0, 1]' --claim 1
    --trials 1000[/bold]
    """
    with audit_guarded():
        run = Run(
            context, trials, confidence, seed, workers, checkpoint, report, json_output
        )
        run = replace(run, seconds=seconds)
        stated = read_claim(epsilon=claim, delta=delta, mu=mu, adjacency=adjacency)
        listed, chosen = read_input_list(inputs), read_pairs(pairs)
        stated, told = read_neighbours(stated, listed, pairs=chosen, stated=neighbours)
        subject = CommandSubject(
            command,
            listed,
            time_limit=time_limit,
            seeded=seeded,
            batch=batch,
            name=shortened(command),
        )
        way = "let the program draw from UNDERTOW_SEED alone and say --seeded"
        check_copies(subject, workers=workers, checkpoint=checkpoint, way=way)
        job = Job(subject, stated, name=command, pairs=chosen, remarks=told)
        job = replace(job, score=read_scores(score), stop_early=stop_early)
        carry_out(job, run)


@audit.command("records", cls=opt.OnceCommand)
def audit_records(
    context: typer.Context,
    file: opt.RecordFile,
    input_column: opt.InputColumn,
    output_column: opt.OutputColumns,
    claim: opt.ClaimedEpsilon = None,
    delta: opt.Delta = None,
    mu: opt.ClaimedMu = None,
    adjacency: opt.Adjacency = "replace",
    neighbours: opt.Neighbours = None,
    pairs: opt.Pairs = None,
    score: opt.Scores = None,
    trials: opt.Trials = None,
    confidence: opt.Confidence = 0.99,
    seed: opt.Seed = 0,
    report: opt.Report = None,
    json_output: opt.JsonOutput = False,
) -> None:
    """Audit runs that were recorded: one row for each, its input and its output.

    Several output columns, each with --output-column before it, make one vector.

    Inputs are numbered for --pairs in the order of their first row; the seed says which
    runs choose the event and which certify.

    Example: [bold]undertow audit records runs.csv --input-column x --output-column y
    --claim 1[/bold]
    """
    with audit_guarded():
        run = Run(context, trials, confidence, seed, 1, None, report, json_output)
        stated = read_claim(epsilon=claim, delta=delta, mu=mu, adjacency=adjacency)
        looked = read_scores(score)
        subject = read_records_file(
            file, input_column=input_column, output_columns=output_column
        )
        chosen = read_pairs(pairs)
        stated, told = read_neighbours(
            stated, subject.inputs, pairs=chosen, stated=neighbours
        )
        job = Job(subject, stated, name=file.name, pairs=chosen, score=looked)
        job = replace(job, remarks=told)
        carry_out(job, run)


def _protocol_job(
    name: str, protocol: LocalProtocol, claim: Claim, threat: Threat | None
) -> Job:
    title = protocol_title(name, protocol)
    return Job(protocol, claim, name=name, title=title, local=True, threat=threat)


# From the options that all audits have to a verdict, a page and an exit status.

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

"""`undertow audit`: whether code keeps the promise that is made for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from undertow.audit.faults import FAULTS
from undertow.audit.subject_callable import CallableSubject
from undertow.audit.subject_command import CommandSubject
from undertow.audit.subjects import shortened
from undertow.cli import audit_options as opt
from undertow.cli.audit_inputs import (
    check_place,
    check_size,
    package_version,
    read_claim,
    read_fault,
    read_function,
    read_input_list,
    read_pairs,
    read_protocol,
    read_report_path,
)
from undertow.cli.audit_records import read_records_file
from undertow.cli.audit_results import Job, conduct, job_record, write_report
from undertow.cli.audit_tables import print_audit, print_faults
from undertow.cli.json_values import library_input
from undertow.cli.output import EXIT_REFUSED, complain, guarded, print_json
from undertow.errors import ModelError
from undertow.privacy.result import to_plain
from undertow.report import verdict_sentence

__all__ = ["audit"]

audit = typer.Typer(
    name="audit",
    help="Whether code keeps its promise: attack it, and certify what it leaks. Exit "
    "status 3 if the claim is refuted.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_TRIALS = 100_000


@audit.command("ldp")
def audit_ldp(
    protocol: opt.Protocol = None,
    categories: opt.Categories = None,
    epsilon: opt.Epsilon = None,
    claim: opt.ClaimedEpsilon = None,
    delta: opt.Delta = None,
    mu: opt.ClaimedMu = None,
    adjacency: opt.Adjacency = "local",
    fault: opt.FaultName = None,
    repaired: opt.Repaired = False,
    baseline: opt.Baseline = True,
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
    with _guarded():
        if fault == "list":
            _list_faults(json_output)
            return
        run = _Run(trials, confidence, seed, workers, checkpoint, report, json_output)
        if fault is not None:
            other = None if adjacency == "local" else adjacency
            given = (protocol, categories, epsilon, claim, delta, mu, other)
            job = _fault_job(fault, repaired=repaired, given=given, baseline=baseline)
        else:
            if repaired:
                raise ModelError("repaired must come with --fault, got none.")
            level = epsilon if claim is None and mu is None else claim
            stated = read_protocol(protocol, categories=categories, epsilon=epsilon)
            job = Job(
                stated,
                read_claim(epsilon=level, delta=delta, mu=mu, adjacency=adjacency),
                name=str(protocol),
                local=True,
                baseline=baseline,
            )
        _conduct(job, run, version=package_version("undertow"))


@audit.command("callable")
def audit_callable(
    function: opt.Function,
    inputs: opt.Inputs,
    claim: opt.ClaimedEpsilon = None,
    delta: opt.Delta = None,
    mu: opt.ClaimedMu = None,
    adjacency: opt.Adjacency = "replace",
    pairs: opt.Pairs = None,
    vectorised: opt.Vectorised = False,
    time_limit: opt.TimeLimit = 60.0,
    trials: opt.Trials = None,
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

    Example: [bold]undertow audit callable random:gauss --inputs '[0, 1]' --mu 1
    --trials 20000[/bold]
    """
    with _guarded():
        run = _Run(trials, confidence, seed, workers, checkpoint, report, json_output)
        stated = read_claim(epsilon=claim, delta=delta, mu=mu, adjacency=adjacency)
        listed, chosen = read_input_list(inputs), read_pairs(pairs)
        found = read_function(function)
        version = package_version(function.partition(":")[0])
        subject = CallableSubject(
            found,
            listed,
            time_limit=time_limit,
            vectorised=vectorised,
            name=function,
            version=version,
        )
        job = Job(subject, stated, name=function, pairs=chosen)
        _conduct(job, run, version=version)


@audit.command("command")
def audit_command(
    command: opt.Command,
    inputs: opt.Inputs,
    claim: opt.ClaimedEpsilon = None,
    delta: opt.Delta = None,
    mu: opt.ClaimedMu = None,
    adjacency: opt.Adjacency = "replace",
    pairs: opt.Pairs = None,
    seeded: opt.Seeded = False,
    time_limit: opt.TimeLimit = 60.0,
    trials: opt.Trials = None,
    confidence: opt.Confidence = 0.99,
    seed: opt.Seed = 0,
    workers: opt.Workers = 1,
    checkpoint: opt.Checkpoint = None,
    report: opt.Report = None,
    json_output: opt.JsonOutput = False,
) -> None:
    """Audit a program that reads and writes one JSON value per line.

    It is started without a shell, once per batch; UNDERTOW_SEED in its environment is a
    new number each time.

    Example: [bold]undertow audit command "cat" --inputs '[0, 1]' --claim 1
    --trials 1000[/bold]
    """
    with _guarded():
        run = _Run(trials, confidence, seed, workers, checkpoint, report, json_output)
        stated = read_claim(epsilon=claim, delta=delta, mu=mu, adjacency=adjacency)
        subject = CommandSubject(
            command,
            read_input_list(inputs),
            time_limit=time_limit,
            seeded=seeded,
            name=shortened(command),
        )
        job = Job(subject, stated, name=command, pairs=read_pairs(pairs))
        _conduct(job, run, version="")


@audit.command("records")
def audit_records(
    file: opt.RecordFile,
    input_column: opt.InputColumn,
    output_column: opt.OutputColumn,
    claim: opt.ClaimedEpsilon = None,
    delta: opt.Delta = None,
    mu: opt.ClaimedMu = None,
    adjacency: opt.Adjacency = "replace",
    pairs: opt.Pairs = None,
    trials: opt.Trials = None,
    confidence: opt.Confidence = 0.99,
    seed: opt.Seed = 0,
    report: opt.Report = None,
    json_output: opt.JsonOutput = False,
) -> None:
    """Audit runs that were recorded: one row for each, its input and its output.

    Inputs are numbered for --pairs in the order of their first row; the seed says which
    runs choose the event and which certify.

    Example: [bold]undertow audit records runs.csv --input-column x --output-column y
    --claim 1[/bold]
    """
    with _guarded():
        run = _Run(trials, confidence, seed, 1, None, report, json_output)
        stated = read_claim(epsilon=claim, delta=delta, mu=mu, adjacency=adjacency)
        subject = read_records_file(
            file, input_column=input_column, output_column=output_column
        )
        job = Job(subject, stated, name=str(file), pairs=read_pairs(pairs))
        _conduct(job, run, version="")


@dataclass(frozen=True, slots=True)
class _Run:
    """What all audits have in common."""

    trials: int | None
    confidence: float
    seed: int
    workers: int
    checkpoint: Path | None
    report: Path | None
    json_output: bool


@contextmanager
def _guarded() -> Iterator[None]:
    with guarded(), library_input():
        yield


def _conduct(job: Job, run: _Run, *, version: str) -> None:
    """Run an audit and say what came out; exit with 3 if the claim is refuted."""
    check_size(trials=run.trials, workers=run.workers)
    path = read_report_path(run.report)
    check_place(run.checkpoint, "checkpoint")
    trials = run.trials
    if trials is None:
        trials = job.trials or (_TRIALS if job.local else None)
    full = replace(
        job,
        trials=trials,
        confidence=run.confidence,
        seed=run.seed,
        workers=run.workers,
        checkpoint=run.checkpoint,
    )
    found = conduct(full)
    if path is not None:
        write_report(path, found, version=version)
    if run.json_output:
        print_json(job_record(found.result, version=version, report=path))
    else:
        print_audit(found.result)
    if found.result.violated:
        complain(verdict_sentence(found.result))
        raise typer.Exit(EXIT_REFUSED)


def _fault_job(
    name: str, *, repaired: bool, given: tuple[object, ...], baseline: bool
) -> Job:
    """Return the audit of a bug fixture, which has its own claim and inputs."""
    if any(value is not None for value in given):
        raise ModelError(
            "a fault has its own protocol and claim, got another; "
            "leave out --protocol, --categories, --epsilon, --claim, --delta, --mu and "
            "--adjacency."
        )
    fault = read_fault(name)
    return Job(
        (fault.repaired if repaired else fault.broken).subject,
        fault.claim,
        name=name,
        local=fault.method == "local",
        trials=fault.trials,
        pairs=fault.pairs,
        reader=fault.reader,
        score=fault.score,
        baseline=baseline,
    )


def _list_faults(json_output: bool) -> None:
    faults = [make() for make in FAULTS.values()]
    if not json_output:
        print_faults(faults)
        return
    rows = [
        {
            "name": fault.name,
            "bug": fault.bug,
            "claim": to_plain(fault.claim),
            "level": to_plain(fault.level),
            "trials": fault.trials,
        }
        for fault in faults
    ]
    print_json({"faults": rows})

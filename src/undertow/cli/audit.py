"""`undertow audit`: whether code keeps the promise that is made for it."""

from __future__ import annotations

from dataclasses import replace

import typer

from undertow.audit.claim import Claim
from undertow.audit.outputs import shortened
from undertow.audit.subject_callable import CallableSubject
from undertow.audit.subject_command import CommandSubject
from undertow.cli import audit_options as opt
from undertow.cli.audit_faults import fault_job, list_faults
from undertow.cli.audit_inputs import (
    check_copies,
    package_version,
    read_attacker,
    read_claim,
    read_function,
    read_input_list,
    read_neighbours,
    read_pairs,
    read_protocol,
    read_scores,
)
from undertow.cli.audit_records import read_records_file
from undertow.cli.audit_results import Job
from undertow.cli.audit_run import Run, audit_guarded, carry_out, with_baseline
from undertow.cli.audit_words import protocol_title, was_given
from undertow.errors import ModelError
from undertow.mechanisms.local import LocalProtocol
from undertow.risk import Threat

__all__ = ["audit"]

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

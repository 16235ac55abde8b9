"""`undertow calibrate`: the noise that keeps a promise when records depend."""

from __future__ import annotations

from typing import Any

import typer

from undertow.cli import _model as opt
from undertow.cli._input import library_input
from undertow.cli._model import (
    blocks_model,
    gaussian_model,
    joint_model,
    markov_model,
    pedigree_model,
    read_query,
)
from undertow.cli._output import guarded, print_json, working
from undertow.cli.leak import print_calibration
from undertow.correlation import (
    Accuracy,
    LeakageCalibration,
    Model,
    Query,
)
from undertow.correlation import (
    calibrate as calibrate_model,
)
from undertow.results import to_plain

calibrate = typer.Typer(
    name="calibrate",
    help="The noise that keeps a promise when records depend on each other.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@calibrate.command("markov")
def calibrate_markov(
    target: opt.Target,
    transition: opt.Transition = None,
    gamma: opt.Gamma = None,
    initial: opt.Initial = None,
    length: opt.Length = None,
    renormalise: opt.Renormalise = False,
    query: opt.QueryName = "any",
    states: opt.States = None,
    sensitivity: opt.Sensitivity = None,
    beta: opt.Beta = 0.05,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Calibrate the noise on a Markov chain: a time series of states.

    Example: [bold]undertow calibrate markov --transition
    '[[0.882,0.118],[0.305,0.695]]' --target 1 --query count[/bold]
    """
    with guarded(), library_input():
        model = markov_model(
            transition=transition,
            gamma=gamma,
            initial=initial,
            length=length,
            renormalise=renormalise,
        )
        asked = read_query(
            query or "any",
            states=states,
            sensitivity=sensitivity,
            bounded=transition is not None,
        )
        _show(model, target, asked, beta=beta, method=method, json_output=json_output)


@calibrate.command("gaussian")
def calibrate_gaussian(
    target: opt.Target,
    correlation: opt.Correlation = None,
    group: opt.Group = None,
    covariance: opt.Covariance = None,
    phi: opt.Phi = None,
    length: opt.Length = None,
    query: opt.QueryName = "sum",
    clip: opt.Clip = None,
    sensitivity: opt.Sensitivity = None,
    beta: opt.Beta = 0.05,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Calibrate the noise on jointly Gaussian records, each clipped before the query.

    Example: [bold]undertow calibrate gaussian --correlation 0.275 --group 3
    --target 1 --clip '[0, 100]'[/bold]
    """
    with guarded(), library_input():
        model = gaussian_model(
            covariance=covariance,
            correlation=correlation,
            group=group,
            phi=phi,
            length=length,
        )
        asked = read_query(query or "sum", clip=clip, sensitivity=sensitivity)
        _show(model, target, asked, beta=beta, method=method, json_output=json_output)


@calibrate.command("blocks")
def calibrate_blocks(
    target: opt.Target,
    group: opt.Group = None,
    groups: opt.Groups = 1,
    labels: opt.Labels = None,
    sensitivity: opt.Sensitivity = None,
    beta: opt.Beta = 0.05,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Calibrate the noise where only the groups of dependent records are known.

    Example: [bold]undertow calibrate blocks --group 5 --target 1[/bold]
    """
    with guarded(), library_input():
        model = blocks_model(group=group, groups=groups, labels=labels)
        asked = read_query("any", sensitivity=sensitivity)
        _show(model, target, asked, beta=beta, method=method, json_output=json_output)


@calibrate.command("joint")
def calibrate_joint(
    target: opt.Target,
    table: opt.Table,
    query: opt.QueryName = "any",
    states: opt.States = None,
    sensitivity: opt.Sensitivity = None,
    beta: opt.Beta = 0.05,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Calibrate the noise on a known joint law of a few records.

    Example: [bold]undertow calibrate joint --table '[[0.45,0.05],[0.05,0.45]]'
    --target 1 --query sum[/bold]
    """
    with guarded(), library_input():
        model = joint_model(table)
        asked = read_query(
            query or "any", states=states, sensitivity=sensitivity, bounded=True
        )
        _show(model, target, asked, beta=beta, method=method, json_output=json_output)


@calibrate.command("pedigree")
def calibrate_pedigree(
    target: opt.Target,
    family: opt.Family = None,
    group: opt.Group = None,
    frequency: opt.Frequency = None,
    query: opt.QueryName = "count",
    states: opt.States = None,
    sensitivity: opt.Sensitivity = None,
    beta: opt.Beta = 0.05,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Calibrate the noise on genotypes of relatives; a count is that of BB by default.

    Example: [bold]undertow calibrate pedigree --group 4 --frequency 0.7
    --target 1[/bold]
    """
    with guarded(), library_input():
        model = pedigree_model(family=family, group=group, frequency=frequency)
        asked = read_query(
            query or "count",
            states=states,
            sensitivity=sensitivity,
            genotypes=True,
            bounded=True,
        )
        _show(model, target, asked, beta=beta, method=method, json_output=json_output)


def calibration_record(found: LeakageCalibration) -> dict[str, Any]:
    """Return the JSON record of a calibration, its keys fixed."""
    return {
        "dp_epsilon": found.epsilon,
        "noise_scale": to_plain(found.noise_scale),
        "method": found.method,
        "leakage": to_plain(found.achieves.value),
        "accuracy": _accuracy(found.accuracy),
        "floor": found.floor,
        "alternatives": [
            {
                "method": other.name,
                "dp_epsilon": to_plain(other.parameter),
                "reason": other.reason,
            }
            for other in found.alternatives
        ],
        "target": found.target,
        "sensitivity": found.sensitivity,
        "theorem": found.achieves.theorem,
        "tight": found.achieves.tight,
        "covers": to_plain(found.covers),
    }


def _accuracy(found: Accuracy | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {"alpha": found.alpha, "beta": found.beta, "mae": found.mae}


def _show(
    model: Model,
    target: float,
    query: Query,
    *,
    beta: float,
    method: str,
    json_output: bool,
) -> None:
    with working(f"calibrating under {model.summary}"):
        found = calibrate_model(model, target, query=query, beta=beta, method=method)
    if json_output:
        print_json(calibration_record(found))
    else:
        print_calibration(found)

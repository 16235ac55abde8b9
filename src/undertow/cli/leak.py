"""`undertow leak`: how much a DP release really leaks when records depend.

With leakages and calibrations in the terminal: the answer first, then the reasons.
"""

from __future__ import annotations

import math
from typing import Any

import typer
from rich.console import Console

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
from undertow.cli._output import (
    bare_table,
    guarded,
    print_alternatives,
    print_assumptions,
    print_json,
    print_line,
    working,
)
from undertow.correlation import (
    Leakage,
    LeakageCalibration,
    Model,
    Query,
    explain,
    leakage,
)
from undertow.results import to_plain

leak = typer.Typer(
    name="leak",
    help="How much an epsilon-DP release leaks when records depend on each other.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@leak.command("markov")
def leak_markov(
    epsilon: opt.Epsilon,
    transition: opt.Transition = None,
    gamma: opt.Gamma = None,
    initial: opt.Initial = None,
    length: opt.Length = None,
    renormalise: opt.Renormalise = False,
    query: opt.QueryName = "any",
    states: opt.States = None,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Measure the leakage on a Markov chain: a time series of states.

    Example: [bold]undertow leak markov --transition '[[0.882,0.118],[0.305,0.695]]'
    --epsilon 0.25[/bold]
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
            query or "any", states=states, bounded=transition is not None
        )
        _show(model, epsilon, asked, method=method, json_output=json_output)


@leak.command("gaussian")
def leak_gaussian(
    epsilon: opt.Epsilon,
    correlation: opt.Correlation = None,
    group: opt.Group = None,
    covariance: opt.Covariance = None,
    phi: opt.Phi = None,
    length: opt.Length = None,
    query: opt.QueryName = "sum",
    clip: opt.Clip = None,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Measure the leakage on jointly Gaussian records, each clipped before the query.

    Example: [bold]undertow leak gaussian --correlation 0.275 --group 3
    --epsilon 1[/bold]
    """
    with guarded(), library_input():
        model = gaussian_model(
            covariance=covariance,
            correlation=correlation,
            group=group,
            phi=phi,
            length=length,
        )
        asked = read_query(query or "sum", clip=clip)
        _show(model, epsilon, asked, method=method, json_output=json_output)


@leak.command("blocks")
def leak_blocks(
    epsilon: opt.Epsilon,
    group: opt.Group = None,
    groups: opt.Groups = 1,
    labels: opt.Labels = None,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Measure the leakage where only the groups of dependent records are known.

    Example: [bold]undertow leak blocks --group 4 --epsilon 0.5[/bold]
    """
    with guarded(), library_input():
        model = blocks_model(group=group, groups=groups, labels=labels)
        asked = read_query("any")
        _show(model, epsilon, asked, method=method, json_output=json_output)


@leak.command("joint")
def leak_joint(
    epsilon: opt.Epsilon,
    table: opt.Table,
    query: opt.QueryName = "any",
    states: opt.States = None,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Measure the leakage on a known joint law of a few records.

    Example: [bold]undertow leak joint --table '[[0.45,0.05],[0.05,0.45]]'
    --epsilon 1 --query sum[/bold]
    """
    with guarded(), library_input():
        model = joint_model(table)
        asked = read_query(query or "any", states=states, bounded=True)
        _show(model, epsilon, asked, method=method, json_output=json_output)


@leak.command("pedigree")
def leak_pedigree(
    epsilon: opt.Epsilon,
    family: opt.Family = None,
    group: opt.Group = None,
    frequency: opt.Frequency = None,
    query: opt.QueryName = "count",
    states: opt.States = None,
    method: opt.MethodName = "best",
    json_output: opt.JsonOutput = False,
) -> None:
    """Measure the leakage on genotypes of relatives; a count is that of BB by default.

    Example: [bold]undertow leak pedigree --group 4 --frequency 0.7
    --epsilon 1[/bold]
    """
    with guarded(), library_input():
        model = pedigree_model(family=family, group=group, frequency=frequency)
        asked = read_query(
            query or "count", states=states, genotypes=True, bounded=True
        )
        _show(model, epsilon, asked, method=method, json_output=json_output)


def leakage_record(found: Leakage) -> dict[str, Any]:
    """Return the JSON record of a leakage, its keys fixed."""
    return {
        "leakage": to_plain(found.value),
        "method": found.method,
        "tight": found.tight,
        "theorem": found.theorem,
        "witness": None if found.witness is None else to_plain(found.witness),
        "assumptions": [
            *({"text": text, "status": "checked"} for text in found.checked),
            *({"text": text, "status": "assumed"} for text in found.unchecked),
        ],
        "alternatives": [
            {
                "method": other.name,
                "leakage": to_plain(other.parameter),
                "reason": other.reason,
            }
            for other in found.alternatives
        ],
        "model": found.model,
        "mechanisms": found.mechanisms,
        "attackers": found.attackers,
        "scope": found.scope.summary,
    }


def _show(
    model: Model, epsilon: float, query: Query, *, method: str, json_output: bool
) -> None:
    with working(f"measuring what is learnt under {model.summary}"):
        found = leakage(model, epsilon, query=query, method=method)
    if json_output:
        print_json(leakage_record(found))
    else:
        print_leakage(found, epsilon=epsilon)


# Leakages and calibrations in the terminal: the answer first, then the reasons.


def print_leakage(found: Leakage, *, epsilon: float, others: bool = True) -> None:
    """Print a leakage: value, attacker, what holds, what other methods say."""
    console = Console()
    sign = "=" if found.is_exact else "≤"
    print_line(
        console,
        f"leakage {sign} {found.value:.6g} for a release that is {epsilon:g}-DP",
    )
    print_line(console, f"model: {found.model}")
    print_line(console, f"by: {found.theorem} (method {found.method!r})")
    print_line(console, f"holds for: {found.mechanisms}; {found.scope.summary}")
    print_line(console, f"against: {found.attackers}")
    if found.witness is not None:
        print_line(console, f"worst attacker: {found.witness.summary}")
    print_assumptions(console, found.checked, found.unchecked)
    if others:
        titles = ("other methods", "leakage", "why not")
        print_alternatives(console, found.alternatives, titles=titles, shown=_shown)


def print_calibration(found: LeakageCalibration) -> None:
    """Print a calibration: the numbers, the words, what other methods need."""
    console = Console()
    table = bare_table("promise", "DP level", "noise scale", "error", "method")
    error = "–"
    if found.accuracy is not None:
        error = f"{found.accuracy.alpha:.6g} at {1 - found.accuracy.beta:.0%}"
    table.add_row(
        f"leakage ≤ {found.target:g}",
        f"ε = {found.epsilon:.6g}",
        f"{found.noise_scale:.6g}",
        error,
        found.method,
    )
    console.print(table)
    console.print()
    print_line(console, explain(found))
    if found.covers is not None:
        print_line(console, f"holds for: {found.covers.summary}")
    if isinstance(found.achieves, Leakage):
        print_assumptions(console, found.achieves.checked, ())
    titles = ("other methods", "DP level", "why not")
    print_alternatives(console, found.alternatives, titles=titles, shown=_shown)


def _shown(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.6g}"

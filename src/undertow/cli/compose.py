"""`undertow compose`: what the releases of a plan cost together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from undertow.cli.files import read_plan
from undertow.cli.output import (
    EXIT_REFUSED,
    complain,
    guarded,
    print_json,
    working,
)
from undertow.cli.tables import print_reports
from undertow.composition import Plan, Report, infinite_loss_error
from undertow.errors import PlanError
from undertow.spaces import Granularity, parse_granularity
from undertow.spaces.base import Domain

__all__ = ["compose", "default_granularities", "run_compose"]

_DEFAULTS = {
    "table": ("unbounded", "bounded", "edit"),
    "rows": ("bounded-by-id",),
    "stream": ("event", "w-event:3", "l-trajectory:3", "user"),
    "graph": ("edge", "node"),
}


def compose(
    plan: Annotated[list[str], typer.Argument(metavar="PLAN.toml", show_default=False)],
    granularity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME ...",
            help="What one protected unit is; several names, or the option repeated. "
            "Default: the usual ones of the domain.",
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(help="Spent on converting Gaussian and zCDP losses, if needed."),
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Compose the releases of a plan: what they cost together.

    PLAN.toml names a domain and its releases. Each granularity gets one line: the
    composed loss, what plain sequential composition would say, and the change that
    costs most.

    Example: [bold]undertow compose plan.toml --granularity event user --json[/bold]

    Exit status: 0 done, 2 bad input, 3 refused because no finite loss holds.
    """
    with guarded():
        path, names = _split_words(plan, granularity or [])
        with working(f"reading {path}"):
            loaded = read_plan(path)
        targets = _targets(loaded.domain, names)
        with working(f"composing {len(loaded)} releases"):
            reports = _compose(loaded, targets, delta=delta)
    run_compose(loaded, targets, reports, json_output=json_output)


def run_compose(
    plan: Plan,
    targets: list[Granularity],
    reports: tuple[Report, ...],
    *,
    json_output: bool,
) -> None:
    """Print the reports; an infinite loss is explained and exits with status 3."""
    if json_output:
        print_json({"losses": [report.to_dict() for report in reports]})
    else:
        print_reports(reports)
    for target, report in zip(targets, reports, strict=True):
        if report.loss.is_infinite:
            complain(infinite_loss_error(plan, target, report))
            raise typer.Exit(EXIT_REFUSED)


def default_granularities(domain: Domain) -> list[Granularity]:
    """Return the usual granularities of a domain that have neighbours in it."""
    names = _DEFAULTS[domain.kind]
    if domain.kind == "table" and getattr(domain, "size", None) is not None:
        names = ("bounded",)
    return [parse_granularity(name) for name in names]


def _compose(
    plan: Plan, targets: list[Granularity], *, delta: str | None
) -> tuple[Report, ...]:
    try:
        return plan.table(targets, delta=delta)
    except (TypeError, ValueError) as fault:
        if type(fault) in (TypeError, ValueError):
            raise PlanError(str(fault)) from None
        raise


def _targets(domain: Domain, names: list[str]) -> list[Granularity]:
    if not names:
        return default_granularities(domain)
    try:
        targets = [parse_granularity(name) for name in names]
    except ValueError as fault:
        raise PlanError(str(fault)) from None
    for target in targets:
        target.require_domain(domain)
    return targets


def _split_words(words: list[str], names: list[str]) -> tuple[Path, list[str]]:
    """Tell the plan file from granularity names that follow one option."""
    names = [part for name in names for part in name.split(",")]
    paths = []
    for word in words:
        if not _is_granularity(word) or word.endswith(".toml"):
            paths.append(word)
        else:
            names.append(word)
    if len(paths) > 1 and names:
        # The file comes first; a later word was meant as one more granularity.
        names += paths[1:]
    elif len(paths) != 1:
        found = ", ".join(paths) or "none"
        raise PlanError(f"compose must be given one plan file, got {found}.")
    return Path(paths[0]), names


def _is_granularity(word: str) -> bool:
    try:
        parse_granularity(word)
    except ValueError:
        return False
    return True

"""`undertow compose`: what the releases of a plan cost together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.cli._input import read_plan
from undertow.cli._output import EXIT_REFUSED, complain, guarded, print_json, working
from undertow.composition import Plan, Report, infinite_loss_error
from undertow.errors import PlanError
from undertow.privacy.loss import Loss, shown_loss
from undertow.spaces import Granularity, parse_granularity
from undertow.spaces.base import Domain

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


# Reports as tables and bars in the terminal.


def print_reports(reports: Sequence[Report]) -> None:
    """Print one line a granularity, then what is not protected and the warnings."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("protects", "together", "without views", "worst change"):
        table.add_column(heading, overflow="fold")
    for report in reports:
        witness = "" if report.witness is None else report.witness.summary
        loss, alone = shown_loss(report.loss), shown_loss(report.sequential)
        table.add_row(report.granularity, loss, alone, Text(witness))
    console = Console()
    console.print(table)
    for title, lines in _remarks(reports):
        console.print(f"\n[bold]{title}[/bold]")
        for line in lines:
            console.print(f"  {line}", highlight=False, soft_wrap=True, markup=False)


def _remarks(reports: Sequence[Report]) -> list[tuple[str, list[str]]]:
    """Return titled sentences; one that holds for several granularities once."""
    clear, warned = _Grouped(), _Grouped()
    for report in reports:
        for text in report.unprotected:
            clear.add(report.granularity, text)
        for text in report.warnings:
            warned.add(report.granularity, text)
    assumed = list(dict.fromkeys(text for r in reports for text in r.assumptions))
    titled = [
        ("Not protected", clear.lines()),
        ("Assumed", assumed),
        ("Warnings", warned.lines()),
    ]
    return [(title, lines) for title, lines in titled if lines]


class _Grouped:
    """Sentences, each with the granularities it was said of."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}

    def add(self, name: str, text: str) -> None:
        self.said.setdefault(text, []).append(name)

    def lines(self) -> list[str]:
        return [f"{', '.join(names)}: {text}" for text, names in self.said.items()]


def print_bars(reports: Sequence[Report], *, width: int = 40) -> None:
    """Draw the first parameter of each loss as a bar, infinite ones dotted."""
    values = [_first_parameter(report.loss) for report in reports]
    top = max((v for v in values if math.isfinite(v)), default=1.0) or 1.0
    label = max(len(report.granularity) for report in reports)
    for report, value in zip(reports, values, strict=True):
        if math.isinf(value):
            bar = "·" * width + " ∞"
        else:
            bar = "█" * round(width * value / top) + f" {shown_loss(report.loss)}"
        typer.echo(f"{report.granularity.rjust(label)}  {bar}")


def _first_parameter(loss: Loss) -> float:
    """Return epsilon, rho or mu; infinite where nothing is promised, as at delta 1."""
    shown = loss.to_dict()
    values = [shown[name] for name in loss.names]
    return math.inf if loss.is_infinite else float(values[0])

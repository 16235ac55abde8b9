"""Reports as tables and bars in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.composition import Report
from undertow.privacy.loss import Loss
from undertow.privacy.result import shown_loss

__all__ = ["print_bars", "print_reports"]


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

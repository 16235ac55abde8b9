"""Studies and their checks in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.studies import Check, Study, StudyResult
from undertow.studies.base import Status

__all__ = ["print_checks", "print_studies", "tally"]

_STYLE: dict[Status, str] = {
    "match": "green",
    "erratum": "yellow",
    "differs": "red",
    "stand-in": "cyan",
    "not published": "dim",
}


def print_studies(studies: Sequence[Study]) -> None:
    """Print one line a study: name, what it shows, where it is printed."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("name", "shows", "source"):
        table.add_column(heading, overflow="fold")
    for study in studies:
        table.add_row(study.name, Text(study.title), Text(study.source))
    Console().print(table)


def print_checks(result: StudyResult, files: Sequence[Path]) -> None:
    """Print the checks of one study, and where its files are."""
    console = Console()
    console.print(
        f"\n[bold]{result.name}[/bold]  {result.title} ({result.source}; "
        f"data: {result.data})",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("quantity", "published", "ours", "status", "note"):
        table.add_column(heading, overflow="fold")
    for check in result.checks:
        table.add_row(
            Text(check.quantity),
            _shown(check.published),
            _shown(check.ours),
            Text(f"{check.status} {check.erratum}".strip(), style=_STYLE[check.status]),
            Text(check.note),
        )
    console.print(table)
    if result.drawn:
        console.print(f"drawn: {result.drawn}", highlight=False, soft_wrap=True)
    console.print(tally(result.checks), highlight=False, soft_wrap=True)
    names = ", ".join(str(path) for path in files)
    console.print(f"files: {names}", highlight=False, soft_wrap=True, markup=False)


def tally(checks: Sequence[Check]) -> str:
    """Count the checks of each status; what was never published is no match."""
    counts = Counter(check.status for check in checks)
    return "checks: " + ", ".join(f"{counts[s]} {s}" for s in _STYLE if counts[s])


def _shown(value: float | str | None) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)

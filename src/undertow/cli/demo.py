"""`undertow demo`: a bundled plan at every granularity, as a table and a picture."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from undertow.cli.files import bundled_plan
from undertow.cli.output import complain, guarded, print_json, working
from undertow.cli.tables import print_bars, print_reports
from undertow.composition import Report
from undertow.spaces import parse_granularity

__all__ = ["demo"]

_TARGETS = (
    "event",
    "w-event:3",
    "w-event:3:single-user",
    "l-trajectory:3",
    "user:max-times=4",
    "user",
)
_STORY = """\
A city publishes one noisy count of people per place for each hour of a day, from the
positions of 1000 people: ε = 0.5 at the two rush hours, ε = 0.1 otherwise. Each is
private for one recorded position. What do they cost together?
"""


def demo(
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the picture; made if it is not there."),
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Compose a bundled plan at every granularity, print the table, draw it.

    Example: [bold]undertow demo --output demo-output[/bold]
    """
    with guarded():
        with working("composing"):
            plan = bundled_plan("hourly")
            targets = [parse_granularity(name) for name in _TARGETS]
            reports = plan.table(targets)
        if json_output:
            print_json({"losses": [report.to_dict() for report in reports]})
        else:
            typer.echo(_STORY)
            print_reports(reports)
            typer.echo()
            print_bars(reports)
        if output is not None:
            _draw(reports, output, quiet=json_output)


def _draw(reports: tuple[Report, ...], folder: Path, *, quiet: bool) -> None:
    if find_spec("matplotlib") is None:
        complain(
            "matplotlib must be installed to draw the picture, got none; "
            "run pip install 'undertow[plot]'."
        )
        return
    from undertow.plotting import plot_reports, save_figure

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "composition.png"
    save_figure(plot_reports(reports), path)
    if not quiet:
        typer.echo(f"\nPicture: {path}")

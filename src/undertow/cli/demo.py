"""`undertow demo`: a bundled plan at every granularity, as a table and a picture."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from undertow.cli.calibrate import calibration_record
from undertow.cli.files import bundled_plan
from undertow.cli.leak import leakage_record
from undertow.cli.leak_tables import print_calibration, print_leakage
from undertow.cli.output import complain, guarded, print_json, working
from undertow.cli.tables import print_bars, print_reports
from undertow.composition import Report
from undertow.correlation import CountQuery, MarkovChain, calibrate, leakage
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
_SECOND_STORY = """
One person's step counter has 17 568 five-minute slots, each active or not; how many are
active is released with ε = 1. Slots depend on their neighbours as a Markov chain fitted
to such a series says. What does the release say about one slot?
"""
_ACTIVITY = ((0.882, 0.118), (0.305, 0.695))


def demo(
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for the picture; made if it is not there."),
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Compose a bundled plan and measure a correlated release; print and draw them.

    Example: [bold]undertow demo --output demo-output[/bold]
    """
    with guarded():
        with working("composing"):
            plan = bundled_plan("hourly")
            targets = [parse_granularity(name) for name in _TARGETS]
            reports = plan.table(targets)
        with working("measuring the leakage"):
            chain = MarkovChain(_ACTIVITY, length=17568)
            learnt = leakage(chain, 1.0, query=CountQuery())
            safe = calibrate(chain, 1.0, query=CountQuery())
        if json_output:
            losses = [report.to_dict() for report in reports]
            print_json(
                {
                    "losses": losses,
                    "leakage": leakage_record(learnt),
                    "calibration": calibration_record(safe),
                }
            )
        else:
            typer.echo(_STORY)
            print_reports(reports)
            typer.echo()
            print_bars(reports)
            typer.echo(_SECOND_STORY)
            print_leakage(learnt, epsilon=1.0, others=False)
            typer.echo("\nThe noise that keeps it at 1:\n")
            print_calibration(safe)
        if output is not None:
            _draw(reports, output, quiet=json_output)


def _draw(reports: tuple[Report, ...], folder: Path, *, quiet: bool) -> None:
    if find_spec("matplotlib") is None:
        complain(
            "matplotlib must be installed to draw the picture, got none; "
            "run pip install 'undertow[plot]'."
        )
        return
    from undertow.correlation.comparators import compare_scales
    from undertow.plotting import plot_reports, plot_scales, save_figure

    folder.mkdir(parents=True, exist_ok=True)
    chain = MarkovChain(_ACTIVITY, length=17568)
    scales = compare_scales(chain, 1.0, query=CountQuery())
    pictures = {
        "composition.png": plot_reports(reports),
        "noise-scales.png": plot_scales(scales),
    }
    for name, picture in pictures.items():
        save_figure(picture, folder / name)
        if not quiet:
            typer.echo(f"\nPicture: {folder / name}")

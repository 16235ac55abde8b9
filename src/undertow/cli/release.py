"""`undertow release`: plan, check and run a private release of a table."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undertow._address import shown_address
from undertow._printable import on_one_line
from undertow.cli.files import path_of
from undertow.cli.output import (
    EXIT_REFUSED,
    complain,
    guarded,
    print_json,
    private_files,
    working,
)
from undertow.errors import BudgetError, LedgerError, PlanError

if TYPE_CHECKING:
    from undertow.release import ReleaseFile, ReleasePlan, ReleaseRun

__all__ = ["release"]

release = typer.Typer(
    name="release",
    help="A private release of a table: its cost, whether it fits, and making it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

File = Annotated[Path, typer.Argument(metavar="RELEASE.toml", show_default=False)]
AsOf = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time of the run of a continual release, in UTC, such as "
        "2026-01-31T12:00.",
    ),
]
ReportFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write a report, as .html or .md."),
]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_ROWS_SHOWN = 12


@release.command("plan")
def plan_command(
    file: File,
    as_of: AsOf = None,
    report: ReportFile = None,
    json_output: JsonOutput = False,
) -> None:
    """Show what a release will cost and how good it will be; no data is read.

    Cost at every granularity, expected error of each cell, risk under the stated
    threat, and leakage under the stated correlation. Nothing is charged.

    Example: [bold]undertow release plan release.toml[/bold]

    Exit status: 0 done, 2 bad input, 3 refused because the guarantee would not hold.
    """
    with guarded():
        loaded = _load(file)
        page = path_of(report, "report")
        _require_report(page)
        with working("planning"):
            plan = loaded.plan(as_of=as_of)
        if page is not None:
            _write_report(_planned(loaded, plan), page)
        place, there = _ledger_of(loaded)
        if json_output:
            print_json({**plan.to_dict(), "ledger": place})
        else:
            _print(plan)
            _tell_of_no_check(file, loaded)
            rest = "" if place is None or there else ", not there yet"
            _tell_ledger(place or "to be named with --ledger", rest)
        _tell_of_lost_ledger(loaded, as_of)


@release.command("check")
def check_command(
    file: File, as_of: AsOf = None, json_output: JsonOutput = False
) -> None:
    """Compare a release with its table, for the owner of the table alone.

    Rows are counted at every step on which the release may lose them: times that are
    not read, keys in another case, bounds, conditions. These numbers are exact: do not
    publish them. Nothing is written and nothing is charged.

    Example: [bold]undertow release check release.toml[/bold]

    Exit status: 0 done, whatever was found; 2 bad input; 3 a table of the release would
    hold nothing but noise.
    """
    with guarded():
        loaded = _load(file)
        with working("reading the table"):
            found = loaded.check(as_of=as_of)
        if json_output:
            print_json(found.to_dict())
        else:
            typer.echo(str(found))
        if found.noise_alone:
            names = ", ".join(repr(name) for name in found.noise_alone)
            complain(
                f"a release must publish more than noise, got no more for {names}; see "
                "what was found, and repair the release file or the table."
            )
            raise typer.Exit(EXIT_REFUSED)


@release.command("run")
def run_command(
    file: File,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="LEDGER",
            help="A file that undertow ledger init made, or a postgresql:// address. "
            "Default: what the release says, or a file beside the table, made with the "
            "promise as its budget if there never was one for these people.",
        ),
    ] = None,
    as_of: AsOf = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for the tables of this release alone. Default: what the "
            "release says.",
        ),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(
            min=1,
            help="The same run is charged once and has one output; a larger number "
            "asks for another, and pays for it.",
        ),
    ] = 1,
    recount: Annotated[
        int,
        typer.Option(
            min=1,
            help="The count before a run is charged once; after a stop and a repaired "
            "table, a larger number counts anew, and pays for it.",
        ),
    ] = 1,
    report: ReportFile = None,
    json_output: JsonOutput = False,
) -> None:
    """Charge the ledger, release, and write tables and manifest.

    A run that was charged and killed is finished by the next one without a new charge;
    a run that is done returns its stored output.

    Example: [bold]undertow release run release.toml --ledger city.ledger[/bold]

    Exit status: 0 done, 2 bad input, 3 refused because the guarantee would not hold or
    the budget is spent.
    """
    with guarded():
        loaded = _load(file)
        page = path_of(report, "report")
        folder = path_of(output, "output", kind="a folder")
        _require_report(page, made=loaded.folder(as_of=as_of, output=folder))
        with private_files(), _telling() as tell:
            done = loaded.run(
                ledger=ledger,
                as_of=as_of,
                output=folder,
                repeat=repeat,
                recount=recount,
                command=_command(),
                progress=tell,
            )
        if done.warning is not None:
            complain(done.warning)
        if page is not None:
            _write_report(_finished(done), page)
        if json_output:
            print_json(done.to_dict())
        else:
            _print_run(done, page)
            if not done.repeated:
                _tell_of_no_check(file, loaded)


def _tell_of_no_check(file: Path, loaded: ReleaseFile) -> None:
    """Say that a release that finds no rows would not be noticed."""
    if loaded.document.check is None:
        typer.echo(
            "Nothing checks that rows are found: run undertow release check "
            f"{shlex.quote(str(file))} first, or add [check] to the file."
        )


def _load(path: Path) -> ReleaseFile:
    from undertow.release import load

    return load(path)


def _tell_of_lost_ledger(loaded: ReleaseFile, as_of: str | None) -> None:
    """Say on standard error that a run would be refused, where a ledger was lost."""
    try:
        loaded.require_ledger(as_of=as_of)
    except PlanError:
        return  # no place for a ledger is known; a run is given one, or says so
    except (BudgetError, LedgerError) as fault:
        complain(f"A run without --ledger would be refused: {fault}")


def _ledger_of(loaded: ReleaseFile) -> tuple[str | None, bool]:
    """Return where a run is charged, if anything says so, and whether it is there."""
    from undertow.release.ledger_place import has_ledger, ledger_address

    try:
        address = ledger_address(loaded.document)
        return shown_address(address), has_ledger(address, looking=True)
    except (LedgerError, PlanError):
        return None, False


def _command() -> str:
    """Return how the command was started; passwords in addresses are masked."""
    return shlex.join(["undertow", *map(shown_address, sys.argv[1:])])


@contextmanager
def _telling() -> Iterator[Any]:
    """Show on a terminal what is being done."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("planning") as status:
        yield status.update


def _planned(loaded: ReleaseFile, plan: ReleasePlan) -> dict[str, Any]:
    from undertow.release.record import run_record

    return run_record(
        plan, (), engine="none: this is a plan", title=loaded.title, command=_command()
    )


def _finished(done: ReleaseRun) -> dict[str, Any]:
    charge = done.charge
    entry = {"number": charge.number, "key": charge.key, "hash": charge.hash}
    return {**done.record, "charge": entry}


def _write_report(record: dict[str, Any], path: Path) -> None:
    from undertow.report import ReleaseReport

    ReleaseReport(record).write(path)


def _require_report(path: Path | None, *, made: Path | None = None) -> None:
    """Refuse a report that could not be written; `made` is a folder that will be."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm", ".md"):
        raise PlanError(f"report must end with .html or .md, got {path.name!r}.")
    if path.is_dir():
        raise PlanError(f"report must be a file, got the folder {path}.")
    folder = Path(os.path.realpath(path.parent))
    coming = made and Path(os.path.realpath(made))
    if not folder.is_dir():
        if coming is None or folder not in (coming, *coming.parents):
            raise PlanError(f"report must be in a folder that exists, got {path}.")
    elif not os.access(folder, os.W_OK | os.X_OK):
        raise PlanError(f"report must be in a folder that can be written, got {path}.")


def _print(shown: Any) -> None:
    from rich.console import Console

    Console(soft_wrap=True).print(shown)


def _print_run(done: ReleaseRun, report: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    for answer in done.answers:
        table = Table(title=Text(on_one_line(answer["name"])), title_justify="left")
        for name in answer["columns"]:
            table.add_column(Text(on_one_line(name)))
        for row in answer["rows"][:_ROWS_SHOWN]:
            table.add_row(*(Text(on_one_line(_shown(cell))) for cell in row))
        _print(table)
        left = len(answer["rows"]) - _ROWS_SHOWN
        if left > 0:
            typer.echo(f"… and {left} rows more in the file.")
    typer.echo(done.story)
    if done.ledger is not None:
        _tell_ledger(done.ledger)
    if done.folder is not None:
        typer.echo(f"Files: {done.folder}")
    if report is not None:
        typer.echo(f"Report: {report}")


def _tell_ledger(place: str, rest: str = "") -> None:
    """Say which ledger is charged: a file below the working directory from there."""
    path = Path(place)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        place = str(path.relative_to(Path.cwd()))
    typer.echo(f"Ledger: {on_one_line(place)}{rest}".encode("utf-8", "replace"))


def _shown(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)

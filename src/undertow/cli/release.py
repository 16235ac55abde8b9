"""`undertow release`: plan, check and run a private release of a table."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undertow._address import shown_address
from undertow._text import on_one_line
from undertow.cli._input import path_of
from undertow.cli._output import (
    EXIT_BAD_INPUT,
    EXIT_REFUSED,
    complain,
    guarded,
    print_json,
    private_files,
    stopped_after,
    working,
)
from undertow.errors import BudgetError, LedgerError, OutdatedLedger, PlanError

if TYPE_CHECKING:
    from undertow.release import ReleaseFile, ReleasePlan, ReleaseRun
    from undertow.release.run._ledger_place import NewBudget


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
_UNCHARGED = "it charged nothing"
_PERHAPS = "it may have been charged: run it again, which charges nothing twice"
_GOES_ON = "it is charged: run it again, which goes on without another charge"


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
        notes, new, outdated = _foreseen(loaded, as_of)
        if json_output:
            coming = None if new is None else new.to_dict()
            about = {"ledger": place, "notes": notes, "new_budget": coming}
            print_json({**plan.to_dict(), **about})
        else:
            _print(plan)
            if plan.check is None:
                typer.echo(_no_check(file))
            rest = "" if place is None or there else ", not there yet"
            _tell_ledger(place or "to be named with --ledger", rest)
            if new is not None:
                typer.echo(on_one_line(new.coming()).encode("utf-8", "replace"))
        for sentence in notes:
            complain(sentence)
        if outdated:
            raise typer.Exit(EXIT_REFUSED)


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
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--time-limit",
            metavar="TIME",
            help="The most time that the run may take, such as 90s, 30m or 2h. A run "
            "that meets a limit is charged without an output.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="The most memory of the process as a whole, such as 6GB or 800MB.",
        ),
    ] = None,
    report: ReportFile = None,
    json_output: JsonOutput = False,
) -> None:
    """Charge the ledger, release, and write tables and manifest.

    A run that was charged and killed is finished by the next one without a new charge;
    a run that is done returns its stored output.

    Example: [bold]undertow release run release.toml --ledger city.ledger[/bold]

    Exit status: 0 done, 2 bad input or a limit that was met, 3 refused because the
    guarantee would not hold or the budget is spent.
    """
    stopped_after(_UNCHARGED)
    with guarded():
        loaded = _load(file)
        limits = _limits(time_limit, memory)
        page = path_of(report, "report")
        folder = path_of(output, "output", kind="a folder")
        _require_report(page, made=loaded.folder(as_of=as_of, output=folder))
        notice = _no_check(file) if loaded.document.check is None else None
        with private_files(), _telling(notice) as tell:
            done = loaded.run(
                ledger=ledger,
                as_of=as_of,
                output=folder,
                repeat=repeat,
                recount=recount,
                command=_command(),
                progress=tell,
                note=complain,  # before anything is charged
                made=partial(_tell_of_budget, json_output=json_output),
                **limits,
            )
        if done.warning is not None:
            complain(done.warning)
        if page is not None:
            _write_report(_finished(done), page)
        if json_output:
            print_json(done.to_dict())
        else:
            _print_run(done, page)


def _limits(time_limit: str | None, memory: str | None) -> dict[str, Any]:
    from undertow.release.run._limit import memory_of, time_limit_of

    return {
        "time_limit_s": None if time_limit is None else time_limit_of(time_limit),
        "memory_mb": None if memory is None else memory_of(memory),
        "ending": _end,
    }


def _end(sentence: str) -> None:
    """End the process where it is, as a kill does."""
    complain(sentence)
    os._exit(EXIT_BAD_INPUT)


def _tell_of_budget(new: NewBudget, *, json_output: bool) -> None:
    """Say that a ledger was made, at once: the run may still be refused."""
    if json_output:  # standard output holds the one object
        complain(new.words())
    else:
        typer.echo(on_one_line(new.words()).encode("utf-8", "replace"))


def _no_check(file: Path) -> str:
    """Say that a release that finds no rows would not be noticed."""
    return (
        "Nothing checks that rows match: where times have another format, or keys "
        "another case, noise alone is charged and published; run undertow release "
        f"check {shlex.quote(str(file))} first, or add [check] to the file."
    )


def _load(path: Path) -> ReleaseFile:
    from undertow.release import load

    return load(path)


def _foreseen(
    loaded: ReleaseFile, as_of: str | None
) -> tuple[list[str], NewBudget | None, bool]:
    """Return what to know before a run without --ledger, and what ledger it makes.

    The last says whether the ledger that is there is an older copy.
    """
    from undertow.release.source._place import absent_table

    absent = absent_table(loaded.document)
    if absent is not None:
        return [f"A run would be refused: {absent}"], None, False
    try:
        loaded.require_ledger(as_of=as_of)
        return loaded.notes(as_of=as_of), loaded.new_budget(as_of=as_of), False
    except PlanError:
        return [], None, False  # no place for a ledger is known; a run is given one
    except (BudgetError, LedgerError) as fault:
        refused = f"A run without --ledger would be refused: {fault}"
        return [refused], None, isinstance(fault, OutdatedLedger)


def _ledger_of(loaded: ReleaseFile) -> tuple[str | None, bool]:
    """Return where a run is charged, if anything says so, and whether it is there."""
    from undertow.release.run._ledger_place import has_ledger, ledger_address

    try:
        address = ledger_address(loaded.document)
    except PlanError:
        return None, False
    try:
        return shown_address(address), has_ledger(address, looking=True)
    except (LedgerError, PlanError):  # not even its folder is there
        return shown_address(address), False


def _command() -> str:
    """Return how the command was started; passwords in addresses are masked."""
    return shlex.join(["undertow", *map(shown_address, sys.argv[1:])])


@contextmanager
def _telling(notice: str | None) -> Iterator[Any]:
    """Show on a terminal what is being done, and have a stop say what is left of it.

    The notice is said before a charge is made.
    """
    from undertow.release.run.protocol import Step

    left: dict[str, str] = {
        Step.READ: _UNCHARGED,
        Step.COUNT: _PERHAPS,
        Step.CHARGE: _PERHAPS,
        Step.DRAW: _GOES_ON,
        Step.WRITE: _GOES_ON,
    }

    def told(step: str) -> None:
        stopped_after(left[step])
        if step == Step.CHARGE and notice is not None:
            complain(notice)

    if not sys.stderr.isatty():
        yield told
        return
    from rich.console import Console

    with Console(stderr=True).status("planning") as status:

        def shown(step: str) -> None:
            status.stop()  # it would be written over what is said
            told(step)
            status.start()
            status.update(step)

        yield shown


def _planned(loaded: ReleaseFile, plan: ReleasePlan) -> dict[str, Any]:
    from undertow.release.run.record import run_record

    return run_record(
        plan, (), engine="none: this is a plan", title=loaded.title, command=_command()
    )


def _finished(done: ReleaseRun) -> dict[str, Any]:
    charge = done.charge
    entry = {"number": charge.number, "key": charge.key, "hash": charge.hash}
    new = None if done.new_budget is None else done.new_budget.to_dict()
    return {**done.record, "charge": entry, "new_budget": new}


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

"""The `undertow` command and its contract.

Exit status: 0 done; 1 an unexpected fault; 2 bad input; 3 refused, because the
guarantee would not hold. Bad input and refusals are one sentence on standard error.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from undertow.cli._output import (
    EXIT_BAD_INPUT,
    EXIT_FAULT,
    EXIT_INTERRUPTED,
    complain,
    loading,
    status_of,
    stoppable,
)
from undertow.errors import UndertowError

_SUMMARY = "What differentially private releases cost together, and what they leak."
# The parser's own class; where it lives differs between versions of typer.
_UsageError: Any = typer.BadParameter.__bases__[0]

# What `undertow --help` lists, so that no command is loaded before it is used: its
# module, and the first sentence of its help.
COMMANDS = {
    "compose": (
        "undertow.cli.compose",
        "Compose the releases of a plan: what they cost together.",
    ),
    "schema": ("undertow.cli.schema", "Print the JSON Schema of a document kind."),
    "demo": (
        "undertow.cli.demo",
        "Release a synthetic city in private: plan, charge, attack, report.",
    ),
    "reproduce": (
        "undertow.cli.reproduce",
        "Compute figures and tables of the sources anew, with our numbers beside "
        "theirs.",
    ),
    "leak": (
        "undertow.cli.leak",
        "How much an epsilon-DP release leaks when records depend on each other.",
    ),
    "calibrate": (
        "undertow.cli.calibrate",
        "The noise that keeps a promise when records depend on each other.",
    ),
    "fit": (
        "undertow.cli.fit",
        "Fit a data model to a CSV file, with its uncertainty.",
    ),
    "risk": (
        "undertow.cli.risk",
        "What an attacker gains because a person took part, and the noise for it.",
    ),
    "audit": (
        "undertow.cli.audit",
        "Whether code keeps its promise: attack it, and certify what it leaks. Exit "
        "status 3 if the claim is refuted.",
    ),
    "ledger": (
        "undertow.cli.ledger",
        "The budget of a data set: make, read and check it.",
    ),
    "release": (
        "undertow.cli.release",
        "A private release of a table: its cost, whether it fits, and making it.",
    ),
}


class _Commands(TyperGroup):
    """Commands that are loaded when they are run, not when they are listed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._listing = False
        self.commands = {
            name: TyperCommand(name, help=summary)
            for name, (_, summary) in COMMANDS.items()
        }

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self._listing or cmd_name not in COMMANDS:
            return self.commands.get(cmd_name)
        return load_command(cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


@cache
def load_command(name: str) -> Any:
    """Import the module of a command and return the command, ready to run."""
    with loading():
        given = getattr(importlib.import_module(COMMANDS[name][0]), name)
    shell = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
    if isinstance(given, typer.Typer):
        shell.add_typer(given)
    else:
        shell.command(name)(given)
    return typer.main.get_group(shell).commands[name]


app = typer.Typer(
    name="undertow",
    cls=_Commands,
    help=_SUMMARY,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from undertow._version import __version__

        typer.echo(f"undertow {__version__}")
        raise typer.Exit()


@app.callback(help=_SUMMARY)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command; turn refusals into one sentence and an exit status."""
    _speak_utf8()
    try:
        with stoppable():
            status = app(standalone_mode=False)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_FAULT) from None
    except _UsageError as fault:
        complain(fault.format_message())
        raise SystemExit(EXIT_BAD_INPUT) from None
    except typer.Abort:
        raise SystemExit(EXIT_INTERRUPTED) from None
    except (UndertowError, OSError) as fault:
        complain(fault)
        raise SystemExit(status_of(fault)) from None
    raise SystemExit(status)


def _speak_utf8() -> None:
    """Write what the locale cannot show with replacements instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")

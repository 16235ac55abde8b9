"""The `undertow` command and its contract.

Exit status: 0 done; 1 an unexpected fault; 2 bad input; 3 refused, because the
guarantee would not hold. Bad input and refusals are one sentence on standard error.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from undertow.cli.audit import audit
from undertow.cli.calibrate import calibrate
from undertow.cli.compose import compose
from undertow.cli.demo import demo
from undertow.cli.fit import fit
from undertow.cli.leak import leak
from undertow.cli.ledger import ledger
from undertow.cli.output import (
    EXIT_BAD_INPUT,
    EXIT_FAULT,
    EXIT_INTERRUPTED,
    complain,
    status_of,
    stoppable,
)
from undertow.cli.release import release
from undertow.cli.reproduce import reproduce
from undertow.cli.risk import risk
from undertow.cli.schema import schema
from undertow.errors import UndertowError

__all__ = ["app", "main"]

_SUMMARY = "What differentially private releases cost together, and what they leak."
# The parser's own class; where it lives differs between versions of typer.
_UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="undertow",
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


app.command()(compose)
app.command()(schema)
app.command()(demo)
app.command()(reproduce)
app.add_typer(leak)
app.add_typer(calibrate)
app.add_typer(fit)
app.add_typer(risk)
app.add_typer(audit)
app.add_typer(ledger)
app.add_typer(release)


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

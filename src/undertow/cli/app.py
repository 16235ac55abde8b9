"""The `undertow` command and its contract.

Exit status: 0 done; 1 an unexpected fault; 2 bad input; 3 refused, because the guarantee
would not hold. Bad input and refusals are one sentence on standard error.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from undertow.cli.compose import compose
from undertow.cli.demo import demo
from undertow.cli.output import EXIT_BAD_INPUT, complain, status_of
from undertow.cli.schema import schema
from undertow.errors import UndertowError

__all__ = ["app", "main"]

app = typer.Typer(
    name="undertow",
    help="What differentially private releases cost together, and what they leak.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from undertow._version import __version__

        typer.echo(f"undertow {__version__}")
        raise typer.Exit()


@app.callback()
def _root(
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
    """What differentially private releases cost together, and what they leak."""


app.command()(compose)
app.command()(schema)
app.command()(demo)


def main() -> None:
    """Run the command; turn refusals into one sentence and an exit status."""
    try:
        app(standalone_mode=True)
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody left to tell.
        sys.stderr.close()
        raise SystemExit(EXIT_BAD_INPUT) from None
    except (UndertowError, ValueError, TypeError, OSError) as fault:
        status = status_of(fault)
        if status is None:
            raise
        complain(fault)
        raise SystemExit(status) from None

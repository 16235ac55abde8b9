"""How results, refusals and progress reach a person or a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from undertow._printable import on_one_line
from undertow.errors import (
    AssumptionError,
    BudgetError,
    InfiniteLossError,
    UndertowError,
)

__all__ = [
    "EXIT_BAD_INPUT",
    "EXIT_FAULT",
    "EXIT_INTERRUPTED",
    "EXIT_REFUSED",
    "complain",
    "guarded",
    "print_json",
    "status_of",
    "working",
]

EXIT_FAULT = 1
EXIT_BAD_INPUT = 2
EXIT_REFUSED = 3
EXIT_INTERRUPTED = 130


def status_of(fault: BaseException) -> int | None:
    """Return the exit status of a fault; None for one that should not happen."""
    if isinstance(fault, AssumptionError | InfiniteLossError | BudgetError):
        return EXIT_REFUSED
    if isinstance(fault, UndertowError | OSError):
        return EXIT_BAD_INPUT
    return None


def complain(fault: BaseException | str) -> None:
    """Write one sentence to standard error, on one line, control characters shown."""
    shown = on_one_line(" ".join(str(fault).split()))
    typer.echo(shown.encode("utf-8", "backslashreplace"), err=True)


@contextmanager
def guarded() -> Iterator[None]:
    """Turn known faults into one sentence and an exit status."""
    try:
        yield
    except BrokenPipeError:
        raise  # nobody reads any more: no bad input, and no one to tell
    except (UndertowError, OSError) as fault:
        status = status_of(fault)
        assert status is not None
        complain(fault)
        raise typer.Exit(status) from None


def print_json(record: dict[str, Any]) -> None:
    """Print exactly one JSON object on standard output."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    # Bytes, because the contract is UTF-8 whatever the locale says.
    typer.echo(text.encode("utf-8", "backslashreplace"))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on standard error while `what` goes on, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield

"""How results, refusals and progress reach a person or a program."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from undertow._address import masked
from undertow._text import on_one_line
from undertow.errors import (
    AssumptionError,
    BudgetError,
    InfiniteLossError,
    UndertowError,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from undertow.results import Alternative

EXIT_FAULT = 1
EXIT_BAD_INPUT = 2
EXIT_REFUSED = 3
EXIT_INTERRUPTED = 130
_EXIT_SIGNAL = 128  # the number of the signal is added, as shells do

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 10.0
_AGAIN_S = 0.05
_asked: list[tuple[int, float]] = []
"""The signals that asked this process to stop, and when."""
_left: list[str] = []
"""What a command that is stopped leaves, where it has said so: the last one holds."""


def status_of(fault: BaseException) -> int | None:
    """Return the exit status of a fault; None for one that should not happen."""
    if isinstance(fault, AssumptionError | InfiniteLossError | BudgetError):
        return EXIT_REFUSED
    if isinstance(fault, UndertowError | OSError):
        return EXIT_BAD_INPUT
    return None


def complain(fault: BaseException | str) -> None:
    """Write one sentence to standard error, on one line, control characters shown.

    Addresses in it may have been mistaken for something else; their passwords are
    hidden here.
    """
    shown = on_one_line(" ".join(masked(str(fault)).split()))
    typer.echo(shown.encode("utf-8", "backslashreplace"), err=True)


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does: what is open is closed.

    Engines turn a signal into a failure of their own. Whatever comes of it, a sentence
    says so, and the exit status is 128 and the number of the signal. A signal within
    ten seconds after another, as from a terminal that closes, does not disturb the
    cleaning up. What is ignored, as by ``nohup``, stays ignored.
    """
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    own = {n: how for n, how in before.items() if how is not signal.SIG_IGN}
    unraisable = sys.unraisablehook

    def unheard(fault: sys.UnraisableHookArgs) -> None:
        """Stop once more where it was swallowed, as at the end of an object."""
        if not _asked or fault.exc_type is not SystemExit:
            unraisable(fault)
            return
        asked, _ = _asked.pop()
        # Not at once: it would be raised in here, and be swallowed again.
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(_AGAIN_S, signal.pthread_kill, (main, asked)).start()

    sys.unraisablehook = unheard
    for number in own:
        signal.signal(number, _stop)
    try:
        yield
    except BaseException:
        if _asked:
            asked, _ = _asked[0]
            rest = f"; {_left[-1]}" if _left else " before it was done"
            complain(f"stopped by {signal.Signals(asked).name}{rest}.")
            raise SystemExit(_EXIT_SIGNAL + asked) from None
        raise
    finally:
        sys.unraisablehook = unraisable
        for number, how in own.items():
            # A process that is ending is not disturbed any more.
            signal.signal(number, signal.SIG_IGN if _asked else how)


def stopped_after(left: str) -> None:
    """Have a command that is stopped from now on say what it leaves."""
    _left[:] = [left]


def _stop(number: int, frame: object) -> None:
    del frame
    now = time.monotonic()
    if _asked and now < _asked[-1][1] + _GRACE_S:
        return
    _asked.append((number, now))
    raise SystemExit(_EXIT_SIGNAL + number)


@contextmanager
def loading() -> Iterator[None]:
    """Let a signal end the process at once while libraries are loaded.

    Nothing is open yet, and what is loaded may swallow the exception that a signal
    raises otherwise.
    """
    own = [number for number in _SIGNALS if signal.getsignal(number) is _stop]
    for number in own:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number in own:
            signal.signal(number, _stop)


def _leave(number: int, frame: object) -> None:
    del frame
    rest = "before it began; nothing was read or charged"
    os.write(2, f"stopped by {signal.Signals(number).name} {rest}.\n".encode())
    os._exit(_EXIT_SIGNAL + number)


@contextmanager
def private_files() -> Iterator[None]:
    """Make all files for their owner alone, those of the engine as well."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def guarded() -> Iterator[None]:
    """Turn known faults into one sentence and an exit status."""
    try:
        yield
    except BrokenPipeError:
        raise  # nobody reads any more: no bad input, and no one to tell
    except (UndertowError, OSError) as fault:
        if _asked:  # an engine that was stopped calls it a failure
            raise SystemExit(_EXIT_SIGNAL + _asked[0][0]) from None
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


# Results in the terminal. What draws tables is loaded when something is to be drawn.


def print_line(console: Console, text: str) -> None:
    """Print a text as it is, on one line however narrow the terminal is."""
    console.print(text, highlight=False, soft_wrap=True, markup=False)


def bare_table(*titles: str) -> Table:
    """Return a table without a frame; what is too long for a column is folded."""
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def print_facts(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    """Print names, each with its value in words."""
    from rich.text import Text

    table = bare_table("", "")
    table.show_header = False
    for name, text in rows:
        table.add_row(Text(name), Text(text))
    console.print(table)


def print_assumptions(
    console: Console, checked: Sequence[str], unchecked: Sequence[str]
) -> None:
    """Print what was checked, and what is assumed."""
    for title, texts in (("checked", checked), ("assumed", unchecked)):
        if texts:
            print_line(console, f"{title}: {'; '.join(texts)}")


def print_alternatives(
    console: Console,
    others: Sequence[Alternative],
    *,
    titles: tuple[str, str, str],
    shown: Callable[[float], str],
) -> None:
    """Print what other methods give and why they were not taken, if there are any."""
    from rich.text import Text

    if not others:
        return
    table = bare_table(*titles)
    for other in others:
        table.add_row(other.name, or_dash(shown, other.parameter), Text(other.reason))
    console.print()
    console.print(table)


def or_dash(shown: Callable[[float], str], value: float | None) -> str:
    """Return a number as it is shown, or a dash where there is none."""
    return "–" if value is None else shown(value)

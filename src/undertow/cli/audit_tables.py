"""Audits in the terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.audit import AuditResult
from undertow.audit.faults import Fault
from undertow.report.audit import (
    METHOD_HEADINGS,
    SYMBOLS,
    claim_words,
    inversion_row,
    method_rows,
    power_rows,
    shown_certificate,
    shown_number,
    verdict_sentence,
)
from undertow.report.page import shown_down

__all__ = ["print_audit", "print_faults"]

# Characters of a witness that are shown; its inputs may be whole data sets.
_LONGEST = 400
_NOTES = (
    "an estimate may exceed the truth; the verdict rests on the certificate alone",
    "not checkable: independent runs, and that the compared inputs are neighbours",
)


def print_audit(
    result: AuditResult, *, title: str, threat: str = "", notes: Sequence[str] = ()
) -> None:
    """Print a verdict, its numbers and what was tried.

    Parameters
    ----------
    result : AuditResult
        What came out.
    title : str
        What was audited, in words.
    threat : str, optional
        What the attacker knows and wants, if it was given.
    notes : sequence of str, optional
        What else a reader should know.
    """
    console = Console()
    _line(console, verdict_sentence(result))
    if result.witness is not None:
        _line(console, f"witness: {result.witness.summary[:_LONGEST]}")
    console.print()
    table = Table(show_edge=False, pad_edge=False, show_header=False)
    about = [("threat", threat)] if threat else []
    for name, value in (("audited", title), *about, *_numbers(result)):
        table.add_row(name, Text(value))
    console.print(table)
    console.print()
    console.print(_methods(result))
    console.print()
    for note in (*_NOTES, *notes):
        _line(console, f"note: {note}")


def _numbers(result: AuditResult) -> list[tuple[str, str]]:
    symbol = SYMBOLS[result.parameter]
    rows = [
        ("claim", claim_words(result.claim)),
        (f"certified {symbol}", shown_certificate(result)),
        (f"estimate of {symbol}", shown_number(result.estimate)),
    ]
    if result.parameter == "mu":
        rows.append(("certified ε at δ = 0", shown_down(result.epsilon_certified)))
    if result.inversion is not None:
        rows.append(inversion_row(result.inversion))
    rows += [
        ("trials", str(result.trials)),
        ("seed", "none" if result.seed is None else str(result.seed)),
    ]
    if result.advantage is not None:
        seen = result.advantage
        shown = f"{seen.value:.4g} (from {seen.low:.4g} to {seen.high:.4g})"
        rows.append(("advantage", shown))
    if result.baseline is not None:
        rows.append(("LDP-Auditor", shown_number(result.baseline.get("epsilon"))))
    return [*rows, *power_rows(result)]


def _methods(result: AuditResult) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in METHOD_HEADINGS:
        table.add_column(heading, overflow="fold")
    for row in method_rows(result):
        table.add_row(*map(Text, row))
    return table


def print_faults(faults: Sequence[Fault]) -> None:
    """Print the bug fixtures: what is wrong, what is claimed, what is true."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("fault", "claim", "true", "trials", "what is wrong"):
        table.add_column(heading, overflow="fold")
    for fault in faults:
        symbol = SYMBOLS[fault.claim.parameter]
        table.add_row(
            fault.name,
            f"{symbol} = {fault.claim.for_replacement().level:.4g}",
            f"{symbol} = {shown_number(fault.level)}",
            str(fault.trials),
            Text(fault.bug),
        )
    Console().print(table)


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)

"""Audits in the terminal: the verdict first, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.audit import AuditResult
from undertow.audit.faults import Fault
from undertow.report.audit import claim_words, shown_certificate, verdict_sentence
from undertow.report.page import shown_down

__all__ = ["print_audit", "print_faults"]

# Characters of a witness that are shown; its inputs may be whole data sets.
_LONGEST = 400
_NOTES = (
    "an estimate may exceed the truth; the verdict rests on the certificate alone",
    "not checkable: independent runs, and that the compared inputs are neighbours",
)


def print_audit(result: AuditResult) -> None:
    """Print a verdict, its numbers and what was tried."""
    console = Console()
    _line(console, verdict_sentence(result))
    if result.witness is not None:
        _line(console, f"witness: {result.witness.summary[:_LONGEST]}")
    console.print()
    table = Table(show_edge=False, pad_edge=False, show_header=False)
    for name, value in _numbers(result):
        table.add_row(name, Text(value))
    console.print(table)
    console.print()
    console.print(_methods(result))
    console.print()
    for note in _NOTES:
        _line(console, f"note: {note}")


def _numbers(result: AuditResult) -> list[tuple[str, str]]:
    symbol = "ε" if result.claim.parameter == "epsilon" else "μ"
    rows = [
        ("audited", result.subject),
        ("claim", claim_words(result.claim)),
        (f"certified {symbol}", shown_certificate(result)),
        ("estimate of ε", _number(result.epsilon_estimate)),
        ("trials", str(result.trials)),
        ("seed", "none" if result.seed is None else str(result.seed)),
    ]
    if result.advantage is not None:
        seen = result.advantage
        shown = f"{seen.value:.4g} (from {seen.low:.4g} to {seen.high:.4g})"
        rows.append(("advantage", shown))
    if result.baseline is not None:
        rows.append(("LDP-Auditor", _number(result.baseline.get("epsilon"))))
    if "detectable" in result.power:
        level = _number(result.power["detectable"])
        rows.append(("refuted from an estimate of", level))
    return rows


def _methods(result: AuditResult) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("method", "certified", "estimate", "trials", "decides"):
        table.add_column(heading, overflow="fold")
    for row in result.methods:
        table.add_row(
            Text(row.name),
            shown_down(row.certified),
            _number(row.estimate),
            str(row.trials),
            "yes" if row.decides else "no",
        )
    return table


def print_faults(faults: Sequence[Fault]) -> None:
    """Print the bug fixtures: what is wrong, what is claimed, what is true."""
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("fault", "claim", "true", "what is wrong"):
        table.add_column(heading, overflow="fold")
    for fault in faults:
        level = fault.claim.for_replacement().level
        table.add_row(fault.name, f"{level:.4g}", _number(fault.level), Text(fault.bug))
    Console().print(table)


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return "∞" if math.isinf(value) else f"{value:.4f}"


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)

"""Leakages and calibrations in the terminal: the answer first, then the reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.correlation import Leakage, LeakageCalibration, explain
from undertow.privacy.result import Alternative

__all__ = ["print_calibration", "print_leakage"]


def print_leakage(found: Leakage, *, epsilon: float, others: bool = True) -> None:
    """Print a leakage: value, attacker, what holds, what other methods say."""
    console = Console()
    sign = "=" if found.is_exact else "≤"
    _line(
        console,
        f"leakage {sign} {found.value:.6g} for a release that is {epsilon:g}-DP",
    )
    _line(console, f"model: {found.model}")
    _line(console, f"by: {found.theorem} (method {found.method!r})")
    _line(console, f"holds for: {found.mechanisms}; {found.scope.summary}")
    _line(console, f"against: {found.attackers}")
    if found.witness is not None:
        _line(console, f"worst attacker: {found.witness.summary}")
    _assumptions(console, found)
    if others:
        _alternatives(console, found.alternatives, heading="leakage")


def print_calibration(found: LeakageCalibration) -> None:
    """Print a calibration: the numbers, the words, what other methods need."""
    console = Console()
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("promise", "DP level", "noise scale", "error", "method"):
        table.add_column(heading, overflow="fold")
    error = "–"
    if found.accuracy is not None:
        error = f"{found.accuracy.alpha:.6g} at {1 - found.accuracy.beta:.0%}"
    table.add_row(
        f"leakage ≤ {found.target:g}",
        f"ε = {found.epsilon:.6g}",
        f"{found.noise_scale:.6g}",
        error,
        found.method,
    )
    console.print(table)
    console.print()
    _line(console, explain(found))
    if found.covers is not None:
        _line(console, f"holds for: {found.covers.summary}")
    if isinstance(found.achieves, Leakage) and found.achieves.checked:
        _line(console, f"checked: {'; '.join(found.achieves.checked)}")
    _alternatives(console, found.alternatives, heading="DP level")


def _assumptions(console: Console, found: Leakage) -> None:
    for title, texts in (("checked", found.checked), ("assumed", found.unchecked)):
        if texts:
            _line(console, f"{title}: {'; '.join(texts)}")


def _alternatives(
    console: Console, others: Sequence[Alternative], *, heading: str
) -> None:
    if not others:
        return
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for title in ("other methods", heading, "why not"):
        table.add_column(title, overflow="fold")
    for other in others:
        table.add_row(other.name, _number(other.parameter), Text(other.reason))
    console.print()
    console.print(table)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return "∞" if value == math.inf else f"{value:.6g}"


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)

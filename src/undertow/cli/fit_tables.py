"""Fitted models in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from undertow.correlation import GaussianFit, MarkovFit
from undertow.correlation.observation import GoodnessOfFit

__all__ = ["print_gaussian_fit", "print_markov_fit"]


def print_markov_fit(found: MarkovFit) -> None:
    """Print the transition matrix with its limits, the ratios and the tests."""
    console = Console()
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("from")
    for state in found.states:
        table.add_column(Text(f"to {state}"))
    for row, state in enumerate(found.states):
        cells = [
            f"{found.transition[row, j]:.6f} [{found.lower[row, j]:.4f}, "
            f"{found.upper[row, j]:.4f}]"
            for j in range(len(found.states))
        ]
        table.add_row(Text(str(state)), *(Text(cell) for cell in cells))
    console.print(table)
    seen = int(found.counts.sum())
    _line(
        console,
        f"{seen} transitions of {found.length} records, {found.missing} missing; "
        f"limits hold together with confidence {found.confidence:g}",
    )
    _line(
        console,
        f"largest ratio γ = {found.gamma:.6g}; projective diameter Δ = "
        f"{found.diameter:.6g}, at most {found.diameter_upper:.6g} in the region",
    )
    _print_checks(console, found.checks)


def print_gaussian_fit(found: GaussianFit) -> None:
    """Print deviations, correlations, limits and the tests."""
    console = Console()
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for heading in ("member", "mean", "deviation", *found.names):
        table.add_column(Text(heading))
    deviations = found.covariance.diagonal() ** 0.5
    for j, name in enumerate(found.names):
        row = found.covariance[j] / (deviations[j] * deviations)
        cells = [f"{found.mean[j]:.6g}", f"{deviations[j]:.6g}"]
        table.add_row(Text(name), *cells, *(f"{value:.4f}" for value in row))
    console.print(table)
    _line(
        console,
        f"{found.groups} groups, {found.dropped} left out; largest correlation "
        f"{found.correlation:.6g}, at most {found.correlation_upper:.6g}; deviations "
        f"differ by a factor of at most {found.deviation_ratio_upper:.6g} "
        f"(confidence {found.confidence:g})",
    )
    _print_checks(console, found.checks)


def _print_checks(console: Console, checks: Sequence[GoodnessOfFit]) -> None:
    for check in checks:
        _line(console, check.summary)


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)

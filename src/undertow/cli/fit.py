"""`undertow fit`: from a CSV file to a data model with its uncertainty."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from undertow.cli._input import library_input
from undertow.cli._output import (
    bare_table,
    complain,
    guarded,
    print_json,
    print_line,
)
from undertow.correlation import GaussianFit, MarkovFit, fit_gaussian, fit_markov
from undertow.correlation.observation import GoodnessOfFit
from undertow.datasets import read_columns
from undertow.errors import EstimatedModelWarning, ModelError

fit = typer.Typer(
    name="fit",
    help="Fit a data model to a CSV file, with its uncertainty.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

# One comparison, read here: the language of releases says more, but it is imported with
# the libraries of the extra "release", which a fit can do without.
_CONDITION = re.compile(
    r"^\s*(\w+)\s*(>=|<=|==|!=|>|<)\s*(-?[\d.]+(?:[eE][-+]?\d+)?)\s*$"
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_MISSING = ("", "NA", "NaN", "nan", "null", "None")

SeriesFile = Annotated[Path, typer.Argument(metavar="FILE.csv", show_default=False)]
Confidence = Annotated[
    float, typer.Option(help="Confidence of the region around the fit.")
]
Public = Annotated[
    bool, typer.Option(help="The file is public, or older data of other people.")
]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@fit.command("markov")
def fit_markov_file(
    file: SeriesFile,
    column: Annotated[
        str | None, typer.Option(help="Column that holds the state of each record.")
    ] = None,
    active: Annotated[
        str | None,
        typer.Option(help="Instead: a condition that makes state 1, as 'steps>0'."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Column that separates series, such as a user or a day."),
    ] = None,
    confidence: Confidence = 0.95,
    public: Public = False,
    json_output: JsonOutput = False,
) -> None:
    """Fit a Markov chain to a column of states; empty cells are missing.

    Example: [bold]undertow fit markov activity.csv --active "steps>0"
    --public[/bold]
    """
    with guarded(), library_input(), _warnings_as_sentences():
        series = _read_series(file, column=column, active=active, by=by)
        found: MarkovFit = fit_markov(series, confidence=confidence, public=public)
        if json_output:
            print_json(found.to_dict())
        else:
            print_markov_fit(found)


@fit.command("gaussian")
def fit_gaussian_file(
    file: SeriesFile,
    columns: Annotated[
        str, typer.Option(help="Columns of the members of a group, with commas.")
    ],
    confidence: Confidence = 0.95,
    public: Public = False,
    json_output: JsonOutput = False,
) -> None:
    """Fit a Gaussian to groups of records, one row a group.

    Example: [bold]undertow fit gaussian galton.csv --columns father,mother,height
    --public[/bold]
    """
    with guarded(), library_input(), _warnings_as_sentences():
        names = [name.strip() for name in columns.split(",")]
        cells = _read(file, names)
        rows = list(zip(*(map(_number, cells[name]) for name in names), strict=True))
        found: GaussianFit = fit_gaussian(
            rows, names=names, confidence=confidence, public=public
        )
        if json_output:
            print_json(found.to_dict())
        else:
            print_gaussian_fit(found)


def _read_series(
    file: Path, *, column: str | None, active: str | None, by: str | None
) -> list[list[Any]]:
    if (column is None) == (active is None):
        raise ModelError(
            "fit markov must be given one of --column and --active, "
            f"got {'neither' if column is None else 'both'}."
        )
    name, read = (column, _label) if active is None else _condition(active)
    assert name is not None
    cells = _read(file, [name] if by is None else [name, by])
    if not cells[name]:
        raise ModelError(f"{file} must hold at least two records, got none.")
    states = [None if cell in _MISSING else read(cell) for cell in cells[name]]
    if by is None:
        return [states]
    series: dict[str, list[Any]] = {}
    for key, state in zip(cells[by], states, strict=True):
        series.setdefault(key, []).append(state)
    return list(series.values())


def _read(file: Path, names: list[str]) -> dict[str, list[str]]:
    try:
        return read_columns(file, names)
    except OSError as fault:
        raise ModelError(
            f"{file} must be a readable CSV file, got {fault.strerror}."
        ) from None


def _condition(text: str) -> tuple[str, Callable[[str], Any]]:
    found = _CONDITION.match(text)
    if found is None:
        raise ModelError(f"active must be a condition such as 'steps>0', got {text!r}.")
    name, sign, bound = found.group(1), found.group(2), _number(found.group(3))
    return name, lambda cell: int(_COMPARE[sign](_number(cell), bound))


def _label(cell: str) -> str:
    return cell


def _number(cell: str) -> float:
    if cell in _MISSING:
        return float("nan")
    try:
        return float(cell)
    except ValueError:
        raise ModelError(f"a cell must be a number, got {cell[:40]!r}.") from None


@contextmanager
def _warnings_as_sentences() -> Iterator[None]:
    """Write the warnings of the library as sentences on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EstimatedModelWarning)
        yield
    for warning in caught:
        complain(f"Warning: {warning.message}")


# Fitted models in the terminal.


def print_markov_fit(found: MarkovFit) -> None:
    """Print the transition matrix with its limits, the ratios and the tests."""
    console = Console()
    table = bare_table()
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
    print_line(
        console,
        f"{seen} transitions of {found.length} records, {found.missing} missing; "
        f"limits hold together with confidence {found.confidence:g}",
    )
    print_line(
        console,
        f"largest ratio γ = {found.gamma:.6g}; projective diameter Δ = "
        f"{found.diameter:.6g}, at most {found.diameter_upper:.6g} in the region",
    )
    _print_checks(console, found.checks)


def print_gaussian_fit(found: GaussianFit) -> None:
    """Print deviations, correlations, limits and the tests."""
    console = Console()
    table = bare_table()
    for heading in ("member", "mean", "deviation", *found.names):
        table.add_column(Text(heading))
    deviations = found.covariance.diagonal() ** 0.5
    for j, name in enumerate(found.names):
        row = found.covariance[j] / (deviations[j] * deviations)
        cells = [f"{found.mean[j]:.6g}", f"{deviations[j]:.6g}"]
        table.add_row(Text(name), *cells, *(f"{value:.4f}" for value in row))
    console.print(table)
    print_line(
        console,
        f"{found.groups} groups, {found.dropped} left out; largest correlation "
        f"{found.correlation:.6g}, at most {found.correlation_upper:.6g}; deviations "
        f"differ by a factor of at most {found.deviation_ratio_upper:.6g} "
        f"(confidence {found.confidence:g})",
    )
    _print_checks(console, found.checks)


def _print_checks(console: Console, checks: Sequence[GoodnessOfFit]) -> None:
    for check in checks:
        print_line(console, check.summary)

"""The options by which a data model is described on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Beta",
    "Clip",
    "Correlation",
    "Covariance",
    "Epsilon",
    "Family",
    "Frequency",
    "Gamma",
    "Group",
    "Groups",
    "Initial",
    "JsonOutput",
    "Labels",
    "Length",
    "MethodName",
    "Phi",
    "QueryName",
    "Renormalise",
    "Sensitivity",
    "States",
    "Table",
    "Target",
    "Transition",
]

Epsilon = Annotated[float, typer.Option(help="DP level of the release.")]
Target = Annotated[
    float, typer.Option(help="The promise: largest leakage of any attacker.")
]
Beta = Annotated[
    float, typer.Option(help="Probability with which the error may be passed.")
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method", help="'best', 'published' or the name of one method of the model."
    ),
]
QueryName = Annotated[
    str | None,
    typer.Option("--query", help="What is released: any, count, sum or dosage."),
]
States = Annotated[
    str | None, typer.Option(help="States that are counted, as JSON, such as '[1]'.")
]
Sensitivity = Annotated[
    float | None, typer.Option(help="Most that one record moves the answer.")
]
Clip = Annotated[
    str | None,
    typer.Option(
        help="Interval the records are clipped to, as JSON, such as '[0, 100]'."
    ),
]
Transition = Annotated[
    str | None,
    typer.Option(
        help="Transition matrix as JSON or @file.json, a row for each state now; "
        "a list of matrices for a chain that changes."
    ),
]
Initial = Annotated[
    str | None, typer.Option(help="Law of the first record, as JSON or @file.json.")
]
Length = Annotated[int | None, typer.Option(min=1, help="Number of records.")]
Renormalise = Annotated[
    bool, typer.Option(help="Divide each row of a printed matrix by its sum.")
]
Gamma = Annotated[
    float | None,
    typer.Option(help="Instead of a matrix: largest ratio of two transitions."),
]
Correlation = Annotated[
    float | None, typer.Option(help="Largest correlation inside a group.")
]
Group = Annotated[
    int | None, typer.Option(min=1, help="Most records that depend on each other.")
]
Groups = Annotated[int, typer.Option(min=1, help="Number of groups.")]
Covariance = Annotated[
    str | None, typer.Option(help="Covariance matrix, as JSON or @file.json.")
]
Phi = Annotated[
    float | None,
    typer.Option(help="Correlation of neighbours in an autoregressive series."),
]
Labels = Annotated[
    str | None,
    typer.Option(help="Group of each record, as a JSON list or @file.json."),
]
Table = Annotated[
    str,
    typer.Option(
        "--table",
        help="Joint law as JSON or @file.json: a nested list, one level a record, or "
        '{"pmf": ..., "values": ...}.',
    ),
]
Family = Annotated[
    str | None,
    typer.Option(
        help='Pedigree as JSON or @file.json: [{"id", "father", "mother"}, ...].'
    ),
]
Frequency = Annotated[
    float | None, typer.Option(help="Frequency of the allele B among founders.")
]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
SeriesFile = Annotated[Path, typer.Argument(metavar="FILE.csv", show_default=False)]

"""The options by which a mechanism and a threat are described on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Answers",
    "Aux",
    "Categories",
    "ChannelMatrix",
    "Confidence",
    "Delta",
    "Epsilon",
    "JsonOutput",
    "LossMatrix",
    "MechanismName",
    "MechanismNames",
    "OneMechanism",
    "PriorLaw",
    "Scale",
    "Sensitivity",
    "Sigma",
    "Span",
    "Target",
    "Tolerance",
    "Users",
    "What",
]

_NAMES = (
    "grr, sue, oue, ss, blh, olh, she, the, laplace, gaussian, laplace-sum, "
    "gaussian-sum or exponential"
)

MechanismName = Annotated[
    str | None, typer.Option("--mechanism", help=f"What is released: {_NAMES}.")
]
OneMechanism = Annotated[
    str, typer.Option("--mechanism", help=f"What is calibrated: {_NAMES}.")
]
MechanismNames = Annotated[
    str, typer.Option("--mechanisms", help="Names of --mechanism, with commas.")
]
ChannelMatrix = Annotated[
    str | None,
    typer.Option(
        "--channel",
        help="Instead of a name: any mechanism with finitely many outputs, as JSON or "
        "@file.json; a row for each record, the probabilities of its outputs.",
    ),
]
Categories = Annotated[
    int | None, typer.Option(help="Number of records, which are 0, 1, ...")
]
Span = Annotated[
    str | None,
    typer.Option(
        "--range", metavar="LOW:HIGH", help="The records are these whole numbers."
    ),
]
Answers = Annotated[
    str | None,
    typer.Option(
        "--answers",
        "--scores",
        help="The true answer for each record, as JSON or @file.json; for exponential "
        "a table, a row of scores for each record.",
    ),
]
Sensitivity = Annotated[
    float | None,
    typer.Option(help="Most that replacing a record moves the answer or a score."),
]
Epsilon = Annotated[float | None, typer.Option(help="DP level of the release.")]
Delta = Annotated[
    float | None, typer.Option(help="At which --epsilon of Gaussian noise is stated.")
]
Scale = Annotated[
    float | None, typer.Option(help="Instead of --epsilon: scale of Laplace noise.")
]
Sigma = Annotated[
    float | None,
    typer.Option(help="Instead of --epsilon: standard deviation of Gaussian noise."),
]
PriorLaw = Annotated[
    str,
    typer.Option(
        "--prior",
        help="'uniform', or as JSON or @file.json: probabilities or counts in the "
        "order of the records, or an object from record to count, in which numbers of "
        "--range or --categories that are left out count 0.",
    ),
]
Aux = Annotated[
    str,
    typer.Option(
        help="What the attacker knows of the person: 'none', 'full', or a label for "
        "each record as JSON or @file.json."
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        help="Largest error of a guess that still counts; the exact record without it."
    ),
]
LossMatrix = Annotated[
    str | None,
    typer.Option(
        "--loss",
        help="Error of each guess (row) on each truth (column), as JSON or @file.json; "
        "the distance of the numbers without it.",
    ),
]
Target = Annotated[
    float | None,
    typer.Option("--advantage", help="The promise: largest advantage of any attack."),
]
Users = Annotated[int, typer.Option(help="Reports that a frequency is estimated from.")]
Confidence = Annotated[
    float, typer.Option(help="Share of answers for which the stated error holds.")
]
What = Annotated[
    str, typer.Option(help="What is guessed, in words, such as 'working hours'.")
]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

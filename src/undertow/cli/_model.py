"""From options to data models and queries.

Shared by `undertow leak` and `undertow calibrate`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from undertow._validate import check_positive
from undertow.cli._input import check_numbers, read_json, read_numbers
from undertow.correlation import (
    AnyQuery,
    Blocks,
    CountQuery,
    Gaussian,
    JointTable,
    LinearQuery,
    MarkovChain,
    MarkovFamily,
    Model,
    Pedigree,
    Query,
)
from undertow.errors import ModelError

# Genotypes are numbered by their count of B alleles: state 2 is BB.
_HOMOZYGOTE = (2,)


def markov_model(
    *,
    transition: str | None,
    gamma: float | None,
    initial: str | None,
    length: int | None,
    renormalise: bool,
) -> Model:
    """Return a chain, or the family of all chains with a bounded ratio."""
    if (transition is None) == (gamma is None):
        raise ModelError(
            "markov must be given one of --transition and --gamma, "
            f"got {'neither' if transition is None else 'both'}."
        )
    if transition is None:
        _leave_out("initial", initial, "a matrix is not given")
        _leave_out("renormalise", renormalise or None, "a matrix is not given")
        return MarkovFamily(gamma=gamma, length=length)
    start = None if initial is None else read_numbers(initial, "initial")
    return MarkovChain(
        read_numbers(transition, "transition"),
        start,
        length,
        renormalise=renormalise,
    )


def gaussian_model(
    *,
    covariance: str | None,
    correlation: float | None,
    group: int | None,
    phi: float | None,
    length: int | None,
) -> Model:
    """Return a Gaussian model from a covariance, from limits, or a series."""
    given = [covariance is not None, correlation is not None, phi is not None]
    if sum(given) != 1:
        raise ModelError(
            "gaussian must be given one of --covariance, --correlation with --group, "
            f"and --phi with --length, got {sum(given)} of them."
        )
    if correlation is None:
        _leave_out("group", group, "the correlation is not limited")
    if phi is None:
        _leave_out("length", length, "it is not a series, which --phi makes it")
    if covariance is not None:
        return Gaussian(read_numbers(covariance, "covariance"))
    if phi is not None:
        if length is None:
            raise ModelError("--phi must come with --length, got none.")
        return Gaussian.autoregressive(phi, length)
    assert correlation is not None
    if group is None:
        raise ModelError("--correlation must come with --group, got none.")
    return Gaussian.limited(correlation, group)


def blocks_model(*, group: int | None, groups: int, labels: str | None) -> Model:
    """Return groups of one size, or the groups of a list of labels."""
    if (group is None) == (labels is None):
        raise ModelError(
            "blocks must be given one of --group and --labels, "
            f"got {'neither' if group is None else 'both'}."
        )
    if group is not None:
        return Blocks.of_size(group, groups=groups)
    assert labels is not None
    _leave_out("groups", None if groups == 1 else groups, "the labels say it")
    listed = read_json(labels, "labels")
    if not isinstance(listed, list) or any(isinstance(x, list | dict) for x in listed):
        raise ModelError(
            f"labels must be a JSON list of names or numbers, got {labels[:40]}."
        )
    return Blocks.from_labels(listed)


def joint_model(table: str) -> Model:
    """Return a finite joint law."""
    document = read_json(table, "table")
    if not isinstance(document, dict):
        return JointTable(check_numbers(document, "table"))
    unknown = sorted(set(document) - {"pmf", "values"})
    if unknown or "pmf" not in document:
        raise ModelError(
            "table must be a nested list or an object with 'pmf' and 'values', got "
            f"{'key ' + repr(unknown[0]) if unknown else 'no pmf'}."
        )
    values = document.get("values")
    return JointTable(
        check_numbers(document["pmf"], "pmf"),
        None if values is None else check_numbers(values, "values"),
    )


def pedigree_model(
    *, family: str | None, group: int | None, frequency: float | None
) -> Model:
    """Return a pedigree from its records, or two parents and their children."""
    if (family is None) == (group is None):
        raise ModelError(
            "pedigree must be given one of --family and --group, "
            f"got {'neither' if family is None else 'both'}."
        )
    if group is not None:
        if group < 3:
            raise ModelError(
                f"group must be at least 3, two parents and a child, got {group}."
            )
        return Pedigree.nuclear(group - 2, frequency=frequency)
    assert family is not None
    return Pedigree.from_records(read_json(family, "family"), frequency=frequency)


def read_query(
    name: str,
    *,
    states: str | None = None,
    clip: str | None = None,
    sensitivity: float | None = None,
    genotypes: bool = False,
    bounded: bool = False,
) -> Query:
    """Return the query an option names.

    Parameters
    ----------
    name : {"any", "count", "sum", "dosage"}
        What is released.
    states, clip : str, optional
        JSON of the states counted, of the clip interval.
    sensitivity : float, optional
        For ``"any"``, and the width of the clip interval of a ``"sum"``.
    genotypes : bool
        Whether records are genotypes: then a count counts BB.
    bounded : bool
        Whether records have a range of their own, so that nothing need be clipped.
    """
    if sensitivity is not None:
        check_positive(sensitivity, "sensitivity")
    if name not in ("any", "count", "sum", "dosage"):
        raise ModelError(f"query must be any, count, sum or dosage, got {name!r}.")
    if name != "count":
        _leave_out("states", states, "nothing is counted")
    if name in ("any", "count"):
        _leave_out("clip", clip, "nothing is added up")
    if name == "any":
        return AnyQuery(1.0 if sensitivity is None else sensitivity)
    if name == "count":
        _leave_out("sensitivity", sensitivity, "one record moves a count by 1")
        if states is not None:
            return CountQuery(_states(read_json(states, "states")))
        return CountQuery(_HOMOZYGOTE) if genotypes else CountQuery()
    if bounded or clip is not None:
        _leave_out("sensitivity", sensitivity, "it is the range of a record")
    return LinearQuery() if bounded else LinearQuery(clip=_interval(clip, sensitivity))


def _leave_out(name: str, value: object, why: str) -> None:
    """Refuse an option that would have no effect."""
    if value is not None:
        raise ModelError(f"--{name} must be left out when {why}, got {value}.")


def _states(listed: Any) -> list[int]:
    if not isinstance(listed, list) or not all(isinstance(z, int) for z in listed):
        raise ModelError(f"states must be a JSON list of whole numbers, got {listed}.")
    return listed


def _interval(clip: str | None, sensitivity: float | None) -> tuple[float, float]:
    if clip is None:
        # Only the width matters to the leakage: the records are in units of it.
        return (0.0, 1.0 if sensitivity is None else sensitivity)
    ends = read_json(clip, "clip")
    if not isinstance(ends, list) or len(ends) != 2:
        raise ModelError(f"clip must be a JSON list [low, high], got {clip}.")
    low, high = check_numbers(ends, "clip")
    if isinstance(low, list) or isinstance(high, list):
        raise ModelError(f"clip must be a JSON list [low, high], got {clip}.")
    return float(low), float(high)


# The options by which a data model is described on the command line.

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

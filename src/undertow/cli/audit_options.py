"""The options by which an audit is described on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

__all__ = [
    "Adjacency",
    "Aux",
    "Baseline",
    "Categories",
    "Checkpoint",
    "ClaimedEpsilon",
    "ClaimedMu",
    "Command",
    "Confidence",
    "Delta",
    "Epsilon",
    "FaultName",
    "Function",
    "InputColumn",
    "Inputs",
    "JsonOutput",
    "LossMatrix",
    "Neighbours",
    "OnceCommand",
    "OutputColumns",
    "Pairs",
    "PriorLaw",
    "Protocol",
    "RecordFile",
    "Repaired",
    "Report",
    "Scores",
    "Seconds",
    "Seed",
    "Seeded",
    "StopEarly",
    "TimeLimit",
    "Tolerance",
    "Trials",
    "Vectorised",
    "Workers",
]


class OnceCommand(TyperCommand):
    """A command that refuses an option given twice, where one value would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        *_, given = self.make_parser(ctx).parse_args(args=list(args))
        option: Any  # the parser's class differs between versions of typer
        for option in given:
            single = option.param_type_name == "option" and not option.multiple
            plain = option.is_flag and not option.secondary_opts if single else True
            if not plain and sum(one is option for one in given) > 1:
                raise typer.BadParameter(
                    f"{option.opts[0]} must be given once, got it again; leave all but "
                    "one of them out."
                )
        return list(super().parse_args(ctx, args))


Protocol = Annotated[
    str | None,
    typer.Option(help="What reports: grr, sue, oue, ss, olh, blh, she or the."),
]
Categories = Annotated[
    int | None, typer.Option(help="Number of values that a client may have.")
]
Epsilon = Annotated[
    float | None, typer.Option(help="Level at which the protocol is run.")
]
FaultName = Annotated[
    str | None,
    typer.Option(
        "--fault",
        help="Instead of --protocol: code with a known bug, such as whole-domain-lie; "
        "'list' names them all.",
    ),
]
Repaired = Annotated[
    bool, typer.Option("--repaired", help="With --fault: run the code without the bug.")
]
Baseline = Annotated[
    bool | None,
    typer.Option(
        "--baseline/--no-baseline",
        help="Also run LDP-Auditor for comparison, on as many trials again; done "
        "unless the run stops early.",
    ),
]
PriorLaw = Annotated[
    str,
    typer.Option(
        "--prior",
        help="How often the attacked people have each value: 'uniform', or as JSON or "
        "@file.json probabilities or counts in the order of the values, or an object "
        "from value to count.",
    ),
]
Aux = Annotated[
    str,
    typer.Option(
        help="What the attacker knows of the person: 'none', 'full', or a label for "
        "each value as JSON or @file.json."
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        help="Largest error of a guess that still counts; the exact value without it."
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
Function = Annotated[
    str,
    typer.Argument(
        metavar="PKG.MODULE:FUNCTION",
        help="Imported with the current directory on the path, as by python -m; takes "
        "an input, or an input and a numpy generator (then the seed repeats the run).",
    ),
]
Command = Annotated[
    str,
    typer.Argument(
        metavar="COMMAND",
        help="A program and its arguments, started without a shell; it reads one JSON "
        "value per line and answers each with one line of JSON.",
    ),
]
RecordFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="One run per row: a .csv, .jsonl, or .parquet (needs pyarrow).",
    ),
]
InputColumn = Annotated[str, typer.Option(help="Column with the input of each run.")]
OutputColumns = Annotated[
    list[str],
    typer.Option(
        "--output-column",
        help="Column with the output of each run; several, each with the option again, "
        "make a vector.",
    ),
]
Inputs = Annotated[
    str,
    typer.Option(
        help="Inputs to run on, a list as JSON or @file.json; every two of them are "
        "neighbours, unless --pairs says which."
    ),
]
Pairs = Annotated[
    str | None,
    typer.Option(
        help="Neighbouring inputs by number from 0, a list of pairs as JSON or "
        "@file.json; all of them without it."
    ),
]
Vectorised = Annotated[
    bool,
    typer.Option(
        "--vectorised", help="The function takes many equal inputs and answers all."
    ),
]
Seeded = Annotated[
    bool,
    typer.Option(
        "--seeded", help="The program draws all randomness from UNDERTOW_SEED."
    ),
]
Batch = Annotated[
    int,
    typer.Option(
        help="Most runs of one start of the program; with --seeded always so many, "
        "which is part of what the seed repeats."
    ),
]
Scores = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        help="What to look at besides: bits (the lowest bits of floats, before all "
        "else), learned (a classifier of the outputs, needs scikit-learn), time (how "
        "long each run takes, the inputs in random order), or values (no last digits).",
    ),
]
StopEarly = Annotated[
    bool,
    typer.Option(
        "--stop-early",
        help="Look after the first hundreds of runs and stop as soon as the claim is "
        "refuted, by limits that hold at all times; "
        "--trials is then the most.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        help="Seconds that one batch of runs, or one start of a program, may take."
    ),
]
ClaimedEpsilon = Annotated[
    float | None, typer.Option("--claim", help="The claimed epsilon.")
]
Delta = Annotated[
    float | None, typer.Option(help="The claimed delta, beside --claim; 0 without it.")
]
ClaimedMu = Annotated[
    float | None,
    typer.Option("--mu", help="Instead of --claim: the claimed mu of Gaussian DP."),
]
Adjacency = Annotated[
    str,
    typer.Option(
        help="What the claim lets change: replace, add-remove or local. If inputs "
        "differ in a record's value, add-remove is tested at the price of replacing it."
    ),
]
Neighbours = Annotated[
    str | None,
    typer.Option(
        help="With add-remove: what two inputs are, one-apart (one has a record more) "
        "or replaced (a record differs); read off inputs that are lists of records."
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(
        help="Runs in all; without it as many as take about --seconds where there is "
        "that option, else 100000 or all recorded ones."
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        help="Without --trials: about how long to run; 10 by default. With "
        "--checkpoint 100000 trials are made, and with --stop-early at most."
    ),
]
Confidence = Annotated[
    float, typer.Option(help="Probability that a true claim is not refuted.")
]
Seed = Annotated[int, typer.Option(help="Repeats the run, whatever the workers.")]
Workers = Annotated[int, typer.Option(help="Processes; more than 1 needs joblib.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(help="File from which an interrupted run goes on; made if missing."),
]
Report = Annotated[
    Path | None,
    typer.Option(
        help="Write a report: FILE.html or FILE.md; may take as many runs again."
    ),
]
JsonOutput = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

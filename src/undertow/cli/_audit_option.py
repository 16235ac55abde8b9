"""The options by which an audit is described, and the words of its command line.

What was typed, audited and refused is told in the words of the options.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from undertow.audit import Claim
from undertow.errors import UndertowError
from undertow.mechanisms.local import PROTOCOLS, LocalProtocol
from undertow.report.audit import claim_words


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


# Words of the command line: what was typed, audited and refused.

# Arguments of the library whose options are spelled otherwise.
_ARGUMENTS = {
    re.compile(r"(?<![\w-])time_limit\b"): "--time-limit",
    re.compile(r"(?<![\w-])score must\b"): "--score must",
}
# JSON that may describe people; a file is shown by its name, other JSON not at all.
_PRIVATE = ("aux", "inputs", "loss", "prior")
_WORDS = ("full", "none", "uniform")
_HIDDEN = "JSON"


def protocol_title(name: str, protocol: LocalProtocol) -> str:
    """Return a protocol in words.

    Examples
    --------
    >>> from undertow.mechanisms.local import OptimizedUnary
    >>> protocol_title("oue", OptimizedUnary(20, 1))
    'OUE (optimized unary encoding), 20 values, ε = 1'
    """
    return (
        f"{name.upper()} ({PROTOCOLS[name].title}), {protocol.categories} values, ε = "
        f"{float(protocol.epsilon):.10g}"
    )


@contextmanager
def in_option_words(claim: Claim | None = None) -> Iterator[None]:
    """Say what the library refuses by the names that the options have here."""
    try:
        yield
    except (UndertowError, TypeError, ValueError) as fault:
        said = str(fault)
        worded = said if claim is None else said.replace(str(claim), claim_words(claim))
        for argument, option in _ARGUMENTS.items():
            worded = argument.sub(option, worded)
        if worded != said:
            fault.args = (worded,)
        raise


def shown_command(context: typer.Context) -> str:
    """Return the command line that was given, without private values.

    Parameters
    ----------
    context : typer.Context
        Of the command that runs.

    Returns
    -------
    str
        Options with a default are shown only if they were given. Inline JSON of inputs,
        prior, knowledge and losses is left out, and of absolute paths only the last
        part is shown.
    """
    words: list[str] = []
    place: Any = context
    while place.parent is not None:  # the root is called as it was started
        words.insert(0, str(place.info_name))
        place = place.parent
    for option in context.command.params:
        name = str(option.name)
        if was_given(context, name):
            words += _option_words(option, name, context.params[name])
    return " ".join(["undertow", *map(shlex.quote, words)])


def was_given(context: typer.Context, name: str) -> bool:
    """Return whether an option stood on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _option_words(option: Any, name: str, value: Any) -> list[str]:
    if option.param_type_name == "argument":
        return [_shown(name, value)]
    if isinstance(value, bool):
        return [(option.opts if value else option.secondary_opts)[0]]
    given = value if isinstance(value, list | tuple) else [value]
    return [word for item in given for word in (option.opts[0], _shown(name, item))]


def _shown(name: str, value: Any) -> str:
    if isinstance(value, Path):
        return value.name if value.is_absolute() else str(value)
    text = str(value).removesuffix(".0") if isinstance(value, float) else str(value)
    if text.startswith("@"):
        return "@" + _shown(name, Path(text[1:]))
    if name in _PRIVATE and text not in _WORDS:
        return _HIDDEN
    # Older parsers hand paths over as text.
    return Path(text).name if Path(text).is_absolute() else text

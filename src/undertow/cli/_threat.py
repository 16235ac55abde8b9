"""From options to a mechanism, its parameter, a threat and the records it is about.

Shared by `undertow risk` and `undertow audit`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from undertow._validate import check_count, check_positive
from undertow.cli._input import check_numbers, read_json, read_numbers
from undertow.errors import AssumptionError, MismatchError, ModelError
from undertow.risk import Channel, Knowledge, Prior, Success, Threat
from undertow.risk.families import FAMILIES, Family

_LAPLACE, _GAUSSIAN = ("laplace", "laplace-sum"), ("gaussian", "gaussian-sum")
_SUMS, _NUMBERS = ("laplace-sum", "gaussian-sum"), ("laplace", "gaussian")


def read_channel(text: str) -> Channel:
    """Return the channel of a row-stochastic matrix given as JSON."""
    rows = read_matrix(read_numbers(text, "channel"), "channel")
    return Channel(rows)


def read_family(
    name: str,
    described: Description,
    *,
    parameter: str | None = None,
    sensitivity: float | None = None,
    delta: float | None = None,
) -> Family:
    """Return the family of a name on the described records.

    Parameters
    ----------
    name : str
        On the command line.
    described : Description
        The records.
    parameter : {"epsilon", "scale", "sigma"}, optional
        What is chosen; by default epsilon where it can be.
    sensitivity, delta : float, optional
        Where the family has them.
    """
    _require_known(name)
    arguments, options = _arguments(name, described), dict[str, Any]()
    if name not in (*_NUMBERS, "exponential"):
        leave_out("sensitivity", sensitivity, f"{name} has its own")
    elif sensitivity is not None:
        options["sensitivity"] = check_extent(sensitivity, "sensitivity")
    if name == "exponential":
        options["sensitivity"] = _score_step(arguments[0], sensitivity)
    if name in _GAUSSIAN:
        options["parameter"] = parameter or ("sigma" if delta is None else "epsilon")
        if delta is not None:
            options["delta"] = _open_share(delta, "delta")
    else:
        leave_out("delta", delta, f"{name} has none")
    if name in _LAPLACE:
        options["parameter"] = parameter or "epsilon"
    return FAMILIES[name](*arguments, **options)


def read_families(
    text: str,
    described: Description,
    *,
    epsilon: float | None = None,
    sensitivity: float | None = None,
    delta: float | None = None,
) -> tuple[Family, ...]:
    """Return the families of a list with commas, each named once.

    An option that none of them has is refused. With `epsilon` all are chosen by it.
    """
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        _require_known(name)
        if names.count(name) > 1:
            raise ModelError(f"mechanisms must differ, got {name!r} twice.")
    if not set(names) & {*_NUMBERS, "exponential"}:
        leave_out("sensitivity", sensitivity, "no mechanism here has it")
    if not set(names) & set(_GAUSSIAN):
        leave_out("delta", delta, "no mechanism here has it")
    found = []
    for name in names:
        lost = delta if name in _GAUSSIAN else None
        step = sensitivity if name in (*_NUMBERS, "exponential") else None
        if epsilon is not None:
            read_parameter(name, epsilon=epsilon, scale=None, sigma=None, delta=lost)
        found.append(read_family(name, described, sensitivity=step, delta=lost))
    return tuple(found)


def read_parameter(
    name: str,
    *,
    epsilon: float | None,
    scale: float | None,
    sigma: float | None,
    delta: float | None,
) -> tuple[str, float]:
    """Return which parameter of a mechanism was given, and its value."""
    _require_known(name)
    allowed = ["epsilon"]
    allowed += ["scale"] if name in _LAPLACE else []
    allowed += ["sigma"] if name in _GAUSSIAN else []
    options = {"epsilon": epsilon, "scale": scale, "sigma": sigma}
    given = {key: value for key, value in options.items() if value is not None}
    ways = " or ".join(f"--{way}" for way in allowed)
    if len(given) != 1 or next(iter(given)) not in allowed:
        shown = " and ".join(f"--{key}" for key in given) or "none"
        raise ModelError(f"{name} must be given {ways}, got {shown}.")
    ((key, value),) = given.items()
    if name in _GAUSSIAN and (key == "epsilon") != (delta is not None):
        raise ModelError(
            f"{name} must be given --epsilon with --delta, or --sigma alone, got "
            f"--{key} {'with' if delta is not None else 'without'} --delta."
        )
    return key, check_extent(value, key)


def read_target(advantage: float | None) -> float:
    """Return the promise, an advantage that is positive and at most 1."""
    if advantage is None:
        raise ModelError("--advantage must be given, got none.")
    if not 0 < advantage <= 1:
        raise ModelError(f"advantage must be in (0, 1], got {advantage}.")
    return check_extent(advantage, "advantage")


def read_threat(
    described: Description,
    *,
    weights: Weights | None,
    aux: str,
    tolerance: float | None,
    loss: str | None,
) -> Threat:
    """Return prior, success rule and knowledge on the described records."""
    return Threat(
        _prior(described, weights),
        _success(described.size, tolerance, loss),
        _knowledge(aux, described.size),
    )


def leave_out(name: str, value: object, why: str) -> None:
    """Refuse an option that would have no effect."""
    if value is not None:
        raise ModelError(f"--{name} must be left out because {why}, got {value}.")


def _require_known(name: str) -> None:
    if name not in FAMILIES:
        raise ModelError(
            f"mechanism must be one of {', '.join(FAMILIES)}, got {name!r}."
        )


def _open_share(value: float, name: str) -> float:
    if not 0 < value < 1:
        raise ModelError(f"{name} must be in (0, 1), got {value}.")
    return value


def _arguments(name: str, described: Description) -> tuple[Any, ...]:
    if name in _SUMS:
        if described.span is None:
            raise ModelError(f"{name} must be given --range, got none.")
        return described.span
    if name == "exponential":
        if described.table is None:
            raise ModelError(
                "exponential must be given --scores, a row of scores for each record, "
                "got no table."
            )
        return (described.table,)
    if described.table is not None:
        raise ModelError(f"{name} must be given one answer a record, got a table.")
    if name in _NUMBERS:
        if described.numbers is None or len(described.numbers) != described.size:
            raise ModelError(
                f"{name} must be given --answers, --range, or a prior from number to "
                "count, got none of them."
            )
        return (described.numbers,)
    return (described.size,)


def _score_step(
    table: tuple[tuple[float, ...], ...], sensitivity: float | None
) -> float:
    """Return the sensitivity of scores: by default, and at least, what they show."""
    reach = max(max(column) - min(column) for column in zip(*table, strict=True))
    if sensitivity is None:
        return check_extent(reach, "the range of the scores")
    if sensitivity < reach:
        raise AssumptionError(
            f"sensitivity must be at least the range {reach:g} of a score, got "
            f"{sensitivity}; a replaced record moves the score that far."
        )
    return sensitivity


def _prior(described: Description, weights: Weights | None) -> Prior:
    if weights is None:
        return Prior.uniform(described.support)
    values = weights.values
    if weights.records not in (None, described.support):
        values = _spread(described, weights)
    if len(values) != described.size:
        raise MismatchError(
            f"prior must have one entry for each of the {described.size} records, got "
            f"{len(values)}."
        )
    if min(values) < 0 or not 0 < sum(values) < math.inf:
        raise ModelError(
            "prior must be non-negative and finite with a positive sum, got a least "
            f"entry of {min(values)} and a sum of {sum(values)}."
        )
    # Whole numbers are counts; others must be the probabilities themselves.
    if all(float(value).is_integer() for value in values):
        return Prior.from_counts(dict(zip(described.support, values, strict=True)))
    if abs(math.fsum(values) - 1.0) > 1e-9:
        raise ModelError(
            "prior must be whole counts, or probabilities with sum 1, got a sum of "
            f"{math.fsum(values):.12g}."
        )
    return Prior(described.support, values)


def _spread(described: Description, weights: Weights) -> tuple[float, ...]:
    """Return the counts of numbered records, 0 for numbers that were not named."""
    assert weights.records is not None
    counts = dict(zip(weights.records, weights.values, strict=True))
    outside = set(counts).difference(described.support)
    if outside:
        raise ModelError(
            f"prior must name records of the range, got {min(map(str, outside))}."
        )
    return tuple(counts.get(record, 0) for record in described.support)


def _success(size: int, tolerance: float | None, loss: str | None) -> Success:
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise ModelError(f"tolerance must be non-negative and finite, got {tolerance}.")
    if loss is not None:
        if tolerance is None:
            raise ModelError("--loss must come with --tolerance, got none.")
        return _by_loss(size, tolerance, loss)
    if not tolerance:
        return Success.exact()
    return Success.within("absolute", tolerance)


def _by_loss(size: int, tolerance: float, loss: str) -> Success:
    rows = read_matrix(read_numbers(loss, "loss"), "loss")
    if len(rows) != size or len(rows[0]) != size:
        raise ModelError(
            f"loss must be a square matrix, a row and a column for each of the {size} "
            f"records, got {len(rows)} rows of {len(rows[0])}."
        )
    least = min(min(row) for row in rows)
    if least < 0:
        raise ModelError(f"loss must be non-negative, got {least}.")
    return Success.within(rows, tolerance)


def _knowledge(aux: str, size: int) -> Knowledge:
    if aux == "none":
        return Knowledge.none()
    if aux == "full":
        return Knowledge.full()
    labels = read_json(aux, "aux")
    if not isinstance(labels, list) or any(isinstance(x, list | dict) for x in labels):
        raise ModelError(
            "aux must be 'none', 'full' or a JSON list with a label for each record, "
            f"got {aux[:40]}."
        )
    if len(labels) != size:
        raise MismatchError(
            f"aux must have one label for each of the {size} records, got "
            f"{len(labels)}."
        )
    return Knowledge.from_labels(labels)


# The records that options describe: how many, what they are called, their numbers.

Records = tuple[str | int | float, ...]

# Records beyond which the search for a parameter takes minutes.
_LARGEST = 100_000
# Beyond this, products and squares of numbers leave the floats.
_TINY, _EXTREME = 1e-60, 1e60
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_SPAN = re.compile(r"\s*([+-]?[0-9]{1,15})\s*:\s*([+-]?[0-9]{1,15})\s*")


@dataclass(frozen=True, slots=True)
class Weights:
    """A prior as it was given: weights, and the names of the records if it has them."""

    values: tuple[float, ...]
    records: Records | None


@dataclass(frozen=True, slots=True)
class Description:
    """The records: how many, what they are called, the numbers that are released."""

    support: Records
    numbers: tuple[float, ...] | None = None
    span: tuple[int, int] | None = None
    table: tuple[tuple[float, ...], ...] | None = None

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.support)


def read_weights(text: str) -> Weights | None:
    """Return the weights of a prior given as JSON; None for the uniform one.

    Raises
    ------
    ModelError
        If it is neither a list of numbers nor an object from record to number.
    """
    if text == "uniform":
        return None
    given = read_json(text, "prior")
    named = isinstance(given, dict)
    listed = list(given.values()) if named else given
    if not isinstance(listed, list) or not listed:
        raise ModelError(
            "prior must be 'uniform', a JSON list of probabilities or counts, or an "
            f"object from record to count, got {text[:40]}."
        )
    values = tuple(_flat(listed, "prior"))
    _require_size(len(values), "prior")
    return Weights(values, _named_records(tuple(given)) if named else None)


def read_records(
    *,
    categories: int | None,
    span: str | None,
    answers: str | None,
    weights: Weights | None,
) -> Description:
    """Return the records that the options describe.

    Without an option the records are those of the prior.
    """
    given = {"--categories": categories, "--range": span, "--answers": answers}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise ModelError(
            f"the records must be described once, got {' and '.join(named)}."
        )
    if span is not None:
        return _from_span(span)
    if answers is not None:
        return _from_answers(answers, weights)
    if categories is not None:
        size = check_count(categories, "categories", minimum=2)
        _require_size(size, "categories")
        return Description(_numbered(weights, size) or tuple(range(size)))
    if weights is None:
        raise ModelError(
            "the records must be described, got none of --categories, --range, "
            "--answers and a --prior other than uniform."
        )
    size = check_count(len(weights.values), "the number of records", minimum=2)
    if weights.records is None:
        return Description(tuple(range(size)))
    numbers = tuple(x for x in weights.records if not isinstance(x, str))
    return Description(weights.records, numbers or None)


def read_matrix(given: Any, name: str) -> list[list[float]]:
    """Return nested lists of numbers if they are a matrix."""
    rows = given if isinstance(given, list) else []
    even = all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows)
    deep = even and any(isinstance(item, list) for row in rows for item in row)
    if not (rows and even and rows[0]) or deep:
        raise ModelError(
            f"{name} must be a matrix with rows of equal length, got another shape."
        )
    return [list(_finite(row, name)) for row in rows]


def check_extent(value: float, name: str) -> float:
    """Return a positive number that is neither tiny nor huge beyond all use."""
    number = check_positive(value, name)
    if not _TINY <= number <= _EXTREME:
        raise ModelError(
            f"{name} must be in [{_TINY:g}, {_EXTREME:g}], got {value}; state "
            "it in another unit."
        )
    return number


def _finite(numbers: Sequence[float], name: str) -> Sequence[float]:
    if not max(map(abs, numbers)) <= _EXTREME:
        raise ModelError(f"{name} must hold numbers up to {_EXTREME:g}, got a larger.")
    return numbers


def _require_size(size: int, name: str) -> None:
    if size > _LARGEST:
        raise ModelError(
            f"{name} must describe at most {_LARGEST} records, got {size}."
        )


def _from_span(text: str) -> Description:
    found = _SPAN.fullmatch(text)
    low, high = (int(end) for end in found.groups()) if found else (1, 0)
    if low >= high:
        raise ModelError(
            f"range must be two rising whole numbers low:high, got {text[:40]!r}."
        )
    _require_size(high - low + 1, "range")
    numbers = tuple(range(low, high + 1))
    return Description(numbers, numbers, (low, high))


def _from_answers(text: str, weights: Weights | None) -> Description:
    given = read_numbers(text, "answers")
    if not isinstance(given, list) or len(given) < 2:
        raise ModelError(
            "answers must be a JSON list with one entry for each of at least two "
            f"records, got {text[:40]}."
        )
    _require_size(len(given), "answers")
    if any(isinstance(row, list) for row in given):
        table = tuple(tuple(row) for row in read_matrix(given, "scores"))
        support = _called(weights, len(table)) or tuple(range(len(table)))
        return Description(support, table=table)
    numbers = tuple(_finite(given, "answers"))
    # Equal answers do not tell records apart: they are then called 0, 1, ...
    differ = len(set(numbers)) == len(numbers)
    own = numbers if differ else tuple(range(len(numbers)))
    return Description(_called(weights, len(numbers)) or own, numbers)


def _numbered(weights: Weights | None, size: int) -> Records | None:
    """Return what the prior calls categories, unless by their numbers."""
    records = None if weights is None else weights.records
    if records is None or set(range(size)).issuperset(records):
        return None
    if len(records) != size:
        raise MismatchError(
            f"prior must have one entry for each of the {size} records, got "
            f"{len(records)}; an object that names some of 0 to {size - 1} alone may "
            "leave out the others."
        )
    return records


def _called(weights: Weights | None, size: int) -> Records | None:
    """Return what the prior calls the records, if it does."""
    if weights is None or weights.records is None:
        return None
    if len(weights.records) != size:
        raise MismatchError(
            f"prior must have one entry for each of the {size} records, got "
            f"{len(weights.records)}."
        )
    return weights.records


def _named_records(names: tuple[str, ...]) -> Records:
    """Return names as numbers if all of them are."""
    if not all(_DECIMAL.fullmatch(name) for name in names):
        return names
    numbers = tuple(
        int(name) if _WHOLE.fullmatch(name) else float(name) for name in names
    )
    if len(set(numbers)) < len(numbers):
        raise ModelError("prior must name every record once, got one twice.")
    return tuple(_finite(numbers, "prior"))


def _flat(given: list[Any], name: str) -> Sequence[float]:
    if any(isinstance(item, list) for item in check_numbers(given, name)):
        raise ModelError(f"{name} must be a flat list of numbers, got nested lists.")
    return given


# The options by which a mechanism and a threat are described on the command line.

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

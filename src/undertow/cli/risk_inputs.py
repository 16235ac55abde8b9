"""From options to a mechanism, its parameter and a threat."""

from __future__ import annotations

import math
from typing import Any

from undertow.cli.json_values import read_json, read_numbers
from undertow.cli.risk_records import (
    Description,
    Weights,
    check_extent,
    read_matrix,
)
from undertow.errors import AssumptionError, MismatchError, ModelError
from undertow.risk import Channel, Knowledge, Prior, Success, Threat
from undertow.risk.families import FAMILIES, Family

__all__ = [
    "leave_out",
    "read_channel",
    "read_families",
    "read_family",
    "read_parameter",
    "read_target",
    "read_threat",
]

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

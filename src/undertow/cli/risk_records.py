"""The records that options describe: how many, what they are called, their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from undertow._validate import check_count, check_positive
from undertow.cli.json_values import check_numbers, read_json, read_numbers
from undertow.errors import MismatchError, ModelError

__all__ = [
    "Description",
    "Weights",
    "check_extent",
    "read_matrix",
    "read_records",
    "read_weights",
]

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

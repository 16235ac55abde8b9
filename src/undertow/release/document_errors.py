"""One sentence for whatever is wrong in a release file, without its passwords."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args

from undertow._address import masked, shown_address
from undertow.errors import PlanError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

__all__ = ["Fault", "nearest", "path_of", "refused", "shown"]

_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "model_type": "a table",
}
# What people ask for, and how it is asked here.
_ASKED = {
    "mean": ("average", "avg"),
    "mean, of a condition in [columns], with low = 0 and high = 1": (
        "percent",
        "percentage",
        "proportion",
        "rate",
        "ratio",
        "share",
    ),
    "quantile, with quantiles = [0.5]": ("median",),
    "quantile, with quantiles near 0 or 1": ("max", "maximum", "min", "minimum"),
    "quantile": ("percentile", "percentiles", "quantiles"),
    "variance": ("sd", "std", "stddev", "var"),
    "count_distinct": ("distinct", "nunique", "unique"),
    "sum": ("total",),
}
_MEANT = {word: meant for meant, words in _ASKED.items() for word in words}
_MISSING = {
    "promise": '; write [promise] and, below it, epsilon = "1.0"',
    "queries": "; write [[queries]] and, below it, name and select",
}
_SHORT = 60
_LIMITS = {
    "ge": "be at least",
    "le": "be at most",
    "min_length": "have a length of at least",
    "max_length": "have a length of at most",
}


class Fault(ValueError):
    """What is wrong with a part: a field below it and the rest of the sentence.

    Parameters
    ----------
    field : str
        Path below the part, or empty for the part itself.
    rest : str
        From "must" on, without the full stop.
    """

    def __init__(self, field: str, rest: str) -> None:
        super().__init__(f"{field}\t{rest}")


def shown(value: Any) -> str:
    """Show a value of the document in short, passwords hidden."""
    if isinstance(value, str):
        text = shown_address(value)
        return repr(text if len(text) <= 60 else text[:57] + "...")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        text = str(value) if not isinstance(value, int) or value < 10**30 else "a lot"
        return text[:40]
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__


def nearest(word: Any, known: Iterable[str]) -> str:
    """Return " (did you mean ...?)", or nothing if no known word is near."""
    names = sorted(known)
    near = difflib.get_close_matches(str(word)[:60], names, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def path_of(places: Sequence[int | str]) -> str:
    """Write a place in the document, such as ``queries[0].keys.hour``.

    Examples
    --------
    >>> path_of(("queries", 0, "by"))
    'queries[0].by'
    """
    path = ""
    for place in places:
        if isinstance(place, int):
            path += f"[{place}]"
        else:
            path += ("." if path else "") + str(place)[:60]
    return path


def refused(fault: ValidationError, model: type[BaseModel]) -> PlanError:
    """Turn what pydantic found into one sentence about the first mistake.

    A key that is not known comes first: it often explains why another is missing.
    """
    errors = fault.errors(include_url=False)
    unknown = [error for error in errors if error["type"] == "extra_forbidden"]
    return PlanError(masked(_sentence((unknown or errors)[0], model)))


def _sentence(error: ErrorDetails, model: type[BaseModel]) -> str:
    path, kind = path_of(error["loc"]), error["type"]
    value = error.get("input")
    if kind == "extra_forbidden":
        fields = _fields(model, error["loc"][:-1])
        last = str(error["loc"][-1])[:60]
        near = nearest(last, fields) or f" (known: {', '.join(fields)})"
        return f"{path} must be a key of the format, got {last!r}{near}."
    if kind == "missing":
        return f"{path} must be given, got nothing{_MISSING.get(path, '')}."
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        meant = _MEANT.get(str(value).lower()) if path.endswith(".select") else None
        near = f" (did you mean {meant}?)" if meant else nearest(value, known)
        got = f"{shown(value)}{near}"
        return f"{path} must be one of {', '.join(known)}, got {got}."
    if kind in ("value_error", "assertion_error"):
        return _own_words(path, error)
    if kind in _TYPES:
        got = f"{shown(value)}{_as_list(path, kind, value)}"
        return f"{path or 'the document'} must be {_TYPES[kind]}, got {got}."
    return f"{path} must {_limit(error)}."


def _as_list(path: str, kind: str, value: Any) -> str:
    """Say how one value is written as a list, where that may have been meant."""
    if kind not in ("tuple_type", "list_type"):
        return ""
    if path == "queries" and isinstance(value, dict):
        return "; write [[queries]] in two pairs of brackets"
    if not path.startswith("queries["):
        return ""
    if isinstance(value, str) and value.isprintable() and len(value) <= _SHORT:
        return f'; write ["{shown_address(value)}"]'
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return f"; write [{shown(value)}]" if plain else ""


def _limit(error: ErrorDetails) -> str:
    """Say which limit of length or size was passed."""
    context, value = error.get("ctx", {}), error.get("input")
    for key, words in _LIMITS.items():
        if key in context:
            sized = "length" in key and hasattr(value, "__len__")
            got = len(value) if sized else shown(value)
            return f"{words} {context[key]}, got {got}"
    return f"{error['msg'].removeprefix('Input should').strip()}, got {shown(value)}"


def _own_words(path: str, error: ErrorDetails) -> str:
    """Join the path with the words of a validator of ours."""
    words = str(error["ctx"]["error"]).rstrip(".")
    field, tab, rest = words.partition("\t")
    if not tab:
        return f"{path}{words if words[:1] in '.[' else ' ' + words.lstrip()}."
    dot = "." if path and field and not field.startswith("[") else ""
    return f"{path}{dot}{field} {rest}."


def _fields(model: type[BaseModel], places: Sequence[int | str]) -> list[str]:
    """Return the keys known at a place of the document."""
    from pydantic import BaseModel

    for place in places:
        if isinstance(place, str) and place in model.model_fields:
            inner = _models(model.model_fields[place].annotation, BaseModel)
            model = inner[0] if inner else model
    return list(model.model_fields)


def _models(annotation: Any, base: type[Any]) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, base):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part, base)]

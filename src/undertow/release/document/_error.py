"""One sentence for whatever is wrong in a release file, an argument or a column name.

No sentence repeats a password, nor a name of a column that the release file does not
state: what names a column of a CSV file may be a row.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from undertow._address import masked, shown_address
from undertow.errors import PlanError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


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


# Arguments of functions that people call: one sentence when one is something else.


def path_text(
    value: Any, name: str, *, kind: str = "the name of a file or folder"
) -> str:
    """Return the text of a name, or of a path object.

    Parameters
    ----------
    value : str or path
        A name; it may be an address, which is no path.
    name, kind : str
        The argument and what it must be, for the message.

    Raises
    ------
    PlanError
        If it is something else.

    Examples
    --------
    >>> from pathlib import Path
    >>> path_text(Path("visits.toml"), "path")
    'visits.toml'
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise PlanError(f"{name} must be {kind}, got {type(value).__name__}.")
    return text


def require_text_keys(value: Any, path: str = "") -> None:
    """Refuse nested mappings with keys that are no text, as no TOML file has them.

    Raises
    ------
    PlanError
        Which names the table that holds the key.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise PlanError(
                    f"the keys of {path or 'the release'} must be text, got "
                    f"{type(key).__name__}."
                )
            require_text_keys(inner, f"{path}.{key[:60]}" if path else key[:60])
    elif isinstance(value, list | tuple):
        for at, inner in enumerate(value):
            require_text_keys(inner, f"{path}[{at}]")


# Names of columns: told apart by the engine, not there, or with a type to be stated.
#
# What names a column of a CSV file may be a row. No sentence here repeats a name that
# the release file does not state; what else the first line has is said by places, or by
# yes and no.

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_BARE = re.compile("[A-Za-z0-9_-]+")
_LONGEST = 60
_FORMS = {"date": "%d/%m/%Y", "timestamp": "%d/%m/%Y %H:%M"}


def require_apart(names: Sequence[str], *, where: str) -> None:
    """Refuse columns whose names the engine takes for one.

    Parameters
    ----------
    names : sequence of str
        As they are written; the first line of a file that has no names is data, so
        that the refusal says places and no names.
    where : str
        The table.

    Raises
    ------
    PlanError
        If two names are equal up to spaces around them and the case of A to Z, as
        DuckDB compares them; it would call one of them something else.

    Examples
    --------
    >>> require_apart(["zone", "Zone_1", "ts"], where="visits.csv")
    """
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        first = seen.setdefault(_folded(name), place)
        if first != place:
            raise PlanError(
                f"the columns of {where} must have different names, upper and lower "
                f"case alike, got one name for columns {first} and {place}; rename one."
            )


def _folded(name: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in name.strip())


def absent(
    name: str,
    names: Sequence[str],
    *,
    wanted: Collection[str],
    lines: bool,
    near: str = "",
) -> str:
    """Say why a table may lack a column, repeating none of its names.

    Parameters
    ----------
    name : str
        What the release file names and the table lacks.
    names : sequence of str
        The columns of the table.
    wanted : collection of str
        All columns that the release file names.
    lines : bool
        Whether the first line of a CSV file names the columns.
    near : str
        What is said of a declared name that may be meant, where nothing is more likely.

    Returns
    -------
    str
        To be written behind the name; empty if nothing is to be said.

    Examples
    --------
    >>> absent("zone", ["who;zone;n"], wanted=["zone"], lines=True)
    '; the first line has semicolons between its names: columns of a CSV file have commas between them, so write it with commas'
    >>> absent("zone", ["who", "Zone"], wanted=["who", "zone"], lines=True)
    '; the name of column 2 only differs in case or blanks: write it as the table does'
    """  # noqa: E501 - lines of output
    if lines:
        for mark, word in _SEPARATORS.items():
            if sum(some.count(mark) for some in names) >= len(names):
                return (
                    f"; the first line has {word} between its names: columns of a CSV "
                    "file have commas between them, so write it with commas"
                )
    folded = [some.strip().casefold() for some in names]
    if name.strip().casefold() in folded:
        place = folded.index(name.strip().casefold()) + 1
        return (
            f"; the name of column {place} only differs in case or blanks: write it as "
            "the table does"
        )
    if near:
        return near
    if len(names) == 1:
        return "; the table has one column, and the columns of a CSV file have commas"
    if not lines or set(wanted) & set(names):
        return ""
    some = len(wanted)
    none = f"none of the {some} columns asked for is" if some > 1 else "it is not"
    return (
        f"; {none} in the first line of the CSV file, which must name the columns and "
        "be no row"
    )


def types_entry(name: str, kind: str, *, form: str | None = None) -> str:
    """Return how `source.types` states what a column of text holds.

    Times and dates are written in a format of their own: `form`, or an example of one.

    Examples
    --------
    >>> types_entry("minutes", "int")
    'types = { minutes = "int" }'
    >>> types_entry("seen at", "date")
    'types = { "seen at" = { date = "%d/%m/%Y" } }'
    """
    text = name[:_LONGEST]
    key = text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
    form = _FORMS.get(kind) if form is None else form
    value = f'"{kind}"' if form is None else f'{{ {kind} = "{form}" }}'
    return f"types = {{ {key} = {value} }}"

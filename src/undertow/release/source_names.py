"""Names of columns: told apart by the engine, not there, or with a type to be stated.

What names a column of a CSV file may be a row. No sentence here repeats a name that the
release file does not state; what else the first line has is said by places, or by yes
and no.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from undertow.errors import PlanError

__all__ = ["absent", "require_apart", "types_entry"]

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

"""Names of columns, which an engine must be able to tell apart."""

from __future__ import annotations

from collections.abc import Sequence

from undertow.errors import PlanError

__all__ = ["require_apart"]


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

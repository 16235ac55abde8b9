"""The kinds of queries: what each may state, and what its numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Select = Literal[
    "count", "count_distinct", "sum", "mean", "variance", "quantile", "histogram"
]
"""What a query asks for."""

Counted = Literal["rows", "units"]
"""What a number counts."""


@dataclass(frozen=True, slots=True)
class SelectKind:
    """What is true of every query of one kind.

    Parameters
    ----------
    fields : frozenset of str
        The fields that it has and others have not.
    counts : {"rows", "units"} or None
        What its numbers count; None if they are in the unit of a column.
    runs : bool
        Whether its numbers may run on from the start of the windows.
    binned : bool
        Whether it has one number for each bin between two cut points.
    ranked : bool
        Whether it has numbers of given ranks, chosen among candidates.
    averaged : bool
        Whether its noise is divided by the number of rows of a cell.
    between : bool
        Whether its numbers lie between the stated ends.
    """

    fields: frozenset[str] = frozenset()
    counts: Counted | None = None
    runs: bool = False
    binned: bool = False
    ranked: bool = False
    averaged: bool = False
    between: bool = False


_BOUNDED = frozenset({"column", "low", "high"})

KINDS: dict[Select, SelectKind] = {
    "count": SelectKind(counts="rows", runs=True),
    "count_distinct": SelectKind(counts="units"),
    "sum": SelectKind(_BOUNDED, runs=True),
    "mean": SelectKind(_BOUNDED, averaged=True, between=True),
    "variance": SelectKind(_BOUNDED, averaged=True),
    "quantile": SelectKind(
        _BOUNDED | {"quantiles", "candidates"}, ranked=True, between=True
    ),
    "histogram": SelectKind(_BOUNDED | {"bins"}, counts="rows", binned=True),
}
"""Each kind by its name in a release file."""

FIELDS: frozenset[str] = frozenset().union(*(kind.fields for kind in KINDS.values()))
"""The fields that only some kinds have."""

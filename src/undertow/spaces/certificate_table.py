"""The compatibility table: what one protected change does to the blocks of a cut."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["COMPATIBILITY", "POSITIONS", "TableRow"]


class TableRow(NamedTuple):
    """One row of the compatibility table.

    `touched` is a number, or the letter it stands for: ``w`` and ``l`` the length of
    the window, ``m`` the cap on recorded times (twice that for a replaced user), ``d``
    the most edges a rewired vertex changes, ``k`` all blocks.
    """

    granularity: str
    rule: str
    touched: str
    nonexpansive: bool
    source: str
    note: str = ""


_DERIVED = "derived, verified by enumeration"
POSITIONS = "one change shifts positions"
_MOVES = "a record that moves leaves one block and enters another"

#: The table. A rule or granularity of "any" matches everything not listed before it.
COMPATIBILITY: tuple[TableRow, ...] = (
    TableRow("any", "data", "k", False, "thesis, Section 4.2", "blocks move with data"),
    TableRow("unbounded", "value", "1", True, "paper, Section IV-C"),
    TableRow("bounded", "value", "2", False, "thesis, Proposition A.12", _MOVES),
    TableRow("edit", "value", "2", True, _DERIVED),
    TableRow("attribute", "value", "2", False, _DERIVED, _MOVES),
    TableRow("bounded:ordered", "row position", "1", True, "thesis, Proposition 4.7"),
    TableRow("bounded-by-id", "row position", "1", True, "thesis, Proposition 4.7"),
    TableRow("any", "row position", "k", False, _DERIVED, POSITIONS),
    TableRow("any", "sorted position", "k", False, _DERIVED, POSITIONS),
    TableRow("bounded:ordered", "id", "1", True, "thesis, Proposition 4.7"),
    TableRow("bounded-by-id", "id", "1", True, "paper, Proposition A.6"),
    TableRow("unbounded", "id", "1", True, _DERIVED, "ids are stable"),
    TableRow("edit", "id", "1", True, _DERIVED, "ids are stable"),
    TableRow("attribute", "id", "1", True, _DERIVED),
    TableRow("user", "id", "1", True, _DERIVED),
    TableRow("user:add-remove", "id", "1", True, _DERIVED),
    TableRow("event", "time", "1", True, _DERIVED, "the time of a point is fixed"),
    TableRow("event", "user", "1", True, _DERIVED),
    TableRow(
        "event",
        "location",
        "2",
        False,
        _DERIVED,
        "a point that moves leaves one block and enters another",
    ),
    TableRow("event:add-remove", "time", "1", True, _DERIVED),
    TableRow("event:add-remove", "user", "1", True, _DERIVED),
    TableRow("event:add-remove", "location", "1", True, _DERIVED),
    TableRow("event:add-remove", "cluster", "1", True, _DERIVED),
    TableRow("w-event", "time", "w", True, _DERIVED),
    TableRow("w-event", "user", "w", True, _DERIVED, "a window may mix users"),
    TableRow("w-event:single-user", "time", "w", True, _DERIVED),
    TableRow("w-event:single-user", "user", "1", True, _DERIVED),
    TableRow("l-trajectory", "time", "l", True, _DERIVED),
    TableRow("l-trajectory", "user", "1", True, _DERIVED),
    TableRow("user", "time", "m", True, _DERIVED),
    TableRow("user", "user", "1", True, _DERIVED),
    TableRow("user", "location", "k", True, _DERIVED),
    TableRow("user:add-remove", "time", "m", True, _DERIVED),
    TableRow("user:add-remove", "user", "1", True, _DERIVED),
    TableRow("user:add-remove", "location", "k", True, _DERIVED),
    TableRow("element", "cluster", "1", True, _DERIVED),
    TableRow("element", "user", "1", True, _DERIVED),
    TableRow("edge", "vertex pair", "1", True, _DERIVED),
    TableRow("edge", "vertex", "2", True, "thesis, Example 4.3"),
    TableRow("node", "vertex pair", "d", True, _DERIVED),
    TableRow("node", "vertex", "d+1", True, _DERIVED, "the vertex and its neighbours"),
    TableRow("attribute", "column", "1", True, _DERIVED),
    TableRow("bounded", "column", "k", True, _DERIVED),
    TableRow("bounded:ordered", "column", "k", True, _DERIVED),
    TableRow("bounded-by-id", "column", "k", True, _DERIVED),
    TableRow("unbounded", "column", "k", True, _DERIVED),
    TableRow("edit", "column", "k", True, _DERIVED),
    TableRow("free-lunch", "any", "k", True, _DERIVED),
    TableRow("local", "any", "k", True, _DERIVED),
)

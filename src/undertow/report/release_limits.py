"""What the numbers of a release leave out, and what its promise leaves open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from undertow.report.release_words import (
    Record,
    all_costs,
    granularity_words,
    shown_text,
)

__all__ = ["counted", "is_by_row", "unprotected", "without_owner"]

_LONGEST = 600
_INTERVALS = (
    "Intervals are about the noise alone: they are for the number counted within "
    "these limits, which may differ from that of the whole table."
)
_ROWS = "size: the number of records"
_WINDOWS = "the matrix shape: how many users and times"
# What neighbours share, in the words of somebody who reads no theorems.
_PUBLIC = {
    _WINDOWS: "how many people and how many windows of time there are",
    "the number of users": "how many people are in the table",
    "the set of users": "who is in the table",
    _ROWS: "how many rows there are",
}
# Somebody more or less changes them, which another cost than the promise may cover.
_SIZES = (_ROWS, _WINDOWS, "the number of users")
_ABSENCE = ("unbounded", "user:add-remove")


def is_by_row(record: Record) -> bool:
    """Tell whether each row is protected by itself, whoever it belongs to."""
    source = record["document"]["source"]
    return not source["unit"] or source["per"] == "event"


def without_owner(record: Record) -> str:
    """Say what protection of rows means for somebody who has several of them."""
    owner = record["document"]["source"]["unit"]
    reason = f"whatever its {owner}" if owner else "no column says whose it is"
    return (
        f"Each row is protected by itself ({reason}): about somebody with several rows "
        "more can be learnt than the promise says, the more rows the more."
    )


def counted(record: Record) -> tuple[str, ...]:
    """Say which rows and numbers count, so that nobody takes a part for the whole."""
    document = record["document"]
    pairs = zip(document["queries"], record["plan"]["queries"], strict=True)
    found = [*_rows_counted(document)]
    if any(query["by"] and error["cells"] is not None for query, error in pairs):
        found.append(
            "Rows without a key, or with one that is not listed, do not count in a "
            "table by that key."
        )
    if any(query["low"] is not None for query in document["queries"]):
        found.append("Numbers below or above the stated ends count as the nearest end.")
    return (*found, _INTERVALS) if found else ()


def _rows_counted(document: Mapping[str, Any]) -> list[str]:
    bounds, source = document["bounds"], document["source"]
    where = " in each window" if isinstance(source["per"], Mapping) else ""
    limits = (
        ("rows_per_unit", "row", where),
        ("groups_per_unit", "cell", " of a table"),
        ("rows_per_group", "row", " in one cell"),
    )
    parts = [
        f"{bounds[name]:,} {thing}{'' if bounds[name] == 1 else 's'}{place}"
        for name, thing, place in limits
        if bounds[name] is not None
    ]
    if not parts:
        return []
    unit = shown_text(str(source["unit"]))
    return [
        f"Of each {unit} count at most {', and at most '.join(parts)}, drawn by "
        f"chance. Where a {unit} has more, the rest is left out: counts and sums are "
        "then smaller than those of the whole table."
    ]


def unprotected(record: Record) -> tuple[str, ...]:
    """Return what the promise leaves open."""
    plan = record["plan"]
    change = granularity_words(plan["granularity"], record)
    rows = (without_owner(record),) if is_by_row(record) else ()
    public = (
        _public(shown_text(t, most=_LONGEST), record) for t in plan["unprotected"]
    )
    return (
        f"More than one such change at a time ({change}): the costs above say what "
        "larger changes cost.",
        *rows,
        *dict.fromkeys(public),
        _keys(record),
        "The release file itself: queries, conditions, bounds, shares and noise.",
        "That the release was run, when, how long it took, and whether it failed.",
        "What is true whether or not somebody took part: conclusions about everybody "
        "may be drawn about them too.",
        "What other releases about the same people tell: what they cost adds to this. "
        "Those charged to the same ledger stay within its budget together, which may "
        "be larger than this promise; nobody adds up the others.",
        "What is known from elsewhere.",
    )


def _public(text: str, record: Record) -> str:
    words = _PUBLIC.get(text, text)
    if is_by_row(record) and text == "the number of users":
        words = "how many rows there are"
    if text in _SIZES and _covers_absence(record):
        thing = "a row" if is_by_row(record) else "a person"
        words += (
            ": the promise is about data that are replaced by others. What it costs "
            f"that {thing} is there or not is said above"
        )
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _covers_absence(record: Record) -> bool:
    """Tell whether it has a finite cost that somebody is there or not."""
    losses = [loss for name, loss in all_costs(record).items() if name in _ABSENCE]
    return any(
        math.isfinite(float(loss[key]))
        for loss in losses
        for key in ("epsilon", "rho", "mu")
        if key in loss
    )


def _keys(record: Record) -> str:
    if any(error["cells"] is None for error in record["plan"]["queries"]):
        return (
            "The keys that are shown, where they were discovered: each was there for "
            "enough units, up to noise and δ. Listed keys, and how many, are public."
        )
    return "Which cells there are, how many, and their keys: they are public."

"""Plan documents that several tests read, write or break."""

from __future__ import annotations

import copy
from typing import Any

DISTRICTS = {"N": "0.5", "S": "1.0", "E": "0.3", "W": "0.8"}


def districts(setting: str = "common") -> dict[str, Any]:
    """Four counts, one per district, at bounded level."""
    return {
        "domain": {"kind": "table", "cells": list(DISTRICTS), "cell": "district"},
        "releases": [
            {
                "name": f"count {cell}",
                "loss": {"epsilon": epsilon},
                "unit": "bounded",
                "view": {"kind": "cell", "cell": cell},
                "setting": setting,
            }
            for cell, epsilon in DISTRICTS.items()
        ],
    }


def _release(view: dict[str, Any] | None, unit: str, **rest: Any) -> dict[str, Any]:
    entry = {"name": "one", "loss": {"epsilon": 1}, "unit": unit, "setting": "view"}
    if view is not None:
        entry["view"] = view
    return entry | rest


def _document(domain: dict[str, Any], *releases: dict[str, Any]) -> dict[str, Any]:
    return {"domain": domain, "releases": list(releases)}


_TABLE = {"kind": "table", "cells": ["a", 2, "c"], "max_size": 9}
_STREAM = {"kind": "stream", "users": 5, "times": 6}
_GRAPH = {"kind": "graph", "vertices": 6, "max_degree": 3}
_ROWS = {"kind": "rows", "ids": 6}

VALID: dict[str, dict[str, Any]] = {
    "districts": districts(),
    "no view": _document(_TABLE, _release(None, "edit")),
    "several cells": _document(
        _TABLE, _release({"kind": "cell", "cell": ["a", 2]}, "unbounded")
    ),
    "count": _document(
        _TABLE,
        _release({"kind": "cell", "cell": 2, "statistic": "count"}, "absolute"),
    ),
    "overlapping cells": _document(
        {**_TABLE, "multi": True, "max_cells": 2, "values_per_cell": 1},
        _release({"kind": "cell", "cell": "a"}, "unbounded", loss={"rho": 0.5}),
    ),
    "attributes": _document(
        {"kind": "table", "attributes": ["age", "sex"], "size": 4},
        _release({"kind": "attributes", "names": ["sex"]}, "bounded"),
    ),
    "attribute values": _document(
        {"kind": "table", "attributes": {"age": [1, 2], "sex": ["f", "m"]}},
        _release({"kind": "attributes", "names": ["sex", "age"]}, "unbounded"),
    ),
    "ids": _document(
        {"kind": "rows", "ids": ["x", "y"], "values": [0, 1], "free_ids": True},
        _release({"kind": "ids", "ids": ["x"]}, "bounded-by-id"),
    ),
    "blocks": _document(
        _ROWS,
        _release(
            {"kind": "random-block", "block": 0, "of": 2, "salt": "s"}, "bounded-by-id"
        ),
        _release({"kind": "row-position", "block": 1, "of": 2}, "free-lunch"),
        _release({"kind": "sorted-position", "block": 1, "of": 2}, "free-lunch"),
    ),
    "hours": _document(
        _STREAM,
        _release({"kind": "time", "at": 3}, "event"),
        _release({"kind": "time", "at": [0, 5]}, "event"),
        _release({"kind": "window", "start": 1, "length": 3}, "w-event:2"),
        _release({"kind": "users", "users": [0, 4]}, "user"),
        _release({"kind": "identity"}, "l-trajectory:2", loss={"epsilon": "1/3"}),
    ),
    "places": _document(
        {**_STREAM, "regular": True, "clusters": {"p": "north", "q": "south"}},
        _release({"kind": "locations", "values": ["north"]}, "event:add-remove"),
    ),
    "graph": _document(
        _GRAPH,
        _release({"kind": "degree", "vertex": 5}, "absolute"),
        _release({"kind": "incident-edges", "vertex": 0}, "edge"),
        _release({"kind": "vertex-pairs", "pairs": [[0, 1], [2, 1]]}, "edge"),
        _release({"kind": "clique-count", "max_size": 3}, "l1"),
    ),
    "notions": _document(
        _TABLE,
        _release(None, "edit", loss={"epsilon": 1, "delta": "1e-5"}),
        _release(None, "edit", loss={"mu": "inf"}),
        _release(None, "edit", loss={"mu_squared": "1/2"}),
        _release(None, "zero", loss={"epsilon": 0}),
        _release(None, "discrete", loss={"epsilon": "inf"}),
    ),
    "claims": _document(
        _TABLE,
        {
            "name": "two",
            "view": {"kind": "cell", "cell": "a"},
            "claims": [
                {"loss": {"epsilon": 1}, "unit": "bounded", "setting": "common"},
                {"loss": {"epsilon": 1}, "unit": "unbounded", "setting": "common"},
            ],
        },
    ),
}
"""Documents that read, by what they show."""


def valid(name: str) -> dict[str, Any]:
    """Return a fresh copy that a test may spoil."""
    return copy.deepcopy(VALID[name])

"""Release files and engine answers made up for tests of the accounting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from undertow.release.document.release_document import release_from_mapping
from undertow.release.engine.job import Aggregates, Job
from undertow.release.plan.planned_release import ReleasePlan, plan_release

HOURS = {"by": ["hour"], "keys": {"hour": "0..3"}}
COUNT = {"name": "count", "select": "count", **HOURS}
WINDOWED = {
    "table": "t.csv",
    "unit": "person",
    "time": "ts",
    "per": {"window": "1h"},
    "start": "2026-01-01",
    "horizon": "2d",
}


def release_plan(
    promise: Mapping[str, Any],
    queries: Sequence[Mapping[str, Any]] = (COUNT,),
    *,
    bounds: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    as_of: str | None = None,
    **parts: Any,
) -> ReleasePlan:
    """Plan a release with some parts filled in."""
    document = release_from_mapping(
        {
            "source": source or {"table": "t.csv", "unit": "person", "time": "ts"},
            "promise": promise,
            "bounds": {"rows_per_unit": 5} if bounds is None else bounds,
            "queries": list(queries),
            **parts,
        }
    )
    return plan_release(document, as_of=as_of)


def count_aggregates(job: Job, count: int) -> Aggregates:
    """Return the same number of rows and units in every cell, bins counted."""
    assert job.grid is not None
    cells = list(job.grid.cells())
    if job.bins is not None:
        cells = [(*cell, b) for cell in cells for b in range(len(job.bins) - 1)]
    numbers = np.full(len(cells), count, dtype=np.int64)
    return Aggregates(tuple(cells), dict.fromkeys(job.measures, numbers))


def value_aggregates(job: Job, codes: Sequence[int]) -> Aggregates:
    """Return one cell with rows of these codes."""
    totals = {
        "rows": len(codes),
        "sum": sum(codes),
        "squares": sum(code**2 for code in codes),
        "units": len(codes),
    }
    measures = {
        name: np.array([totals[name]], dtype=np.object_) for name in job.measures
    }
    return Aggregates(((),), measures)

"""A private release of a real table: declared in a file, run on a table engine."""

from __future__ import annotations

from undertow.release import _required as _required
from undertow.release.answer import QueryAnswer
from undertow.release.document import (
    ReleaseDocument,
    read_release,
    release_from_mapping,
    release_schema,
)
from undertow.release.findings import TableCheck, check_table
from undertow.release.job import (
    Aggregates,
    Bounding,
    Grid,
    Job,
    Slice,
    Value,
)
from undertow.release.plan import plan_release
from undertow.release.query_plan import QueryPlan
from undertow.release.record import ReleaseRun
from undertow.release.release_file import ReleaseFile, from_table, load
from undertow.release.release_plan import ReleasePlan
from undertow.release.run import run_release
from undertow.release.source import Source, open_source
from undertow.release.time_format import TimeFormat

__all__ = [
    "Aggregates",
    "Bounding",
    "Grid",
    "Job",
    "QueryAnswer",
    "QueryPlan",
    "ReleaseDocument",
    "ReleaseFile",
    "ReleasePlan",
    "ReleaseRun",
    "Slice",
    "Source",
    "TableCheck",
    "TimeFormat",
    "Value",
    "check_table",
    "from_table",
    "load",
    "open_source",
    "plan_release",
    "read_release",
    "release_from_mapping",
    "release_schema",
    "run_release",
]

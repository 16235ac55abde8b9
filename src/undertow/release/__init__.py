"""A private release of a real table: declared in a file, run on a table engine."""

from __future__ import annotations

from undertow.release import _extras as _extras
from undertow.release.document.release_document import (
    ReleaseDocument,
    read_release,
    release_from_mapping,
    release_schema,
)
from undertow.release.document.time import TimeFormat
from undertow.release.engine.job import Aggregates, Bounding, Grid, Job, Slice, Value
from undertow.release.finding import TableCheck, check_table
from undertow.release.plan.answer import QueryAnswer
from undertow.release.plan.planned_query import QueryPlan
from undertow.release.plan.planned_release import ReleasePlan, plan_release
from undertow.release.release_file import ReleaseFile, from_table, load
from undertow.release.run.protocol import run_release
from undertow.release.run.record import ReleaseRun
from undertow.release.source.opening import open_source
from undertow.release.source.table import Source

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

"""A private release of a real table: declared in a file, run on a table engine."""

from __future__ import annotations

from undertow.release._extras import load as _load

# Asked for first, so that a missing extra is one sentence and not a traceback.
for _name in ("pydantic", "ibis", "pyarrow", "sqlalchemy"):
    _load(_name)

from undertow.release.answer import QueryAnswer  # noqa: E402
from undertow.release.document import (  # noqa: E402
    ReleaseDocument,
    read_release,
    release_from_mapping,
    release_schema,
)
from undertow.release.job import (  # noqa: E402
    Aggregates,
    Bounding,
    Grid,
    Job,
    Slice,
    Value,
)
from undertow.release.plan import ReleasePlan, plan_release  # noqa: E402
from undertow.release.query_plan import QueryPlan  # noqa: E402
from undertow.release.release_file import ReleaseFile, from_table, load  # noqa: E402
from undertow.release.run import ReleaseRun, run_release  # noqa: E402
from undertow.release.source import Source, open_source  # noqa: E402

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
    "Value",
    "from_table",
    "load",
    "open_source",
    "plan_release",
    "read_release",
    "release_from_mapping",
    "release_schema",
    "run_release",
]

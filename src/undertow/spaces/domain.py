"""The domains a guarantee can range over.

============== ========== ================================================
class          kind       a database is
============== ========== ================================================
`Table`        table      the sorted tuple of its records, a multiset
`Rows`         rows       a tuple of values, one per id
`Stream`       stream     a tuple of rows, one cell per time
`Graph`        graph      a frozenset of edges ``(i, j)`` with ``i < j``
`FiniteDomain` finite     whatever was listed
`MetricSpace`  metric     a point
============== ========== ================================================
"""

from __future__ import annotations

from undertow.spaces.domain_finite import (
    ENUMERATION_LIMIT,
    FiniteDomain,
    MetricSpace,
    record_order,
    require_enumerable,
    require_members,
)
from undertow.spaces.domain_graph import Edges, Graph
from undertow.spaces.domain_rows import Attributes, Rows
from undertow.spaces.domain_stream import Stream
from undertow.spaces.domain_table import Table

__all__ = [
    "ENUMERATION_LIMIT",
    "Attributes",
    "Edges",
    "FiniteDomain",
    "Graph",
    "MetricSpace",
    "Rows",
    "Stream",
    "Table",
    "record_order",
    "require_enumerable",
    "require_members",
]

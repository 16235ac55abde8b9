"""Differential privacy on complex and correlated data.

What many releases cost together, what they leak, and the noise that answers it. The
names below are loaded on first use, so that ``import undertow`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from undertow._version import __version__

if TYPE_CHECKING:
    from undertow import (
        audit,
        composition,
        correlation,
        datasets,
        errors,
        mechanisms,
        privacy,
        risk,
        spaces,
    )
    from undertow.composition import (
        Allocation,
        Claim,
        Ledger,
        Plan,
        Receipt,
        Release,
        Report,
        WindowLedger,
        allocate,
        count_release,
        degree_release,
        plan_from_document,
    )
    from undertow.privacy import (
        GDP,
        ZCDP,
        Approx,
        Bound,
        Calibration,
        Estimate,
        Loss,
        Pure,
        Witness,
        convert,
    )
    from undertow.spaces import (
        AbsoluteDifference,
        At,
        Attribute,
        Bounded,
        BoundedById,
        Cells,
        Chain,
        Clip,
        CliqueCount,
        Degree,
        Edge,
        Edit,
        Element,
        Event,
        FiniteDomain,
        FreeLunch,
        Graph,
        Group,
        Identity,
        Ids,
        IncidentEdges,
        Lipschitz,
        Local,
        Locations,
        LTrajectory,
        MetricSpace,
        Nearest,
        Node,
        Project,
        RandomBlock,
        Relation,
        RowPosition,
        Rows,
        Select,
        SortedPosition,
        Stream,
        Table,
        Times,
        Trajectory,
        Truncate,
        Unbounded,
        User,
        Users,
        VertexPairs,
        WEvent,
        Window,
        parse_granularity,
    )

__all__ = [
    "GDP",
    "ZCDP",
    "AbsoluteDifference",
    "Allocation",
    "Approx",
    "At",
    "Attribute",
    "Bound",
    "Bounded",
    "BoundedById",
    "Calibration",
    "Cells",
    "Chain",
    "Claim",
    "Clip",
    "CliqueCount",
    "Degree",
    "Edge",
    "Edit",
    "Element",
    "Estimate",
    "Event",
    "FiniteDomain",
    "FreeLunch",
    "Graph",
    "Group",
    "Identity",
    "Ids",
    "IncidentEdges",
    "LTrajectory",
    "Ledger",
    "Lipschitz",
    "Local",
    "Locations",
    "Loss",
    "MetricSpace",
    "Nearest",
    "Node",
    "Plan",
    "Project",
    "Pure",
    "RandomBlock",
    "Receipt",
    "Relation",
    "Release",
    "Report",
    "RowPosition",
    "Rows",
    "Select",
    "SortedPosition",
    "Stream",
    "Table",
    "Times",
    "Trajectory",
    "Truncate",
    "Unbounded",
    "User",
    "Users",
    "VertexPairs",
    "WEvent",
    "Window",
    "WindowLedger",
    "Witness",
    "__version__",
    "allocate",
    "audit",
    "composition",
    "convert",
    "correlation",
    "count_release",
    "datasets",
    "degree_release",
    "errors",
    "mechanisms",
    "parse_granularity",
    "plan_from_document",
    "privacy",
    "risk",
    "spaces",
]

# `ledger` and `release` need their extras, so a star import leaves them out.
_SUBPACKAGES = frozenset(
    {
        "audit",
        "composition",
        "correlation",
        "datasets",
        "errors",
        "ledger",
        "mechanisms",
        "privacy",
        "release",
        "report",
        "risk",
        "spaces",
    }
)
_HOMES = ("composition", "privacy", "spaces")


def __getattr__(name: str) -> Any:
    """Load a name on first use."""
    if name in _SUBPACKAGES:
        return importlib.import_module(f"undertow.{name}")
    if name in __all__:
        for home in _HOMES:
            module = importlib.import_module(f"undertow.{home}")
            if name in module.__all__:
                value = getattr(module, name)
                globals()[name] = value
                return value
    raise AttributeError(f"module 'undertow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)

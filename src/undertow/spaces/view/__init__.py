"""All views: the deterministic maps a release sees the data through.

========= ==========================================================================
domain    views
========= ==========================================================================
any       `Identity`, `Lipschitz`, `Chain`
tables    `Select`, `Project`, `Nearest`, `SortedPosition`, `Clip`, `Truncate`
rows      `Ids`, `RandomBlock`, `RowPosition`, `SortedPosition`, `Project`, `Clip`
streams   `At`, `Window`, `Times`, `Users`, `Cells`, `Locations`, `Clip`, `Truncate`
graphs    `Degree`, `IncidentEdges`, `VertexPairs`, `CliqueCount`
========= ==========================================================================

Every view is a pure function of the canonical database: ties, gaps and empty blocks
have a stated result. A claim about the release *on its view* is about the range of the
view, the values that it takes. Its image is a domain that contains them, and says which
units make sense there; :mod:`undertow.spaces.view.range` tells how far apart they are.
"""

from __future__ import annotations

from undertow.spaces.view.general import (
    Chain,
    Clip,
    Identity,
    Lipschitz,
    Truncate,
    declared_stretch,
    sensitivity_chain,
)
from undertow.spaces.view.graph import CliqueCount, Degree, IncidentEdges, VertexPairs
from undertow.spaces.view.stream import At, Cells, Locations, Times, Users, Window
from undertow.spaces.view.table import (
    Ids,
    Nearest,
    Project,
    RandomBlock,
    RowPosition,
    Select,
    SortedPosition,
)

__all__ = [
    "At",
    "Cells",
    "Chain",
    "Clip",
    "CliqueCount",
    "Degree",
    "Identity",
    "Ids",
    "IncidentEdges",
    "Lipschitz",
    "Locations",
    "Nearest",
    "Project",
    "RandomBlock",
    "RowPosition",
    "Select",
    "SortedPosition",
    "Times",
    "Truncate",
    "Users",
    "VertexPairs",
    "Window",
    "declared_stretch",
    "sensitivity_chain",
]

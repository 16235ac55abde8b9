"""What one protected unit is: the catalogue of granularities."""

from __future__ import annotations

from undertow.spaces.granularity.element import Element
from undertow.spaces.granularity.generic import FreeLunch, Group, Local, Relation
from undertow.spaces.granularity.graph import Edge, Node
from undertow.spaces.granularity.names import parse_granularity
from undertow.spaces.granularity.stream import Event, LTrajectory, WEvent
from undertow.spaces.granularity.table import (
    Attribute,
    Bounded,
    BoundedById,
    Edit,
    Unbounded,
)
from undertow.spaces.granularity.user import Trajectory, User

__all__ = [
    "Attribute",
    "Bounded",
    "BoundedById",
    "Edge",
    "Edit",
    "Element",
    "Event",
    "FreeLunch",
    "Group",
    "LTrajectory",
    "Local",
    "Node",
    "Relation",
    "Trajectory",
    "Unbounded",
    "User",
    "WEvent",
    "parse_granularity",
]

"""What one protected unit is: the catalogue of granularities."""

from __future__ import annotations

from undertow.spaces.unit.generic import FreeLunch, Group, Local, Relation
from undertow.spaces.unit.graph import Edge, Node
from undertow.spaces.unit.name import parse_granularity
from undertow.spaces.unit.stream import (
    Element,
    Event,
    LTrajectory,
    Trajectory,
    User,
    WEvent,
)
from undertow.spaces.unit.table import Attribute, Bounded, BoundedById, Edit, Unbounded

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

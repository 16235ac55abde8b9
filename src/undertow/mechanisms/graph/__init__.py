"""Noise on a graph: hop distances and the exponential mechanism over the nodes."""

from undertow.mechanisms.graph.exponential import GraphExponential
from undertow.mechanisms.graph.hops import (
    adjacency,
    ball_masses,
    hop_blocks,
    hop_distances,
    largest_component,
)

__all__ = [
    "GraphExponential",
    "adjacency",
    "ball_masses",
    "hop_blocks",
    "hop_distances",
    "largest_component",
]

r"""Running totals by a binary tree: every total is a sum of few noisy nodes.

The runs are numbered 1, 2, ...; run t releases one node, once: the runs t - 2^l + 1 to
t, where 2^l is the largest power of two that divides t. The total of the runs 1 to t is
the sum of the nodes of the binary digits of t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import PlanError
from undertow.spaces import Window

__all__ = ["Node", "node_view", "run_node", "running_nodes", "running_total"]


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """The runs `first` to `last`, both included, released in run `last`.

    Examples
    --------
    >>> Node(5, 8).level, str(Node(5, 8))
    (2, '5..8')
    """

    first: int
    last: int

    @property
    def level(self) -> int:
        """The level: the node covers two to this power many runs."""
        return (self.last - self.first + 1).bit_length() - 1

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


def run_node(run: int) -> Node:
    """Return the node that a run releases: the only one ending there that totals add.

    Parameters
    ----------
    run : int
        Number of the run, from 1.

    Notes
    -----
    The nodes of a total end where the binary digits of its run do: the node of a digit
    2^l ends at the sum t of that digit and all larger ones, so that 2^l is the smallest
    digit of t. Its length is thus fixed by where it ends; smaller nodes that end at t
    would be paid for and never read. The total of run t itself ends with this node.

    Examples
    --------
    >>> [str(run_node(run)) for run in (1, 2, 3, 4, 6)]
    ['1..1', '1..2', '3..3', '1..4', '5..6']
    """
    _require_run(run)
    return Node(run - (run & -run) + 1, run)


def running_nodes(run: int) -> tuple[Node, ...]:
    """Return the nodes that add up to the total of the runs 1 to `run`, in order.

    Examples
    --------
    >>> [str(node) for node in running_nodes(7)]
    ['1..4', '5..6', '7..7']
    """
    _require_run(run)
    found: list[Node] = []
    first = 1
    for level in reversed(range(run.bit_length())):
        if run >> level & 1:
            found.append(Node(first, first + 2**level - 1))
            first += 2**level
    return tuple(found)


def running_total(nodes: Mapping[str, Sequence[Any]], run: int) -> NDArray[Any]:
    """Add up the stored noisy nodes of a run's total.

    Parameters
    ----------
    nodes : mapping of str to sequence
        Noisy whole numbers of each released node, by its name, one per cell.
    run : int
        Number of the run.

    Raises
    ------
    PlanError
        If a node that the total needs was not stored.

    Examples
    --------
    >>> running_total({"1..2": [5, 1], "3..3": [2, -1]}, 3).tolist()
    [7, 0]
    """
    parts = []
    for node in running_nodes(run):
        if str(node) not in nodes:
            raise PlanError(
                f"earlier outputs must hold the runs {node} of a running total, got "
                "none; run the release for the earlier times first."
            )
        parts.append([int(k) for k in nodes[str(node)]])
    if len({len(part) for part in parts}) > 1:
        raise PlanError(
            "earlier outputs must have the same cells in every run, got different "
            "numbers of them; start a new release where keys change."
        )
    return np.asarray(np.sum(np.array(parts, dtype=np.object_), axis=0))


def node_view(node: Node, *, windows_per_run: int) -> Window:
    """Return the windows that a node reads, numbered from 0.

    Notes
    -----
    A node is an ordinary release through this view. The nodes of one level are
    disjoint and leave gaps, so that a window lies in at most one node of every level;
    the first window lies in one of each. The engine charges an event for the nodes that
    hold its window, a block of w windows and a user for every window of theirs that a
    node reads, without being told about trees.

    Examples
    --------
    >>> node_view(Node(3, 4), windows_per_run=1)
    Window(start=2, length=2)
    """
    length = (node.last - node.first + 1) * windows_per_run
    return Window((node.first - 1) * windows_per_run, length)


def _require_run(run: int) -> None:
    if run < 1:
        raise ValueError(f"run must be at least 1, got {run}.")

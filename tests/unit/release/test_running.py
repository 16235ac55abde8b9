"""Binary-tree totals: which nodes there are, and what the engine charges for them."""

from itertools import pairwise

import pytest

from undertow.composition import Plan, Release
from undertow.errors import PlanError
from undertow.privacy import Pure
from undertow.release.running import (
    Node,
    node_view,
    running_nodes,
    running_total,
    tree_nodes,
)
from undertow.spaces import Event, Stream, User, WEvent


@pytest.mark.parametrize("run", range(1, 70))
def test_the_nodes_of_a_total_cover_every_run_once_and_were_all_released(run):
    parts = running_nodes(run)
    covered = [at for node in parts for at in range(node.first, node.last + 1)]
    assert covered == list(range(1, run + 1))
    assert len(parts) == run.bit_count()
    assert all(node in tree_nodes(node.last) for node in parts)


def test_every_node_is_released_in_one_run_only():
    released = [node for run in range(1, 65) for node in tree_nodes(run)]
    assert len(released) == len(set(released)) == 2 * 64 - 1
    for run in range(1, 65):
        levels = [node.level for node in tree_nodes(run)]
        assert levels == list(range(len(levels)))


def test_a_total_adds_up_stored_nodes():
    counts = {run: [run, 10 * run] for run in range(1, 14)}
    nodes = {
        str(node): [
            sum(counts[at][cell] for at in range(node.first, node.last + 1))
            for cell in (0, 1)
        ]
        for run in range(1, 14)
        for node in tree_nodes(run)
    }
    assert running_total(nodes, 13).tolist() == [91, 910]


def test_a_missing_node_is_named():
    with pytest.raises(PlanError, match=r"hold the runs 1\.\.2"):
        running_total({"3..3": [1]}, 3)


def test_cells_that_changed_between_runs_are_refused():
    with pytest.raises(PlanError, match="same cells"):
        running_total({"1..2": [1, 2], "3..3": [1]}, 3)


def test_runs_are_numbered_from_one():
    for ask in (tree_nodes, running_nodes):
        with pytest.raises(ValueError, match="at least 1"):
            ask(0)


def test_nodes_read_whole_windows():
    assert node_view(Node(5, 8), windows_per_run=3).times == frozenset(range(12, 24))


@pytest.mark.parametrize("horizon", [1, 5, 8, 30])
def test_the_engine_charges_an_event_once_per_level_and_blocks_accordingly(horizon):
    unit = Event(add_remove=True)
    nodes = [node for run in range(1, horizon + 1) for node in tree_nodes(run)]
    plan = Plan(
        Stream(1000, horizon),
        [
            Release(
                str(node),
                Pure(1),
                unit=unit,
                view=node_view(node, windows_per_run=1),
                setting="common",
            )
            for node in nodes
        ],
    )
    levels = [
        sum(node.first <= at <= node.last for node in nodes)
        for at in range(1, horizon + 1)
    ]
    assert plan.loss(unit).loss == Pure(max(levels))
    assert plan.loss(User(add_remove=True)).loss == Pure(sum(levels))
    pairs = [a + b for a, b in pairwise(levels)] or levels
    assert plan.loss(WEvent(2)).loss == Pure(2 * max(pairs))

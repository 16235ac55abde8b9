"""Binary-tree totals: which nodes there are, and what the engine charges for them."""

from itertools import pairwise, product

import numpy as np
import pytest

from undertow.composition import Plan, Release
from undertow.errors import PlanError
from undertow.privacy import Pure
from undertow.release.plan.timeline import (
    Node,
    node_view,
    run_node,
    running_nodes,
    running_total,
)
from undertow.spaces import Event, Stream, User, WEvent


@pytest.mark.parametrize("run", range(1, 70))
def test_the_nodes_of_a_total_cover_every_run_once_and_were_all_released(run):
    parts = running_nodes(run)
    covered = [at for node in parts for at in range(node.first, node.last + 1)]
    assert covered == list(range(1, run + 1))
    assert len(parts) == run.bit_count()
    assert all(node == run_node(node.last) for node in parts)


@pytest.mark.parametrize("horizon", [1, 2, 7, 64, 100])
def test_the_nodes_that_totals_add_are_one_of_each_run_and_no_other(horizon):
    runs = range(1, horizon + 1)
    added = {node for run in runs for node in running_nodes(run)}
    released = [run_node(run) for run in runs]
    assert added == set(released)
    assert len(set(released)) == horizon
    assert [node.last for node in released] == list(runs)


def test_a_total_adds_up_stored_nodes():
    counts = {run: [run, 10 * run] for run in range(1, 14)}
    nodes = {
        str(node): [
            sum(counts[at][cell] for at in range(node.first, node.last + 1))
            for cell in (0, 1)
        ]
        for node in map(run_node, range(1, 14))
    }
    assert running_total(nodes, 13).tolist() == [91, 910]


def test_a_missing_node_is_named():
    with pytest.raises(PlanError, match=r"hold the runs 1\.\.2"):
        running_total({"3..3": [1]}, 3)


def test_cells_that_changed_between_runs_are_refused():
    with pytest.raises(PlanError, match="same cells"):
        running_total({"1..2": [1, 2], "3..3": [1]}, 3)


def test_runs_are_numbered_from_one():
    for ask in (run_node, running_nodes):
        with pytest.raises(ValueError, match="at least 1"):
            ask(0)


def test_nodes_read_whole_windows():
    assert node_view(Node(5, 8), windows_per_run=3).times == frozenset(range(12, 24))


def plan_of(nodes, horizon):
    """Return the plan of nodes that cost 1 for every event that comes or goes."""
    unit = Event(add_remove=True)
    return Plan(
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


@pytest.mark.parametrize("horizon", [1, 5, 8, 30])
def test_the_engine_charges_an_event_for_its_nodes_and_blocks_accordingly(horizon):
    nodes = [run_node(run) for run in range(1, horizon + 1)]
    plan = plan_of(nodes, horizon)
    levels = [
        sum(node.first <= at <= node.last for node in nodes)
        for at in range(1, horizon + 1)
    ]
    assert max(levels) == levels[0] == horizon.bit_length()
    assert plan.loss(Event(add_remove=True)).loss == Pure(max(levels))
    assert plan.loss(User(add_remove=True)).loss == Pure(sum(levels))
    pairs = [a + b for a, b in pairwise(levels)] or levels
    assert plan.loss(WEvent(2)).loss == Pure(2 * max(pairs))


def farthest(horizon, values, is_step):
    """Return the most that a step of one user moves the counts of all nodes.

    A user has one of the values 0 (nothing), 1 and 2 in each window, and a node counts
    those who have 1 and those who have 2.
    """
    nodes = [run_node(run) for run in range(1, horizon + 1)]
    users = [np.array(user) for user in product(values, repeat=horizon)]

    def counts(user):
        parts = [user[node.first - 1 : node.last] for node in nodes]
        return np.array([[np.sum(part == value) for value in (1, 2)] for part in parts])

    seen = [(user, counts(user)) for user in users]
    return max(
        int(np.abs(one - two).sum())
        for (before, one), (after, two) in product(seen, seen)
        if is_step(before, after)
    )


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 6])
def test_the_charge_is_the_farthest_that_any_change_moves_all_nodes(horizon):
    def apart(before, after):
        changed = np.flatnonzero(before != after)
        return changed[-1] - changed[0] + 1 if len(changed) else 0

    plan = plan_of([run_node(run) for run in range(1, horizon + 1)], horizon)
    cases = [
        (Event(add_remove=True), (0, 1), lambda old, new: apart(old, new) <= 1),
        (User(add_remove=True), (0, 1), lambda old, new: not new.any()),
        (WEvent(min(2, horizon)), (1, 2), lambda old, new: apart(old, new) <= 2),
        (WEvent(min(3, horizon)), (1, 2), lambda old, new: apart(old, new) <= 3),
    ]
    for granularity, values, is_step in cases:
        moved = farthest(horizon, values, is_step)
        assert plan.loss(granularity).loss == Pure(moved), granularity.name

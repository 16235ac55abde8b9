"""Nodes of a running sum are added up only if their steps and noise are the same."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from undertow.errors import PlanError
from undertow.ledger import BudgetLedger
from undertow.release import from_table
from undertow.release.plan import encoding as measure
from undertow.release.plan.timeline import Node, Timeline, node_view
from undertow.release.run import record as earlier

HOURLY = {
    "source": {
        "unit": "person",
        "time": "ts",
        "per": {"window": "1h"},
        "start": "2026-01-01",
        "horizon": "8h",
    },
    "promise": {"granularity": "event", "epsilon": "1"},
    "bounds": {"rows_per_unit": 1},
    "queries": [
        {
            "name": "total",
            "select": "sum",
            "column": "x",
            "low": 0,
            "high": 3,
            "running": True,
        }
    ],
}


TIMES = [dt.datetime(2026, 1, 1, hour, 5) for hour in range(3)]
TABLE = pa.table({"person": [1, 1, 1], "ts": TIMES, "x": [1.0, 2.0, 3.0]})


def opened(folder, release):
    """Make a ledger for a release."""
    plan = release.plan()
    return BudgetLedger.create(
        folder / "hourly.ledger",
        dataset="hourly",
        domain=plan.domain,
        budgets={plan.promise.granularity: plan.promise.total},
    )


def run_hours(release, ledger, *hours):
    return [
        release.run(ledger=ledger, as_of=f"2026-01-01T0{hour}:00") for hour in hours
    ]


def every_node(run):
    """Return all nodes that end at a run, which earlier versions released."""
    levels = (run & -run).bit_length()
    return tuple(Node(run - 2**level + 1, run) for level in range(levels))


def release_every_node(patch):
    """Plan and run as earlier versions did."""

    def views(timeline):
        runs = range(1, timeline.runs + 1)
        nodes = [node for run in runs for node in every_node(run)]
        return tuple(node_view(node, windows_per_run=1) for node in nodes)

    patch.setattr(Timeline, "nodes", lambda timeline: every_node(timeline.run))
    patch.setattr(Timeline, "tree_views", views)


def under_way(folder, patch, promise):
    """Return a release and its ledger after two runs of an earlier version."""
    release = from_table(TABLE, {**HOURLY, "promise": promise})
    ledger = opened(folder, release)
    with patch.context() as earlier:
        release_every_node(earlier)
        run_hours(release, ledger, 1, 2)
    return release, ledger


def test_a_running_sum_refuses_nodes_of_another_lattice(tmp_path, monkeypatch):
    release = from_table(TABLE, HOURLY)
    with opened(tmp_path, release) as ledger:
        run_hours(release, ledger, 1, 2)
        spent = ledger.history()
        monkeypatch.setattr(measure, "_SUM_RESOLUTION", 20)
        with pytest.raises(PlanError, match=r"must count in steps of .* start a new"):
            run_hours(release, ledger, 3)
        assert ledger.history() == spent
        monkeypatch.undo()
        run_hours(release, ledger, 3)


PROMISES = [{"epsilon": "1"}, {"rho": "1/2"}]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_running_sum_refuses_nodes_with_other_noise(tmp_path, monkeypatch, promise):
    promise = {"granularity": "user", **promise}
    release, ledger = under_way(tmp_path, monkeypatch, promise)
    with ledger:
        spent = ledger.history()
        with pytest.raises(PlanError) as caught:
            run_hours(release, ledger, 3)
        assert ledger.history() == spent
    mechanism = release.plan().queries[0].mechanism
    assert str(caught.value) == (
        f"the earlier runs of 'total' must carry {mechanism} in every node, got those "
        "of another version; start a new release of the running total."
    )


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_running_sum_goes_on_where_the_noise_stays(tmp_path, monkeypatch, promise):
    promise = {"granularity": "event", **promise}
    release, ledger = under_way(tmp_path, monkeypatch, promise)
    with ledger:
        (third,) = run_hours(release, ledger, 3)
    assert not third.repeated


@pytest.mark.parametrize("factor", [1 - 1e-8, 1 + 1e-8])
def test_noise_is_the_same_only_if_its_deviation_is(tmp_path, monkeypatch, factor):
    release = from_table(TABLE, HOURLY)
    with opened(tmp_path, release) as ledger:
        run_hours(release, ledger, 1, 2)
        real = earlier.read_record

        def altered(stored):
            record = real(stored)
            record["plan"]["queries"][0]["node_deviation"] *= factor
            return record

        monkeypatch.setattr(earlier, "read_record", altered)
        with pytest.raises(PlanError, match="must carry discrete Laplace noise"):
            run_hours(release, ledger, 3)

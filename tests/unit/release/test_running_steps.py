"""Nodes of a running sum are added up only if they count in the same steps."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from undertow.errors import PlanError
from undertow.ledger import BudgetLedger
from undertow.release import from_table, measure

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


def test_a_running_sum_refuses_nodes_of_another_lattice(tmp_path, monkeypatch):
    times = [dt.datetime(2026, 1, 1, hour, 5) for hour in range(3)]
    table = pa.table({"person": [1, 1, 1], "ts": times, "x": [1.0, 2.0, 3.0]})
    release = from_table(table, HOURLY)
    plan = release.plan(as_of="2026-01-01T01:00")
    with BudgetLedger.create(
        tmp_path / "hourly.ledger",
        dataset="hourly",
        domain=plan.domain,
        budgets={plan.promise.granularity: plan.promise.total},
    ) as ledger:
        for hour in (1, 2):
            release.run(ledger=ledger, as_of=f"2026-01-01T0{hour}:00")
        spent = ledger.history()
        monkeypatch.setattr(measure, "_SUM_RESOLUTION", 20)
        with pytest.raises(PlanError, match=r"must count in steps of .* start a new"):
            release.run(ledger=ledger, as_of="2026-01-01T03:00")
        assert ledger.history() == spent
        monkeypatch.undo()
        release.run(ledger=ledger, as_of="2026-01-01T03:00")

"""A run charges before it draws, stores before it writes, and never draws twice."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

import pyarrow as pa
import pytest

from support.release_documents import visits_mapping, write_visits
from undertow.errors import (
    AssumptionError,
    BudgetExceeded,
    EngineError,
    LedgerError,
    MismatchError,
    PlanError,
)
from undertow.ledger import BudgetLedger
from undertow.mechanisms import SimulatedSource
from undertow.privacy import Pure
from undertow.release import from_table, load, run_release
from undertow.release.run import protocol as run_module
from undertow.release.run.record import read_record, release_key
from undertow.spaces import Stream, User

VISITS = pa.table(
    {
        "person": [1, 1, 1, 2, 2, 3, 4, 4],
        "zone": ["A", "B", "A", "A", "A", "B", "A", None],
    }
)


@pytest.fixture
def ledger(tmp_path):
    with BudgetLedger.create(
        tmp_path / "visits.ledger",
        dataset="visits",
        domain=Stream(10**9, 1),
        budgets={User(): Pure(2)},
    ) as made:
        yield made


def test_a_run_charges_stores_and_writes(tmp_path, ledger):
    done = from_table(VISITS, visits_mapping()).run(
        ledger=ledger, output=tmp_path / "out"
    )
    assert not done.repeated
    assert ledger.remaining(User()) == Pure(1)
    with (tmp_path / "out" / "01-visits.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["zone", "estimate", "low", "high"]
    assert [row[0] for row in rows[1:]] == ["A", "B", "C"]
    assert all(int(r[2]) <= int(r[1]) <= int(r[3]) for r in rows[1:])
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["tables"][0]["sha256"] == done.files["01-visits.csv"]
    assert manifest["charge"]["number"] == 1
    modes = {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "out").iterdir()}
    assert modes == {0o600}


def test_asking_again_returns_the_same_output_for_free(ledger):
    release = from_table(VISITS, visits_mapping())
    first, second = release.run(ledger=ledger), release.run(ledger=ledger)
    assert second.repeated
    assert second.answers == first.answers
    assert ledger.remaining(User()) == Pure(1)
    assert "nothing was charged" in second.story


def test_a_repeat_is_paid_for_and_a_third_is_refused_before_the_data(ledger):
    release = from_table(VISITS, visits_mapping())
    first, second = release.run(ledger=ledger), release.run(ledger=ledger, repeat=2)
    assert not second.repeated
    assert second.charge.number != first.charge.number
    broken = from_table("no table at all", visits_mapping())
    with pytest.raises(BudgetExceeded, match="must fit the user budget"):
        broken.run(ledger=ledger, repeat=3)


def test_a_run_that_died_after_its_charge_is_finished_without_another(
    ledger, monkeypatch
):
    release = from_table(VISITS, visits_mapping())

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "run_record", killed)
        with pytest.raises(KeyboardInterrupt):
            release.run(ledger=ledger)
    assert ledger.remaining(User()) == Pure(1)
    done = release.run(ledger=ledger)
    assert done.resumed
    assert not done.repeated
    assert ledger.remaining(User()) == Pure(1)
    assert release.run(ledger=ledger).answers == done.answers


def test_files_lost_after_the_store_are_written_again(tmp_path, ledger, monkeypatch):
    release, folder = from_table(VISITS, visits_mapping()), tmp_path / "out"

    def full(*_):
        raise PlanError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "write_files", full)
        with pytest.raises(PlanError, match="disk full"):
            release.run(ledger=ledger, output=folder)
    assert not folder.exists()
    done = release.run(ledger=ledger, output=folder)
    assert done.repeated
    assert sorted(p.name for p in folder.iterdir()) == [
        "01-visits.csv",
        "manifest.json",
    ]


def test_an_engine_that_fails_costs_nothing(ledger, monkeypatch):
    def dies(*_, **__):
        raise EngineError("DuckDB must finish the query, got Fault.")

    monkeypatch.setattr(run_module, "run_jobs", dies)
    with pytest.raises(EngineError):
        from_table(VISITS, visits_mapping()).run(ledger=ledger)
    assert ledger.remaining(User()) == Pure(2)
    assert ledger.history() == []


def test_two_runs_at_once_hand_out_one_output(ledger, monkeypatch):
    release, other = from_table(VISITS, visits_mapping()), []
    store = ledger.store

    def second_is_faster(charge, output, **rest):
        if not other:
            other.append(None)
            monkeypatch.setattr(ledger, "store", store)
            other[0] = release.run(ledger=ledger)
        return store(charge, output, **rest)

    monkeypatch.setattr(ledger, "store", second_is_faster)
    slower = release.run(ledger=ledger)
    assert slower.answers == other[0].answers
    assert ledger.remaining(User()) == Pure(1)


def test_seeded_noise_is_refused(ledger):
    plan = from_table(VISITS, visits_mapping()).plan()
    with pytest.raises(AssumptionError, match="source must be secure for a release"):
        run_release(plan, ledger, table=VISITS, source=SimulatedSource(1))
    assert ledger.history() == []


def test_a_ledger_of_another_domain_is_refused(tmp_path):
    with (
        BudgetLedger.create(
            tmp_path / "x.ledger",
            dataset="x",
            domain=Stream(5, 3),
            budgets={User(): Pure(1)},
        ) as other,
        pytest.raises(MismatchError, match=r"the ledger .*x\.ledger must be made for"),
    ):
        from_table(VISITS, visits_mapping()).run(ledger=other)


def test_a_closed_charge_is_not_opened_again(ledger):
    release = from_table(VISITS, visits_mapping())
    plan = release.plan()
    charge = ledger.charge(plan.releases, key=release_key(plan))
    ledger.fail(charge, "the table was withdrawn")
    with pytest.raises(PlanError, match="the table was withdrawn; ask for repeat=2"):
        release.run(ledger=ledger)


def test_no_table_and_two_tables_are_refused(ledger):
    plan = from_table(VISITS, visits_mapping()).plan()
    with pytest.raises(PlanError, match=r"one of source\.table and table"):
        run_release(plan, ledger)


def test_where_answers_go_does_not_change_what_is_charged():
    first = from_table(VISITS, visits_mapping()).plan()
    second = from_table(VISITS, visits_mapping(output={"folder": "elsewhere"})).plan()
    other = from_table(VISITS, visits_mapping(bounds={"rows_per_unit": 3})).plan()
    assert release_key(first) == release_key(second) != release_key(other)


def test_bytes_of_another_program_are_no_record():
    for stored in (b"not json", b"[1]", b'{"format": "other"}'):
        with pytest.raises(LedgerError, match="must be a record of"):
            read_record(stored)


@pytest.fixture
def file(tmp_path) -> Path:
    return write_visits(tmp_path)


def test_a_release_without_a_ledger_makes_one_with_its_promise(file):
    done = load(file).run()
    assert done.folder == file.parent / "release"
    with BudgetLedger.open(file.parent / "visits.ledger") as made:
        assert made.budgets == {User(): Pure(1)}
        assert made.remaining(User()) == Pure(0)
    write_visits(file.parent, query={"keys": {"zone": ["A"]}})
    with pytest.raises(BudgetExceeded):
        load(file).run()


def test_the_ledger_of_another_data_set_is_refused(file):
    load(file).run()
    write_visits(file.parent, ledger={"url": "visits.ledger", "dataset": "other"})
    with pytest.raises(LedgerError, match="must be the ledger of 'other'"):
        load(file).run()


def test_a_ledger_in_no_folder_is_refused_in_one_sentence(file):
    with pytest.raises(PlanError, match="ledger must be in a folder that exists"):
        load(file).run(ledger=file.parent / "nowhere" / "x.ledger")


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
    "queries": [{"name": "total", "select": "count", "running": True}],
}


def test_running_totals_add_up_what_earlier_runs_stored(tmp_path):
    import datetime as dt

    start = dt.datetime(2026, 1, 1)
    times = [start + dt.timedelta(hours=h, minutes=5) for h in range(8)] * 400
    people = [k // 8 for k in range(3200)]
    release = from_table(pa.table({"person": people, "ts": times}), HOURLY)
    plan = release.plan(as_of="2026-01-01T01:00")
    with BudgetLedger.create(
        tmp_path / "hourly.ledger",
        dataset="hourly",
        domain=plan.domain,
        budgets={plan.promise.granularity: plan.promise.total},
    ) as ledger:
        for hour in range(1, 9):
            done = release.run(ledger=ledger, as_of=f"2026-01-01T{hour:02d}:00")
            ((estimate, low, high),) = done.answers[0]["rows"]
            assert low <= estimate <= high
            # Eight levels at most; far beyond any error of these few nodes.
            assert abs(estimate - 400 * hour) < 300
        assert ledger.losses()["event"].within(plan.promise.total)
        with pytest.raises(PlanError, match="as_of must be a time"):
            release.run(ledger=ledger, as_of="2026-01-01T09:00")


def test_a_running_total_without_its_earlier_runs_is_refused_before_a_charge(tmp_path):
    import datetime as dt

    table = pa.table({"person": [1], "ts": [dt.datetime(2026, 1, 1, 2, 5)]})
    release = from_table(table, HOURLY)
    plan = release.plan(as_of="2026-01-01T03:00")
    with BudgetLedger.create(
        tmp_path / "hourly.ledger",
        dataset="hourly",
        domain=plan.domain,
        budgets={plan.promise.granularity: plan.promise.total},
    ) as ledger:
        with pytest.raises(PlanError, match="run the release for the earlier times"):
            release.run(ledger=ledger, as_of="2026-01-01T03:00")
        assert ledger.history() == []


def test_runs_that_meet_share_one_delta(tmp_path):
    import datetime as dt

    times = [dt.datetime(2026, 1, 1, h, 5) for h in range(3)]
    people = pa.table({"person": [1, 2, 3], "ts": times})
    release = from_table(
        people,
        {
            **HOURLY,
            "promise": {"granularity": "w-event:4", "epsilon": "1", "delta": "1e-6"},
            "queries": [{"name": "seen", "select": "count"}],
        },
    )
    address = tmp_path / "hourly.ledger"
    release.create_ledger(address, as_of="2026-01-01T01:00").close()
    for hour in (1, 2, 3):
        done = release.run(ledger=address, as_of=f"2026-01-01T{hour:02d}:00")
        assert not done.repeated
    with BudgetLedger.open(address) as ledger:
        ((granularity, budget),) = ledger.budgets.items()
        spent = ledger.losses()[granularity.name]
    assert granularity.name == "w-event:4"
    assert budget.notion == "zcdp"
    # Three of the four windows that the promise is for.
    assert spent.exact_parameters()[0] * 4 == pytest.approx(
        float(budget.exact_parameters()[0]) * 3, rel=1e-6
    )


def test_the_risk_of_a_correlated_promise_is_that_of_its_leakage():
    release = from_table(
        VISITS,
        {
            "source": {"unit": "person"},
            "promise": {
                "granularity": "user",
                "epsilon": "1",
                "correlation": {"model": "blocks", "group": 4},
            },
            "threat": {"categories": 2},
            "bounds": {"rows_per_unit": 2},
            "queries": [{"name": "visits", "select": "count"}],
        },
    )
    card = release.plan().risk()
    # One of two values, even odds, moved by exp(1) at most: e / (1 + e) - 1/2.
    assert card.advantage == pytest.approx(0.23105857863, abs=1e-9)


def test_two_files_of_one_table_share_its_ledger(file):
    keys = {"zone": ["B"]}
    other = write_visits(file.parent, name="other.toml", query={"keys": keys})
    load(file).run()
    with pytest.raises(BudgetExceeded):
        load(other).run()


def test_a_table_in_memory_needs_a_ledger():
    with pytest.raises(PlanError, match="ledger must be given for a table in memory"):
        from_table(VISITS, visits_mapping()).run()


def test_the_ledger_of_one_unit_is_not_charged_for_another(ledger):
    from_table(VISITS, visits_mapping()).run(ledger=ledger)
    zones = visits_mapping(source={"unit": "zone"})
    with pytest.raises(MismatchError, match="another unit"):
        from_table(VISITS, zones).run(ledger=ledger)
    assert len(ledger.history()) == 2


@pytest.mark.parametrize(
    "change", [{"start": "2026-01-01T01:00"}, {"per": {"window": "30m"}}]
)
def test_windows_that_start_elsewhere_do_not_count_as_disjoint(tmp_path, change):
    import datetime as dt

    table = pa.table({"person": [1], "ts": [dt.datetime(2026, 1, 1, 1, 5)]})
    queries = [{"name": "seen", "select": "count"}]
    address = tmp_path / "shifted.ledger"
    source = {**HOURLY["source"], "horizon": "4h"}
    first = from_table(table, {**HOURLY, "source": source, "queries": queries})
    first.create_ledger(address, as_of="2026-01-01T02:00").close()
    first.run(ledger=address, as_of="2026-01-01T02:00")
    moved = {**source, **change}
    if "per" in change:
        moved["horizon"] = "2h"
    second = from_table(table, {**HOURLY, "source": moved, "queries": queries})
    with pytest.raises(MismatchError, match=r"another (start|window)"):
        second.run(ledger=address, as_of="2026-01-01T02:00")


def test_a_ledger_without_the_promised_granularity_is_refused(tmp_path):
    with (
        BudgetLedger.create(
            tmp_path / "x.ledger",
            dataset="x",
            domain=Stream(10**9, 1),
            budgets={User(add_remove=True): Pure(1)},
        ) as other,
        pytest.raises(AssumptionError, match="a budget at the promised granularity"),
    ):
        from_table(VISITS, visits_mapping()).run(ledger=other)


def test_distinct_units_of_rows_that_count_by_themselves_are_refused():
    release = visits_mapping(source={"unit": "person", "per": "event"}, bounds={})
    release["promise"] = {"granularity": "event", "epsilon": "1"}
    release["queries"][0]["select"] = "count_distinct"
    with pytest.raises(PlanError, match=r"must be count where source\.per"):
        from_table(VISITS, release)


@pytest.mark.parametrize("table", ["visits/*.parquet", "visits/*/part?.parquet"])
def test_a_pattern_has_the_ledger_of_its_folder(table, tmp_path):
    from undertow.release.document.release_document import read_release
    from undertow.release.run._ledger_place import ledger_address

    path = write_visits(tmp_path, source={"table": table})
    place = tmp_path / "visits" / "visits.ledger"
    assert ledger_address(read_release(path)) == str(place)
    # Where an earlier version made one beside the folder, it is found.
    (tmp_path / "visits.ledger").touch()
    assert ledger_address(read_release(path)) == str(tmp_path / "visits.ledger")

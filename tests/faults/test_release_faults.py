"""A release when things go wrong around it: the budget holds, nothing is half there."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from support.postgres import postgres_server
from support.release_documents import visits_mapping, write_visits
from undertow.errors import EngineError, PlanError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.ledger import _database as chain
from undertow.privacy import Pure
from undertow.release import from_table, load
from undertow.release.run import protocol as run_module
from undertow.release.run._folder import MANIFEST, write_files
from undertow.release.run._ledger_place import open_ledger
from undertow.spaces import Stream, User

RUN = ("release", "run", "visits.toml")
ROWS = [f"{k % 50},{'ABC'[k % 3]}" for k in range(400)]


@pytest.fixture
def folder(tmp_path):
    write_visits(tmp_path, ROWS)
    return tmp_path


def budget_of(folder: Path, epsilon: int) -> Path:
    path = folder / "visits.ledger"
    BudgetLedger.create(
        path,
        dataset="visits",
        domain=Stream(10**9, 1),
        budgets={User(): Pure(epsilon)},
    ).close()
    return path


def test_runs_that_start_at_once_share_one_ledger_charge_and_output(folder, runs):
    found = runs.run_at_once([(*RUN, "--json")] * 3, folder=folder)
    assert [each.status for each in found] == [0] * 3, found
    told = [json.loads(each.output) for each in found]
    assert all(each["answers"] == told[0]["answers"] for each in told)
    with BudgetLedger.open(folder / "visits.ledger") as ledger:
        assert [entry.kind for entry in ledger.history()] == ["charge", "output"]
        assert ledger.remaining(User()) == Pure(0)
    assert verify_ledger(folder / "visits.ledger") == []
    shown = {path.name for path in (folder / "release").iterdir()}
    assert shown == {"01-visits.csv", MANIFEST}


@pytest.mark.slow
def test_eight_runs_at_once_spend_no_more_than_there_is(folder, runs):
    path = budget_of(folder, 5)
    words = [(*RUN, "--repeat", str(k), "--output", f"out{k}") for k in range(1, 9)]
    found = runs.run_at_once(words, folder=folder)
    assert sorted(each.status for each in found) == [0] * 5 + [3] * 3, found
    for k, each in enumerate(found, start=1):
        assert (folder / f"out{k}").exists() == (each.status == 0)
        assert each.status == 0 or "must fit the user budget" in each.error
    with BudgetLedger.open(path) as ledger:
        assert ledger.remaining(User()) == Pure(0)
        assert ledger.states()["done"] == 5
    assert verify_ledger(path) == []


@pytest.mark.parametrize("room", [0, 100, 2000])
def test_a_disk_full_of_outputs_leaves_none_and_the_next_run_writes_them(
    folder, runs, room
):
    budget_of(folder, 1)
    killed = runs.run(*RUN, folder=folder, at="/_folder.write_files")
    assert killed.status == -9
    full = runs.run(*RUN, folder=folder, room=room)
    assert full.status == 2
    assert full.error.count("\n") == 1
    assert list((folder / "release").glob("*")) == []
    again = runs.run(*RUN, "--json", folder=folder)
    assert again.status == 0
    assert json.loads(again.output)["repeated"]
    assert (folder / "release" / MANIFEST).exists()


def test_a_disk_full_of_ledger_charges_nothing(folder, runs):
    path = budget_of(folder, 1)
    full = runs.run(*RUN, folder=folder, room=2000)
    assert full.status == 2
    assert "Traceback" not in full.error
    assert not (folder / "release").exists()
    with BudgetLedger.open(path) as ledger:
        assert ledger.remaining(User()) == Pure(1)
    assert runs.run(*RUN, folder=folder).status == 0


def test_a_read_only_ledger_is_one_sentence_and_nothing_is_shown(folder, runs):
    # Where only root may pass, nobody could not even look at the folder.
    place, free = (Path(tempfile.mkdtemp()) for _ in range(2))
    try:
        for path in folder.iterdir():
            shutil.copy(path, place)
        budget_of(place, 1).chmod(0o444)
        place.chmod(0o555)
        free.chmod(0o777)
        done = runs.run(*RUN, "--output", str(free / "out"), folder=place, nobody=True)
        assert done.status == 2, done.error
        assert done.error.count("\n") == 1
        assert "visits.ledger must be" in done.error
        assert list(free.iterdir()) == []
    finally:
        place.chmod(0o700)
        shutil.rmtree(place)
        shutil.rmtree(free)


@pytest.mark.parametrize("left", [b"", None])
def test_a_ledger_whose_making_was_killed_is_made_again(folder, runs, left):
    path = folder / "visits.ledger"
    if left is None:
        killed = runs.run(*RUN, folder=folder, at="/budget_ledger._require_none")
        assert killed.status == -9
    else:
        path.write_bytes(left)
    assert path.exists()
    assert runs.run(*RUN, folder=folder).status == 0
    assert verify_ledger(path) == []


def test_a_file_that_is_no_ledger_is_left_alone(folder):
    path = folder / "visits.ledger"
    path.write_bytes(b"notes of somebody")
    with pytest.raises(Exception, match=r"must be a ledger|must hold a ledger"):
        load(folder / "visits.toml").run()
    assert path.read_bytes() == b"notes of somebody"


def test_a_ledger_made_by_another_run_in_between_is_opened(folder, monkeypatch):
    path = budget_of(folder, 7)
    answers = iter([True, False])
    monkeypatch.setattr(
        "undertow.release.run._ledger_place._is_empty", lambda *_, **__: next(answers)
    )
    plan = load(folder / "visits.toml").plan()
    with open_ledger(plan, str(path)) as ledger:
        assert ledger.budgets == {User(): Pure(7)}


def test_parts_of_killed_runs_are_swept_and_those_of_living_runs_stay(tmp_path):
    names = (f".{name}.csv.0a1b2c3d4e5f.part" for name in ("dead", "alive"))
    dead, alive = (tmp_path / name for name in names)
    dead.write_bytes(b"1")
    with alive.open("wb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        write_files(tmp_path, {"a.csv": b"1"})
        assert sorted(p.name for p in tmp_path.iterdir()) == [alive.name, "a.csv"]


def test_a_kill_between_the_names_leaves_no_manifest(tmp_path, monkeypatch):
    write_files(tmp_path, {"a.csv": b"old", "b.csv": b"old", MANIFEST: b"{}"})
    replace = os.replace

    def once(source, target):
        replace(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", once)
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path, {"a.csv": b"new", "b.csv": b"new", MANIFEST: b"{}"})
    assert (tmp_path / "a.csv").read_bytes() == b"new"
    assert not (tmp_path / MANIFEST).exists()


def test_a_clock_set_back_changes_nothing_but_times(folder, monkeypatch):
    path = budget_of(folder, 2)

    class Past(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(1990, 1, 1, tzinfo=UTC)

    release = load(folder / "visits.toml")
    first = release.run()
    monkeypatch.setattr(chain, "datetime", Past)
    assert release.run().repeated
    second = release.run(repeat=2, output=folder / "second")
    assert second.charge.number > first.charge.number
    with pytest.raises(Exception, match="must fit the user budget"):
        release.run(repeat=3, output=folder / "third")
    assert verify_ledger(path) == []


def test_duckdb_out_of_memory_costs_nothing(folder, monkeypatch):
    path, real = budget_of(folder, 1), run_module.open_source
    table = pa.table({"person": [f"p{k % 30_000:040d}" for k in range(100_000)]})
    queries = [{"name": "people", "select": "count_distinct"}]
    release = from_table(table, visits_mapping(queries=queries))
    with monkeypatch.context() as patch:
        patch.setattr(
            run_module, "open_source", lambda *a, **k: real(*a, **{**k, "memory_mb": 1})
        )
        with (
            BudgetLedger.open(path) as ledger,
            pytest.raises(EngineError, match=r"DuckDB must finish the query, got \w+;"),
        ):
            release.run(ledger=ledger)
    with BudgetLedger.open(path) as ledger:
        assert ledger.history() == []
        release.run(ledger=ledger)


SLOW = """
CREATE TABLE visits AS
SELECT k % 50 AS person, 'A' AS zone FROM generate_series(1, 400) k;
CREATE VIEW slow AS SELECT person, zone FROM visits WHERE pg_sleep(0.05)::text = ''
"""


def sleeping(server) -> list[int]:
    """The sessions that are in the middle of the slow query."""
    with server.connect() as link:
        found = link.execute(
            b"SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        )
        return [pid for (pid,) in found.fetchall()]


def ends_query(server, stop):
    while not stop.wait(0.02):
        for pid in sleeping(server):
            with server.connect() as link:
                link.execute("SELECT pg_terminate_backend(%s)", [pid])


def stops_server(server, stop):
    while not stop.wait(0.02):
        if sleeping(server):
            os.kill(server.process.pid, signal.SIGQUIT)  # at once, like a crash
            return


@pytest.mark.parametrize("ending", [ends_query, stops_server])
def test_a_postgresql_that_dies_in_the_query_costs_nothing(folder, ending):
    path = budget_of(folder, 1)
    with postgres_server() as server:
        with server.connect() as link:
            link.execute(SLOW.encode())
        write_visits(folder, (), source={"table": server.url(), "relation": "slow"})
        stop = threading.Event()
        killer = threading.Thread(target=ending, args=(server, stop))
        killer.start()
        try:
            with pytest.raises(EngineError, match="PostgreSQL must finish the query"):
                load(folder / "visits.toml").run(ledger=path)
        finally:
            stop.set()
            killer.join()
    with BudgetLedger.open(path) as ledger:
        assert ledger.history() == []
        assert ledger.remaining(User()) == Pure(1)
    assert not (folder / "release").exists()


def test_a_postgresql_that_is_not_there_costs_nothing(folder):
    path = budget_of(folder, 1)
    url = "postgres://someone:hidden-word@127.0.0.1:1/postgres"
    write_visits(folder, (), source={"table": url, "relation": "visits"})
    with pytest.raises((EngineError, PlanError)) as caught:
        load(folder / "visits.toml").run(ledger=path)
    assert "hidden-word" not in str(caught.value)
    with BudgetLedger.open(path) as ledger:
        assert ledger.history() == []

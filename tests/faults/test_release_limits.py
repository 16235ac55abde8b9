"""A run ends at the limits it was given: charged, without an output, nothing left."""

from __future__ import annotations

import random
import socket
import threading
import time

import duckdb
import ibis
import pandas as pd
import pytest

from support.postgres import postgres_server
from support.release_documents import visits_mapping, write_visits
from undertow.errors import EngineError, LimitReached, PlanError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.privacy import Pure
from undertow.release import from_table, load
from undertow.release.run import _limit as limits
from undertow.release.run._limit import RunWatch, memory_of, resident_mb, time_limit_of
from undertow.release.source.table import guarded
from undertow.spaces import Stream, User

RUN = ("release", "run", "visits.toml")
ENDLESS = """
create view visits as
    with recursive e(n) as (select 1 union all select n from e)
    select n % 7 as person, 'A' as zone from e
"""
# The command, with a temporary folder of its own.
OWN = """
import tempfile
tempfile.tempdir = "temporary"
"""
MAIN = """
import undertow.cli
undertow.cli.main()
"""
CHARGED = "it is charged as entry 1 without an output"


@pytest.fixture
def folder(tmp_path):
    """A folder with a release of an endless view."""
    (tmp_path / "temporary").mkdir()
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as link:
        link.execute(ENDLESS)
    write_visits(tmp_path, source={"table": "visits.duckdb#visits"})
    return tmp_path


def check_ended(folder, ended, said=CHARGED, *, made=False):
    """One sentence, and nothing but a charge and perhaps a new ledger."""
    assert ended.status == 2, ended.error
    assert ended.output.startswith("Made a new budget of ε = 1" if made else "")
    assert ended.output.count("\n") == made
    assert said in ended.error
    assert ended.error.count("\n") == 1
    assert [*(folder / "temporary").iterdir()] == []
    assert not (folder / "release").exists()
    assert verify_ledger(folder / "visits.ledger") == []
    with BudgetLedger.open(folder / "visits.ledger") as ledger:
        assert [entry.kind for entry in ledger.history()] == ["charge"]
        assert ledger.losses() == {"user": Pure(1)}


def test_an_endless_view_ends_at_its_limit_and_is_paid_once(folder, runs):
    for made in (True, False):
        ended = runs.run(*RUN, "--time-limit", "1s", folder=folder, script=OWN + MAIN)
        check_ended(folder, ended, made=made)
    with duckdb.connect(str(folder / "visits.duckdb")) as link:
        link.execute("create or replace view visits as select 1 person, 'A' zone")
    done = load(folder / "visits.toml").run(time_limit_s=60)
    assert done.charge.repeated
    assert not done.repeated
    with BudgetLedger.open(folder / "visits.ledger") as ledger:
        assert [entry.kind for entry in ledger.history()] == ["charge", "output"]


def test_a_run_that_takes_its_limit_of_memory_is_ended(folder, runs):
    # What Python takes beside the engine.
    script = """
from undertow.release.run import _limit as limits, protocol as run
import sys
def taking(plan, opened):
    taken = []
    while True:
        taken.append(bytearray(10**6))
run._ask = taking
sys.argv += ["--memory", f"{int(limits.resident_mb()) + 250}MB"]
"""
    ended = runs.run(*RUN, folder=folder, script=OWN + script + MAIN)
    check_ended(folder, ended, "MB of memory, got more; it is charged", made=True)


def test_a_run_that_cannot_be_left_is_ended_like_a_killed_one(folder, runs):
    script = """
from undertow.release.run import _limit as limits, protocol as run
from undertow.release.run._limit import private_folder
import time
def deaf(plan, opened):
    private_folder()
    time.sleep(60)
run._ask = deaf
limits._GRACE_S = 0.3
"""
    words = (*RUN, "--time-limit", "1s")
    ended = runs.run(*words, folder=folder, script=OWN + script + MAIN)
    assert ended.status == 2
    assert "it was ended where it was" in ended.error
    assert ended.error.count("\n") == 1
    assert ended.seconds < 30
    assert [*(folder / "temporary").iterdir()] == []
    assert not (folder / "visits.ledger").exists()


@pytest.mark.parametrize("frozen", [False, True])
def test_a_query_of_postgresql_is_given_up_on_the_server(
    tmp_path, runs, monkeypatch, frozen
):
    (tmp_path / "temporary").mkdir()
    asleep = b"SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    with postgres_server() as server:
        with server.connect() as link:
            view = "SELECT 1 AS person, 'A'::text AS zone FROM pg_sleep(300)"
            link.execute(f"CREATE VIEW visits AS {view}".encode())
        url = f"{server.url()}#visits"
        path = write_visits(tmp_path, source={"table": url})
        ledger = tmp_path / "visits.ledger"
        if not frozen:
            create(ledger)
            words = (*RUN, "--ledger", ledger.name, "--time-limit", "1s")
            ended = runs.run(*words, folder=tmp_path, script=OWN + MAIN)
            check_ended(tmp_path, ended)
        else:  # a server that was reached, and answers nothing any more
            monkeypatch.setattr("psycopg.Connection.cancel", lambda self: None)
            create(ledger)
            with pytest.raises(LimitReached, match=CHARGED):
                load(path).run(ledger=ledger, time_limit_s=1)
        with server.connect() as link:
            deadline = time.monotonic() + 10
            while link.execute(asleep).fetchone() != (0,) and not frozen:
                assert time.monotonic() < deadline


def create(path):
    terms = {"domain": Stream(10**9, 1), "budgets": {User(): Pure(1)}}
    BudgetLedger.create(path, dataset="visits", **terms).close()
    return path


def test_a_server_that_never_greets_is_left_at_the_limit(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgres://u@127.0.0.1:{server.getsockname()[1]}/d#visits"
        path = write_visits(tmp_path, source={"table": url})
        with pytest.raises(LimitReached, match=CHARGED):
            load(path).run(ledger=create(tmp_path / "visits.ledger"), time_limit_s=0.5)


class Slow(str):
    """A cell that is never read to its end."""

    def encode(self, *given):
        while True:
            time.sleep(0.01)


def endless_frame():
    frame = pd.DataFrame({"person": [1], "zone": pd.Series([Slow("A")], dtype=object)})
    return frame, {"source": {"unit": "person", "types": {"zone": "text"}}}


def endless_ibis():
    connection = ibis.duckdb.connect()
    connection.raw_sql(ENDLESS)
    return connection.table("visits"), {}


@pytest.mark.parametrize("source", [endless_frame, endless_ibis])
def test_a_source_in_memory_is_left_at_the_limit_in_any_thread(tmp_path, source):
    table, parts = source()
    release = from_table(table, visits_mapping(**parts))
    place, found = create(tmp_path / "visits.ledger"), []

    def run():
        try:
            release.run(ledger=place, time_limit_s=0.5)
        except LimitReached as fault:
            found.append(str(fault))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert len(found) == 1
    assert CHARGED in found[0]
    assert verify_ledger(place) == []


def test_limits_of_any_length_leave_a_run_whole(tmp_path, monkeypatch):
    temporary, chance = tmp_path / "temporary", random.Random(5)
    warm = tmp_path / "warm" / "own"  # each beside no other ledger of the same people
    for folder in (temporary, warm):
        folder.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    write_visits(warm)
    load(warm / "visits.toml").run()
    began = time.monotonic()
    load(warm / "visits.toml").run(repeat=1)
    whole, ended = 2 * (time.monotonic() - began) + 0.2, 0
    for at in range(8):
        folder = tmp_path / f"at{at}" / "own"
        folder.mkdir(parents=True)
        release = load(write_visits(folder))
        try:
            done, said = release.run(time_limit_s=chance.uniform(0.001, 1) * whole), ""
        except LimitReached as fault:
            done, said = None, str(fault)
        if done is None:
            ended += 1
            charged = CHARGED in said
            assert charged == (folder / "visits.ledger").exists(), said
            assert charged or "nothing is charged" in said
            assert not (folder / "release").exists()
            done = release.run()
            assert done.resumed == charged
        assert not done.repeated
        assert verify_ledger(folder / "visits.ledger") == []
        assert [*temporary.iterdir()] == []
    assert 0 < ended
    assert not [t for t in threading.enumerate() if t.name == "undertow-limits"]


def test_time_in_which_noise_is_drawn_does_not_count():
    with RunWatch(time_limit_s=0.2) as watch:
        assert watch.bounded(lambda: time.sleep(0.5), timed=False) is None
        watch.bounded(lambda: None)
        with pytest.raises(LimitReached, match=r"at most 0\.2 seconds"):
            watch.bounded(endless)
        with pytest.raises(LimitReached):  # what was met stays met
            watch.bounded(lambda: None, timed=False)


def endless():
    while True:
        time.sleep(0.01)


def test_an_engine_that_uses_up_its_part_of_the_memory_met_the_limit():
    def full():
        with guarded("duckdb"):
            raise duckdb.OutOfMemoryException

    with RunWatch(memory_mb=10**6) as watch:
        with pytest.raises(LimitReached, match="at most 1000GB of memory"):
            watch.bounded(full)
    with RunWatch(time_limit_s=60) as watch, pytest.raises(EngineError):
        watch.bounded(full)


class Deaf:
    """An object whose end swallows what is raised in it."""

    def __del__(self):
        time.sleep(0.5)


def test_what_is_swallowed_at_the_end_of_an_object_is_raised_again(capsys):
    def work():
        Deaf()
        endless()

    began = time.monotonic()
    with RunWatch(time_limit_s=0.1) as watch, pytest.raises(LimitReached):
        watch.bounded(work)
    assert time.monotonic() - began < 4
    assert capsys.readouterr().err == ""


def test_faults_of_the_run_itself_stay_what_they_are():
    with RunWatch(time_limit_s=60) as watch, pytest.raises(ZeroDivisionError):
        watch.bounded(lambda: 1 / 0)


def test_too_little_memory_for_any_run_is_refused_before_the_table(tmp_path):
    path = write_visits(tmp_path)
    with pytest.raises(PlanError, match=r"memory must be at least \d+ MB for this run"):
        load(path).run(memory_mb=int(resident_mb() * 1.06) + 50)
    assert not (tmp_path / "visits.ledger").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time-limit", "1x"), "time limit must be a positive whole number"),
        (("--time-limit", "0s"), "time limit must be a positive whole number"),
        (("--memory", "6"), "memory must be a positive whole number and one of MB"),
        (("--memory", "0GB"), "memory must be a positive whole number and one of MB"),
    ],
)
def test_limits_of_another_form_are_refused(folder, runs, words, said):
    ended = runs.run(*RUN, *words, folder=folder)
    assert ended.status == 2
    assert said in ended.error
    assert ended.error.count("\n") == 1


@pytest.mark.parametrize("given", [0, -1.0, float("inf"), float("nan"), True, "1s"])
def test_time_limits_are_positive_numbers_of_seconds(given):
    with pytest.raises(PlanError, match="time_limit_s must be a positive number"):
        RunWatch(time_limit_s=given)


@pytest.mark.parametrize("given", [0, -5, 1.5, "1GB"])
def test_limits_of_memory_are_positive_whole_numbers(given):
    with pytest.raises(PlanError, match="memory_mb must be"):
        RunWatch(memory_mb=given)


def test_memory_is_limited_only_where_it_can_be_seen(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "_STATM", tmp_path / "statm")
    with pytest.raises(PlanError, match="memory can be limited on Linux alone"):
        RunWatch(memory_mb=1000)


def test_limits_are_read_in_their_units():
    assert (time_limit_of("90s"), time_limit_of("2h")) == (90, 7200)
    assert (memory_of("800MB"), memory_of("6GB")) == (800, 6000)

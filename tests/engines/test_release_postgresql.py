"""Releases on a real PostgreSQL: read only, nothing created, failures without data."""

from __future__ import annotations

import threading
import time
from typing import Any

import ibis
import psycopg
import pytest

from support.postgres import postgres_server
from undertow.errors import EngineError, PlanError
from undertow.release.engine.job import Bounding, Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source

CANARY = "canary-7f3a"
KEYS = ("A", "B", "C")
JOB = Job("zones", ("rows", "units"), by=("zone",), grid=Grid(("zone",), (KEYS,)))


@pytest.fixture(scope="module")
def url(postgres: Any) -> str:
    url = postgres.create_database("release")
    with postgres.connect("release") as connection:
        connection.execute("CREATE TABLE visits (person integer, zone text)")
        connection.execute("CREATE SCHEMA city")
        connection.execute("CREATE VIEW city.visits AS SELECT * FROM visits")
        connection.execute(
            "INSERT INTO visits SELECT n / 10, chr(65 + n % 2) FROM"
            " generate_series(0, 99) n"
        )
    return str(url)


@pytest.mark.parametrize("relation", ["visits", "city.visits"])
def test_a_table_and_a_view_are_read(url, relation):
    with open_source(f"{url}#{relation}") as source:
        assert repr(source) == "Source on PostgreSQL with 2 columns"
        [found] = run_jobs(source, [JOB], bounding=Bounding("person", 6))
    assert found.measures["rows"].sum() == 60
    assert found.measures["units"].tolist()[2] == 0


def test_the_session_cannot_write_and_nothing_is_left_behind(url, postgres):
    with open_source(f"{url}#visits") as source:
        jobs = [JOB, Job("all", ("rows",), grid=Grid((), ()))]
        run_jobs(source, jobs, bounding=Bounding("person", 6))
        connection = source.table.get_backend().con
        for query in ("DELETE FROM visits", "CREATE TEMP TABLE t (n int)"):
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                connection.execute(query)
            connection.rollback()
    with postgres.connect("release") as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relname LIKE '%undertow%'"
        )
        assert found.fetchone() == (0,)


def test_many_keys_need_no_table_on_the_server(url):
    keys = tuple(["A", *(f"k'{i}\\" for i in range(2000))])
    job = Job("q", ("rows",), by=("zone",), grid=Grid(("zone",), (keys,)))
    with open_source(f"{url}#visits") as source:
        [found] = run_jobs(source, [job])
    assert found.measures["rows"].tolist() == [50] + [0] * 2000


def test_an_ibis_table_is_taken_as_it_is(url, postgres):
    connection = ibis.postgres.connect(
        host="127.0.0.1", port=postgres.port, user="postgres", database="release"
    )
    with open_source(connection.table("visits")) as source:
        [found] = run_jobs(source, [JOB])
    connection.disconnect()
    assert found.measures["rows"].tolist() == [50, 50, 0]


def test_a_relation_that_is_not_there_is_one_sentence(url):
    with pytest.raises(PlanError, match="relation must name a table"):
        open_source(f"{url}#absent")


def test_names_and_keys_are_never_sql(url, postgres):
    evil = "x'; DROP TABLE visits; --"
    job = Job(
        "q",
        ("rows",),
        where=parse_expression("zone != '; DROP TABLE visits; --'"),
        by=("zone",),
        grid=Grid(("zone",), ((evil, "A"),)),
    )
    with open_source(f"{url}#visits") as source:
        [found] = run_jobs(source, [job])
        with pytest.raises(PlanError, match="columns must be of the table"):
            run_jobs(source, [Job("q", ("rows", "units"), by=(evil,))])
    assert found.measures["rows"].tolist() == [0, 50]
    with pytest.raises(PlanError):
        open_source(f"{url}#{evil}")
    with postgres.connect("release") as connection:
        assert connection.execute("SELECT count(*) FROM visits").fetchone() == (100,)


def test_an_error_of_the_server_shows_no_value(url, postgres):
    with postgres.connect("release") as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW broken AS SELECT 1 AS person,"
            f" (zone || '{CANARY}')::int AS zone FROM visits"
        )
    job = Job("q", ("rows",), by=("zone",), grid=Grid(("zone",), ((1,),)))
    with open_source(f"{url}#broken") as source:
        with pytest.raises(EngineError) as caught:
            run_jobs(source, [job])
        assert CANARY not in str(caught.value)
        assert caught.value.__suppress_context__


def test_a_slow_query_ends_at_the_timeout(url, postgres):
    with postgres.connect("release") as connection:
        connection.execute(
            "CREATE OR REPLACE VIEW slow AS SELECT zone FROM visits, pg_sleep(30)"
        )
    with (
        open_source(f"{url}?statement_timeout_s=1#slow") as source,
        pytest.raises(EngineError, match="PostgreSQL must finish the query"),
    ):
        run_jobs(source, [JOB])


def test_a_server_that_dies_during_a_query_is_one_sentence():
    with postgres_server() as server:
        with server.connect() as connection:
            connection.execute(
                "CREATE VIEW slow AS SELECT 'A'::text AS zone FROM pg_sleep(60)"
            )
        source = open_source(f"{server.url()}#slow")

        def stop() -> None:
            with server.connect() as connection:
                for _ in range(300):
                    busy = connection.execute(
                        "SELECT count(*) FROM pg_stat_activity"
                        " WHERE wait_event = 'PgSleep'"
                    ).fetchone()
                    if busy != (0,):
                        break
                    time.sleep(0.02)
            server.process.kill()

        killer = threading.Thread(target=stop)
        killer.start()
        with pytest.raises(EngineError, match="PostgreSQL must finish the query"):
            run_jobs(source, [JOB])
        killer.join()
        source.close()

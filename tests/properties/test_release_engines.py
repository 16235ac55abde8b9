"""The same release gives the same aggregates on every engine, and the right ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from support.postgres import PostgresServer, postgres_server
from support.release_cases import (
    COLUMNS,
    DERIVED,
    Case,
    arrow_table,
    cases,
    fill_postgres,
)
from support.release_oracle import oracle
from undertow.release.engine import run_jobs
from undertow.release.job import Aggregates
from undertow.release.source import open_source


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as running:
        yield running


def plain(found: list[Aggregates]) -> list[Any]:
    return [
        (part.cells, {name: m.tolist() for name, m in part.measures.items()})
        for part in found
    ]


def on_duckdb(case: Case) -> list[Any]:
    with open_source(arrow_table(case.rows), threads=1) as source:
        return plain(run_jobs(source, case.jobs, **case.arguments()))


def expected(case: Case) -> list[Any]:
    model = oracle(
        case.rows,
        COLUMNS,
        derived=DERIVED,
        bounding=case.bounding,
        slice=case.slice,
        key=case.key,
    )
    return model.run(case.jobs)


@settings(max_examples=25)
@given(cases())
def test_duckdb_returns_what_plain_python_does(case):
    assert on_duckdb(case) == expected(case)


@settings(max_examples=20)
@given(case=cases())
def test_postgresql_returns_what_duckdb_does(server, case):
    with server.connect() as connection:
        fill_postgres(connection, case.rows)
    with open_source(server.url() + "#visits") as source:
        found = plain(run_jobs(source, case.jobs, **case.arguments()))
    assert found == on_duckdb(case)

"""The same release gives the same aggregates on every engine, and the right ones."""

from __future__ import annotations

from typing import Any

import pytest

from support.examples import given_examples
from support.release_cases import (
    COLUMNS,
    DERIVED,
    Case,
    arrow_table,
    cases,
    fill_postgres,
)
from support.release_oracle import oracle
from undertow.release.engine.job import Aggregates
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source


@pytest.fixture(scope="module")
def url(postgres: Any) -> str:
    return str(postgres.create_database("engines"))


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


@given_examples(8, 25, cases())
def test_duckdb_returns_what_plain_python_does(case):
    assert on_duckdb(case) == expected(case)


@given_examples(5, 20, case=cases())
def test_postgresql_returns_what_duckdb_does(url, postgres, case):
    with postgres.connect("engines") as connection:
        fill_postgres(connection, case.rows)
    with open_source(url + "#visits") as source:
        found = plain(run_jobs(source, case.jobs, **case.arguments()))
    assert found == on_duckdb(case)

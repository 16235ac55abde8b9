"""Values that only PostgreSQL holds neither fail nor escape the bounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import psycopg
import pytest

from undertow.release.engine.job import Bounding, Job, Value
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source

VALUES = [
    ("timestamp", "'infinity'"),
    ("timestamp", "'-infinity'"),
    ("timestamptz", "'infinity'"),
    ("timestamp", "'20000-01-01'"),
    ("timestamp", "'4000-01-01 BC'"),
    ("date", "'infinity'"),
    ("date", "'-infinity'"),
]
"""Types and values outside of what the other engines have."""


@pytest.fixture(scope="module")
def url(postgres: Any) -> str:
    """A database of its own."""
    return str(postgres.create_database("extreme"))


def rows_kept(url: str, kind: str, value: str, job: Job, **bounds: Any) -> int:
    """Write five rows of one person, and count what is kept of them."""
    with psycopg.connect(url, autocommit=True) as link:
        link.execute("drop table if exists t")
        link.execute(f"create table t (person int, x {kind}, n int)")
        link.execute(
            f"insert into t select 1, {value}::{kind}, i from generate_series(1, 5) i"
        )
    with open_source(f"{url}#t") as source:
        [answer] = run_jobs(source, [job], bounding=Bounding("person", 2, **bounds))
    return int(answer.measures["rows"][0])


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_extreme_values_are_bounded_like_all_others(url, kind, value):
    job = Job("c", ("rows",), where=parse_expression("x is not null"))
    assert rows_kept(url, kind, value, job) == 2


@pytest.mark.parametrize("kind", ["numeric", "numeric(1000, 0)"])
@pytest.mark.parametrize("value", ["1e900", "-1e900", "'nan'"])
def test_numbers_too_large_for_a_double_are_missing_in_conditions(url, kind, value):
    job = Job("c", ("rows",), where=parse_expression("x is null"))
    assert rows_kept(url, kind, value, job) == 2


@pytest.mark.parametrize("value", ["'infinity'", "'-infinity'", "'20000-01-01'"])
def test_times_that_cannot_be_written_are_in_no_window(url, value):
    hour = 3_600_000_000
    found = rows_kept(
        url, "timestamp", value, Job("c", ("rows",)), window_us=hour, time="x"
    )
    assert found == 0


@pytest.mark.parametrize(
    ("value", "rows"), [("1e1000", 2), ("-1e1000", 2), ("'infinity'", 2), ("'nan'", 0)]
)
def test_numbers_too_large_for_a_double_are_clipped(url, value, rows):
    bounds = Value("x", Fraction(0), Fraction(10), 0)
    job = Job("s", ("sum", "rows"), value=bounds)
    assert rows_kept(url, "numeric", value, job) == rows

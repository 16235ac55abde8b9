"""What PostgreSQL's own types hold neither fails nor is misread."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import psycopg
import pytest

from undertow.errors import PlanError
from undertow.release.engine._dialect import held
from undertow.release.engine.job import Bounding, Grid, Job, Value
from undertow.release.engine.pipeline import bin_number, run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source

LETTERS = Grid(("x",), (("a", "b", "z"),))
PER_LETTER = Job("c", ("rows",), by=("x",), grid=LETTERS)


@pytest.fixture(scope="module")
def url(postgres: Any) -> str:
    """A database of its own, with an enumeration."""
    found = str(postgres.create_database("types"))
    with psycopg.connect(found, autocommit=True) as link:
        link.execute("create type letter as enum ('a', 'b')")
    return found


def rows(url: str, kind: str, values: list[str], job: Job, **asked: Any) -> list[int]:
    """Write three rows of a person for each value, and count."""
    with psycopg.connect(url, autocommit=True) as link:
        link.execute("drop table if exists t")
        link.execute(f"create table t (person int, x {kind})")
        for person, value in enumerate(values):
            row = f"select {person}, {value}::{kind} from generate_series(1, 3)"
            link.execute(f"insert into t {row}")
    with open_source(f"{url}#t") as source:
        [found] = run_jobs(source, [job], bounding=Bounding("person", 2), **asked)
    return found.measures["rows"].tolist()


@pytest.mark.parametrize("value", ["1e-400", "-1e-16000", "1e131000", "'nan'"])
def test_numbers_beyond_and_below_a_double_are_bounded(url, value):
    all_rows = Job("c", ("rows",), where=parse_expression("x is null or x > -1"))
    assert rows(url, "numeric", ["1.5", value], all_rows) == [4]


@pytest.mark.parametrize("kind", ["numeric", "numeric(10, 2)", "numeric(30, 2)"])
def test_decimals_that_are_no_numbers_are_missing(url, kind):
    values = ["'nan'", "1.5"]
    above = Job("c", ("rows",), where=parse_expression("x > 1"))
    assert rows(url, kind, values, above) == [2]
    bounds = Value("x", Fraction(0), Fraction(10), 0)
    assert rows(url, kind, values, Job("s", ("rows", "sum"), value=bounds)) == [2]
    cuts = tuple(map(Fraction, (0, 1, 2)))
    assert rows(url, kind, values, Job("h", ("rows",), bins=cuts, bin_column="x"))[
        -1
    ] == (2)


@pytest.mark.parametrize(
    "kind", ["numeric(60, 0)", "numeric(60, 39)", "numeric(50, 45)"]
)
def test_decimals_of_many_digits_are_clipped_and_cut(url, kind):
    largest = {"numeric(60, 0)": 59, "numeric(60, 39)": 20, "numeric(50, 45)": 4}[kind]
    values = ["1", f"-1e{largest}", f"1e{largest}"]
    bounds = Value("x", Fraction(0), Fraction(10), 0)
    assert rows(url, kind, values, Job("s", ("rows", "sum"), value=bounds)) == [6]
    with open_source(f"{url}#t") as source:
        number = bin_number(source.table.x, tuple(map(Fraction, (0, 1, 5000, 6000))))
        found = source.execute(source.table.select(b=number).order_by("b"))
    assert found["b"].to_pylist() == [0] * 3 + [1] * 3 + [2] * 3


def test_padded_text_is_read_without_its_padding(url):
    assert rows(url, "char(3)", ["'a'", "'a  '", "'b'"], PER_LETTER) == [4, 2, 0]
    found = rows(url, "char(3)", ["'a'"], Job("c", ("rows", "units"), by=("x",)))
    assert found == [2]
    equal = Job("c", ("rows",), where=parse_expression("length(x) = 1"))
    assert rows(url, "char(3)", ["'a'", "'abc'"], equal) == [2]


def test_enumerations_are_text(url):
    assert rows(url, "letter", ["'a'", "'b'", "'b'"], PER_LETTER) == [2, 4, 0]
    lower = Job("c", ("rows",), where=parse_expression("x = lower(x) and x != 'z'"))
    assert rows(url, "letter", ["'a'", "'b'"], lower) == [4]


def test_text_is_the_same_by_its_characters(url):
    rows(url, "text", ["'a'", "'é'", "''"], Job("c", ("rows",)))
    with open_source(f"{url}#t") as source:
        assert not source.collated
        plain = held(source.table.x, "postgres", collated=True)
        found = source.execute(source.table.select(x=source.table.x, same=plain))
    assert found["x"].to_pylist() == found["same"].to_pylist()


def test_a_database_that_takes_any_bytes_for_text_is_refused(postgres):
    with postgres.connect() as link:
        link.execute(
            "CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'"
        )
    with postgres.connect("bytes") as link:
        link.execute("CREATE TABLE t (x text)")
    with pytest.raises(PlanError, match="must have an encoding, got SQL_ASCII"):
        open_source(f"{postgres.url('bytes')}#t")

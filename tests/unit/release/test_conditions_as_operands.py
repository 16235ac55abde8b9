"""Derived truth values as keys, numbers and operands: counted as they are meant."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ibis
import pyarrow as pa
import pytest

from undertow.release.engine.job import Grid, Job, Value
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.language.meaning import Kind, to_ibis
from undertow.release.source.opening import open_source

A = [0, 0, 1, 2, 600, -3, 0, None]
TABLE = pa.table(
    {
        "a": pa.array(A, pa.int64()),
        "b": pa.array([True, False, None, True, True, False, None, False]),
    }
)
KEYS = Grid(("k",), ((True, False),))


def rows_of(table: Any, job: Job, **derived: str) -> list[int]:
    columns = {name: parse_expression(text) for name, text in derived.items()}
    with open_source(table) as source:
        [found] = run_jobs(source, [job], columns=columns)
    return found.measures[job.measures[0]].tolist()


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("a > 1", [2, 5]),
        ("a = 0", [3, 4]),
        ("not (a > 1)", [5, 2]),
        ("not b", [3, 3]),
        ("a is null", [1, 7]),
        ("a is not null", [7, 1]),
        ("a in (0, 1)", [4, 3]),
        ("a between 0 and 1", [4, 3]),
        ("(a > 1) = b", [4, 1]),
        ("(not b) = b", [0, 6]),
        ("(a > 1) is null", [1, 7]),
        ("a > 1 or b", [3, 2]),
    ],
)
def test_a_derived_truth_value_is_a_key(text, right):
    job = Job("n", ("rows",), by=("k",), grid=KEYS)
    assert rows_of(TABLE, job, k=text) == right
    found = Job("n", ("rows",), by=("k",))
    # The groups that are there, false before true.
    assert rows_of(TABLE, found, k=text) == [n for n in right[::-1] if n]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("(not (a > 1)) is null", 1),
        ("(a > 1) in (true, false)", 7),
        ("(a > 1) not in (true)", 5),
        ("(a is null) is null", 0),
        ("(a in (0, 1)) = b", 2),
        ("b = (a in (0, 1))", 2),
        ("(a between 0 and 1) != b", 3),
        ("((a > 1) or b) in (false)", 2),
    ],
)
def test_a_condition_is_an_operand_of_a_filter(text, right):
    job = Job("n", ("rows",), where=parse_expression(text))
    assert rows_of(TABLE, job) == [right]


@pytest.mark.parametrize(
    ("text", "right"), [("a > 1", 2), ("not (a > 1)", 5), ("a is null", 1)]
)
def test_a_derived_truth_value_is_a_number(text, right):
    value = Value("k", Fraction(0), Fraction(1), 0)
    assert rows_of(TABLE, Job("n", ("sum",), value=value), k=text) == [right]
    cuts = (Fraction(0), Fraction(1, 2), Fraction(1))
    bins = Job("n", ("rows",), bin_column="k", bins=cuts)
    there = 8 if text == "a is null" else 7
    assert rows_of(TABLE, bins, k=text) == [there - right, right]


def test_no_text_is_read_as_a_truth_value():
    table = pa.table({"s": ["true", "false", "x"], "t": ["true", "true", "y"]})
    job = Job("n", ("rows",), by=("k",), grid=KEYS)
    assert rows_of(table, job, k="s = t") == [1, 2]


def test_a_truth_value_that_an_ibis_table_derives_is_a_key():
    backend = ibis.duckdb.connect()
    backend.con.register("plain", TABLE)
    table = backend.table("plain")
    job = Job("n", ("rows",), by=("k",), grid=KEYS)
    assert rows_of(table.mutate(k=table.a > 1), job) == [2, 5]
    backend.disconnect()


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "pyspark"])
def test_every_engine_is_asked_for_the_same_operands(dialect):
    table = ibis.table({"a": "int64", "b": "boolean"}, name="t")
    condition = to_ibis(parse_expression("not b"), table)
    asked = table.select(x=condition.isin([True]), y=condition.isnull())
    query = "".join(str(ibis.to_sql(asked, dialect=dialect)).split()).replace("`", '"')
    assert 'COALESCE(NOT("t0"."b"))IN(TRUE)AS"x"' in query
    assert 'COALESCE(NOT("t0"."b"))ISNULLAS"y"' in query


def test_a_filter_stays_plain_so_that_engines_can_skip_rows():
    table = ibis.table({"a": "int64"}, name="t")
    condition = to_ibis(parse_expression("a = 1 and a < 2"), table, kind=Kind.BOOLEAN)
    assert "COALESCE" not in str(ibis.to_sql(table.filter(condition)))

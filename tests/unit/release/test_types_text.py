"""Text is what its characters are, whatever a collation or a declared length says."""

from __future__ import annotations

import duckdb
import ibis
import ibis.expr.operations as ibis_operations
import pyarrow as pa
import pytest

from undertow.errors import PlanError
from undertow.release.engine.job import Bounding, Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source

ZONES = ("a", "b")
BY_ZONE = Job("c", ("rows", "units"), by=("x",), grid=Grid(("x",), (ZONES,)))


@pytest.fixture
def folded(tmp_path):
    """Three people with four rows of 'a' each, after five rows of 'A' of another."""
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute("create table t (person integer, x varchar collate nocase)")
        link.execute("insert into t select 9, 'A' from range(5)")
        link.execute("insert into t select i % 3, 'a' from range(12) r(i)")
        link.execute("create view v as select * from t")
    return path


def counted(table, job=None, **asked) -> dict[str, list[int]]:
    with open_source(table) as source:
        [found] = run_jobs(source, [job or Job("c", ("rows", "units"))], **asked)
    return {name: numbers.tolist() for name, numbers in found.measures.items()}


@pytest.mark.parametrize("relation", ["t", "v"])
def test_units_of_a_collated_column_are_bounded(folded, relation):
    table = f"{folded}#{relation}"
    found = counted(table, bounding=Bounding("x", 2))
    assert found == {"rows": [4], "units": [2]}


@pytest.mark.parametrize("relation", ["t", "v"])
def test_no_row_renames_the_key_of_others(folded, relation):
    table = f"{folded}#{relation}"
    found = counted(table, BY_ZONE, bounding=Bounding("person", 3))
    assert found == {"rows": [9, 0], "units": [3, 0]}
    equal = Job("c", ("rows", "units"), where=parse_expression("x = 'a'"))
    assert counted(table, equal) == {"rows": [12], "units": [12]}


def test_a_connection_that_compares_all_text_otherwise_is_refused():
    engine = ibis.duckdb.connect()
    engine.raw_sql("CREATE TABLE t (x VARCHAR)")
    engine.raw_sql("SET default_collation = 'nocase'")
    with pytest.raises(PlanError, match=r"default collation .* must be binary"):
        open_source(engine.table("t"))


def test_an_ibis_table_of_a_collated_column_is_read_by_its_characters():
    engine = ibis.duckdb.connect()
    engine.raw_sql("CREATE TABLE t (x VARCHAR COLLATE NOCASE)")
    engine.raw_sql("INSERT INTO t VALUES ('A'), ('a'), ('a')")
    found = counted(engine.table("t"), bounding=Bounding("x", 1))
    assert found == {"rows": [2], "units": [2]}


@pytest.mark.parametrize("folded", ["who COLLATE NOCASE", "fold(who)"])
def test_a_collation_stated_by_an_expression_is_not_followed(folded):
    engine = ibis.duckdb.connect()
    engine.raw_sql("CREATE TABLE t AS SELECT 'A' AS who FROM range(5)")
    engine.raw_sql("INSERT INTO t SELECT 'a' FROM range(12)")
    if "fold(" in folded:
        engine.raw_sql("CREATE MACRO fold(x) AS CAST(x AS VARCHAR) COLLATE NOCASE")
    shape = ibis.schema({"x": "string"})
    query = f"SELECT {folded} AS x FROM t"
    table = ibis_operations.SQLQueryResult(query, shape, engine).to_expr()
    assert counted(table, bounding=Bounding("x", 2)) == {"rows": [4], "units": [2]}
    equal = Job("c", ("rows", "units"), where=parse_expression("x = 'a'"))
    assert counted(table, equal) == {"rows": [12], "units": [12]}


def test_tables_without_collations_are_read_as_they_are(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute("create table t (x varchar)")
    with open_source(path) as source:
        assert not source.collated
    with open_source(pa.table({"x": ["a"]})) as source:
        assert not source.collated


@pytest.mark.parametrize("kind", ["BIT", "UHUGEINT", "UNION(n INTEGER, t VARCHAR)"])
def test_types_that_ibis_does_not_know_are_refused_on_one_line(kind, tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute(f"create table t (x {kind}, n integer)")
    for asked in ({"bounding": Bounding("x", 1)}, {"job": BY_ZONE}):
        with pytest.raises(PlanError) as refusal:
            counted(path, **asked)
        assert "\n" not in str(refusal.value)
        assert "DataType" not in str(refusal.value)

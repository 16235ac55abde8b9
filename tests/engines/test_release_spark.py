"""Releases on a local Spark agree with DuckDB, to the last count."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from support.release_cases import arrow_table, cases
from support.spark import spark_frame
from undertow.errors import EngineError, PlanError
from undertow.release.engine._bounding import KeyedOrder
from undertow.release.engine.job import Aggregates, Bounding, Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully:FutureWarning"),
]


def plain(found: list[Aggregates]) -> list[Any]:
    return [
        (part.cells, {name: m.tolist() for name, m in part.measures.items()})
        for part in found
    ]


@settings(max_examples=20)
@given(case=cases())
def test_spark_returns_what_duckdb_does(spark, case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark_frame(spark, case.rows).createOrReplaceTempView("visits")
    with open_source("spark://local#visits") as source:
        assert source.backend == "pyspark"
        found = plain(run_jobs(source, case.jobs, **case.arguments()))
    with open_source(arrow_table(case.rows), threads=1) as source:
        assert found == plain(run_jobs(source, case.jobs, **case.arguments()))


def test_spark_gives_numbers_that_are_none_the_places_of_duckdb(spark):
    reals = [math.nan, None, math.inf, -math.inf, -0.0, 1e300, 5e-324, 0.1]
    table = pa.table({"x": pa.array(reals, pa.float64()), "i": range(len(reals))})
    rows = [tuple(row.values()) for row in table.to_pylist()]
    spark.createDataFrame(rows, "x double, i long").createOrReplaceTempView("reals")
    assert places("spark://local#reals") == places(table)


def places(table: Any) -> list[int]:
    with open_source(table) as source:
        order = KeyedOrder(("x",), bytes(range(16)), source.backend, "rows")
        found = order.placed(source.table, "place").order_by("i").select("place")
        return source.execute(found).column("place").to_pylist()


def test_spark_reads_parquet_by_url(spark, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"zone": ["A", "B", "A"]}), tmp_path / "z.parquet")
    job = Job("zones", ("rows",), by=("zone",), grid=Grid(("zone",), (("A", "C"),)))
    with open_source("spark://local#z.parquet", folder=tmp_path) as source:
        [found] = run_jobs(source, [job], bounding=Bounding(None, None))
    assert found.measures["rows"].tolist() == [2, 0]


def test_spark_says_one_sentence_about_a_table_that_is_not_there(spark):
    with pytest.raises((PlanError, EngineError)) as caught:
        open_source("spark://local#nowhere")
    assert "\n" not in str(caught.value)


class Opening:
    """What starts Spark, where a session is there already."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def appName(self, name: str) -> Opening:
        return self

    master = appName

    def config(self, name: str, value: str) -> Opening:
        self.session.conf.set(name, value)
        return self

    def getOrCreate(self) -> Any:
        return self.session


@pytest.fixture
def apart(spark, monkeypatch):
    """A session with functions of its own, which Spark would not let go again."""
    from pyspark.sql import SparkSession

    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.createDataFrame([("A",)], "zone string").createOrReplaceTempView("zones")
    monkeypatch.setattr(SparkSession, "builder", Opening(session))
    return session


def test_spark_functions_in_place_of_built_in_ones_are_refused(apart, tmp_path):
    import ibis
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"zone": ["A"]}), tmp_path / "z.parquet")
    zones = ibis.pyspark.connect(apart).table("zones")
    tables = ("spark://local#zones", "spark://local#z.parquet", zones)
    apart.udf.register("ours", lambda x: 0, "int")
    for table in tables:
        with open_source(table, folder=tmp_path) as source:
            assert list(source.columns) == ["zone"]
    apart.udf.register("MIN", lambda x: 0, "int")
    for table in tables:
        with pytest.raises(PlanError, match="got its own 'min'"):
            open_source(table, folder=tmp_path)


def test_spark_reads_keys_as_they_are_written(apart):
    import ibis

    texts = ("variable.substitute", "parser.escapedStringLiterals")
    keys = ("${env:PATH}", "${none}", "b\\s", "o'h")
    rows = [(key,) for key in keys]
    apart.createDataFrame(rows, "zone string").createOrReplaceTempView("signs")
    job = Job("signs", ("rows",), by=("zone",), grid=Grid(("zone",), (keys,)))
    for name in texts:
        apart.conf.set(f"spark.sql.{name}", "true")
    with open_source(ibis.pyspark.connect(apart).table("signs")) as source:
        [found] = run_jobs(source, [job], bounding=Bounding(None, None))
    assert found.measures["rows"].tolist() == [1, 1, 1, 1]
    assert [apart.conf.get(f"spark.sql.{name}") for name in texts] == ["true", "true"]

"""Tables open for reading only, and hostile ones are refused in one sentence."""

from __future__ import annotations

import gzip
import os
import sqlite3
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from undertow.errors import EngineError, PlanError
from undertow.release.engine.job import Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source import _file as source_files
from undertow.release.source.opening import open_source
from undertow.release.source.table import guarded

CANARY = "canary-7f3a"
JOB = Job("zones", ("rows",), by=("zone",), grid=Grid(("zone",), (("A", "B", "C"),)))
DATA = {"zone": ["A", "B", "A", None], "n": [1, 2, 3, 4]}


def counts(spec: Any, **options: Any) -> list[int]:
    with open_source(spec, **options) as source:
        assert source.backend == "duckdb"
        [found] = run_jobs(source, [JOB])
    return found.measures["rows"].tolist()


def refused(spec: Any, **options: Any) -> str:
    """Open and read; return the one sentence that says why not."""
    with pytest.raises((PlanError, EngineError)) as caught:
        counts(spec, **options)
    said = str(caught.value)
    assert "\n" not in said
    assert CANARY not in said
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return said


@pytest.mark.parametrize(
    "table",
    [
        pa.table(DATA),
        pa.RecordBatch.from_pydict(DATA),
        pd.DataFrame(DATA),
        pl.DataFrame(DATA),
        pl.LazyFrame(DATA),
        ibis.memtable(pa.table(DATA)),
    ],
    ids=["arrow", "batch", "pandas", "polars", "lazy", "ibis"],
)
def test_tables_in_memory_are_read_alike(table):
    assert counts(table) == [2, 1, 0]


def test_a_csv_file_is_read(tmp_path):
    (tmp_path / "t.csv").write_text("zone,n\nA,1\nB,2\nA,3\n,4\n")
    assert counts("t.csv", folder=tmp_path) == [2, 1, 0]


def test_a_compressed_csv_file_is_read(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"zone,n\nA,1\nB,2\nA,3\n"))
    assert counts(tmp_path / "t.csv.gz") == [2, 1, 0]


def test_parquet_is_read_as_file_pattern_and_folder(tmp_path):
    for name in ("a", "b"):
        pq.write_table(pa.table(DATA), tmp_path / f"{name}.parquet")
    assert counts(tmp_path / "a.parquet") == [2, 1, 0]
    assert counts("*.parquet", folder=tmp_path) == [4, 2, 0]
    assert counts(tmp_path) == [4, 2, 0]


def test_what_a_release_file_says_is_followed(tmp_path):
    pq.write_table(pa.table(DATA), tmp_path / "t.dat")
    spec = SimpleNamespace(table="t.dat", relation=None, format="parquet", types={})
    assert counts(spec, folder=tmp_path) == [2, 1, 0]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits (zone VARCHAR, n INTEGER)")
        connection.execute("INSERT INTO visits VALUES ('A', 1), ('B', 2), ('A', 3)")
        connection.execute("CREATE TABLE other (zone VARCHAR)")
    return path


@pytest.mark.parametrize("text", ["{}#visits", "duckdb://{}#visits"])
def test_a_duckdb_file_is_read_by_path_and_url(database, text):
    assert counts(text.format(database)) == [2, 1, 0]


def test_a_duckdb_file_is_opened_for_reading_only(database):
    with open_source(f"{database}#visits") as source, pytest.raises(duckdb.Error):
        source.table.get_backend().raw_sql("DELETE FROM visits")


def test_a_relation_that_is_not_there_is_refused(database):
    assert "relation must name a table" in refused(f"{database}#{'absent'}")
    assert "relation must name a table" in refused(database)


def test_an_sqlite_file_is_read_by_declared_types(tmp_path):
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE t (zone TEXT, n INTEGER, at TIMESTAMP, ok BOOLEAN)")
        row = ("A", 1, "2026-01-01 10:00:00", 1)
        file.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [row, ("B", *row[1:])])
    file.close()
    assert counts(path) == [1, 1, 0]
    with open_source(path) as source:
        kinds = [str(kind) for kind in source.table.schema().types]
    assert kinds == ["string", "int64", "timestamp(6)", "boolean"]


def test_an_sqlite_value_of_another_type_is_missing(tmp_path):
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE t (zone TEXT, n INTEGER)")
        file.execute("INSERT INTO t VALUES ('A', ?)", (CANARY,))
    file.close()
    with open_source(path) as source:
        assert source.execute(source.table)["n"].to_pylist() == [None]


def hostile(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    contents = {
        "latin.csv": f"zone,n\xe9\n{CANARY},1\n".encode("latin-1") * 3,
        "late.csv": b"zone,n\n" + b"A,1\n" * 150_000 + f"B,{CANARY}\n".encode(),
        "binary.csv": bytes(range(256)) * 8,
        "empty.csv": b"",
        "text.parquet": CANARY.encode() * 50,
        "text.duckdb": CANARY.encode() * 500,
        "cut.csv.gz": gzip.compress(b"zone,n\nA,1\n" * 1000)[:50],
        "text.csv.gz": CANARY.encode() * 10,
        "text.zip": b"PK\3\4",
    }
    path.write_bytes(contents[name])
    return path


@pytest.mark.parametrize(
    "name",
    [
        "latin.csv",
        "binary.csv",
        "empty.csv",
        "text.parquet",
        "text.duckdb",
        "cut.csv.gz",
        "text.csv.gz",
        "text.zip",
    ],
)
def test_a_hostile_file_is_refused_in_one_sentence(tmp_path, name):
    said = refused(hostile(tmp_path, name))
    assert str(tmp_path) not in said


def test_a_late_value_of_another_type_is_missing_and_changes_no_other(tmp_path):
    job = Job("n", ("rows",), by=("n",), grid=Grid(("n",), ((1, 2),)))
    path = hostile(tmp_path, "late.csv")
    with open_source(path, types={"n": "int"}) as source:
        [found] = run_jobs(source, [job])
    assert found.measures["rows"].tolist() == [150_000, 0]


def test_a_cell_with_nul_bytes_is_text_like_any_other(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"zone,n\nA\0,1\nA,2\n")
    assert counts(tmp_path / "t.csv") == [1, 0, 0]


@pytest.mark.parametrize("text", ["absent.csv", "*.csv", "", "a\0.csv"])
def test_a_file_that_is_not_there_is_refused(tmp_path, text):
    assert "table must name" in refused(text, folder=tmp_path)


def test_a_folder_without_tables_is_refused(tmp_path):
    assert "which has none" in refused(tmp_path)


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "regular file" in refused(tmp_path / "pipe.csv")


@pytest.mark.parametrize("value", [3, {"zone": ["A"]}, object])
def test_an_object_that_is_no_table_is_refused(value):
    assert "table must be a pandas" in refused(value)


@pytest.mark.parametrize(
    "column",
    [pd.Series([1, 2]), pl.Series([1, 2]), pa.chunked_array([[1, 2]])],
    ids=["pandas", "polars", "arrow"],
)
def test_a_single_column_is_no_table(column):
    said = refused(column)
    assert f"got {type(column).__name__}" in said
    assert ("to_frame" in said) == hasattr(column, "to_frame")


@pytest.mark.parametrize("value", [0, 1.5, "5", True])
@pytest.mark.parametrize("name", ["memory_mb", "threads"])
def test_limits_that_are_no_counts_are_refused_in_one_sentence(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be a whole number of at least"):
        open_source(pa.table(DATA), **{name: value})


def test_a_pandas_column_of_mixed_types_is_refused_without_its_values():
    refused(pd.DataFrame({"zone": [1, CANARY], "n": [1, CANARY]}))


def test_an_unknown_scheme_and_its_password_are_not_repeated():
    said = refused("mysql://user:canary-7f3a@host/db#t")
    assert "duckdb://" in said


def test_a_server_that_is_not_there_is_one_sentence_without_the_password():
    url = f"postgres://user:{CANARY}@127.0.0.1:1/db?connect_timeout=2#t"
    assert "PostgreSQL must be reachable" in refused(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u@h:port/db#t",
        "postgres://u@h/db?evil=1#t",
        "postgres://u@h/db",
        "postgres://u@h/db?statement_timeout_s=1;drop#t",
    ],
)
def test_a_malformed_url_is_refused(url):
    refused(url)


def test_duckdb_can_touch_no_other_file_once_the_table_is_open(tmp_path):
    for name in ("a", "b"):
        pq.write_table(pa.table(DATA), tmp_path / f"{name}.parquet")
    with open_source(tmp_path / "a.parquet") as source:
        engine = source.table.get_backend()
        for query in (
            f"SELECT * FROM read_parquet('{tmp_path / 'b.parquet'}')",
            f"ATTACH '{tmp_path / 'new.duckdb'}'",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ):
            with pytest.raises(duckdb.Error):
                engine.raw_sql(query)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_spilled_data_lies_in_a_private_folder_that_is_removed():
    with open_source(pa.table(DATA), memory_mb=200, threads=1) as source:
        [(folder, memory)] = (
            source.table.get_backend()
            .raw_sql(
                "SELECT current_setting('temp_directory'),"
                " current_setting('memory_limit')"
            )
            .fetchall()
        )
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
        assert "MiB" in memory
    assert not Path(folder).exists()


def test_limits_are_positive_and_bounded_by_default():
    assert 64 <= source_files.Limits.of(None, None).memory_mb <= 3000
    with pytest.raises(
        ValueError, match="memory_mb must be a whole number of at least 1"
    ):
        source_files.Limits.of(0, None)


def test_a_source_shows_no_data_and_closes_twice():
    source = open_source(pa.table({CANARY: [1]}))
    assert repr(source) == "Source on DuckDB with 1 columns"
    source.close()
    source.close()


@pytest.mark.parametrize("target", ["nowhere", "a.csv", "b.csv"])
def test_a_link_that_leads_nowhere_is_no_table(tmp_path, target):
    (tmp_path / "a.csv").symlink_to(tmp_path / target)
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    for name in ("a.csv", "b.csv"):
        with pytest.raises(PlanError, match=r"must name a file, got .*, a link to n"):
            open_source(name, folder=tmp_path)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (duckdb.OutOfMemoryException, "OutOfMemoryException"),
        (duckdb.IOException, "IOException"),
        (psycopg.OperationalError, "OperationalError"),
        (psycopg.errors.QueryCanceled, "QueryCanceled"),
        (duckdb.ConversionException, "an error"),
        (duckdb.OutOfRangeException, "an error"),
        (psycopg.errors.NumericValueOutOfRange, "an error"),
        (pa.ArrowInvalid, "an error"),
        (UnicodeDecodeError, "an error"),
        (ValueError, "an error"),
    ],
)
def test_only_faults_of_the_machine_are_told_by_their_kind(fault, said):
    words = ("utf-8", b"x", 0, 1, CANARY) if fault is UnicodeDecodeError else (CANARY,)
    with pytest.raises(EngineError) as caught, guarded("duckdb"):
        raise fault(*words)
    assert f"DuckDB must finish the query, got {said};" in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_file_that_is_written_to_after_it_was_opened_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zone,n\nA,1\n")
    with open_source(path) as source:
        path.write_text("zone,n\nA,1,2,3\nA,4\n")
        with pytest.raises(EngineError, match="must stay as it is"):
            run_jobs(source, [JOB])


@pytest.mark.parametrize("types", [{"n": "decimal"}, {3: "int"}, {"n": None}])
def test_types_that_are_none_are_refused(types):
    assert "types must map names of columns to bool" in refused("t.csv", types=types)

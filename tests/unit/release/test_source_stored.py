"""Bounds hold for tables that give other rows to every statement."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import duckdb
import ibis
import pytest

from undertow.errors import PlanError
from undertow.release.engine.job import Bounding, Grid, Job, Slice
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source
from undertow.release.source.table import Source

PEOPLE, COPIES, MOST = 20, 100, 3
DATA = f"select i % {PEOPLE} as p, i as x from range({PEOPLE * COPIES}) r(i)"
GRID = Grid(("p",), (tuple(range(PEOPLE)),))
ROWS = Job("rows", ("rows",), by=("p",), grid=GRID)
IN_CELLS = Job("cells", ("rows",), by=("p",), grid=GRID, rows_per_group=MOST)
SAMPLES = {
    "random": "select * from v where random() < 0.1",
    "sample": "select * from v using sample 10 percent (bernoulli)",
    "macro": "select * from v where luck() < 0.1",
    "time": "select * from v where (epoch_us(get_current_timestamp()) + x) % 7 = 0",
}


def most_rows(source: Source, *jobs: Job, rows: int | None = MOST, **more: Any) -> int:
    """Return the most rows of one unit that any job counts."""
    found = run_jobs(source, jobs, bounding=Bounding("p", rows), **more)
    return max(int(max(answer.measures["rows"])) for answer in found)


def copies(source: Source, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Collect the columns of what is kept on the engine from now on."""
    seen: list[tuple[str, ...]] = []
    kept = source.kept

    def watched(table: Any) -> Any:
        seen.append(tuple(table.columns))
        return kept(table)

    monkeypatch.setattr(source, "kept", watched)
    return seen


@pytest.fixture
def link():
    engine = ibis.duckdb.connect()
    engine.raw_sql(f"create table v as {DATA}")
    engine.raw_sql("create macro luck() as random()")
    yield engine
    engine.disconnect()


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_view_of_a_duckdb_file_that_samples_is_bounded(sample, tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as file:
        file.execute(f"create table v as {DATA}")
        file.execute("create macro luck() as random()")
        file.execute(f"create view w as {sample}")
    for _ in range(3):
        with open_source(f"{path}#w") as source:
            assert 1 <= most_rows(source, ROWS, IN_CELLS) <= MOST


@pytest.mark.parametrize(("job", "rows"), [(ROWS, MOST), (IN_CELLS, None)])
def test_an_expression_that_samples_is_bounded(link, job, rows):
    table = link.table("v").filter(ibis.random() < 0.1)
    for _ in range(3):
        with open_source(table) as source:
            assert 1 <= most_rows(source, job, rows=rows) <= MOST


def test_an_expression_that_draws_times_is_cut_and_bounded(link):
    moment = ibis.literal("2026-01-01T00:00:00").cast("timestamp")
    hours = (ibis.random() * 48).floor().cast("int64")
    table = link.table("v").mutate(ts=moment + hours.as_interval("h"))
    start = 1_767_225_600_000_000
    part = Slice("ts", start, start + 6 * 3_600_000_000)
    with open_source(table) as source:
        assert 1 <= most_rows(source, ROWS, slice=part) <= MOST


def test_only_what_is_used_is_copied_and_nothing_is_left(link, monkeypatch):
    with open_source(link.table("v").filter(ibis.random() < 0.1)) as source:
        seen = copies(source, monkeypatch)
        most_rows(source, ROWS)
    assert seen[0] == ("p",)
    left = link.raw_sql("select table_name from duckdb_tables()").fetchall()
    assert left == [("v",)]


def test_nothing_is_copied_where_nothing_is_bounded(link, monkeypatch):
    with open_source(link.table("v").filter(ibis.random() < 0.1)) as source:
        seen = copies(source, monkeypatch)
        run_jobs(source, [ROWS])
        run_jobs(source, [ROWS], bounding=Bounding("p", None))
    assert seen == []


def opened(kind: str, link: Any, folder: Any) -> Any:
    """Return something that is stored, in one of the ways to state it."""
    table, path = link.table("v"), folder / f"it's a (file).{kind}"
    if kind == "table":
        return table
    if kind == "duckdb":
        with duckdb.connect(str(path)) as file:
            file.execute(f"create table v as {DATA}")
        return path
    getattr(table, f"to_{kind}")(path)
    return path


@pytest.mark.parametrize("kind", ["table", "duckdb", "parquet", "csv"])
def test_what_is_stored_is_not_copied(kind, link, tmp_path, monkeypatch):
    with open_source(opened(kind, link, tmp_path)) as source:
        assert source.stored
        seen = copies(source, monkeypatch)
        job = Job("n", ("rows",))
        found = run_jobs(source, [job], bounding=Bounding("p", COPIES))
    assert found[0].measures["rows"].tolist() == [PEOPLE * COPIES]
    with open_source(link.table("v").filter(ibis._.p >= 0)) as source:
        assert not source.stored
        more = copies(source, monkeypatch)
        run_jobs(source, [job], bounding=Bounding("p", COPIES))
    # What bounding keeps, but not the rows themselves.
    assert len(seen) == len(more) - 1


def test_files_that_ibis_reads_are_stored_and_views_of_them_are_not(link, tmp_path):
    path, read = opened("parquet", link, tmp_path), link.read_parquet
    text = str(path).replace("'", "''")
    link.raw_sql(
        f"create view w as select * from read_parquet('{text}') where (random() < 0.5)"
    )
    for table in (read(path), read([path, path]), read(path, table_name="my files")):
        assert open_source(table).stored
    assert not open_source(link.table("w")).stored
    assert not open_source(read(path).filter(ibis.random() < 0.5)).stored


@pytest.mark.parametrize(
    "made",
    [
        "create table w (p integer, r double generated always as (random()))",
        "create temp view w as select * from v",
        "create view w as from v",
    ],
    ids=["generated", "temporary", "view"],
)
def test_what_is_computed_is_not_stored(link, made):
    link.raw_sql(made)
    assert not open_source(link.table("w")).stored
    assert not open_source(link.table("v").limit(5)).stored


def test_a_view_that_hides_a_table_is_not_stored(link):
    link.raw_sql("create temp view V as select * from memory.main.v")
    assert not open_source(link.table("v")).stored


@pytest.fixture(scope="module")
def url(postgres):
    where = str(postgres.create_database("stored"))
    with postgres.connect("stored") as link:
        link.execute(
            f"create table v as select i % {PEOPLE} as p, i as x"
            f" from generate_series(0, {PEOPLE * COPIES - 1}) r(i)"
        )
        link.execute("create view w as select * from v where random() < 0.02")
        link.execute('create view "w\'s" as select * from v')
        link.execute("create materialized view m as select * from v")
        link.execute("create schema other")
        link.execute("create view other.v as select * from public.v")
    return where


@pytest.mark.parametrize("jobs", [[ROWS], [IN_CELLS], [ROWS, IN_CELLS]])
def test_a_view_of_postgresql_that_samples_is_bounded(url, jobs):
    for _ in range(3):
        with open_source(f"{url}#w") as source:
            assert 1 <= most_rows(source, *jobs) <= MOST


def test_a_view_of_postgresql_is_read_at_one_place_of_one_statement(url, monkeypatch):
    with open_source(f"{url}#w") as source:
        execute, seen = source.execute, []

        def watched(table: Any) -> Any:
            seen.append(str(ibis.to_sql(table, dialect="postgres")).count('"w"'))
            return execute(table)

        monkeypatch.setattr(source, "execute", watched)
        most_rows(source, ROWS)
    assert seen == [1]


@pytest.mark.parametrize(
    ("name", "stored"),
    [("v", True), ("m", True), ("w", False), ("w's", False), ("other.v", False)],
)
def test_views_of_postgresql_are_known(url, name, stored):
    with open_source(f"{url}#{quote(name)}") as source:
        assert source.stored is stored
        with open_source(source.table) as same:
            assert same.stored is stored
        with open_source(source.table.filter(source.table.p > 0)) as less:
            assert not less.stored


def viewed(engine, query):
    engine.raw_sql(f"CREATE VIEW inner_view AS {query}")
    return engine.table("inner_view")


@pytest.mark.parametrize(
    "made",
    [
        lambda engine, path: engine.read_csv(path),
        lambda engine, path: engine.read_csv(path).filter(ibis._.x > 0),
        lambda engine, path: viewed(engine, f"SELECT x FROM '{path}'"),
        lambda engine, path: engine.read_json(path.replace("csv", "json")),
    ],
    ids=["file", "expression", "view", "json"],
)
def test_a_table_whose_types_are_guessed_from_rows_is_refused(link, tmp_path, made):
    (tmp_path / "t.csv").write_text("x\n1\n2\n")
    (tmp_path / "t.json").write_text('{"x": 1}\n')
    table = made(link, str(tmp_path / "t.csv"))
    view = link.create_view("other", table)
    for some in (table, view, view.count().as_table()):
        with pytest.raises(PlanError, match="must not read CSV or JSON"):
            open_source(some)
    with open_source(link.create_table("copied", table)) as source:
        assert source.stored

"""Files of one table: each read once, by what is in them, whatever holds them."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from undertow.errors import EngineError, PlanError
from undertow.release.engine.job import Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source
from undertow.release.source.table import Source

TOTAL = Job("all", ("rows",), grid=Grid((), ()))
LOCK = (
    "import sqlite3, sys\n"
    "link = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
    "try:\n    link.execute('BEGIN IMMEDIATE')\n"
    "except sqlite3.OperationalError:\n    sys.exit(7)\n"
)


def write(path: Path, **columns: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)
    return path


def count(source: Source) -> int:
    [found] = run_jobs(source, [TOTAL])
    return int(found.measures["rows"][0])


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
@pytest.mark.parametrize("named", ["", "*.parquet"], ids=["folder", "pattern"])
def test_a_file_of_two_names_is_not_counted_twice(tmp_path, link, named):
    first = write(tmp_path / "visits" / "2026-01.parquet", zone=["A", "B"])
    link(first, first.with_name("latest.parquet"))
    with pytest.raises(PlanError, match=r"name each file once, got latest\.pa"):
        open_source(str(first.parent / named))


def test_an_alias_of_one_file_is_that_file(tmp_path):
    file = write(tmp_path / "visits.parquet", zone=["A", "B"])
    os.symlink(file, tmp_path / "alias.parquet")
    with open_source(tmp_path / "alias.parquet") as source:
        assert count(source) == 2


@pytest.mark.parametrize("zones", [["1", "2"], ["1", "A"]])
def test_what_folders_state_is_text_whichever_folders_there_are(tmp_path, zones):
    for zone in zones:
        write(tmp_path / "t" / f"zone={zone}" / "x.parquet", person=[1, 2])
    keys = tuple(zones)
    job = Job("q", ("rows",), by=("zone",), grid=Grid(("zone",), (keys,)))
    for named in ("t", "t/*/x.parquet"):
        with open_source(tmp_path / named) as source:
            assert str(source.table.schema()["zone"]) == "string"
            [found] = run_jobs(source, [job])
        assert found.measures["rows"].tolist() == [2, 2]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_folder_of_a_file_does_not_replace_its_columns(tmp_path, ending):
    folder = tmp_path / "person=7"
    file = write(folder / "x.parquet", person=["1", "2", "3"])
    if ending == "csv":
        file = file.with_suffix(".csv")
        file.write_text("person\n1\n2\n3\n", encoding="utf-8")
    with open_source(file) as source:
        found = source.execute(source.table).to_pydict()
    assert sorted(found["person"]) == ["1", "2", "3"]


def test_a_column_of_both_files_and_folders_is_refused(tmp_path):
    write(tmp_path / "person=7" / "x.parquet", person=[1, 2])
    with pytest.raises(PlanError, match="the files and their folders must have diff"):
        open_source(tmp_path)


def test_folders_that_state_other_columns_are_refused(tmp_path):
    write(tmp_path / "year=2026" / "x.parquet", person=[1])
    write(tmp_path / "month=1" / "x.parquet", person=[1])
    with pytest.raises(PlanError, match="folders of a table must state the same"):
        open_source(tmp_path)


@pytest.mark.slow
def test_line_breaks_in_quotes_end_no_row_of_a_large_file(tmp_path):
    # Every line of the text would be a row by itself, wherever reading starts.
    text = "\n".join(["9,evil"] * 5000)
    people = 1100  # 38 MB: more than DuckDB reads in one piece
    with (tmp_path / "t.csv").open("w", encoding="utf-8") as file:
        file.write("person,text\n")
        file.writelines(f'{n},"{text}"\n' for n in range(100, 100 + people))
    with open_source(tmp_path / "t.csv", threads=4) as source:
        assert count(source) == people


def test_a_csv_file_is_read_from_its_beginning_to_its_end(tmp_path):
    (tmp_path / "t.csv").write_text("person\n1\n", encoding="utf-8")
    with open_source(tmp_path / "t.csv") as source:
        query = "SELECT sql FROM duckdb_views() WHERE view_name = 'undertow_source'"
        [[made]] = source.table.get_backend().con.execute(query).fetchall()
    assert "parallel = false" in made.replace('"', "")


@pytest.mark.parametrize("text", ["\nperson,zone\n1,A\n", "\r\n\r\nperson\r\n1\r\n"])
def test_names_below_an_empty_line_are_not_a_row(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    with pytest.raises(PlanError, match="must name its columns, got an empty one"):
        open_source(tmp_path / "t.csv")
    (tmp_path / "s.csv").write_text(text.lstrip(), encoding="utf-8", newline="")
    with pytest.raises(PlanError, match=r"t\.csv must name its columns, got an empty"):
        open_source(tmp_path / "*.csv")


def test_a_file_that_is_removed_meanwhile_is_one_sentence(tmp_path, monkeypatch):
    path = write(tmp_path / "t.parquet", zone=["A"])
    with open_source(path) as source:
        execute = source.execute

        def removing(table: object) -> object:
            found = execute(table)
            path.unlink()
            return found

        monkeypatch.setattr(source, "execute", removing)
        with pytest.raises(EngineError, match="must stay as it is while it is read"):
            count(source)


def test_reading_an_sqlite_file_takes_no_locks_from_who_writes_to_it(tmp_path):
    path = tmp_path / "t.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE visits (person INTEGER)")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO visits VALUES (1)")
    with open_source(path) as source:
        assert count(source) == 0
    other = subprocess.run([sys.executable, "-c", LOCK, str(path)], check=False)
    writer.close()
    assert other.returncode == 7


def test_a_database_file_is_known_by_what_it_is(tmp_path):
    with duckdb.connect(str(tmp_path / "a.db")) as link:
        link.execute("CREATE TABLE visits AS SELECT 1 AS person")
    with open_source(tmp_path / "a.db") as source:
        assert count(source) == 1
    (tmp_path / "b.db").touch()
    with pytest.raises(PlanError, match=r"b\.db must be a DuckDB file"):
        open_source(tmp_path / "b.db")
    (tmp_path / "c.db").write_bytes(b"neither" * 1000)
    with pytest.raises(PlanError, match=r"c\.db must be a DuckDB file"):
        open_source(tmp_path / "c.db")


def test_an_sqlite_file_that_is_locked_is_not_called_damaged(tmp_path, monkeypatch):
    path = tmp_path / "t.sqlite"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE visits (person INTEGER)")
    writer.execute("BEGIN EXCLUSIVE")
    connect = sqlite3.connect

    def impatient(*args: object, **options: object) -> sqlite3.Connection:
        return connect(*args, **{**options, "timeout": 0})  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(sqlite3, "connect", impatient)
    with pytest.raises(PlanError, match="written to by others, try again"):
        open_source(path)
    writer.close()

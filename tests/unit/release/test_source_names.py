"""Columns that the engine would take for one are refused before a row is used."""

from __future__ import annotations

import gzip
import re
import tomllib

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from undertow.errors import PlanError
from undertow.release import from_table, load
from undertow.release.document._error import types_entry
from undertow.release.engine.job import Bounding, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source import _place as source_paths
from undertow.release.source.opening import open_source

TWICE = {
    "same": ["zone", "n", "zone"],
    "case": ["zone", "n", "ZONE"],
    "spaces": ["zone", "n", " zone "],
}
SAID = r"must have different names, .*, got one name for columns 1 and 3; rename one\.$"


def arrow_table(names):
    return pa.Table.from_arrays([pa.array([at]) for at in range(len(names))], names)


@pytest.fixture(params=list(TWICE), ids=str)
def names(request):
    return TWICE[request.param]


def test_a_csv_file_that_names_two_columns_alike_is_refused(tmp_path, names):
    text = ",".join(f'"{name}"' for name in names) + "\nsecret,1,2\n"
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    for file in ("t.csv", "t.csv.gz"):
        with pytest.raises(PlanError, match=SAID) as caught:
            open_source(tmp_path / file)
        assert str(caught.value).startswith(f"the columns of {file} must")
        assert "zone" not in str(caught.value).lower()


def test_a_first_line_of_data_is_not_repeated(tmp_path):
    (tmp_path / "t.csv").write_text("4711,5,4711\n4712,6,7\n")
    with pytest.raises(PlanError, match=SAID) as caught:
        open_source(tmp_path / "t.csv")
    assert "4711" not in str(caught.value)


def test_any_parquet_file_that_names_two_columns_alike_is_refused(tmp_path, names):
    pq.write_table(arrow_table(["zone", "n"]), tmp_path / "a.parquet")
    pq.write_table(arrow_table(names), tmp_path / "b.parquet")
    for spec in ("b.parquet", "*.parquet"):
        with pytest.raises(PlanError, match=SAID):
            open_source(spec, folder=tmp_path)
    with open_source("a.parquet", folder=tmp_path) as source:
        assert source.columns == ("zone", "n")


def test_a_table_in_memory_that_names_two_columns_alike_is_refused(names):
    arrow = arrow_table(names)
    frame = pd.DataFrame([[1, 2, 3]], columns=names)
    tables = [arrow, arrow.to_batches()[0], frame]
    if len(set(names)) == 3:  # Polars has no columns of quite the same name
        tables += [pl.from_arrow(arrow), pl.from_arrow(arrow).lazy()]
    for table in tables:
        with pytest.raises(PlanError, match=SAID):
            open_source(table)


@pytest.mark.parametrize(
    "header", ["zone,zone_1,n", "Ä,ä,n", 'a,"",n', "zone, zones,n", '"a,b",a,b']
)
def test_names_that_differ_are_read_as_written(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}\n1,2,3\n", encoding="utf-8")
    with open_source(tmp_path / "t.csv") as source:
        assert len(source.columns) == 3
        assert source.execute(source.table).num_rows == 1


def test_a_mark_of_encoding_and_empty_lines_do_not_hide_the_names(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfzone,n,zone\nA,1,2\n")
    with pytest.raises(PlanError, match=SAID):
        open_source(tmp_path / "t.csv")


NAMES = [
    *"a1 a[1] *.x ?.x {a,b} a ! -lead k=v %41 #1 ~ $HOME ' \" ` ; ü [!a] ]a[".split(),
    *["\\", "a\\[b]", "\\.", "a b", "\n"],
]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_every_file_is_read_once_whatever_its_name(tmp_path, ending):
    folder = tmp_path / "a folder [1]*"
    (tmp_path / "a folder 1").mkdir()
    folder.mkdir()
    for number, name in enumerate(NAMES):
        path = folder / f"{name}{ending}"
        if ending == ".parquet":
            pq.write_table(pa.table({"x": [str(number)]}), path)
        else:
            text = f"x\n{number}\n".encode()
            path.write_bytes(gzip.compress(text) if ending == ".csv.gz" else text)
    wanted = sorted(map(str, range(len(NAMES))))
    for text in (f"*{ending}", f"{folder}/*{ending}", f"../{folder.name}/*{ending}"):
        with open_source(text, folder=folder) as source:
            found = source.execute(source.table)["x"].to_pylist()
        assert sorted(found) == wanted
    for number, name in enumerate(NAMES):
        with open_source(f"{name}{ending}", folder=folder) as source:
            assert source.execute(source.table)["x"].to_pylist() == [str(number)]


def test_what_duckdb_takes_for_another_file_is_refused(tmp_path, monkeypatch):
    for name in ("a1.csv", "a[1].csv"):
        (tmp_path / name).write_text(f"x\n{name}\n")
    for pattern in ("_MARK", "_SPECIAL"):
        monkeypatch.setattr(source_paths, pattern, re.compile("(?!)"))
    with pytest.raises(PlanError, match="must name files that DuckDB can tell apart"):
        open_source("*.csv", folder=tmp_path)


def test_a_first_line_that_is_a_row_is_in_no_message(tmp_path):
    (tmp_path / "t.csv").write_text("zone-secret,1\nother,2\n")
    job = Job("q", ("rows",), where=parse_expression("zone_secret = 'x'"))
    for bounding in (None, Bounding("zone_secret", 1)):
        with (
            open_source(tmp_path / "t.csv") as source,
            pytest.raises(PlanError, match="must be of the table") as refusal,
        ):
            run_jobs(source, [job], bounding=bounding)
        assert "zone-secret" not in str(refusal.value)


@pytest.mark.parametrize(
    "name", ["z[1].parquet", "a{b", "a?/z.parquet", "b*/*.parquet"]
)
def test_a_name_that_spark_takes_for_a_pattern_is_refused(tmp_path, name):
    for path in ("z[1].parquet", "a{b", "a?/z.parquet", "b*/z.parquet"):
        (tmp_path / path).mkdir(parents=True)
    with pytest.raises(PlanError, match="must have a name without"):
        open_source(f"spark://local#{name}", folder=tmp_path)


FILE = """
[source]
table = "t.csv"
unit = "who"
{types}
[promise]
epsilon = "1"
[bounds]
rows_per_unit = 1
[[queries]]
name = "q"
select = "count"
where = "minutes > 3"
by = ["zone"]
keys = {{ zone = ["A"] }}
"""
TYPES = 'types = { minutes = "int", day = "date" }'


@pytest.mark.parametrize("types", ["", TYPES])
@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("who;zone;minutes;day", "the first line has semicolons between its names"),
        ("who\tzone\tminutes\tday", "the first line has tabs between its names"),
        ("who|zone|minutes|day", "the first line has bars between its names"),
        ("canary;a,5;b,5;c", "the first line has semicolons between its names"),
        ("Who,Zone,Minutes,Day", " only differs in case or blanks: write"),
        ("who,zone,MINUTES,day", "the name of column 3 only differs in case"),
        ("canary,A,5,2026-01-01", "in the first line of the CSV file, which must name"),
        ("canary", "the table has one column, and the columns of a CSV file have"),
    ],
)
def test_a_first_line_without_the_columns_is_described_and_not_repeated(
    tmp_path, first, words, types
):
    for row in ("x,A,5,2026-01-01\n", "", ";;\n", "\xff,canary\n"):
        (tmp_path / "t.csv").write_text(f"{first}\n{row}", encoding="latin-1")
        (tmp_path / "t.toml").write_text(FILE.format(types=types))
        with pytest.raises(PlanError) as refusal:
            load(tmp_path / "t.toml").run()
        text = str(refusal.value)
        assert words in text
        known = FILE.format(types=TYPES)
        cells = [cell for cell in re.split("[,;|\t]", first) if cell not in known]
        assert not any(f"{cell}'" in text or f"{cell}?" in text for cell in cells)
        assert "canary" not in text
        assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.toml"]


@pytest.mark.parametrize("first", ["zone-canary,n,m", "zones,n,m", "zone ,n,m"])
def test_no_name_of_the_table_is_suggested_that_the_file_does_not_state(
    tmp_path, first
):
    (tmp_path / "t.csv").write_text(f"{first}\n1,2,3\n")
    text = '[source]\ntable = "t.csv"\nunit = "n"\ntypes = { m = "int" }\n'
    text += '[promise]\nepsilon = "1"\n[bounds]\nrows_per_unit = 1\n'
    text += '[[queries]]\nname = "q"\nselect = "count"\nwhere = "Zone = \'x\'"\n'
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(PlanError, match="must be of the table, got 'Zone'") as refusal:
        load(tmp_path / "t.toml").run()
    assert "did you mean" not in str(refusal.value)
    assert "canary" not in str(refusal.value)


ENTRY = r"such as types = \{ seen = \{ timestamp = \"%d/%m/%Y %H:%M\" \} \}\."
DAY = r"such as types = \{ seen = \{ date = \"%d/%m/%Y\" \} \}\."


@pytest.mark.parametrize(
    ("source", "query", "words"),
    [
        ({"time": "seen", "start": "2026-01-01"}, {}, ENTRY),
        ({"time": "seen"}, {"by": ["hour"], "keys": {"hour": [1]}}, ENTRY),
        ({}, {"where": "month(seen) = 3"}, ENTRY),
        ({}, {"where": "seen > timestamp('2026-01-31T12:00:00')"}, ENTRY),
        ({}, {"where": "seen >= date('2026-01-31')"}, DAY),
        ({}, {"by": ["seen"], "keys": {"seen": "2026-01-01..2026-01-03"}}, DAY),
        ({}, {"where": "seen > 3"}, r"types = \{ seen = \"int\" \}\."),
        ({}, {"where": "seen + 1 > 3"}, r"types = \{ seen = \"float\" \}\."),
        ({}, {"by": ["seen"], "keys": {"seen": [3]}}, r"\{ seen = \"int\" \}\."),
    ],
)
def test_a_column_of_text_that_is_no_text_is_told_how_its_type_is_stated(
    source, query, words
):
    table = pa.table({"who": ["a"], "seen": ["1/2/2026 12:00"]})
    release = from_table(
        table,
        {
            "source": {"unit": "who", **source},
            "promise": {"epsilon": "1"},
            "bounds": {"rows_per_unit": 1},
            "queries": [{"name": "q", "select": "count", **query}],
        },
    )
    with pytest.raises(PlanError, match=words) as refusal:
        release.check()
    assert "source.types" in str(refusal.value)


@pytest.mark.parametrize("name", ["a b", 'a"b', "ü", "a.b", "a\nb"])
def test_the_stated_type_of_any_name_is_toml(name):
    for kind in ("int", "date", "timestamp"):
        found = tomllib.loads(types_entry(name, kind))["types"]
        assert list(found) == [name]


@pytest.mark.parametrize("name", ["undertow_limit", "UNDERTOW_tied", "undertow_x"])
def test_columns_with_our_names_are_refused(name):
    table = pa.table({"person": [1] * 6, name: [None, 1, 2, 3, 4, 5]})
    where = parse_expression(f"{name} is null or {name} >= 0")
    job = Job("c", ("rows",), where=where)
    with (
        open_source(table) as source,
        pytest.raises(PlanError, match="must not start with undertow_"),
    ):
        run_jobs(source, [job], bounding=Bounding("person", 1))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("zone = yes", "got 'yes' in query 'c'; text is written in single quotes"),
        ("month = 3", "got 'month' in query 'c'; month is that of source.time, or"),
    ],
)
def test_a_name_that_is_no_column_is_said_to_be_what_it_may_be(where, words):
    job = Job("c", ("rows",), where=parse_expression(where))
    table = pa.table({"zone": ["A"], "n": [1]})
    with open_source(table) as source, pytest.raises(PlanError, match=words):
        run_jobs(source, [job])


@pytest.mark.parametrize(
    ("bounding", "words"),
    [
        (Bounding("nobody", 1), r"got 'nobody' in source\.unit\."),
        (Bounding("zone", 1, 60, "never"), r"got 'never' in source\.time\."),
    ],
)
def test_a_unit_or_time_that_is_no_column_is_named(bounding, words):
    table = pa.table({"zone": ["A"], "n": [1]})
    with open_source(table) as source, pytest.raises(PlanError, match=words):
        run_jobs(source, [Job("c", ("rows",))], bounding=bounding)


def test_a_table_of_one_column_is_one_without_commas():
    table = pa.table({"zone;n": ["A;1"]})
    with (
        open_source(table) as source,
        pytest.raises(PlanError, match="the table has one column, and the columns of"),
    ):
        run_jobs(source, [Job("c", ("rows",), where=parse_expression("visits = 1"))])

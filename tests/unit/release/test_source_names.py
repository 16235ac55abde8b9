"""Columns that the engine would take for one are refused before a row is used."""

from __future__ import annotations

import gzip

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from undertow.errors import PlanError
from undertow.release.source import open_source

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

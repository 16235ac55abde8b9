"""Several files of one table must be alike before a row of them is used."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from undertow.errors import PlanError
from undertow.release.source.opening import open_source

SAID = (
    r"must have the same columns .*, got b\.{0}, whose .* a\.{0}; write them alike\.$"
)
FIRST = "person,zone\np0,A\np1,A\n"


def csv_files(folder: Path, *texts: str) -> str:
    for name, text in zip("abc", texts, strict=False):
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return str(folder / "*.csv")


@pytest.mark.parametrize(
    "second",
    [
        "zone,person\nB,secret0\n",
        "person,other\nsecret0,B\n",
        "person,zone,n\nsecret0,B,1\n",
        "person\nsecret0\n",
        "secret0,B\nsecret1,B\n",
        "Person,zone\nsecret0,B\n",
        "",
    ],
    ids=["order", "name", "more", "fewer", "none", "case", "empty"],
)
def test_csv_files_with_other_first_lines_are_refused(tmp_path, second):
    files = csv_files(tmp_path, FIRST, second, FIRST)
    with pytest.raises(PlanError, match=SAID.format("csv")) as caught:
        open_source(files)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "second",
    ["person,zone\nq0,B\n", "\ufeffperson,zone\r\nq0,B\r\n", '"person","zone"\nq0,B\n'],
    ids=["same", "encoding", "quotes"],
)
def test_csv_files_with_the_same_first_line_are_one_table(tmp_path, second):
    with open_source(csv_files(tmp_path, FIRST, second, "person,zone\n")) as source:
        found = source.execute(source.table).to_pylist()
    people = {(row["person"], row["zone"]) for row in found}
    assert people == {("p0", "A"), ("p1", "A"), ("q0", "B")}


def test_a_compressed_csv_file_with_another_first_line_is_refused(tmp_path):
    for name, text in (("a", FIRST), ("b", "zone,person\nB,q0\n")):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(PlanError, match=SAID.format(r"csv\.gz")):
        open_source("*.csv.gz", folder=tmp_path)


def parquet_files(folder: Path, *tables: pa.Table) -> str:
    for name, table in zip("ab", tables, strict=True):
        pq.write_table(table, folder / f"{name}.parquet")
    return str(folder / "*.parquet")


@pytest.mark.parametrize(
    "second",
    [
        pa.table({"person": ["q0"], "n": ["secret"]}),
        pa.table({"person": ["q0"], "n": [1.5]}),
        pa.table({"person": ["q0"]}),
        pa.table({"person": ["q0"], "n": [1], "zone": ["B"]}),
    ],
    ids=["text", "float", "fewer", "more"],
)
def test_parquet_files_with_other_columns_or_types_are_refused(tmp_path, second):
    files = parquet_files(tmp_path, pa.table({"person": ["p0"], "n": [1]}), second)
    with pytest.raises(PlanError, match=SAID.format("parquet")):
        open_source(files)


def test_parquet_files_are_matched_by_name_whatever_wrote_them(tmp_path):
    times = pd.to_datetime(["2026-01-01T10:00:00"])
    first = pa.table({"person": ["p0"], "at": times.tz_localize("UTC").as_unit("us")})
    person = pa.array(["q0"], pa.large_string()).dictionary_encode()
    at = pa.array(times.as_unit("us"), pa.timestamp("us", tz="Europe/Berlin"))
    with open_source(
        parquet_files(tmp_path, first, pa.table({"at": at, "person": person}))
    ) as source:
        found = source.execute(source.table)["person"].to_pylist()
    assert sorted(found) == ["p0", "q0"]

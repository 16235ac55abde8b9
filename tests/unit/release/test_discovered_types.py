"""A discovered table without a published key has the types of the table's columns."""

from __future__ import annotations

import datetime
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from undertow.errors import PlanError
from undertow.release import from_table, load, open_source, plan_release

DISCOVER = {
    "source": {"unit": "person"},
    "promise": {"epsilon": "1", "delta": "1e-6"},
    "bounds": {"rows_per_unit": 1},
    "queries": [
        {"name": "rows", "select": "count", "by": ["key"], "keys": "discover"},
        {
            "name": "people",
            "select": "count_distinct",
            "by": ["key"],
            "keys": "discover",
        },
        {
            "name": "mean",
            "select": "mean",
            "column": "n",
            "low": 0,
            "high": 1,
            "by": ["key"],
            "keys": "discover",
        },
    ],
    "output": {"format": "parquet"},
}
KINDS = {
    "integer": (pa.int32(), pa.int64(), 7),
    "string": (pa.string(), pa.string(), "a"),
    "boolean": (pa.bool_(), pa.bool_(), True),
    "date": (pa.date32(), pa.string(), datetime.date(2026, 1, 31)),
}


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("kind", list(KINDS))
def test_columns_have_the_stated_types_whatever_the_rows(tmp_path, kind, count):
    stored, written, value = KINDS[kind]
    table = pa.table(
        {
            "person": pa.array(range(count), pa.int64()),
            "key": pa.array([value] * count, stored),
            "n": pa.array([0.5] * count, pa.float64()),
        }
    )
    release = from_table(table, DISCOVER)
    with release.create_ledger(tmp_path / "l") as ledger:
        release.run(ledger=ledger, output=tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    key = "string" if kind == "date" else kind
    whole, part = ["integer"] * 3, ["number"] * 3
    assert [found["types"] for found in manifest["tables"]] == [
        [key, *ends] for ends in (whole, whole, part)
    ]
    arrow = {"integer": pa.int64(), "number": pa.float64()}
    for found, ends in zip(manifest["tables"], (whole, whole, part), strict=True):
        assert found["rows"] == 0
        schema = pq.read_schema(tmp_path / "out" / found["file"])
        assert schema.types == [written, *(arrow[end] for end in ends)]


ROWS = pa.table({"person": [1, 2], "key": ["a", "b"], "n": [0.0, 1.0]})


@pytest.mark.parametrize("path", [None, 5, b"r.toml"])
def test_a_release_file_that_is_no_name_is_refused_in_one_sentence(path):
    with pytest.raises(PlanError, match=r"^path must be the name of a file or folder"):
        load(path)


@pytest.mark.parametrize("name", ["ledger", "output"])
@pytest.mark.parametrize("value", [5, b"l", ["l"]])
def test_places_that_are_no_names_are_refused_in_one_sentence(tmp_path, name, value):
    places = {"ledger": tmp_path / "l", "output": tmp_path / "out"} | {name: value}
    with pytest.raises(PlanError, match=f"^{name} must be .*, got "):
        from_table(ROWS, DISCOVER).run(**places)
    assert list(tmp_path.iterdir()) == []


def test_a_plan_takes_a_plain_date():
    hourly = {
        "source": {
            "unit": "person",
            "time": "ts",
            "per": {"window": "1d"},
            "start": "2026-01-01",
            "horizon": "7d",
        },
        "promise": {"epsilon": "1", "granularity": "event"},
        "bounds": {"rows_per_unit": 1},
        "queries": [{"name": "rows", "select": "count"}],
    }
    document = from_table(ROWS, hourly).document
    assert plan_release(document, as_of=datetime.date(2026, 1, 3)).timeline.run == 2


def test_options_of_a_source_that_are_something_else_are_refused(tmp_path):
    with pytest.raises(PlanError, match="types must be a mapping"):
        open_source(tmp_path / "t.csv", types=5)
    with pytest.raises(PlanError, match="folder must be the name"):
        open_source("t.csv", folder=5)

"""What the pages about releases say happens, and their files run as printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from support.command import invoke
from support.release_documents import visits_mapping, write_visits
from undertow.errors import PlanError
from undertow.release import from_table, load, open_source
from undertow.release.engine.pipeline import run_jobs
from undertow.release.run._ledger_place import ledger_address

DOCS = Path(__file__).parents[3] / "docs"


def counted(table, mapping, *, measure="rows"):
    """Return the private counts of the first query, before noise."""
    plan = from_table(table, mapping).plan()
    with open_source(table) as source:
        [found] = run_jobs(source, [plan.queries[0].job], bounding=plan.bounding)
    return [int(value) for value in found.measures[measure].ravel()]


def test_the_hourly_file_runs_as_printed(tmp_path):
    page = (DOCS / "how-to" / "hourly-counts-forever.md").read_text(encoding="utf-8")
    found = re.search(r"`hourly\.toml`:\n+```toml\n(.*?)^```$", page, re.M | re.S)
    assert found is not None
    (tmp_path / "hourly.toml").write_text(found[1], encoding="utf-8")
    rows = ["person,ts,district", *(f"{k},2026-01-01T00:{k:02d},north" for k in (1, 2))]
    (tmp_path / "sightings.csv").write_text("\n".join([*rows, ""]), encoding="utf-8")
    done = invoke(
        "release", "run", tmp_path / "hourly.toml", "--as-of", "2026-01-01T01:00"
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "sightings.ledger").is_file()
    assert ": 2026-01-01 00:00 to 2026-01-01 01:00 UTC" in done.output
    (manifest,) = tmp_path.rglob("manifest.json")
    plan = json.loads(manifest.read_text(encoding="utf-8"))["plan"]
    hour = ("2026-01-01T00:00:00+00:00", "2026-01-01T01:00:00+00:00")
    assert (plan["from"], plan["until"]) == hour


def test_columns_of_a_csv_file_are_text_unless_types_are_stated(tmp_path):
    (tmp_path / "a.csv").write_text("person,steps\n1,5\n2,7\n")
    with open_source(str(tmp_path / "a.csv")) as source:
        assert {str(kind) for kind in source.table.schema().types} == {"string"}


def test_where_chooses_among_the_rows_kept():
    people = range(200)
    table = pa.table({"person": [*people, *people], "zone": ["A"] * 200 + ["B"] * 200})
    query = {"where": "zone = 'A'", "by": [], "keys": {}}
    bounded = visits_mapping(query, bounds={"rows_per_unit": 1})
    [kept] = counted(table, bounded)
    assert 0 < kept < 200, "of each person one row is kept, of either zone"
    [every] = counted(table, visits_mapping(query))
    assert every == 200


def test_numbers_outside_of_listed_bins_count_in_the_end_bins():
    table = pa.table({"person": [1, 2, 3, 4, 5], "steps": [-9, 0, 10, 100, 5000]})
    query = {"select": "histogram", "column": "steps", "bins": [0, 10, 100]}
    mapping = visits_mapping()
    mapping["queries"] = [{"name": "steps", **query}]
    assert counted(table, mapping) == [2, 3]


def test_a_running_total_needs_only_the_runs_whose_nodes_it_adds(tmp_path):
    rows = [f"{at},A,2026-01-01T0{at}:30" for at in range(4)]
    path = write_visits(
        tmp_path,
        rows,
        columns="person,zone,ts",
        source={
            "types": {"ts": "timestamp"},
            "time": "ts",
            "per": {"window": "1h"},
            "start": "2026-01-01",
            "horizon": "8h",
        },
        query={"running": True},
        promise={"granularity": "event", "epsilon": "1"},
    )
    total = load(path)
    total.run(as_of="2026-01-01T01:00")
    with pytest.raises(PlanError, match="got none of run 2"):
        total.run(as_of="2026-01-01T03:00")
    assert not total.run(as_of="2026-01-01T04:00").repeated


@pytest.mark.parametrize(
    ("ledger", "name"),
    [({}, "visits.ledger"), ({"dataset": "v"}, "undertow-ledger.sqlite")],
    ids=["no section", "no address"],
)
def test_the_ledger_is_where_the_page_says(tmp_path, ledger, name):
    parts = {"ledger": ledger} if ledger else {}
    document = load(write_visits(tmp_path, **parts)).document
    assert Path(ledger_address(document)) == tmp_path / name

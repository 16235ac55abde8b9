"""On PostgreSQL a table is checked, counted and read in formats as everywhere."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from support.command import invoke
from support.release_mistakes import MISTAKES, ROWS, release_file
from support.release_tables import mistaken_rows, store_rows
from support.release_times import FORMATS, near_misses, read_by_python
from undertow.ledger import BudgetLedger
from undertow.release import check_table, from_table, load, open_source, plan_release
from undertow.release.document.release_document import ReleaseDocument
from undertow.release.document.time import TimeFormat

HOSTILE = ["31/02/2024", "24:00", "", " ", "1" * 3000, "٠١/٠٢/٢٠٢٤", "infinity", "now"]


@pytest.fixture(scope="module")
def url(postgres: Any) -> str:
    url = postgres.create_database("checks")
    with postgres.connect("checks") as connection:
        connection.execute(
            "CREATE TABLE visits (person text, zone text, seen text, minutes integer)"
        )
        connection.execute("CREATE TABLE odd (LIKE visits)")
        connection.execute("CREATE TABLE times (place integer, text text)")
        with connection.cursor() as cursor:
            insert = "INSERT INTO {} VALUES (%s, %s, %s, %s)"
            cursor.executemany(insert.format("visits"), ROWS)
            cursor.executemany(insert.format("odd"), mistaken_rows(7))
    return str(url)


@pytest.mark.parametrize("form", FORMATS)
def test_times_are_read_as_python_reads_them_and_no_row_fails(form, url, postgres):
    texts = [*near_misses(form, Random(form), 300), *HOSTILE]
    with postgres.connect("checks") as connection:
        connection.execute("DELETE FROM times")
        with connection.cursor() as cursor:
            rows = list(enumerate(texts))
            cursor.executemany("INSERT INTO times VALUES (%s, %s)", rows)
    types = {"text": TimeFormat("timestamp", form)}
    with open_source(f"{url}#times", types=types) as source:
        found = source.execute(source.table.order_by("place")).to_pydict()
    assert found["text"] == [read_by_python(text, form) for text in texts]


def test_a_check_counts_what_it_counts_on_duckdb(url, tmp_path):
    mapping = {
        "source": {
            "unit": "person",
            "time": "ts",
            "start": "2026-03-01",
            "horizon": "20d",
            "types": {"ts": {"timestamp": "%d/%m/%Y %H:%M"}},
        },
        "promise": {"epsilon": "1"},
        "bounds": {"rows_per_unit": 4, "groups_per_unit": 1, "rows_per_group": 2},
        "queries": [
            {
                "name": "visits",
                "select": "count",
                "where": "minutes > 12",
                "by": ["zone"],
                "keys": {"zone": ["Mitte", "nord"]},
            },
            {
                "name": "length",
                "select": "mean",
                "column": "minutes",
                "low": 10,
                "high": 50,
                "by": ["hour"],
                "keys": {"hour": "0..23"},
            },
        ],
    }
    table = store_rows(mistaken_rows(7), "arrow", tmp_path)
    here = from_table(table, mapping).check().to_dict()
    text = json.dumps(mapping).replace('"ts"', '"seen"')
    document = ReleaseDocument.model_validate(json.loads(text))
    source = document.source.model_copy(update={"table": url, "relation": "odd"})
    plan = plan_release(document.model_copy(update={"source": source}))
    there = check_table(plan).to_dict()
    columns = {"ts": "seen"}
    for told in (here, there):
        told.pop("engine")
        told.pop("findings")
        told["columns"] = {
            columns.get(column["name"], column["name"]): (
                column["missing"],
                column["unread"],
                column["formats"],
            )
            for column in told["columns"]
        }
        for query in told["queries"]:
            for part in query["keys"]:
                part["rows"] = sorted(part["rows"])
    assert here == there
    assert here["queries"][0]["rows"] > 0


CASES = [
    pytest.param(m, id=m.name, marks=() if m is MISTAKES[0] else pytest.mark.slow)
    for m in MISTAKES
    if "postgres" in m.kinds
]


@pytest.mark.parametrize("mistake", CASES)
def test_a_mistake_is_found_stopped_before_the_charge_and_repaired(
    mistake, url, tmp_path
):
    file, ledger = tmp_path / "visits.toml", tmp_path / "visits.ledger"
    file.write_text(release_file(mistake.wrong, url, "visits"))
    found = invoke("release", "check", file)
    assert found.exit_code == 3, found.output
    assert mistake.words in found.stdout
    load(file).create_ledger(ledger).close()
    stopped = invoke("release", "run", file, "--ledger", ledger)
    assert stopped.exit_code == 3, stopped.output
    assert "must find at least 1,500 units" in stopped.stderr
    file.write_text(release_file(mistake.right, url, "visits"))
    assert invoke("release", "check", file).exit_code == 0
    done = invoke("release", "run", file, "--ledger", ledger, "--json")
    assert done.exit_code == 0, done.output
    with BudgetLedger.open(ledger, read_only=True) as opened:
        history = opened.history()
    labels = [entry.body["label"] for entry in history if entry.kind == "charge"]
    assert labels == ["visits (count)", "visits (count)", "visits"]

"""A release whose promise is about people and whose records are a Markov chain."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.command import invoke

FILE = """
[source]
table = "steps.parquet"          # CSV, Parquet, DuckDB/SQLite file, or a URL
unit = "person_id"               # the protected unit
time = "ts"
[promise]
granularity = "user"             # or event, w-event:…, …
epsilon = "1.0"                  # the promise
correlation = { model = "markov", states = "active", fit = "public.csv" }
[bounds]
rows_per_unit = 50
[[queries]]
name = "active by hour"
select = "count"
where = "steps > 0"
by = ["hour"]
keys = { hour = "0..23" }        # public keys
share = 2                        # relative budget
"""
PLAIN = "".join(
    line for line in FILE.splitlines(keepends=True) if not line.startswith("corr")
)


@pytest.fixture
def file(tmp_path) -> Path:
    start = datetime(2026, 1, 1)
    rows = [
        {
            "person_id": f"p{at % 20}",
            "ts": start + timedelta(minutes=37 * at),
            "steps": 0 if at % 3 else 100,
        }
        for at in range(600)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "steps.parquet")
    states = ["active", *("0 0 0 1 1".split() * 50)]
    (tmp_path / "public.csv").write_text("\n".join(states) + "\n", encoding="utf-8")
    path = tmp_path / "release.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def planned(file):
    result = invoke("release", "plan", file, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_plan_costs_what_the_promise_says_and_shows_the_leakage(file):
    (file.parent / "steps.parquet").unlink()  # no data are touched
    result = invoke("release", "plan", file)
    assert result.exit_code == 0, result.output
    assert "ε = 1 at user level" in result.stdout
    assert "at most 1, by Theorem 1 of release accounting" in result.stdout
    assert "taken on trust: units are mutually independent" in result.stdout
    record = planned(file)
    assert record["costs"]["user"] == {"notion": "pure", "epsilon": 1.0}
    assert record["leakage"]["value"] == 1.0
    file.write_text(PLAIN, encoding="utf-8")
    plain = planned(file)
    assert record["queries"] == plain["queries"]
    assert record["costs"] == plain["costs"]
    assert plain["leakage"] is None


@pytest.mark.parametrize("ending", ["html", "md"])
def test_it_runs_and_again_returns_what_is_stored(file, ending):
    report = file.parent / f"report.{ending}"
    first = invoke("release", "run", file, "--json", "--report", report)
    assert first.exit_code == 0, first.output
    second = invoke("release", "run", file, "--json")
    assert second.exit_code == 0, second.output
    one, two = json.loads(first.stdout), json.loads(second.stdout)
    assert (one["repeated"], two["repeated"]) == (False, True)
    assert one["answers"] == two["answers"]
    assert len(one["answers"][0]["rows"]) == 24
    page = report.read_text(encoding="utf-8")
    assert "this costs nothing more" in page
    assert "Theorem 1 of release accounting (whole units)" in page
    assert "Units are mutually independent" in page
    manifest = json.loads((file.parent / "release" / "manifest.json").read_bytes())
    leak = manifest["plan"]["leakage"]
    assert (leak["value"], leak["method"]) == (1.0, "whole-units")
    assert leak["unchecked"] == [
        "units are mutually independent: records depend inside of a unit only"
    ]


def test_its_ledger_holds_the_promise_at_user_level(file):
    assert invoke("release", "run", file).exit_code == 0
    shown = invoke("ledger", "show", file.parent / "steps.ledger", "--json")
    assert shown.exit_code == 0, shown.output
    assert '"user"' in shown.stdout
    text = invoke("ledger", "show", file.parent / "steps.ledger").stdout
    line = next(line for line in text.splitlines() if line.startswith("user"))
    assert line.count("ε = 1") == 2  # the budget, and what was spent
    assert "ε = 0" in line
    assert invoke("ledger", "verify", file.parent / "steps.ledger").exit_code == 0
    more = invoke("release", "run", file, "--repeat", "2")
    assert more.exit_code == 3
    assert "must fit the user budget" in more.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "promise.correlation.fit must be a readable public table"),
        ("steps\n1\n2\n", "promise.correlation.states must be a column of public.csv"),
        ("active\n", "promise.correlation.fit must hold series of at least two states"),
    ],
    ids=["missing", "another column", "empty"],
)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_wrong_public_file_is_one_sentence_before_data_are_read(
    file, command, content, words
):
    (file.parent / "steps.parquet").write_bytes(b"no table at all")
    public = file.parent / "public.csv"
    public.unlink()
    if content is not None:
        public.write_text(content, encoding="utf-8")
    result = invoke("release", command, file)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not (file.parent / "steps.ledger").exists()

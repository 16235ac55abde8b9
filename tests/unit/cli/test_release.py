"""`undertow release`: the contract of its two commands."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from support.command import invoke
from support.release_documents import write_visits


@pytest.fixture
def file(tmp_path) -> Path:
    return write_visits(tmp_path, query={"keys": {"zone": ["A", "B", "[bold]"]}})


def test_a_plan_shows_cost_and_error_and_touches_nothing(file):
    (file.parent / "visits.csv").unlink()
    before = sorted(file.parent.iterdir())
    result = invoke("release", "plan", file)
    assert result.exit_code == 0, result.output
    assert "user" in result.stdout
    assert "visits: ± " in result.stdout
    assert sorted(file.parent.iterdir()) == before


def test_a_plan_as_json_has_cost_error_risk_and_leakage(file):
    record = json.loads(invoke("release", "plan", file, "--json").stdout)
    assert record["costs"]["user"] == {"notion": "pure", "epsilon": 1.0}
    assert record["queries"][0]["cells"] == 3
    assert record["risk"] is None
    assert record["leakage"] is None


def test_a_run_prints_its_tables_and_where_they_are(file):
    result = invoke("release", "run", file)
    assert result.exit_code == 0, result.output
    assert "[bold]" in result.stdout  # a key, not markup
    assert "Charged as entry 1 of the ledger." in result.stdout
    assert (file.parent / "release" / "01-visits.csv").exists()


def test_a_run_as_json_is_one_object_and_again_the_same(file):
    first = json.loads(invoke("release", "run", file, "--json").stdout)
    second = json.loads(invoke("release", "run", file, "--json").stdout)
    assert not first["repeated"]
    assert second["repeated"]
    assert first["answers"] == second["answers"]
    assert "nodes" not in first["answers"][0]


def test_a_spent_budget_is_refused_in_one_sentence(file):
    assert invoke("release", "run", file).exit_code == 0
    result = invoke("release", "run", file, "--repeat", "2")
    assert result.exit_code == 3
    assert result.stderr.count("\n") == 1
    assert "must fit the user budget" in result.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("epsilon", "epsilom"), "epsilom"),
        (('"count"', '"cuont"'), "select"),
        (("visits.csv", "missing.csv"), "missing.csv"),
        (('by = ["zone"]', 'by = ["zoen"]'), "zoen"),
        (("rows_per_unit = 2", ""), "rows_per_unit"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_charged(file, change, words):
    file.write_text(file.read_text().replace(*change))
    result = invoke("release", "run", file)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not (file.parent / "release").exists()


def test_a_report_is_html_or_markdown(file):
    folder = file.parent
    result = invoke("release", "run", file, "--report", folder / "report.html")
    assert result.exit_code == 0, result.output
    assert "<title>" in (folder / "report.html").read_text()
    result = invoke("release", "plan", file, "--report", folder / "plan.md")
    assert (folder / "plan.md").read_text().startswith("# ")
    refused = invoke("release", "plan", file, "--report", folder / "plan.pdf")
    assert refused.exit_code == 2
    assert "report must end with .html or .md" in refused.stderr


def test_passwords_in_addresses_do_not_reach_the_record(file, monkeypatch):
    import sys

    monkeypatch.setattr(
        sys, "argv", ["undertow", "release", "run", "postgres://me:secret@host/db"]
    )
    record = json.loads(invoke("release", "run", file, "--json").stdout)
    manifest = (file.parent / "release" / "manifest.json").read_text()
    assert "secret" not in json.dumps(record)
    assert "secret" not in manifest
    assert "postgres://" in manifest


def test_the_bundled_release_fits_the_published_schema():
    schema = json.loads(invoke("schema", "release").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    file = resources.files("undertow.cli") / "releases" / "city.toml"
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({**document, "sauce": {}})

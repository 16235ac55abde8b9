"""`undertow demo`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support.command import invoke


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "demo"
    return folder, invoke("demo", "--output", folder)


def test_the_demo_tells_its_story_in_ten_lines(shown):
    _, result = shown
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    lines = result.stdout.strip().splitlines()
    assert len(lines) == 10
    assert "200,000 records of 5,000 people" in lines[0]
    assert "Charged as entry 1" in lines[8]


def test_the_demo_leaves_tables_ledger_and_report(shown):
    folder, _ = shown
    names = {path.name for path in folder.iterdir()}
    wanted = {"city.csv", "panel.csv", "city.toml", "city.ledger", "tables"}
    assert wanted | {"report.html"} <= names
    assert "<title>" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_again_is_free_and_the_attack_is_the_same(shown):
    folder, first = shown
    result = invoke("demo", "--output", folder, "--json")
    record = json.loads(result.stdout)
    assert "nothing was charged" in record["story"]
    hits = {name: a["success"]["value"] for name, a in record["attacks"].items()}
    # The plain counts give more away than ε = 1 allows, the calibrated ones do not.
    assert hits["plain"] > 0.75 > 0.7311 > hits["calibrated"] > 0.5
    assert f"{100 * hits['plain']:.0f} of 100" in first.stdout
    assert record["calibrated"]["leakage"]["value"] <= 1 + 1e-9
    assert record["plain_leakage"] > 5


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    result = invoke("demo", "--output", blocked / "below", "--json")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_a_file_in_place_of_the_folder_is_named_and_left(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    result = invoke("demo", "--output", blocked)
    assert result.exit_code == 2
    assert result.stderr.startswith("output must be a folder that can be written, got")
    assert blocked.read_text() == "x"


@pytest.mark.parametrize("name", ["city.csv", "city.toml", "report.html"])
def test_files_of_others_are_never_written_over(tmp_path, name):
    (tmp_path / name).write_text("mine")
    result = invoke("demo", "--output", tmp_path)
    assert result.exit_code == 2
    assert f"with a {name} of its own; name another one" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_limits_are_told_rounded_up(shown):
    lines = shown[1].stdout.splitlines()
    assert "at most 73.2 of 100 cases" in lines[1]
    assert "learns up to ε = 11.77 " in lines[3]


@pytest.mark.parametrize(
    "name", ["plan", pytest.param("release", marks=pytest.mark.slow)]
)
def test_a_reader_that_goes_away_is_no_error_message(name):
    process = subprocess.Popen(
        [sys.executable, "-m", "undertow", "schema", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    message = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert message == b""

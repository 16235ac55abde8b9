"""`undertow demo`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support.command import invoke
from undertow.cli import demo


def test_the_demo_tells_the_story_with_its_numbers():
    result = invoke("demo")
    assert result.exit_code == 0
    assert result.stderr == ""
    for number in ("0.5", "0.7", "1.1", "1.6", "3.2"):
        assert f"ε = {number}" in result.stdout
    assert "Warnings" in result.stdout
    assert "leakage = 3.47487" in result.stdout
    assert "3.99479" in result.stdout
    assert "17568" in result.stdout


def test_the_demo_as_one_json_object():
    result = invoke("demo", "--json")
    record = json.loads(result.stdout)
    found = {r["granularity"]: round(r["epsilon"], 12) for r in record["losses"]}
    assert found == {
        "event": 0.5,
        "w-event:3": 0.7,
        "w-event:3:single-user": 0.7,
        "l-trajectory:3": 1.1,
        "user:max-times=4": 1.6,
        "user": 3.2,
    }
    assert record["leakage"]["leakage"] == pytest.approx(3.4748734, abs=1e-6)
    assert record["calibration"]["dp_epsilon"] == pytest.approx(0.250326, abs=1e-6)


def test_the_picture_is_written_where_it_was_asked_for(tmp_path):
    folder = tmp_path / "new" / "folder"
    result = invoke("demo", "--output", folder, "--json")
    assert result.exit_code == 0
    json.loads(result.stdout)
    for name in ("composition.png", "noise-scales.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    result = invoke("demo", "--output", blocked / "below", "--json")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_without_matplotlib_the_demo_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    result = invoke("demo", "--output", tmp_path / "pictures")
    assert result.exit_code == 0
    assert "pip install 'undertow[plot]'" in result.stderr
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize("words", [["demo"], ["schema", "plan"]])
def test_a_reader_that_goes_away_is_no_error_message(words):
    process = subprocess.Popen(
        [sys.executable, "-m", "undertow", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    message = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert message == b""
